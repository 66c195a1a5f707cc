"""What the rules may look at: one pool, its evidence once, and the labels of every draw on top."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rag_reliability.experiment.ranking import load_candidates
from rag_reliability.experiment.study import Study
from rag_reliability.experiment.threat_states import Rows, States, adversary_at, declared_prior
from rag_reliability.records import Pool
from rag_reliability.reliability.evidence import OPTIONAL, Evidence
from rag_reliability.reliability.rerank import tie_ranks
from rag_reliability.reliability.robust import NEEDS

CHUNK = 1024
"""Rankings computed together: conflicts take m² bytes each."""


@dataclass(frozen=True)
class Gathered:
    """The evidence under the corpus's own labels, and what reading it cost.

    cost: by field of Evidence, (model calls, seconds).
    """

    evidence: Evidence
    cost: Mapping[str, tuple[int, float]]


@dataclass(frozen=True)
class Reading:
    """One field of Evidence, and the model calls and seconds that reading it took."""

    values: np.ndarray
    calls: int = 0
    seconds: float = 0.0


def gather(
    study: Study, qids: Sequence[str], rules: Sequence[str], *, window: int, depth: int
) -> Gathered:
    """The ``depth`` most similar documents of each topic with all that ``rules`` need to know.

    Copies, conflicts and stances are read among the ``window`` most similar only: no rule looks
    further.
    """
    pool = topic_pool(study, qids, depth)
    docids, valid = pool.docids, pool.docids >= 0
    safe = np.where(valid, docids, 0)
    wanted = {name for rule in rules for name in NEEDS.get(rule, ())}
    fields: dict[str, np.ndarray] = {}
    cost: dict[str, tuple[int, float]] = {}
    for name in (n for n in OPTIONAL if n in wanted):
        read = READ[name](study, qids, docids, window)
        fields[name], cost[name] = read.values, (read.calls, read.seconds)
    verified = np.array([d.verified for d in study.corpus.documents], dtype=bool)
    evidence = Evidence(
        docids=docids,
        sims=pool.sims,
        prior=declared_prior(study, study.corpus)[safe],
        verified=verified[safe] & valid,
        **fields,
    )
    return Gathered(evidence, cost)


def topic_pool(study: Study, qids: Sequence[str], depth: int) -> Pool:
    """The ``depth`` most similar documents of the whole corpus for each of ``qids``."""
    found = load_candidates(study, depth)
    row = {qid: i for i, qid in enumerate(found.qids)}
    rows = [row[qid] for qid in qids]
    own = Pool(found.pool.docids[rows], found.pool.sims[rows])
    return flat_pool(own, tie_ranks(study.corpus.docnos), depth)


def flat_pool(pool: Pool, ties: np.ndarray, depth: int) -> Pool:
    """The ``depth`` most similar documents of each topic, by (-sim, docno)."""
    valid = pool.docids >= 0
    tie = ties[np.where(valid, pool.docids, 0)]
    order = np.lexsort((tie, -pool.sims, ~valid), axis=-1)[:, :depth]
    return Pool(
        np.take_along_axis(pool.docids, order, axis=1),
        np.take_along_axis(pool.sims, order, axis=1),
    )


def evidence_rows(
    base: Evidence, states: States, rows: Rows, prior: np.ndarray, verified: np.ndarray
) -> Iterator[Evidence]:
    """The evidence of every distinct ranking, in chunks and in the order of ``rows``.

    prior, verified: (n_docs,), what documents declare before any draw; a draw changes adversaries.
    """
    at = adversary_at(states, len(prior))
    # One more column, which -1 finds: what is no adversary's is not taken from it.
    spoofed = np.pad(states.prior, ((0, 0), (0, 1)), constant_values=1.0)
    passed = np.pad(states.verified, ((0, 0), (0, 1)))
    for start in range(0, len(rows.topic), CHUNK):
        topic = rows.topic[start : start + CHUNK]
        state = rows.state[start : start + CHUNK, None]
        docids = base.docids[topic]
        safe = np.where(docids >= 0, docids, 0)
        adversary = at[safe]
        drawn = adversary >= 0
        yield replace(
            base,
            **{
                name: value[topic]
                for name, value in vars(base).items()
                if isinstance(value, np.ndarray)
            }
            | {
                "prior": np.where(drawn, spoofed[state, adversary], prior[safe]),
                "verified": np.where(drawn, passed[state, adversary], verified[safe])
                & (docids >= 0),
            },
        )


def _sources(study: Study, qids: Sequence[str], docids: np.ndarray, window: int) -> Reading:
    """Code of each document's publisher, -1 where it names none."""
    names, codes = np.unique(study.corpus.sources, return_inverse=True)
    codes = np.where(names[codes] == "", -1, codes)
    return Reading(np.where(docids >= 0, codes[np.where(docids >= 0, docids, 0)], -1))


def _lexical(study: Study, qids: Sequence[str], docids: np.ndarray, window: int) -> Reading:
    """BM25 score of each candidate, over the whole corpus's statistics."""
    from rag_reliability.retrieval.lexical import LexicalIndex

    query = {t.qid: t.query for t in study.corpus.topics}
    words = study.language.words
    index = LexicalIndex.build(
        _texts(study), stopwords=sorted(words.function_words) if words else None
    )
    return Reading(index.scores([query[qid] for qid in qids], docids))


def _copies(study: Study, qids: Sequence[str], docids: np.ndarray, window: int) -> Reading:
    from rag_reliability.reliability.copies import copy_groups

    return Reading(_padded(copy_groups(_texts(study), docids[:, :window]), docids.shape, -1))


def _conflicts(study: Study, qids: Sequence[str], docids: np.ndarray, window: int) -> Reading:
    from rag_reliability.reliability.copies import conflicts

    if study.language.words is not None:  # the words that tell a contradiction are English
        return Reading(np.zeros((*docids.shape, docids.shape[1]), dtype=bool))
    found = conflicts(_texts(study), docids[:, :window])
    return Reading(_padded(found, (*docids.shape, docids.shape[1]), False))


def _stances(study: Study, qids: Sequence[str], docids: np.ndarray, window: int) -> Reading:
    """The generator's reading of each passage inside the window."""
    from rag_reliability.experiment.stances import pool_stances

    found = pool_stances(study, qids, docids, window)
    return Reading(_padded(found.stance, docids.shape, np.nan), found.calls, found.seconds)


def _texts(study: Study) -> list[str]:
    return [d.content for d in study.corpus.documents]


def _padded(values: np.ndarray, shape: tuple[int, ...], filler: float) -> np.ndarray:
    """``values`` of the candidates inside the window, and ``filler`` for those beyond it."""
    whole = np.full(shape, filler, dtype=values.dtype)
    whole[tuple(slice(n) for n in values.shape)] = values
    return whole


Reader = Callable[[Study, Sequence[str], np.ndarray, int], Reading]
"""``(study, qids, docids, window)`` to one optional field of Evidence."""

READ: Mapping[str, Reader] = {
    "copies": _copies,
    "conflicts": _conflicts,
    "source": _sources,
    "stance": _stances,
    "lexical": _lexical,
}
"""How each optional field of Evidence is read; rules that need another cannot be run here."""
