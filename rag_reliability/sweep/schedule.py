"""Which run comes when, and what becomes of each: none is lost, whatever dies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from rag_reliability.sweep.spec import Run
from rag_reliability.sweep.work import Status, Task, in_one_line

if TYPE_CHECKING:
    from distributed import Client, Future

ATTEMPTS = 2
"""How often a run is begun, at least, before the death of its workers counts as its own fault."""
_LOOK = 5.0
"""Seconds after which it is looked whether workers have joined."""
_INDEX = ("corpus", "priors", "encoder")
_RANKING = (
    *("k", "window", "expansion", "spread", "unknown_prior", "smoothing_alpha"),
    *("smoothing_neighbours", "feedback_rate", "feedback_epochs", "folds", "seed"),
)


def ordered(runs: Sequence[Run]) -> list[Run]:
    """Runs in an order in which sharers follow: first one of each index, then of each ranking.

    Runs that need the same thing at the same time wait for each other, so those that share most
    are kept apart; the order changes how long a sweep waits and never what it computes.
    """
    indices: Counter[tuple[Any, ...]] = Counter()
    rankings: Counter[tuple[Any, ...]] = Counter()
    places = []
    for place, run in enumerate(runs):
        index = tuple(run.value(name) for name in _INDEX)
        ranking = (*index, *(run.value(name) for name in _RANKING))
        places.append((indices[index] > 0, rankings[ranking], place))
        indices[index] += 1
        rankings[ranking] += 1
    return [runs[place] for *_, place in sorted(places)]


def execute_all(
    client: Client,
    tasks: Sequence[Task],
    work: Callable[[Task], Status],
    begun: Callable[[Task], int],
    each: Callable[[Task, Status], None],
) -> None:
    """Send tasks to the workers, first ones first, and tell ``each`` what became of it.

    Dask gives a task whose worker dies to another, and gives it up after some deaths. It counts the
    deaths of workers where the task merely waited, too; so a task that it gave up is sent again
    until it was itself begun ``ATTEMPTS`` times (``begun`` counts). Then, and when the cluster is
    lost, it comes back as failed.
    """
    from distributed import wait

    waiting = list(tasks)
    before = {task.run: begun(task) for task in tasks}
    out: dict[Future, Task] = {}
    while waiting or out:
        for task in waiting[: room(len(client.nthreads()), len(out))]:
            waiting.remove(task)
            # Never a key that Dask knows: it would not compute it again.
            future = client.submit(work, task, key=f"{task.run}-{uuid4().hex[:8]}", pure=False)
            out[future] = task
        with suppress(TimeoutError, CancelledError):
            wait(list(out), timeout=_LOOK, return_when="FIRST_COMPLETED")
        for future in [future for future in out if future.done()]:
            task = out.pop(future)
            status = _status(task, future, begun(task) - before[task.run])
            if status is None:
                waiting.insert(0, task)
            else:
                each(task, status)


def room(workers: int, under_way: int) -> int:
    """How many more tasks to send: as many as there are workers, so that few wait for one that
    may die; none where workers have left and more are under way than there are."""
    return max(0, max(1, workers) - under_way)


def _status(task: Task, future: Future, attempts: int) -> Status | None:
    """What became of a task that is over; None for one that deserves another attempt."""
    from distributed.scheduler import KilledWorker

    try:
        return future.result()
    except KilledWorker:
        if attempts < ATTEMPTS:
            return None
        why = f"its worker died {attempts} times"
        return Status(task.run, "failed", why)
    except Exception as error:
        return Status(task.run, "failed", in_one_line(error))
