"""Testbeds hold what their data card says; what the sets do not say is drawn, once per seed."""

from __future__ import annotations

import dataclasses
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_reliability.datasets.draws import (
    HIGH_TYPES,
    LOW_TYPES,
    Draw,
    flipped_copies,
    some,
    with_drawn_sources,
    with_verified_share,
)
from rag_reliability.datasets.healthver import as_question, consistent, healthver_corpus
from rag_reliability.datasets.pairs import stance_pairs, topics_of_answers
from rag_reliability.datasets.raw import majority, read_evidence, read_studies
from rag_reliability.datasets.read import read_corpus
from rag_reliability.datasets.testbeds import TESTBEDS, build_testbed
from rag_reliability.datasets.write import write_beir
from rag_reliability.records import Corpus, Document, InputError

SHARED = Path(__file__).parents[1].parent / "shared" / "data"
needs_data = pytest.mark.skipif(
    not SHARED.is_dir(), reason=f"{SHARED} is missing: public data is not part of this repository"
)


pytestmark = pytest.mark.filterwarnings("ignore:.*judgements repeat a pair")


def denied(text: str) -> str | None:
    """A stand-in for a rule that turns a text into its contrary."""
    return f"It is not so that {text}" if "." in text else None


@cache
def built(name: str) -> Corpus:
    return build_testbed(name, SHARED, flip=denied)


# ---- claims as questions -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "question"),
    [
        ("Vitamin C cures COVID-19.", "Is it true that vitamin C cures COVID-19?"),
        ("  wet  weather can kill it ", "Is it true that wet weather can kill it?"),
        ("COVID-19 spreads", "Is it true that COVID-19 spreads?"),
        ("ACE inhibitors help", "Is it true that ACE inhibitors help?"),
        ("VITAMIN D LEVELS MATTER", "Is it true that vitamin d levels matter?"),
        ("5G networks spread it.", "Is it true that 5G networks spread it?"),
        ("a U.S. Food agency says so", "Is it true that a U.S. Food agency says so?"),
        ("Can vitamin C protect you?", None),
        ("Yes, kids can get it", None),
        ("It is new. It spreads.", None),
        (" . ", None),
    ],
)  # fmt: skip
def test_claims_become_questions_or_nothing(claim, question):
    assert as_question(claim) == question


# ---- HealthVer by hand ---------------------------------------------------------------------

S, R, N = "Supports", "Refutes", "Neutral"


def test_the_truth_is_what_most_verdicts_say():
    assert majority({"a": S, "b": S, "c": R, "d": N}, 3) == "yes"
    assert majority({"a": R, "b": R, "c": R}, 3) == "no"
    assert majority({"a": S, "b": S, "c": N}, 3) is None
    assert majority({"a": S, "b": S, "c": R, "d": R}, 3) is None


def test_healthver_by_hand():
    verdicts = {
        "tea helps": {"a": R, "b": R, "c": S, "n": N},
        "Is tea good?": {"a": R, "b": R, "q": R},
        "tea is rarely judged": {"a": S, "z": S},
    }
    corpus = healthver_corpus(verdicts)
    assert [(t.qid, t.query, t.stance) for t in corpus.topics] == [
        ("hv001", "Is it true that tea helps?", "no")
    ]
    names = {d.text: d.docno for d in corpus.documents}
    assert list(names) == ["a", "b", "c", "n", "q", "z"]
    assert corpus.qrels == {"hv001": {names["a"]: 1, names["b"]: 1, names["c"]: 0, names["n"]: 0}}
    assert [d.text for d in corpus.documents if d.adversarial] == ["c"]


def test_no_passage_is_both_right_and_wrong():
    verdicts = {
        "one": {"a": S, "b": S, "c": R},
        "two": {"c": S, "d": S, "e": S},  # c is wrong on one, right on two and three
        "three": {"c": S, "f": S, "g": S},
    }
    truths = {"one": "yes", "two": "yes", "three": "yes"}
    assert consistent(truths, verdicts) == {"two": "yes", "three": "yes"}
    assert consistent({"one": "yes"}, verdicts) == {"one": "yes"}


# ---- draws ---------------------------------------------------------------------------------


def plain(n: int, adversarial: bool = False) -> list[Document]:
    return [Document(f"d{i}", "", f"t{i}", "unknown", adversarial=adversarial) for i in range(n)]


