"""Pairs of a yes/no question and a passage whose stance is known, to test readers of stance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from pathlib import Path

import pandas as pd

from rag_reliability.datasets.healthver import as_question, names
from rag_reliability.datasets.raw import read_evidence, read_studies
from rag_reliability.datasets.read import read_corpus
from rag_reliability.records import Corpus, InputError

COLUMNS = ("qid", "docno", "question", "passage", "answer")
Pair = tuple[str, str, str, str, str]
_CONTRARY = {"yes": "no", "no": "yes"}


def stance_pairs(name: str, shared: Path) -> pd.DataFrame:
    """Pairs of the set ``name`` (a key of ``STANCE_PAIRS``): qid, docno, question, passage, answer.

    answer: "yes" or "no", what the passage says to the question, which need not be true.

    Raises InputError for an unknown name and a missing or malformed file.
    """
    if name not in STANCE_PAIRS:
        raise InputError(f"unknown stance pairs {name!r}; known: {', '.join(STANCE_PAIRS)}")
    return pd.DataFrame(list(STANCE_PAIRS[name](Path(shared))), columns=list(COLUMNS))


def pubmedqa_conclusions(shared: Path) -> Iterable[Pair]:
    """Conclusions of abstracts; the answer is the experts'. "maybe" is left out."""
    for study in read_studies(shared / "pubmedqa" / "dev.jsonl"):
        if study.answer != "maybe":
            yield study.id, f"{study.id}-c", study.question, study.conclusion, study.answer


def pubmedqa_abstracts(shared: Path) -> Iterable[Pair]:
    """Abstracts without their conclusion, as one passage; answers as above."""
    for study in read_studies(shared / "pubmedqa" / "dev.jsonl"):
        if study.answer != "maybe":
            whole = " ".join(study.passages)
            yield study.id, f"{study.id}-a", study.question, whole, study.answer


def healthver_evidence(shared: Path) -> Iterable[Pair]:
    """Passages that support (yes) or refute (no) a claim asked as a question, true or not."""
    verdicts = read_evidence(shared / "healthver" / "healthver_dev.csv")
    qids, docnos = names(verdicts)
    for claim, given in verdicts.items():
        if question := as_question(claim):
            for passage, verdict in given.items():
                if verdict != "Neutral":
                    answer = "yes" if verdict == "Supports" else "no"
                    yield qids[claim], docnos[passage], question, passage, answer


def trec_answers(shared: Path) -> Iterable[Pair]:
    """Answers to yes/no health topics: true ones say what is true, wrong ones the contrary.

    The set does not say which topic a wrong answer is to (``topics_of_answers``); those of which it
    is not certain are left out.
    """
    corpus = read_corpus(shared / "trec-hm-answers")
    topics = {t.qid: t for t in corpus.topics}
    for docno, qid in topics_of_answers(corpus).items():
        document, topic = corpus.documents[corpus.docid[docno]], topics[qid]
        if topic.stance:
            answer = _CONTRARY[topic.stance] if document.adversarial else topic.stance
            yield qid, docno, topic.query, document.text, answer


def topics_of_answers(corpus: Corpus) -> dict[str, str]:
    """Topic of each answer: its judgement's, or that of the nearest judged answers on both sides.

    The answers stand in the order in which they were written, topic by topic, and only true ones
    are judged. An unjudged answer between two judged ones of one topic is of that topic; where they
    differ it is left out.
    """
    judged = {d: qid for qid, labels in corpus.qrels.items() for d in labels}
    given = [judged.get(d.docno) for d in corpus.documents]
    before = list(accumulate(given, _latest))
    after = list(accumulate(reversed(given), _latest))[::-1]
    pairs = zip(corpus.documents, before, after, strict=True)
    return {d.docno: one for d, one, two in pairs if one is not None and one == two}


def _latest(known: str | None, new: str | None) -> str | None:
    return known if new is None else new


STANCE_PAIRS: Mapping[str, Callable[[Path], Iterable[Pair]]] = {
    "pubmedqa-conclusions": pubmedqa_conclusions,
    "pubmedqa-abstracts": pubmedqa_abstracts,
    "healthver-evidence": healthver_evidence,
    "trec-hm-answers": trec_answers,
}
