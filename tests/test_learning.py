"""Learned priors: counted by hand, fitted on other topics only, and as far off as they say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_reliability.records import InputError, Pool
from rag_reliability.reliability.feedback import FeedbackSettings, Oracle, cross_fitted
from rag_reliability.reliability.learning import (
    MEDIAN_STRENGTH,
    STRENGTHS,
    cross_fit,
    host_posteriors,
    strength_weights,
    topic_folds,
    type_posteriors,
)

TYPES = ("peer", "blog", "ai")


def test_posterior_by_hand():
    found = type_posteriors(["peer", "peer", "peer", "blog"], [1, 1, 0, 0], TYPES)
    assert found.names == TYPES
    assert found.table == pytest.approx({"peer": 2.5 / 4, "blog": 0.5 / 2, "ai": 0.5})
    assert found.n.tolist() == [3, 1, 0]


def test_interval_against_the_published_jeffreys_interval():
    # Brown, Cai and DasGupta 2001 tabulate the interval: n = 10, x = 3 gives [.093, .606]
    low, high = type_posteriors(["blog"] * 10, [1] * 3 + [0] * 7, ["blog"]).interval()
    assert low[0] == pytest.approx(0.093, abs=5e-4)
    assert high[0] == pytest.approx(0.606, abs=5e-4)


def test_intervals_hold_the_share_as_often_as_they_say():
    rng, held = np.random.default_rng(3), []
    for share in rng.uniform(0.05, 0.95, size=400):
        reliable = rng.random(40) < share
        low, high = type_posteriors(["t"] * 40, reliable, ["t"]).interval()
        held.append(low[0] <= share <= high[0])
    assert 0.92 <= np.mean(held) <= 0.98


@given(st.lists(st.tuples(st.sampled_from(TYPES), st.floats(0, 1)), max_size=30))
def test_posteriors_are_priors_and_lie_in_their_interval(judged):
    found = type_posteriors([t for t, _ in judged], [r for _, r in judged], TYPES)
    low, high = found.interval()
    assert ((found.mean > 0) & (found.mean < 1)).all()
    assert ((low <= found.mean) & (found.mean <= high)).all()
    assert found.n.sum() == len(judged)


def test_more_judgements_narrow_the_interval():
    widths = []
    for n in (4, 40, 400):
        low, high = type_posteriors(["t"] * n, [1, 0] * (n // 2), ["t"]).interval()
        widths.append(float(high[0] - low[0]))
    assert widths[0] > 2 * widths[1] > 4 * widths[2]


def test_bad_judgements_are_refused():
    with pytest.raises(InputError, match=r"judgement 1 is 1\.5"):
        type_posteriors(["peer", "blog"], [1, 1.5], TYPES)
    with pytest.raises(InputError, match="nan"):
        type_posteriors(["peer"], [float("nan")], TYPES)
    with pytest.raises(InputError, match="'forum'"):
        type_posteriors(["forum"], [1], TYPES)


# ---- hosts ---------------------------------------------------------------------------------


def test_weights_by_hand():
    # One host, both of two documents reliable, m = 1/2: the likelihood of s is
    # B(s/2 + 2, s/2) / B(s/2, s/2) = (s/2 + 1) / (2 (s + 1)), on a grid even in ln s.
    weights = strength_weights(np.array([2.0]), np.array([2.0]), 0.5)
    s = STRENGTHS
    expected = (s / 2 + 1) / (2 * (s + 1)) * s * MEDIAN_STRENGTH / (MEDIAN_STRENGTH + s) ** 2
    np.testing.assert_allclose(weights, expected / expected.sum())


def strength(r, n, mean):
    """Geometric mean of the strength under its weights."""
    return float(np.exp(strength_weights(r, n, mean) @ np.log(STRENGTHS)))


def test_like_hosts_lean_more_than_unlike_ones():
    n = np.full(8, 20.0)
    flat = strength(np.array([1.0, 0, 1]), np.ones(3), 0.5)
    assert 2 < flat < 8
    assert strength(np.full(8, 10.0), n, 0.5) > 3 * flat
    assert strength(np.array([20.0, 0] * 4), n, 0.5) < 1


def test_a_spread_between_hosts_is_found_again():
    rng, true = np.random.default_rng(5), 6.0
    r = rng.binomial(12, rng.beta(0.7 * true, 0.3 * true, size=400)).astype(float)
    assert strength(r, np.full(400, 12.0), 0.7) == pytest.approx(true, rel=0.25)


def test_host_intervals_hold_the_truth_as_often_as_they_say():
    rng, held = np.random.default_rng(1), []
    for _ in range(25):
        share = rng.beta(4, 2, size=30)
        n = rng.integers(1, 12, size=30)
        hosts = np.repeat([f"h{i:02d}" for i in range(30)], n)
        good = rng.random(len(hosts)) < np.repeat(share, n)
        low, high = host_posteriors(hosts, ["t"] * len(hosts), good, ["t"]).interval()
        held.extend((low <= share) & (share <= high))
    assert 0.9 <= np.mean(held) <= 0.99


def test_a_host_with_few_documents_leans_on_its_type():
    hosts = ["a"] * 20 + ["b"] * 20 + ["c"]
    reliable = [1] * 18 + [0] * 2 + [1] * 4 + [0] * 16 + [0]
    found = host_posteriors(hosts, ["blog"] * 41, reliable, TYPES).table
    mean = type_posteriors(["blog"] * 41, reliable, TYPES).table["blog"]
    assert 0.2 < found["b"] < mean < found["a"] < 0.9
    # one bad document moves the newcomer towards 0, but not as far as it would alone
    assert 0.25 < found["c"] < mean


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(TYPES), st.booleans()), min_size=1)
)
def test_hosts_stand_between_their_own_share_and_their_type(judged):
    hosts, types, good = (np.array(column) for column in zip(*judged, strict=True))
    found = host_posteriors(hosts, types, good, TYPES)
    means = type_posteriors(types, good, TYPES).table
    for name, value in found.table.items():
        host, _, kind = name.partition("|")
        own = (hosts == host) & ((types == kind) if kind else True)
        share, mean = float(good[own].mean()), means[str(types[own][0])]
        assert min(share, mean) - 1e-9 <= value <= max(share, mean) + 1e-9


def test_one_host_under_two_types_is_two_hosts():
    found = host_posteriors(["a", "a", "b"], ["peer", "blog", "blog"], [1, 0, 0], TYPES)
    assert found.names == ("a|blog", "a|peer", "b")


# ---- folds ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "folds", "seed"), [(10, 5, 7), (11, 2, 3), (3, 3, 0)])
def test_folds_are_those_of_the_feedback(n, folds, seed):
    qids = [f"q{i}" for i in range(n)]
    oracle = Oracle.from_qrels(qids, ["d"], ["peer"], {})
    pool = Pool(np.zeros((n, 1)), np.ones((n, 1)))
    settings_ = FeedbackSettings(k=1, epochs=1, seed=seed)
    fitted = cross_fitted(pool, {"peer": 0.9}, oracle, settings_, folds)
    np.testing.assert_array_equal(topic_folds(n, folds, seed), fitted.fold)


@given(st.integers(2, 12), st.integers(0, 100), st.data())
def test_no_fit_sees_its_own_fold(n, seed, data):
    fold = topic_folds(n, data.draw(st.integers(2, n)), seed)
    topic_of = np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=1)))
    seen = cross_fit(fold, topic_of, lambda pairs: set(topic_of[pairs].tolist()))
    assert len(seen) == fold.max() + 1
    for topic in range(n):
        assert topic not in seen[fold[topic]]
        assert seen[fold[topic]] == {t for t in topic_of.tolist() if fold[t] != fold[topic]}


def test_bad_folds_are_refused():
    for folds in (1, 6):
        with pytest.raises(InputError, match="expected 2 to 5"):
            topic_folds(5, folds, 0)
