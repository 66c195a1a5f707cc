"""Many prior tables at once are the same as one after another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_reliability.records import InputError, Pool
from rag_reliability.reliability import tables
from rag_reliability.reliability.rerank import rerank
from rag_reliability.reliability.tables import rerank_tables


def one_by_one(pool, priors, codes, docnos, k, window):
    qids = [str(i) for i in range(len(pool.docids))]
    each = [rerank(pool, row[codes], qids, docnos, k, window=window) for row in priors]
    return np.stack([r.docids for r in each]), np.stack([r.scores for r in each])


def same(pool, priors, codes, docnos, k, window=None):
    got = rerank_tables(pool, priors, codes, docnos, k, window=window)
    want = one_by_one(pool, priors, codes, docnos, k, window)
    np.testing.assert_array_equal(got[0], want[0])
    np.testing.assert_array_equal(got[1], want[1])


def padded(rng, docids, sims):
    """Some rows end earlier than others."""
    docids, sims = docids.copy(), sims.copy()
    for row in range(0, len(docids), 2):
        short = rng.integers(0, docids.shape[1] // 2)
        docids[row, docids.shape[1] - short :], sims[row, sims.shape[1] - short :] = -1, -np.inf
    return Pool(docids, sims)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 100_000),
    steps=st.sampled_from([4, 64, 1 << 40]),
    n_types=st.integers(1, 5),
    k=st.integers(1, 6),
    wider=st.one_of(st.none(), st.integers(0, 12)),
)
def test_equals_rerank_for_each_table(seed, steps, n_types, k, wider):
    """Coarse steps make ties of scores, within and across types, and at zero; padding too."""
    rng = np.random.default_rng(seed)
    docids = np.stack([rng.permutation(40)[:16] for _ in range(4)])
    pool = padded(rng, docids, rng.integers(-steps // 4, steps + 1, size=(4, 16)) / steps)
    priors = rng.integers(1, min(steps, 64) + 1, size=(7, n_types)) / min(steps, 64)
    docnos = rng.permutation([f"d{i:02d}" for i in range(40)])
    window = None if wider is None else k + wider
    same(pool, priors, rng.integers(0, n_types, size=40), docnos, k, window)


def test_products_that_round_to_one_number_stand_by_docno():
    """Within a type the less similar of two can win the tie: it must not be sorted out before."""
    sims = np.array([[np.nextafter(0.9, 1), 0.9, 0.3]])
    found = [lam for lam in np.arange(1, 100) / 128 if sims[0, 0] * lam == sims[0, 1] * lam]
    assert found  # such tables exist
    pool = Pool(np.array([[0, 1, 2]]), sims)
    same(pool, np.array([found]).T, np.zeros(3, dtype=int), ["z", "a", "b"], 1)
    docids, _ = rerank_tables(pool, np.array([found[:1]]), np.zeros(3, int), ["z", "a", "b"], 1)
    assert docids.tolist() == [[[1]]]


def test_scores_that_differ_in_their_last_bits_are_told_apart():
    sims = np.array([[0.5, np.nextafter(0.5, 1), np.nextafter(0.5, 0), 0.1]])
    pool = Pool(np.array([[0, 1, 2, 3]]), sims)
    same(pool, np.array([[1.0], [0.5]]), np.zeros(4, dtype=int), ["a", "b", "c", "d"], 3)


def test_tiny_products_and_negative_zero():
    sims = np.array([[1e-310, 3e-310, -0.0, 0.0, -0.5]])
    pool = Pool(np.array([[0, 1, 2, 3, 4]]), sims)
    priors = np.array([[1e-20], [1.0]])  # the first underflows to zero
    same(pool, priors, np.zeros(5, dtype=int), ["a", "b", "d", "c", "e"], 5)


def test_blocks_of_tables_change_nothing(monkeypatch):
    rng = np.random.default_rng(3)
    pool = Pool(np.tile(np.arange(30), (5, 1)), -np.sort(-rng.normal(size=(5, 30)), axis=1))
    priors, codes = rng.uniform(0.1, 1, size=(50, 3)), rng.integers(0, 3, size=30)
    docnos = [f"d{i:02d}" for i in range(30)]
    whole = rerank_tables(pool, priors, codes, docnos, 4)
    monkeypatch.setattr(tables, "_NUMBERS", 1)
    each = rerank_tables(pool, priors, codes, docnos, 4)
    np.testing.assert_array_equal(whole[0], each[0])
    np.testing.assert_array_equal(whole[1], each[1])
    same(pool, priors, codes, docnos, 4)


def test_hand_worked_example():
    """.8 · .5 = .4 and .6 · 1 = .6; with the priors the other way round .8 and .3."""
    pool = Pool(np.array([[0, 1]]), np.array([[0.8, 0.6]]))
    docids, scores = rerank_tables(
        pool, np.array([[0.5, 1.0], [1.0, 0.5]]), np.array([0, 1]), ["a", "b"], 2
    )
    assert docids.tolist() == [[[1, 0]], [[0, 1]]]
    np.testing.assert_allclose(scores, [[[0.6, 0.4]], [[0.8, 0.3]]])


def test_no_topics_no_tables_and_too_few_candidates():
    none = Pool(np.empty((0, 3), dtype=int), np.empty((0, 3)))
    assert rerank_tables(none, np.ones((2, 1)), np.zeros(3, int), list("abc"), 2)[0].shape == (
        *(2, 0, 2),
    )
    pool = Pool(np.array([[0, 1, -1]]), np.array([[0.5, 0.4, -np.inf]]))
    assert rerank_tables(pool, np.ones((0, 1)), np.zeros(3, int), list("abc"), 2)[0].shape == (
        *(0, 1, 2),
    )
    with pytest.warns(UserWarning, match="only 2 candidates"):
        docids, _ = rerank_tables(pool, np.ones((1, 1)), np.zeros(3, int), list("abc"), 3)
    assert docids.tolist() == [[[0, 1]]]


@pytest.mark.parametrize("bad", [0.0, -0.1, 1.1, np.nan])
def test_bad_priors_are_named(bad):
    pool = Pool(np.array([[0]]), np.array([[0.5]]))
    with pytest.raises(InputError, match="prior of type 1 in table 0"):
        rerank_tables(pool, np.array([[0.5, bad]]), np.array([0]), ["a"], 1)


def test_shapes_and_sizes_are_checked():
    pool = Pool(np.array([[0]]), np.array([[0.5]]))
    for priors, codes, docnos in (
        (np.ones(1), np.array([0]), ["a"]),
        (np.ones((1, 1)), np.array([1]), ["a"]),
        (np.ones((1, 1)), np.array([-1]), ["a"]),
        (np.ones((1, 1)), np.array([0, 0]), ["a"]),
        (np.ones((1, 1)), np.array([], dtype=int), []),
    ):
        with pytest.raises(ValueError, match=r"shape|column|names document"):
            rerank_tables(pool, priors, codes, docnos, 1)
    for k, window in ((0, None), (3, 2)):
        with pytest.raises(InputError):
            rerank_tables(pool, np.ones((1, 1)), np.array([0]), ["a"], k, window=window)
