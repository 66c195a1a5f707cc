"""How well a scorer of support agrees with people who labelled the same pairs.

Throughout: scores float (n,), truths bool (n,) (supported or not), groups of length n (what was
sampled together, such as a question). Thresholds are chosen on other groups than those they judge.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rag_reliability.evaluation.resampling import Statistic, clustered, folds
from rag_reliability.evaluation.significance import Interval
from rag_reliability.evaluation.support import BANDS, Bands, band_of

Groups = Sequence[Hashable]


def auroc_statistic(scores: ArrayLike, truths: ArrayLike) -> Statistic:
    """AUROC (Mann–Whitney, ties one half) as a function of weights; NaN without both classes."""
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(truths, dtype=bool)
    _, place = np.unique(x, return_inverse=True)

    def statistic(weights: np.ndarray) -> float:
        ones = np.bincount(place, weights * y)
        zeros = np.bincount(place, weights * ~y)
        below = np.cumsum(zeros) - zeros / 2
        total = ones.sum() * zeros.sum()
        return float(ones @ below / total) if total else float("nan")

    return statistic


def balanced_statistic(said: ArrayLike, truths: ArrayLike) -> Statistic:
    """Balanced accuracy, the mean of the two classes' shares of right verdicts, by weights."""
    right = np.asarray(said, dtype=bool) == np.asarray(truths, dtype=bool)
    y = np.asarray(truths, dtype=bool)

    def statistic(weights: np.ndarray) -> float:
        parts = [weights @ (right & mask) for mask in (y, ~y)]
        sizes = [float(weights @ mask) for mask in (y, ~y)]
        return float(np.mean(np.divide(parts, sizes))) if min(sizes) else float("nan")

    return statistic


def best_threshold(scores: ArrayLike, truths: ArrayLike) -> float:
    """The threshold t of highest balanced accuracy of ``score >= t``; the lowest of equals."""
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(truths, dtype=bool)
    values = np.unique(x)
    hits = np.array([[(x[y] >= t).mean(), (x[~y] < t).mean()] for t in values])
    return float(values[hits.mean(axis=1).argmax()])


def fitted_thresholds(
    scores: ArrayLike, truths: ArrayLike, groups: Groups, *, seed: int = 0
) -> np.ndarray:
    """Per item the best threshold on the other folds of groups, float64 (n,)."""
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(truths, dtype=bool)
    fold = folds(groups, seed=seed)
    found = np.zeros(len(x))
    for held in np.unique(fold):
        rest = fold != held
        found[~rest] = best_threshold(x[rest], y[rest])
    return found


