"""Unit vectors: checked block by block, and inner products that no batch can change."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rag_reliability.records import InputError

BLOCK_ROWS = 4_096
"""Rows read at once from an array that may lie on disk."""

_UNIT_TOLERANCE = 1e-3
_PAIRS = 512
"""Pairs multiplied at once: 512 × 384 float64 numbers stay in a processor's cache."""


def check_shape(vectors: np.ndarray, name: str) -> np.ndarray:
    """``vectors`` as an array (not copied), float32 (n, dim) with dim > 0.

    Raises: InputError for another shape or type.
    """
    array = np.asarray(vectors)
    if array.ndim != 2 or array.dtype != np.float32 or array.shape[1] == 0:
        raise InputError(
            f"{name} must be float32 (n, dim), not {array.dtype} of shape {array.shape}"
        )
    return array


def check_norms(block: np.ndarray, name: str, first: int = 0) -> None:
    """Refuse a row that is not of unit norm; ``first`` is the row number of the block's first.

    Raises: InputError naming the row; NaN counts as bad.
    """
    norms = np.sqrt(np.einsum("nd,nd->n", block, block))
    bad = np.flatnonzero(~(np.abs(norms - 1) <= _UNIT_TOLERANCE))
    if len(bad):
        raise InputError(
            f"{name} row {first + bad[0]} has norm {norms[bad[0]]:.4g}; expected unit norm"
        )


def checked_queries(query_vecs: np.ndarray, dim: int, depth: int) -> np.ndarray:
    """Query vectors, contiguous float32 (n_topics, dim), fit for a search ``depth`` deep.

    Raises: InputError for bad vectors or another dimension; ValueError for depth < 1.
    """
    queries = check_shape(query_vecs, "query_vecs")
    check_norms(queries, "query_vecs")
    if queries.shape[1] != dim:
        raise InputError(f"query_vecs have {queries.shape[1]} dimensions, the index {dim}")
    if depth < 1:
        raise ValueError(f"depth must be at least 1, not {depth}")
    return np.ascontiguousarray(queries)


def inner(
    queries: np.ndarray,
    topics: np.ndarray,
    vectors: Callable[[np.ndarray], np.ndarray],
    rows: np.ndarray,
) -> np.ndarray:
    """⟨queries[topics[i]], vectors(rows)[i]⟩ in float64, (n_pairs,).

    Each product depends on its two vectors alone, however many are computed together.
    vectors: gives float32 (m, dim) of rows (m,).
    """
    sims = np.empty(len(rows))
    for start in range(0, len(rows), _PAIRS):
        pairs = slice(start, start + _PAIRS)
        # Converted first: einsum's own buffered conversion would split sums by their position.
        left = queries[topics[pairs]].astype(np.float64)
        right = vectors(rows[pairs]).astype(np.float64)
        sims[pairs] = np.einsum("pd,pd->p", left, right)
    return sims
