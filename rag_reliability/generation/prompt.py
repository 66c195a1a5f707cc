"""What the model is shown: messages for a question and its passages, and their token ids.

Documents are hostile. Their text is cut, kept to one line for each passage, and turned into tokens
as plain text, so that a passage can neither end its turn nor speak as the system.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rag_reliability.language import Language, english
from rag_reliability.records import InputError
from rag_reliability.text import plain

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from rag_reliability.generation.models import Generator

Message = dict[str, str]
"""One turn of a chat: ``role`` (system or user) and ``content``."""

MAX_CHARS = 1600
"""Characters of a passage or question that the model is shown."""
_MAX_BYTES = 2 * MAX_CHARS  # a token holds at least a byte, so this bounds tokens in any script


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrieved text and its declared source type."""

    text: str
    source_type: str = ""


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to ask: whether passages carry their source type, and the system message says so."""

    show_source: bool = False


ARMS: Mapping[str, Arm] = {"plain": Arm(), "credibility_in_prompt": Arm(show_source=True)}
"""The arms of an experiment by name."""


def build_messages(
    query: str,
    passages: Sequence[Passage],
    arm: str = "plain",
    language: Language | None = None,
) -> list[Message]:
    """System and user message that ask for a short, cited answer from numbered passages.

    Without passages the question alone is asked, the same in every arm. language: whose words are
    used (None: English).

    Raises InputError for an unknown arm.
    """
    if arm not in ARMS:
        raise InputError(f"unknown arm {arm!r}; known: {', '.join(ARMS)}")
    spoken = language or english()
    words = spoken.answer
    question = words.question.format(question=one_line(query))
    if not passages:
        return _chat(words.alone_system, f"{question}\n\n{words.alone_request}")
    numbered = "\n\n".join(
        f"[{number}] {one_line(passage.text)}{_label(passage, ARMS[arm], spoken)}"
        for number, passage in enumerate(passages, 1)
    )
    return _chat(_system(ARMS[arm], spoken), f"{numbered}\n\n{question}\n\n{words.request}")


def one_line(text: str, max_chars: int = MAX_CHARS) -> str:
    """``text`` on one line without control characters, cut at a word to ``max_chars``."""
    head = plain(text[: 4 * max_chars])  # cut first: a document may hold 10 MB
    line = " ".join(re.sub(r"(?<=[^\s.?!:;,])\s*\n\s*", ". ", head.strip()).split())
    cut = line[:max_chars].encode()[: min(_MAX_BYTES, 2 * max_chars)].decode(errors="ignore")
    if cut == line:
        return line
    return (cut.rsplit(" ", 1)[0] if " " in cut else cut) + " …"


def prompt_ids(generator: Generator, messages: Sequence[Message]) -> list[int]:
    """Token ids of a chat, up to where the model's turn begins.

    The chat template is rendered around marks in place of the contents, so control tokens come
    from the template alone. A model without a template gets the contents and ``Answer:``.

    Raises InputError for a template that cannot hold the messages.
    """
    tokenizer = generator.tokenizer
    contents = [message["content"].strip() for message in messages]
    if not tokenizer.chat_template:
        start = tokenizer("").input_ids
        begin = [t for t in start if t == tokenizer.bos_token_id]
        return begin + plain_ids(tokenizer, "\n\n".join([*contents, "Answer:"]))
    roles = [message["role"] for message in messages]
    pieces = _template(tokenizer, roles)
    if pieces is None and roles[:2] == ["system", "user"]:
        # some templates know no system role: its text opens the user's turn
        contents = [f"{contents[0]}\n\n{contents[1]}", *contents[2:]]
        pieces = _template(tokenizer, roles[1:])
    if pieces is None:
        raise InputError(f"{generator.name}: its chat template cannot hold {' and '.join(roles)}")
    ids = tokenizer(pieces[0], add_special_tokens=False).input_ids
    for content, piece in zip(contents, pieces[1:], strict=True):
        ids += plain_ids(tokenizer, content) + tokenizer(piece, add_special_tokens=False).input_ids
    return ids


def plain_ids(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    """Token ids of ``text`` as plain text: none of them is a control or other added token.

    ``split_special_tokens`` alone lets through added tokens that are not marked special, such as
    ``<tool_call>``; those are spelt out by character.
    """
    ids = tokenizer(text, add_special_tokens=False, split_special_tokens=True).input_ids
    added = {
        n: str(t) for n, t in tokenizer.added_tokens_decoder.items() if len(str(t).strip()) > 1
    }
    if added.keys().isdisjoint(ids):
        return ids
    spelt: list[int] = []
    for token in ids:
        for char in added.get(token, ""):
            spelt += tokenizer(char, add_special_tokens=False, split_special_tokens=True).input_ids
        spelt += [token] if token not in added else []
    return spelt


def _template(tokenizer: PreTrainedTokenizerBase, roles: Sequence[str]) -> list[str] | None:
    """Text of the chat template before, between and after the messages; None if it refuses."""
    from jinja2 import TemplateError

    marks = [f"@@message {n}@@" for n in range(len(roles))]
    chat = [{"role": r, "content": m} for r, m in zip(roles, marks, strict=True)]
    options: dict[str, Any] = {"tokenize": False, "add_generation_prompt": True}
    try:
        text = tokenizer.apply_chat_template(chat, enable_thinking=False, **options)
    except TemplateError:
        return None
    pieces = re.split("|".join(map(re.escape, marks)), str(text))
    return pieces if re.findall(r"@@message \d+@@", str(text)) == marks else None


def _system(arm: Arm, language: Language) -> str:
    words = language.answer
    if not arm.show_source:
        return words.system
    whom = {"trusted": language.trusted, "doubted": language.doubted}
    return f"{words.system} {words.credibility.format(**whom)}"


def _label(passage: Passage, arm: Arm, language: Language) -> str:
    if not arm.show_source:
        return ""
    kind = one_line(passage.source_type, 60)
    named = language.source_types.get(kind, kind.replace("_", " "))
    return f" {language.answer.source.format(source=named or language.answer.unknown)}"


def _chat(system: str, user: str) -> list[Message]:
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]
