"""Where model files are kept, and the hashes that say they are the right ones."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from rag_reliability.modelstore.catalogue import refuse


def cache_dir() -> Path:
    """Where model files are kept between runs."""
    if own := os.environ.get("RAG_RELIABILITY_CACHE"):
        return Path(own).expanduser() / "models"
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "rag-reliability" / "models"


def file_sha256(path: Path, store: Path | None = None) -> str:
    """SHA-256 of a file, remembered in the cache by path, size and time of change."""
    stat = path.stat()
    stamp = [stat.st_size, stat.st_mtime_ns]
    key = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:32]
    note = (store or cache_dir()) / "hashes" / f"{key}.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        seen = json.loads(note.read_text())
        if seen["stamp"] == stamp:
            return str(seen["sha256"])
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    with suppress(OSError):  # only a shortcut: a cache that cannot be written costs time, not truth
        note.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=note.parent, delete=False) as draft:
            draft.write(json.dumps({"stamp": stamp, "sha256": digest}))
        Path(draft.name).replace(note)
    return digest


def check(path: Path, expected: str, found: str) -> str:
    """``found``, if it is the hash expected of ``path``.

    Raises InputError naming the file, the expected and the found hash.
    """
    if found != expected:
        raise refuse(
            f"{path}: sha256 {found}, expected {expected}: damaged, or another model; remove it"
        )
    return found
