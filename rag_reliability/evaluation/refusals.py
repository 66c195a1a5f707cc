"""Which texts say nothing: empty ones, and those that decline to answer."""

from __future__ import annotations

import re

from rag_reliability.language import Words
from rag_reliability.text import sentences, strip_citations

_REFUSALS = re.compile(
    r"\b(?:i|we) (?:do not|don['’]t|cannot|can['’]t|am unable to|are unable to|am not able to)"
    r" (?:know|answer|provide|determine|help|say|find)\b"
    r"|\b(?:passages?|sources?|context|documents?|information provided)"
    r" (?:do not|does not|don['’]t|doesn['’]t)"
    r" (?:contain|provide|mention|include|address|answer|give|say|state)\b"
    r"|\b(?:cannot|can['’]t) be (?:answered|determined) (?:from|based on|by)\b"
    r"|\b(?:not enough|insufficient|no) (?:relevant )?information\b.{0,60}"
    r"\b(?:passages?|sources?|context|answer|provided)\b"
    r"|^(?:i['’]?m |i am )?sorry\b",
    re.IGNORECASE,
)


def has_word(text: str) -> bool:
    """Whether there is a letter or digit to read."""
    return any(c.isalnum() for c in text)


def answer_sentences(text: str, words: Words | None = None) -> list[str]:
    """Sentences with at least one word, citation marks kept; ``words`` None: English."""
    found = sentences(text, words.splitter if words else "en")
    return [s for s in found if has_word(strip_citations(s))]


def abstains(text: str, words: Words | None = None) -> bool:
    """Whether ``text`` is empty or every sentence of it declines to answer.

    words: another language's; without refusals in its list only an empty text abstains.
    """
    declines = words.declines if words else _REFUSALS.search
    return all(declines(s) for s in answer_sentences(text, words))
