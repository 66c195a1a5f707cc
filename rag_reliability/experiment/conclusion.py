"""What would change the conclusion: the run's own comparison again at each value of its sweeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from rag_reliability.evaluation.significance import mean_interval, paired_p_value, topic_deltas
from rag_reliability.experiment.report_parts import saved
from rag_reliability.experiment.scoring import BASELINE
from rag_reliability.experiment.study import Study
from rag_reliability.records import InputError

SYSTEM = "source_aware"
ASKED = ("precision", "adv_share")
SWEPT = {
    "spread": "gamma",
    "named_spread": "spread",
    "k": "k",
    "window": "window",
    "spoofing": "rate",
}
"""Each sweep and the column that holds what it varies."""


def sensitivity(study: Study, *, older: bool = False) -> pd.DataFrame:
    """Paired differences of ``SYSTEM`` from similarity alone, in the run and at each swept value.

    Returns: columns sweep, value (as in the sweep's file), here (the run's own setting), metric
    (without cutoff), diff, low, high, p (of this value alone, not adjusted), n_topics. The run
    itself has the sweep "" and the value "".

    Raises InputError for a sweep that was not made, unless ``older``: it is then left out.
    """
    retrieval = saved(study, "metrics/retrieval.csv")
    rows = list(_rows(study, retrieval, sweep="", value="", here=True))
    base = retrieval[retrieval["system"] == BASELINE]
    for sweep, column in SWEPT.items():
        try:
            frame = saved(study, f"metrics/{sweep}.csv")
        except InputError:
            if not older:
                raise
            continue
        for value, part in frame.groupby(column, sort=False):
            # Spread and window do not touch the baseline, so their files leave it out.
            whole = part if BASELINE in set(part["system"]) else pd.concat([part, base])
            here = value == _setting(study, sweep)
            rows += _rows(study, whole, sweep=sweep, value=value, here=here)
    return pd.DataFrame(rows)


def _setting(study: Study, sweep: str) -> Any:
    """The run's own value of what a sweep varies; None where the sweep cannot have it."""
    config = study.config
    return {
        "spread": 1.0 if config.spread == "current" else None,
        "named_spread": config.spread,
        "k": config.k,
        "window": str(config.window),
        "spoofing": 0.0,
    }[sweep]


def _rows(study: Study, frame: pd.DataFrame, **facts: Any) -> Iterator[dict[str, Any]]:
    """One row for each metric asked; ``frame`` holds one value of one sweep, both systems."""
    own = frame[frame["system"].isin([SYSTEM, BASELINE])]
    own = own.assign(metric=own["metric"].str.partition("@")[0])
    deltas = topic_deltas(own[["system", "qid", "metric", "value"]], BASELINE)
    drawn = {"n_resamples": study.config.n_resamples, "seed": study.config.seed}
    for metric in ASKED:
        delta = deltas.loc[deltas["metric"] == metric, "delta"].to_numpy()
        if len(delta):
            found = mean_interval(delta, **drawn)
            numbers = {"diff": found.mean, "low": found.low, "high": found.high}
            p = paired_p_value(delta, **drawn)
            yield {**facts, "metric": metric, **numbers, "p": p, "n_topics": len(delta)}
