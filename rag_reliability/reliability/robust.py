"""Ranking under threats: one table of rules, one total order.

A rule sees the candidates inside the rank window, in order of similarity, and gives each a score or
leaves it out (-inf). Where λ = 1 for all of a topic's candidates the prior expresses no doubt, so
there is nothing to verify, cap or arbitrate: the rules that read λ then give the order of
similarity exactly. This guard stands here, once. It asks for λ = 1 and not for equal λ: adversaries
who all declare the type of the honest ones would otherwise switch verification off.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from rag_reliability.records import InputError, Ranking
from rag_reliability.reliability import baselines, consistency, verification
from rag_reliability.reliability.evidence import Evidence, RobustSettings
from rag_reliability.reliability.independent_set import independent_set
from rag_reliability.reliability.rerank import tie_ranks

__all__ = [
    "NEEDS",
    "RULES",
    "Evidence",
    "RobustSettings",
    "Rule",
    "ordered",
    "rank_robust",
    "top_docids",
]

Rule = Callable[[Evidence, RobustSettings], np.ndarray]
"""Scores float64 of the evidence's shape, -inf = left out; columns come in order of similarity."""

RULES: Mapping[str, Rule] = {
    "similarity": verification.similarity,
    "source_aware": verification.source_aware,
    "verified_boost": verification.verified_boost,
    "verified_floor": verification.verified_floor,
    "verified_min": verification.verified_min,
    "uncertain_labels": verification.uncertain_labels,
    "collapse": verification.collapse,
    "verified_collapse": verification.verified_collapse,
    "stance_consistent": consistency.stance_consistent,
    "stance_verified": consistency.stance_verified,
    "source_quota": baselines.source_quota,
    "hard_filter": baselines.hard_filter,
    "metadata_linear": baselines.metadata_linear,
    "metadata_rrf": baselines.metadata_rrf,
    "independent_set": independent_set,
    "bm25": baselines.bm25,
    "bm25_dense": baselines.bm25_dense,
}

NEEDS: Mapping[str, tuple[str, ...]] = {
    "collapse": ("copies",),
    "verified_collapse": ("copies",),
    "stance_consistent": ("stance", "conflicts", "source"),
    "stance_verified": ("stance", "conflicts", "source"),
    "source_quota": ("source",),
    "independent_set": ("conflicts",),
    "bm25": ("lexical",),
    "bm25_dense": ("lexical",),
}
"""Optional fields of ``Evidence`` that a rule cannot do without; rules not named need none."""

UNGUARDED = ("bm25", "bm25_dense")  # read no λ: their base order is their own


def rank_robust(
    evidence: Evidence,
    rule: str,
    qids: Sequence[str],
    docnos: Sequence[str] | np.ndarray,
    settings: RobustSettings,
) -> Ranking:
    """The top ``settings.k`` of each topic by (-score, -sim, docno).

    docnos: str (n_docs,), of the whole corpus. After the scored documents come those outside the
    window, then those the rule left out, both by similarity; these carry the topic's lowest score
    minus 1, 2, … . Where a topic has fewer than k candidates, warns and returns that many for all.

    Raises: InputError for an unknown rule or a field that the rule needs and the evidence lacks.
    """
    if len(qids) != len(evidence.docids):
        raise ValueError(f"{len(qids)} qids for evidence on {len(evidence.docids)} topics")
    order, scores = ordered(evidence, rule, tie_ranks(docnos), settings)
    counts = evidence.valid.sum(axis=1)
    kept = min(settings.k, int(counts.min())) if len(counts) else settings.k
    if kept < settings.k:
        warnings.warn(
            f"k = {settings.k} but a topic has only {kept} candidates: "
            f"{kept} are kept for every topic",
            stacklevel=2,
        )
    docids = np.take_along_axis(evidence.docids, order[:, :kept], axis=1)
    return Ranking(tuple(qids), docids, _finite(scores)[:, :kept])


def top_docids(
    evidence: Evidence, rule: str, ties: np.ndarray, settings: RobustSettings
) -> np.ndarray:
    """Docids of the top ``settings.k``, int64 (n_topics, k), -1 where a topic has fewer.

    The order of ``rank_robust``, for sweeps. ties: ``tie_ranks(docnos)``, int64 (n_docs,).
    """
    order, _ = ordered(evidence, rule, ties, settings)
    top = np.take_along_axis(evidence.docids, order[:, : settings.k], axis=1)
    missing = settings.k - top.shape[1]
    return np.pad(top, ((0, 0), (0, max(missing, 0))), constant_values=-1)


def ordered(
    evidence: Evidence, rule: str, ties: np.ndarray, settings: RobustSettings
) -> tuple[np.ndarray, np.ndarray]:
    """The whole order: columns of the evidence from first to last, and their scores.

    int64 and float64 (n_topics, m), -inf where the rule gave no score. ties: ``tie_ranks(docnos)``.

    Raises: InputError for an unknown rule or a field that the rule needs and the evidence lacks.
    """
    if rule not in RULES:
        raise InputError(f"unknown rule {rule!r}; known: {', '.join(RULES)}")
    needs = NEEDS.get(rule, ())
    # A flood of lies can fill the window: rules that read what passages say may look past it.
    width = settings.reading if "stance" in needs else settings.window
    for name in needs:
        if getattr(evidence, name) is None:
            raise InputError(f"rule {rule!r} needs {name!r}, which the evidence lacks")
    by_sim = _by_similarity(evidence, ties)
    window = evidence.columns(by_sim[:, :width], needs)
    inside = np.where(window.valid, _guarded(evidence, rule, window, settings), -np.inf)
    scores = np.full(by_sim.shape, -np.inf)
    scores[:, : inside.shape[1]] = inside
    # 0 scored, 1 outside the window, 2 left out, 3 padding; columns already stand by similarity.
    group = np.where(np.isfinite(scores), 0, 2)
    group[:, inside.shape[1] :] = 1
    group[np.take_along_axis(evidence.docids, by_sim, axis=1) < 0] = 3
    final = np.lexsort((-scores, group), axis=-1)  # lexsort is stable
    return np.take_along_axis(by_sim, final, axis=1), np.take_along_axis(scores, final, axis=1)


def _by_similarity(evidence: Evidence, ties: np.ndarray) -> np.ndarray:
    """Columns by (-sim, docno), padding last, int64 (n_topics, m)."""
    valid = evidence.valid
    tie = ties[np.where(valid, evidence.docids, 0)] if len(ties) else np.zeros(valid.shape)
    return np.lexsort((tie, np.where(valid, -evidence.sims, 0.0), ~valid), axis=-1)


def _guarded(
    evidence: Evidence, rule: str, window: Evidence, settings: RobustSettings
) -> np.ndarray:
    """The rule's scores, or the similarity in topics where every declared λ is 1."""
    scores = RULES[rule](window, settings)
    if rule in UNGUARDED or not evidence.docids.size:
        return scores
    least = np.where(evidence.valid, evidence.prior, np.inf).min(axis=1)
    return np.where((least >= 1)[:, None], window.sims, scores)


def _finite(scores: np.ndarray) -> np.ndarray:
    """Scores with those not scored at the topic's lowest minus 1, 2, …; rows as ordered."""
    scored = np.isfinite(scores)
    lowest = np.where(scored, scores, np.inf).min(axis=1, initial=np.inf)
    lowest = np.where(np.isfinite(lowest), lowest, 0.0)[:, None]
    return np.where(scored, scores, lowest - np.cumsum(~scored, axis=1))
