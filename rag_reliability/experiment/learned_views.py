"""What the notebook shows of the learned priors: a figure and two tables, from the run's files."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from rag_reliability.experiment.learned import PRIORS, WHOLE, learned_stage
from rag_reliability.experiment.report_parts import saved
from rag_reliability.experiment.study import Study
from rag_reliability.experiment.views import only, summary
from rag_reliability.reporting.figures_learning import learned_priors


def learned_figure(study: Study) -> Figure:
    """Hand-set and learned priors by source type, from this run's file."""
    return learned_priors(saved(study, PRIORS))


def learned_table(study: Study) -> pd.DataFrame:
    """Learned priors beside the hand-set ones: source types as rows, one column for each source."""
    frame = saved(study, PRIORS)
    whole = frame[frame["fold"] == WHOLE]
    shown = [_with_interval(*row) for row in whole[["prior", "low", "high"]].to_numpy().tolist()]
    table = whole.assign(shown=shown).pivot(index="source_type", columns="source", values="shown")
    return table.reindex(
        index=list(dict.fromkeys(whole["source_type"])),
        columns=list(dict.fromkeys(whole["source"])),
    ).fillna("")


def _with_interval(prior: float, low: float, high: float) -> str:
    return f"{prior:.2f}" + ("" if np.isnan(low) else f" [{low:.2f}, {high:.2f}]")


def learned_summary(study: Study, *names: str) -> pd.DataFrame:
    """Mean over topics of the metrics named, with interval, one row for each way to rank."""
    shown = only(study, learned_stage(study), *names)
    by = ["system", "source", "by", "pairs", "metric"]
    means = summary(study, shown, by)
    means["shown"] = [_with_interval(*r) for r in means[["mean", "low", "high"]].to_numpy()]
    order = list(dict.fromkeys(means["metric"]))
    table = means.pivot_table(
        index=by[:-1], columns="metric", values="shown", aggfunc="first", sort=False
    )
    return table[order].reset_index().rename_axis(columns=None)
