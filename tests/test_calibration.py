"""Similarity as probability: the same for every encoder's scale, and never against its order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_reliability.records import InputError, Pool
from rag_reliability.reliability.calibration import (
    Calibration,
    calibrated,
    calibrated_pool,
    fit_calibration,
    probability,
)
from rag_reliability.reliability.rerank import rerank

UNIT = st.floats(-1, 1, allow_subnormal=False)


def drawn(seed=0, n=4000, a=-3.0, b=8.0):
    rng = np.random.default_rng(seed)
    sims = rng.uniform(0, 1, n)
    return sims, rng.random(n) < 1 / (1 + np.exp(-(a + b * sims)))


def test_one_value_by_hand():
    # a + b sim = 0 gives a half; ln 3 gives three quarters
    assert calibrated(np.array([0.5]), np.array([0.8]), -1.0, 2.0) == pytest.approx(0.4)
    assert probability(np.array([np.log(3)]), 0.0, 1.0) == pytest.approx(0.75)


def test_a_known_curve_is_found_again():
    found = fit_calibration(*drawn())
    assert found.a == pytest.approx(-3.0, abs=0.3)
    assert found.b == pytest.approx(8.0, abs=0.6)


def test_fits_as_scikit_learn_does():
    linear = pytest.importorskip("sklearn.linear_model")
    sims, relevant = drawn(n=3000)
    z = (sims - sims.mean()) / sims.std()
    # C is the inverse of the ridge; Platt's targets differ from 0 and 1 by less than 1/1000 here
    model = linear.LogisticRegression(C=1.0, tol=1e-10).fit(z[:, None], relevant)
    found = fit_calibration(sims, relevant)
    theirs = model.predict_proba(z[:, None])[:, 1]
    np.testing.assert_allclose(probability(sims, found.a, found.b), theirs, atol=2e-3)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 50), st.floats(0.05, 20), st.floats(-5, 5))
def test_the_scale_of_the_encoder_does_not_matter(seed, stretch, shift):
    sims, relevant = drawn(seed, n=80)
    own, other = fit_calibration(sims, relevant), fit_calibration(stretch * sims + shift, relevant)
    np.testing.assert_allclose(
        probability(sims, own.a, own.b),
        probability(stretch * sims + shift, other.a, other.b),
        atol=1e-4,
    )


def test_separable_and_one_sided_judgements_stay_finite():
    sims = np.linspace(0, 1, 20)
    for relevant in (sims > 0.5, np.ones(20, bool), np.zeros(20, bool)):
        found = fit_calibration(sims, relevant, ridge=0.1)
        p = probability(sims, found.a, found.b)
        assert np.isfinite([found.a, found.b]).all() and ((p > 0) & (p < 1)).all()


def test_similarity_that_points_the_wrong_way_is_not_turned_round():
    sims, relevant = drawn()
    found = fit_calibration(sims, ~relevant)
    assert 0 < found.b < 0.01
    assert probability(sims, found.a, found.b).mean() == pytest.approx((~relevant).mean(), abs=0.01)


def test_the_same_similarity_everywhere_gives_the_base_rate():
    found = fit_calibration(np.full(100, 0.4), np.arange(100) < 30)
    assert probability(np.array([0.4]), found.a, found.b) == pytest.approx(0.3, abs=0.02)


@given(UNIT, UNIT, st.floats(0.01, 1), st.floats(0.01, 1), st.floats(-5, 5), st.floats(0.001, 20))
def test_rises_with_similarity_and_with_reliability(sim, other, lam, mu, a, b):
    low, high = sorted((sim, other))
    assert calibrated(low, lam, a, b) <= calibrated(high, lam, a, b)
    least, most = sorted((lam, mu))
    assert calibrated(sim, least, a, b) <= calibrated(sim, most, a, b)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 1000), st.floats(-3, 3), st.floats(0.1, 10))
def test_equal_reliability_leaves_the_similarity_order(seed, a, b):
    rng = np.random.default_rng(seed)
    docids = np.stack([rng.permutation(20) for _ in range(3)])
    pool = Pool(docids, rng.uniform(-0.5, 1, (3, 20)))
    qids, docnos = ["p", "q", "r"], [f"d{i:02d}" for i in range(20)]
    curve = calibrated_pool(pool, np.full(3, a), np.full(3, b))
    for level in (1.0, 0.3):
        got = rerank(curve, np.full(20, level), qids, docnos, 8)
        base = rerank(pool, np.ones(20), qids, docnos, 8, rule="similarity")
        np.testing.assert_array_equal(got.docids, base.docids)


def test_ranking_the_calibrated_pool_is_ranking_by_the_score():
    rng = np.random.default_rng(2)
    pool = Pool(np.array([[0, 1, 2, -1]]), np.array([[0.9, 0.5, 0.4, -np.inf]]))
    a, b, reliable = np.array([-2.0]), np.array([4.0]), rng.uniform(0.1, 1, 3)
    got = rerank(calibrated_pool(pool, a, b), reliable, ["q"], ["x", "y", "z"], 3)
    score = calibrated(pool.sims[0, :3], reliable, -2.0, 4.0)
    np.testing.assert_array_equal(got.docids[0], np.argsort(-score))
    np.testing.assert_allclose(got.scores[0], np.sort(score)[::-1])
    assert calibrated_pool(pool, a, b).sims[0, 3] == -np.inf


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="b > 0"):
        Calibration(0.0, 0.0)
    for sims, relevant in (([], []), ([np.inf], [True]), ([np.nan], [True])):
        with pytest.raises(InputError, match="finite"):
            fit_calibration(np.array(sims), np.array(relevant, dtype=bool))
