"""What all adapters can be told, and the one way from documents' metadata to an order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict

from rag_reliability.experiment.candidates import (
    Order,
    PriorTable,
    prior_table,
    rank_candidates,
)


def not_installed(distribution: str, extra: str) -> ImportError:
    """What to say when an adapter's library is missing."""
    return ImportError(f"needs the library {distribution} (extra {extra!r} of rag-reliability)")


class Settings(BaseModel):
    """How an adapter ranks, and where it finds what it needs in a document's metadata.

    rule, priors, unknown_prior, window, rule_settings: as in ``rank_candidates``. spread: of the
    priors' file. source_type_field, verified_field, source_field: names in the metadata. A field
    that a document lacks counts as unknown type, not verified, no publisher.

    Raises: ValueError for an unknown name, an unknown rule, a prior table that cannot be read.
    """

    model_config = ConfigDict(extra="forbid")

    rule: str = "source_aware"
    priors: dict[str, float] | str | None = None
    spread: str = "current"
    unknown_prior: float | None = None
    window: int | None = None
    rule_settings: dict[str, Any] | None = None
    source_type_field: str = "source_type"
    verified_field: str = "verified"
    source_field: str = "source"

    def model_post_init(self, context: Any, /) -> None:
        """Refuse bad settings when the adapter is made, not at its first question."""
        super().model_post_init(context)
        self.arranged([], [], [], None)

    @cached_property
    def table(self) -> PriorTable:
        """The prior table, read once."""
        return prior_table(self.priors, self.spread)

    def arranged(
        self,
        sims: Sequence[Any],
        metadata: Sequence[Mapping[str, Any]],
        docnos: Sequence[str],
        k: int | None,
    ) -> Order:
        """``rank_candidates`` of n documents by their metadata; k: how many to keep (None: all).

        Raises: InputError naming the document and what is wrong with it.
        """
        return rank_candidates(
            sims,
            [_given(m, self.source_type_field) for m in metadata],
            [_given(m, self.verified_field) for m in metadata],
            priors=self.table,
            rule=self.rule,
            k=k,
            window=self.window,
            sources=[_given(m, self.source_field) for m in metadata],
            docnos=docnos,
            unknown_prior=self.unknown_prior,
            rule_settings=self.rule_settings,
        )


def _given(metadata: Mapping[str, Any], name: str) -> Any:
    """The field's value; None where a table holds NaN or nothing."""
    value = metadata.get(name)
    return None if isinstance(value, float) and math.isnan(value) else value
