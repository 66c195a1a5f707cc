"""Priors from judged documents: Beta posteriors by type and, shrunk to their type, by host.

A learned prior is only as good as the judgements it counts, and they are fitted to be used on
other topics: ``topic_folds`` and ``cross_fit`` keep what is fitted apart from what is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy.special import betaln

from rag_reliability.records import InputError

JEFFREYS = 0.5
"""Both parameters of the Beta prior: Jeffreys' rule for a binomial share."""

STRENGTHS = np.geomspace(0.5, 1000.0, 61)
"""How many documents a type may be worth to one of its hosts."""

MEDIAN_STRENGTH = 3.0
"""Beforehand as likely more as less: simulated hosts' 95 % intervals then hold .92 to .99."""

T = TypeVar("T")


@dataclass(frozen=True)
class Posteriors:
    """Beta(a, b) of "a document of this name is reliable", one for each of ``names``.

    a, b: float64 (n_names,), positive. n: float64 (n_names,), judged documents behind each; may
    be fractional where one document's judgements were averaged.
    """

    names: tuple[str, ...]
    a: np.ndarray
    b: np.ndarray
    n: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Posterior means a / (a + b), float64 (n_names,), strictly within (0, 1)."""
        return self.a / (self.a + self.b)

    @property
    def table(self) -> dict[str, float]:
        """Posterior mean by name: a table of priors λ as ``prior_vector`` takes it."""
        return dict(zip(self.names, self.mean.tolist(), strict=True))

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the central credible interval, two float64 (n_names,)."""
        tail = (1 - level) / 2
        # scipy.stats takes longer to import than a question takes to answer
        from scipy.stats import beta as beta_distribution

        both = (beta_distribution.ppf(q, self.a, self.b) for q in (tail, 1 - tail))
        low, high = (np.asarray(end, dtype=np.float64) for end in both)
        return low, high


def type_posteriors(
    source_types: Sequence[str] | np.ndarray,
    reliable: Sequence[float] | np.ndarray,
    known_types: Sequence[str],
) -> Posteriors:
    """Beta(½ + r, ½ + n - r) of each of ``known_types``, r of its n judged documents reliable.

    Jeffreys' prior (Brown, Cai and DasGupta, Statistical Science 2001, on its intervals). A type
    without judgements keeps the prior itself: mean ½, interval nearly all of (0, 1).

    source_types: (n_judged,). reliable: (n_judged,), 0 or 1, or a share between them.

    Raises: InputError for a share outside [0, 1] or a type that ``known_types`` lacks.
    """
    types, good = _checked(source_types, reliable)
    unknown = sorted(set(types.tolist()) - set(known_types))
    if unknown:
        raise InputError(f"judged source type {unknown[0]!r}; expected {', '.join(known_types)}")
    n = np.array([float((types == kind).sum()) for kind in known_types])
    r = np.array([float(good[types == kind].sum()) for kind in known_types])
    return Posteriors(tuple(known_types), JEFFREYS + r, JEFFREYS + n - r, n)


def host_posteriors(
    hosts: Sequence[str] | np.ndarray,
    source_types: Sequence[str] | np.ndarray,
    reliable: Sequence[float] | np.ndarray,
    known_types: Sequence[str],
) -> Posteriors:
    """Posterior of each host met, leaning on its type: Beta(m s + r, (1 - m) s + n - r) over s.

    m: its type's posterior mean. s: how many documents the type is worth, weighted by
    ``strength_weights`` (empirical Bayes, beta-binomial; Casella, American Statistician 1985). The
    mixture over s, with the variance of m itself, is given as the Beta of the same mean and
    variance. A host with few documents leans on its type, one with many stands on its own, and its
    interval is as wide as the spread between hosts is unsure.

    A host judged under several types is one host in each, named ``host|type``. Arrays (n_judged,).

    Raises: InputError as ``type_posteriors``.
    """
    types, good = _checked(source_types, reliable)
    means = type_posteriors(types, good, known_types).table
    names = _host_names(np.asarray(hosts, dtype=str), types)
    unique, first, inverse = np.unique(names, return_index=True, return_inverse=True)
    n = np.bincount(inverse, minlength=len(unique)).astype(np.float64)
    r = np.bincount(inverse, weights=good, minlength=len(unique))
    kinds, a, b = types[first], np.empty(len(unique)), np.empty(len(unique))
    for kind in np.unique(kinds):
        own = kinds == kind
        a[own], b[own] = _leaning(r[own], n[own], means[str(kind)])
    return Posteriors(tuple(unique.tolist()), a, b, n)


