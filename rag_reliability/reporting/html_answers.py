"""Answers as HTML: sentences by how far they are supported, citations linked to passages."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from rag_reliability.reporting.html import records, render
from rag_reliability.reporting.style import need

_SIGNS = {"supported": "✓", "unclear": "?", "unsupported": "✗", "abstained": "–"}
UNSCORED = "unscored"
_MARK = re.compile(r"(\[\s*\d+(?:\s*[,;–-]\s*\d+)*\s*\])")
_NUMBER = re.compile(r"(\d+)")


@dataclass(frozen=True, eq=False)
class ShownAnswer:
    """An answer and the passages it was given.

    sentences: sentence, band; support, best_passage (from 0, -1 for none) and flags if scored.
    passages: docno, title, source_type, adversarial; text, verified and edited if known.
    """

    name: str
    sentences: pd.DataFrame
    passages: pd.DataFrame


def answers_html(
    answers: Sequence[ShownAnswer], *, query: str = "", note: str = "", styled: bool = True
) -> str:
    """Answers side by side; ``note`` says what a reader should know before reading them."""
    return render(
        "answers",
        answers=[_shown(answer, i) for i, answer in enumerate(answers)],
        query=query,
        note=note,
        styled=styled,
    )


def _shown(answer: ShownAnswer, position: int) -> dict[str, Any]:
    need(answer.sentences, "sentence", "band")
    passages = [{"edited": "", "text": ""} | row for row in records(answer.passages)]
    return {
        "name": answer.name,
        "id": _identity(answer, position),
        "sentences": [_sentence(row, passages) for row in answer.sentences.to_dict("records")],
        "passages": passages,
    }


def _identity(answer: ShownAnswer, position: int) -> str:
    """Name of the answer's anchors: the same for the same answer, another for any other."""
    docnos = answer.passages["docno"] if len(answer.passages) else []
    words = [answer.name, str(position), *answer.sentences["sentence"], *docnos]
    return "rr" + hashlib.sha256("\0".join(map(str, words)).encode()).hexdigest()[:10]


def _sentence(row: dict[Any, Any], passages: list[dict[str, Any]]) -> dict[str, Any]:
    n_passages = len(passages)
    best = int(row.get("best_passage", -1)) + 1
    support = row.get("support")
    flags = row.get("flags", ())
    return {
        "pieces": pieces(str(row["sentence"]), n_passages),
        "band": row["band"] if row["band"] in _SIGNS else UNSCORED,
        "sign": _SIGNS.get(row["band"], ""),
        "support": None if support is None or pd.isna(support) else float(support),
        "best": best if 1 <= best <= n_passages else None,
        "lied": 1 <= best <= n_passages and bool(passages[best - 1]["adversarial"]),
        "flags": ", ".join(flags) if isinstance(flags, list | tuple) else "",
    }


def pieces(text: str, n_passages: int) -> list[dict[str, Any]]:
    """The text in pieces; those that cite one of the passages carry its number, the others None."""
    found: list[dict[str, Any]] = []
    for i, part in enumerate(_MARK.split(text)):
        for j, piece in enumerate(_NUMBER.split(part) if i % 2 else [part]):
            cites = i % 2 and j % 2 and len(piece) < 6 and 1 <= int(piece) <= n_passages
            if piece:
                found.append({"text": piece, "number": int(piece) if cites else None})
    return found
