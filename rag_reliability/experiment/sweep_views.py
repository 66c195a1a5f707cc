"""What the notebook of a sweep shows, from the tables in the sweep's folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from rag_reliability.evaluation.significance import mean_interval
from rag_reliability.experiment.study import prepare_notebook, project_root
from rag_reliability.records import InputError
from rag_reliability.reporting.figures_sweep import sweep_effect

DEFAULTS = (("correctness", "harm", "adversarial_uptake"), ("precision", "adv_share", "mrr"))
"""Metrics shown when none is asked for: the first row of which a sweep has all."""
N_RESAMPLES = 2000


def runs(sweep: str, name: str | None = None) -> pd.DataFrame:
    """``runs.csv`` of a sweep's folder: of one sweep, by default the first.

    Raises InputError for a folder without one, or an unknown name.
    """
    prepare_notebook()
    frame = _read(sweep, "runs.csv")
    known = list(dict.fromkeys(frame["sweep"]))
    if name is not None and name not in known:
        raise InputError(f"{sweep}: unknown sweep {name!r}; known: {', '.join(known)}")
    return frame[frame["sweep"] == (name or known[0])].reset_index(drop=True)


def overview(sweep: str, name: str | None = None) -> pd.DataFrame:
    """The runs with what was varied, whether they are done, and how long they took."""
    frame = runs(sweep, name)
    return frame[[*varied(frame), "status", "seconds", "attempts", "folder"]]


def failures(sweep: str, name: str | None = None) -> pd.DataFrame:
    """Runs that are not done, each with its error in one line."""
    frame = _read(sweep, "failures.csv")
    own = frame[frame["run"].isin(runs(sweep, name)["run"])]
    return own[["run", "status", "error"]].reset_index(drop=True)


def varied(frame: pd.DataFrame) -> list[str]:
    """Parameters that take more than one value among these runs, in the file's order."""
    columns = list(frame.columns)
    between = columns[columns.index("sweep") + 1 : columns.index("status")]
    return [column for column in between if frame[column].nunique() > 1] or between[:1]


def effects(sweep: str, name: str | None = None, metrics: str | None = None) -> pd.DataFrame:
    """Each metric at each value of each varied parameter, by system, with 95 % intervals.

    A topic's value is its mean over every run that has the parameter at that value, so the other
    parameters weigh alike; mean and percentile bootstrap interval are then over topics. ``@k`` is
    dropped from a metric's name, since k may be what is varied.

    Returns columns parameter, value, system, metric, mean, low, high, topics.
    """
    asked = runs(sweep, name)
    values = _read(sweep, "sweep.csv")
    own = values[values["run"].isin(asked["run"])]
    own = own.assign(metric=own["metric"].str.partition("@")[0], value=own["value"].astype(float))
    own = own[own["metric"].isin(chosen(own["metric"], metrics))]
    order = {metric: i for i, metric in enumerate(chosen(own["metric"], metrics))}
    rows = [
        (parameter, at, system, metric, *_interval(group))
        for parameter in varied(asked)
        for at, block in own.groupby(parameter, sort=False)
        for (system, metric), group in block.groupby(["system", "metric"], sort=False)
    ]
    columns = ["parameter", "value", "system", "metric", "mean", "low", "high", "topics"]
    frame = pd.DataFrame(rows, columns=columns)
    place = {p: i for i, p in enumerate(varied(asked))}
    by = frame["parameter"].map(place) * len(order) + frame["metric"].map(order)
    return frame.iloc[by.argsort(kind="stable")].reset_index(drop=True)


def _interval(group: pd.DataFrame) -> tuple[float, float, float, int]:
    topics = group.groupby("qid")["value"].mean()
    found = mean_interval(topics, n_resamples=N_RESAMPLES)
    return found.mean, found.low, found.high, len(topics)


def chosen(there_are: pd.Series, metrics: str | None) -> list[str]:
    """Metrics asked for (comma-separated), or the first of ``DEFAULTS`` that are all there.

    Raises InputError naming the known ones.
    """
    known = list(dict.fromkeys(there_are))
    if metrics is None:
        return next(([*row] for row in DEFAULTS if set(row) <= set(known)), known[:3])
    wanted = [word.strip() for word in metrics.split(",") if word.strip()]
    for metric in wanted:
        if metric not in known:
            raise InputError(f"unknown metric {metric!r}; known: {', '.join(known)}")
    return wanted


def means_table(table: pd.DataFrame) -> pd.DataFrame:
    """``effects`` to read: a row for each value and system, cells "mean [low, high]"."""
    cells = [
        f"{row.mean:.3f} [{row.low:.3f}, {row.high:.3f}]" for row in table.itertuples(index=False)
    ]
    rows = ["parameter", "value", "system"]
    shown = table.assign(cell=cells).set_index([*rows, "metric"])["cell"].unstack("metric")
    order = pd.MultiIndex.from_frame(table[rows].drop_duplicates())
    return shown.reindex(order)[list(dict.fromkeys(table["metric"]))]


def figure(table: pd.DataFrame, parameter: str | None = None) -> Figure:
    """Metrics against one varied parameter (default: the first) of a table of ``effects``."""
    known: Sequence[str] = list(dict.fromkeys(table["parameter"]))
    parameter = parameter or known[0]
    if parameter not in known:
        raise InputError(f"parameter {parameter!r} was not varied; varied: {', '.join(known)}")
    return sweep_effect(table[table["parameter"] == parameter], parameter)


def reused(sweep: str, name: str | None = None) -> pd.DataFrame:
    """What runs shared: of each stage, how many runs used it, how often it was computed.

    Returns columns stage, runs, computed, seconds (spent computing), saved (seconds that computing
    it in every run would have taken beyond that).
    """
    frame = _read(sweep, "stages.csv")
    own = frame[frame["run"].isin(runs(sweep, name)["run"])]
    own = own.assign(seconds=own["seconds"].astype(float))
    keys = own.groupby(["stage", "key"], sort=False)["seconds"].agg(["first", "size", "sum"])
    # A key has one record, whichever run computed it; a second one would show as another time.
    times = own.groupby(["stage", "key"], sort=False)["created"].nunique()
    found = pd.DataFrame(
        {
            "runs": keys["size"],
            "computed": times,
            "seconds": keys["first"] * times,
            "saved": keys["sum"] - keys["first"] * times,
        }
    )
    return found.groupby("stage", sort=False).sum().round(1).reset_index()


def _read(sweep: str, file: str) -> pd.DataFrame:
    path = Path(project_root(), sweep, file)
    if not path.is_file():
        raise InputError(
            f"{path}: no such file; make it with: rag-reliability sweep … --out {sweep}"
        )
    return pd.read_csv(path, keep_default_na=False, dtype={"qid": str, "run": str})
