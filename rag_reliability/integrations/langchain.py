"""A LangChain document compressor: ranks what a retriever found, before it is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import ConfigDict

from rag_reliability.integrations.settings import Settings, not_installed

try:
    from langchain_core.callbacks import Callbacks
    from langchain_core.documents import BaseDocumentCompressor, Document
    from langchain_core.embeddings import Embeddings
except ImportError as error:
    raise not_installed("langchain-core", "langchain") from error


class SourceReliabilityCompressor(Settings, BaseDocumentCompressor):
    """Ranks documents by similarity and the reliability of their source.

    LangChain's vector stores give their retrievers documents without scores. So similarity is
    computed anew with ``embeddings``, as the cosine of question and text, or without ``embeddings``
    read from the metadata under ``score_field``. top_n: how many to keep (None: all); the other
    fields are those of ``Settings``. Documents come back as copies, with the rule's score under
    ``relevance_score``.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    embeddings: Embeddings | None = None
    score_field: str = "score"
    top_n: int | None = None

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """The documents in the order of the rule.

        Raises: InputError for a document without similarity, or without a known source type.
        """
        ranked = self.arranged(
            self._sims(documents, query),
            [d.metadata for d in documents],
            [d.id or f"#{i:06d}" for i, d in enumerate(documents)],
            self.top_n,
        )
        pairs = zip(ranked.order.tolist(), ranked.scores.tolist(), strict=True)
        return [_scored(documents[i], score) for i, score in pairs]

    def _sims(self, documents: Sequence[Document], query: str) -> Sequence[Any]:
        if self.embeddings is None or not documents:
            return [d.metadata.get(self.score_field) for d in documents]
        asked = np.asarray(self.embeddings.embed_query(query), dtype=np.float64)
        texts = [d.page_content for d in documents]
        found = np.asarray(self.embeddings.embed_documents(texts), dtype=np.float64)
        norms = np.linalg.norm(found, axis=1) * np.linalg.norm(asked)
        sims: list[float] = (found @ asked / np.maximum(norms, np.finfo(float).tiny)).tolist()
        return sims


def _scored(document: Document, score: float) -> Document:
    metadata = {**document.metadata, "relevance_score": score}
    return document.model_copy(update={"metadata": metadata})
