"""A sweep from files to tables: checked, sent to workers, gathered, compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rag_reliability.artefacts import Store, stage_key
from rag_reliability.experiment.preflight import preflight
from rag_reliability.experiment.study import (
    Study,
    open_study,
    outputs_root,
    project_root,
    source_files,
)
from rag_reliability.files import atomic_write_text, run_lock, sha256_file
from rag_reliability.records import InputError
from rag_reliability.runner import execute, is_done, needs_generator
from rag_reliability.sweep.cluster import connected
from rag_reliability.sweep.schedule import execute_all, ordered
from rag_reliability.sweep.spec import Run, Sweep, read_sweeps
from rag_reliability.sweep.tables import write_tables
from rag_reliability.sweep.work import (
    TOKEN,
    Status,
    Task,
    package_digest,
    perform,
    read_status,
    write_status,
)

NOTEBOOK = "sweep"
_COMPARED = ("runs.csv", "failures.csv", "stages.csv", "sweep.csv")


def run_sweeps(
    files: Sequence[str | Path],
    out: str,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    cluster: Mapping[str, Any] | None = None,
    say: Callable[[str], None] = print,
) -> dict[str, Status]:
    """Do what is missing of every run of the sweeps in ``files``; returns each run's status.

    Everything is checked before the first run starts. Into ``out`` go runs/, the tables of
    ``write_tables`` and the executed comparison notebook. ``cluster`` replaces the files' own.

    Raises InputError, one line, for bad input. A run that fails is no error here: it is listed.
    """
    root = project_root()
    sweeps = read_sweeps(files, root)
    section = cluster or _cluster(sweeps)
    runs = [run for sweep in sweeps for run in sweep.runs]
    base = (outputs_root(root) / out).absolute()
    # As notebooks are told it: by its place in the project, so that they name no machine.
    where = base.relative_to(root).as_posix() if base.is_relative_to(root) else str(base)
    studies = _checked(sweeps, where)
    with run_lock(base):
        token = _token(runs)
        atomic_write_text(base / TOKEN, token)
        statuses = {run.run: _known(run, studies[run.run], where) for run in runs}
        missing = [run for run in ordered(runs) if statuses[run.run].status != "done"]
        say(f"{len(runs)} runs, {len(runs) - len(missing)} of them done already")
        try:
            if missing:
                tasks = [_task(run, studies[run.run], where, token) for run in missing]
                with connected(workers, scheduler, section, say) as client:
                    listener = _listener(base, statuses, len(tasks), say)
                    execute_all(client, tasks, perform, _begun, listener)
        finally:
            write_tables(base, sweeps, statuses)
        if any(status.status == "done" for status in statuses.values()):
            _compare(root, base, where, say)
    return statuses


def _cluster(sweeps: Sequence[Sweep]) -> Mapping[str, Any] | None:
    given = [sweep for sweep in sweeps if sweep.cluster is not None]
    for sweep in given[1:]:
        if sweep.cluster != given[0].cluster:
            raise InputError(f"{sweep.file}: cluster: {given[0].file} asks for another one")
    return given[0].cluster if given else None


def _checked(sweeps: Sequence[Sweep], out: str) -> dict[str, Study]:
    """Every run's study, its corpus, priors and models looked at; equal looks are taken once."""
    studies, looked = {}, set()
    for sweep in sweeps:
        for run in sweep.runs:
            answers = needs_generator(run.notebooks)
            seen = (answers, *(run.value(name) for name in _LOOKED_AT))
            try:
                study = open_study(_parameters(run, out))
                if seen not in looked:
                    preflight(study, answers=answers)
            except InputError as error:
                raise InputError(f"{sweep.file}: {run.run}: {error}") from error
            looked.add(seen)
            studies[run.run] = study
    return studies


_LOOKED_AT = (
    *("corpus", "priors", "spread", "unknown_prior", "encoder", "generator"),
    *("language", "languages", "answer_systems", "arms", "threat_rules", "stance_model"),
    *("testbed", "labelled_pairs", "backend", "milvus_uri"),
)


def _parameters(run: Run, out: str) -> dict[str, Any]:
    return {**run.parameters, "config_file": run.config_file, "out": _folder(run, out)}


def _folder(run: Run, out: str) -> str:
    return f"{out}/runs/{run.run}"


def _known(run: Run, study: Study, out: str) -> Status:
    """A run's status, done only when its folder holds what would be made now."""
    status = read_status(study.run_dir, run.run)
    if status.status == "done" and is_done(study, run.notebooks, _parameters(run, out)):
        return status
    return Status(run.run, "missing", attempts=status.attempts)


def _token(runs: Sequence[Run]) -> str:
    """What lies in the sweep's folder for workers to know it by: the runs asked for."""
    asked = {run.run: dict(run.parameters) for run in runs}
    return json.dumps({"package": package_digest(), "runs": asked}, indent=1) + "\n"


def _task(run: Run, study: Study, out: str, token: str) -> Task:
    return Task(
        run=run.run,
        root=str(study.root),
        folder=str(study.run_dir.absolute()),
        out=_folder(run, out),
        token=token,
        package=json.loads(token)["package"],
        config_file=run.config_file,
        notebooks=run.notebooks,
        parameters=dict(run.parameters),
    )


def _begun(task: Task) -> int:
    return read_status(Path(task.folder), task.run).attempts


def _listener(
    base: Path, statuses: dict[str, Status], total: int, say: Callable[[str], None]
) -> Callable[[Task, Status], None]:
    """Keeps what became of each run as it comes in, and says so."""
    heard = 0

    def each(task: Task, status: Status) -> None:
        nonlocal heard
        heard += 1
        folder = base / "runs" / task.run
        told = read_status(folder, task.run)
        if status.status == "failed" and told != status:
            if told.status == "done" and told.attempts > statuses[task.run].attempts:
                status = told  # it was done, but its worker or the cluster went before we heard
            else:
                # The worker could not say so itself; how often it had begun is in its last record.
                known = {**asdict(status), "attempts": told.attempts, "host": told.host}
                status = write_status(folder, Status(**known))
        statuses[task.run] = status
        what = f"{status.seconds:.1f} s" if status.status == "done" else f"failed: {status.error}"
        say(f"[{heard}/{total}] {task.run}: {what}")

    return each


def _compare(root: Path, base: Path, where: str, say: Callable[[str], None]) -> None:
    """Execute the comparison notebook into the sweep's folder, unless nothing has changed."""
    source, output = root / "notebooks" / f"{NOTEBOOK}.ipynb", f"{NOTEBOOK}.ipynb"
    inputs = {
        "notebook": sha256_file(source),
        "sweep": where,
        **{name: sha256_file(base / name) for name in _COMPARED},
    }

    def build(folder: Path) -> None:
        execute(source, folder / output, {"sweep": where}, root)

    key = stage_key(f"notebook-{NOTEBOOK}", inputs, source_files((".",)))
    store = Store(base, say=say)
    store.stage(f"notebook-{NOTEBOOK}", key, (output,), build, meta={"inputs": inputs})
