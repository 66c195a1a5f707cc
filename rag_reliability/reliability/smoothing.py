"""Single-hop smoothing: a document's prior leans towards its neighbours' priors."""

from __future__ import annotations

import numpy as np

from rag_reliability.records import InputError
from rag_reliability.reliability.rerank import check_prior

_BLOCK_ROWS = 512


def smooth_prior(
    prior: np.ndarray, doc_vecs: np.ndarray, n_neighbours: int, alpha: float
) -> np.ndarray:
    """λ'_d = (1 - α) λ_d + α · mean of λ over the nearest other documents; float64 (n_docs,).

    prior: (n_docs,) in (0, 1]. doc_vecs: (n_docs, dim) unit norm; nearness is the exact cosine.
    n_neighbours: cut to n_docs - 1. Documents tied for the last place share it, so the result does
    not depend on the documents' order. α = 0 gives ``prior`` back; the result stays within the
    range of ``prior``.

    A smoothed prior differs within a source type: only a pool of all documents is exact for it.

    Raises: InputError for λ outside (0, 1], α outside [0, 1], n_neighbours < 1.
    """
    values = check_prior(prior, len(doc_vecs), 0)
    if not 0 <= alpha <= 1:
        raise InputError(f"alpha = {alpha}; expected 0 <= alpha <= 1")
    if n_neighbours < 1:
        raise InputError(f"n_neighbours = {n_neighbours}; expected at least 1")
    n = min(n_neighbours, len(values) - 1)
    if alpha == 0 or n < 1:
        return values.copy()
    vectors = np.asarray(doc_vecs, dtype=np.float64)
    means = np.concatenate(
        [
            _neighbour_means(values, vectors, start, n)
            for start in range(0, len(values), _BLOCK_ROWS)
        ]
    )
    return np.clip((1 - alpha) * values + alpha * means, values.min(), values.max())


def _neighbour_means(values: np.ndarray, vectors: np.ndarray, start: int, n: int) -> np.ndarray:
    """Mean prior of the ``n`` nearest others of a block of documents."""
    block = vectors[start : start + _BLOCK_ROWS]
    # Equal vectors' products can differ in the last bits: rounding makes them ties.
    cosine = np.round(block @ vectors.T, 10)
    rows = np.arange(len(block))
    cosine[rows, start + rows] = -np.inf
    last = -np.partition(-cosine, n - 1, axis=1)[:, n - 1 : n]
    nearer, tied = cosine > last, cosine == last
    places_left = n - nearer.sum(axis=1)
    return (nearer @ values + places_left * (tied @ values) / tied.sum(axis=1)) / n
