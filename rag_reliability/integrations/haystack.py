"""A Haystack ranker: put it after any retriever that scores by similarity."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rag_reliability.integrations.settings import Settings, not_installed

try:
    from haystack import Document, component, default_from_dict, default_to_dict
except ImportError as error:
    raise not_installed("haystack-ai", "haystack") from error


@component
class SourceReliabilityRanker:
    """Ranks documents by similarity and the reliability of their source.

    Similarity is the document's ``score``; source type, verification and publisher are read from
    ``meta``. Documents come back as copies with the rule's score.
    """

    def __init__(self, top_k: int | None = None, **settings: Any) -> None:
        """top_k: how many to return (None: all); settings: the names of ``Settings``.

        Raises: ValueError for a setting that is unknown or out of range.
        """
        self.top_k = top_k
        self.settings = Settings(**settings)

    def to_dict(self) -> dict[str, Any]:
        """The component as a dictionary, of settings that are not the default."""
        given = self.settings.model_dump(exclude_defaults=True)
        return default_to_dict(self, top_k=self.top_k, **given)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> SourceReliabilityRanker:
        """The component that ``to_dict`` described."""
        return default_from_dict(cls, data)

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document], top_k: int | None = None) -> dict[str, list[Document]]:
        """The documents in the order of the rule.

        Raises: InputError for a document without score, or without a known source type.
        """
        ranked = self.settings.arranged(
            [d.score for d in documents],
            [d.meta for d in documents],
            [d.id for d in documents],
            self.top_k if top_k is None else top_k,
        )
        pairs = zip(ranked.order.tolist(), ranked.scores.tolist(), strict=True)
        return {"documents": [replace(documents[i], score=score) for i, score in pairs]}
