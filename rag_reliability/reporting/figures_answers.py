"""Figures of the answers and of the corpus."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rag_reliability.reporting.style import (
    ADVERSARIAL,
    ARMS,
    DOUBLE,
    INTERVAL,
    SYSTEMS,
    arm_label,
    canvas,
    errors,
    in_order,
    metric_label,
    natural,
    need,
    styled,
    system_label,
    tier_label,
    tier_order,
)

ANSWER_METRICS = (
    "grounding",
    "trusted_grounding",
    "adversarial_uptake",
    "correctness",
    "harm",
    "stance_error",
)
_NO_ARM = "stance probe"
_ARM_LOOKS = {
    "plain": ("#0072B2", "o"),
    "credibility_in_prompt": ("#E69F00", "s"),
    _NO_ARM: ("#000000", "D"),
}


@styled()
def answers(frame: pd.DataFrame, *, metrics: Sequence[str] = ANSWER_METRICS) -> Figure:
    """Means of the answer metrics by system (rows) and arm (markers), each with its interval.

    frame: columns system, arm (missing for the stance probe), metric, mean, low, high.
    """
    need(frame, "system", "arm", "metric", "mean", "low", "high")
    frame = frame.assign(
        arm=frame["arm"].where(frame["arm"].notna() & (frame["arm"] != ""), _NO_ARM)
    )
    shown = [m for m in metrics if m in set(frame["metric"])]
    systems = in_order(frame["system"], SYSTEMS)
    rows = -(-len(shown) // 3) or 1
    fig, axes = canvas(DOUBLE, 0.5 + rows * (0.55 + 0.29 * len(systems)), rows, 3, sharey=True)
    for ax, metric in zip(axes.flat, shown, strict=False):
        _answer_panel(ax, frame[frame["metric"] == metric], systems)
        ax.set_xlabel(metric_label(metric, arrow=True))
    for ax in axes.flat[len(shown) :]:
        ax.set_visible(False)
    axes[0, 0].set_ylim(len(systems) - 0.5, -0.5)
    _arm_key(fig, in_order(frame["arm"], (*ARMS, _NO_ARM)))
    return fig


def _answer_panel(ax: Axes, frame: pd.DataFrame, systems: list[str]) -> None:
    arms = in_order(frame["arm"], (*ARMS, _NO_ARM))
    for position, arm in enumerate(arms):
        part = frame[frame["arm"] == arm].dropna(subset=["mean"])
        colour, marker = _ARM_LOOKS.get(arm, ("#009E73", "^"))
        y = part["system"].map(systems.index) + 0.26 * (position - (len(arms) - 1) / 2)
        ax.errorbar(part["mean"], y, xerr=errors(part), fmt=marker, color=colour, clip_on=False)
    measured = set(frame.dropna(subset=["mean"])["system"])
    for i in (i for i, name in enumerate(systems) if name not in measured):
        ax.text(
            0.5,
            i,
            "not measured",
            ha="center",
            va="center",
            fontsize=6.5,
            color="#555555",
            style="italic",
        )
    ax.set_xlim(-0.02, 1.02)
    ax.set_xticks(np.linspace(0, 1, 5), ["0", ".25", ".50", ".75", "1"])
    ax.set_yticks(range(len(systems)), [system_label(s) for s in systems])


def _arm_key(fig: Figure, arms: list[str]) -> None:
    handles = []
    for arm in arms:
        colour, marker = _ARM_LOOKS.get(arm, ("#009E73", "^"))
        handles += fig.axes[0].plot([], [], marker, color=colour)
    names = ["Yes/no stance probe" if a == _NO_ARM else arm_label(a) for a in arms]
    fig.legend(
        handles,
        names,
        loc="outside upper center",
        ncols=3,
        title=f"means over topics; bars: {INTERVAL}",
        title_fontsize=7,
    )


_SEGMENTS = (
    ("Relevant (2)", "#0072B2", ""),
    ("Partly relevant (1)", "#9EC9E2", "...."),
    ("Not relevant (0)", "#EEEEEE", ""),
    ("Adversarial", ADVERSARIAL, "////"),
)


@styled()
def corpus_overview(counts: pd.DataFrame) -> Figure:
    """Documents by source type (and by topic, where qid is given), stacked by label and intent.

    counts: columns source_type, label (0..2), adversarial, n, and qid if known; n is a count.
    """
    need(counts, "source_type", "label", "adversarial", "n")
    panels: list[tuple[str, list[str], Callable[[str], str]]] = [
        ("source_type", tier_order(counts["source_type"]), tier_label)
    ]
    if "qid" in counts:
        panels.append(("qid", sorted(counts["qid"].unique(), key=natural), str))
    tallest = max(len(names) for _, names, _ in panels)
    fig, axes = canvas(DOUBLE, 0.95 + 0.22 * tallest, columns=len(panels))
    for ax, (key, names, label) in zip(axes[0], panels, strict=True):
        _stack(ax, counts, key, names)
        ax.set_yticks(range(len(names)), [label(n) for n in names])
        ax.set_xlabel("Judged documents")
        ax.set_ylabel("Source type" if key == "source_type" else "Topic")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside upper center", ncols=4)
    return fig


def _stack(ax: Axes, counts: pd.DataFrame, key: str, names: list[str]) -> None:
    bad = counts["adversarial"].astype(bool)
    parts = [counts[~bad & (counts["label"].clip(upper=2) == label)] for label in (2, 1, 0)] + [
        counts[bad]
    ]
    left = np.zeros(len(names))
    for part, (label, colour, hatch) in zip(parts, _SEGMENTS, strict=True):
        width = part.groupby(key)["n"].sum().reindex(names, fill_value=0).to_numpy(float)
        ax.barh(
            range(len(names)),
            width,
            left=left,
            height=0.72,
            color=colour,
            hatch=hatch,
            edgecolor="#333333",
            linewidth=0.5,
            label=label,
        )
        left += width
    ax.set_xlim(0, 1.05 * max(left.max(), 1))
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
