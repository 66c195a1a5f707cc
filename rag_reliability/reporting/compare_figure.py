"""Two runs topic by topic: a row for each topic, a panel for each metric."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rag_reliability.reporting.marks import marker_of, top_legend
from rag_reliability.reporting.style import (
    DOUBLE,
    canvas,
    metric_label,
    natural,
    need,
    system_look,
)

NAMED = 40
"""With more topics than this rows are too thin for names; they are sorted by difference then."""
_LONGEST = 18


def topic_differences(frame: pd.DataFrame, a: str, b: str) -> Figure:
    """Dots for A (hollow) and B (filled) on each topic, joined by a line.

    frame: columns metric, qid, a, b, delta; one system. a, b: what the runs are called.
    """
    need(frame, "metric", "qid", "a", "b", "delta")
    metrics = list(dict.fromkeys(frame["metric"]))
    qids = sorted(dict.fromkeys(frame["qid"]), key=natural)
    named = len(qids) <= NAMED
    height = 1.1 + (0.2 * len(qids) if named else 4.4)
    fig, axes = canvas(DOUBLE, height, 1, max(1, len(metrics)), sharey=named)
    looks = system_look("similarity")._replace(size=6.0), system_look("source_aware")
    for ax, metric in zip(axes[0], metrics, strict=True):
        own = frame[frame["metric"] == metric].set_index("qid")
        order = qids if named else own["delta"].sort_values(kind="stable").index
        own = own.reindex(order)
        rows = range(len(own))
        ax.hlines(rows, own["a"], own["b"], color="#888888", linewidth=0.8, zorder=1)
        for column, look in zip("ab", looks, strict=True):
            ax.plot(own[column], rows, linestyle="", label=column, **marker_of(look))
        ax.set_xlabel(metric_label(metric, arrow=True))
        ax.xaxis.set_major_locator(MaxNLocator(4))
        ax.set_ylim(len(own) - 0.4, -0.6)
        ax.set_yticks(list(rows) if named else [], [_short(q) for q in order] if named else [])
    axes[0, 0].set_ylabel("Topic" if named else f"{len(qids)} topics, by difference")
    handles, _ = axes[0, 0].get_legend_handles_labels()
    top_legend(fig, handles, [_literal(a), _literal(b)])
    return fig


def _short(name: str) -> str:
    return _literal(name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…")


def _literal(text: str) -> str:
    """Text that matplotlib does not read as a formula."""
    return text.replace("$", r"\$")
