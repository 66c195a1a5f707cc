"""Documents in Milvus: one file (Milvus Lite) or a cluster, the same code."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rag_reliability.records import InputError, Pool
from rag_reliability.retrieval import milvus_server
from rag_reliability.retrieval.milvus_server import MOST, Collection
from rag_reliability.retrieval.pools import merged, nearest
from rag_reliability.retrieval.vectors import (
    check_norms,
    check_shape,
    checked_queries,
    inner,
)

FORMAT = "rag_reliability.collection.1"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")


class MilvusIndex:
    """A collection with a document in each row: docno (key), docid, source type, vector.

    The source type is the partition key, so a search of one type reads that type's segments
    only. The index is FLAT: the server compares every vector, so pools are those of
    ``PartitionedIndex``: candidates by float32 similarity, then the same arithmetic in float64 on
    the vectors that the server returns. Not promised: ties beyond ``MOST`` documents of a type,
    and reading while others write (reads are strongly consistent, but not a snapshot).
    """

    def __init__(self, collection: Collection, labels: Sequence[str]) -> None:
        self.collection, self.name, self.dim = collection, collection.name, collection.dim
        self.labels = tuple(labels)

    @classmethod
    def open(
        cls,
        uri: str,
        name: str,
        *,
        dim: int,
        labels: Sequence[str],
        fingerprint: str,
        timeout: float = 30.0,
    ) -> MilvusIndex:
        """The collection of these vectors at ``uri``, made if it is not there.

        uri: http(s)://host:port, or a file ending in .db (Milvus Lite). labels: all the source
        types. fingerprint: names what the vectors were made from (a hash). The collection's name
        is ``name`` and a hash of all this, so other vectors never share it, and a load that broke
        off goes on with the same ones.

        Raises: InputError, one line: no server, pymilvus missing, a foreign collection there.
        """
        known = sorted(set(map(str, labels)))
        about = json.dumps([FORMAT, dim, known, fingerprint]).encode()
        full = f"{name}_{hashlib.sha256(about).hexdigest()[:16]}"
        if not _NAME.fullmatch(full):
            raise InputError(f"collection {full!r}: expected letters, digits and underscores")
        return cls(Collection.open(uri, full, dim, timeout), known)

    @property
    def n_docs(self) -> int:
        """Documents in the collection now."""
        return self.collection.count("docid >= 0")

    def upsert(
        self,
        docnos: Sequence[str] | np.ndarray,
        docids: np.ndarray,
        labels: Sequence[str] | np.ndarray,
        vectors: np.ndarray,
    ) -> None:
        """Write documents, over those of the same docno: doing it again changes nothing.

        docids: int64 (m,), rows of the corpus. vectors: float32 (m, dim) unit norm.

        Raises: InputError for bad vectors, an unknown label, or what the server refuses.
        """
        rows = check_shape(vectors, "doc_vecs")
        if not len(docnos) == len(docids) == len(labels) == len(rows) or rows.shape[1] != self.dim:
            raise InputError(
                f"doc_vecs {rows.shape} need a docno, docid and label each, "
                f"and {self.dim} dimensions"
            )
        unknown = sorted(set(map(str, labels)) - set(self.labels))
        if unknown:
            raise InputError(f"source type {unknown[0]!r} is not one of the collection's")
        step = max(1, milvus_server.BYTES // (4 * self.dim))
        for start in range(0, len(rows), step):
            own = slice(start, start + step)
            block = np.ascontiguousarray(rows[own])
            check_norms(block, "doc_vecs", start)
            columns = zip(docnos[own], docids[own], labels[own], block, strict=True)
            data = [
                {"docno": str(n), "docid": int(d), "source_type": str(t), "vector": v}
                for n, d, t, v in columns
            ]
            self.collection.upsert(data)

    def load(
        self,
        docnos: Sequence[str] | np.ndarray,
        labels: Sequence[str] | np.ndarray,
        vectors: np.ndarray,
        *,
        shard: int = 10_000,
        progress: bool = False,
    ) -> int:
        """Write the whole corpus, shard by shard; shards that are there already are passed over.

        vectors: float32 (n_docs, dim), may be memory-mapped. A load that broke off goes on where
        it stopped when it is called again. Returns the number of documents written.
        """
        from tqdm.auto import tqdm

        written = 0
        for start in tqdm(range(0, len(vectors), shard), desc="loading", disable=not progress):
            stop = min(start + shard, len(vectors))
            if self.collection.count(f"docid >= {start} and docid < {stop}") == stop - start:
                continue
            docids, own = np.arange(start, stop), slice(start, stop)
            self.upsert(docnos[own], docids, labels[own], vectors[own])
            written += stop - start
        if written:
            self.collection.flush()
        return written

    def search(self, query_vecs: np.ndarray, depth: int) -> Pool:
        """Each source type's own ``depth`` most similar documents: see ``backend.Backend``.

        Raises: InputError also for a depth beyond ``MOST`` documents of one type.
        """
        queries = checked_queries(query_vecs, self.dim, depth)
        parts = [
            _Part(self.collection, label, self.collection.count(_of(label)))
            for label in self.labels
        ]
        found = [nearest(part, queries, depth) for part in parts if part.size]
        if not found:
            raise InputError(
                f"Milvus at {self.collection.uri}: collection {self.name!r} is empty: load it"
            )
        return merged(found, len(queries))

    def close(self) -> None:
        """Close the connection."""
        self.collection.close()


@dataclass(frozen=True)
class _Part:
    """One source type of a collection; rows are docids."""

    collection: Collection
    label: str
    size: int

    def fetch(self, queries: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """See ``pools.Part``."""
        if count > MOST:
            raise InputError(f"a pool of {count} documents of {self.label!r}: Milvus gives {MOST}")
        found = self.collection.hits(queries, _of(self.label), count)
        sims = np.full((len(queries), count), -np.inf, dtype=np.float32)
        rows = np.full((len(queries), count), -1, dtype=np.int64)
        for topic, hits in enumerate(found):
            sims[topic, : len(hits)] = [hit["distance"] for hit in hits]
            rows[topic, : len(hits)] = [hit["entity"]["docid"] for hit in hits]
        return sims, rows

    def sims(self, queries: np.ndarray, topics: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """See ``pools.Part``; each vector is fetched once, however many topics it is near."""
        docids, at = np.unique(rows, return_inverse=True)
        stored = self.collection.vectors(docids)
        return inner(queries, topics, stored.__getitem__, at)


def _of(label: str) -> str:
    return f"source_type == {json.dumps(label, ensure_ascii=False)}"
