"""What would change the conclusion, in sentences: where sign or significance turns in a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from rag_reliability.reporting.style import higher_is_better, metric_label, need
from rag_reliability.reporting.tables import interval, number, p_text
from rag_reliability.reporting.wording import ALPHA, NOT_MEASURED, verdict

SWEEPS = {
    "spread": ("Spread of the priors", "γ"),
    "named_spread": ("Named spreads", "spread"),
    "k": ("Documents kept", "k"),
    "window": ("Rank window", "window"),
    "spoofing": ("Spoofed adversarial documents", "share"),
}
"""Each sweep's name, and the name of what it varies."""
_COLUMNS = ("sweep", "value", "here", "metric", "diff", "low", "high", "p", "n_topics")
NOTHING = "nothing in the range tried changes sign or significance"


def direction(metric: str, diff: float) -> str:
    """ "better", "worse" or "equal" by the metric's better side."""
    if abs(diff) < 5e-4:
        return "equal"
    return "better" if (diff > 0) == higher_is_better(metric) else "worse"


def significant(row: dict[str, Any]) -> bool:
    """Whether p < .05 and the interval leaves out zero, as the report's verdicts ask."""
    return bool(row["p"] < ALPHA and (row["low"] > 0 or row["high"] < 0))


def turns(frame: pd.DataFrame, k: int) -> list[dict[str, Any]]:
    """For each metric what the run found, and for each sweep what of it turns and where.

    frame: columns as ``experiment.conclusion.sensitivity`` gives them; values of a sweep in order.
    Keys of each: metric (label), found (the run's own verdict), and sweeps: each with name, changes
    (pairs of what turns where, and the numbers there) and otherwise (what to say if there is none).
    """
    if not len(frame):
        return []
    need(frame, *_COLUMNS)
    own = frame[frame["sweep"] == ""].to_dict("records")
    return [_metric(frame[frame["metric"] == ref["metric"]], ref, k) for ref in own]


def _metric(frame: pd.DataFrame, ref: dict[Any, Any], k: int) -> dict[str, Any]:
    sweeps = []
    for sweep, (title, _) in SWEEPS.items():
        rows = frame[frame["sweep"] == sweep].to_dict("records")
        name = f"{title} ({_range(rows, sweep)})" if rows else title
        sweeps.append(
            {
                "name": name,
                "changes": _changes(rows, ref, sweep),
                "otherwise": NOTHING if rows else NOT_MEASURED,
            }
        )
    metric = ref["metric"]
    found = verdict(ref["diff"], ref["low"], ref["high"], ref["p"], higher_is_better(metric))
    return {"metric": metric_label(f"{metric}@{k}"), "found": found, "sweeps": sweeps}


def _changes(rows: list[dict[Any, Any]], ref: dict[Any, Any], sweep: str) -> list[tuple[str, str]]:
    """What differs from the run's own conclusion: (change and where, numbers of the nearest)."""
    metric, held = ref["metric"], significant(ref)
    own = direction(metric, ref["diff"])
    sides = [direction(metric, row["diff"]) for row in rows]
    sure = [significant(row) for row in rows]
    equal = [s == "equal" != own for s in sides]
    lost = [held and not now for now in sure]
    together = any(equal) and equal == lost
    vanishes = "the difference vanishes" + (" and with it its significance" if together else "")
    flags = {f"the sign turns to {s}": [x == s != own for x in sides] for s in ("worse", "better")}
    flags |= {vanishes: equal, "significance is lost": [] if together else lost}
    for side in ("worse", "better"):
        new = not (held and side == own)
        flags[f"it is significantly {side}"] = [
            new and now and s == side for now, s in zip(sure, sides, strict=True)
        ]
    return [_seen(text, rows, where, sweep) for text, where in flags.items() if any(where)]


def _seen(
    text: str, rows: list[dict[Any, Any]], flags: Sequence[bool], sweep: str
) -> tuple[str, str]:
    """("text at 0 to 0.5", "0.5: change …, p = …"): numbers of the value nearest the run's own."""
    places = [i for i, flag in enumerate(flags) if flag]
    here = next((i for i, row in enumerate(rows) if row["here"]), 0)
    near = min(places, key=lambda i: (abs(i - here), i))
    row, p = rows[near], p_text(rows[near]["p"])
    p = f"p {p}" if p.startswith("<") else f"p = {p}"
    at = "at every value tried" if len(places) == len(rows) else f"at {_spans(rows, places, sweep)}"
    numbers = f"{value_text(sweep, row['value'])}: change {number(row['diff'], 3)}, {p}"
    return f"{text} {at}", numbers


def _spans(rows: list[dict[Any, Any]], places: Sequence[int], sweep: str) -> str:
    """Positions as ranges of values: "0 to 0.5 and 3"."""
    breaks = [0, *(np.flatnonzero(np.diff(places) > 1) + 1).tolist(), len(places)]
    groups = [places[a:b] for a, b in pairwise(breaks)]
    texts = []
    for group in groups:
        first, last = (value_text(sweep, rows[i]["value"]) for i in (group[0], group[-1]))
        texts += list(dict.fromkeys([first, last])) if len(group) < 3 else [f"{first} to {last}"]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if texts[1:] else texts)


def _range(rows: list[dict[Any, Any]], sweep: str) -> str:
    first, last = (value_text(sweep, rows[i]["value"]) for i in (0, -1))
    what = SWEEPS[sweep][1]
    return f"{what} {first} to {last}" if len(rows) > 1 else f"{what} {first}"


def value_text(sweep: str, value: object) -> str:
    """A swept value as text: shares as per cent, whole numbers without a point."""
    if isinstance(value, str):
        return value
    return f"{float(value) * 100:g} %" if sweep == "spoofing" else f"{float(value):g}"  # type: ignore[arg-type]


def tally(found: Sequence[dict[str, Any]]) -> str:
    """How many of the metric–sweep pairs turn at all, in one sentence."""
    each = [s for item in found for s in item["sweeps"] if s["otherwise"] != NOT_MEASURED]
    changed = sum(bool(s["changes"]) for s in each)
    if not changed:
        return f"Nothing in the ranges tried changes it, in none of {len(each)} sweeps of a metric."
    return (
        f"In {changed} of {len(each)} sweeps of a metric some value tried changes the sign or the "
        f"significance of the difference; in {len(each) - changed} none does."
    )


def conclusion_table(frame: pd.DataFrame, k: int) -> pd.DataFrame:
    """Every swept value with its difference, interval and p: the table behind the sentences."""
    need(frame, *_COLUMNS)
    rows = frame[frame["sweep"] != ""]
    pairs = list(zip(rows["sweep"], rows["value"], strict=True))
    return pd.DataFrame(
        {
            "Sweep": [SWEEPS[s][0] for s, _ in pairs],
            "Value": [value_text(s, v) for s, v in pairs],
            "This run": ["yes" if here else "" for here in rows["here"]],
            "Metric": [
                metric_label(m if s == "k" else f"{m}@{k}", arrow=True)
                for m, s in zip(rows["metric"], rows["sweep"], strict=True)
            ],
            "Difference": [number(v, 3) for v in rows["diff"]],
            "95 % interval": [
                interval(a, b, 3) for a, b in zip(rows["low"], rows["high"], strict=True)
            ],
            "p": [p_text(v) for v in rows["p"]],
        }
    )
