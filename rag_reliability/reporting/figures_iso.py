"""Similarity against prior for one topic: what a prior buys in similarity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rag_reliability.reporting.style import ADVERSARIAL, SINGLE, canvas, need, styled, tier_label

_TRACE = ("source_type", "sim", "prior", "score", "in_top_before", "in_top_after")


@styled()
def iso_score(trace: pd.DataFrame) -> Figure:
    """Similarity against prior for one topic's candidates, with lines of equal score.

    trace: as for ``rank_flow``. On a line sim · λ is constant; the thick one passes through the
    last document kept. Ringed are the top k by similarity alone.
    """
    need(trace, *_TRACE, "label", "adversarial")
    fig, axes = canvas(SINGLE, 3.1)
    ax = axes[0, 0]
    kept = trace[trace["in_top_after"].astype(bool)]
    x = trace["sim"].to_numpy(float)
    room = max(float(np.ptp(x)) * 0.08, 0.01)
    ax.set_xlim(max(x.min() - room, 0.0), x.max() + room)
    ax.set_ylim(max(trace["prior"].min() - 0.1, 0), min(trace["prior"].max() + 0.1, 1.1))
    _iso_lines(
        ax, trace["score"].to_numpy(float), float(kept["score"].min()) if len(kept) else None
    )
    _iso_points(ax, trace)
    _tier_ticks(ax, trace)
    ax.set_xlabel("Similarity (cosine of query and document)")
    ax.set_ylabel("Prior λ (grey lines: equal score)")
    ax.grid(visible=False)
    _label_key(fig, len(kept))
    return fig


def _tier_ticks(ax: Axes, trace: pd.DataFrame) -> None:
    """Names of the source types at their priors, where each type has one prior."""
    priors = trace.groupby("source_type")["prior"].agg(["min", "max"])
    if (priors["min"] == priors["max"]).all() and priors["min"].is_unique:
        right = ax.secondary_yaxis("right")
        right.set_yticks(priors["min"], [tier_label(t) for t in priors.index])
        right.tick_params(labelsize=6, length=2)


def _iso_lines(ax: Axes, scores: np.ndarray, last: float | None) -> None:
    low, high = ax.get_xlim()
    sims = np.linspace(max(low, 1e-3), high, 200)
    limits = ax.get_ylim()
    for level in np.linspace(max(scores.min(), 0.02), scores.max(), 7):
        ax.plot(sims, level / sims, color="#BBBBBB", linewidth=0.6, zorder=1)
    if last is not None and last > 0:
        ax.plot(sims, last / sims, color="black", linewidth=1.4, zorder=2)
    ax.set_xlim(low, high)
    ax.set_ylim(*limits)


_LABELS = {
    0: ("white", "not relevant (0)"),
    1: ("#9EC9E2", "partly (1)"),
    2: ("#0072B2", "relevant (2)"),
}

_RING: dict[str, Any] = {"facecolors": "none", "edgecolors": "black", "linewidths": 0.8}


def _iso_points(ax: Axes, trace: pd.DataFrame) -> None:
    bad = trace["adversarial"].astype(bool)
    edge: dict[str, Any] = {"edgecolors": "black", "linewidths": 0.7}
    for label, (colour, _) in _LABELS.items():
        part = trace[~bad & (trace["label"].clip(0, 2) == label)]
        ax.scatter(part["sim"], part["prior"], s=26, color=colour, zorder=3, **edge)
    part = trace[bad]
    ax.scatter(part["sim"], part["prior"], s=44, marker="X", color=ADVERSARIAL, zorder=4, **edge)
    part = trace[trace["in_top_before"].astype(bool)]
    ax.scatter(part["sim"], part["prior"], s=95, **_RING, zorder=2.5)


def _label_key(fig: Figure, k: int) -> None:
    def dot(**look: Any) -> Line2D:
        return Line2D([], [], linestyle="", markeredgecolor="black", **look)

    handles = [dot(marker="o", markerfacecolor=c, markersize=5) for c, _ in _LABELS.values()]
    handles += [
        dot(marker="X", color=ADVERSARIAL, markersize=6),
        dot(marker="o", markerfacecolor="none", markersize=9),
        Line2D([], [], color="black", linewidth=1.4),
    ]
    names = [name for _, name in _LABELS.values()]
    names += ["adversarial", f"top {k} by similarity", f"score of rank {k}"]
    fig.legend(handles, names, loc="outside upper center", ncols=3, handletextpad=0.4)
