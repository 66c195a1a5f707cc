"""Other people's rules, to compare with: filters, quotas, metadata rankers, lexical search.

Rules as in ``verification.py``: candidates come in order of similarity, -inf leaves one out.
"""

from __future__ import annotations

import numpy as np

from rag_reliability.reliability.evidence import Evidence, RobustSettings

_FIRST = 61  # 60 of Cormack et al. (2009), for ranks from 1, plus 1: ranks from 0


def hard_filter(evidence: Evidence, settings: RobustSettings) -> np.ndarray:
    """The similarity of documents with λ >= low; the others in the window are left out."""
    return np.where(evidence.prior < settings.low, -np.inf, evidence.sims)


def source_quota(evidence: Evidence, settings: RobustSettings) -> np.ndarray:
    """Similarity, with at most ``quota`` documents of one publisher and of low tiers (λ < low).

    Greedy from the most similar. Documents over quota keep their order behind all within it, so
    they fill the top k only where nothing else is left in the window.
    """
    source, valid = evidence.source, evidence.valid
    assert source is not None  # rank_robust has checked NEEDS
    low = evidence.prior < settings.low
    within = np.zeros(source.shape, dtype=bool)
    for j in range(source.shape[1]):
        here, before = source[:, j : j + 1], slice(0, j)
        same = (within[:, before] & (source[:, before] == here)).sum(axis=1)
        lows = (within[:, before] & low[:, before]).sum(axis=1)
        free = (source[:, j] < 0) | (same < settings.quota)
        within[:, j] = free & (~low[:, j] | (lows < settings.quota))
    real = np.where(valid, evidence.sims, 0.0)
    spread = real.max(axis=1, keepdims=True) - real.min(axis=1, keepdims=True)
    return np.where(within, evidence.sims, evidence.sims - spread - 1.0)


def metadata_linear(evidence: Evidence, settings: RobustSettings) -> np.ndarray:
    """(1 - w) · sim + w · (n - rank) / n, rank from 0 by (-λ, similarity), n candidates.

    Haystack's ``MetaFieldRanker`` in mode ``linear_score``, meta value λ; as there, similarities
    outside [0, 1] count as 0 and equal λ are ranked by similarity.
    """
    n = np.maximum(evidence.valid.sum(axis=1, keepdims=True), 1)
    sims = np.where((evidence.sims >= 0) & (evidence.sims <= 1), evidence.sims, 0.0)
    w = settings.meta_weight
    return (1 - w) * sims + w * (n - _places(evidence.prior, evidence.valid)) / n


def metadata_rrf(evidence: Evidence, settings: RobustSettings) -> np.ndarray:
    """(1 - w) / (61 + rank by similarity) + w / (61 + rank by (-λ, similarity)), ranks from 0.

    Haystack's ``MetaFieldRanker`` in mode ``reciprocal_rank_fusion``, meta value λ.
    """
    w, by_prior = settings.meta_weight, _places(evidence.prior, evidence.valid)
    return (1 - w) / (_FIRST + _by_similarity(evidence)) + w / (_FIRST + by_prior)


def bm25(evidence: Evidence, settings: RobustSettings) -> np.ndarray:
    """The BM25 score; no prior is looked at."""
    return np.array(_lexical(evidence), dtype=np.float64)


def bm25_dense(evidence: Evidence, settings: RobustSettings) -> np.ndarray:
    """1 / (60 + rank by similarity) + 1 / (60 + rank by BM25), ranks from 1; no prior.

    Reciprocal rank fusion, Cormack, Clarke and Büttcher, SIGIR 2009. Equal BM25 scores are ranked
    by similarity.
    """
    lexical = _places(_lexical(evidence), evidence.valid)
    return 1 / (_FIRST + _by_similarity(evidence)) + 1 / (_FIRST + lexical)


def _lexical(evidence: Evidence) -> np.ndarray:
    assert evidence.lexical is not None  # rank_robust has checked NEEDS
    return evidence.lexical


def _by_similarity(evidence: Evidence) -> np.ndarray:
    """Rank by similarity, from 0: the column, as candidates come in that order."""
    return np.broadcast_to(np.arange(evidence.sims.shape[1]), evidence.sims.shape)


def _places(values: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Rank from 0 of each column by (-value, column), padding last."""
    order = np.argsort(np.where(valid, -values, np.inf), axis=1, kind="stable")
    places = np.empty_like(order)
    np.put_along_axis(places, order, np.arange(values.shape[1])[None, :], axis=1)
    return places
