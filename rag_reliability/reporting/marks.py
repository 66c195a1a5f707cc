"""Marks that several figures share: lines with bands, points with intervals, one legend on top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rag_reliability.reporting.style import (
    SYSTEMS,
    Look,
    errors,
    in_order,
    system_label,
    system_look,
)


def marker_of(look: Look) -> dict[str, Any]:
    """Marker settings of a look; baselines are larger and hollow, so that equal values nest."""
    return {
        "marker": look.marker,
        "markersize": look.size,
        "color": look.colour,
        "markerfacecolor": look.colour if look.filled else "none",
    }


def bands(ax: Axes, frame: pd.DataFrame, x: str, *, markers: bool = False) -> None:
    """Mean over column ``x`` for each system, and its interval as a band (but for the baseline).

    Solid lines lie under broken ones, so that lines on one another all stay visible.
    """
    for position, name in enumerate(in_order(frame["system"], SYSTEMS)):
        part, look = frame[frame["system"] == name].sort_values(x), system_look(name, position)
        if name != "similarity":
            ax.fill_between(
                part[x], part["low"], part["high"], color=look.colour, alpha=0.14, linewidth=0
            )
        style = marker_of(look) if markers else {"color": look.colour}
        ax.plot(
            part[x],
            part["mean"],
            linestyle=look.line,
            label=system_label(name),
            zorder=2.5 if look.line == "-" else 3,
            **style,
        )


def points(ax: Axes, frame: pd.DataFrame, n_places: int, *, gap: float = 0.2) -> None:
    """Means with intervals at whole-number places (column ``at``), systems side by side."""
    systems = in_order(frame["system"], SYSTEMS)
    for position, name in enumerate(systems):
        part = frame[frame["system"] == name]
        look = system_look(name, position)._replace(size=4.5)
        at = part["at"] + gap * (position - (len(systems) - 1) / 2)
        ax.errorbar(
            at,
            part["mean"],
            yerr=errors(part),
            linestyle="",
            label=system_label(name),
            elinewidth=0.9,
            **marker_of(look),
        )
    ax.set_xlim(-0.5, n_places - 0.5)
    ax.grid(axis="x", visible=False)


def top_legend(
    fig: Figure, handles: Sequence[Artist], labels: Sequence[str], note: str = ""
) -> None:
    """One legend above all axes, under a note that says what bars or bands are."""
    if handles:
        fig.legend(
            list(handles),
            list(labels),
            loc="outside upper center",
            ncols=min(4, len(labels)),
            title=note or None,
            title_fontsize=7,
        )


def series_legend(fig: Figure, ax: Axes, note: str = "") -> None:
    """The legend of what was drawn with labels on ``ax``."""
    top_legend(fig, *ax.get_legend_handles_labels(), note)
