"""Which run comes when, and what becomes of each: none is lost, whatever dies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from rag_reliability.sweep.spec import Run
from rag_reliability.sweep.work import Status, Task, in_one_line

if TYPE_CHECKING:
    from distributed import Client, Future

LOST = "cluster lost: its scheduler does not answer any more"
"""What is said of the runs that were not over when that happened."""
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
    until it was itself begun ``ATTEMPTS`` times (``begun`` counts), and then comes back as failed.
    If the scheduler is lost, all do that are not over, those too that a worker still computes.
    """
    waiting = list(tasks)
    before = {task.run: begun(task) for task in tasks}
    out: dict[Future, Task] = {}
    try:
        while waiting or out:
            _send(client, work, waiting, out)
            for future in _over(out):
                status = _status(out[future], future, begun(out[future]) - before[out[future].run])
                task = out.pop(future)
                if status is None:
                    waiting.insert(0, task)
                else:
                    each(task, status)
    except _ClusterLost:
        for task in (*out.values(), *waiting):
            each(task, Status(task.run, "failed", LOST))


class _ClusterLost(Exception):
    """The scheduler went away, and with it what it knew of the tasks."""


def _send(
    client: Client, work: Callable[[Task], Status], waiting: list[Task], out: dict[Future, Task]
) -> None:
    """Send as many of the waiting tasks as there is room for."""
    from distributed.client import ClosedClientError

    if client.status != "running":  # asking would first wait long for an answer
        raise _ClusterLost
    try:
        for task in waiting[: room(len(client.nthreads()), len(out))]:
            # Never a key that Dask knows: it would not compute it again.
            future = client.submit(work, task, key=f"{task.run}-{uuid4().hex[:8]}", pure=False)
            out[future] = task
            waiting.remove(task)
    except (OSError, ClosedClientError) as error:
        raise _ClusterLost from error


def _over(out: Mapping[Future, Task]) -> list[Future]:
    """The tasks that are over, after waiting a while for the first."""
    from distributed import wait

    with suppress(TimeoutError, CancelledError):
        wait(list(out), timeout=_LOOK, return_when="FIRST_COMPLETED")
    return [future for future in out if future.done()]


def room(workers: int, under_way: int) -> int:
    """How many more tasks to send: as many as there are workers, so that few wait for one that
    may die; none where workers have left and more are under way than there are."""
    return max(0, max(1, workers) - under_way)


def _status(task: Task, future: Future, attempts: int) -> Status | None:
    """What became of a task that is over; None for one that deserves another attempt.

    Raises _ClusterLost where it was cancelled or its result is out of reach.
    """
    from distributed.scheduler import KilledWorker

    try:
        return future.result()
    except KilledWorker:
        if attempts < ATTEMPTS:
            return None
        why = f"its worker died {attempts} times"
        return Status(task.run, "failed", why)
    except Exception as error:
        if future.status != "error":  # not the task's own: its result cannot be had any more
            raise _ClusterLost from error
        return Status(task.run, "failed", in_one_line(error))
