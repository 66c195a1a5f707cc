"""Why a document stands where a rule put it, in one sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

WEIGHING = (
    *("source_aware", "verified_boost", "verified_floor", "verified_min", "uncertain_labels"),
    *("collapse", "verified_collapse", "stance_consistent", "stance_verified"),
)
"""Rules whose score is the similarity times a weight."""


def reasons(rows: Sequence[Mapping[str, Any]], k: int, rule: str) -> list[str]:
    """One sentence for each row of a ranking (keys as in ``state.ranking``, by rank_score).

    Where a rule weighs similarities, a document's *weight* is score / sim.
    """
    last = min((r["score"] for r in rows if r["in_top_after"]), default=math.nan)
    return [_reason(row, rows, last, k, rule) for row in rows]


def _reason(
    row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], last: float, k: int, rule: str
) -> str:
    if not row["inside"]:
        return f"outside the rank window: stays behind it, rank {_move(row)}"
    if not math.isfinite(row["score"]):
        return f"left out by {rule.replace('_', ' ')}: rank {_move(row)}"
    if row["in_top_after"] and row["in_top_before"]:
        return f"kept: rank {_move(row)}"
    if row["in_top_after"]:
        before, after = row["rank_sim"], row["rank_score"]
        n = sum(r["rank_sim"] < before and r["rank_score"] > after for r in rows)
        return f"entered: rank {_move(row)}, past {n} more similar document{'s' if n != 1 else ''}"
    if row["in_top_before"]:
        return _lost(row, last, k, rule in WEIGHING)
    return f"below the top {k}: {_move(row)}"


def _move(row: Mapping[str, Any]) -> str:
    before, after = row["rank_sim"], row["rank_score"]
    return f"stays {after}" if before == after else f"{before} → {after}"


def _lost(row: Mapping[str, Any], last: float, k: int, weighed: bool) -> str:
    sim, score = row["sim"], row["score"]
    if not weighed or min(sim, score) <= 0:
        return f"left: score {score:.3f} against {last:.3f} at rank {k}"
    needed = last * sim / score
    return f"left: at weight {score / sim:.2f} it needs similarity {needed:.3f}, has {sim:.3f}"
