"""What the cache of artefacts holds, by stage and last use, and how it is made smaller."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rag_reliability.files import cache_root, discard, locked
from rag_reliability.records import InputError

YOUNGEST = 3600.0
"""Seconds for which nothing is removed: what a run at work has just made or taken."""
DAY = 86_400.0
_AGES = (("≤ 1 day", 1.0), ("≤ 7 days", 7.0), ("≤ 30 days", 30.0), ("older", float("inf")))
_LEFT = "left by killed runs"
_HELD = "in use"
_UNITS = ("kB", "MB", "GB", "TB")


@dataclass(frozen=True)
class Artefact:
    """One folder of the cache. stage: whose it is. size: in bytes. used: days since it was."""

    path: Path
    stage: str
    size: int
    used: float


def artefacts(cache: Path | None = None) -> list[Artefact]:
    """What lies in the cache's folder ``artefacts`` (default: of this machine's cache).

    Also folders in which a run was building when it was killed, and nothing else that may be there.
    """
    root = _root(cache)
    whole = [record.parent for record in root.glob("[!.]*/stage.json")]
    left = list(root.glob(".*.scratch"))
    found = [(path, path.name.rsplit("-", 1)[0]) for path in whole] + [(p, _LEFT) for p in left]
    ages = ((path, stage, _age(path)) for path, stage in found)
    return [Artefact(p, stage, _size(p), age / DAY) for p, stage, age in ages if age is not None]


def prune(days: float, cache: Path | None = None) -> tuple[list[Artefact], int]:
    """Remove artefacts not used for ``days`` days; returns them, and how many were in use.

    Safe beside a running study: what was used within the last hour stays, and so does what a run
    holds the lock of. An artefact is renamed before it is removed, so none is ever half there.

    Raises InputError for a number of days below 0, or a place where nothing can be removed.
    """
    if not days >= 0:
        raise InputError(f"--prune {days:g}: expected a number of days >= 0")
    oldest, root = max(days * DAY, YOUNGEST), _root(cache)
    removed, held = [], 0
    for found in artefacts(cache):
        if found.used * DAY < oldest:
            continue
        entry = found.path.name.removeprefix(".").removesuffix(".scratch")
        entry = entry.rpartition(".")[0] if found.stage == _LEFT else entry
        try:
            with locked(root / "locks" / f"{entry}.lock", 0.0, _HELD):
                age = _age(found.path)  # whoever held the lock until now may have used it
                if age is not None and age >= oldest:
                    discard(found.path)
                    removed.append(found)
        except InputError as error:
            if str(error) != _HELD:
                raise
            held += 1
    return removed, held


def overview(found: Sequence[Artefact], cache: Path | None = None) -> str:
    """A table as text: each stage's number of artefacts and size, by when they were last used."""
    head = ["stage", "artefacts", "size", *(name for name, _ in _AGES)]
    stages = sorted({a.stage for a in found}, key=lambda s: -sum(_sizes(found, s)))
    rows = [head, *(_row(stage, [a for a in found if a.stage == stage]) for stage in stages)]
    rows.append(_row("all", found))
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(width) if not i else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join([f"{_root(cache)}: sizes by days since last use", *lines])


def size_text(size: int) -> str:
    """Bytes in decimal units, three digits at most before the point."""
    value, unit = size / 1000, 0
    while value >= 999.95 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if size else "0"


def _row(stage: str, own: Sequence[Artefact]) -> list[str]:
    sizes, after = [], 0.0
    for _, until in _AGES:
        sizes.append(sum(a.size for a in own if after <= max(a.used, 0.0) < until))
        after = until
    return [stage, f"{len(own)}", size_text(sum(sizes)), *map(size_text, sizes)]


def _sizes(found: Sequence[Artefact], stage: str) -> list[int]:
    return [a.size for a in found if a.stage == stage]


def _root(cache: Path | None) -> Path:
    return (cache or cache_root()) / "artefacts"


def _age(path: Path) -> float | None:
    """Seconds since last use, which is the folder's time; None where it is gone meanwhile."""
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return None


def _size(path: Path) -> int:
    """Bytes of the files in a folder, as far as they are still there."""
    total = 0
    for file in path.rglob("*"):
        try:
            total += file.stat().st_size if file.is_file() else 0
        except FileNotFoundError:
            continue
    return total