def calibration_curve(
    scores: ArrayLike,
    truths: ArrayLike,
    groups: Groups,
    *,
    n_bins: int = 6,
    n_resamples: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Share of truly supported among pairs of like support, in bins of about equal size.

    Returns: columns x (mean support), y (share supported), low, high, n; fewer bins where many
    scores are equal.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(truths, dtype=bool)
    edges = np.unique(np.quantile(x, np.linspace(0, 1, n_bins + 1)[1:-1]))
    place = np.searchsorted(edges, x, side="right")
    rows = []
    for number in np.unique(place):
        inside = place == number
        found = clustered(
            _mean_statistic(y[inside]),
            [g for g, kept in zip(groups, inside, strict=True) if kept],
            n_resamples=n_resamples,
            seed=seed,
        )
        rows.append((x[inside].mean(), found.mean, found.low, found.high, int(inside.sum())))
    return pd.DataFrame(rows, columns=["x", "y", "low", "high", "n"])


def _mean_statistic(values: np.ndarray) -> Statistic:
    return lambda weights: float(weights @ values / weights.sum())


def calibration_error(curve: pd.DataFrame) -> float:
    """Expected calibration error: mean |support − share| over the curve's bins, by their size."""
    gaps = (curve["x"] - curve["y"]).abs()
    return float((gaps * curve["n"]).sum() / curve["n"].sum())


def risk_coverage(
    scores: ArrayLike, truths: ArrayLike, thresholds: ArrayLike, *, n_points: int = 20
) -> pd.DataFrame:
    """Balanced error among the share of pairs farthest from the threshold (El-Yaniv and Wiener,
    JMLR 2010, with the error of the two classes weighted alike).

    Returns: columns x (coverage, > 0 to 1), y (error), n; a point without both classes is left out.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(truths, dtype=bool)
    cut = np.asarray(thresholds, dtype=np.float64)
    order = np.argsort(-np.abs(x - cut), kind="stable")
    rows = []
    for coverage in np.linspace(1 / n_points, 1, n_points):
        kept = order[: max(1, round(coverage * len(x)))]
        accuracy = balanced_statistic(x[kept] >= cut[kept], y[kept])(np.ones(len(kept)))
        if np.isfinite(accuracy):
            rows.append((len(kept) / len(x), 1 - accuracy, len(kept)))
    return pd.DataFrame(rows, columns=["x", "y", "n"])


def roc_curve(scores: ArrayLike, truths: ArrayLike) -> pd.DataFrame:
    """Share of supported (y) over share of unsupported (x) pairs at or above each threshold."""
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(truths, dtype=bool)
    values = np.unique(x)[::-1]
    kept = values[np.unique(np.linspace(0, len(values) - 1, 100).round().astype(int))]
    points = [(0.0, 0.0), *(((x[~y] >= t).mean(), (x[y] >= t).mean()) for t in kept)]
    return pd.DataFrame(points, columns=["x", "y"])


def band_shares(
    scores: ArrayLike,
    truths: ArrayLike,
    groups: Groups,
    bands: Bands,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Of the pairs in each band the share that is truly supported, with intervals.

    Returns: columns measure (``true_share.<band>``), value, low, high, n.
    """
    y = np.asarray(truths, dtype=bool)
    band = np.array([band_of(float(s), bands) for s in np.asarray(scores, dtype=np.float64)])
    rows = []
    for name in BANDS:
        inside = band == name
        own = [g for g, kept in zip(groups, inside, strict=True) if kept]
        nan = Interval(float("nan"), float("nan"), float("nan"))
        statistic = _mean_statistic(y[inside])
        found = (
            clustered(statistic, own, n_resamples=n_resamples, seed=seed) if inside.any() else nan
        )
        rows.append((f"true_share.{name}", found.mean, found.low, found.high, int(inside.sum())))
    return pd.DataFrame(rows, columns=["measure", "value", "low", "high", "n"])


def agreement(
    scores: ArrayLike,
    truths: ArrayLike,
    groups: Groups,
    bands: Bands,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Everything about one scorer on one labelled set.

    Returns: measures (columns measure, value, low, high, n: auroc, balanced_accuracy,
    calibration_error, mean_support.supported and .unsupported, true_share.<band>) and curves
    (columns curve, x, y, low, high, n: roc, calibration, risk).

    Raises: ValueError where one of the two classes, or all groups but one, are missing.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(truths, dtype=bool)
    if not y.any() or y.all():
        raise ValueError("agreement needs pairs of both kinds, supported and not")
    cut = fitted_thresholds(x, y, groups, seed=seed)
    curve = calibration_curve(x, y, groups, n_resamples=n_resamples, seed=seed)
    found = {
        "auroc": clustered(auroc_statistic(x, y), groups, n_resamples=n_resamples, seed=seed),
        "balanced_accuracy": clustered(
            balanced_statistic(x >= cut, y), groups, n_resamples=n_resamples, seed=seed
        ),
    }
    rows: list[tuple[str, float, float, float, int]] = [
        (name, i.mean, i.low, i.high, len(x)) for name, i in found.items()
    ]
    error = calibration_error(curve)
    rows.append(("calibration_error", error, np.nan, np.nan, len(x)))
    for name, mask in (("supported", y), ("unsupported", ~y)):
        rows.append((f"mean_support.{name}", x[mask].mean(), np.nan, np.nan, int(mask.sum())))
    measures = pd.DataFrame(rows, columns=["measure", "value", "low", "high", "n"])
    shares = band_shares(x, y, groups, bands, n_resamples=n_resamples, seed=seed)
    curves = [
        roc_curve(x, y).assign(curve="roc"),
        curve.assign(curve="calibration"),
        risk_coverage(x, y, cut).assign(curve="risk"),
    ]
    columns = ["curve", "x", "y", "low", "high", "n"]
    table = pd.concat(curves, ignore_index=True).reindex(columns=columns)
    return pd.concat([measures, shares], ignore_index=True), table
