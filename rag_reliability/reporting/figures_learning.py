"""The figure of learned priors: what data say of each source type, beside the hand-set value."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from rag_reliability.reporting.marks import marker_of, top_legend
from rag_reliability.reporting.style import (
    DOUBLE,
    Look,
    canvas,
    errors,
    in_order,
    need,
    styled,
    tier_label,
    tier_order,
)

SOURCES: Mapping[str, tuple[str, Look]] = {
    "hand-set": ("Hand-set λ", Look("#000000", "D", size=5.0, filled=False)),
    "useful": ("Share useful (judged here)", Look("#0072B2", "o")),
    "truthful": ("Share truthful (judged here)", Look("#009E73", "s")),
    "agreement": ("Agreement (no labels)", Look("#CC79A7", "v")),
    "expertqa": ("ExpertQA, experts' labels", Look("#E69F00", "^", size=5.0)),
}
NOTE = "bars: 95 % credible interval; dots: estimates with one fold of topics left out"


@styled()
def learned_priors(frame: pd.DataFrame) -> Figure:
    """Priors of each source type by where they come from, with 95 % credible intervals.

    frame: columns source, source_type, prior, low, high, fold. Rows of fold -1 are estimates from
    all topics; those of other folds, each without that fold's topics, are the small dots.
    """
    need(frame, "source", "source_type", "prior", "low", "high", "fold")
    fig, axes = canvas(DOUBLE, 3.0)
    ax, kinds = axes[0, 0], tier_order(frame["source_type"])
    sources = in_order(frame["source"], SOURCES)
    place = {kind: i for i, kind in enumerate(kinds)}
    gap, handles = 0.8 / max(len(sources), 1), []
    for position, source in enumerate(sources):
        label, look = SOURCES.get(source, (source, Look("#777777", "x")))
        own = frame[frame["source"] == source]
        at = own["source_type"].map(place) + gap * (position - (len(sources) - 1) / 2)
        left_out = own["fold"] >= 0
        ax.scatter(
            at[left_out] + 0.25 * gap,
            own["prior"][left_out],
            s=3,
            color=look.colour,
            linewidths=0,
        )
        whole = own[~left_out].rename(columns={"prior": "mean"})
        bars = None if whole["low"].isna().all() else np.nan_to_num(errors(whole))
        style = {"linestyle": "", "elinewidth": 0.9, "label": label, **marker_of(look)}
        handles.append(ax.errorbar(at[~left_out], whole["mean"], yerr=bars, **style))
    ax.set_xticks(range(len(kinds)), [tier_label(k) for k in kinds])
    ax.set_xlim(-0.5, len(kinds) - 0.5)
    for edge in range(1, len(kinds)):
        ax.axvline(edge - 0.5, color="#DDDDDD", linewidth=0.6, zorder=0)
    ax.grid(axis="x", visible=False)
    ax.set_ylim(0, 1.03)
    ax.set_ylabel("Prior λ, or P(reliable | type)")
    top_legend(fig, handles, [h.get_label() for h in handles], NOTE)
    return fig