def test_draws_have_their_shares():
    true = with_drawn_sources(plain(4000), Draw(seed=1, low_share=0.3, verifiable=0.6))
    high = [d for d in true if d.source_type in HIGH_TYPES]
    assert abs(len(high) / 4000 - 0.7) < 0.03
    assert abs(np.mean([d.verified for d in high]) - 0.6) < 0.03
    assert not any(d.verified for d in true if d.source_type in LOW_TYPES)
    wrong = Counter(d.source_type for d in with_drawn_sources(plain(4000, True), Draw(seed=1)))
    assert set(wrong) == set(LOW_TYPES) and abs(wrong["ai_generated"] / 4000 - 0.5) < 0.03


def test_publishers_do_not_give_the_type_away():
    drawn = with_drawn_sources(plain(500), Draw(seed=2))
    assert all(d.source.startswith("site") and d.source.endswith(".example") for d in drawn)
    assert all(d.url == f"https://{d.source}/{d.docno}" for d in drawn)
    types = {d.source: d.source_type for d in drawn}
    assert all(types[d.source] == d.source_type for d in drawn), "one type per publisher"


@given(st.permutations(plain(6)), st.integers(0, 5))
def test_draws_look_neither_at_order_nor_text(documents, seed):
    draw = Draw(seed=seed)
    expected = {d.docno: d for d in with_drawn_sources(plain(6), draw)}
    for d in with_drawn_sources([dataclasses.replace(d, text="other") for d in documents], draw):
        assert dataclasses.replace(d, text=expected[d.docno].text) == expected[d.docno]


@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 5))
def test_shares_are_nested(one, two, seed):
    low, high = sorted((one, two))
    marked = [dataclasses.replace(d, verified=True) for d in plain(9)]
    few, many = (
        {d.docno for d in with_verified_share(marked, share, seed) if d.verified}
        for share in (low, high)
    )
    assert few <= many
    assert some((d.docno for d in marked), low, seed) <= some((d.docno for d in marked), high, seed)
    assert not any(d.verified for d in with_verified_share(plain(9), 1.0, seed))


def test_flipped_copies_claim_nothing_of_the_originals():
    original = Document("a", "T", "So.", "government", "nih.gov", "https://nih.gov", "2020", True)
    (copy,) = flipped_copies([original, Document("b", "", "no end", "blog")], denied)
    assert copy == Document(
        "a-flipped", "T", "It is not so that So.", "ai_generated", adversarial=True
    )
    assert flipped_copies([original], lambda text: text) == ()


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_shares_outside_are_refused(share):
    with pytest.raises(InputError, match="verifiable = "):
        Draw(verifiable=share)
    with pytest.raises(InputError, match="low_share = "):
        Draw(low_share=share)


# ---- raw files -----------------------------------------------------------------------------


def test_evidence_by_hand(tmp_path):
    (tmp_path / "e.csv").write_text(
        "id,evidence,claim,label\n"
        '1,"a  passage, quoted",tea helps ,Supports\n'
        "2,a passage, tea helps,Refutes\n"
        "3,a passage,tea helps,Supports\n"
        "4,other,tea helps,Neutral\n"
        "5,other,tea helps,Refutes\n"
    )
    expected = {"tea helps": {"a passage, quoted": "Supports", "other": "Refutes"}}
    assert read_evidence(tmp_path / "e.csv") == expected


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("1,e,c,perhaps", "e.csv:2: field 'label'"),
        ("1,e", "e.csv:2: field 'claim'"),
        ("1,,c,Neutral", "e.csv:2: field 'evidence'"),
    ],
)
def test_bad_evidence(tmp_path, row, expected):
    (tmp_path / "e.csv").write_text(f"id,evidence,claim,label\n{row}\n")
    with pytest.raises(InputError) as caught:
        read_evidence(tmp_path / "e.csv")
    assert expected in str(caught.value) and "\n" not in str(caught.value)


def test_bad_studies(tmp_path):
    (tmp_path / "s.jsonl").write_text('{"id": "1", "question": "?", "passages": ["a", 3]}\n')
    with pytest.raises(InputError, match=r"s.jsonl:1: field 'passages.1'.*got 3"):
        read_studies(tmp_path / "s.jsonl")


# ---- the testbeds --------------------------------------------------------------------------


