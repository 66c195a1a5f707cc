"""What searches the vectors of one partition: all, clusters, or a graph. Only faiss here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import faiss
import numpy as np

from rag_reliability.records import InputError
from rag_reliability.retrieval.vectors import BLOCK_ROWS

Kind = Literal["flat", "ivf", "hnsw"]
KINDS: tuple[Kind, ...] = ("flat", "ivf", "hnsw")

# Queries × dimensions from which faiss multiplies matrices instead of vectors. Its default,
# 128,000, leaves 100 queries of 384 dimensions to the slower way: 620 ms against 76 over 100,000
# documents, one thread. Matrices win from the third query on; results differ by rounding alone,
# which ``pools`` allows for.
MATRIX_FROM = 3 * 384
faiss.cvar.distance_compute_blas_threshold = MATRIX_FROM


@dataclass(frozen=True)
class Settings:
    """How each partition is searched.

    kind: flat compares every document, and is exact; ivf looks into the ``nprobe`` of ``nlist``
    clusters that are nearest the query (nlist 0: √n of the partition); hnsw walks a graph of
    ``m`` links a node, ``ef_search`` candidates wide. Both can miss documents; the similarities
    of those they find are as exact. Partitions below ``smallest`` documents are always flat.
    """

    kind: Kind = "flat"
    nlist: int = 0
    nprobe: int = 16
    m: int = 32
    ef_search: int = 128
    ef_construction: int = 100
    smallest: int = 2_000

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"unknown index kind {self.kind!r}; known: {', '.join(KINDS)}")
        least = {"nlist": 0, "nprobe": 1, "m": 2, "ef_search": 1, "ef_construction": 1}
        for name, low in (least | {"smallest": 0}).items():
            if getattr(self, name) < low:
                raise InputError(f"index setting {name} = {getattr(self, name)}; expected >= {low}")


FLAT = Settings()


class Engine(Protocol):
    """What searches the vectors of one partition; rows count within it."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of vectors, and their dimension."""

    def fetch(self, queries: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Coarse similarities and rows, (n_topics, count), best first; -inf, -1 at padding."""

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Stored vectors float32 (m, dim) of rows (m,)."""


@dataclass(frozen=True)
class Flat:
    """Every vector of a contiguous block, float32 (n, dim), in memory or mapped from a file."""

    block: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """See ``Engine``."""
        return self.block.shape[0], self.block.shape[1]

    def fetch(self, queries: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """See ``Engine``."""
        return faiss.knn(queries, self.block, count, metric=faiss.METRIC_INNER_PRODUCT)

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """See ``Engine``."""
        return self.block[rows]


@dataclass(frozen=True)
class Approximate:
    """An IVF or HNSW index of faiss, which keeps the vectors itself."""

    index: Any
    settings: Settings

    @property
    def shape(self) -> tuple[int, int]:
        """See ``Engine``."""
        return self.index.ntotal, self.index.d

    def fetch(self, queries: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """See ``Engine``."""
        how: Any  # faiss's stubs lack these
        if self.settings.kind == "ivf":
            nprobe = min(self.settings.nprobe, self.index.nlist)
            how = faiss.SearchParametersIVF(nprobe=nprobe)  # type: ignore[call-arg]
        else:
            wide = max(self.settings.ef_search, count)
            how = faiss.SearchParametersHNSW(efSearch=wide)  # type: ignore[attr-defined]
        coarse, rows = self.index.search(queries, count, params=how)
        return np.where(rows < 0, np.float32(-np.inf), coarse), rows

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """See ``Engine``."""
        return self.index.reconstruct_batch(rows)


def build_engine(block: np.ndarray, settings: Settings) -> Engine:
    """What searches ``block``, float32 (n, dim); an approximate engine holds a copy of its own."""
    size, dim = block.shape
    if settings.kind == "flat" or size < max(settings.smallest, 1):
        return Flat(block)
    index: Any
    if settings.kind == "ivf":
        nlist = min(size, settings.nlist or round(size**0.5))
        index = faiss.IndexIVFFlat(faiss.IndexFlatIP(dim), dim, nlist, faiss.METRIC_INNER_PRODUCT)
        index.cp.min_points_per_centroid = 1  # a partition may be small: no warning on stderr
        index.train(block)
    else:
        index = faiss.IndexHNSWFlat(dim, settings.m, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = settings.ef_construction
    for start in range(0, size, BLOCK_ROWS):
        index.add(np.ascontiguousarray(block[start : start + BLOCK_ROWS]))
    return _approximate(index, settings)


def _approximate(index: Any, settings: Settings) -> Approximate:
    if settings.kind == "ivf":
        index.make_direct_map()  # which cluster a row lies in, so that its vector can be read
    return Approximate(index, settings)


def write_engine(engine: Engine, path: Path) -> None:
    """Write an approximate engine in faiss's own format."""
    assert isinstance(engine, Approximate)
    faiss.write_index(engine.index, str(path))


def restored(kept: np.ndarray | Path, settings: Settings) -> Engine:
    """The engine behind what was saved: a block of vectors, or a file of faiss.

    Raises: ValueError or RuntimeError for a file that holds something else.
    """
    if isinstance(kept, np.ndarray):
        return Flat(kept)
    index = faiss.read_index(str(kept))
    expected = {"ivf": faiss.IndexIVFFlat, "hnsw": faiss.IndexHNSWFlat}.get(settings.kind, Flat)
    if not isinstance(index, expected) or index.metric_type != faiss.METRIC_INNER_PRODUCT:
        raise ValueError(f"{kept.name} is not an inner-product index of kind {settings.kind}")
    return _approximate(index, settings)
