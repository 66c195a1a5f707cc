"""Which engine searches a study's documents: faiss in this process, or Milvus."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_reliability.config import ExperimentConfig
from rag_reliability.experiment.study import Study
from rag_reliability.records import InputError
from rag_reliability.retrieval.backend import Backend

if TYPE_CHECKING:
    from rag_reliability.retrieval.milvus import MilvusIndex


def index_settings(config: ExperimentConfig) -> dict[str, Any]:
    """What of the config decides how partitions are searched: only what its kind looks at."""
    kinds = {
        "flat": {},
        "ivf": {"nlist": config.index_nlist, "nprobe": config.index_nprobe},
        "hnsw": {"m": config.index_m, "ef_search": config.index_ef_search},
    }
    return {"kind": config.index_kind, **kinds[config.index_kind]}


@contextmanager
def open_backend(study: Study, partition: np.ndarray) -> Iterator[Backend]:
    """The study's documents, while they are searched; the index stage must have been made.

    partition: str (n_docs,), the type each document counts as. Milvus is filled from the saved
    vectors the first time, and where a load broke off; its collection is named after them.

    Raises: InputError, one line, for a corrupt index, no server, or the extra missing.
    """
    folder = study.run_dir / "index"
    if study.config.backend == "milvus":
        index = _milvus(study, folder, partition)
        try:
            yield index
        finally:
            index.close()
    else:
        from rag_reliability.retrieval.index import PartitionedIndex

        yield PartitionedIndex.load(folder)


def _milvus(study: Study, folder: Path, partition: np.ndarray) -> MilvusIndex:
    from rag_reliability.retrieval.milvus import MilvusIndex

    uri = study.config.milvus_uri
    if not uri:
        raise InputError("backend = milvus needs milvus_uri: http(s)://host:port, or a file *.db")
    vectors = np.load(folder / "doc_vecs.npy", mmap_mode="r")
    index = MilvusIndex.open(
        uri if "://" in uri else str(study.path(uri)),
        "rag_reliability",
        dim=vectors.shape[1],
        labels=np.unique(partition).tolist(),
        fingerprint=study.key("index"),
    )
    try:
        index.load(study.corpus.docnos, partition, vectors, progress=True)
    except BaseException:
        index.close()
        raise
    return index
