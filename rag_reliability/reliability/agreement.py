"""Reliability without labels: how often a source agrees with the weighted vote of the others.

What agrees is not what is true. Votes alone cannot tell a reliable majority from a majority that
tells the same lie: turn every vote round and every agreement stays. Only sources that are known to
be sound from elsewhere (``trusted``) break that tie.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logit

from rag_reliability.records import InputError

_SMOOTHING = 0.5


@dataclass(frozen=True)
class Agreement:
    """What the votes say of their sources and of the topics.

    reliability: float64 (n_sources,) in (0, 1), ½ for a source that never votes with another.
    consensus: int64 (n_topics,), sign of the weighted vote, 0 for a tie. steps: taken.
    converged: whether the last step changed nothing.
    """

    reliability: np.ndarray
    consensus: np.ndarray
    steps: int
    converged: bool


def agreement_reliability(
    votes: np.ndarray,
    *,
    trusted: np.ndarray | None = None,
    own_vote: bool = False,
    max_steps: int = 100,
) -> Agreement:
    """Reliability of each source by iterated weighted majority voting.

    Repeats: consensus = sign Σ wᵢ voteᵢ; reliability pᵢ = (agreements + ½) / (votes + 1);
    weight wᵢ = ln pᵢ / (1 - pᵢ), the best weights for independent sources (Nitzan and Paroush,
    International Economic Review 1982). Iterated weighted majority voting is due to Li and Yu
    (arXiv:1411.4086) and estimates source reliability in RA-RAG (Hwang et al., arXiv:2410.22954).

    votes: (n_topics, n_sources) in {-1, 0, +1}, 0 where a source says nothing. trusted: bool
    (n_sources,), whose votes alone make the first consensus (None: all, equally). own_vote: whether
    a source is also measured against itself; left out by default, as else a source with great
    weight confirms itself.

    Raises: InputError for votes other than -1, 0, +1, or no trusted source.
    """
    cast = _checked_votes(votes)
    weights = np.ones(cast.shape[1]) if trusted is None else np.asarray(trusted, dtype=np.float64)
    if weights.shape != cast.shape[1:]:
        raise ValueError(f"trusted {weights.shape} for {cast.shape[1]} sources")
    if not weights.any():
        raise InputError("trusted: expected at least one source to start from")
    reliability, steps, converged = np.full(cast.shape[1], np.nan), 0, False
    while steps < max_steps and not converged:
        previous, steps = reliability, steps + 1
        reliability = _agreement(cast, weights, own_vote)
        weights = logit(reliability)
        converged = bool(np.allclose(reliability, previous, rtol=0, atol=1e-12))
    consensus = np.sign(np.round(cast @ weights, 12)).astype(np.int64)
    return Agreement(reliability, consensus, steps, converged)


def distance_from_truth(estimated: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """How far estimates are from the truth: ``mean_error`` |p - truth|, and ``pairs_in_order``.

    ``pairs_in_order``: share of pairs of sources with unlike truths whose estimates stand in the
    same order (ties count ½); NaN where no truths differ. Both arrays (n_sources,).
    """
    p, t = np.asarray(estimated, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    i, j = np.triu_indices(len(t), 1)
    unlike = t[i] != t[j]
    same = np.sign(p[i] - p[j]) * np.sign(t[i] - t[j])
    ordered = float(((same[unlike] + 1) / 2).mean()) if unlike.any() else float("nan")
    return {"mean_error": float(np.abs(p - t).mean()), "pairs_in_order": ordered}


def _agreement(votes: np.ndarray, weights: np.ndarray, own_vote: bool) -> np.ndarray:
    """Smoothed share of each source's votes that go with the others' weighted vote."""
    weighted = votes * weights
    total = weighted.sum(axis=1, keepdims=True)
    # Rounded, so that sums that cancel are ties and not the last bit's opinion.
    consensus = np.sign(np.round(total - (0.0 if own_vote else weighted), 12))
    met = (votes != 0) & (consensus != 0)
    agreed = met & (votes == consensus)
    return (agreed.sum(axis=0) + _SMOOTHING) / (met.sum(axis=0) + 2 * _SMOOTHING)


def _checked_votes(votes: np.ndarray) -> np.ndarray:
    cast = np.asarray(votes, dtype=np.float64)
    if cast.ndim != 2:
        raise ValueError(f"votes have shape {cast.shape}; expected (n_topics, n_sources)")
    bad = ~np.isin(cast, (-1, 0, 1))
    if bad.any():
        t, s = np.argwhere(bad)[0].tolist()
        raise InputError(f"vote of source {s} on topic {t} is {cast[t, s]}; expected -1, 0 or +1")
    return cast
