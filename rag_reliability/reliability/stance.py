"""Stance-consistent reranking: keep what agrees with the verified passages, whatever its label.

Embeddings cannot tell a claim from its negation, and a label can lie. What is left is what a
passage *says*: a reading of its stance towards the topic's question, set against the stance of the
passages whose source has been checked. Nearest relative: Vera (Pradeep et al., SIGIR 2021), which
reranks by a fine-tuned model's stance against a given or predicted answer; here nothing is trained
and no answer is given, the verified passages are the reference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rag_reliability.records import InputError


@dataclass(frozen=True)
class StanceSettings:
    """How stances weigh.

    least_verified: verified passages read, below which a topic has no reference. nearest: how many
    verified passages, from the most similar on, make the reference (None: all that were read);
    farther ones are seldom about the question. tolerance: distance from the reference, in spreads
    of the topic's readings, at which a passage's weight is one half. softness: width of that step,
    in spreads. least_spread: spread of readings, in log-odds, taken as least; smaller differences
    are noise of the reader. The defaults were chosen on every other topic of two testbeds
    (``benchmarks/stance_settings.py``) and on nothing else.
    """

    least_verified: int = 2
    nearest: int | None = 5
    tolerance: float = 1.5
    softness: float = 0.05
    least_spread: float = 0.2

    def __post_init__(self) -> None:
        if self.least_verified < 1:
            raise InputError(f"least_verified = {self.least_verified}; expected at least 1")
        if self.nearest is not None and self.nearest < self.least_verified:
            raise InputError(
                f"nearest = {self.nearest}; expected at least least_verified = "
                f"{self.least_verified}, or none"
            )
        for name in ("tolerance", "softness", "least_spread"):
            if not 0 < getattr(self, name) < float("inf"):
                raise InputError(f"{name} = {getattr(self, name)}; expected a number above 0")


def stance_weights(
    stance: np.ndarray,
    trust: np.ndarray,
    settings: StanceSettings | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """How far each passage sides with the verified ones, and which topics have a reference.

    stance: float64 (n_topics, m), by falling similarity, NaN where not read. trust: float64
    (n_topics, m), weight of a passage in the reference: λ of verified ones (shared among those of
    one publisher), else 0.

    With reference r = the trust-weighted median of the stances of the nearest verified passages, σ
    the standard deviation of all of the topic's readings and u the distance from r towards the
    opposing side, the weight is 1 / (1 + exp((u / σ - tolerance) / softness)): near 1 for passages
    that agree, so that their order stays that of similarity, near 0 for those that contradict. The
    opposing side is the one on which the passages that are not verified stray farther in sum: a
    passage that says the same as the reference more strongly is no contradiction.

    Returns weights float64 (n_topics, m) in (0, 1], 1 where a passage was not read or the topic has
    no reference; and bool (n_topics,), whether it has one (``least_verified`` readings).
    """
    settings = settings or StanceSettings()
    read = np.isfinite(stance)
    trust = np.where(read, trust, 0.0)
    reference_of = nearest_trust(trust, settings.nearest)
    known = (trust > 0).sum(axis=1) >= settings.least_verified
    reference = weighted_median(np.where(read, stance, 0.0), reference_of)[:, None]
    away = np.where(read, stance - reference, 0.0)
    count = np.maximum(read.sum(axis=1), 1)
    mean = away.sum(axis=1) / count
    spread = np.sqrt((np.where(read, away - mean[:, None], 0.0) ** 2).sum(axis=1) / count)
    spread = np.maximum(spread, settings.least_spread)[:, None]
    stray = np.where(trust > 0, 0.0, away)
    above, below = np.maximum(stray, 0).sum(axis=1), np.maximum(-stray, 0).sum(axis=1)
    opposing = np.where(above >= below, 1.0, -1.0)[:, None]
    step = (opposing * away / spread - settings.tolerance) / settings.softness
    weights = 1.0 / (1.0 + np.exp(np.clip(step, -50, 50)))
    return np.where(read & known[:, None], weights, 1.0), known


def nearest_trust(trust: np.ndarray, nearest: int | None) -> np.ndarray:
    """Trust of each row's first ``nearest`` trusted passages, 0 elsewhere; (n_topics, m)."""
    if nearest is None:
        return trust
    return np.where(np.cumsum(trust > 0, axis=1) <= nearest, trust, 0.0)


def weighted_median(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Smallest value at which half of the row's weight is reached, float64 (n_rows,).

    values, weights: (n_rows, m), weights >= 0; rows without weight give their smallest value. Half
    of the weight must lie before an outlier can move it past the others.
    """
    order = np.argsort(values, axis=1, kind="stable")
    sorted_values = np.take_along_axis(values, order, axis=1)
    reached = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
    place = (reached >= reached[:, -1:] / 2).argmax(axis=1)
    return np.take_along_axis(sorted_values, place[:, None], axis=1)[:, 0]


def reference_trust(
    prior: np.ndarray, verified: np.ndarray, source: np.ndarray | None = None
) -> np.ndarray:
    """Weight of each passage in the reference, float64 (n_topics, m): λ if verified, else 0.

    source: int64 (n_topics, m), publishers, negative where unknown. Verified passages of one
    publisher share its weight, so that nobody gains by publishing the same ten times.
    """
    trust = np.where(verified, prior, 0.0)
    if source is None:
        return trust
    share = np.ones(trust.shape)
    for j in range(trust.shape[1]):  # by column: an (n, m, m) array would be 20 times the memory
        same = (source == source[:, j : j + 1]) & verified & (source >= 0)
        share[:, j] = np.maximum(same.sum(axis=1), 1)
    return trust / share
