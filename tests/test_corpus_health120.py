"""The study's corpus is what its data card says, and leaves the room the study needs."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from difflib import SequenceMatcher
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rag_reliability.datasets.check import summarise
from rag_reliability.datasets.read import read_corpus
from rag_reliability.records import Corpus, Document

FOLDER = Path(__file__).parents[1] / "corpus" / "health120"
TYPES = (
    "peer_reviewed",
    "government",
    "established_news",
    "blog",
    "user_generated",
    "ai_generated",
)
HIGH, LOW = TYPES[:3], TYPES[3:]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return read_corpus(FOLDER, known_types=TYPES)


@pytest.fixture(scope="module")
def card() -> str:
    return (FOLDER / "README.md").read_text("utf-8")


def rows(corpus: Corpus) -> list[tuple[str, Document, int]]:
    """Judgements as (qid, document, label)."""
    return [
        (qid, corpus.documents[corpus.docid[docno]], label)
        for qid, labels in corpus.qrels.items()
        for docno, label in labels.items()
    ]


def test_shape(corpus):
    assert len(corpus.documents) == 120
    assert [t.qid for t in corpus.topics] == [f"q{i:03d}" for i in range(1, 11)]
    assert Counter(t.stance for t in corpus.topics) == {"yes": 5, "no": 5}
    assert set(corpus.source_types) == set(TYPES)
    assert {label for _, _, label in rows(corpus)} == {0, 1, 2}


def test_every_document_has_60_to_150_words_and_all_its_fields(corpus):
    for d in corpus.documents:
        assert 60 <= len(d.text.split()) <= 150, d.docno
        assert d.title and d.source and d.date, d.docno
    assert summarise(corpus).warnings == ()


def test_publishers_are_on_example_domains(corpus):
    hosts: dict[str, set[tuple[str, str]]] = {}
    for d in corpus.documents:
        host = urlsplit(d.url).hostname or ""
        assert host.endswith(".example"), d.docno
        hosts.setdefault(host, set()).add((d.source, d.source_type))
    assert all(len(owners) == 1 for owners in hosts.values())


def test_every_document_is_judged(corpus):
    assert {d.docno for _, d, _ in rows(corpus)} == set(corpus.docnos.tolist())
    assert set(corpus.qrels) == {t.qid for t in corpus.topics}


def test_one_adversarial_document_for_each_topic_asserts_a_false_claim(corpus):
    adversarial = [(qid, d, label) for qid, d, label in rows(corpus) if d.adversarial]
    assert Counter(qid for qid, _, _ in adversarial) == {t.qid: 1 for t in corpus.topics}
    assert int(corpus.adversarial.sum()) == 10
    for qid, d, label in adversarial:
        false = [c for c in d.claims if c.endswith(":false")]
        assert false and all(c.startswith(qid) for c in false), d.docno
        assert label == 0 and d.source_type in LOW, d.docno


def test_no_document_asserts_both_sides_of_a_claim(corpus):
    for d in corpus.documents:
        assert len({c.split(":")[0] for c in d.claims}) == len(d.claims), d.docno


def test_labels_follow_accuracy(corpus):
    for _, d, label in rows(corpus):
        assert label == 0 or not any(c.endswith(":false") for c in d.claims), d.docno


def test_labels_do_not_look_at_the_source(corpus):
    cells = Counter((d.source_type, label > 0) for _, d, label in rows(corpus))
    assert cells["blog", True] >= 3 and cells["user_generated", True] >= 3
    assert all(cells[high, False] >= 3 for high in HIGH)
    assert all(cells[t, True] > 0 and cells[t, False] > 0 for t in TYPES)
    wrong = [
        d
        for d in corpus.documents
        if d.source_type in LOW
        and not d.adversarial
        and any(c.endswith(":false") for c in d.claims)
    ]
    assert len(wrong) >= 5


def test_similarity_has_room_to_be_wrong(corpus):
    """By construction: each topic has judged documents of no use, among them high-tier ones."""
    for topic in corpus.topics:
        judged = [(d, label) for qid, d, label in rows(corpus) if qid == topic.qid]
        useless = [d for d, label in judged if label == 0]
        assert len(useless) >= 5 and len(judged) - len(useless) >= 5, topic.qid
        assert any(d.source_type in HIGH for d in useless), topic.qid


def test_claims_are_contrasting_pairs(corpus):
    for topic in corpus.topics:
        assert len(topic.claims) >= 2, topic.qid
        for claim in topic.claims:
            gold, false = (re.findall(r"[\w’'-]+", s.lower()) for s in (claim.gold, claim.false))
            shared = SequenceMatcher(None, gold, false, autojunk=False).ratio()
            assert 0.7 <= shared < 1, (claim.claim_id, shared)
            assert abs(len(gold) - len(false)) <= 3, claim.claim_id


def test_every_claim_side_that_documents_assert_is_a_topics_own(corpus):
    judged = {(qid, d.docno) for qid, d, _ in rows(corpus)}
    for d in corpus.documents:
        for claim in d.claims:
            assert (claim[:4], d.docno) in judged, (d.docno, claim)


# ---- the data card -------------------------------------------------------------------------


def tables(card: str) -> list[list[dict[str, str]]]:
    """Markdown tables as rows of header → cell."""
    found = []
    for block in re.findall(r"(?:^\|.*\|\n)+", card, flags=re.MULTILINE):
        header, _, *body = (
            [c.strip() for c in ln.strip("|").split("|")] for ln in block.split("\n") if ln
        )
        found.append([dict(zip(header, cells, strict=True)) for cells in body])
    return found


def table_with(card: str, *columns: str) -> list[dict[str, str]]:
    (table,) = (t for t in tables(card) if set(columns) <= set(t[0]))
    return table


def test_frozen_hashes_are_the_files(card):
    frozen = dict(re.findall(r"^([0-9a-f]{64}) +(\S+)$", card.split("## Freeze")[1], re.MULTILINE))
    assert set(frozen.values()) == {"documents.jsonl", "topics.jsonl", "qrels.txt"}
    for sha, name in frozen.items():
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == sha, name


def test_card_counts_by_topic_label_and_type(corpus, card):
    home = home_topic(corpus)
    counts = Counter(
        (qid, label, d.source_type) for qid, d, label in rows(corpus) if home[d.docno] == qid
    )
    table = table_with(card, "topic", "label", "all", *TYPES)
    assert len(table) == 30
    for row in table:
        found = [counts[row["topic"], int(row["label"]), t] for t in TYPES]
        assert [int(row[t]) for t in TYPES] == found, row
        assert int(row["all"]) == sum(found)


def test_card_counts_by_type(corpus, card):
    home = home_topic(corpus)
    for row in table_with(card, "source type", "documents", "label 2"):
        chosen = {
            "all": TYPES,
            "first three together (high tier)": HIGH,
            "last three together (low tier)": LOW,
        }.get(row["source type"], (row["source type"],))
        documents = [d for d in corpus.documents if d.source_type in chosen]
        labels = Counter(
            label
            for qid, d, label in rows(corpus)
            if d.source_type in chosen and home[d.docno] == qid
        )
        assert int(row["documents"]) == len(documents)
        assert [int(row[f"label {i}"]) for i in (2, 1, 0)] == [labels[i] for i in (2, 1, 0)]
        assert row["share relevant"] == f"{(labels[1] + labels[2]) / len(documents):.0%}"
        assert int(row["adversarial"]) == sum(d.adversarial for d in documents)
        assert int(row["verified"]) == sum(d.verified for d in documents)


def test_card_counts_by_topic(corpus, card):
    home = home_topic(corpus)
    stances = {t.qid: t.stance for t in corpus.topics}
    for row in table_with(card, "topic", "true answer"):
        qid = row["topic"]
        mine = [(d, label) for q, d, label in rows(corpus) if q == qid == home[d.docno]]
        assert row["true answer"] == stances[qid]
        for column, tier in (("high", HIGH), ("low", LOW)):
            labels = [label for d, label in mine if d.source_type in tier]
            relevant = sum(label > 0 for label in labels)
            assert row[f"relevant among {column} tier"] == f"{relevant} of {len(labels)}", qid
        (adversarial,) = (d.source_type for d, _ in mine if d.adversarial)
        assert row["type of the adversarial document"] == adversarial


def test_card_says_how_many_judgements(corpus, card):
    assert f"{len(rows(corpus))} relevance judgements" in card


def home_topic(corpus: Corpus) -> dict[str, str]:
    """The topic that each document was written for: of those it is judged for, the last one."""
    return {d.docno: qid for qid, d, _ in rows(corpus)}
