"""A taxonomy of source types beside its priors: names, words, colours, who counts as low or high.

All of it is optional: the section ``taxonomy`` of a priors file. Without one the six types of the
study have the names and words they always had, and other types show their own names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from rag_reliability.records import InputError
from rag_reliability.reliability.priors import PriorTables

REFERENCE = "current"
LOW_AT = 0.5
TRUSTED = ("peer_reviewed", "government")
"""The study's high types, where a priors file names them all."""
_MOST_TRUSTED = 2


class TypeWords(BaseModel):
    """How one source type is called and drawn; what is empty is as if it were not there.

    label: in tables and figures. prompt: as the model is told. colour: #RRGGBB. marker: one of
    matplotlib's.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    label: str = ""
    prompt: str = ""
    colour: Annotated[str, Field(pattern=r"^(#[0-9A-Fa-f]{6})?$")] = ""
    marker: Annotated[str, Field(pattern=r"^[osD^v<>pPhH*Xd]?$")] = ""


class _Whom(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    trusted: Annotated[str, Field(min_length=1)]
    doubted: Annotated[str, Field(min_length=1)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    reference: str | None = None
    low_at: Annotated[float, Field(gt=0, le=1)] = LOW_AT
    trusted: tuple[str, ...] = ()
    prompt: _Whom | None = None
    types: dict[str, TypeWords] = {}

    @field_validator("trusted", mode="before")
    @classmethod
    def _list(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True)
class Taxonomy:
    """What is known of source types beside their priors.

    reference: spread in which low tier is told (λ ≤ ``low_at``). trusted: types that adversaries
    claim when they lie. types: words of types that have any. whom: in the prompt that shows
    sources, who is believed more than whom, or None.
    """

    reference: str
    trusted: tuple[str, ...]
    low_at: float = LOW_AT
    types: Mapping[str, TypeWords] = field(default_factory=dict)
    whom: tuple[str, str] | None = None


def load_taxonomy(path: str | Path, tables: PriorTables, spread: str) -> Taxonomy:
    """The taxonomy of a priors file whose ``tables`` are read; ``spread`` is the run's own.

    Raises InputError naming file and field for a malformed section or a type or spread that the
    tables lack.
    """
    raw = yaml.safe_load(Path(path).read_text(encoding="utf-8")).get("taxonomy") or {}
    try:
        section = _Section.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in ("taxonomy", *first["loc"]))
        raise InputError(f"{path}: {where}: {first['msg']}") from error
    known = ", ".join(tables.known_types)
    for kind in (*section.trusted, *section.types):
        if kind not in tables.known_types:
            raise InputError(f"{path}: taxonomy: source type {kind!r} has no prior; known: {known}")
    reference = section.reference or (REFERENCE if REFERENCE in tables.spreads else spread)
    return Taxonomy(
        reference,
        section.trusted or _trusted(tables.table(reference), section.low_at),
        section.low_at,
        section.types,
        (section.prompt.trusted, section.prompt.doubted) if section.prompt else None,
    )


def _trusted(table: Mapping[str, float], low_at: float) -> tuple[str, ...]:
    """The study's high types, or else the two of highest λ; the best one where all are low."""
    if set(TRUSTED) <= set(table):
        return TRUSTED
    ordered = sorted(table, key=lambda kind: -table[kind])
    return tuple(k for k in ordered if table[k] > low_at)[:_MOST_TRUSTED] or tuple(ordered[:1])
