"""Rule-based changes to English text: contradict it, change its numbers, say it a little otherwise.

Rules over words, no parser: they miss much, but what they change is changed in a known way.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from rag_reliability.reliability.wordlists import (
    OPENINGS,
    OPPOSITES,
    PAST,
    STARTS,
    SUBORDINATORS,
    SYNONYMS,
    VERBS,
)
from rag_reliability.text import sentences

_NEGATIONS = re.compile(
    r"\b(?:not|no|none|never|neither|nor|nobody|nothing|rarely|seldom|hardly|scarcely|cannot)\b"
    r"|n[’']t\b",
    re.IGNORECASE,
)
# "not only … but also" and "whether or not" deny nothing.
_IDIOMS = re.compile(r"\bnot (?:only|just|merely|necessarily)\b|\bor not\b", re.IGNORECASE)

_UNDO: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), new)
    for pattern, new in (
        (r"\bcan(?:not| not|['’]t)\b", "can"),
        (r"\bwon['’]t\b", "will"),
        (r"\b(\w+)n['’]t\b", r"\1"),
        (r"\b(is|are|was|were|be|been|do|does|did|has|have|had) not\b", r"\1"),
        (r"\b(could|will|would|should|may|might|must) not\b", r"\1"),
        (r"\bneither\b(?!.*\bnor\b)", "both"),
        (r"\bnever\b", "often"),
        (r"\b(?:rarely|seldom)\b", "often"),
        (r"\bnone\b", "most"),
        (r"\bno (?=longer\b|more\b)", "still "),
        (r"\bno\b(?! one\b)", "some"),
    )
)
_ANSWER = re.compile(r"(yes|no)([,.:;]\s+)", re.IGNORECASE)
_NEITHER_NOR = re.compile(r"\bneither\b(.+?)\bnor\b", re.IGNORECASE)

_AUXILIARY = re.compile(
    r"\b(?:(is|are|was|were|could|will|would|should|must|does|did)"
    r"|(can|may|might)"
    r"|((?:has|have|had)(?= (?:been|shown|found|become|led|\w+ed)\b)))\b(?! (?:\w+ )?not\b)(?!-)",
    re.IGNORECASE,
)
_ACTIVE = re.compile(rf"(?<=[a-z] )\b({'|'.join(VERBS)})\b(?! by\b)")

_OPPOSABLE = re.compile(rf"(?<!-)\b({'|'.join(OPPOSITES)})\b(?!-)", re.IGNORECASE)

# Not the digits of names (COVID-19, B12, T2), of dates, decimals' tails or citation marks.
_NUMBER = re.compile(
    r"(?<![\w.,\-–\[/])(\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)(?![\w\]/]|[.,\-–]\d|-\w)"
)

_SYNONYM = re.compile(rf"\b({'|'.join(SYNONYMS)})\b", re.IGNORECASE)


def negate(sentence: str) -> str | None:
    """The sentence with its one negation taken out, or one put in; None where no rule applies.

    With no negation: "not" after the first auxiliary of a main clause ("can", "may" and "might"
    become "cannot", since "may not" does not deny "may"), or "does not" before a known verb. An
    opening "Yes," or "No," is turned with the rest.
    """
    if opening := _ANSWER.match(sentence):
        rest = negate(sentence[opening.end() :])
        turned = {"yes": "No", "no": "Yes"}[opening[1].lower()]
        return None if rest is None else f"{turned}{opening[2]}{rest}"
    if _IDIOMS.search(sentence) or sentence.rstrip().endswith("?"):
        return None
    if _NEITHER_NOR.search(sentence) and len(_NEGATIONS.findall(sentence)) == 2:
        return _NEITHER_NOR.sub(lambda m: _like(m[0], "both") + m[1] + "and", sentence, count=1)
    found = _NEGATIONS.findall(sentence)
    if len(found) > 1:
        return None
    return _without_negation(sentence) if found else _with_negation(sentence)


def swap_antonym(sentence: str) -> str | None:
    """The sentence with one word turned into its opposite; None where none is known."""
    if sentence.rstrip().endswith("?") or not _OPPOSABLE.search(sentence):
        return None
    return _OPPOSABLE.sub(lambda m: _like(m[0], OPPOSITES[m[0].lower()]), sentence, count=1)


def change_numbers(text: str, rng: np.random.Generator) -> str | None:
    """The text with every free-standing number changed; None where there is none.

    A percentage p becomes 100 − p (10 for p = 50), another number 3, 5 or 10 times itself (10 for
    0). Years (1900 to 2099) and the digits of names, such as COVID-19 or B12, stay.
    """
    changed = _NUMBER.sub(lambda m: _other_number(m, rng), text)
    return None if changed == text else changed


def contradict(text: str, rng: np.random.Generator) -> str | None:
    """The text with each sentence contradicted once; None where no sentence could be.

    One change for each sentence, as two would cancel out: its negation, else an antonym, else its
    numbers. Questions stay.
    """
    rules: tuple[Callable[[str], str | None], ...] = (
        negate,
        swap_antonym,
        lambda sentence: change_numbers(sentence, rng),
    )
    before = sentences(text)
    after = [next((new for rule in rules if (new := rule(s)) is not None), s) for s in before]
    return " ".join(after) if after != before else None


def reword(text: str, rng: np.random.Generator, rate: float = 0.5) -> str:
    """A near copy: some words for their synonyms, and a phrase before one sentence.

    rate: share of the known words that are replaced. The result differs from ``text``.
    """
    swapped = _SYNONYM.sub(
        lambda m: _like(m[0], SYNONYMS[m[0].lower()]) if rng.random() < rate else m[0], text
    )
    pieces = sentences(swapped) or [swapped]
    at, opening = int(rng.integers(len(pieces))), OPENINGS[int(rng.integers(len(OPENINGS)))]
    pieces[at] = f"{opening} {_inside(pieces[at])}"
    return " ".join(pieces)


def _without_negation(sentence: str) -> str | None:
    for pattern, new in _UNDO:
        if match := pattern.search(sentence):
            put = match.expand(new)
            return sentence[: match.start()] + _like(match[0], put) + sentence[match.end() :]
    return None


def _with_negation(sentence: str) -> str | None:
    for match in _AUXILIARY.finditer(sentence):
        if _subordinate(sentence[: match.start()]):
            continue
        plain, modal, perfect = match.groups()
        put = _like(match[0], "cannot") if modal else f"{plain or perfect} not"
        return sentence[: match.start()] + put + sentence[match.end() :]
    for match in _ACTIVE.finditer(sentence):
        if not _subordinate(sentence[: match.start()]):
            verb = match[0]
            put = f"{'did' if verb in PAST else 'does'} not {VERBS[verb]}"
            return sentence[: match.start()] + put + sentence[match.end() :]
    return None


def _subordinate(before: str) -> bool:
    """Whether what stands before an auxiliary is empty (a question) or opens a clause aside."""
    words = re.findall(r"\w+", re.split(r"[,;:]", before)[-1].lower())
    aside = [i for i, word in enumerate(words) if word in SUBORDINATORS]
    # A clause on the side that has its own auxiliary is over: the next one is the main clause's.
    own = bool(aside) and not _AUXILIARY.search(" ".join([*words[aside[-1] :], "."]))
    return not words or (own and aside[-1] >= len(words) - 4)


def _other_number(match: re.Match[str], rng: np.random.Generator) -> str:
    written = match[0]
    value = float(written.replace(",", ""))
    if re.fullmatch(r"(?:19|20)\d\d", written):
        return written
    digits = len(written.partition(".")[2])
    after = match.string[match.end() : match.end() + 9].lstrip().lower()
    if after.startswith(("%", "per cent", "percent")) and value <= 100:
        new = 10.0 if value == 50 else 100 - value
    else:
        new = value * (3, 5, 10)[int(rng.integers(3))] or 10.0
    return f"{new:,.{digits}f}" if "," in written else f"{new:.{digits}f}"


def _like(old: str, new: str) -> str:
    """``new`` with a capital where ``old`` has one."""
    return new[0].upper() + new[1:] if old[:1].isupper() else new


def _inside(sentence: str) -> str:
    """The sentence as it reads after an opening: no capital, unless it may be a name."""
    first = re.match(r"\w+", sentence)
    known = first is not None and first[0].lower() in STARTS
    return sentence[0].lower() + sentence[1:] if known else sentence
