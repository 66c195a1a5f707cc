"""From similarity to probability: P(relevant | sim) · P(reliable | type).

A cosine means something else under each encoder, so a prior ratio of 3 can be nearly nothing or
nearly everything. On the scale of probability the same ratio means the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from rag_reliability.records import InputError, Pool

RIDGE = 1.0
"""Weight of the penalty on the slope, for similarities of unit deviation."""

_LEAST_SLOPE = 1e-3


@dataclass(frozen=True)
class Calibration:
    """P(relevant | sim) = sigmoid(a + b sim), b > 0."""

    a: float
    b: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.a) and np.isfinite(self.b) and self.b > 0):
            raise InputError(f"calibration a = {self.a}, b = {self.b}; expected finite, b > 0")


def fit_calibration(sims: np.ndarray, relevant: np.ndarray, ridge: float = RIDGE) -> Calibration:
    """Logistic fit of relevance on similarity, with a ridge and Platt's targets.

    Minimises the cross-entropy of sigmoid(α + β z) + ½ · ridge · β², z = (sim - mean) / deviation,
    against (N₊ + 1) / (N₊ + 2) and 1 / (N₋ + 2) instead of 1 and 0, which keeps separable data
    finite (Platt 1999). z makes the fit the same for c · sim + d, c > 0: for any encoder's scale.
    β stays just above 0, so that the most similar of equally trusted documents still stands first
    even where similarity says nothing of relevance.

    sims, relevant: (n_pairs,), judged pairs.

    Raises: InputError for no pairs, similarities that are not finite, or a negative ridge.
    """
    x, y = np.asarray(sims, dtype=np.float64), np.asarray(relevant, dtype=bool)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"sims {x.shape} and relevant {y.shape} must be equal, 1-d")
    if not x.size or not np.isfinite(x).all() or not ridge >= 0:
        raise InputError("calibration: expected judged pairs of finite similarity, ridge >= 0")
    centre, scale = float(x.mean()), float(x.std()) or 1.0
    z = (x - centre) / scale
    target = np.where(y, (y.sum() + 1) / (y.sum() + 2), 1 / ((~y).sum() + 2))

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        line = theta[0] + theta[1] * z
        miss = expit(line) - target
        value = (np.logaddexp(0, line) - target * line).sum() + 0.5 * ridge * theta[1] ** 2
        return float(value), np.array([miss.sum(), (miss * z).sum() + ridge * theta[1]])

    bounds = [(None, None), (_LEAST_SLOPE, None)]
    found = minimize(loss, np.array([0.0, 1.0]), jac=True, bounds=bounds, method="L-BFGS-B")
    alpha, slope = (float(v) for v in found.x)
    return Calibration(alpha - slope * centre / scale, slope / scale)


def probability(sims: np.ndarray, a: np.ndarray | float, b: np.ndarray | float) -> np.ndarray:
    """P(relevant | sim) = sigmoid(a + b sim), in [0, 1]; ``a``, ``b`` broadcast over ``sims``."""
    return np.asarray(expit(a + b * np.asarray(sims, dtype=np.float64)))


def calibrated(
    sims: np.ndarray, reliable: np.ndarray, a: np.ndarray | float, b: np.ndarray | float
) -> np.ndarray:
    """sigmoid(a + b sim) · P(reliable | type), elementwise over arrays of one shape, in [0, 1].

    Relevance given the similarity and reliability given the type count as independent, which the
    source prior assumes too. Rises with sim and with reliability; reliability 1 throughout leaves
    the similarity order.
    """
    return probability(sims, a, b) * np.asarray(reliable, dtype=np.float64)


def calibrated_pool(pool: Pool, a: np.ndarray, b: np.ndarray) -> Pool:
    """The pool with each similarity as P(relevant | sim), each topic by its own a and b.

    ``rerank`` with the rule ``source_aware`` and P(reliable | type) as prior then ranks by
    ``calibrated``; the order by similarity, and with it any rank window, is unchanged.

    a, b: float64 (n_topics,), b > 0. Padding keeps -inf.
    """
    valid = pool.docids >= 0
    sims = np.where(valid, pool.sims, 0.0)
    p = probability(sims, np.asarray(a)[:, None], np.asarray(b)[:, None])
    return Pool(pool.docids, np.where(valid, p, -np.inf))
