"""Where a sweep runs: processes of this machine, a running Dask cluster, or Slurm."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rag_reliability.records import InputError

if TYPE_CHECKING:
    from dask_jobqueue import SLURMCluster
    from distributed import Client

THREADS = (
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"),
    *("NUMBA_NUM_THREADS", "RAYON_NUM_THREADS"),
)
"""What the libraries under a notebook read to know how many threads they may start."""
WORKERS = 2
_LOCAL: Mapping[str, Any] = {
    "threads_per_worker": 1,  # one run at a time in each
    "processes": True,
    "dashboard_address": None,
    "memory_limit": 0,  # memory is the notebooks' own, in processes that Dask does not watch
    "silence_logs": logging.ERROR,  # a worker that died shows in the run's own record
}


@contextmanager
def connected(
    workers: int | None,
    scheduler: str | None,
    cluster: Mapping[str, Any] | None,
    say: Callable[[str], None],
) -> Iterator[Client]:
    """A Dask client: of ``scheduler``'s address, else of the ``cluster`` section, else local.

    Tracebacks that Dask logs of a scheduler that went away are kept back: the runs' records say it.

    Raises InputError: Dask is not installed, no such scheduler, more workers than processors.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise InputError("a sweep needs Dask: pip install 'rag-reliability[dask]'") from error
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    section = {"kind": "local"} if cluster is None else dict(cluster)
    if scheduler:
        with _existing(scheduler) as client:
            say(f"{len(client.nthreads())} workers at {scheduler}")
            yield client
    elif section.get("kind") == "slurm":
        jobs, options = slurm_options(section)
        with slurm(options) as batch, Client(batch) as client:
            batch.scale(jobs=jobs)
            say(f"{jobs} Slurm jobs asked for; runs start as they do")
            yield client
    else:
        wanted = section.get("workers") if workers is None else workers
        count = local_workers(wanted, section)
        env = thread_limits(count)
        say(f"{count} workers, threads of each: {env[THREADS[0]]}")
        with LocalCluster(**_LOCAL, n_workers=count, env=env) as here, Client(here) as client:
            yield client


def local_workers(wanted: Any, section: Mapping[str, Any]) -> int:
    """Number of local workers, 2 if none is wanted and the machine has as many processors.

    Raises InputError for an unknown kind or field of the section, or too many workers.
    """
    from dask.system import CPU_COUNT

    if section.get("kind") != "local":
        raise InputError(f"cluster.kind: unknown {section.get('kind')!r}; known: local, slurm")
    if unknown := section.keys() - {"kind", "workers"}:
        raise InputError(f"cluster.{min(unknown)}: unknown field; known: kind, workers")
    count = min(WORKERS, CPU_COUNT) if wanted is None else wanted
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= CPU_COUNT:
        raise InputError(
            f"workers = {count}: expected 1 to {CPU_COUNT}, one processor each or more"
        )
    return count


def thread_limits(workers: int) -> dict[str, str]:
    """Threads of each worker's libraries: workers × threads ≤ processors; fewer if so set."""
    from dask.system import CPU_COUNT

    share = max(1, CPU_COUNT // workers)
    already = os.environ.get(THREADS[0], "")
    threads = min(share, int(already)) if already.isdigit() and int(already) else share
    return dict.fromkeys(THREADS, str(threads))


@contextmanager
def _existing(address: str) -> Iterator[Client]:
    from distributed import Client

    try:
        client = Client(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise InputError(f"--scheduler {address}: no Dask scheduler answers there") from error
    with client:
        yield client


def slurm_options(section: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """Number of jobs and the arguments of ``SLURMCluster``: the section's own, threads added.

    A worker process takes one run at a time, so ``cores`` (Dask's threads) must equal
    ``processes``; ``job_cpu`` is how many processors Slurm gives to a job.

    Raises InputError naming the field.
    """
    options = {name: value for name, value in section.items() if name not in ("kind", "jobs")}
    jobs = section.get("jobs", 1)
    if not isinstance(jobs, int) or isinstance(jobs, bool) or jobs < 1:
        raise InputError(f"cluster.jobs = {jobs!r}: expected a whole number >= 1")
    processes = options.setdefault("processes", 1)
    if options.setdefault("cores", processes) != processes:
        raise InputError(
            f"cluster.cores = {options['cores']}: must equal processes = {processes}, since a "
            "process takes one run at a time; job_cpu is the number of processors of a job"
        )
    if "memory" not in options:
        raise InputError("cluster.memory: missing; for example 8GB")
    threads = max(1, int(options.get("job_cpu") or processes) // processes)
    exports = [f"export {name}={threads}" for name in THREADS]
    options["job_script_prologue"] = [*exports, *options.get("job_script_prologue", [])]
    return jobs, options


def slurm(options: Mapping[str, Any]) -> SLURMCluster:
    """A Slurm cluster of no jobs yet; ``.job_script()`` is what would be submitted.

    Raises InputError: dask-jobqueue is not installed or refuses an argument.
    """
    try:
        from dask_jobqueue import SLURMCluster
    except ImportError as error:
        message = "cluster.kind slurm needs dask-jobqueue: pip install 'rag-reliability[slurm]'"
        raise InputError(message) from error
    try:
        return SLURMCluster(**options)
    except (TypeError, ValueError) as error:
        raise InputError(f"cluster: {' '.join(str(error).split())}") from error
