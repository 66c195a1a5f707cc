"""Rows of the public sets that come in no corpus layout, each checked as it is read."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from rag_reliability.datasets.lines import json_lines, shown, text_lines
from rag_reliability.datasets.schema import Name, Text
from rag_reliability.records import InputError

Verdict = Literal["Supports", "Refutes", "Neutral"]
Answer = Literal["yes", "no"]


class _Raw(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class EvidenceRow(_Raw):
    """One judged pair of HealthVer: what a passage says of a claim."""

    claim: Text
    evidence: Text
    label: Verdict


class StudyRow(_Raw):
    """One question of PubMedQA: an abstract without its conclusion, the conclusion, the answer."""

    id: Name
    question: Text
    passages: list[Text]
    conclusion: Text
    answer: Literal["yes", "no", "maybe"]


_RowT = TypeVar("_RowT", bound=_Raw)


def read_studies(path: Path) -> tuple[StudyRow, ...]:
    """PubMedQA's questions from a JSON Lines file.

    Raises InputError for a missing or malformed field.
    """
    return tuple(_checked(StudyRow, row, where) for where, row in json_lines(path))


def read_evidence(path: Path) -> dict[str, dict[str, Verdict]]:
    """HealthVer's verdicts as ``verdicts[claim][passage]``, runs of spaces as one.

    A pair that was judged both Supports and Refutes is left out; one judged Neutral besides takes
    the other verdict.

    Raises InputError for a missing or malformed field.
    """
    found: dict[str, dict[str, set[Verdict]]] = {}
    for where, values in _csv_rows(path):
        row = _checked(EvidenceRow, values, where)
        claim, passage = " ".join(row.claim.split()), " ".join(row.evidence.split())
        found.setdefault(claim, {}).setdefault(passage, set()).add(row.label)
    return {
        claim: {p: min(v, key=_LAST.__eq__) for p, v in passages.items() if not v >= _BOTH}
        for claim, passages in found.items()
    }


def majority(verdicts: Mapping[str, Verdict], at_least: int) -> Answer | None:
    """Whether most of a claim's verdicts support it; None at a tie or below ``at_least`` of them.

    Neutral ones do not count.
    """
    counts = Counter(verdicts.values())
    supports, refutes = counts["Supports"], counts["Refutes"]
    if supports + refutes < at_least or supports == refutes:
        return None
    return "yes" if supports > refutes else "no"


_BOTH = {"Supports", "Refutes"}
_LAST = "Neutral"


def _csv_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    at = f"{path}:1"

    def lines() -> Iterator[str]:
        nonlocal at
        for where, text in text_lines(path):
            at = where
            yield f"{text}\n"

    try:
        for row in csv.DictReader(lines(), restkey="rest"):
            yield at, {name: value for name, value in row.items() if value is not None}
    except csv.Error as error:
        raise InputError(f"{at}: not CSV: {error}") from error


def _checked(kind: type[_RowT], values: Mapping[str, Any], where: str) -> _RowT:
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        message = f"{where}: field {field!r}: {first['msg'].removeprefix('Value error, ')}"
        got = "" if first["type"] == "missing" else f", got {shown(first['input'])}"
        raise InputError(message + got) from error
