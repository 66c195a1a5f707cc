"""An exact inner-product index, partitioned by source type, saved with checksums."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from rag_reliability.records import InputError, Pool

FORMAT = "rag_reliability.partitioned_index"
VERSION = 1

_UNIT_TOLERANCE = 1e-3
_ROUNDING = 1e-5
"""Bound on the error of a float32 inner product of unit vectors (a few hundred dimensions)."""
_BLOCK = 1 << 24
"""Numbers held at once while candidates' similarities are computed in float64."""


@dataclass(frozen=True)
class _Partition:
    """Documents of one label: ``docids`` ascending int64 (n,), ``flat`` their vectors."""

    label: str
    docids: np.ndarray
    flat: Any

    @property
    def vectors(self) -> np.ndarray:
        """The index's own memory, float32 (n, dim); valid while ``flat`` lives."""
        shape = (self.flat.ntotal, self.flat.d)
        return faiss.rev_swig_ptr(self.flat.get_xb(), shape[0] * shape[1]).reshape(shape)


class PartitionedIndex:
    """Document vectors by partition label; one search gives each partition's own nearest.

    For every prior that is constant within each partition, the ``k`` documents of highest
    sim · λ over the whole corpus lie among the partitions' own ``k`` most similar (within a
    partition, score order is similarity order). So a pool of depth k is exact for any prior
    table, and one of depth max(k, W) for a rank window of W as well.
    """

    def __init__(self, partitions: Sequence[_Partition], dim: int) -> None:
        self._partitions = tuple(partitions)
        self.dim = dim
        self.n_docs = sum(len(p.docids) for p in self._partitions)

    @property
    def labels(self) -> tuple[str, ...]:
        """Partition labels, sorted."""
        return tuple(p.label for p in self._partitions)

    @classmethod
    def build(cls, doc_vecs: np.ndarray, labels: Sequence[str] | np.ndarray) -> PartitionedIndex:
        """Index over ``doc_vecs``, float32 (n_docs, dim) unit norm, with ``labels`` (n_docs,).

        Raises: InputError for another shape or type, NaN, vectors not of unit norm, no documents.
        """
        vectors = _checked(doc_vecs, "doc_vecs")
        names = np.asarray(labels, dtype=str)
        if not len(vectors) or names.shape != (len(vectors),):
            raise InputError(
                f"doc_vecs {vectors.shape} need one label a row, at least one row; "
                f"labels have shape {names.shape}"
            )
        partitions = []
        for label in np.unique(names).tolist():
            docids = np.flatnonzero(names == label)
            flat = faiss.IndexFlatIP(vectors.shape[1])
            flat.add(vectors[docids])
            partitions.append(_Partition(label, docids, flat))
        return cls(partitions, vectors.shape[1])

    def search(self, query_vecs: np.ndarray, depth: int) -> Pool:
        """Each partition's own ``depth`` most similar documents, by falling similarity.

        query_vecs: float32 (n_topics, dim) unit norm. Documents tied with a partition's last are
        kept too, so that any rule for ties can be applied later. Similarities are float64 and do
        not depend on how many topics are searched at once. Padding: docid -1, sim -inf.

        Raises: InputError for bad vectors or another dimension; ValueError for depth < 1.
        """
        queries = _checked(query_vecs, "query_vecs")
        if queries.shape[1] != self.dim:
            raise InputError(f"query_vecs have {queries.shape[1]} dimensions, the index {self.dim}")
        if depth < 1:
            raise ValueError(f"depth must be at least 1, not {depth}")
        found = [_nearest(part, queries, depth) for part in self._partitions]
        return _merged(found, len(queries))

    def is_exact_for(self, prior: np.ndarray) -> bool:
        """Whether ``prior`` (n_docs,) is constant within each partition, as exactness needs."""
        values = np.asarray(prior)
        return all(np.ptp(values[p.docids]) == 0 for p in self._partitions)

    def save(self, folder: str | Path) -> None:
        """Write the index into ``folder``: vectors, docids, and ``index.json`` with checksums."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "index.json").unlink(missing_ok=True)
        entries = []
        for i, part in enumerate(self._partitions):
            vectors, docids = f"part-{i}.faiss", f"part-{i}.npy"
            faiss.write_index(part.flat, str(folder / vectors))
            np.save(folder / docids, part.docids)
            entries.append(
                {
                    "label": part.label,
                    "n_docs": len(part.docids),
                    "vectors": {"file": vectors, "sha256": _sha256(folder / vectors)},
                    "docids": {"file": docids, "sha256": _sha256(folder / docids)},
                }
            )
        about = {"format": FORMAT, "version": VERSION, "dim": self.dim, "n_docs": self.n_docs}
        text = json.dumps(about | {"partitions": entries}, indent=1)
        # Written last: a folder with index.json is a whole index.
        (folder / "index.json").write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path) -> PartitionedIndex:
        """The index saved in ``folder``, after its checksums have been compared.

        Raises: InputError, one line, for a missing, foreign or corrupt index.
        """
        folder = Path(folder)
        about = _read_about(folder / "index.json")
        try:
            parts = [_load_partition(folder, entry) for entry in about["partitions"]]
            dim, n_docs = int(about["dim"]), int(about["n_docs"])
        except (KeyError, TypeError, ValueError, RuntimeError, OSError) as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(f"{folder}: corrupt index: {reason}; build it again") from error
        docids = np.concatenate([p.docids for p in parts]) if parts else np.empty(0)
        whole = np.array_equal(np.sort(docids), np.arange(n_docs)) and n_docs > 0
        if not whole or any(p.flat.d != dim or p.flat.ntotal != len(p.docids) for p in parts):
            raise InputError(f"{folder}: corrupt index: parts do not fit together; build it again")
        return cls(parts, dim)


def _checked(vectors: np.ndarray, name: str) -> np.ndarray:
    array = np.asarray(vectors)
    if array.ndim != 2 or array.dtype != np.float32 or array.shape[1] == 0:
        raise InputError(
            f"{name} must be float32 (n, dim), not {array.dtype} of shape {array.shape}"
        )
    norms = np.linalg.norm(array, axis=1)
    bad = np.flatnonzero(~(np.abs(norms - 1) <= _UNIT_TOLERANCE))  # NaN counts as bad
    if len(bad):
        raise InputError(f"{name} row {bad[0]} has norm {norms[bad[0]]:.4g}; expected unit norm")
    return np.ascontiguousarray(array)


def _nearest(part: _Partition, queries: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Docids and sims (n_topics, width) of a partition's top ``depth`` and what ties with it.

    faiss works in float32 and cuts ties anywhere, so fetch until nothing unseen can reach the
    depth-th similarity, and decide on similarities computed in float64.
    """
    size = len(part.docids)
    fetch = min(size, depth + 8)
    while True:
        coarse, rows = part.flat.search(queries, fetch)
        sims = _inner(queries, part.vectors, rows)
        last = -np.sort(-sims, axis=1)[:, min(depth, size) - 1]
        if fetch == size or not (coarse[:, -1] >= last - _ROUNDING).any():
            break
        fetch = min(size, 2 * fetch)
    kept = sims >= last[:, None]
    return np.where(kept, part.docids[rows], -1), np.where(kept, sims, -np.inf)


