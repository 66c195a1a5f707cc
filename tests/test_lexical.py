from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest

from rag_reliability.records import InputError
from rag_reliability.retrieval.lexical import LexicalIndex

TEXTS = ["Vitamin C and colds", "zinc shortens colds, colds only", "", "Garlic: garlic garlic"]


def by_hand(tf, n_w, length, n=4, mean=10 / 4, k1=1.5, b=0.75):
    idf = math.log(1 + (n - n_w + 0.5) / (n_w + 0.5))
    return idf * tf / (tf + k1 * (1 - b + b * length / mean))


@pytest.fixture(scope="module")
def index():
    # Without stop words and words of one letter: vitamin colds | zinc shortens colds colds only |
    # (nothing) | garlic garlic garlic
    return LexicalIndex.build(TEXTS)


def test_scores_by_hand(index):
    got = index.scores(["Do colds need ZINC?"], np.array([[0, 1, 2, 3, -1]]))
    first = by_hand(1, 2, 2)
    second = by_hand(2, 2, 5) + by_hand(1, 1, 5)
    np.testing.assert_allclose(got, [[first, second, 0, 0, 0]])


def test_search_finds_what_shares_a_word(index):
    pool = index.search(["colds zinc", "garlic", "of the", "never seen"], 3)
    assert pool.docids.tolist() == [[1, 0, -1], [3, -1, -1], [-1, -1, -1], [-1, -1, -1]]
    assert np.isneginf(pool.sims[2:]).all() and pool.sims[0, 0] > pool.sims[0, 1] > 0


def test_scores_and_search_agree_and_ties_go_by_docid():
    index = LexicalIndex.build(["aspirin dose", "aspirin dose", "dose", "other words"])
    pool = index.search(["aspirin dose"], 4)
    assert pool.docids.tolist() == [[0, 1, 2, -1]]
    again = index.scores(["aspirin dose"], pool.docids)
    np.testing.assert_array_equal(again, np.where(pool.docids < 0, 0.0, pool.sims))


def test_stemming_is_off_unless_given():
    texts = ["vaccines work", "other"]
    assert LexicalIndex.build(texts).search(["vaccine"], 1).docids.tolist() == [[-1]]
    stemmed = LexicalIndex.build(texts, stemmer=lambda words: [w.rstrip("s") for w in words])
    assert stemmed.search(["vaccine"], 1).docids.tolist() == [[0]]


def test_k1_zero_counts_words_once_and_b_zero_ignores_length():
    index = LexicalIndex.build(["dose dose dose", "dose", "else"], k1=0.0)
    first, second = index.search(["dose"], 2).sims[0]
    assert first == second
    index = LexicalIndex.build(["dose and many other long words here", "dose", "else"], b=0.0)
    first, second = index.search(["dose"], 2).sims[0]
    assert first == second


def test_bad_input(index):
    with pytest.raises(InputError, match="none of 2 texts holds a word"):
        LexicalIndex.build(["", "a"])
    with pytest.raises(InputError, match="0 <= b <= 1"):
        LexicalIndex.build(TEXTS, b=2)
    with pytest.raises(InputError, match="k = 0"):
        index.search(["colds"], 0)
    with pytest.raises(ValueError, match="1 queries"):
        index.scores(["colds"], np.zeros((2, 1), dtype=np.int64))


def test_the_same_in_every_process():
    code = (
        "from rag_reliability.retrieval.lexical import LexicalIndex as L;"
        "t = ['a%d b%d c%d d' % (i, i % 7, i % 3) * 2 for i in range(200)];"
        "print(L.build(t).search(['a3 b3 c0 c1 b5'], 50).sims.tobytes().hex())"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        for seed in ("1", "2")
    ]
    assert len({run.stdout for run in found}) == 1
