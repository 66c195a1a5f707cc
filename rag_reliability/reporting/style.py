"""How every figure looks and what it calls things: one style, one set of readable labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import matplotlib.style
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

SINGLE, DOUBLE = 3.4, 7.0
"""Widths of one and of two journal columns, in inches."""

INTERVAL = "95 % bootstrap interval"

SYSTEMS: Mapping[str, str] = {
    "no_passages": "No passages",
    "similarity": "Similarity only",
    "source_aware_3k": "Source-aware (3k window)",
    "source_aware": "Source-aware (exact)",
    "source_aware_smoothed": "Source-aware, smoothed",
    "source_aware_adaptive": "Source-aware, adaptive",
}
ARMS: Mapping[str, str] = {
    "plain": "Plain prompt",
    "credibility_in_prompt": "Source types in the prompt",
}
TIERS: Mapping[str, str] = {
    "peer_reviewed": "Peer-reviewed",
    "government": "Government",
    "established_news": "Established news",
    "blog": "Blog",
    "user_generated": "User-generated",
    "ai_generated": "AI-generated",
}
SPREADS = ("none", "compressed", "current", "aggressive")

# Metric: (label with {k} for the cutoff, is a higher value better?)
METRICS: Mapping[str, tuple[str, bool]] = {
    "precision": ("P@{k}", True),
    "ndcg": ("NDCG@{k}", True),
    "mrr": ("MRR", True),
    "recall": ("Recall@{k}", True),
    "adv_share": ("Adversarial share@{k}", False),
    "adv_hit": ("Adversarial hit@{k}", False),
    "low_tier_share": ("Low-tier share@{k}", False),
    "suppressed_true": ("Suppressed true@{k}", False),
    "compat_help": ("Compatibility, helpful", True),
    "compat_harm": ("Compatibility, harmful", False),
    "compat_diff": ("Compatibility, difference", True),
    "grounding": ("Grounding", True),
    "trusted_grounding": ("Trusted grounding", True),
    "citation_precision": ("Citation precision", True),
    "citation_recall": ("Citation recall", True),
    "adversarial_uptake": ("Adversarial uptake", False),
    "correctness": ("Correctness", True),
    "harm": ("Harm", False),
    "abstained": ("Abstained", False),
    "stance_error": ("Stance error", False),
    "auroc": ("Stance AUROC", True),
    "stance_auroc": ("Stance AUROC", True),
    "log_odds": ("Log-odds of yes", True),
    "stance_shift": ("Shift toward the truth", True),
    "suppressed_true_count": ("True documents suppressed@{k}", False),
    "shift": ("Shift toward the truth", True),
}

# Neither better nor worse when higher.
_COUNTS: Mapping[str, str] = {"suppressible_true_count": "True documents suppressible@{k}"}


class Look(NamedTuple):
    """Colour (Okabe-Ito), marker and line style of one series; distinct in greyscale too."""

    colour: str
    marker: str
    line: str = "-"
    size: float = 4.5
    filled: bool = True


_SYSTEM_LOOKS: Mapping[str, Look] = {
    "no_passages": Look("#777777", "x", ":"),
    "similarity": Look("#000000", "o", "--", 7.5, False),
    "source_aware_3k": Look("#E69F00", "s", "-.", 5.5, False),
    "source_aware": Look("#0072B2", "D", "-", 3.2),
    "source_aware_smoothed": Look("#009E73", "^", "-", 5.0, False),
    "source_aware_adaptive": Look("#CC79A7", "v", "-"),
}
_TIER_LOOKS: Mapping[str, Look] = {
    "peer_reviewed": Look("#0072B2", "o"),
    "government": Look("#56B4E9", "s"),
    "established_news": Look("#009E73", "^"),
    "blog": Look("#E69F00", "D"),
    "user_generated": Look("#CC79A7", "v"),
    "ai_generated": Look("#D55E00", "P"),
}
_SPARE = (
    Look("#009E73", "h"),
    Look("#CC79A7", "<"),
    Look("#D55E00", ">"),
    Look("#56B4E9", "p"),
    Look("#777777", "*"),
)
ADVERSARIAL = "#D55E00"


class TierStyle(NamedTuple):
    """How a taxonomy calls and draws one source type; what is empty is left as it is."""

    label: str = ""
    colour: str = ""
    marker: str = ""


_own_tiers: ContextVar[Mapping[str, TierStyle]] = ContextVar(
    "own_tiers", default=MappingProxyType({})
)


@contextmanager
def styled() -> Iterator[None]:
    """Draw or save within the paper style (as context or decorator); settings are put back after.

    Starts from matplotlib's defaults, so that a user's matplotlibrc changes no figure's bytes.
    """
    style = Path(__file__).with_name("paper.mplstyle")
    with matplotlib.style.context(["default", str(style)]):
        yield


@contextmanager
def named_tiers(tiers: Mapping[str, TierStyle]) -> Iterator[None]:
    """Call, draw and order source types as a taxonomy of one's own does; none: the study's six."""
    token = _own_tiers.set(tiers)
    try:
        yield
    finally:
        _own_tiers.reset(token)


def system_label(name: str) -> str:
    """Readable name of a system; an unknown one is shown with its underscores as spaces."""
    return SYSTEMS.get(name, name.replace("_", " "))


def arm_label(name: str) -> str:
    """Readable name of an arm of generation."""
    return ARMS.get(name, name.replace("_", " "))


def tier_label(name: str) -> str:
    """Readable name of a source type."""
    own = _own_tiers.get().get(name, TierStyle())
    return own.label or TIERS.get(name, name.replace("_", " "))


def tier_order(names: Iterable[str]) -> list[str]:
    """Distinct source types in the taxonomy's order, then others as first met."""
    return in_order(names, [*_own_tiers.get(), *TIERS])


