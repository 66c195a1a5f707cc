from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_reliability.records import InputError
from rag_reliability.reliability import smoothing
from rag_reliability.reliability.smoothing import smooth_prior


def unit(n, dim=6, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(n, dim))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def on_circle(*degrees):
    angle = np.radians(degrees)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)


def test_hand_worked_neighbours():
    # nearest other: of 0° 10°, of 10° 0°, of 50° 10°, of 170° 50°
    vectors, prior = on_circle(0, 10, 50, 170), np.array([0.9, 0.3, 0.5, 0.7])
    np.testing.assert_allclose(smooth_prior(prior, vectors, 1, 1.0), [0.3, 0.9, 0.3, 0.5])
    np.testing.assert_allclose(smooth_prior(prior, vectors, 1, 0.5), [0.6, 0.6, 0.4, 0.6])
    # two nearest: of 0° 10° and 50°
    assert smooth_prior(prior, vectors, 2, 1.0)[0] == pytest.approx((0.3 + 0.5) / 2)


def test_ties_for_the_last_place_share_it():
    vectors, prior = on_circle(0, 20, -20, 90), np.array([0.9, 0.2, 0.6, 0.8])
    assert smooth_prior(prior, vectors, 1, 1.0)[0] == pytest.approx((0.2 + 0.6) / 2)


@settings(deadline=None)
@given(st.integers(0, 1000), st.floats(0, 1), st.integers(1, 40))
def test_stays_within_the_range_and_follows_the_documents(seed, alpha, n):
    vectors = unit(20, seed=seed)
    rng = np.random.default_rng(seed)
    prior, shuffle = rng.uniform(0.05, 1, size=20), rng.permutation(20)
    smoothed = smooth_prior(prior, vectors, n, alpha)
    assert (smoothed >= prior.min()).all() and (smoothed <= prior.max()).all()
    moved = smooth_prior(prior[shuffle], vectors[shuffle], n, alpha)
    np.testing.assert_allclose(moved, smoothed[shuffle], atol=1e-12)


def test_alpha_zero_is_identity_and_nothing_is_mutated():
    vectors, prior = unit(10), np.linspace(0.1, 1, 10)
    before = prior.copy()
    same = smooth_prior(prior, vectors, 3, 0.0)
    np.testing.assert_array_equal(same, before)
    assert same is not prior
    smooth_prior(prior, vectors, 3, 0.7)
    np.testing.assert_array_equal(prior, before)


def test_equal_priors_and_single_documents_stay():
    np.testing.assert_array_equal(smooth_prior(np.full(9, 0.4), unit(9), 3, 0.5), np.full(9, 0.4))
    assert smooth_prior(np.array([0.4]), unit(1), 3, 0.5).tolist() == [0.4]
    assert smooth_prior(np.empty(0), np.empty((0, 4), np.float32), 3, 0.5).shape == (0,)


def test_all_others_as_neighbours():
    prior = np.array([0.2, 0.4, 0.9])
    np.testing.assert_allclose(smooth_prior(prior, unit(3), 99, 1.0), [0.65, 0.55, 0.3])


def test_blocks_agree_with_one_pass(monkeypatch):
    vectors, prior = unit(50), np.linspace(0.1, 1, 50)
    whole = smooth_prior(prior, vectors, 4, 0.6)
    monkeypatch.setattr(smoothing, "_BLOCK_ROWS", 7)
    np.testing.assert_allclose(smooth_prior(prior, vectors, 4, 0.6), whole, atol=1e-12)


def test_bad_input_is_refused():
    vectors, prior = unit(3), np.full(3, 0.5)
    for n, alpha in ((0, 0.5), (2, -0.1), (2, 1.1), (2, float("nan"))):
        with pytest.raises(InputError):
            smooth_prior(prior, vectors, n, alpha)
    with pytest.raises(InputError):
        smooth_prior(np.array([0.5, 0.0, 0.5]), vectors, 2, 0.5)
    with pytest.raises(ValueError, match="shape"):
        smooth_prior(prior[:2], vectors, 2, 0.5)
