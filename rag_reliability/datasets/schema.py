"""What one row of documents.jsonl and topics.jsonl must look like."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from rag_reliability.datasets.lines import shown
from rag_reliability.records import Claim, Document, InputError, Topic

CLAIM_SIDES = ("gold", "false")
_LONGEST_NAME = 200
_SURROGATE = re.compile("[\ud800-\udfff]")


def name_problem(value: str) -> str | None:
    """Why ``value`` cannot name a document, topic or system in TREC files, or None."""
    if not value:
        return "must not be empty"
    if len(value) > _LONGEST_NAME:
        return f"has {len(value)} characters, expected at most {_LONGEST_NAME}"
    if " " in value or not value.isprintable():
        return "must not hold spaces or unprintable characters (TREC files split at spaces)"
    return None


def _name(value: str) -> str:
    if problem := name_problem(value):
        raise ValueError(problem)
    return value


def _encodable(value: str) -> str:
    if _SURROGATE.search(value):
        raise ValueError("holds half a surrogate pair, which UTF-8 cannot write")
    return value


def _visible(value: str) -> str:
    if not any(c.isprintable() and not c.isspace() for c in value):
        raise ValueError("is empty: it needs at least one visible character")
    return value


def _reference(value: str) -> str:
    claim_id, _, side = value.rpartition(":")
    if side not in CLAIM_SIDES or name_problem(claim_id):
        raise ValueError("expected a claim's id with :gold or :false after it, like q001-c1:false")
    return value


Name = Annotated[str, AfterValidator(_name)]
Free = Annotated[str, AfterValidator(_encodable)]
Text = Annotated[Free, AfterValidator(_visible)]
# A corpus keeps sources in one fixed-width array: one endless name would cost that width n times.
Short = Annotated[Free, Field(max_length=300)]


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class DocumentRow(_Row):
    """One line of documents.jsonl; ``docno``, ``text`` and ``source_type`` are required."""

    docno: Name
    text: Text
    source_type: Name
    title: Free = ""
    source: Short = ""
    url: Free = ""
    date: Free = ""
    verified: bool = False
    adversarial: bool = False
    claims: list[Annotated[str, AfterValidator(_reference)]] = Field(default_factory=list)
    place: Short = ""

    def document(self) -> Document:
        """The row as a ``Document``."""
        return Document(**{**dict(self), "claims": tuple(self.claims)})


class ClaimRow(_Row):
    """A contrasting pair in a topic's ``claims``."""

    id: Name
    gold: Text
    false: Text


class TopicRow(_Row):
    """One line of topics.jsonl; ``qid`` and ``query`` are required."""

    qid: Name
    query: Text
    stance: Literal["yes", "no"] | None = None
    narrative: Free = ""
    claims: list[ClaimRow] = Field(default_factory=list)

    def topic(self) -> Topic:
        """The row as a ``Topic``."""
        claims = tuple(Claim(c.id, c.gold, c.false) for c in self.claims)
        return Topic(self.qid, self.query, self.stance, self.narrative, claims)


_RowT = TypeVar("_RowT", bound=_Row)


def checked(
    row: type[_RowT], values: Mapping[str, Any], where: str, called: Mapping[str, str] | None = None
) -> _RowT:
    """``values`` as a checked ``row``; ``called`` maps our field names to the file's own.

    Raises InputError naming ``where``, the field, what was expected and what was found.
    """
    try:
        return row.model_validate(dict(values))
    except ValidationError as error:
        raise InputError(f"{where}: {_complaint(row, error, called or {})}") from error


def _complaint(row: type[_Row], error: ValidationError, called: Mapping[str, str]) -> str:
    first = error.errors()[0]
    parts = [str(part) for part in first["loc"]]
    name = ".".join([called.get(parts[0], parts[0]), *parts[1:]])
    if first["type"] == "missing":
        return f"field {name!r} is missing"
    if first["type"] == "extra_forbidden":
        known = row.model_fields if len(parts) == 1 else ClaimRow.model_fields
        return f"unknown field {shown(name)}{did_you_mean(parts[-1], known)}"
    message = first["msg"].removeprefix("Value error, ")
    return f"field {name!r} {message[0].lower()}{message[1:]}, got {shown(first['input'])}"


def did_you_mean(name: str, known: Mapping[str, Any]) -> str:
    """A hint at the end of an error: the nearest of the known names, and all of them."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"{hint}; known: {', '.join(known)}"
