"""Languages as data: prompts and word lists of each, read from ``configs/languages.yaml``.

English's prompts stand in that file; its word lists stand in ``evaluation/``, beside the scores
that were calibrated with them. A list that another language lacks switches off what needs it.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from rag_reliability.files import sha256_bytes, shipped
from rag_reliability.records import InputError

FILE = "configs/languages.yaml"
_SAFE = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Builds plain values only; the one in C in a hundredth of the time, since every command reads."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @field_validator("*", mode="before")
    @classmethod
    def _lists(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value


class AnswerPrompts(_Part):
    """What the model is told when it answers; ``{…}`` is filled in.

    credibility follows ``system`` in the arm that shows sources, source follows each passage there.
    """

    system: str
    credibility: str
    request: str
    question: str
    alone_system: str
    alone_request: str
    source: str
    unknown: str


class StancePrompts(_Part):
    """What the model is told when it says yes or no, and how the two words may be spelt.

    asks: both orders of the two words; ``asks[0]`` is the probe's. hypothesis, with the names of
    the two answers in yes_no, is what NLI models are asked.
    """

    system: str
    passage: str
    according_one: str
    according_many: str
    asks: tuple[str, str]
    yes: tuple[str, ...]
    no: tuple[str, ...]
    hypothesis: str
    yes_no: tuple[str, str]
    claim: str


class Words(_Part):
    """Word lists of a language; what is empty switches off what needs it.

    splitter: sentence splitter's code. function: words without content. negation: words that deny.
    denial: expressions by which prose denies or doubts. refusals: expressions of a refusal to
    answer. yes_no: how a yes/no question opens. decimal: decimal mark.
    """

    splitter: str
    function: str = ""
    negation: str = ""
    denial: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    yes_no: str = ""
    decimal: str = "."

    @field_validator("denial", "refusals")
    @classmethod
    def _expressions(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            try:
                re.compile(text)
            except re.error as error:
                raise ValueError(f"{text!r} is no regular expression: {error}") from error
        return value

    @cached_property
    def function_words(self) -> frozenset[str]:
        """Words without content, lower case."""
        return frozenset(self.function.split())

    @cached_property
    def negations(self) -> frozenset[str]:
        """Words that deny, lower case."""
        return frozenset(self.negation.split())

    def denies(self, text: str) -> bool:
        """Whether ``text`` holds an expression of ``denial``; False where there is none."""
        return _found(self.denial, text)

    def declines(self, text: str) -> bool:
        """Whether ``text`` holds an expression of ``refusals``; False where there is none."""
        return _found(self.refusals, text)

    def negates(self, text: str) -> bool:
        """Whether ``text`` holds a word of ``negation``; False where there is none."""
        return not self.negations.isdisjoint(re.findall(r"\w+", text.lower()))


class Language(_Part):
    """One language: its prompts, its word lists, and source types in its words.

    words: None for English, whose lists stand in ``evaluation/``. source_types: by source type, as
    prompts name them. trusted, doubted: who is to be believed more than whom, in
    ``answer.credibility``; they hold for corpora whose types are all in ``source_types``.
    """

    code: str
    answer: AnswerPrompts
    stance: StancePrompts
    words: Words | None = None
    source_types: Mapping[str, str] = {}
    trusted: str = ""
    doubted: str = ""

    @property
    def splitter(self) -> str:
        """Code of the sentence splitter."""
        return self.words.splitter if self.words else "en"

    @property
    def digest(self) -> str:
        """sha256 of all of it: what answers and readings in this language depend on."""
        return sha256_bytes(self.model_dump_json().encode())

    def believing(self, source_types: Mapping[str, str], trusted: str, doubted: str) -> Language:
        """This language for a taxonomy of its own; empty words leave this language's."""
        known = {**self.source_types, **source_types}
        changed: dict[str, Any] = {"source_types": known}
        changed |= {"trusted": trusted, "doubted": doubted} if trusted and doubted else {}
        return self.model_copy(update=changed)


_PLACES: Mapping[str, frozenset[str]] = {
    "credibility": frozenset({"trusted", "doubted"}),
    "question": frozenset({"question"}),
    "source": frozenset({"source"}),
    "passage": frozenset({"passage"}),
    "according_one": frozenset({"question"}),
    "according_many": frozenset({"question"}),
    "hypothesis": frozenset({"question", "answer"}),
    "claim": frozenset({"claim"}),
}


@cache
def english() -> Language:
    """English as it ships with the package."""
    return load_language(shipped(FILE), "en")


def load_language(path: str | Path, code: str) -> Language:
    """A language of a YAML file; an entry with ``base`` takes the rest from that entry.

    Raises InputError naming file, language and field for what is missing, unknown or malformed.
    """
    entries = _entries(Path(path))
    where = f"{path}: language {code!r}"
    if code not in entries:
        raise InputError(f"{path}: no language {code!r}; known: {', '.join(entries)}")
    try:
        language = Language(code=code, **_whole(entries, code, where))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{where}: {field}: {first['msg']}") from error
    for part in (language.answer, language.stance):
        _check_places(part, where)
    return language


def _entries(path: Path) -> dict[str, Any]:
    try:
        raw = yaml.load(path.read_text(encoding="utf-8"), Loader=_SAFE)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(
            f"{path}: cannot be read as YAML: {' '.join(str(error).split())}"
        ) from error
    found = raw.get("languages") if isinstance(raw, Mapping) else None
    if not isinstance(found, Mapping) or not all(isinstance(v, Mapping) for v in found.values()):
        raise InputError(f"{path}: expected a mapping of languages under 'languages'")
    # YAML reads a bare `no` as false: a language's code is whatever was written.
    return {str(name): value for name, value in found.items()}


def _whole(entries: Mapping[str, Any], code: str, where: str) -> dict[str, Any]:
    """An entry over what it is based on, section by section."""
    own = dict(entries[code])
    if (base := own.pop("base", None)) is None:
        return own
    if base not in entries or "base" in entries[base]:
        raise InputError(f"{where}: base {base!r} is no language of this file that has no base")
    whole = dict(entries[base])
    for name, value in own.items():
        both = isinstance(value, Mapping) and isinstance(whole.get(name), Mapping)
        whole[name] = {**whole[name], **value} if both else value
    return whole


def _check_places(part: _Part, where: str) -> None:
    """Each text holds exactly the places in braces that are filled in for it."""
    for name, value in part:
        wanted = _PLACES.get(name, frozenset())
        for text in (value,) if isinstance(value, str) else value:
            try:
                found = {field for _, field, _, _ in string.Formatter().parse(text) if field}
            except ValueError as error:
                raise InputError(f"{where}: {name}: {error}") from error
            if found != wanted:
                expected = ", ".join(f"{{{p}}}" for p in sorted(wanted)) or "no braces"
                raise InputError(f"{where}: {name} = {text!r}; expected {expected} in it")


def _found(expressions: Sequence[str], text: str) -> bool:
    return any(re.search(e, text, re.IGNORECASE) for e in expressions)