def _inner(queries: np.ndarray, vectors: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Inner products in float64, (n_topics, width), of each query with its own ``rows``."""
    sims = np.empty(rows.shape)
    step = max(1, _BLOCK // max(1, rows.shape[1] * queries.shape[1]))
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        docs = vectors[rows[block]].astype(np.float64)
        sims[block] = np.einsum("td,tmd->tm", queries[block].astype(np.float64), docs)
    return sims


def _merged(found: list[tuple[np.ndarray, np.ndarray]], n_topics: int) -> Pool:
    docids = np.concatenate([ids for ids, _ in found], axis=1)
    sims = np.concatenate([values for _, values in found], axis=1)
    order = np.lexsort((docids, -sims), axis=-1)
    width = int((docids >= 0).sum(axis=1).max()) if n_topics else 0
    order = order[:, :width]
    return Pool(np.take_along_axis(docids, order, 1), np.take_along_axis(sims, order, 1))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_about(path: Path) -> dict[str, Any]:
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path.parent}: no index here (index.json is missing)") from None
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InputError(f"{path}: corrupt: not JSON ({' '.join(str(error).split())})") from error
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise InputError(f"{path}: not an index of this package; expected format {FORMAT!r}")
    if about.get("version") != VERSION:
        raise InputError(
            f"{path}: format version {about.get('version')!r}; expected {VERSION}; build it again"
        )
    return about


def _load_partition(folder: Path, entry: dict[str, Any]) -> _Partition:
    vectors = _verified(folder, entry["vectors"])
    docids = np.load(_verified(folder, entry["docids"]), allow_pickle=False)
    flat = faiss.read_index(str(vectors))
    if not isinstance(flat, faiss.IndexFlat) or flat.metric_type != faiss.METRIC_INNER_PRODUCT:
        raise ValueError(f"{vectors.name} is not a flat inner-product index")
    return _Partition(str(entry["label"]), np.asarray(docids, dtype=np.int64), flat)


def _verified(folder: Path, entry: dict[str, str]) -> Path:
    path = folder / Path(entry["file"]).name  # a hostile index.json names no file elsewhere
    if not path.is_file():
        raise ValueError(f"{path.name} is missing")
    if _sha256(path) != entry["sha256"]:
        raise ValueError(f"{path.name} does not match its checksum")
    return path
