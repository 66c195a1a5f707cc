"""One question on the command line: searched, reranked, and answered if asked."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rag_reliability import modelstore
from rag_reliability.experiment.backends import open_backend
from rag_reliability.experiment.encoding import study_encoder
from rag_reliability.experiment.ranking import (
    Candidates,
    System,
    load_candidates,
    similarity_system,
    type_prior,
)
from rag_reliability.experiment.study import Study
from rag_reliability.files import run_lock
from rag_reliability.records import Document, InputError
from rag_reliability.reliability.rerank import rerank
from rag_reliability.text import plain

INTERACTIVE = ("similarity", "source_aware_3k", "source_aware")
PATIENCE = 600.0
"""Seconds to wait for another question that is searching, or building its index."""
_QID = "query"


@dataclass(frozen=True)
class Hit:
    """One document of the answer to a search: its place, and what put it there."""

    rank: int
    document: Document
    sim: float
    prior: float
    score: float
    rank_sim: int


def find(study: Study, query: str, system: str) -> list[Hit]:
    """Top k documents for a question.

    Raises InputError for an empty question, an unknown system, or a folder that another question
    holds for more than ``PATIENCE`` seconds.
    """
    if not query.strip():
        raise InputError("the question is empty")
    if not query.isprintable() and any("\ud800" <= c <= "\udfff" for c in query):
        raise InputError("the question is not valid text (a lone surrogate)")
    if system not in INTERACTIVE:
        raise InputError(f"unknown system {system!r}; known here: {', '.join(INTERACTIVE)}")
    # All questions are asked in one folder: another corpus' must not put its index there meanwhile.
    with run_lock(study.run_dir, PATIENCE):
        stored = load_candidates(study)
        query_vecs = study_encoder(study).encode([query])
        depth = max(study.config.k * study.config.expansion, stored.pool.docids.shape[1])
        with open_backend(study, stored.partition) as backend:
            pool = backend.search(query_vecs, depth)
    found = replace(stored, pool=pool, query_vecs=query_vecs)
    return _hits(study, found, _system(study, system))


def _system(study: Study, name: str) -> System:
    prior, config = type_prior(study), study.config
    if name == "similarity":
        return similarity_system(study)
    if name == "source_aware_3k":
        return System(prior, config.expansion * config.k)
    return System(prior, config.window if isinstance(config.window, int) else None)


def _hits(study: Study, found: Candidates, system: System) -> list[Hit]:
    corpus = study.corpus
    ranking = rerank(
        found.pool,
        system.prior,
        (_QID,),
        corpus.docnos,
        study.config.k,
        rule=system.rule,
        window=system.window,
    )
    sims = dict(zip(found.pool.docids[0].tolist(), found.pool.sims[0].tolist(), strict=True))
    by_sim = {
        docid: i
        for i, docid in enumerate(sorted(sims, key=lambda d: (-sims[d], corpus.docnos[d])), 1)
    }
    prior = type_prior(study)
    return [
        Hit(rank, corpus.documents[d], sims[d], float(prior[d]), score, by_sim[d])
        for rank, (d, score) in enumerate(
            zip(ranking.docids[0].tolist(), ranking.scores[0].tolist(), strict=True), start=1
        )
    ]


def search(study: Study, query: str, system: str) -> str:
    """The ranking for a question as text: place, tier, prior, similarity, score, title, source."""
    return listing(find(study, query, system))


def listing(hits: list[Hit]) -> str:
    """Hits as aligned text; documents are hostile, so control characters are left out."""
    columns = f"{'rank':>4} {'was':>4} {'score':>6} {'sim':>6} {'prior':>6}  {'tier':<17}"
    lines = [f"{columns} title (docno, source)"]
    for h in hits:
        title = _one_line(h.document.title or h.document.text)[:80]
        where = _one_line(h.document.source or h.document.url)[:60] or "no source"
        lines.append(
            f"{h.rank:>4} {h.rank_sim:>4} {h.score:>6.3f} {h.sim:>6.3f} {h.prior:>6.2f}  "
            f"{_one_line(h.document.source_type):<17} {title} "
            f"({_one_line(h.document.docno)}, {where})"
        )
    return "\n".join(lines)


def _one_line(text: str) -> str:
    """Text without control characters and line breaks: a document cannot forge a line."""
    return " ".join(plain(text).split())


def ask(study: Study, query: str, system: str, arm: str) -> str:
    """An answer from the top k passages, how far each sentence is supported, and its sources."""
    from rag_reliability.experiment.answering import passage
    from rag_reliability.experiment.preflight import known
    from rag_reliability.generation.generate import generate
    from rag_reliability.generation.models import load_generator
    from rag_reliability.generation.prompt import ARMS, build_messages, prompt_ids

    known("--arm", (arm,), tuple(ARMS))  # refuse before searching, not after
    modelstore.resolve(study.config.generator)
    hits = find(study, query, system)
    messages = build_messages(query, [passage(h.document) for h in hits], arm, study.language)
    generator = load_generator(study.config.generator)
    text = generate(
        generator,
        [prompt_ids(generator, messages)],
        max_new_tokens=study.config.max_new_tokens,
        batch_size=1,
        language=study.language.splitter,
        progress=False,
    )[0]
    return f"{_supported(study, text, hits)}\n\nsources\n{listing(hits)}"


def _supported(study: Study, text: str, hits: list[Hit]) -> str:
    from rag_reliability.experiment.answer_scoring import load_scorer, sentence_table

    table = sentence_table(text, [h.document.content for h in hits], load_scorer(study))
    lines = [
        f"{row.sentence}\n    {row.band}: support {row.support:.2f} by [{row.best_passage + 1}] "
        f"{_one_line(hits[row.best_passage].document.source_type)} "
        f"({_one_line(hits[row.best_passage].document.docno)})"
        for row in table.itertuples()
    ]
    # An answer can hold no sentence to score, a bare "Yes" or a mark: show it as it is.
    return "\n".join(lines) or text.strip() or "(no answer)"
