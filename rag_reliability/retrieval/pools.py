"""From an engine's float32 candidates to a pool: where to cut, ties and all, and one order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from rag_reliability.records import Pool

ROUNDING = 1e-5
"""Bound on the error of a float32 inner product of unit vectors (a few hundred dimensions)."""
_SPARE = 4
"""Candidates fetched beyond the depth, so that few topics need a second look."""

Found = tuple[np.ndarray, np.ndarray]
"""Docids int64 and similarities float64, (n_topics, width); -1 and -inf at padding."""


class Part(Protocol):
    """Documents of one label, wherever they are kept; they are known by row, an int64."""

    @property
    def size(self) -> int:
        """Number of documents."""

    def fetch(self, queries: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The ``count`` most similar as far as float32 can tell, best first: sims and rows.

        float32 and int64 (n_topics, count); -inf and -1 where there are fewer.
        """

    def sims(self, queries: np.ndarray, topics: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Similarity of ``queries[topics[i]]`` and row ``rows[i]`` in float64, (n_pairs,)."""


def nearest(part: Part, queries: np.ndarray, depth: int) -> Found:
    """Rows and similarities of a part's top ``depth`` and of all that ties with the last.

    Engines work in float32 and cut ties anywhere. With ε the error of a float32 product, whatever
    is among the top ``depth`` lies above the depth-th *coarse* similarity − 2ε. So only topics
    with more such candidates than were fetched are asked again, and only such candidates get a
    similarity in float64, by which the cut is made.
    """
    topics, rows = _candidates(part, queries, depth)
    return _cut(topics, rows, part.sims(queries, topics, rows), len(queries), depth)


def _candidates(part: Part, queries: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Topic and row of every candidate that may belong to a topic's top ``depth``."""
    open_, count = np.arange(len(queries)), min(part.size, depth + _SPARE)
    topics, rows = [], []
    while len(open_):
        coarse, found = part.fetch(queries[open_], count)
        least = coarse[:, min(depth, count) - 1] - 2 * ROUNDING
        more = (coarse[:, -1] >= least) & (found[:, -1] >= 0) & (count < part.size)
        kept = (coarse >= least[:, None]) & (found >= 0) & ~more[:, None]
        at, column = np.nonzero(kept)
        topics.append(open_[at])
        rows.append(found[at, column])
        open_, count = open_[more], min(part.size, 2 * count)
    empty = np.empty(0, dtype=np.int64)
    return np.concatenate([empty, *topics]), np.concatenate([empty, *rows])


def _cut(
    topics: np.ndarray, rows: np.ndarray, sims: np.ndarray, n_topics: int, depth: int
) -> Found:
    """Candidates as rectangles, without what lies below a topic's depth-th similarity."""
    order = np.lexsort((rows, -sims, topics))
    topics, rows, sims = topics[order], rows[order], sims[order]
    counts = np.bincount(topics, minlength=n_topics)
    starts = np.cumsum(counts) - counts
    place = np.arange(len(topics)) - starts[topics]
    last = sims[starts[topics] + np.minimum(depth, counts[topics]) - 1] if len(sims) else sims
    kept = sims >= last
    width = int(place[kept].max()) + 1 if kept.any() else 0
    docids = np.full((n_topics, width), -1, dtype=np.int64)
    values = np.full((n_topics, width), -np.inf)
    docids[topics[kept], place[kept]] = rows[kept]
    values[topics[kept], place[kept]] = sims[kept]
    return docids, values


def merged(found: Sequence[Found], n_topics: int) -> Pool:
    """Parts' candidates side by side, by (-sim, docid), no wider than the fullest row."""
    docids = np.concatenate([ids for ids, _ in found], axis=1)
    sims = np.concatenate([values for _, values in found], axis=1)
    order = np.lexsort((docids, -sims), axis=-1)
    width = int((docids >= 0).sum(axis=1).max()) if n_topics else 0
    order = order[:, :width]
    return Pool(np.take_along_axis(docids, order, 1), np.take_along_axis(sims, order, 1))