def strength_weights(reliable: np.ndarray, judged: np.ndarray, mean: float) -> np.ndarray:
    """Probability of each of ``STRENGTHS`` given a type's hosts, float64, sum 1.

    Proportional to the beta-binomial likelihood Π B(m s + r, (1 - m) s + n - r) / B(m s, (1 - m) s)
    times the uniform shrinkage prior s₀ / (s₀ + s)² (Daniels, Canadian Journal of Statistics 1999),
    m = ``mean``, s₀ = ``MEDIAN_STRENGTH``. Hosts that differ much favour a small s. Hosts of one
    document say nothing of their spread, and leave the prior.

    reliable, judged: r and n, (n_hosts,). mean: in (0, 1).
    """
    if not 0 < mean < 1:
        raise ValueError(f"mean = {mean}; expected 0 < mean < 1")
    r, n = np.asarray(reliable, dtype=np.float64), np.asarray(judged, dtype=np.float64)
    telling = n > 1
    a, b = mean * STRENGTHS[:, None], (1 - mean) * STRENGTHS[:, None]
    likelihood = (betaln(a + r, b + n - r) - betaln(a, b))[:, telling].sum(axis=1)
    # The grid is even in ln s, where the prior's density is s times that in s.
    logged = likelihood + np.log(STRENGTHS) - 2 * np.log(MEDIAN_STRENGTH + STRENGTHS)
    weights = np.exp(logged - logged.max())
    return np.asarray(weights / weights.sum())


def topic_folds(n_topics: int, folds: int, seed: int) -> np.ndarray:
    """Fold of each topic, int64 (n_topics,): even, drawn by seed, blind to labels.

    Raises: InputError for folds < 2 or more folds than topics.
    """
    if not 2 <= folds <= n_topics:
        raise InputError(f"folds = {folds}; expected 2 to {n_topics}, the number of topics")
    fold = np.empty(n_topics, dtype=np.int64)
    fold[np.random.default_rng(seed).permutation(n_topics)] = np.arange(n_topics) % folds
    return fold


def cross_fit(
    fold: np.ndarray, topic_of: np.ndarray, fit: Callable[[np.ndarray], T]
) -> tuple[T, ...]:
    """``fit`` once for each fold, on the judged pairs of all other folds' topics.

    fold: int64 (n_topics,). topic_of: int64 (n_pairs,), topic row of each judged pair. fit: is
    given the indices of the pairs it may look at, int64. Result ``[fold[t]]`` is the one for
    topic ``t``, which no judgement of ``t`` has touched.
    """
    pairs = fold[np.asarray(topic_of, dtype=np.int64)]
    return tuple(fit(np.flatnonzero(pairs != held_out)) for held_out in range(int(fold.max()) + 1))


def _checked(
    source_types: Sequence[str] | np.ndarray, reliable: Sequence[float] | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    types, good = np.asarray(source_types, dtype=str), np.asarray(reliable, dtype=np.float64)
    if types.shape != good.shape or types.ndim != 1:
        raise ValueError(f"source types {types.shape} and reliable {good.shape} must be equal, 1-d")
    bad = ~((good >= 0) & (good <= 1))
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(f"judgement {at} is {good[at]}; expected a share, 0 to 1")
    return types, good


def _leaning(r: np.ndarray, n: np.ndarray, mean: float) -> tuple[np.ndarray, np.ndarray]:
    """Both parameters of the hosts of one type whose posterior mean is ``mean``."""
    s, weights = STRENGTHS[:, None], strength_weights(r, n, mean)
    total = s + n
    each = (mean * s + r) / total
    centre = weights @ each
    # Documents of one host are alike, 1 / (s + 1) their correlation, so m is less sure than by n.
    alike = (n * (1 + (n - 1) / (s + 1))).sum(axis=1, keepdims=True)
    of_mean = mean * (1 - mean) * alike / (n.sum() + 2 * JEFFREYS) ** 2
    parts = each * (1 - each) / (total + 1) + (each - centre) ** 2 + (s / total) ** 2 * of_mean
    # Never wider than without any judgement.
    size = np.maximum(centre * (1 - centre) / (weights @ parts) - 1, 2 * JEFFREYS)
    return centre * size, (1 - centre) * size


def _host_names(hosts: np.ndarray, types: np.ndarray) -> np.ndarray:
    """Hosts' names, with the type added for those judged under several types."""
    seen: dict[str, set[str]] = {}
    for host, kind in zip(hosts.tolist(), types.tolist(), strict=True):
        seen.setdefault(host, set()).add(kind)
    pairs = zip(hosts.tolist(), types.tolist(), strict=True)
    return np.array([f"{h}|{t}" if len(seen[h]) > 1 else h for h, t in pairs], dtype=str)
