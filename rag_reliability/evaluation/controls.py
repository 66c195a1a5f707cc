"""Checks of a scorer that need no labels, and of labels that need no scorer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from rag_reliability.evaluation.pairs import Pair
from rag_reliability.evaluation.resampling import folds


def swapped(pairs: Sequence[Pair], *, within: bool, seed: int = 0) -> list[Pair]:
    """Every claim with its own passages (label true) and with another claim's (label false).

    within: the other claim is of the same group (hard: the topic is the same), else of another
    (easy). As many passages are taken as the claim has, none of them its own or that of the same
    claim elsewhere. Claims for which there are none are left out, both rows; so are pairs labelled
    unsupported and those without passages.
    """
    rng = np.random.default_rng(seed)
    kept = [p for p in pairs if p.passages and p.label is not False]
    by_claim: dict[str, set[str]] = defaultdict(set)
    by_group: dict[str, dict[str, None]] = defaultdict(dict)
    for pair in pairs:
        by_claim[pair.claim].update(pair.passages)
        by_group[pair.group].update(dict.fromkeys(pair.passages))
    everything = list(dict.fromkeys(t for texts in by_group.values() for t in texts))
    found: list[Pair] = []
    for pair in kept:
        avoid = by_claim[pair.claim] | (set() if within else set(by_group[pair.group]))
        others = _drawn(list(by_group[pair.group]) if within else everything, avoid, pair, rng)
        if others:
            found.append(Pair(pair.id, pair.claim, pair.passages, True, pair.group))
            found.append(Pair(pair.id, pair.claim, others, False, pair.group))
    return found


def _drawn(
    texts: list[str], avoid: set[str], pair: Pair, rng: np.random.Generator
) -> tuple[str, ...]:
    """As many of ``texts`` as the pair has passages, if there are any beside those to avoid."""
    free = [t for t in texts if t not in avoid]
    if not free:
        return ()
    n = min(len(pair.passages), len(free))
    return tuple(free[i] for i in rng.choice(len(free), size=n, replace=False))


def one_sided_scores(
    vectors: ArrayLike, truths: ArrayLike, groups: Sequence[Hashable], *, penalty: float = 10.0
) -> np.ndarray:
    """What the label can be guessed to be from one side alone: the claim's or passage's vector.

    Ridge regression of ±1 labels on the vectors (n, dim), classes weighted alike, each group
    scored by a fit on the others. AUROC well above .5 shows an artefact of the set: then a scorer's
    agreement is not all about support.
    """
    x, y = np.asarray(vectors, dtype=np.float64), np.asarray(truths, dtype=bool)
    fold = folds(groups)
    found = np.zeros(len(y))
    for held in np.unique(fold):
        rest = fold != held
        weight = np.where(y[rest], 1 / max(y[rest].sum(), 1), 1 / max((~y[rest]).sum(), 1))
        weight = weight * rest.sum() / 2
        mean = np.average(x[rest], axis=0, weights=weight)
        a = (x[rest] - mean) * np.sqrt(weight)[:, None]
        b = np.where(y[rest], 1.0, -1.0) * np.sqrt(weight)
        slope = np.linalg.solve(a.T @ a + penalty * np.eye(x.shape[1]), a.T @ b)
        found[~rest] = (x[~rest] - mean) @ slope
    return found


def smallest_difference(
    scores: ArrayLike,
    truths: ArrayLike,
    n: int,
    *,
    share: float = 0.5,
    level: float = 0.05,
    power: float = 0.8,
) -> tuple[float, float]:
    """Smallest difference in the true share of supported sentences that n sentences can show.

    Two systems with n independent sentences each, a ``share`` of them supported, are compared by
    mean score. With μ₁, s₁ and μ₀, s₀ the mean and deviation of the scores of truly supported and
    unsupported pairs,

        Δ = (z_{1−level/2} + z_{power}) · √(2 v / n) / (μ₁ − μ₀),
        v = p s₁² + (1 − p) s₀² + p (1 − p) (μ₁ − μ₀)²,

    which is the usual sample size formula for two means (Cohen, 1988, ch. 2), divided by how much
    of a true difference the scorer passes on. It holds while the scorer errs alike on both
    systems' sentences; where it does not, no number of answers helps.

    Returns: Δ of the scorer and Δ of people (μ₁ = 1, μ₀ = 0, s = 0), capped at 1.
    """
    from scipy.stats import norm

    x, y = np.asarray(scores, dtype=np.float64), np.asarray(truths, dtype=bool)
    z = norm.ppf(1 - level / 2) + norm.ppf(power)
    gain = max(x[y].mean() - x[~y].mean(), 1e-9)
    between = share * (1 - share)
    v = share * x[y].var() + (1 - share) * x[~y].var() + between * gain**2
    own, people = z * np.sqrt(2 * v / n) / gain, z * np.sqrt(2 * between / n)
    return min(1.0, float(own)), min(1.0, float(people))
