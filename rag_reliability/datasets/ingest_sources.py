"""A CSV that says where each file of a folder comes from."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from rag_reliability.datasets.facts import ADDRESSES, DATES, is_date, is_web_address
from rag_reliability.datasets.ingest_files import decoded
from rag_reliability.datasets.lines import shown
from rag_reliability.records import InputError

COLUMNS = ("file", "source_type", "source", "url", "date", "verified", "adversarial", "title")
REQUIRED = ("file", "source_type")
_MARKS = {
    **dict.fromkeys(("true", "yes", "1", "x"), True),
    **dict.fromkeys(("false", "no", "0", ""), False),
}
_NAMED = 8


@dataclass(frozen=True)
class SourceRow:
    """What one line says of the files that match ``file``, a name or a glob below the folder.

    values: the other columns, marks as booleans.
    """

    where: str
    file: str
    values: Mapping[str, str | bool]


def read_sources(path: Path, encoding: str | None = None) -> tuple[SourceRow, ...]:
    """The rows of a CSV with a header; comma, semicolon or tab parts the columns.

    encoding: of a table that is not UTF-8.

    Raises InputError naming the line for an unknown or missing column, a row of another length, an
    empty ``file`` or ``source_type``, a mark that is neither true nor false, a date or url that is
    none, a ``file`` that stands twice.
    """
    text = decoded(path, encoding)[0]
    header = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=header.count)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        names = [name.strip() for name in next(lines, [])]
        _check_header(names, path)
        rows = [
            _row(names, cells, f"{path}:{lines.line_num}")
            for cells in lines
            if any(cell.strip() for cell in cells)
        ]
    except csv.Error as error:
        raise InputError(f"{path}:{lines.line_num}: not CSV: {error}") from error
    seen: dict[str, str] = {}
    for row in rows:
        if row.file in seen:
            raise InputError(f"{row.where}: {row.file!r} stands twice, first at {seen[row.file]}")
        seen[row.file] = row.where
    if not rows:
        raise InputError(f"{path}: holds no rows below its header")
    return tuple(rows)


def matched(names: Iterable[str], rows: Iterable[SourceRow]) -> dict[str, SourceRow]:
    """The row of each file name: the one that names it, else the one glob that matches it.

    Raises InputError listing files without a row, rows without a file, or a file that two globs
    match.
    """
    rows = tuple(rows)
    named = {row.file: row for row in rows}
    found: dict[str, SourceRow] = {}
    missing = []
    for name in names:
        globs = [row for row in rows if fnmatchcase(name, row.file)]
        if name in named:
            found[name] = named[name]
        elif len(globs) > 1:
            both = f"{globs[0].where} and {globs[1].where}"
            raise InputError(f"{name}: two rows match it, {both}; name it in a row of its own")
        elif globs:
            found[name] = globs[0]
        else:
            missing.append(name)
    if missing:
        raise InputError(f"no row says where these files come from: {_some(missing)}")
    used = {row.file for row in found.values()}
    if idle := [f"{row.file} ({row.where})" for row in rows if row.file not in used]:
        raise InputError(f"rows without a file: {_some(idle)}")
    return found


def _check_header(names: list[str], path: Path) -> None:
    for name in names:
        if name not in COLUMNS:
            raise InputError(f"{path}:1: unknown column {shown(name)}; known: {', '.join(COLUMNS)}")
        if names.count(name) > 1:
            raise InputError(f"{path}:1: column {name!r} stands twice")
    if lacking := [name for name in REQUIRED if name not in names]:
        raise InputError(f"{path}:1: no column {lacking[0]!r}; required: {', '.join(REQUIRED)}")


def _row(names: list[str], cells: list[str], where: str) -> SourceRow:
    if len(cells) != len(names):
        raise InputError(f"{where}: {len(cells)} columns, expected {len(names)}")
    values: dict[str, str | bool] = {n: cell.strip() for n, cell in zip(names, cells, strict=True)}
    for name in REQUIRED:
        if not values[name]:
            raise InputError(f"{where}: {name} is empty")
    for name in ("verified", "adversarial"):
        mark = str(values.get(name, "")).lower()
        if mark not in _MARKS:
            raise InputError(f"{where}: {name} = {shown(mark)}; expected true or false")
        values[name] = _MARKS[mark]
    for name, holds, expected in (
        ("date", is_date, DATES),
        ("url", is_web_address, ADDRESSES),
    ):
        if (given := str(values.get(name, ""))) and not holds(given):
            raise InputError(f"{where}: {name} = {shown(given)}; expected {expected}")
    return SourceRow(where, str(values.pop("file")).removeprefix("./"), values)


def _some(names: list[str]) -> str:
    rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + rest
