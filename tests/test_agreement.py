"""Label-free reliability: near the truth where sources err apart, its mirror where most lie."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rag_reliability.records import InputError
from rag_reliability.reliability.agreement import agreement_reliability, distance_from_truth

SPREAD = np.array([0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55])


def cast(reliability, n_topics=200, silent=0.0, seed=0):
    """Votes of independent sources of known reliability, and the truth they vote on."""
    rng = np.random.default_rng(seed)
    truth = rng.choice([-1, 1], size=n_topics)
    right = rng.random((n_topics, len(reliability))) < reliability
    votes = np.where(right, truth[:, None], -truth[:, None])
    return np.where(rng.random(votes.shape) < silent, 0, votes), truth


def test_three_sources_by_hand():
    # The third is alone on both topics where it differs; the first two always agree.
    votes = np.array([[1, 1, 1], [-1, -1, 1], [1, 1, -1]])
    found = agreement_reliability(votes)
    # against the others: 3 of 3, 3 of 3, 1 of 3, each with half an agreement more in one vote more
    np.testing.assert_allclose(found.reliability, [3.5 / 4, 3.5 / 4, 1.5 / 4])
    assert found.consensus.tolist() == [1, -1, 1] and found.converged


def test_independent_sources_are_found_close_to_the_truth():
    votes, truth = cast(SPREAD)
    found = agreement_reliability(votes)
    off = distance_from_truth(found.reliability, SPREAD)
    assert found.converged and off["mean_error"] < 0.05 and off["pairs_in_order"] > 0.85
    assert (found.consensus == truth).mean() > 0.93


def test_weights_beat_counting_heads():
    weighted, plain = [], []
    for seed in range(20):
        votes, truth = cast(np.array([0.95, 0.9, 0.55, 0.55, 0.55, 0.55, 0.55]), 60, seed=seed)
        weighted.append((agreement_reliability(votes).consensus == truth).mean())
        plain.append((np.sign(votes.sum(axis=1)) == truth).mean())
    assert np.mean(weighted) > np.mean(plain) + 0.05


def test_silence_costs_certainty_only():
    votes, _ = cast(SPREAD, 400, silent=0.5)
    assert (
        distance_from_truth(agreement_reliability(votes).reliability, SPREAD)["mean_error"] < 0.06
    )


def test_a_majority_of_liars_is_believed_and_trusted_sources_undo_it():
    truth_of = np.array([0.9, 0.9, 0.85, 0.1, 0.1, 0.1, 0.15, 0.15])
    votes, truth = cast(truth_of)
    fooled = agreement_reliability(votes)
    assert (fooled.consensus == truth).mean() < 0.1
    np.testing.assert_allclose(fooled.reliability, 1 - truth_of, atol=0.12)
    known = np.array([True, False, False, False, False, False, False, False])
    rescued = agreement_reliability(votes, trusted=known)
    assert (rescued.consensus == truth).mean() > 0.9
    assert distance_from_truth(rescued.reliability, truth_of)["mean_error"] < 0.1


@settings(max_examples=60, deadline=None)
@given(
    arrays(np.int64, st.tuples(st.integers(1, 8), st.integers(1, 6)), elements=st.integers(-1, 1))
)
def test_votes_turned_round_say_the_same_of_their_sources(votes):
    found, mirrored = agreement_reliability(votes), agreement_reliability(-votes)
    np.testing.assert_array_equal(found.reliability, mirrored.reliability)
    np.testing.assert_array_equal(found.consensus, -mirrored.consensus)
    assert ((found.reliability > 0) & (found.reliability < 1)).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 500))
def test_the_order_of_sources_and_topics_does_not_matter(seed):
    votes, _ = cast(SPREAD, 30, silent=0.2, seed=seed)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(30), rng.permutation(9)
    found, moved = agreement_reliability(votes), agreement_reliability(votes[rows][:, columns])
    np.testing.assert_allclose(moved.reliability, found.reliability[columns], atol=1e-9)
    np.testing.assert_array_equal(moved.consensus, found.consensus[rows])


def test_who_never_votes_is_neither_nor():
    votes, _ = cast(SPREAD[:3], 20)
    found = agreement_reliability(np.column_stack([votes, np.zeros(20, dtype=int)]))
    assert found.reliability[3] == 0.5


def test_distance_by_hand():
    off = distance_from_truth(np.array([0.9, 0.5, 0.5]), np.array([0.8, 0.6, 0.2]))
    assert off["mean_error"] == pytest.approx((0.1 + 0.1 + 0.3) / 3)
    assert off["pairs_in_order"] == pytest.approx(2.5 / 3)
    assert np.isnan(distance_from_truth(np.ones(2), np.ones(2))["pairs_in_order"])


def test_bad_votes_are_refused():
    with pytest.raises(InputError, match=r"source 1 on topic 0 is 2\.0"):
        agreement_reliability(np.array([[1, 2]]))
    with pytest.raises(InputError, match="at least one source"):
        agreement_reliability(np.array([[1, -1]]), trusted=np.array([False, False]))
