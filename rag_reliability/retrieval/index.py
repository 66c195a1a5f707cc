"""Document vectors partitioned by source type: exact by default, saved with checksums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rag_reliability.records import InputError, Pool
from rag_reliability.retrieval.engines import FLAT, Engine, Flat, Settings, build_engine, restored
from rag_reliability.retrieval.index_files import new_blocks, read_index, write_index
from rag_reliability.retrieval.pools import merged, nearest
from rag_reliability.retrieval.vectors import (
    BLOCK_ROWS,
    check_norms,
    check_shape,
    checked_queries,
    inner,
)


@dataclass(frozen=True)
class Partition:
    """Documents of one label: ``docids`` ascending int64 (n,), ``engine`` over their vectors."""

    label: str
    docids: np.ndarray
    engine: Engine

    @property
    def size(self) -> int:
        """Number of documents."""
        return len(self.docids)

    def fetch(self, queries: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """See ``pools.Part``; rows count within the partition."""
        return self.engine.fetch(queries, count)

    def sims(self, queries: np.ndarray, topics: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """See ``pools.Part``."""
        return inner(queries, topics, self.engine.vectors, rows)


class PartitionedIndex:
    """Document vectors by partition label; one search gives each partition's own nearest.

    For every prior that is constant within each partition, the ``k`` documents of highest
    sim · λ over the whole corpus lie among the partitions' own ``k`` most similar (within a
    partition, score order is similarity order). So a pool of depth k is exact for any prior
    table, and one of depth max(k, W) for a rank window of W as well, where partitions are flat.
    """

    def __init__(
        self, partitions: Sequence[Partition], dim: int, settings: Settings = FLAT
    ) -> None:
        self._partitions = tuple(partitions)
        self.dim = dim
        self.settings = settings
        self.n_docs = sum(p.size for p in self._partitions)

    @property
    def labels(self) -> tuple[str, ...]:
        """Partition labels, sorted."""
        return tuple(p.label for p in self._partitions)

    @property
    def exact(self) -> bool:
        """Whether every partition compares every document."""
        return all(isinstance(p.engine, Flat) for p in self._partitions)

    @classmethod
    def build(
        cls,
        doc_vecs: np.ndarray,
        labels: Sequence[str] | np.ndarray,
        *,
        folder: str | Path | None = None,
        **settings: Any,
    ) -> PartitionedIndex:
        """Index over ``doc_vecs``, float32 (n_docs, dim) unit norm, with ``labels`` (n_docs,).

        doc_vecs may be memory-mapped: it is read once, in blocks, and the index holds the only
        copy. folder: flat partitions are written there and mapped, so that an index larger than
        memory can be built; ``save`` into the same folder completes it. settings: see
        ``Settings``. HNSW graphs built by several threads differ a little from build to build.

        Raises: InputError for another shape or type, NaN, vectors not of unit norm, no documents,
        a bad setting.
        """
        how = Settings(**settings)
        vectors = check_shape(doc_vecs, "doc_vecs")
        names, codes = _coded(labels, len(vectors))
        docids = [np.flatnonzero(codes == code) for code in range(len(names))]
        blocks = new_blocks([len(own) for own in docids], vectors.shape[1], folder)
        _fill(blocks, vectors, codes)
        partitions = []
        for name, own in zip(names, docids, strict=True):
            # Taken off the list: where the engine holds a copy of its own, the block is freed.
            partitions.append(Partition(name, own, build_engine(blocks.pop(0), how)))
        return cls(partitions, vectors.shape[1], how)

    def search(self, query_vecs: np.ndarray, depth: int) -> Pool:
        """Each partition's own ``depth`` most similar documents, by falling similarity.

        query_vecs: float32 (n_topics, dim) unit norm. Documents tied with a partition's last are
        kept too, so that any rule for ties can be applied later. Similarities are float64 and do
        not depend on how many topics are searched at once. Padding: docid -1, sim -inf.

        Raises: InputError for bad vectors or another dimension; ValueError for depth < 1.
        """
        queries = checked_queries(query_vecs, self.dim, depth)
        found = []
        for part in self._partitions:
            rows, sims = nearest(part, queries, depth)
            found.append((np.where(rows < 0, -1, part.docids[rows]), sims))
        return merged(found, len(queries))

    def is_exact_for(self, prior: np.ndarray) -> bool:
        """Whether ``prior`` (n_docs,) is constant within each partition, as exactness needs."""
        values = np.asarray(prior)
        return all(np.ptp(values[p.docids]) == 0 for p in self._partitions)

    def save(self, folder: str | Path) -> None:
        """Write the index into ``folder``: vectors, docids, and ``index.json`` with checksums."""
        write_index(Path(folder), self._partitions, self.dim, asdict(self.settings))

    @classmethod
    def load(cls, folder: str | Path) -> PartitionedIndex:
        """The index saved in ``folder``, after its checksums have been compared.

        Vectors of large flat partitions are mapped from the file, not read into memory.

        Raises: InputError, one line, for a missing, foreign or corrupt index.
        """
        about, kept = read_index(Path(folder))
        try:
            how = Settings(**about["settings"])
            parts = [Partition(name, docids, restored(v, how)) for name, docids, v in kept]
            for part in parts:
                if part.engine.shape != (part.size, about["dim"]):
                    raise ValueError("parts do not fit together")
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(f"{folder}: corrupt index: {reason}; build it again") from error
        return cls(parts, about["dim"], how)


def _coded(labels: Sequence[str] | np.ndarray, n_docs: int) -> tuple[list[str], np.ndarray]:
    """Sorted distinct labels, and the place of each document's among them, int32 (n_docs,)."""
    given = np.asarray(labels)
    if not n_docs or given.shape != (n_docs,):
        raise InputError(
            f"doc_vecs have {n_docs} rows and need one label a row, at least one row; "
            f"labels have shape {given.shape}"
        )
    # In blocks: sorting a million strings at once would take more memory than is promised.
    starts = range(0, n_docs, BLOCK_ROWS)
    each = [np.unique(given[s : s + BLOCK_ROWS].astype(str), return_inverse=True) for s in starts]
    names = np.unique(np.concatenate([own for own, _ in each]))
    codes = [np.searchsorted(names, own)[at].astype(np.int32) for own, at in each]
    return names.tolist(), np.concatenate(codes)


def _fill(blocks: Sequence[np.ndarray], vectors: np.ndarray, codes: np.ndarray) -> None:
    """Each row into the block of its code, in order, after its norm was looked at."""
    filled = [0] * len(blocks)
    for start in range(0, len(vectors), BLOCK_ROWS):
        rows = np.asarray(vectors[start : start + BLOCK_ROWS])
        check_norms(rows, "doc_vecs", start)
        own = codes[start : start + BLOCK_ROWS]
        for code in np.unique(own).tolist():
            chosen = rows[own == code]
            blocks[code][filled[code] : filled[code] + len(chosen)] = chosen
            filled[code] += len(chosen)
