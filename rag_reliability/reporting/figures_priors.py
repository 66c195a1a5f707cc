"""Figures of the priors at work: feedback, smoothing, spoofing, rank flow and iso-score lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rag_reliability.reporting.marks import bands, series_legend
from rag_reliability.reporting.style import (
    DOUBLE,
    INTERVAL,
    SINGLE,
    canvas,
    errors,
    metric_label,
    need,
    share_axis,
    styled,
    tier_label,
    tier_look,
    tier_order,
)


@styled()
def feedback(trajectory: pd.DataFrame, *, initial: Mapping[str, float] | None = None) -> Figure:
    """Priors by source type over the steps of feedback: thin lines are folds, thick their mean.

    trajectory: columns fold, step, source_type, prior. initial: hand-set values, dashed; without
    it, each type's mean prior at the first step.
    """
    need(trajectory, "fold", "step", "source_type", "prior")
    fig, axes = canvas(SINGLE, 2.9)
    ax, last, ends = axes[0, 0], trajectory["step"].max(), {}
    for position, name in enumerate(tier_order(trajectory["source_type"])):
        part, look = trajectory[trajectory["source_type"] == name], tier_look(name, position)
        for _, fold in part.groupby("fold"):
            ax.plot(fold["step"], fold["prior"], color=look.colour, linewidth=0.5, alpha=0.45)
        mean = part.groupby("step")["prior"].mean()
        spots = np.linspace(0, len(mean) - 1, min(len(mean), 5)).astype(int)
        ax.plot(mean.index, mean, color=look.colour, marker=look.marker, markevery=list(spots))
        start = initial[name] if initial and name in initial else mean.iloc[0]
        ax.hlines(
            start, mean.index.min(), last, color=look.colour, linestyle=(0, (4, 3)), linewidth=0.7
        )
        ends[name] = mean.iloc[-1]
    _end_labels(ax, last, ends)
    ax.set_xlabel("Feedback step (topics seen; dashed: hand-set)")
    ax.set_ylabel("Prior λ (mean of folds; thin: each fold)")
    return fig


def _end_labels(ax: Axes, x: float, ends: Mapping[str, float]) -> None:
    """Name the lines at their right end, moved apart where they would touch."""
    low, high = ax.get_ylim()
    names = sorted(ends, key=lambda n: ends[n])
    places = spread_out([ends[n] for n in names], 0.058 * (high - low))
    for position, (name, y) in enumerate(zip(names, places, strict=True)):
        ax.annotate(
            tier_label(name),
            (x, y),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=6.5,
            color="black",
            annotation_clip=False,
        )
        ax.vlines(x, ends[name], y, color=tier_look(name, position).colour, linewidth=0.6)


def spread_out(values: Sequence[float], gap: float) -> list[float]:
    """Ascending ``values`` moved as little as keeps neighbours ``gap`` apart, their centre kept."""
    placed: list[list[float]] = []
    for value in values:
        placed.append([value])
        while len(placed) > 1 and _centre(placed[-2], gap)[-1] + gap > _centre(placed[-1], gap)[0]:
            placed[-2:] = [placed[-2] + placed[-1]]
    return [y for group in placed for y in _centre(group, gap)]


def _centre(group: list[float], gap: float) -> list[float]:
    middle = sum(group) / len(group)
    return [middle + gap * (i - (len(group) - 1) / 2) for i in range(len(group))]


@styled()
def smoothing(frame: pd.DataFrame) -> Figure:
    """Each metric over the smoothing weight α, one line for each number of neighbours.

    frame: columns alpha, neighbours, metric, mean, low, high. α = 0 is no smoothing.
    """
    need(frame, "alpha", "neighbours", "metric", "mean", "low", "high")
    metrics, sizes = list(dict.fromkeys(frame["metric"])), sorted(frame["neighbours"].unique())
    fig, axes = canvas(DOUBLE, 2.4, columns=len(metrics))
    step = np.diff(np.sort(frame["alpha"].unique())).min() if frame["alpha"].nunique() > 1 else 0.1
    looks = [
        ("#0072B2", "o", "-"),
        ("#E69F00", "s", "--"),
        ("#009E73", "^", "-."),
        ("#CC79A7", "v", ":"),
    ]
    for ax, metric in zip(axes[0], metrics, strict=True):
        for i, size in enumerate(sizes):
            part = frame[(frame["metric"] == metric) & (frame["neighbours"] == size)].sort_values(
                "alpha"
            )
            colour, marker, line = looks[i % len(looks)]
            x = part["alpha"] + 0.16 * step * (i - (len(sizes) - 1) / 2)
            ax.errorbar(
                x,
                part["mean"],
                yerr=errors(part),
                color=colour,
                linestyle=line,
                marker=marker,
                label=f"{size} neighbours",
                elinewidth=0.7,
                capsize=1.5,
            )
        part = frame[frame["metric"] == metric]
        share_axis(ax, part["low"].min(), part["high"].max())
        ax.set_ylabel(metric_label(metric, arrow=True))
        ax.set_xlabel("Smoothing weight α")
        # As many ticks as the narrow panel can name: every value, or at most six of them.
        ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    series_legend(fig, axes[0, 0], f"bars: {INTERVAL}")
    return fig


@styled()
def threats(frame: pd.DataFrame) -> Figure:
    """Each metric over the share of adversarial documents that claim a trusted source type.

    frame: columns rate, system, metric, mean, low, high. Similarity alone, which no label moves,
    is the dashed reference.
    """
    need(frame, "rate", "system", "metric", "mean", "low", "high")
    metrics = list(dict.fromkeys(frame["metric"]))
    fig, axes = canvas(DOUBLE, 2.5, columns=len(metrics))
    for ax, metric in zip(axes[0], metrics, strict=True):
        part = frame[frame["metric"] == metric]
        bands(ax, part, "rate", markers=True)
        share_axis(ax, part["low"].min(), part["high"].max())
        ax.set_ylabel(metric_label(metric, arrow=True))
        ax.set_xlabel("Share of adversarial documents with a spoofed label")
    series_legend(fig, axes[0, 0], f"band: {INTERVAL}")
    return fig
