"""Files written whole or not at all, hashed, and locked against a second writer."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from filelock import FileLock, Timeout

from rag_reliability.records import InputError

_CANNOT_WRITE = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
    *(errno.EROFS, errno.EACCES, errno.EPERM),
    *(errno.ENOTDIR, errno.EEXIST),
}


def canonical_json(value: Any) -> bytes:
    """The one JSON text of a value, keys sorted, as bytes to hash.

    Raises TypeError or ValueError for what JSON cannot hold.
    """
    text = json.dumps(
        value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    return text.encode("utf-8")


def pretty_json(record: Mapping[str, Any]) -> str:
    """A record as indented JSON, fields in their own order."""
    return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def sha256_file(path: str | Path) -> str:
    """sha256 of a file's bytes, in hex."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_bytes(data: bytes) -> str:
    """sha256 of bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


def sha256_tree(path: str | Path) -> str:
    """sha256 of a file, or of a folder's files by relative name and content, in hex."""
    path = Path(path)
    if not path.is_dir():
        return sha256_file(path)
    files = {f.relative_to(path).as_posix(): sha256_file(f) for f in path.rglob("*") if f.is_file()}
    return hashlib.sha256(canonical_json(files)).hexdigest()


def tree_matches(folder: Path, outputs: Mapping[str, str]) -> bool:
    """Whether each output (a relative path) is in ``folder`` with its sha256."""
    try:
        return all(sha256_tree(folder / output) == sha for output, sha in outputs.items())
    except OSError:
        return False


def atomic_write_bytes(path: str | Path, data: bytes) -> None:
    """Write a file under a temporary name and rename it, so that no reader sees half of it.

    Raises InputError naming the path when the disk is full or the place not writable.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name[:100]}.{uuid4().hex[:8]}.tmp")
    with write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def atomic_write_text(path: str | Path, text: str) -> None:
    """``atomic_write_bytes`` of UTF-8 text, line ends as given."""
    atomic_write_bytes(path, text.encode("utf-8"))


def shipped(name: str = ".") -> Path:
    """A file or folder that comes with the package: its own copy, or in a checkout the original."""
    package = Path(__file__).resolve().parent
    installed = package / "assets"
    return (installed if installed.is_dir() else package.parent) / name


def cache_root() -> Path:
    """Our cache folder: $RAG_RELIABILITY_CACHE, else in $XDG_CACHE_HOME, else in ~/.cache."""
    if given := os.environ.get("RAG_RELIABILITY_CACHE"):
        return Path(given).expanduser()
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "rag-reliability"


@contextmanager
def run_lock(run_dir: str | Path, timeout: float = 2.0) -> Iterator[None]:
    """Hold a run's folder for one writer; waits at most ``timeout`` seconds for it.

    Raises InputError when another process holds it.
    """
    message = f"another run is writing to {run_dir}; wait for it or choose another folder"
    with locked(Path(run_dir) / "run.lock", timeout, message):
        yield


@contextmanager
def scratch_beside(base: Path) -> Iterator[Path]:
    """A name for a temporary folder beside ``base``, gone afterwards.

    The caller holds the lock for ``base``, so what a killed process left there is swept away too.
    """
    scratch = base.with_name(f".{base.name}.{uuid4().hex[:8]}.scratch")
    try:
        yield scratch
    finally:
        for left in base.parent.glob(f".{base.name}.*.scratch"):
            shutil.rmtree(left, ignore_errors=True)


def copy_tree(source: Path, target: Path) -> None:
    """Copy a file or a folder."""
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copyfile(source, target)


def replace_tree(new: Path, target: Path, old: Path) -> None:
    """Put ``new`` at ``target``; a folder there first moves to ``old``: renaming needs the room."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_dir() or (new.is_dir() and target.exists()):
        target.rename(old)
    new.replace(target)


def discard(path: Path) -> None:
    """Remove a folder that others may read: renamed first, so that nobody finds half of it.

    Raises InputError where it cannot be removed.
    """
    gone = path.with_name(f".{path.name.removeprefix('.')}.{uuid4().hex[:8]}.scratch")
    with write_errors(path):
        try:
            path.rename(gone)
        except FileNotFoundError:
            return
    shutil.rmtree(gone, ignore_errors=True)  # what is left of it is swept away as a scratch folder


@contextmanager
def locked(
    path: Path, timeout: float, message: str, waiting: Callable[[], None] | None = None
) -> Iterator[None]:
    """Hold the lock file ``path``, waiting at most ``timeout`` seconds for whoever holds it.

    ``waiting`` is called once when the wait grows long enough to wonder about.

    Raises InputError with ``message`` when time is up.
    """
    lock = FileLock(path)
    patience = min(timeout, 1.0)
    with write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with suppress(Timeout):
                lock.acquire(timeout=patience)
            if not lock.is_locked:
                if waiting is not None and timeout > patience:
                    waiting()
                lock.acquire(timeout=timeout - patience)
        except Timeout as error:
            raise InputError(message) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """A full disk or a place that takes no files is the user's to mend: one line, with the path."""
    try:
        yield
    except OSError as error:
        if error.errno not in _CANNOT_WRITE:
            raise
        raise InputError(f"{error.filename or path}: cannot write: {error.strerror}") from error
