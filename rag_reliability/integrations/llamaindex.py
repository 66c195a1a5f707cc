"""A LlamaIndex node postprocessor: ranks what a retriever found, before it is read."""

from __future__ import annotations

from rag_reliability.integrations.settings import Settings, not_installed

try:
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import NodeWithScore, QueryBundle
except ImportError as error:
    raise not_installed("llama-index-core", "llamaindex") from error


class SourceReliabilityPostprocessor(Settings, BaseNodePostprocessor):
    """Ranks nodes by similarity and the reliability of their source.

    top_n: how many to keep (None: all); the other fields are those of ``Settings``. Similarity is
    the node's score; source type, verification and publisher are read from its metadata.
    """

    top_n: int | None = None

    @classmethod
    def class_name(cls) -> str:
        """Name under which LlamaIndex serialises it."""
        return "SourceReliabilityPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        """The nodes in the order of the rule, with its scores.

        Raises: InputError for a node without score, or without a known source type.
        """
        ranked = self.arranged(
            [n.score for n in nodes],
            [n.node.metadata for n in nodes],
            [n.node.node_id for n in nodes],
            self.top_n,
        )
        pairs = zip(ranked.order.tolist(), ranked.scores.tolist(), strict=True)
        return [NodeWithScore(node=nodes[i].node, score=score) for i, score in pairs]
