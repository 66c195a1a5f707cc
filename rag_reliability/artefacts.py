"""Stage results that are whole or absent, known by the hash of what made them, and reused by it.

A stage writes its outputs into the run's folder together with ``stages/<name>.json``, which says
what they were made from. A copy goes into a local cache under the stage's key. Only that cache
counts as evidence that a stage was computed here: outputs that came with the repository do not, so
that a run in a fresh clone computes everything.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from rag_reliability.files import (
    atomic_write_bytes,
    atomic_write_text,
    cache_root,
    canonical_json,
    copy_tree,
    discard,
    locked,
    pretty_json,
    replace_tree,
    run_lock,
    scratch_beside,
    sha256_file,
    sha256_tree,
    tree_matches,
    write_errors,
)
from rag_reliability.records import InputError

__all__ = [
    "StageResult",
    "Store",
    "atomic_write_bytes",
    "atomic_write_text",
    "cache_root",
    "git_commit",
    "run_lock",
    "sha256_file",
    "sha256_tree",
    "stage_key",
]

Status = Literal["built", "reused", "restored"]
_STAGE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*", re.ASCII)


@dataclass(frozen=True)
class StageResult:
    """What came of a stage: how, in how many seconds, and the sha256 of each output."""

    name: str
    status: Status
    seconds: float
    sha256: Mapping[str, str]


def stage_key(name: str, inputs: Mapping[str, Any], code: Sequence[str | Path] = ()) -> str:
    """sha256 over a stage's name, its inputs and the bytes of the source files that compute it.

    ``inputs`` holds what JSON can hold: config values, hashes of artefacts and models, versions.
    Files in ``code`` count by name and content, so the same code gives the same key in any clone.

    Raises TypeError or ValueError for inputs that JSON cannot hold (NaN among them).
    """
    sources = sorted([Path(file).name, sha256_file(file)] for file in code)
    return hashlib.sha256(canonical_json([name, inputs, sources])).hexdigest()


class Store:
    """Stages of one run folder, and the local cache they are reused from.

    run_dir: where outputs go. cache_dir: default ``cache_root()``. fresh: compute every stage anew,
    once. say: gets one line for each stage. wait: seconds to wait for another process's stage, a
    day: answers may take hours, and the lock of a process that died is free at once.
    """

    def __init__(
        self,
        run_dir: str | Path,
        cache_dir: str | Path | None = None,
        *,
        fresh: bool = False,
        say: Callable[[str], None] = print,
        wait: float = 86_400.0,
    ) -> None:
        self.run_dir = Path(run_dir)
        self.cache = Path(cache_dir or cache_root()) / "artefacts"
        self.fresh, self.say, self.wait = fresh, say, wait
        self._made: set[str] = set()

    def sidecar(self, name: str) -> dict[str, Any]:
        """The record of a stage in this run's folder.

        Raises InputError when there is none or it cannot be read.
        """
        path = self._sidecar_path(name)
        if (record := _read_record(path)) is None:
            raise InputError(f"{path}: missing or damaged; run the stage {name!r} first")
        return record

    def holds(self, name: str, key: str) -> bool:
        """Whether this run's folder has a stage's outputs as they were made under ``key``."""
        record = _read_record(self._sidecar_path(name))
        return (
            record is not None
            and record.get("key") == key
            and tree_matches(self.run_dir, record["outputs"])
        )

    def knows(self, name: str, key: str) -> bool:
        """Whether the cache says that a stage was computed under ``key``; no file is checked."""
        entry = self._entry(name, key)
        record = _read_record(entry / "stage.json")
        known = record is not None and record.get("key") == key
        if known:
            _mark_used(entry)
        return known

    def forget(self, name: str, key: str) -> None:
        """Drop one stage from the cache, so that it is computed anew when next asked for."""
        discard(self._entry(name, key))

    def clear_cache(self) -> None:
        """Forget every cached stage, of all runs, so that each is computed anew when next asked."""
        for record in self.cache.glob("[!.]*/stage.json"):
            discard(record.parent)

    def stage(
        self,
        name: str,
        key: str,
        outputs: Sequence[str],
        build: Callable[[Path], None],
        meta: Mapping[str, Any] | None = None,
    ) -> StageResult:
        """Make ``outputs`` (files or folders, relative to the run's folder), or reuse them by key.

        ``build`` gets an empty folder and writes each output under it by its relative name.
        ``meta`` goes into the record: what the key was made from, and nothing that differs between
        equal runs. After a failure the run's folder is as it was.

        Raises InputError for a full disk or a stage that another process keeps too long; whatever
        ``build`` raises.
        """
        _check_names(name, outputs)
        began = time.perf_counter()
        entry = self._entry(name, key)
        with self._stage_locks(name, entry):
            record = None if self.fresh and key not in self._made else _cached(entry, key, outputs)
            status: Status = "built"
            if record is None:
                record = self._build(name, key, outputs, build, dict(meta or {}), entry)
            else:
                _mark_used(entry)
                same = self.holds(name, key)
                same = same and self.sidecar(name)["outputs"] == record["outputs"]
                status = "reused" if same else "restored"
            if status != "reused":
                self._publish(name, entry, record)
        self._made.add(key)
        seconds = time.perf_counter() - began
        self.say(f"{name}: {_told(status, seconds)}")
        return StageResult(name, status, seconds, record["outputs"])

    def _build(
        self,
        name: str,
        key: str,
        outputs: Sequence[str],
        build: Callable[[Path], None],
        meta: dict[str, Any],
        entry: Path,
    ) -> dict[str, Any]:
        """Compute a stage straight into the cache; returns its record."""
        began = time.perf_counter()
        with write_errors(self.cache), scratch_beside(entry) as scratch:
            files = scratch / "files"
            files.mkdir(parents=True)
            build(files)
            _check_written(name, files, outputs)
            record = {
                "name": name,
                "key": key,
                **meta,
                "python": platform.python_version(),
                "git_commit": git_commit(),
                "outputs": {output: sha256_tree(files / output) for output in outputs},
                "seconds": round(time.perf_counter() - began, 3),
                "created": datetime.now(UTC).isoformat(timespec="seconds"),
            }
            atomic_write_text(scratch / "stage.json", pretty_json(record))
            discard(entry)
            scratch.rename(entry)
        return record

    def _publish(self, name: str, entry: Path, record: Mapping[str, Any]) -> None:
        """Copy a cached stage into the run's folder: each output whole, its record last."""
        with write_errors(self.run_dir), scratch_beside(self.run_dir / name) as scratch:
            scratch.mkdir(parents=True)
            for i, output in enumerate(record["outputs"]):
                copy_tree(entry / "files" / output, scratch / f"new-{i}")
            for i, output in enumerate(record["outputs"]):
                replace_tree(scratch / f"new-{i}", self.run_dir / output, scratch / f"old-{i}")
            atomic_write_text(self._sidecar_path(name), pretty_json(record))

    def _entry(self, name: str, key: str) -> Path:
        return self.cache / f"{name}-{key[:16]}"

    def _sidecar_path(self, name: str) -> Path:
        return self.run_dir / "stages" / f"{name}.json"

    @contextmanager
    def _stage_locks(self, name: str, entry: Path) -> Iterator[None]:
        """One process for a stage of this run's folder, and one for its place in the cache."""
        taken = f"{name}: another run is computing this stage in {self.run_dir}"

        def waiting() -> None:
            self.say(f"{name}: waiting for another run that computes it")

        here = self.run_dir / "stages" / f"{name}.lock"
        cached = self.cache / "locks" / f"{entry.name}.lock"
        with (
            locked(here, self.wait, taken, waiting),
            locked(cached, self.wait, taken, waiting),
        ):
            yield


@lru_cache(maxsize=1)
def git_commit() -> str | None:
    """Commit of the checkout that holds this package, None outside git."""
    here = Path(__file__).resolve()
    with suppress(OSError, subprocess.SubprocessError):
        # An installed copy may lie inside someone else's repository: only a tracked file counts.
        for command in (["ls-files", "--error-unmatch", here.name], ["rev-parse", "HEAD"]):
            done = subprocess.run(
                ["git", "-C", str(here.parent), *command],
                capture_output=True,
                text=True,
                check=True,
                timeout=10,
            )
        return done.stdout.strip()
    return None


def _cached(entry: Path, key: str, outputs: Sequence[str]) -> dict[str, Any] | None:
    """Record of a cached stage whose files are what it says; a damaged entry is thrown away."""
    record = _read_record(entry / "stage.json")
    if (
        record is not None
        and (record.get("key"), set(record["outputs"])) == (key, set(outputs))
        and tree_matches(entry / "files", record["outputs"])
    ):
        return record
    discard(entry)
    return None


def _mark_used(entry: Path) -> None:
    """Its folder's time says when an artefact was last used, which is what pruning goes by."""
    with suppress(OSError):  # a cache that is shared may be another's to write
        os.utime(entry)


def _read_record(path: Path) -> dict[str, Any] | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and isinstance(record.get("outputs"), dict) else None


def _check_names(name: str, outputs: Sequence[str]) -> None:
    if not _STAGE_NAME.fullmatch(name):
        raise ValueError(f"stage {name!r}: expected letters, digits, - and _")
    parts = [PurePosixPath(output).parts for output in outputs]
    own = PurePosixPath("stages", f"{name}.json").parts
    if not parts or any(not p or p in (("stages",), own) or {"/", ".."} & {*p} for p in parts):
        raise ValueError(
            f"stage {name}: outputs {list(outputs)} must be paths inside the run's folder"
        )


def _check_written(name: str, files: Path, outputs: Sequence[str]) -> None:
    wanted = [files / output for output in outputs]
    if missing := [str(w.relative_to(files)) for w in wanted if not w.exists()]:
        raise RuntimeError(f"stage {name} did not write {', '.join(missing)}")
    written = [f for f in files.rglob("*") if f.is_file()]
    if extra := [f for f in written if not any(f.is_relative_to(w) for w in wanted)]:
        raise RuntimeError(
            f"stage {name} wrote {extra[0].relative_to(files)}, which it does not declare"
        )


def _told(status: Status, seconds: float) -> str:
    return {
        "built": f"built in {seconds:.1f} s",
        "reused": "reused (unchanged)",
        "restored": "restored from the cache (unchanged)",
    }[status]
