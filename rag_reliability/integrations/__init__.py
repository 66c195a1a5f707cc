"""Source-aware ranking inside other people's pipelines, and results for other people's tools.

``rank_candidates`` ranks plain arrays; ``haystack``, ``llamaindex``, ``langchain`` and
``pyterrier`` are thin adapters over it, each of which needs its library (an extra of the same
name). ``exports`` writes and reads what other tools take. Importing this package loads none of
them. Documents are data to the adapters: their texts are passed on and never looked at.
"""

from __future__ import annotations

from typing import Any

__all__ = ["Order", "PriorTable", "prior_table", "rank_candidates"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rag_reliability.experiment import candidates

    return getattr(candidates, name)
