"""Shared by the tests: one cache of models for all, and a corpus small enough to run whole."""

from pathlib import Path

import pytest

from rag_reliability.datasets.read import read_corpus
from rag_reliability.datasets.write import write_corpus
from rag_reliability.records import Corpus

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared" / "data"
SMALL = "qwen2.5-coder-0.5b-instruct"


@pytest.fixture(scope="session")
def health120() -> Corpus:
    return read_corpus(ROOT / "corpus" / "health120")


@pytest.fixture(scope="session")
def three_topics(health120, tmp_path_factory) -> Path:
    """Three topics of health120 with their judged documents, both true answers among them."""
    qids = ("q001", "q002", "q005")
    qrels = {qid: dict(health120.qrels[qid]) for qid in qids}
    judged = {docno for labels in qrels.values() for docno in labels}
    corpus = Corpus(
        "three",
        tuple(d for d in health120.documents if d.docno in judged),
        tuple(t for t in health120.topics if t.qid in qids),
        qrels,
    )
    # A document may assert a claim of a topic that was left out; such marks go with the topic.
    known = {c.claim_id for t in corpus.topics for c in t.claims}
    assert all(c.split(":")[0] in known for d in corpus.documents for c in d.claims)
    folder = tmp_path_factory.mktemp("three")
    write_corpus(corpus, folder)
    return folder
