"""Weights from stances: by hand, and what no reading may change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rag_reliability.records import InputError
from rag_reliability.reliability.stance import (
    StanceSettings,
    reference_trust,
    stance_weights,
    weighted_median,
)

NAN = np.nan


def test_weighted_median_by_hand():
    # weights .9, .3, .9 of 2.1: half is reached at the second smallest value
    values, weights = np.array([[5.0, 1.0, 2.0]]), np.array([[0.9, 0.3, 0.9]])
    assert weighted_median(values, weights).tolist() == [2.0]
    # one liar among three does not move it past the honest ones, whatever it says
    assert weighted_median(np.array([[1.0, 1.2, 1e6]]), np.ones((1, 3))).tolist() == [1.2]


def test_weights_by_hand():
    # readings -1, -1 (verified), -1, 1, 1: reference -1, away 0 0 0 2 2, mean .8, spread .98
    stance = np.array([[-1.0, -1.0, -1.0, 1.0, 1.0]])
    trust = np.array([[0.95, 0.9, 0.0, 0.0, 0.0]])
    weights, known = stance_weights(stance, trust, StanceSettings(tolerance=1.0, softness=0.5))
    spread = np.sqrt((3 * 0.8**2 + 2 * 1.2**2) / 5)
    agree, contradict = 1 / (1 + np.exp(-2)), 1 / (1 + np.exp((2 / spread - 1) / 0.5))
    assert known.tolist() == [True]
    assert weights[0] == pytest.approx([agree] * 3 + [contradict] * 2)


def test_more_of_the_same_is_no_contradiction():
    # verified at 0; one passage far below, three a little above: only "above" is opposed
    stance = np.array([[0.0, 0.0, -0.9, 0.5, 0.5, 0.5]])
    trust = np.array([[1.0, 1.0, 0.0, 0.0, 0.0, 0.0]])
    weights, _ = stance_weights(stance, trust, StanceSettings(tolerance=0.5))
    assert weights[0, 2] > 0.99 and (weights[0, 3:] < 0.01).all()


def test_the_nearest_verified_passages_make_the_reference():
    # five verified: the two nearest say 4, three about something else say 0
    stance = np.array([[4.0, 4.0, 4.0, -4.0, 0.0, 0.0, 0.0]])
    trust = np.array([[1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0]])
    whole, _ = stance_weights(stance, trust, StanceSettings(nearest=None, tolerance=1.0))
    near, _ = stance_weights(stance, trust, StanceSettings(nearest=2, tolerance=1.0))
    # reference 0: the farther strays are equal, so the high side is opposed, and 4 with it
    assert whole[0, 2] < 0.1 and whole[0, 3] > 0.9
    assert near[0, 2] > 0.9 and near[0, 3] < 0.1
    np.testing.assert_array_equal(
        stance_weights(stance, trust, StanceSettings(nearest=5, tolerance=1.0))[0], whole
    )


def test_without_a_reference_nothing_is_weighed():
    stance = np.array([[0.0, 5.0, -5.0], [0.0, 5.0, NAN], [NAN, NAN, NAN]])
    trust = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
    weights, known = stance_weights(stance, trust, StanceSettings(least_verified=2))
    assert known.tolist() == [False] * 3 and (weights == 1).all()


def test_differences_within_the_readers_noise_weigh_nothing():
    stance = np.array([[0.0, 0.0, 0.01, -0.02, 0.05]])
    weights, _ = stance_weights(stance, np.array([[1.0, 1.0, 0, 0, 0]]))
    assert (weights > 0.99).all()


def test_ten_copies_of_one_publisher_count_once():
    verified = np.array([[True] * 4])
    source = np.array([[7, 7, 3, -1]])
    trust = reference_trust(np.array([[0.9, 0.9, 0.9, 0.9]]), verified, source)
    assert trust[0] == pytest.approx([0.45, 0.45, 0.9, 0.9])


readings = arrays(np.float64, (2, 6), elements=st.one_of(st.floats(-8, 8), st.just(NAN)))
flags = arrays(np.bool_, (2, 6))


@given(readings, flags, st.permutations(range(6)))
def test_order_matters_only_to_who_is_nearest(stance, verified, order):
    trust, everyone = reference_trust(np.full((2, 6), 0.9), verified), StanceSettings(nearest=None)
    weights, known = stance_weights(stance, trust, everyone)
    again, known_again = stance_weights(stance[:, order], trust[:, order], everyone)
    np.testing.assert_allclose(again, weights[:, order], atol=1e-6)
    assert (known == known_again).all()


@given(readings, flags)
def test_yes_and_no_are_treated_alike(stance, verified):
    """Mirrored readings give the same weights, but where a reference lies between two values."""
    trust = reference_trust(np.full((2, 6), 0.9), verified)
    weights, known = stance_weights(stance, trust)
    assert ((weights > 0) & (weights <= 1)).all()
    odd = (trust > 0) & np.isfinite(stance)
    usable = known & (odd.sum(axis=1) % 2 == 1)
    mirrored, _ = stance_weights(-stance, trust)
    away = stance - weighted_median(np.nan_to_num(stance), np.where(odd, trust, 0))[:, None]
    stray = np.where(trust > 0, 0, np.nan_to_num(away))
    tied = np.isclose(np.maximum(stray, 0).sum(1), np.maximum(-stray, 0).sum(1))
    rows = usable & ~tied
    np.testing.assert_allclose(mirrored[rows], weights[rows], atol=1e-6)


@given(readings, flags, flags)
def test_an_unverified_label_has_no_part_in_it(stance, verified, forged):
    """Only λ of verified documents enters: a forged type changes no weight."""
    honest = reference_trust(np.full((2, 6), 0.3), verified)
    lying = reference_trust(np.where(forged & ~verified, 0.95, 0.3), verified)
    np.testing.assert_array_equal(
        stance_weights(stance, honest)[0], stance_weights(stance, lying)[0]
    )


def test_settings_are_checked():
    with pytest.raises(InputError, match="least_verified"):
        StanceSettings(least_verified=0)
    with pytest.raises(InputError, match="nearest = 1; expected at least least_verified"):
        StanceSettings(nearest=1)
    with pytest.raises(InputError, match="softness"):
        StanceSettings(softness=0)
