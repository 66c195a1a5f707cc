"""Figure of the grounding check: what the scorer is worth on pairs that people labelled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rag_reliability.reporting.style import (
    DOUBLE,
    INTERVAL,
    Look,
    canvas,
    in_order,
    need,
    say_nothing,
    styled,
)

SETS: Mapping[str, str] = {
    "labelled": "Labelled pairs",
    "expertqa": "ExpertQA, complete or partial",
    "healthver": "HealthVer, supported or not",
    "healthver_refuted": "HealthVer, supported or refuted",
    "labelled_swapped": "Labelled pairs, swapped",
    "expertqa_swapped": "ExpertQA, swapped",
    "answers_swapped": "Own answers, swapped",
    "answers_other_topic": "Own answers, other topic",
}
"""Readable names of the sets of pairs; in swapped ones nobody labelled anything."""
_LOOKS = (
    Look("#000000", "o", "-"),
    Look("#0072B2", "s", "-"),
    Look("#E69F00", "^", "-"),
    Look("#D55E00", "D", "-"),
    Look("#777777", "x", ":"),
    Look("#56B4E9", "v", "--"),
    Look("#009E73", "P", "--"),
    Look("#CC79A7", "h", "-."),
)


@styled()
def grounding_check(frame: pd.DataFrame, *, bands: tuple[float, float] | None = None) -> Figure:
    """ROC, calibration with the edges of the bands, and error over coverage, a line a set.

    frame: columns set, curve (roc, calibration or risk), x, y, low, high, n. Calibration is drawn
    for labelled sets alone, for a swap's share of supported pairs is ours. bands: support below
    which a claim counts as unsupported, and from which as supported.
    """
    need(frame, "set", "curve", "x", "y", "low", "high", "n")
    sets = in_order(frame["set"], SETS)
    fig, axes = canvas(DOUBLE, 3.1, columns=3)
    labelled = frame[
        ~frame["set"].isin([s for s in SETS if s.startswith("answers") or "swap" in s])
    ]
    _roc(axes[0, 0], frame[frame["curve"] == "roc"], sets)
    _calibration(axes[0, 1], labelled[labelled["curve"] == "calibration"], sets, bands)
    _risk(axes[0, 2], frame[frame["curve"] == "risk"], sets)
    handles = [axes[0, 0].plot([], [], **_line(name))[0] for name in sets]
    fig.legend(
        handles,
        [SETS.get(name, name.replace("_", " ")) for name in sets],
        loc="outside lower center",
        ncols=3,
        title=f"bars: {INTERVAL}, whole questions drawn",
        title_fontsize=7,
    )
    return fig


def _line(name: str) -> dict[str, Any]:
    known = list(SETS)
    look = _LOOKS[known.index(name) if name in known else -1]
    return {"color": look.colour, "linestyle": look.line}


def _roc(ax: Axes, frame: pd.DataFrame, sets: list[str]) -> None:
    ax.plot([0, 1], [0, 1], color="#BBBBBB", linewidth=0.7)
    for name in sets:
        part = frame[frame["set"] == name]
        ax.plot(part["x"], part["y"], linewidth=1.0, **_line(name))
    ax.set_xlabel("Unsupported pairs above threshold")
    ax.set_ylabel("Supported pairs above it ↑")
    _square(ax)
    if not len(frame):
        say_nothing(ax)


def _calibration(
    ax: Axes, frame: pd.DataFrame, sets: list[str], bands: tuple[float, float] | None
) -> None:
    ax.plot([0, 1], [0, 1], color="#BBBBBB", linewidth=0.7)
    for edge in bands or ():
        ax.axvline(edge, color="#555555", linestyle=":", linewidth=0.8)
    for name in (s for s in sets if s in set(frame["set"])):
        part = frame[frame["set"] == name]
        gaps = np.stack([part["y"] - part["low"], part["high"] - part["y"]])
        ax.errorbar(
            part["x"],
            part["y"],
            yerr=np.clip(np.nan_to_num(gaps.astype(float)), 0, None),
            linewidth=1.0,
            elinewidth=0.6,
            **_line(name),
        )
    ax.set_xlabel("Support (dotted: edges of bands)" if bands else "Support")
    ax.set_ylabel("Share people call supported")
    _square(ax)
    if not len(frame):
        say_nothing(ax, "no labels at hand")


def _risk(ax: Axes, frame: pd.DataFrame, sets: list[str]) -> None:
    for name in sets:
        part = frame[frame["set"] == name]
        ax.plot(part["x"], part["y"], linewidth=1.0, **_line(name))
    ax.axhline(0.5, color="#BBBBBB", linewidth=0.7)
    ax.set_xlabel("Share of pairs judged, surest first")
    ax.set_ylabel("Balanced error ↓")
    ax.set_xlim(0, 1.02)
    ax.set_ylim(0, 0.62)
    ax.set_xticks(np.linspace(0, 1, 5), ["0", ".25", ".50", ".75", "1"])
    if not len(frame):
        say_nothing(ax)


def _square(ax: Axes) -> None:
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    for setter in (ax.set_xticks, ax.set_yticks):
        setter(np.linspace(0, 1, 5), ["0", ".25", ".50", ".75", "1"])
