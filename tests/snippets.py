"""Code blocks of Markdown pages, fenced or indented, with what stands before them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(\w*)\s*$")
MARK = re.compile(r"^<!-- not run: (.{8,}) -->$")
PYTHON = re.compile(r"^(from [\w.]+ import |import \w)")
PROGRAMS = ("rag-reliability", "make", "pip", "python", "papermill", "cd", "source")


@dataclass(frozen=True)
class Block:
    """One code block. kind: python, shell or text; why: the marker's reason not to run it."""

    page: str
    line: int
    kind: str
    source: str
    why: str | None

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"

    def commands(self) -> list[list[str]]:
        """The block's commands as words: comments off, continued lines joined, prompts off."""
        lines = re.sub(r"\\\n\s*", "", self.source).splitlines()
        if any(
            line.startswith("$ ") for line in lines
        ):  # a session: what is not prompted is output
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        return [words for line in lines if (words := shlex.split(line, comments=True))]


def blocks(path: Path, page: str) -> list[Block]:
    """All code blocks of a page, in order."""
    return list(_blocks(path.read_text("utf-8").splitlines(), page))


def _blocks(lines: list[str], page: str) -> Iterator[Block]:
    before, i = "", 0
    while i < len(lines):
        start, fence = i, FENCE.match(lines[i])
        if fence:
            i += 1
            while lines[i] != "```":
                i += 1
            found, i = lines[start + 1 : i], i + 1
            yield _block(page, start, fence[1], found, before)
        elif lines[i].startswith("    ") and not re.match(r"\s*([-*]|\d+\.) ", before):
            while i < len(lines) and (lines[i].startswith("    ") or not lines[i]):
                i += 1
            yield _block(page, start, "", [line[4:] for line in lines[start:i]], before)
        else:
            i += 1
        before = next((line for line in reversed(lines[:i]) if line), "")


def _block(page: str, start: int, language: str, lines: list[str], before: str) -> Block:
    source = "\n".join(lines).strip("\n") + "\n"
    mark = MARK.match(before)
    return Block(page, start + 1, _kind(language, source), source, mark[1] if mark else None)


def _kind(language: str, source: str) -> str:
    first = source.split("\n", 1)[0]
    if language in {"python", "text", "yaml"}:
        return language if language == "python" else "text"
    if language in {"sh", "console"} or first.removeprefix("$ ").split(" ")[0] in PROGRAMS:
        return "shell"
    return "python" if PYTHON.match(first) else "text"
