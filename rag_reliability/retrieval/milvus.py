"""Documents in Milvus: one file (Milvus Lite) or a cluster, the same code. Only pymilvus here."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rag_reliability.records import InputError, Pool
from rag_reliability.retrieval.pools import merged, nearest
from rag_reliability.retrieval.vectors import (
    check_norms,
    check_shape,
    checked_queries,
    inner,
)

FORMAT = "rag_reliability.collection.1"
MOST = 16_384
"""Documents that Milvus gives at most for one query: as deep as a pool of a type can be."""

_BYTES = 8 << 20
"""Vectors sent or fetched in one message; servers refuse messages of 64 MB by default."""
_TOPICS = 128
"""Queries sent in one message."""
_QUIET = {"grpc_options": {"grpc.keepalive_permit_without_calls": False}}
"""Milvus Lite hangs up on a client that asks every ten seconds whether it is there."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")


@contextmanager
def _asking(uri: str) -> Iterator[None]:
    """Turn what Milvus says into one line. Raises: InputError."""
    from pymilvus.exceptions import MilvusException

    try:
        yield
    except MilvusException as error:
        reason = " ".join(str(error.message or error).split())[:200]
        raise InputError(f"Milvus at {uri}: {reason}") from error


def _client(uri: str, timeout: float) -> Any:
    """A connection; ``$MILVUS_TOKEN`` is its token (``user:password``, or an API key)."""
    try:
        from pymilvus import MilvusClient
    except ImportError as error:
        raise InputError(
            "backend milvus needs pymilvus: pip install 'rag-reliability[milvus]'"
        ) from error
    if "://" not in uri:
        if not uri.endswith(".db"):
            raise InputError(f"milvus_uri {uri!r}: expected http(s)://host:port or a file *.db")
        Path(uri).parent.mkdir(parents=True, exist_ok=True)
    # What goes wrong comes as an exception; its own log would add a traceback.
    logging.getLogger("pymilvus").setLevel(logging.CRITICAL)
    token = os.environ.get("MILVUS_TOKEN", "")
    with _asking(uri):
        return MilvusClient(
            uri, token=token, timeout=timeout, dedicated=True, **({} if "://" in uri else _QUIET)
        )


