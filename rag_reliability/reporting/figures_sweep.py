"""The figure of a sweep: metrics against the parameter that was varied, by system."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from rag_reliability.reporting.marks import points, series_legend
from rag_reliability.reporting.style import (
    DOUBLE,
    INTERVAL,
    SYSTEMS,
    canvas,
    in_order,
    metric_label,
    need,
    share_axis,
    styled,
    system_look,
)

_GAP = 0.12


@styled()
def sweep_effect(frame: pd.DataFrame, parameter: str) -> Figure:
    """Each metric at each value of ``parameter``, in the order the values are met.

    frame: columns value, system, metric, mean, low, high. Values stand at equal distances, whether
    words or numbers; lines join what one system does and claim nothing of values between.
    """
    need(frame, "value", "system", "metric", "mean", "low", "high")
    metrics, values = list(dict.fromkeys(frame["metric"])), list(dict.fromkeys(frame["value"]))
    fig, axes = canvas(DOUBLE, 2.7, columns=len(metrics))
    placed = frame.assign(at=frame["value"].map({v: i for i, v in enumerate(values)}))
    for ax, metric in zip(axes[0], metrics, strict=True):
        part = placed[placed["metric"] == metric]
        systems = in_order(part["system"], SYSTEMS)
        for position, name in enumerate(systems):
            own, look = part[part["system"] == name].sort_values("at"), system_look(name, position)
            at = own["at"] + _GAP * (position - (len(systems) - 1) / 2)
            ax.plot(at, own["mean"], color=look.colour, linestyle=look.line, linewidth=0.7)
        points(ax, part, len(values), gap=_GAP)
        ax.set_xticks(range(len(values)), [str(v).replace(",", ",\n") for v in values])
        share_axis(ax, part["low"].min(), part["high"].max())
        ax.set_ylabel(metric_label(metric, arrow=True))
        ax.set_xlabel(parameter.replace("_", " "))
    series_legend(fig, axes[0, 0], f"bars: {INTERVAL}, over topics")
    return fig
