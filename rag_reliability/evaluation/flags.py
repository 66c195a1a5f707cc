"""What a claim says that its passage does not: numbers, names, a negation. Never part of a score.

Lowering the score for such a mismatch lowered it for paraphrases as well, so a reader is told.
"""

from __future__ import annotations

import re

from rag_reliability.evaluation.alignment import clean
from rag_reliability.language import Words

_NUMBER = re.compile(r"(?<![\w.,])(?<![^\W\d_][-–])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\d])")
_ANY_NUMBER = re.compile(r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nor|neither|nobody|nothing|nowhere|cannot|without)\b|n['’]t\b",
    re.IGNORECASE,
)
_SWAPPED = str.maketrans(",.", ".,")
_UNITS = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
    fifteen sixteen seventeen eighteen nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_SPELT = {word: str(n) for n, word in enumerate(_UNITS.split())} | {
    word: str(10 * n) for n, word in enumerate(_TENS.split(), start=2)
}


def flags(
    claim: str, passage: str, span: str | None = None, words: Words | None = None
) -> tuple[str, ...]:
    """What ``claim`` has and its passage lacks: ``number: 40``, ``entity: Boston``, ``negation``.

    Numbers and names are looked for in the whole passage, whatever its letter case; a negation
    is compared with the supporting ``span`` alone (the passage without one), and flagged where one
    side negates and the other does not. Number words to ninety count as numbers, in English
    alone. words: another language's negations and decimal mark.
    """
    said, given = clean(claim), clean(passage)
    found = [f"number: {n}" for n in _missing_numbers(_marked(said, words), _marked(given, words))]
    found += [f"entity: {name}" for name in _missing_names(said, given)]
    denies = words.negates if words else negates
    if denies(said) != denies(clean(span) if span else given):
        found.append("negation")
    return tuple(found)


def _marked(text: str, words: Words | None) -> str:
    """``text`` with numbers as English writes them: 1,000 and 2.5."""
    return text.translate(_SWAPPED) if words and words.decimal == "," else text


def negates(text: str) -> bool:
    """Whether ``text`` holds a word of negation."""
    return bool(_NEGATION.search(text))


def _missing_numbers(claim: str, passage: str) -> list[str]:
    words = {_SPELT[w] for w in _WORD.findall(passage.lower()) if w in _SPELT}
    there = {_plain(n) for n in _ANY_NUMBER.findall(passage)} | words
    asked = [_plain(n) for n in _NUMBER.findall(claim)]
    # "one" is a pronoun more often than a number
    spelt = (w for w in _WORD.findall(claim.lower()) if w in _SPELT and w != "one")
    asked += [_SPELT[w] for w in spelt]
    return [n for n in dict.fromkeys(asked) if n not in there]


def _plain(number: str) -> str:
    """1,000 is 1000, and 2.50 is 2.5."""
    bare = number.replace(",", "")
    return bare.rstrip("0").rstrip(".") if "." in bare else bare.lstrip("0") or "0"


def _missing_names(claim: str, passage: str) -> list[str]:
    there = {_stem(w) for w in _WORD.findall(passage)} | {
        _stem(part) for w in _WORD.findall(passage) for part in re.split(r"[-.]", w)
    }
    return [n for n in dict.fromkeys(_names(claim)) if _stem(n) not in there]


def _names(claim: str) -> list[str]:
    """Words with a capital that no sentence start explains; none where most words have one."""
    words = list(_WORD.finditer(claim))
    capital = [any(c.isupper() for c in w[0]) for w in words]
    if sum(capital) > 0.75 * len(words) and len(words) > 3:
        return []
    names = []
    for i, word in enumerate(words):
        opens = i == 0 or claim[: word.start()].rstrip(" \"'“‘(")[-1:] in ".!?:;"
        inside = any(c.isupper() for c in word[0][1:])
        pronoun = re.fullmatch(r"I(?:['’]\w+)?", word[0])
        if capital[i] and not pronoun and (inside or not opens):
            names.append(word[0])
    return names


def _stem(word: str) -> str:
    """Lower case, without a possessive or plural s."""
    bare = re.sub(r"['’]s?$", "", word.lower())
    return bare[:-1] if len(bare) > 3 and bare.endswith("s") and not bare.endswith("ss") else bare
