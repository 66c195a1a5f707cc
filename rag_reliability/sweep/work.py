"""One run, wherever a worker stands: its notebooks, its log, and a record that outlives it."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rag_reliability.artefacts import stage_key
from rag_reliability.files import atomic_write_text, pretty_json
from rag_reliability.records import InputError

TOKEN = "sweep.json"
STATUS = "status.json"
PATIENCE = 120.0
"""Seconds to wait for a run's folder: a worker that was given up may take a while to die."""


@dataclass(frozen=True)
class Task:
    """What a worker is sent: one run, where to put it, and what the sender's package is.

    root: the project's folder. folder: the run's own, absolute; out: as its notebooks are told it.
    """

    run: str
    root: str
    folder: str
    out: str
    token: str
    package: str
    config_file: str
    notebooks: tuple[str, ...]
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Status:
    """What became of a run: running, done or failed, with its error in one line."""

    run: str
    status: str
    error: str = ""
    seconds: float = 0.0
    attempts: int = 0
    host: str = ""


def package_digest() -> str:
    """Hash of the package's sources: a worker with others would compute something else."""
    from rag_reliability.experiment.study import source_files

    return stage_key("package", {}, source_files((".",)))


def read_status(folder: Path, run: str) -> Status:
    """The record in a run's folder; status ``missing`` where there is none to read."""
    try:
        return Status(**json.loads((folder / STATUS).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return Status(run, "missing")


def write_status(folder: Path, status: Status) -> Status:
    """Write a run's record whole; returns it."""
    atomic_write_text(folder / STATUS, pretty_json(asdict(status)))
    return status


def perform(task: Task) -> Status:
    """Run one task's notebooks; whatever goes wrong is in the record that is returned."""
    _same_place(task)
    os.chdir(task.root)
    folder = Path(task.folder)
    attempts = read_status(folder, task.run).attempts + 1
    host = platform.node()
    write_status(folder, Status(task.run, "running", attempts=attempts, host=host))
    began, what = time.perf_counter(), ("done", "")
    try:
        _notebooks(task, folder)
    except Exception as error:
        what = ("failed", in_one_line(error))
    seconds = round(time.perf_counter() - began, 3)
    return write_status(folder, Status(task.run, *what, seconds, attempts, host))


def _notebooks(task: Task, folder: Path) -> None:
    from rag_reliability.runner import run_notebooks

    with (folder / "log.txt").open("w", encoding="utf-8", buffering=1) as log:
        run_notebooks(
            task.config_file,
            task.out,
            task.parameters,
            notebooks=task.notebooks,
            say=lambda line: print(line, file=log),
            output=log,
            wait=PATIENCE,
        )


def _same_place(task: Task) -> None:
    """Refuse a worker that sees another disk or holds another version of the package.

    Raises InputError naming the machine.
    """
    seen = Path(task.folder).parents[1] / TOKEN
    if not seen.is_file() or seen.read_text(encoding="utf-8") != task.token:
        raise InputError(
            f"the worker on {platform.node()} does not see {seen.parent}: "
            "the sweep's folder must be on a disk that all workers share"
        )
    if package_digest() != task.package:
        raise InputError(
            f"the worker on {platform.node()} holds another version of this package, or it "
            "changed since the sweep began; run the sweep again with the same version everywhere"
        )


def in_one_line(error: BaseException) -> str:
    """An error as one line: our own refusals as they are, others with their type."""
    text = " ".join(str(error).split())
    return text if isinstance(error, InputError) else f"{type(error).__name__}: {text}"
