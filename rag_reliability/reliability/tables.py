"""Many prior tables over one pool in a few array operations: the arithmetic of sweeps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag_reliability.records import InputError, Pool
from rag_reliability.reliability.rerank import check_sizes, kept_of, rank_pool, tie_ranks

_NUMBERS = 1 << 17
"""Scores held at once, 1 MB: a block of tables stays in a processor's cache."""
_SLACK = 2.0**-50
"""Relative; two products by one λ that round to the same number are at most this far apart."""


def rerank_tables(
    pool: Pool,
    priors: np.ndarray,
    codes: np.ndarray,
    docnos: Sequence[str] | np.ndarray,
    k: int,
    *,
    window: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The top ``k`` of every topic under every table: what ``rerank`` gives for each, at once.

    score = max(sim, 0) · λ, by (-score, docno), zeros by similarity first.

    priors: float64 (n_tables, n_types) in (0, 1]. codes: int (n_docs,), the type of each document
    as a column of ``priors``. docnos: str (n_docs,). window, and pools that hold fewer than ``k``
    candidates: see ``rerank``.

    Returns: docids int64 and scores float64, (n_tables, n_topics, k).

    Raises: InputError for λ outside (0, 1], k < 1, window < k; ValueError for other shapes.
    """
    tables = check_tables(priors)
    if codes.shape != (len(docnos),) or (len(codes) and not _within(codes, tables.shape[1])):
        raise ValueError(
            f"codes need one column of priors (n_tables, {tables.shape[1]}) a document"
        )
    check_sizes(pool, [""] * len(pool.docids), len(docnos), k, window)
    docids, sims, kept = _inside(pool, docnos, k, window)
    docids, sims = _contenders(docids, sims, codes, tables.shape[1], kept)
    types = np.where(docids >= 0, codes[docids], 0)
    n_tables, n_topics, m = len(tables), *docids.shape
    columns = np.empty((n_tables, n_topics, kept), dtype=np.int64)
    scores = np.empty((n_tables, n_topics, kept))
    step = max(1, _NUMBERS // max(1, n_topics * m))
    for start in range(0, n_tables, step):
        block = slice(start, start + step)
        columns[block], scores[block] = _top(sims, tables[block][:, types], kept)
    return np.take_along_axis(docids[None], columns, axis=2), scores


def check_tables(priors: np.ndarray) -> np.ndarray:
    """``priors`` as float64 (n_tables, n_types).

    Raises: InputError naming the first λ outside (0, 1]; ValueError for another shape.
    """
    tables = np.asarray(priors, dtype=np.float64)
    if tables.ndim != 2:
        raise ValueError(f"priors have shape {tables.shape}; expected (n_tables, n_types)")
    bad = np.argwhere(~((tables > 0) & (tables <= 1)))
    if len(bad):
        table, kind = bad[0].tolist()
        raise InputError(
            f"prior of type {kind} in table {table} is {tables[table, kind]}; expected 0 < λ <= 1"
        )
    return tables


def _within(codes: np.ndarray, n_types: int) -> bool:
    return bool(codes.min() >= 0 and codes.max() < n_types)


def _inside(
    pool: Pool, docnos: Sequence[str] | np.ndarray, k: int, window: int | None
) -> tuple[np.ndarray, np.ndarray, int]:
    """Docids and sims of what the window lets in, whatever the table, in the order of ties.

    Tie order: documents of sim > 0 by docno, then the others, which all score zero, by
    (-sim, docno), then padding (-1, -inf). A stable sort by score keeps it.
    """
    ties = tie_ranks(docnos, pool.docids)
    inside = rank_pool(pool, np.ones(len(docnos)), ties, "similarity", window).inside
    kept = kept_of(inside, k)
    safe = np.where(inside, pool.docids, 0)
    zero = np.where(pool.sims > 0, 0.0, -pool.sims)
    order = np.lexsort((ties[safe], np.where(inside, zero, 0.0), pool.sims <= 0, ~inside))
    order = order[:, : int(inside.sum(axis=1).max(initial=0))]
    there = np.take_along_axis(inside, order, axis=1)
    docids = np.where(there, np.take_along_axis(pool.docids, order, axis=1), -1)
    return docids, np.where(there, np.take_along_axis(pool.sims, order, axis=1), -np.inf), kept


def _contenders(
    docids: np.ndarray, sims: np.ndarray, codes: np.ndarray, n_types: int, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Without documents that ``k`` more similar ones of their own type leave no place for.

    Equal λ keep the order of similarity, but for products that round to the same number.
    """
    types = np.where(docids >= 0, codes[docids], n_types)
    order = np.lexsort((-sims, types), axis=-1)
    by_type, falling = (np.take_along_axis(a, order, axis=1) for a in (types, sims))
    keep = np.zeros(docids.shape, dtype=bool)
    above = falling >= _kth_of_type(by_type, falling, k)
    np.put_along_axis(keep, order, above & (by_type < n_types), axis=1)
    left = np.argsort(~keep, axis=1, kind="stable")[:, : int(keep.sum(axis=1).max(initial=0))]
    there = np.take_along_axis(keep, left, axis=1)
    return (
        np.where(there, np.take_along_axis(docids, left, axis=1), -1),
        np.where(there, np.take_along_axis(sims, left, axis=1), -np.inf),
    )


def _kth_of_type(types: np.ndarray, sims: np.ndarray, k: int) -> np.ndarray:
    """Least similarity that can reach the top ``k`` of its type, (n_topics, m).

    types: ascending in each row; sims: falling within each type.
    """
    column, m = np.arange(types.shape[1]), types.shape[1]
    starts = np.diff(types, axis=1, prepend=-1) != 0
    at = np.maximum.accumulate(np.where(starts, column, 0), axis=1) + k - 1
    safe = np.minimum(at, max(m - 1, 0))
    full = (at < m) & (np.take_along_axis(types, safe, axis=1) == types)
    kth = np.where(full, np.take_along_axis(sims, safe, axis=1), -np.inf)
    return kth - np.abs(np.where(np.isfinite(kth), kth, 0.0)) * _SLACK


def _top(sims: np.ndarray, priors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns and scores, (n_tables, n_topics, k), of the highest scores; ties by column.

    Scores are sorted as whole numbers whose last bits hold the column: several times as fast as
    sorting columns by score. Where scores agree in all other bits, the row is sorted again in full.
    """
    scores = np.maximum(sims, 0.0) * priors + 0.0  # no -0.0, whose bits come before all others
    m = scores.shape[-1]
    if k == 0 or not scores.size:
        return np.empty((*scores.shape[:2], k), dtype=np.int64), np.empty((*scores.shape[:2], k))
    scores[:, np.isneginf(sims)] = -1.0  # padding: below every score
    low = (1 << max(1, (m - 1).bit_length())) - 1
    # Bits of positive floats are ordered like the floats; -1.0 is negative in both readings.
    keys = (scores.view(np.int64) & ~low) | (low - np.arange(m))
    keys.sort(axis=-1)
    best = keys[..., ::-1][..., : k + 1]
    columns = low - (best[..., :k] & low)
    top = np.take_along_axis(scores, columns, axis=-1)
    same = (best[..., :-1] & ~low) == (best[..., 1:] & ~low)
    unsure = (same & (best[..., :-1] >= 0)).any(axis=-1)
    if unsure.any():
        # Underflow to zero aside, only rows with ties come here.
        columns[unsure], top[unsure] = _sorted_in_full(scores, sims, unsure, k)
    return columns, top


def _sorted_in_full(
    scores: np.ndarray, sims: np.ndarray, rows: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Columns and scores, (n_rows, k), of the chosen rows, by (-score, sim at zero, column)."""
    chosen = scores[rows]
    similar = np.broadcast_to(sims, scores.shape)[rows]
    order = np.lexsort((np.where(chosen == 0, -similar, 0.0), -chosen), axis=-1)[:, :k]
    return order, np.take_along_axis(chosen, order, axis=-1)