@needs_data
@pytest.mark.parametrize(
    ("name", "documents", "topics", "adversarial"),
    [
        ("trec-hm-answers", 7900, 28, 904),
        ("trec-hm-answers-alone", 1900, 28, 904),
        ("healthver", 474, 81, 33),
    ],
)
def test_sizes_are_those_of_the_data_card(name, documents, topics, adversarial):
    corpus = built(name)
    found = (len(corpus.documents), len(corpus.topics), int(corpus.adversarial.sum()))
    assert found == (documents, topics, adversarial)


@needs_data
@pytest.mark.parametrize("name", TESTBEDS)
def test_every_testbed_keeps_its_promises(name, tmp_path):
    corpus = built(name)
    relevant = {d for labels in corpus.qrels.values() for d, label in labels.items() if label}
    by_docno = {d.docno: d for d in corpus.documents}
    assert corpus.name == name
    assert not any(by_docno[d].adversarial for d in relevant)
    assert any(by_docno[d].source_type in LOW_TYPES for d in relevant), "true low-tier documents"
    for d in corpus.documents:
        assert d.source_type in (
            LOW_TYPES if d.adversarial or not d.source else LOW_TYPES + HIGH_TYPES
        )
        assert not d.verified or d.source_type in HIGH_TYPES
        assert d.source and d.url
    high = [d.verified for d in corpus.documents if d.source_type in HIGH_TYPES]
    assert abs(np.mean(high) - 0.8) < 0.05
    assert relevant and corpus.adversarial.any()
    if len(corpus.documents) < 5000:  # larger ones hold nothing else
        write_beir(corpus, tmp_path / name)
        assert read_corpus(tmp_path / name) == corpus


@needs_data
def test_a_seed_settles_a_testbed():
    one, same = (build_testbed("healthver", SHARED, seed=7) for _ in range(2))
    other = build_testbed("healthver", SHARED, seed=8)
    assert one == same
    assert one.source_types.tolist() != other.source_types.tolist()
    assert one.topics == other.topics and one.qrels == other.qrels
    assert not any(d.verified for d in build_testbed("healthver", SHARED, verifiable=0).documents)


def test_what_cannot_be_built_is_refused(tmp_path):
    with pytest.raises(InputError, match="unknown testbed 'x'; known: trec-hm-answers"):
        build_testbed("x", tmp_path)
    with pytest.raises(InputError, match="expected a folder"):
        build_testbed("trec-hm-answers", tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        build_testbed("healthver", tmp_path)
    with pytest.raises(InputError, match="verifiable = 2"):
        build_testbed("healthver", tmp_path, verifiable=2)


@needs_data
def test_flipped_copies_need_a_flip():
    with pytest.raises(InputError, match="needs a function"):
        build_testbed("liveqa-flipped", SHARED)


# ---- pairs to test readers of stance -------------------------------------------------------


def test_an_answers_topic_is_that_of_its_neighbours():
    documents = tuple(Document(f"d{i}", "", "x", "blog") for i in range(7))
    qrels = {"q1": {"d1": 1, "d3": 1}, "q2": {"d5": 1}}
    found = topics_of_answers(Corpus("c", documents, (), qrels))
    assert found == {"d1": "q1", "d2": "q1", "d3": "q1", "d5": "q2"}


@needs_data
@pytest.mark.parametrize(
    ("name", "n", "yes"),
    [
        ("pubmedqa-conclusions", 450, 287),
        ("pubmedqa-abstracts", 450, 287),
        ("healthver-evidence", 716, 392),
        ("trec-hm-answers", 1643, 644),
    ],
)
def test_pairs_have_a_known_stance(name, n, yes):
    pairs = stance_pairs(name, SHARED)
    assert list(pairs.columns) == ["qid", "docno", "question", "passage", "answer"]
    assert len(pairs) == n and set(pairs["answer"]) == {"yes", "no"}
    assert (pairs["answer"] == "yes").sum() == yes
    assert not pairs.duplicated(["qid", "docno"]).any()


@needs_data
def test_pairs_and_testbeds_agree():
    corpus, pairs = built("healthver"), stance_pairs("healthver-evidence", SHARED)
    truth = {t.qid: t.stance for t in corpus.topics}
    for qid, docno, _, _, answer in pairs.itertuples(index=False):
        if qid in truth:
            assert corpus.qrels[qid][docno] == (answer == truth[qid])


def test_unknown_pairs_are_refused(tmp_path):
    with pytest.raises(InputError, match="unknown stance pairs 'x'; known: pubmedqa-conclusions"):
        stance_pairs("x", tmp_path)
