"""What retrieval owes the rest of the study, whoever does the searching."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from rag_reliability.records import Pool


class Backend(Protocol):
    """Documents by partition label, searched by inner product of unit vectors.

    ``PartitionedIndex`` (faiss, in this process) and ``MilvusIndex`` (a file or a cluster).
    """

    dim: int

    @property
    def n_docs(self) -> int:
        """Number of documents."""

    def search(self, query_vecs: np.ndarray, depth: int) -> Pool:
        """Each partition's own ``depth`` most similar documents and what ties with the last.

        query_vecs: float32 (n_topics, dim) unit norm. Similarities are float64, computed from the
        stored float32 vectors, by (-sim, docid); padding: docid -1, sim -inf.

        Raises: InputError for bad vectors or another dimension; ValueError for depth < 1.
        """
