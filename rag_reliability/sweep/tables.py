"""What a sweep leaves behind: its runs, failures, stages and metrics as tidy tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from rag_reliability.files import atomic_write_text
from rag_reliability.sweep.spec import Sweep
from rag_reliability.sweep.work import Status

METRICS = ("retrieval", "answers", "stance")
"""The metrics of a run itself; what its own sweeps and threats measured has other columns."""
_STAGES = ["run", "stage", "key", "seconds", "created"]


def write_tables(folder: Path, sweeps: Sequence[Sweep], statuses: dict[str, Status]) -> None:
    """Write ``runs.csv``, ``failures.csv``, ``stages.csv`` and ``sweep.csv`` into ``folder``.

    Each holds every run of ``sweeps`` in the order of their files, and nothing of others that
    may lie in the folder; metrics and stages are those of runs that are done.
    """
    varied = list(dict.fromkeys(name for sweep in sweeps for name in sweep.varied))
    runs = _runs(sweeps, varied, statuses)
    done = [run for run in runs["run"] if statuses[run].status == "done"]
    _save(runs.drop(columns="error"), folder / "runs.csv")
    failed = runs[runs["status"] != "done"]
    _save(failed[["run", "sweep", *varied, "status", "error"]], folder / "failures.csv")
    stages = [row for run in done for row in _stages(folder / "runs" / run, run)]
    _save(pd.DataFrame(stages, columns=_STAGES), folder / "stages.csv")
    given = runs[["run", "sweep", *varied]]
    _save(_metrics(folder, given, done), folder / "sweep.csv")


def _runs(sweeps: Sequence[Sweep], varied: list[str], statuses: dict[str, Status]) -> pd.DataFrame:
    rows = []
    for run in (run for sweep in sweeps for run in sweep.runs):
        status = statuses[run.run]
        rows.append(
            {
                "run": run.run,
                "sweep": run.sweep,
                **{name: run.value(name) for name in varied},
                "status": status.status,
                "seconds": status.seconds,
                "attempts": status.attempts,
                "folder": f"runs/{run.run}",
                "error": status.error,
            }
        )
    return pd.DataFrame(rows)


def _stages(folder: Path, run: str) -> Iterator[tuple[str, str, str, float, str]]:
    for path in sorted((folder / "stages").glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        if "outputs" in record and not path.stem.startswith("notebook-"):
            yield run, record["name"], record["key"][:16], record["seconds"], record["created"]


def _metrics(folder: Path, given: pd.DataFrame, done: Sequence[str]) -> pd.DataFrame:
    last = ["system", "qid", "metric", "value", "arm"]
    frames = [
        pd.read_csv(path, dtype={"qid": str}).assign(run=run).reindex(columns=["run", *last])
        for run in done
        for path in (folder / "runs" / run / "metrics" / f"{name}.csv" for name in METRICS)
        if path.is_file()
    ]
    values = pd.concat(frames) if frames else pd.DataFrame(columns=["run", *last])
    return given.merge(values.astype({"run": str}), on="run", how="inner")


def _save(frame: pd.DataFrame, path: Path) -> None:
    atomic_write_text(path, frame.to_csv(index=False))
