"""Figures of the ranking: by topic, beside the study, and over spread, k and window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rag_reliability.reporting.marks import bands, marker_of, points, series_legend
from rag_reliability.reporting.style import (
    DOUBLE,
    INTERVAL,
    SINGLE,
    SPREADS,
    canvas,
    errors,
    in_order,
    metric_label,
    natural,
    need,
    say_nothing,
    share_axis,
    styled,
    system_label,
    system_look,
)


@styled()
def per_topic(
    metrics: pd.DataFrame,
    *,
    names: Sequence[str] = ("precision@5", "adv_share@5"),
    systems: Sequence[str] = ("similarity", "source_aware_3k", "source_aware"),
) -> Figure:
    """Each topic's value of each metric under each system; a thin line joins a topic's systems.

    metrics: columns system, qid, metric, value. Each system has its own place within a topic's row,
    so equal values stand one under the other.
    """
    need(metrics, "system", "qid", "metric", "value")
    qids = sorted(metrics["qid"].unique(), key=natural, reverse=True)
    fig, axes = canvas(DOUBLE, 0.8 + 0.31 * len(qids), columns=len(names), sharey=True)
    for ax, name in zip(axes[0], names, strict=True):
        wide = metrics[metrics["metric"] == name].pivot_table(
            index="qid", columns="system", values="value"
        )
        _topic_rows(ax, wide.reindex(qids), [s for s in systems if s in wide.columns])
        ax.set_xlabel(f"{metric_label(name, arrow=True)} of each topic")
    axes[0, 0].set_yticks(range(len(qids)), qids)
    axes[0, 0].set_ylabel("Topic")
    series_legend(fig, axes[0, 0])
    return fig


def _topic_rows(ax: Axes, wide: pd.DataFrame, systems: list[str]) -> None:
    if not systems:
        return say_nothing(ax)
    values = wide[systems].to_numpy(float)
    offsets = 0.27 * ((len(systems) - 1) / 2 - np.arange(len(systems)))
    for row, line in enumerate(values):
        if row % 2:
            ax.axhspan(row - 0.5, row + 0.5, color="#F2F2F2", linewidth=0, zorder=0)
        ax.plot(line, row + offsets, color="#999999", linewidth=0.8, zorder=2)
    for column, name in enumerate(systems):
        look = system_look(name, column)._replace(size=4.5)
        fill = {**marker_of(look), "markerfacecolor": look.colour if look.filled else "white"}
        rows = np.arange(len(wide)) + offsets[column]
        ax.plot(values[:, column], rows, linestyle="", label=system_label(name), zorder=3, **fill)
    ax.set_xlim(-0.04, 1.04)
    ax.set_ylim(-0.5, len(wide) - 0.5)
    ax.grid(axis="y", visible=False)


@styled()
def study_comparison(frame: pd.DataFrame) -> Figure:
    """The study's figures beside ours with their intervals, a row for each metric.

    frame: columns metric, arm (baseline or source_aware), study (NaN where not given), ours, low,
    high.
    """
    need(frame, "metric", "arm", "study", "ours", "low", "high")
    metrics = list(dict.fromkeys(frame["metric"]))
    fig, axes = canvas(SINGLE, 1.15 + 0.42 * len(metrics))
    ax, handles = axes[0, 0], []
    for arm, system, shift in (
        ("baseline", "similarity", -0.2),
        ("source_aware", "source_aware", 0.2),
    ):
        part = frame[frame["arm"] == arm].rename(columns={"ours": "mean"})
        y, look = part["metric"].map(metrics.index) + shift, system_look(system)._replace(size=4.5)
        handles.append(
            ax.errorbar(
                part["mean"], y, xerr=errors(part), linestyle="", clip_on=False, **marker_of(look)
            )
        )
        stars = ax.plot(
            part["study"],
            y - 0.14,
            "*",
            color=look.colour,
            markersize=6.5,
            markerfacecolor="white",
            zorder=4,
            clip_on=False,
        )
        handles.extend(stars)
    ax.set_yticks(range(len(metrics)), [metric_label(m, arrow=True) for m in metrics])
    ax.set_ylim(len(metrics) - 0.5, -0.5)
    ax.set_xlim(-0.02, 1.02)
    ax.set_xlabel(f"Mean and {INTERVAL}")
    labels = [
        "Similarity only, ours",
        "Similarity only, study",
        "Source-aware, ours",
        "Source-aware, study",
    ]
    fig.legend(
        handles, labels, loc="outside upper center", ncols=2, columnspacing=0.8, handletextpad=0.3
    )
    return fig


@styled()
def spread_sensitivity(curve: pd.DataFrame, named: pd.DataFrame) -> Figure:
    """Each metric over the spread of the priors: λ^γ as a curve, the named spreads as markers.

    curve: columns gamma, metric, system, mean, low, high. named: the same with spread for gamma.
    """
    need(curve, "gamma", "metric", "system", "mean", "low", "high")
    need(named, "spread", "metric", "system", "mean", "low", "high")
    metrics = list(dict.fromkeys(curve["metric"]))
    fig, axes = canvas(
        DOUBLE, 0.5 + 1.85 * len(metrics), len(metrics), 2, width_ratios=[1.7, 1], sharey="row"
    )
    spreads = in_order(named["spread"], SPREADS)
    for row, metric in zip(axes, metrics, strict=True):
        swept, fixed = curve[curve["metric"] == metric], named[named["metric"] == metric]
        bands(row[0], swept, "gamma")
        points(row[1], fixed.assign(at=fixed["spread"].map(spreads.index)), len(spreads))
        row[1].set_xticks(range(len(spreads)), spreads)
        both = pd.concat([swept, fixed])
        share_axis(row[0], both["low"].min(), both["high"].max())
        row[0].set_ylabel(metric_label(metric, arrow=True))
        row[0].axvline(1, color="#777777", linewidth=0.8, linestyle=":")
    axes[-1, 0].set_xlabel(f"γ in λ$^γ$ (0: no prior; 1: the current spread); band: {INTERVAL}")
    axes[-1, 1].set_xlabel("Named spread")
    series_legend(fig, axes[0, 0])
    return fig


@styled()
def k_window(frame: pd.DataFrame, *, k: int = 5) -> Figure:
    """Each metric over the cutoff k (exact window) and over the rank window (at one k).

    frame: columns k, window (whole number or "exact"), metric, mean, low, high, and system if
    there are several. A cutoff in the metric's name is dropped. Window k is similarity's own set.
    """
    need(frame, "k", "window", "metric", "mean", "low", "high")
    frame = frame.assign(
        metric=frame["metric"].str.partition("@")[0], window=frame["window"].astype(str)
    )
    if "system" not in frame:
        frame = frame.assign(system="source_aware")
    metrics = list(dict.fromkeys(frame["metric"]))
    fig, axes = canvas(
        DOUBLE, 0.5 + 1.75 * len(metrics), len(metrics), 2, sharex="col", sharey="row"
    )
    for row, metric in zip(axes, metrics, strict=True):
        part = frame[frame["metric"] == metric]
        bands(row[0], part[part["window"] == "exact"], "k", markers=True)
        _window_panel(row[1], part[part["k"] == k])
        share_axis(row[0], part["low"].min(), part["high"].max())
        row[0].set_ylabel(metric_label(f"{metric}@k", arrow=True))
        row[0].set_xticks(sorted(frame.loc[frame["window"] == "exact", "k"].unique()))
    axes[-1, 0].set_xlabel(f"k (exact ranking); band: {INTERVAL}")
    axes[-1, 1].set_xlabel(f"Rank window at k = {k}; bars: {INTERVAL}")
    series_legend(fig, axes[0, 0])
    return fig


def _window_panel(ax: Axes, frame: pd.DataFrame) -> None:
    windows = sorted(frame["window"].unique(), key=lambda w: (w == "exact", natural(w)))
    base = frame[frame["system"] == "similarity"]
    rest = frame[frame["system"] != "similarity"]
    if len(base):
        look = system_look("similarity")
        ax.axhline(base["mean"].iloc[0], color=look.colour, linestyle=look.line, linewidth=1)
    points(ax, rest.assign(at=rest["window"].map(windows.index)), len(windows))
    ax.set_xticks(range(len(windows)), windows)
