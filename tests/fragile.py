"""What tests send to workers. It imports little, since each worker that dies is started anew."""

import os
import signal
from pathlib import Path

from rag_reliability.sweep.work import Status, Task


def use_cache(folder: str) -> None:
    """Make this process keep its artefacts in ``folder``."""
    os.environ["RAG_RELIABILITY_CACHE"] = folder


def begun(task: Task) -> int:
    """How often a task was begun."""
    counter = Path(task.folder)
    return counter.stat().st_size if counter.is_file() else 0


def fragile(task: Task) -> Status:
    """Counts its beginnings in a file; kills its own process as often as it was told to."""
    Path(task.folder).parent.mkdir(parents=True, exist_ok=True)
    with Path(task.folder).open("a") as file:
        file.write("x")
    if begun(task) <= task.parameters["deaths"]:
        os.kill(os.getpid(), signal.SIGKILL)
    if task.parameters.get("fails"):
        raise ValueError("two\nlines")
    return Status(task.run, "done", attempts=begun(task))
