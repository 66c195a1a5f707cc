"""Public data as corpora on which a ranker that trusts sources can be put to the test.

Each constructor is a pure function of the raw files and a ``Draw``. ``docs/testbeds.md`` is the
data card: what in a testbed is real, what is drawn, and what it can show.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from rag_reliability.datasets.draws import (
    VERIFIABLE,
    Draw,
    Flip,
    flipped_copies,
    some,
    with_drawn_hosts,
    with_drawn_sources,
    with_verified_share,
)
from rag_reliability.datasets.healthver import healthver_corpus
from rag_reliability.datasets.raw import read_evidence, read_studies
from rag_reliability.datasets.read import read_corpus
from rag_reliability.records import Corpus, Document, InputError, Qrels, Topic

COPIED = {"healthver": 0.45, "liveqa": 1.0}
"""Share of the relevant documents that have a flipped copy.

Set so that similarity alone shows a share of .2 to .3 adversarial documents in its top 5 (MiniLM).
"""


def build_testbed(
    name: str,
    shared: Path,
    *,
    seed: int = 0,
    flip: Flip | None = None,
    verifiable: float = VERIFIABLE,
) -> Corpus:
    """The testbed called ``name`` (a key of ``TESTBEDS``) from the raw sets in ``shared``.

    seed: of what is drawn. flip: what turns a text into its contrary; the testbeds with flipped
    copies need it. verifiable: share of true high-tier documents that are verified.

    Raises InputError for an unknown name, a share outside [0, 1], a missing or malformed file, or a
    testbed with flipped copies without ``flip``.
    """
    if name not in TESTBEDS:
        raise InputError(f"unknown testbed {name!r}; known: {', '.join(TESTBEDS)}")
    corpus = TESTBEDS[name](Path(shared), Draw(seed, flip, verifiable=verifiable))
    return dataclasses.replace(corpus, name=name)


def trec_answers(shared: Path, draw: Draw) -> Corpus:
    """True and wrong answers to yes/no health topics, their tiers as they stand.

    Of the verified answers (all true high-tier ones) a share ``verifiable`` stays verified.
    Publishers, which the set lacks, are drawn.
    """
    corpus = read_corpus(shared / "trec-hm-answers")
    hosted = with_drawn_hosts(corpus.documents, draw.seed)
    documents = with_verified_share(hosted, draw.verifiable, draw.seed)
    return dataclasses.replace(corpus, documents=documents)


def trec_answers_among_pages(shared: Path, draw: Draw) -> Corpus:
    """``trec_answers`` among 6,000 pages of health institutes, none of them judged."""
    corpus = trec_answers(shared, draw)
    pages = _pages(shared, draw).documents
    return dataclasses.replace(corpus, documents=corpus.documents + pages)


def healthver(shared: Path, draw: Draw) -> Corpus:
    """Claims asked as questions; adversarial are passages that contradict most verdicts."""
    corpus = healthver_corpus(read_evidence(shared / "healthver" / "healthver_dev.csv"))
    documents = with_drawn_sources(corpus.documents, draw)
    return dataclasses.replace(corpus, documents=documents)


def healthver_flipped(shared: Path, draw: Draw) -> Corpus:
    """``healthver`` and flipped copies of a share of the passages that are relevant."""
    corpus = healthver_corpus(read_evidence(shared / "healthver" / "healthver_dev.csv"))
    copied = some(_relevant(corpus.qrels, 1), COPIED["healthver"], draw.seed)
    corpus = _with_flipped(corpus, copied, draw)
    documents = with_drawn_sources(corpus.documents, draw)
    return dataclasses.replace(corpus, documents=documents)


def liveqa_flipped(shared: Path, draw: Draw) -> Corpus:
    """Consumers' questions over institutes' pages, and flipped copies of pages that answer them.

    A share ``low_share`` of the relevant pages is relabelled to a low tier and an invented
    publisher; every other page keeps its type and url, and a share ``verifiable`` is verified.
    """
    corpus = _pages(shared, draw)
    relevant = _relevant(corpus.qrels, 1)
    copied = _with_flipped(corpus, some(relevant, COPIED["liveqa"], draw.seed), draw)
    low = some(relevant, draw.low_share, draw.seed + 1)
    moved = {d.docno for d in copied.documents if d.docno in low or d.adversarial}
    lowered = dataclasses.replace(draw, low_share=1.0)
    redrawn = with_drawn_sources((d for d in copied.documents if d.docno in moved), lowered)
    by_docno = {d.docno: d for d in redrawn}
    documents = tuple(by_docno.get(d.docno, d) for d in copied.documents)
    return dataclasses.replace(copied, documents=documents)


def pubmedqa(shared: Path, draw: Draw) -> Corpus:
    """Studies' titles as yes/no questions; conclusions answer them, abstracts do so in part.

    Conclusions are relevant (2), passages of the same abstract partly (1); adversarial are flipped
    conclusions. Questions answered "maybe" are left out, their texts stay.
    """
    documents: list[Document] = []
    topics, qrels = [], {}
    for study in read_studies(shared / "pubmedqa" / "dev.jsonl"):
        conclusion = Document(f"{study.id}-c", "", study.conclusion, "unknown")
        numbered = enumerate(study.passages, 1)
        passages = [Document(f"{study.id}-p{i}", "", p, "unknown") for i, p in numbered]
        documents += [conclusion, *passages]
        if study.answer != "maybe":
            topics.append(Topic(study.id, study.question, stance=study.answer))
            qrels[study.id] = {conclusion.docno: 2} | {d.docno: 1 for d in passages}
    corpus = Corpus("pubmedqa", tuple(documents), tuple(topics), qrels)
    corpus = _with_flipped(corpus, _relevant(qrels, 2), draw)
    return dataclasses.replace(corpus, documents=with_drawn_sources(corpus.documents, draw))


TESTBEDS: Mapping[str, Callable[[Path, Draw], Corpus]] = {
    "trec-hm-answers": trec_answers_among_pages,
    "trec-hm-answers-alone": trec_answers,
    "healthver": healthver,
    "healthver-flipped": healthver_flipped,
    "liveqa-flipped": liveqa_flipped,
    "pubmedqa": pubmedqa,
}


def _pages(shared: Path, draw: Draw) -> Corpus:
    """LiveQA-Med over MedQuAD; every page names its institute's url, a share is verified."""
    corpus = read_corpus(shared / "liveqa-medquad")
    marked = (dataclasses.replace(d, verified=True) for d in corpus.documents)
    documents = with_verified_share(marked, draw.verifiable, draw.seed)
    return dataclasses.replace(corpus, documents=documents)


def _relevant(qrels: Qrels, label: int) -> set[str]:
    return {d for labels in qrels.values() for d, given in labels.items() if given >= label}


def _with_flipped(corpus: Corpus, docnos: Iterable[str], draw: Draw) -> Corpus:
    """``corpus`` with flipped copies of ``docnos``, judged not relevant wherever these are."""
    if draw.flip is None:
        raise InputError("this testbed holds flipped copies and needs a function that flips a text")
    docnos = set(docnos)
    originals = [d for d in corpus.documents if d.docno in docnos and not d.adversarial]
    copies = flipped_copies(originals, draw.flip)
    names = {d.docno.removesuffix("-flipped"): d.docno for d in copies}
    qrels = {
        qid: {**labels, **{names[d]: 0 for d, label in labels.items() if label and d in names}}
        for qid, labels in corpus.qrels.items()
    }
    return dataclasses.replace(corpus, documents=corpus.documents + copies, qrels=qrels)
