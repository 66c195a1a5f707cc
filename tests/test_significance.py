"""Tests of the tests: by hand, exact, degenerate, and calibrated."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from rag_reliability.evaluation.significance import (
    compare,
    holm,
    lower_is_better,
    mean_interval,
    paired_p_value,
    smallest_p,
    topic_deltas,
)


def test_exact_p_by_hand() -> None:
    # of the 8 sign patterns of (1, 2, 3) only +++ and −−− reach |sum| = 6
    assert paired_p_value([1, 2, 3]) == pytest.approx(2 / 8)
    # (1, 2, −3) sums to 0, as far in as can be
    assert paired_p_value([1, 2, -3]) == 1
    # |sum| ≥ 4 of (−1, 2, 3): ++ +, − + +, and their mirrors
    assert paired_p_value([-1, 2, 3]) == pytest.approx(4 / 8)


def test_topics_that_tie_change_nothing() -> None:
    assert paired_p_value([0.2, 0.4, 0.6, 0, 0, 0]) == pytest.approx(2 / 8)
    assert paired_p_value([0, 0, 0]) == 1
    assert paired_p_value([]) == 1


def test_ten_topics_reach_no_lower_than_smallest_p() -> None:
    assert paired_p_value(np.full(10, 0.2)) == pytest.approx(2 / 1024) == smallest_p(10)
    assert smallest_p(5) == 0.0625 and smallest_p(0) == 1
    assert smallest_p(200, n_resamples=9999) == pytest.approx(2 / 10_000)


def test_sampled_p_is_seeded_and_near_the_exact() -> None:
    d = np.random.default_rng(1).normal(0.3, 1, 12)
    exact = paired_p_value(d, n_resamples=2**12)
    sampled = paired_p_value(d, n_resamples=4000, seed=3)
    assert sampled == paired_p_value(d, n_resamples=4000, seed=3)
    assert sampled == pytest.approx(exact, abs=0.03)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([-0.4, -0.2, 0.0, 0.2, 0.4]), min_size=1, max_size=8))
def test_p_is_even_and_in_range(d: list[float]) -> None:
    p = paired_p_value(d)
    assert 0 < p <= 1
    assert p == pytest.approx(paired_p_value([-x for x in d]))
    assert p >= smallest_p(sum(x != 0 for x in d)) - 1e-12


def test_p_is_uniform_when_nothing_differs() -> None:
    rng = np.random.default_rng(0)
    p = [paired_p_value(rng.normal(size=8), n_resamples=256) for _ in range(200)]
    assert 0.01 < np.mean(np.array(p) <= 0.05) < 0.1


def test_interval() -> None:
    x = [0, 0.2, 0.4, 0.6, 0.8, 1]
    found = mean_interval(x, n_resamples=2000, seed=1)
    assert found.mean == pytest.approx(0.5) and 0.2 < found.low < 0.5 < found.high < 0.8
    assert found == mean_interval(x, n_resamples=2000, seed=1)
    for same in ([0.4], [0.4, 0.4, 0.4], [0.1 + 0.2, 0.3]):
        flat = mean_interval(same)
        assert flat.low == flat.mean == flat.high
    with pytest.raises(ValueError, match="at least one"):
        mean_interval([])
    with pytest.raises(ValueError, match="finite"):
        mean_interval([np.nan])


@settings(max_examples=15)  # statsmodels collects all garbage at every call, half a second each
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_that_of_statsmodels(p: list[float]) -> None:
    np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1], rtol=1e-12)


def test_holm_by_hand() -> None:
    # sorted .01 .02 .03 times 3 2 1, made non-decreasing: .03 .04 .04
    np.testing.assert_allclose(holm([0.03, 0.01, 0.02]), [0.04, 0.03, 0.04])
    np.testing.assert_allclose(holm([0.9, 0.8]), [1, 1])
    assert holm([]).size == 0


def _metrics() -> pd.DataFrame:
    values = {
        ("base", "precision@5"): [0.4, 0.4, 0.6],
        ("new", "precision@5"): [0.6, 0.4, 0.8],
        ("other", "precision@5"): [0.2, 0.2, 0.2],
        ("base", "adv_share@5"): [0.4, 0.2, 0.0],
        ("new", "adv_share@5"): [0.2, 0.0, 0.2],
        ("other", "adv_share@5"): [0.4, 0.2, 0.0],
    }
    rows = [(s, f"q{i}", m, v) for (s, m), vs in values.items() for i, v in enumerate(vs)]
    return pd.DataFrame(rows, columns=["system", "qid", "metric", "value"])


def test_compare_by_hand() -> None:
    metrics = _metrics()
    before = metrics.copy()
    table = compare(metrics, "base", n_resamples=500, seed=2).set_index(["system", "metric"])
    pd.testing.assert_frame_equal(metrics, before)
    new = table.loc[("new", "precision@5")]
    assert new["mean"] == pytest.approx(0.6) and new["baseline_mean"] == pytest.approx(1.4 / 3)
    assert (
        new["diff"] == pytest.approx(0.4 / 3) and new["diff_low"] <= new["diff"] <= new["diff_high"]
    )
    assert (new.wins, new.ties, new.losses, new.n_topics) == (2, 1, 0, 3)
    assert new.p == pytest.approx(2 / 4) and new.p_holm == pytest.approx(
        0.5
    )  # .25 · 2 of "other" first
    assert new.p_min == pytest.approx(2 / 4)
    assert table.loc[("other", "precision@5")].p == pytest.approx(2 / 8)
    less = table.loc[("new", "adv_share@5")]  # less is better
    assert (less.wins, less.ties, less.losses) == (2, 0, 1) and less["diff"] == pytest.approx(
        -0.2 / 3
    )
    same = table.loc[("other", "adv_share@5")]
    assert same.p == same.p_holm == same.p_min == 1 and same.ties == 3
    base = table.loc[("base", "precision@5")]
    assert base["diff"] == 0 and base.p == 1 and base["mean"] == base["baseline_mean"]


def test_arms_are_compared_within_themselves() -> None:
    both = pd.concat([_metrics().assign(arm="a"), _metrics().assign(arm="b", value=0.5)])
    table = compare(both, "base", n_resamples=200).set_index(["system", "arm", "metric"])
    assert table.loc[("new", "a", "precision@5")]["diff"] == pytest.approx(0.4 / 3)
    assert table.loc[("new", "b", "precision@5")]["diff"] == 0


def test_only_shared_topics_are_compared() -> None:
    metrics = _metrics()
    metrics = metrics[~((metrics.system == "base") & (metrics.qid == "q0"))]
    table = compare(metrics, "base", n_resamples=200).set_index(["system", "metric"])
    assert table.loc[("new", "precision@5")].n_topics == 2
    assert len(topic_deltas(metrics, "base")) == 8


def test_bad_tables_are_refused() -> None:
    metrics = _metrics()
    with pytest.raises(ValueError, match="no system 'nope'; there are base, new, other"):
        compare(metrics, "nope")
    with pytest.raises(ValueError, match="twice"):
        compare(pd.concat([metrics, metrics]), "base")
    with pytest.raises(ValueError, match="NaN"):
        compare(metrics.assign(value=np.nan), "base")
    with pytest.raises(ValueError, match="lack the columns value"):
        compare(metrics.drop(columns="value"), "base")


def test_direction_ignores_the_cutoff() -> None:
    assert lower_is_better("adv_share@10") and lower_is_better("harm")
    assert not lower_is_better("precision@5") and not lower_is_better("compat_diff")
