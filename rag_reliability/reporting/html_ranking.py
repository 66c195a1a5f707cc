"""A ranking with its trace, and its rank flow, as HTML."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from rag_reliability.reporting.html import LONGEST_TITLE, cut, render, tier_mark
from rag_reliability.reporting.style import TIERS, in_order, tier_label

_WIDTH, _LEFT, _RIGHT, _ROW, _GAP = 330, 104, 216, 25, 16
_BAD = "#D55E00"


def ranking_html(
    rows: Sequence[Mapping[str, Any]],
    k: int,
    *,
    rule: str,
    caption: str,
    facts: Sequence[tuple[str, str]] = (),
    near: int = 3,
    styled: bool = True,
) -> str:
    """The documents in or near the top k before or after, why each stands there, and their flow.

    rows: a rank trace of one topic (``html.records`` of a table) with title and why; label,
    verified, source and edited if known. near: ranks shown below the top k.
    """
    shown = near_top(rows, k + near)
    return render(
        "ranking",
        rows=_with_bars(shown),
        cut=sum(bool(row["in_top_after"]) for row in shown),
        judged=any(row.get("label") is not None for row in shown),
        caption=caption,
        facts=list(facts),
        flow=Markup(flow_html(shown, k, rule)),
        styled=styled,
    )


def near_top(rows: Sequence[Mapping[str, Any]], depth: int) -> list[dict[str, Any]]:
    """The rows within the first ``depth`` ranks by similarity or by score, in order of score."""
    near = [dict(row) for row in rows if min(row["rank_sim"], row["rank_score"]) <= depth]
    return sorted(near, key=lambda row: row["rank_score"])


def _with_bars(shown: list[dict[str, Any]]) -> list[dict[str, Any]]:
    scores = [row["score"] if math.isfinite(row["score"]) else 0.0 for row in shown]
    best = max([1e-9, *(row["sim"] for row in shown)])
    # Rules that leave similarity's scale (rank fusion) get bars relative to their own best score.
    over = max([1e-9, *scores])
    scale = best if 0.2 * best < over <= best + 1e-9 else over
    optional = {"source": "", "edited": "", "label": None}
    return [
        optional
        | row
        | {
            "title": cut(row["title"], LONGEST_TITLE),
            "score_width": f"{100 * min(max(score / scale, 0), 1):.0f}",
            "sim_width": f"{98 * max(row['sim'], 0) / best:.0f}",
            "scored": math.isfinite(row["score"]),
        }
        for row, score in zip(shown, scores, strict=True)
    ]


def flow_html(shown: Sequence[Mapping[str, Any]], k: int, rule: str) -> str:
    """Slope chart of the rows given: rank by similarity on the left, by the rule on the right.

    A shape for each source type beside its colour; adversarial documents are dashed and crossed.
    """
    before, after = (_heights(shown, name, k) for name in ("rank_sim", "rank_score"))
    inside = sum(row["rank_score"] <= k for row in shown)
    return render(
        "flow",
        width=_WIDTH,
        height=round(max([30, *before, *after]) + 16),
        left=_LEFT,
        right=_RIGHT,
        cut=30 + _ROW * (inside - 0.5) + _GAP / 2,
        k=k,
        rule=rule,
        label=f"Rank flow of {len(shown)} documents, by similarity to {rule}",
        lines=[_line(row, y0, y1) for row, y0, y1 in zip(shown, before, after, strict=True)],
        tiers=in_order((row["source_type"] for row in shown), TIERS),
    )


def _heights(shown: Sequence[Mapping[str, Any]], by: str, k: int) -> list[float]:
    """Where each row stands, in pixels from the top; a gap parts the top k from the rest."""
    place = {rank: i for i, rank in enumerate(sorted(row[by] for row in shown))}
    return [30.0 + _ROW * place[row[by]] + (_GAP if row[by] > k else 0) for row in shown]


def _line(row: Mapping[str, Any], y0: float, y1: float) -> dict[str, Any]:
    look, bad = tier_mark(row["source_type"]), bool(row["adversarial"])
    moved = bool(row["in_top_after"]) != bool(row["in_top_before"])
    mid = (_LEFT + _RIGHT) / 2
    told = f"{row['title']} ({tier_label(row['source_type'])}): {row['why']}"
    return {
        "path": f"M{_LEFT} {y0}C{mid} {y0} {mid} {y1} {_RIGHT} {y1}",
        "marks": [marker_path("x" if bad else look.marker, x, y)
                  for x, y in ((_LEFT, y0), (_RIGHT, y1))],
        "colour": _BAD if bad else look.colour,
        "weight": 3 if moved else 1.5,
        "dashed": bad,
        "bold": bad or moved,
        "bad": bad,
        "name": cut(row["docno"], 13),
        "before": row["rank_sim"],
        "after": row["rank_score"],
        "y0": y0,
        "y1": y1,
        "told": told,
    }  # fmt: skip


# Corners around the middle, in pixels, of each marker that the tiers use.
_CORNERS = {
    "s": "-4,-4 4,-4 4,4 -4,4",
    "^": "0,-5 5,4 -5,4",
    "v": "0,5 5,-4 -5,-4",
    "<": "-5,0 4,-5 4,5",
    ">": "5,0 -4,-5 -4,5",
    "D": "0,-5 5,0 0,5 -5,0",
    "P": "-2,-5 2,-5 2,-2 5,-2 5,2 2,2 2,5 -2,5 -2,2 -5,2 -5,-2 -2,-2",
    "h": "-5,0 -2.5,-4.5 2.5,-4.5 5,0 2.5,4.5 -2.5,4.5",
    "p": "0,-5 5,-1 3,5 -3,5 -5,-1",
    "*": "0,-6 1.5,-2 6,-2 2.5,1 4,5.5 0,3 -4,5.5 -2.5,1 -6,-2 -1.5,-2",
    "x": "-5,-3 -3,-5 0,-2 3,-5 5,-3 2,0 5,3 3,5 0,2 -3,5 -5,3 -2,0",
}


def marker_path(marker: str, x: float, y: float) -> str:
    """SVG path of a marker (matplotlib's letters) around a point; a circle for any other letter."""
    if marker not in _CORNERS:
        return f"M{x - 4} {y}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z"
    corners = [pair.split(",") for pair in _CORNERS[marker].split()]
    return "M" + "L".join(f"{x + float(dx):g} {y + float(dy):g}" for dx, dy in corners) + "Z"
