"""Rank flow of one topic: which document moved where."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rag_reliability.reporting.style import (
    ADVERSARIAL,
    SINGLE,
    canvas,
    need,
    styled,
    tier_label,
    tier_look,
    tier_order,
)

_TRACE = (
    "docno",
    "source_type",
    "sim",
    "prior",
    "score",
    "rank_sim",
    "rank_score",
    "in_top_before",
    "in_top_after",
)


@styled()
def rank_flow(trace: pd.DataFrame, *, depth: int = 8) -> Figure:
    """Slope chart of one topic: each document's rank by similarity, and by similarity times prior.

    trace: one topic's rows of a rank trace, with label and adversarial. Shown are the documents
    within the first ``depth`` ranks on either side, in order; each end bears its true rank.
    """
    need(trace, *_TRACE, "label", "adversarial")
    shown = trace[(trace["rank_sim"] <= depth) | (trace["rank_score"] <= depth)]
    k = int(trace["in_top_after"].sum())
    places = shown[["rank_sim", "rank_score"]].rank(method="first")
    places += 0.7 * (places > k)  # room for the line under the top k
    tiers = tier_order(shown["source_type"])
    fig, axes = canvas(SINGLE, 1.15 + 0.19 * len(shown))
    ax = axes[0, 0]
    for row, (left, right) in zip(shown.to_dict("records"), places.to_numpy(), strict=True):
        _flow_line(ax, row, (left, right), tiers.index(row["source_type"]))
        _flow_names(ax, row, (left, right))
    ax.axhline(k + 0.85, color="black", linewidth=0.8, linestyle=":")
    ax.annotate(
        f"top {k} above",
        (1, k + 0.85),
        xytext=(7, 0),
        textcoords="offset points",
        va="center",
        fontsize=6.5,
        style="italic",
        annotation_clip=False,
    )
    _flow_axes(ax, len(shown))
    _tier_key(fig, tiers)
    return fig


def _flow_line(
    ax: Axes, row: dict[Hashable, Any], ends: tuple[float, float], position: int
) -> None:
    look, bad = tier_look(row["source_type"], position), bool(row["adversarial"])
    moved = bool(row["in_top_after"]) != bool(row["in_top_before"])
    ax.plot(
        [0, 1],
        ends,
        color=look.colour,
        linestyle="--" if bad else "-",
        linewidth=2.0 if moved else 1.0,
        marker="X" if bad else look.marker,
        markersize=6 if bad else 4.5,
        markeredgecolor="black" if bad else look.colour,
        clip_on=False,
        zorder=3 if moved else 2,
    )


def _flow_names(ax: Axes, row: dict[Hashable, Any], ends: tuple[float, float]) -> None:
    weight, colour = ("bold", "#A33E00") if row["adversarial"] else ("normal", "black")
    left = f"{row['docno']}   {row['rank_sim']}"
    right = f"{row['rank_score']}   {row['docno']}, label {row['label']}"
    for x, y, side, text in ((0, ends[0], "right", left), (1, ends[1], "left", right)):
        ax.annotate(
            text,
            (x, y),
            xytext=(-7 if x == 0 else 7, 0),
            textcoords="offset points",
            ha=side,
            va="center",
            fontsize=6.5,
            weight=weight,
            color=colour,
            annotation_clip=False,
        )


def _flow_axes(ax: Axes, n_rows: int) -> None:
    ax.set_yticks([])
    ax.set_ylim(n_rows + 1.2, 0.4)
    ax.set_xlim(0, 1)
    ax.set_xticks([0, 1], ["Rank by\nsimilarity", "Rank by\nsimilarity × prior"])
    ax.xaxis.tick_top()
    ax.grid(visible=False)
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.tick_params(axis="x", length=0)


def _tier_key(fig: Figure, tiers: list[str]) -> None:
    looks = [tier_look(t, i) for i, t in enumerate(tiers)]
    handles = [Line2D([], [], color=x.colour, marker=x.marker) for x in looks]
    handles.append(
        Line2D([], [], color=ADVERSARIAL, marker="X", linestyle="--", markeredgecolor="black")
    )
    labels = [*(tier_label(t) for t in tiers), "Adversarial"]
    fig.legend(
        handles, labels, loc="outside lower center", ncols=3, columnspacing=0.8, handletextpad=0.4
    )
