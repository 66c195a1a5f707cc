from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_reliability.records import Corpus, Document, InputError, Topic
from rag_reliability.reliability.threats import spoof_labels

HIGH = {"peer_reviewed", "government"}


def corpus(n=40, n_adversarial=10):
    documents = tuple(
        Document(
            docno=f"d{i:02d}",
            title="t",
            text=f"text {i}",
            source_type="ai_generated" if i < n_adversarial else "blog",
            verified=i % 3 == 0,
            adversarial=i < n_adversarial,
        )
        for i in range(n)
    )
    return Corpus("c", documents, (Topic("q", "query"),), {"q": {"d01": 2}})


def spoofed(before, after):
    pairs = zip(before.documents, after.documents, strict=True)
    return {b.docno: a.source_type for b, a in pairs if a != b}


def test_rate_zero_is_the_corpus_itself():
    original = corpus()
    assert spoof_labels(original, 0, seed=1) is original
    clean = corpus(n_adversarial=0)
    assert spoof_labels(clean, 1, seed=1) is clean


def test_rate_one_spoofs_every_adversary_and_nothing_else():
    original = corpus()
    after = spoof_labels(original, 1, seed=1)
    assert set(spoofed(original, after)) == {f"d{i:02d}" for i in range(10)}
    assert set(after.source_types[:10]) <= HIGH
    assert after.documents[10:] == original.documents[10:]
    assert after.qrels == original.qrels and after.topics == original.topics
    assert after.name == original.name


def test_relabelled_documents_are_unverified_and_otherwise_the_same():
    original = corpus()
    for before, after in zip(
        original.documents[:10], spoof_labels(original, 1, seed=1).documents, strict=False
    ):
        assert not after.verified
        expected = dataclasses.replace(before, source_type=after.source_type, verified=False)
        assert after == expected


@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 50))
def test_larger_rates_spoof_a_superset_with_the_same_types(a, b, seed):
    low, high = sorted((a, b))
    original = corpus()
    few = spoofed(original, spoof_labels(original, low, seed=seed))
    many = spoofed(original, spoof_labels(original, high, seed=seed))
    assert few.items() <= many.items()
    assert len(few) == int(np.floor(low * 10 + 0.5))


def test_seeds_choose_and_the_order_of_documents_does_not():
    original = corpus()
    chosen = [set(spoofed(original, spoof_labels(original, 0.5, seed=s))) for s in range(6)]
    assert all(len(c) == 5 for c in chosen) and len({frozenset(c) for c in chosen}) > 1
    turned = dataclasses.replace(original, documents=original.documents[::-1])
    assert spoofed(turned, spoof_labels(turned, 0.5, seed=2)) == spoofed(
        original, spoof_labels(original, 0.5, seed=2)
    )


def test_target_types_are_the_only_ones_used():
    after = spoof_labels(corpus(), 1, target_types=("government",), seed=1)
    assert set(after.source_types[:10]) == {"government"}


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_bad_rates_are_refused(rate):
    with pytest.raises(InputError, match="spoof rate"):
        spoof_labels(corpus(), rate, seed=1)
    with pytest.raises(InputError, match="target_types"):
        spoof_labels(corpus(), 0.5, target_types=(), seed=1)
