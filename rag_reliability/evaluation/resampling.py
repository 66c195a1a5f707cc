"""Intervals and folds that keep together what belongs together: whole groups, such as questions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from rag_reliability.evaluation.significance import Interval

Statistic = Callable[[np.ndarray], float]
"""``weights (n,) -> value``: a statistic of fixed data under weights; NaN where it has none."""


def codes(groups: Sequence[Hashable]) -> np.ndarray:
    """Number of each item's group, int64 (n,), groups counted as first met."""
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(g, len(known)) for g in groups], dtype=np.int64)


def folds(groups: Sequence[Hashable], n_folds: int = 5, seed: int = 0) -> np.ndarray:
    """Fold of each item, int64 (n,) in [0, n_folds); a group is never parted.

    Raises: ValueError for fewer groups than two.
    """
    code = codes(groups)
    n_groups = int(code.max(initial=-1)) + 1
    if n_groups < 2:
        raise ValueError("cross-fitting needs at least two groups")
    places = np.random.default_rng(seed).permutation(n_groups)
    return places[code] % min(n_folds, n_groups)


def clustered(
    statistic: Statistic,
    groups: Sequence[Hashable],
    *,
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """A statistic and its percentile interval, whole groups drawn again with replacement.

    The cluster bootstrap (Field and Welsh, JRSS B 2007). Draws in which the statistic has no value
    are left out.
    """
    code = codes(groups)
    n_groups = int(code.max(initial=-1)) + 1
    rng = np.random.default_rng(seed)
    drawn = np.array(
        [
            statistic(rng.multinomial(n_groups, np.full(n_groups, 1 / n_groups))[code])
            for _ in range(n_resamples)
        ]
    )
    value = statistic(np.ones(len(code)))
    if not np.isfinite(drawn).any():
        return Interval(value, value, value)
    low, high = np.nanquantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Interval(value, float(low), float(high))
