from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_reliability.records import InputError
from rag_reliability.reliability.contradictions import contradict, statements
from rag_reliability.reliability.copies import conflicts, copy_groups
from rag_reliability.reliability.rewording import contradict as twisted
from rag_reliability.reliability.rewording import reword
from tests.conftest import SHARED

LONG = (
    "Aspirin thins the blood and lowers the risk of a second heart attack in adults. "
    "Ask a doctor before you take it every day, since bleeding in the stomach is possible."
)
OTHER = "Zinc lozenges shorten a common cold by about one day when they are started early enough."


def differ(a, b):
    (one,), (other,) = statements(a), statements(b)
    assert contradict(one, other) == contradict(other, one)
    return contradict(one, other)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Zinc shortens the common cold.", "Zinc does not shorten the common cold."),
        ("Zinc can shorten the common cold.", "In short, zinc can't shorten the common cold."),
        ("Neither zinc nor garlic cures colds.", "Both zinc and garlic cure colds."),
        ("Smoking increases the risk of stroke.", "Smoking decreases the risk of stroke."),
        ("This dose is safe for children.", "This dose is unsafe for children."),
        (
            "About 20% of treated adults recover fully within weeks.",
            "About 80% of treated adults recover fully within weeks.",
        ),
        (
            "Take 5mg tablets every morning with water.",
            "Take 500 mg tablets every morning with water.",
        ),
        ("Yes, vitamin C cures colds.", "No, vitamin C does not cure colds."),
    ],
)
def test_contradictions(a, b):
    assert differ(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        # said of another thing
        (
            "About 5% of colon cancers are inherited early.",
            "About 9% of rectal cancers are inherited early.",
        ),
        (
            "Stage 2 tumours spread to nearby lymph nodes.",
            "Stage 3 tumours spread to nearby lymph nodes.",
        ),
        (
            "In 2010 about 300 adults fell ill there suddenly.",
            "In 2014 about 500 adults fell ill there suddenly.",
        ),
        # the same in other words
        ("Zinc does not shorten colds.", "No, zinc does not shorten colds."),
        (
            "Some 1,000 adults were treated for asthma twice.",
            "Some 1000 adults were treated for asthma twice.",
        ),
        ("Not only zinc shortens common colds.", "Zinc shortens common colds."),
        ("Zinc helps with or without vitamin C.", "Zinc helps with vitamin C."),
        # two changes cancel out
        ("Zinc increases the risk of colds.", "Zinc does not decrease the risk of colds."),
        # too little is said
        ("Four types of treatment are used.", "Five types of treatment are used."),
        # order: who does what to whom
        ("Doctors ask nurses about patients.", "Nurses do not ask doctors about patients."),
    ],
)
def test_no_contradictions(a, b):
    assert not differ(a, b)


def test_questions_and_fragments_are_no_statements():
    assert statements("Does zinc not shorten the common cold? Yes.") == ()


def test_groups_by_hand():
    padded = f"{OTHER} {LONG}"
    changed = LONG.replace("every day", "daily")
    texts = [OTHER, changed, LONG, "Short.", "short", padded, f"{OTHER} {OTHER.upper()}"]
    groups = copy_groups(texts, np.array([[5, 4, 3, 2, 1], [0, 1, -1, -1, -1], [6, 0, 3, -1, 1]]))
    assert groups.tolist() == [[1, 3, 3, 1, 1], [0, 1, -1, -1, -1], [0, 0, 3, -1, 1]]


def test_a_long_page_does_not_join_what_it_quotes():
    texts = [LONG, OTHER, f"{LONG} {OTHER} " + " ".join(f"word{i}" for i in range(300))]
    assert copy_groups(texts, np.array([[0, 1, 2]])).tolist() == [[0, 1, 2]]


def test_conflicts_by_hand():
    lie = LONG.replace("lowers the risk", "raises the risk")
    texts = [LONG, lie, OTHER, LONG]
    found = conflicts(texts, np.array([[0, 1, 2, 3], [1, -1, 0, 2]]))
    pairs = {tuple(where) for where in np.argwhere(found).tolist()}
    assert pairs == {(0, 0, 1), (0, 1, 0), (0, 1, 3), (0, 3, 1), (1, 0, 2), (1, 2, 0)}


WORDS = st.sampled_from(
    ["zinc", "cold", "risk", "not", "raises", "lowers", "dose", "5", "20", "adults", "safe.", "no"]
)
TEXTS = st.lists(st.lists(WORDS, max_size=14).map(" ".join), min_size=1, max_size=6)


@given(TEXTS, st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_symmetric_and_the_order_of_candidates_does_not_matter(texts, seed):
    docids, n = np.arange(len(texts))[None], len(texts)
    found, groups = conflicts(texts, docids), copy_groups(texts, docids)
    assert (found == found.transpose(0, 2, 1)).all() and not found[0].diagonal().any()
    order = np.random.default_rng(seed).permutation(n)
    np.testing.assert_array_equal(
        conflicts(texts, docids[:, order])[0], found[0][np.ix_(order, order)]
    )
    np.testing.assert_array_equal(copy_groups(texts, docids[:, order])[0], groups[0][order])


def test_no_candidates_and_bad_settings():
    nothing = np.full((2, 3), -1)
    assert copy_groups([], nothing).tolist() == nothing.tolist()
    assert not conflicts([], nothing).any()
    with pytest.raises(InputError, match="threshold = 0"):
        copy_groups([LONG], np.array([[0]]), threshold=0)


@pytest.mark.skipif(not (SHARED / "liveqa-medquad").exists(), reason="no ../shared/data")
def test_on_real_pages():
    with (SHARED / "liveqa-medquad" / "corpus.jsonl").open(encoding="utf-8") as lines:
        pages = [json.loads(line)["text"] for line in lines]
    rng = np.random.default_rng(11)
    texts = [t for t in pages if 300 < len(t) < 2000][:600:6]
    lies = [(t, new) for t in texts if (new := twisted(t, rng)) is not None]
    copies = [(t, reword(t, rng)) for t in texts]
    pair = np.array([[0, 1]])
    found = [bool(conflicts(two, pair)[0, 0, 1]) for two in lies]
    assert np.mean(found) >= 0.95
    assert not any(conflicts(two, pair).any() for two in copies)
    assert all((copy_groups(two, pair) == 0).all() for two in copies + lies)
    honest = conflicts(texts, np.arange(100).reshape(2, 50))
    assert honest.sum() / 2 <= 2  # of 2,450 pairs
