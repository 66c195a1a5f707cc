"""A collection on a Milvus server or in a file, and what is asked of it. Only pymilvus here."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rag_reliability.records import InputError

MOST = 16_384
"""Documents that Milvus gives at most for one query: as deep as a pool of a type can be."""
BYTES = 8 << 20
"""Vectors sent or fetched in one message; servers refuse messages of 64 MB by default."""
TOPICS = 128
"""Queries sent in one message."""
_QUIET = {"grpc_options": {"grpc.keepalive_permit_without_calls": False}}
"""Milvus Lite hangs up on a client that asks every ten seconds whether it is there."""
_FIELDS = {"docno", "docid", "source_type", "vector"}


@contextmanager
def asking(uri: str) -> Iterator[None]:
    """Turn what Milvus says into one line. Raises: InputError."""
    from pymilvus.exceptions import MilvusException

    try:
        yield
    except MilvusException as error:
        reason = " ".join(str(error.message or error).split())[:200]
        raise InputError(f"Milvus at {uri}: {reason}") from error


def connected(uri: str, timeout: float) -> Any:
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
    with asking(uri):
        return MilvusClient(
            uri, token=token, timeout=timeout, dedicated=True, **({} if "://" in uri else _QUIET)
        )


@dataclass(frozen=True)
class Collection:
    """A collection of documents with vectors of ``dim`` numbers, over an open connection."""

    client: Any
    uri: str
    name: str
    dim: int

    @classmethod
    def open(cls, uri: str, name: str, dim: int, timeout: float) -> Collection:
        """The collection at ``uri``, made if it is not there; a failure closes the connection.

        Raises: InputError, one line: no server, pymilvus missing, a foreign collection there.
        """
        client = connected(uri, timeout)
        try:
            with asking(uri):
                if not client.has_collection(name):
                    _create(client, name, dim)
                client.load_collection(name)
                fields = client.describe_collection(name)["fields"]
            if {f["name"] for f in fields} != _FIELDS:
                raise InputError(f"Milvus at {uri}: collection {name!r} is not ours: drop it")
        except BaseException:
            client.close()
            raise
        return cls(client, uri, name, dim)

    def close(self) -> None:
        """Close the connection."""
        self.client.close()

    def upsert(self, rows: list[dict[str, Any]]) -> None:
        """Write documents, over those of the same docno."""
        with asking(self.uri):
            self.client.upsert(self.name, rows)

    def flush(self) -> None:
        """Have the server keep what was written."""
        with asking(self.uri):
            self.client.flush(self.name)

    def count(self, where: str) -> int:
        """Documents that a filter lets through, now."""
        with asking(self.uri):
            rows = self.client.query(
                self.name, filter=where, output_fields=["count(*)"], consistency_level="Strong"
            )
        return int(rows[0]["count(*)"])

    def hits(self, queries: np.ndarray, where: str, count: int) -> list[list[dict[str, Any]]]:
        """What the server finds for each query, best first."""
        found: list[list[dict[str, Any]]] = []
        for start in range(0, len(queries), TOPICS):
            with asking(self.uri):
                found += self.client.search(
                    self.name,
                    data=list(queries[start : start + TOPICS]),
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
        step = max(1, min(MOST, BYTES // (4 * self.dim)))
        for start in range(0, len(docids), step):
            own = docids[start : start + step]
            with asking(self.uri):
                rows = self.client.query(
                    self.name,
                    filter=f"docid in {own.tolist()}",
                    output_fields=["docid", "vector"],
                    consistency_level="Strong",
                )
            if len(rows) != len(own):
                raise InputError(
                    f"Milvus at {self.uri}: collection {self.name!r} changed, "
                    "or holds a docid twice"
                )
            out[start + np.searchsorted(own, [r["docid"] for r in rows])] = [
                r["vector"] for r in rows
            ]
        return out


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