def metric_label(name: str, *, arrow: bool = False) -> str:
    """Readable name of a metric with its cutoff: ``adv_share@5`` is "Adversarial share@5".

    ``arrow`` adds ↑ or ↓ for the better direction, where it is known.
    """
    base, _, cutoff = name.partition("@")
    if base not in METRICS:
        return _COUNTS[base].format(k=cutoff) if base in _COUNTS else name.replace("_", " ")
    label = METRICS[base][0].format(k=cutoff or "k")
    return f"{label} {'↑' if METRICS[base][1] else '↓'}" if arrow else label


def higher_is_better(metric: str) -> bool:
    """Whether a higher value of the metric is better. Raises KeyError for an unknown metric."""
    return METRICS[metric.partition("@")[0]][1]


def system_look(name: str, position: int = 0) -> Look:
    """Look of a system; an unknown one takes a spare look by its ``position`` in the figure."""
    return _SYSTEM_LOOKS.get(name, _SPARE[position % len(_SPARE)])


def tier_look(name: str, position: int = 0) -> Look:
    """Look of a source type; an unknown one takes a spare look by its ``position``."""
    look = _TIER_LOOKS.get(name, _SPARE[position % len(_SPARE)])
    own = _own_tiers.get().get(name, TierStyle())
    return look._replace(colour=own.colour or look.colour, marker=own.marker or look.marker)


def in_order(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Distinct ``names``: the known ones in their own order, then the others as first met."""
    present = dict.fromkeys(names)
    known = list(known)
    return [n for n in known if n in present] + [n for n in present if n not in known]


def need(frame: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """The frame itself, known to hold ``columns``. Raises ValueError naming what lacks."""
    missing = [c for c in columns if c not in frame.columns]
    if missing:
        has = ", ".join(map(str, frame.columns))
        raise ValueError(f"table lacks column(s) {', '.join(missing)}; it has {has}")
    return frame


def canvas(
    width: float, height: float, rows: int = 1, columns: int = 1, **options: object
) -> tuple[Figure, np.ndarray]:
    """A figure of the given size in inches and its axes, object array (rows, columns)."""
    fig = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(h_pad=0.04, w_pad=0.06))
    axes = fig.subplots(rows, columns, squeeze=False, **options)  # type: ignore[call-overload]
    return fig, axes


def say_nothing(ax: Axes, message: str = "no values in this run") -> None:
    """Mark axes that have nothing to show, instead of leaving them mute."""
    ax.text(
        0.5,
        0.5,
        message,
        transform=ax.transAxes,
        ha="center",
        va="center",
        color="#555555",
        style="italic",
    )


def errors(frame: pd.DataFrame) -> np.ndarray:
    """Distances from mean to low and to high, (2, n), never negative, for ``Axes.errorbar``."""
    below, above = frame["mean"] - frame["low"], frame["high"] - frame["mean"]
    return np.clip(np.stack([below.to_numpy(float), above.to_numpy(float)]), 0, None)


def share_axis(ax: Axes, low: float, high: float, axis: str = "y") -> None:
    """Limits for a metric on [0, 1]: a little air, and zero where the data come near it."""
    room = max(high - low, 0.05) * 0.12
    floor = 0.0 if low < 0.25 else low
    limits = (floor - room if floor or low < 0 else -room / 2, high + room)
    (ax.set_ylim if axis == "y" else ax.set_xlim)(*limits)


def natural(name: str) -> tuple[object, ...]:
    """Sort key that puts q2 before q10."""
    return tuple(int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name))
