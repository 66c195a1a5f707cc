"""Priors from judged documents: Beta posteriors by type and, shrunk to their type, by host.

A learned prior is only as good as the judgements it counts, and they are fitted to be used on
other topics: ``topic_folds`` and ``cross_fit`` keep what is fitted apart from what is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import betaln
from scipy.stats import beta as beta_distribution

from rag_reliability.records import InputError

JEFFREYS = 0.5
"""Both parameters of the Beta prior: Jeffreys' rule for a binomial share."""

MAX_STRENGTH = 1000.0
"""Hosts that differ no more than chance lean this many documents' worth on their type."""

_MIN_STRENGTH = 0.1

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
    """Beta(m s + r, (1 - m) s + n - r) of each host met, m its type's posterior mean.

    The strength s, in documents, is that of the type's hosts by ``prior_strength`` (empirical
    Bayes, beta-binomial; Casella, American Statistician 1985): a host with few documents leans on
    its type, one with many stands on its own. A host counts as one type; where it is judged under
    several, each is a host of its own and the name carries the type (``host|type``).

    All arrays (n_judged,). Raises: InputError as ``type_posteriors``.
    """
    types, good = _checked(source_types, reliable)
    means = type_posteriors(types, good, known_types).table
    names = _host_names(np.asarray(hosts, dtype=str), types)
    unique, first, inverse = np.unique(names, return_index=True, return_inverse=True)
    n = np.bincount(inverse, minlength=len(unique)).astype(np.float64)
    r = np.bincount(inverse, weights=good, minlength=len(unique))
    kinds = types[first]
    m = np.array([means[kind] for kind in kinds.tolist()])
    s = np.empty(len(unique))
    for kind in np.unique(kinds):
        own = kinds == kind
        s[own] = prior_strength(r[own], n[own], means[str(kind)])
    return Posteriors(tuple(unique.tolist()), m * s + r, (1 - m) * s + n - r, n)


def prior_strength(reliable: np.ndarray, judged: np.ndarray, mean: float) -> float:
    """Strength s that makes hosts' counts most probable under Beta(m s, (1 - m) s), m = ``mean``.

    Maximises the beta-binomial likelihood Σ ln B(m s + r, (1 - m) s + n - r) - ln B(m s, (1 - m) s)
    over s in [0.1, ``MAX_STRENGTH``]. Hosts that differ much give a small s. Where no host has two
    documents nothing tells their spread, and s is the largest.

    reliable, judged: r and n, (n_hosts,). mean: in (0, 1).
    """
    if not 0 < mean < 1:
        raise ValueError(f"mean = {mean}; expected 0 < mean < 1")
    r, n = np.asarray(reliable, dtype=np.float64), np.asarray(judged, dtype=np.float64)
    telling = n > 1
    if not telling.any():
        return MAX_STRENGTH

    def loss(log_s: float) -> float:
        a, b = mean * np.exp(log_s), (1 - mean) * np.exp(log_s)
        return -float((betaln(a + r, b + n - r) - betaln(a, b))[telling].sum())

    bounds = (np.log(_MIN_STRENGTH), np.log(MAX_STRENGTH))
    found = minimize_scalar(loss, bounds=bounds, method="bounded")
    # The search never tries its ends, and the likelihood often rises all the way to one.
    return float(np.exp(min((found.x, *bounds), key=loss)))


def topic_folds(n_topics: int, folds: int, seed: int) -> np.ndarray:
    """Fold of each topic, int64 (n_topics,): even, drawn by seed, as in ``feedback.cross_fitted``.

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


def _host_names(hosts: np.ndarray, types: np.ndarray) -> np.ndarray:
    """Hosts' names, with the type added for those judged under several types."""
    seen: dict[str, set[str]] = {}
    for host, kind in zip(hosts.tolist(), types.tolist(), strict=True):
        seen.setdefault(host, set()).add(kind)
    pairs = zip(hosts.tolist(), types.tolist(), strict=True)
    return np.array([f"{h}|{t}" if len(seen[h]) > 1 else h for h, t in pairs], dtype=str)
