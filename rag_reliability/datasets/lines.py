"""Text files read one line at a time; every complaint names the file and the line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rag_reliability.records import InputError

_BOM = b"\xef\xbb\xbf"
_SHOWN = 60


def shown(value: object) -> str:
    """``value`` as it may stand in an error: one line, at most 60 characters."""
    # Cut before repr as well as after: the value may be a line of 10 MB.
    text = repr(value[: _SHOWN + 1]) if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def text_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Non-blank lines of a UTF-8 file as (``file:line``, text), without line ends.

    Only ``\\n`` ends a line (``\\r\\n`` too): U+2028 and its like belong to the text. A byte order
    mark at the start is dropped.

    Raises InputError for a file that cannot be read and for bytes that are not UTF-8.
    """
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                line = raw.removeprefix(_BOM) if number == 1 else raw
                text = _decoded(line.rstrip(b"\r\n"), f"{path}:{number}")
                if text.strip():
                    yield f"{path}:{number}", text
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Objects of a JSON Lines file as (``file:line``, object).

    Raises InputError for a line that is not one JSON object, that repeats a field, or that holds
    NaN or Infinity, which JSON does not have.
    """
    for where, text in text_lines(path):
        try:
            value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_fields)
        except json.JSONDecodeError as error:
            raise InputError(f"{where}: not JSON: {error.msg} at column {error.colno}") from error
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where}: not JSON that can be read: {error}") from error
        if not isinstance(value, dict):
            raise InputError(f"{where}: expected one JSON object, got {shown(value)}")
        yield where, value


def _decoded(line: bytes, where: str) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = f"0x{line[error.start]:02x} at byte {error.start + 1}"
        raise InputError(f"{where}: not UTF-8 ({byte} of the line)") from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"field {shown(twice)} stands twice in one object")
    return fields
