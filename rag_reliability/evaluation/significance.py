"""How sure a difference between systems is, over topics. A leaf: imports nothing else of ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

LOWER_IS_BETTER = {
    "adv_share": True,
    "adv_hit": True,
    "low_tier_share": True,
    "suppressed_true": True,
    "suppressed_true_count": True,
    "compat_harm": True,
    "adversarial_uptake": True,
    "harm": True,
    "abstained": True,
    "stance_error": True,
}
"""Metrics, by name before any ``@k``, of which less is better; of all others more is better."""

_TIE = 1e-12  # differences below this come from the order of additions


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and the ends of its confidence interval."""

    mean: float
    low: float
    high: float


def lower_is_better(metric: str) -> bool:
    """Whether less of ``metric`` (with or without ``@k``) is better."""
    return LOWER_IS_BETTER.get(metric.split("@")[0], False)


def paired_p_value(differences: ArrayLike, *, n_resamples: int = 10_000, seed: int = 0) -> float:
    """Two-sided p of the paired randomisation test of a mean difference of 0 (Fisher's sign flips).

    p = share of the sign assignments whose |mean difference| is at least the observed one (twice
    the smaller tail). Topics without a difference change nothing under sign flips and are left out.
    All 2^m assignments of the m others are tried when 2^m ≤ ``n_resamples``; else a seeded sample
    of ``n_resamples``, the observed one counted in (Smucker, Allan and Carterette, CIKM 2007).

    Args:
        differences: per topic, finite, (n_topics,).

    Returns: p in (0, 1]; 1 where no topic differs. Never below ``smallest_p``.

    Raises: ValueError for differences that are not finite.
    """
    values = _finite(differences)
    values = values[np.abs(values) > _TIE]
    if values.size < 2:  # one topic: both signs reach the observed difference
        return 1.0
    result = stats.permutation_test(
        (values,),
        lambda x, axis: np.mean(x, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=n_resamples,
        batch=1000,
        rng=np.random.default_rng(seed),
    )
    return float(min(1.0, result.pvalue))


def smallest_p(n_differing: int, *, n_resamples: int = 10_000) -> float:
    """Smallest p that the test can give: 2 / 2^m, or 2 / (resamples + 1) where those are fewer.

    With ten topics, all of which differ, it is 2 / 1024 ≈ .002; with five, .0625: no result is then
    significant at .05, however large the difference.
    """
    exact = n_differing < 60 and 2**n_differing <= n_resamples
    return min(1.0, 2.0 / (2.0**n_differing if exact else n_resamples + 1))


def mean_interval(
    values: ArrayLike, *, level: float = 0.95, n_resamples: int = 10_000, seed: int = 0
) -> Interval:
    """Mean over topics and its percentile bootstrap interval (Efron and Tibshirani, 1993, ch. 13).

    The percentile interval, for BCa has no value where resamples are all alike, as shares of few
    topics often are. It is somewhat too narrow with ten topics. Equal values give that value
    thrice.

    Args:
        values: per topic, finite, (n_topics,), at least one.

    Raises: ValueError for no values or values that are not finite.
    """
    x = _finite(values)
    if x.size == 0:
        raise ValueError("an interval needs at least one value")
    mean = float(x.mean())
    if np.ptp(x) <= _TIE:
        return Interval(mean, mean, mean)
    found = stats.bootstrap(
        (x,),
        np.mean,
        method="percentile",
        confidence_level=level,
        n_resamples=n_resamples,
        batch=1000,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(mean, float(found.low), float(found.high))


def holm(p_values: ArrayLike) -> np.ndarray:
    """P-values adjusted for their number, in the order given (Holm, 1979).

    The i-th smallest of m becomes max over j ≤ i of min(1, (m − j + 1) p_j). Ours, checked against
    statsmodels', which collects all of Python's garbage at every call (0.6 s each in a notebook).
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    raised = p[order] * np.arange(p.size, 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(raised)) if p.size else raised
    return adjusted


def topic_deltas(metrics: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Per topic each system's difference from the baseline, and who wins.

    Args:
        metrics: columns system, qid, metric, value, and arm where there are arms (a system is then
            compared with the baseline under the same arm).
        baseline: a system in ``metrics``.

    Returns: the columns of ``metrics``, baseline_value, delta = value − baseline_value, and outcome
    (win, tie or loss; a win is a difference to the better side of the metric). Only topics that
    both have a value for.

    Raises: ValueError for an unknown baseline, a missing column, a doubled row or a NaN.
    """
    keys = _check(metrics, baseline)
    on = [*keys, "qid", "metric"]
    base = metrics.loc[metrics.system == baseline, [*on, "value"]]
    rest = metrics.loc[metrics.system != baseline, ["system", *on, "value"]]
    merged = rest.merge(base.rename(columns={"value": "baseline_value"}), on=on, how="inner")
    merged["delta"] = merged.value - merged.baseline_value
    sign = np.where(merged.metric.map(lower_is_better).astype(bool), -1.0, 1.0)
    better = merged.delta.to_numpy() * sign
    merged["outcome"] = np.select([better > _TIE, better < -_TIE], ["win", "loss"], "tie")
    return merged


def compare(
    metrics: pd.DataFrame,
    baseline: str,
    *,
    n_resamples: int = 10_000,
    seed: int = 0,
    family: Sequence[str] = ("metric",),
) -> pd.DataFrame:
    """Every system against the baseline, metric by metric, with intervals and corrected p-values.

    Args:
        metrics: as ``topic_deltas`` takes them.
        family: columns whose equal values form one family of Holm's correction. By default each
            metric (under each arm) is one question, asked of every system.

    Returns: one row for each system and metric, the baseline's own row included (difference 0, p
    1): system, metric, mean, low, high, baseline_mean, diff, diff_low, diff_high (value −
    baseline), p, p_holm, p_min (the smallest p these topics could give), wins, ties, losses,
    n_topics; arm where ``metrics`` has it. Means are over the topics that both systems have a value
    for.

    Raises: ValueError as ``topic_deltas``.
    """
    keys = _check(metrics, baseline)
    own = metrics[metrics.system == baseline].assign(
        baseline_value=lambda t: t.value, delta=0.0, outcome="tie"
    )
    pairs = pd.concat([own, topic_deltas(metrics, baseline)], ignore_index=True)
    by = ["system", *keys, "metric"]
    rows = [
        dict(zip(by, name, strict=True)) | _row(group, n_resamples, seed)
        for name, group in pairs.groupby(by, sort=False)
    ]
    table = pd.DataFrame(rows)
    table["p_holm"] = 1.0
    tested = table[table.system != baseline]
    for _, group in tested.groupby([*keys, *(f for f in family if f not in keys)], sort=False):
        table.loc[group.index, "p_holm"] = holm(group.p)
    return table[[*by, *_RESULTS]]


_RESULTS = [
    *("mean", "low", "high", "baseline_mean", "diff", "diff_low", "diff_high"),
    *("p", "p_holm", "p_min", "wins", "ties", "losses", "n_topics"),
]


def _row(group: pd.DataFrame, n_resamples: int, seed: int) -> dict[str, float]:
    delta = group.delta.to_numpy()
    own = mean_interval(group.value, n_resamples=n_resamples, seed=seed)
    diff = mean_interval(delta, n_resamples=n_resamples, seed=seed)
    outcomes = group.outcome.value_counts()
    return {
        "mean": own.mean,
        "low": own.low,
        "high": own.high,
        "baseline_mean": float(group.baseline_value.mean()),
        "diff": diff.mean,
        "diff_low": diff.low,
        "diff_high": diff.high,
        "p": paired_p_value(delta, n_resamples=n_resamples, seed=seed),
        "p_min": smallest_p(int((np.abs(delta) > _TIE).sum()), n_resamples=n_resamples),
        "wins": int(outcomes.get("win", 0)),
        "ties": int(outcomes.get("tie", 0)),
        "losses": int(outcomes.get("loss", 0)),
        "n_topics": len(group),
    }


def _check(metrics: pd.DataFrame, baseline: str) -> list[str]:
    """The extra columns a comparison stays within (arm, where there is one)."""
    missing = {"system", "qid", "metric", "value"} - set(metrics.columns)
    if missing:
        raise ValueError(f"metrics lack the columns {', '.join(sorted(missing))}")
    keys = ["arm"] if "arm" in metrics.columns else []
    if baseline not in set(metrics.system):
        raise ValueError(
            f"no system {baseline!r}; there are {', '.join(sorted(set(metrics.system)))}"
        )
    if metrics.value.isna().any():
        raise ValueError("metrics hold NaN")
    if metrics.duplicated(["system", *keys, "qid", "metric"]).any():
        raise ValueError("metrics hold a system, topic and metric twice")
    return keys


def _finite(values: ArrayLike) -> np.ndarray:
    x = np.asarray(values, dtype=np.float64)
    if not np.isfinite(x).all():
        raise ValueError("values must be finite")
    return x