class MilvusIndex:
    """A collection with a document in each row: docno (key), docid, source type, vector.

    The source type is the partition key, so a search of one type reads that type's segments
    only. The index is FLAT: the server compares every vector, so pools are those of
    ``PartitionedIndex``: candidates by float32 similarity, then the same arithmetic in float64 on
    the vectors that the server returns. Not promised: ties beyond ``MOST`` documents of a type,
    and reading while others write (reads are strongly consistent, but not a snapshot).
    """

    def __init__(self, client: Any, uri: str, name: str, dim: int, labels: Sequence[str]) -> None:
        self._client, self._uri, self.name = client, uri, name
        self.dim = dim
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
        client = _client(uri, timeout)
        with _asking(uri):
            if not client.has_collection(full):
                _create(client, full, dim)
            client.load_collection(full)
            fields = client.describe_collection(full)["fields"]
        if {f["name"] for f in fields} != {"docno", "docid", "source_type", "vector"}:
            raise InputError(f"Milvus at {uri}: collection {full!r} is not ours: drop it")
        return cls(client, uri, full, dim, known)

    @property
    def n_docs(self) -> int:
        """Documents in the collection now."""
        return self._count("docid >= 0")

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
        step = max(1, _BYTES // (4 * self.dim))
        for start in range(0, len(rows), step):
            own = slice(start, start + step)
            block = np.ascontiguousarray(rows[own])
            check_norms(block, "doc_vecs", start)
            columns = zip(docnos[own], docids[own], labels[own], block, strict=True)
            data = [
                {"docno": str(n), "docid": int(d), "source_type": str(t), "vector": v}
                for n, d, t, v in columns
            ]
            with _asking(self._uri):
                self._client.upsert(self.name, data)

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
            if self._count(f"docid >= {start} and docid < {stop}") == stop - start:
                continue
            docids, own = np.arange(start, stop), slice(start, stop)
            self.upsert(docnos[own], docids, labels[own], vectors[own])
            written += stop - start
        if written:
            with _asking(self._uri):
                self._client.flush(self.name)
        return written

    def search(self, query_vecs: np.ndarray, depth: int) -> Pool:
        """Each source type's own ``depth`` most similar documents: see ``backend.Backend``.

        Raises: InputError also for a depth beyond ``MOST`` documents of one type.
        """
        queries = checked_queries(query_vecs, self.dim, depth)
        parts = [_Part(self, label, self._count(_of(label))) for label in self.labels]
        found = [nearest(part, queries, depth) for part in parts if part.size]
        if not found:
            raise InputError(f"Milvus at {self._uri}: collection {self.name!r} is empty: load it")
        return merged(found, len(queries))

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _count(self, where: str) -> int:
        with _asking(self._uri):
            rows = self._client.query(
                self.name, filter=where, output_fields=["count(*)"], consistency_level="Strong"
            )
        return int(rows[0]["count(*)"])

    def hits(self, queries: np.ndarray, where: str, count: int) -> list[list[dict[str, Any]]]:
        """What the server finds for each query, best first."""
        found: list[list[dict[str, Any]]] = []
        for start in range(0, len(queries), _TOPICS):
            with _asking(self._uri):
                found += self._client.search(
                    self.name,
                    data=list(queries[start : start + _TOPICS]),
                    filter=where,
                    limit=count,
                    output_fields=["docid"],
                    search_params={"metric_type": "IP"},
                    consistency_level="Strong",
                )
        return found

    def vectors(self, docids: np.ndarray) -> np.ndarray:
        """Stored vectors float32 (m, dim) of ascending distinct docids (m,)."""
        out = np.empty((len(docids), self.dim), dtype=np.float32)
        step = max(1, min(MOST, _BYTES // (4 * self.dim)))
        for start in range(0, len(docids), step):
            own = docids[start : start + step]
            with _asking(self._uri):
                rows = self._client.query(
                    self.name,
                    filter=f"docid in {own.tolist()}",
                    output_fields=["docid", "vector"],
                    consistency_level="Strong",
                )
            if len(rows) != len(own):
                raise InputError(
                    f"Milvus at {self._uri}: collection {self.name!r} changed, "
                    "or holds a docid twice"
                )
            out[start + np.searchsorted(own, [r["docid"] for r in rows])] = [
                r["vector"] for r in rows
            ]
        return out


@dataclass(frozen=True)
class _Part:
    """One source type of a collection; rows are docids."""

    index: MilvusIndex
    label: str
    size: int

    def fetch(self, queries: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """See ``pools.Part``."""
        if count > MOST:
            raise InputError(f"a pool of {count} documents of {self.label!r}: Milvus gives {MOST}")
        found = self.index.hits(queries, _of(self.label), count)
        sims = np.full((len(queries), count), -np.inf, dtype=np.float32)
        rows = np.full((len(queries), count), -1, dtype=np.int64)
        for topic, hits in enumerate(found):
            sims[topic, : len(hits)] = [hit["distance"] for hit in hits]
            rows[topic, : len(hits)] = [hit["entity"]["docid"] for hit in hits]
        return sims, rows

    def sims(self, queries: np.ndarray, topics: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """See ``pools.Part``; each vector is fetched once, however many topics it is near."""
        docids, at = np.unique(rows, return_inverse=True)
        stored = self.index.vectors(docids)
        return inner(queries, topics, stored.__getitem__, at)


def _of(label: str) -> str:
    return f"source_type == {json.dumps(label, ensure_ascii=False)}"


def _create(client: Any, name: str, dim: int) -> None:
    from pymilvus import DataType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("docno", DataType.VARCHAR, is_primary=True, max_length=1024)
    schema.add_field("docid", DataType.INT64)
    schema.add_field("source_type", DataType.VARCHAR, max_length=256, is_partition_key=True)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dim)
    indexes = client.prepare_index_params()
    indexes.add_index("vector", index_type="FLAT", metric_type="IP")
    indexes.add_index("docid", index_type="INVERTED")
    client.create_collection(name, schema=schema, index_params=indexes, consistency_level="Strong")
