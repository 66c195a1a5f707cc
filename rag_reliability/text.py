"""Sentences and citation marks: the little text handling that several stages share."""

from __future__ import annotations

import re
import unicodedata

import sentencex

from rag_reliability.language import Words

_CITATION = re.compile(r"\s*\[\s*\d+(?:\s*[,;–-]\s*\d+)*\s*\]")
_NUMBER = re.compile(r"(\d+)(?:\s*[–-]\s*(\d+))?")


_AFTER_STOP = re.compile(rf"(?<=[.!?])((?:{_CITATION.pattern})+)$")


def sentences(text: str, language: str = "en") -> list[str]:
    """Non-empty sentences of ``text``, in order, citation marks kept with their sentence.

    A mark after a full stop belongs to the sentence before it, unless the text opens with a mark:
    then the writer puts marks before their sentences.
    """
    merged: list[str] = []
    for piece in sentencex.segment(language, text):
        piece = piece.strip()
        if merged and piece and not strip_citations(piece).strip(" ."):
            merged[-1] = f"{merged[-1]} {piece}"
        elif piece:
            merged.append(piece)
    return _marks_first(merged) if _CITATION.match(text.strip()) else merged


def _marks_first(found: list[str]) -> list[str]:
    """Sentences with the marks that follow their full stop moved to the next one."""
    moved, carried = [], ""
    for number, sentence in enumerate(found, start=1):
        mark = _AFTER_STOP.search(sentence) if number < len(found) else None
        kept = sentence[: mark.start()] if mark else sentence
        moved.append(f"{carried} {kept}".strip())
        carried = mark[1].strip() if mark else ""
    return moved


def parse_citations(text: str, n_passages: int) -> tuple[int, ...]:
    """Passage numbers cited in ``text`` as [2], [1, 3] or [1-3], within 1..n_passages, sorted."""
    cited: set[int] = set()
    for mark in _CITATION.findall(text):
        for first, last in _NUMBER.findall(mark):
            low, high = int(first), int(last or first)
            cited.update(range(low, min(high, n_passages) + 1))
    return tuple(sorted(n for n in cited if 1 <= n <= n_passages))


def strip_citations(text: str) -> str:
    """``text`` without its citation marks."""
    return _CITATION.sub("", text).strip()


def plain(text: str) -> str:
    """``text`` without control characters (newline and tab kept), as documents are hostile."""
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf"))


_AUXILIARY = (
    *("is", "are", "am", "was", "were", "do", "does", "did", "has", "have", "had"),
    *("can", "could", "will", "would", "shall", "should", "may", "might", "must"),
)
_YES_NO = re.compile(
    rf"(?:{'|'.join(_AUXILIARY)})(?:n['’]t)?\s+(?!.*\bor\s+(?:{'|'.join(_AUXILIARY)})\b)",
    re.IGNORECASE | re.DOTALL,
)
_OPENING = re.compile(
    r"(?:.*[.!;:]\s+)?(?:(?:and|but|so|also|then|please|hi|hello)[,\s]+)*", re.DOTALL
)


def is_yes_no(question: str, words: Words | None = None) -> bool:
    """Whether a question reads as a yes/no question: in English it opens with an auxiliary verb.

    Looks at the last sentence. "Is it A or is it B?" is none; "Can I take A or B?" counts as one.
    words: another language's, whose ``yes_no`` the last sentence must open with; without one no
    question reads so.
    """
    if words:
        asked = sentences(question.strip(), words.splitter)[-1:]
        return bool(words.yes_no and asked and re.match(words.yes_no, asked[0], re.IGNORECASE))
    last = sentences(question.strip())[-1:]
    if not last:
        return False
    rest = _OPENING.sub("", last[0], count=1)
    return bool(_YES_NO.match(rest))
