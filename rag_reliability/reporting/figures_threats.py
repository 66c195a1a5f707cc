"""Figures on threats: every rule over the spoof rate, and what each risks and gains."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rag_reliability.reporting.figures_priors import spread_out
from rag_reliability.reporting.marks import marker_of
from rag_reliability.reporting.style import (
    DOUBLE,
    INTERVAL,
    canvas,
    errors,
    in_order,
    metric_label,
    need,
    share_axis,
    styled,
)
from rag_reliability.reporting.threat_marks import RULES, rule_label, rule_look

MOST = 8
"""Lines that one panel can hold and still be read."""


@styled()
def threat_curves(frame: pd.DataFrame, *, k: int = 5) -> Figure:
    """Each metric over the share of spoofed adversaries, a line a rule, a column of panels a leak.

    frame: columns rule, spoof, leak, metric (no cutoff), mean, low, high; at most ``MOST`` rules.
    """
    need(frame, "rule", "spoof", "leak", "metric", "mean", "low", "high")
    metrics, leaks = list(dict.fromkeys(frame["metric"])), sorted(frame["leak"].unique())
    rules = in_order(frame["rule"], RULES)
    if len(rules) > MOST:
        raise ValueError(f"{len(rules)} rules; expected at most {MOST}")
    height = 0.5 + 2.3 * len(metrics)
    fig, axes = canvas(DOUBLE, height, len(metrics), len(leaks), sharey="row", sharex=True)
    for row, metric in zip(axes, metrics, strict=True):
        own = frame[frame["metric"] == metric]
        for ax, leak in zip(row, leaks, strict=True):
            _lines(ax, own[own["leak"] == leak], rules)
        share_axis(row[0], own["low"].min(), own["high"].max())
        row[0].set_ylabel(metric_label(f"{metric}@{k}", arrow=True))
        _name_ends(row[-1], own[own["leak"] == leaks[-1]], rules)
    for ax, leak in zip(axes[0], leaks, strict=True):
        passed = "none verified" if leak == 0 else f"{leak:.0%} verified".replace("%", " %")
        ax.set_title(f"of the spoofed, {passed}", fontsize=8)
    fig.supxlabel(
        f"Share of adversarial documents with a spoofed label (band: {INTERVAL})", fontsize=8
    )
    return fig


def _lines(ax: Axes, frame: pd.DataFrame, rules: list[str]) -> None:
    for name in rules:
        part, look = frame[frame["rule"] == name].sort_values("spoof"), rule_look(name)
        if name != "similarity":
            ax.fill_between(
                part["spoof"], part["low"], part["high"], color=look.colour, alpha=0.06, linewidth=0
            )
        ax.plot(
            part["spoof"],
            part["mean"],
            linestyle=look.line,
            zorder=3 if name == "similarity" else 2.5,
            **marker_of(look),
        )


def _name_ends(ax: Axes, frame: pd.DataFrame, rules: list[str]) -> None:
    """Name the lines at their right end, moved apart where they would touch."""
    last = frame[frame["spoof"] == frame["spoof"].max()].set_index("rule")["mean"]
    low, high = ax.get_ylim()
    names = sorted(rules, key=lambda r: (last[r], rules.index(r)))
    gap = 0.095 * (high - low)
    steps = gap * np.arange(len(names))
    places = np.array(spread_out(last[names].tolist(), gap))
    places = np.clip(places - steps, low, high - steps[-1]) + steps  # within the panel's height
    x = float(frame["spoof"].max())
    for name, place in zip(names, places, strict=True):
        at, colour = (1.16, (place - low) / (high - low)), rule_look(name).colour
        ax.text(
            *at, rule_label(name), transform=ax.transAxes, va="center", fontsize=7, color=colour
        )
        line = {"arrowstyle": "-", "color": colour, "linewidth": 0.5, "shrinkA": 2, "shrinkB": 3}
        ax.annotate(
            "", (x, last[name]), at, textcoords=ax.transAxes, annotation_clip=False, arrowprops=line
        )


PANELS: Mapping[str, tuple[str, str]] = {
    "worst_adv": ("Worst change in\nadversarial share@{k}", "zero"),
    "honest_adv": ("Change in adversarial\nshare@{k}, honest labels", "zero"),
    "worst_precision": ("Worst change\nin P@{k}", "zero"),
    "kept": ("Least share of true\nlow-tier documents kept", "aim"),
}


@styled()
def no_regret(frame: pd.DataFrame, *, k: int = 5, leak: float = 0.05, aim: float = 0.8) -> Figure:
    """What each rule risks and gains against similarity alone: a row a rule, a panel a question.

    frame: columns rule, and for each name in ``PANELS`` and worst_adv_all the estimate with _low
    and _high. Filled: worst case over spoof rates and leaks up to ``leak``; hollow: over all leaks.
    """
    need(frame, "rule", "worst_adv_all", *PANELS)
    rules = in_order(frame["rule"], RULES)
    rows = frame.set_index("rule").loc[rules]
    places = np.arange(len(rules), dtype=np.float64)
    fig, axes = canvas(DOUBLE, 1.0 + 0.24 * len(rules), 1, len(PANELS), sharey=True)
    for ax, (name, (label, line)) in zip(axes[0], PANELS.items(), strict=True):
        _points(ax, rows, name, places)
        ax.axvline(0 if line == "zero" else aim, color="#777777", linewidth=0.8, linestyle="--")
        ax.set_xlabel(label.format(k=k))
        ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
        ax.grid(axis="y", visible=False)
    _points(axes[0, 0], rows, "worst_adv_all", places + 0.28, filled=False)
    first = axes[0, 0]
    first.set_yticks(places, [rule_label(r) for r in rules])
    first.set_ylim(len(rules) - 0.4, -0.6)
    fig.suptitle(
        f"Points: estimate and {INTERVAL}; worst cases over all spoof rates and leaks up to "
        f"{leak:g} (hollow: over all leaks)",
        fontsize=7,
    )
    return fig


def _points(
    ax: Axes, rows: pd.DataFrame, name: str, places: np.ndarray, *, filled: bool = True
) -> None:
    ends = rows[[name, f"{name}_low", f"{name}_high"]].astype(float)
    ends.columns = pd.Index(["mean", "low", "high"])
    colours = [rule_look(r).colour for r in rows.index]
    bars = errors(ends)
    for i, (mean, colour) in enumerate(zip(ends["mean"], colours, strict=True)):
        ax.errorbar(
            mean,
            places[i],
            xerr=bars[:, i : i + 1],
            marker="o",
            markersize=3.6 if filled else 3.0,
            color=colour,
            markerfacecolor=colour if filled else "white",
            elinewidth=1.0 if filled else 0.6,
            linestyle="",
        )
