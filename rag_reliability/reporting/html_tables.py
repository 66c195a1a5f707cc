"""A corpus, systems side by side, and a comparison with its intervals, as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from rag_reliability.reporting.html import records, render
from rag_reliability.reporting.html_ranking import marker_path
from rag_reliability.reporting.style import higher_is_better, in_order, need

_BETTER, _WORSE, _OPEN = ("#0072B2", "^"), ("#D55E00", "v"), ("#777777", "o")
_HALF = 52  # pixels from zero to the longest interval's end


def corpus_html(frame: pd.DataFrame, name: str, facts: Sequence[tuple[str, str]]) -> str:
    """Documents by source type.

    frame: source_type, documents, verified, adversarial, and one column for each label (numbers).
    """
    need(frame, "source_type", "documents", "verified", "adversarial")
    labels = [c for c in frame.columns if isinstance(c, int)]
    most = max(int(frame["documents"].max()), 1) if len(frame) else 1
    rows = [
        {
            **row,
            "width": f"{100 * row['documents'] / most:.0f}",
            "labels": {label: row[str(label)] for label in labels},
        }
        for row in records(frame)
    ]
    return render("corpus", name=name, facts=list(facts), labels=labels, rows=rows)


def side_html(tops: Mapping[str, pd.DataFrame], query: str = "") -> str:
    """The top documents of several systems side by side.

    tops: by system, best first: docno, title, source_type, adversarial and label.
    """
    columns = [records(need(frame, "docno", "title", "source_type")) for frame in tops.values()]
    depth = max(map(len, columns), default=0)
    rows = [[c[i] if i < len(c) else None for c in columns] for i in range(depth)]
    return render("side", systems=list(tops), rows=rows, query=query)


def comparison_html(frame: pd.DataFrame, baseline: str) -> str:
    """Differences from a baseline with intervals and what they allow to say.

    frame: ``significance.compare``'s columns. A reading is *better* or *worse* only where the
    interval leaves zero out; each metric has a scale of its own.
    """
    need(frame, "system", "metric", "mean", "diff", "diff_low", "diff_high", "p_holm")
    shown = frame[frame["system"] != baseline]
    rows: list[dict[str, Any]] = []
    for metric in in_order(shown["metric"], ()):
        own = shown[shown["metric"] == metric]
        widest = float(np.abs(own[["diff", "diff_low", "diff_high"]].to_numpy()).max(initial=0))
        for i, row in enumerate(records(own)):
            rows.append({"arm": "", **row, **_drawn(row, widest or 1.0), "first": i == 0})
    return render("comparison", rows=rows, baseline=baseline)


def _drawn(row: dict[str, Any], widest: float) -> dict[str, Any]:
    low, high = row["diff_low"], row["diff_high"]
    word, (colour, marker) = "· open", _OPEN
    if low > 0 or high < 0:
        good = _good_sign(row["metric"]) * (1 if low > 0 else -1)
        word = {1: "▲ better", -1: "▼ worse", 0: "higher" if low > 0 else "lower"}[good]
        colour, marker = {1: _BETTER, -1: _WORSE, 0: _OPEN}[good]
    x = 60 + _HALF * row["diff"] / widest
    return {
        "low_x": f"{60 + _HALF * low / widest:.1f}",
        "high_x": f"{60 + _HALF * high / widest:.1f}",
        "mark": marker_path(marker, round(x, 1), 7),
        "colour": colour,
        "reading": word,
    }


def _good_sign(metric: str) -> int:
    """1 where higher is better, -1 where lower is, 0 where nobody said."""
    try:
        return 1 if higher_is_better(metric) else -1
    except KeyError:
        return 0
