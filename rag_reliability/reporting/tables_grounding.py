"""Table and sentence of the grounding check."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rag_reliability.reporting.figures_grounding import SETS
from rag_reliability.reporting.style import in_order, need
from rag_reliability.reporting.tables import ABSENT, interval, number

_COLUMNS = {
    "auroc": "AUROC",
    "balanced_accuracy": "Balanced accuracy",
    "auroc.content_recall": "AUROC, shared words",
    "auroc.claim_only": "AUROC, claim alone",
    "auroc.passage_only": "AUROC, passage alone",
    "true_share.supported": "True in band supported",
    "true_share.unclear": "… unclear",
    "true_share.unsupported": "… unsupported",
}


def grounding_table(measures: pd.DataFrame) -> pd.DataFrame:
    """One row for each set of pairs, with intervals for the scorer's own columns.

    measures: columns set, measure, value, low, high, n.
    """
    need(measures, "set", "measure", "value", "low", "high", "n")
    rows = []
    for name in in_order(measures["set"], SETS):
        own = measures[measures["set"] == name].set_index("measure")
        row = {"Pairs of": SETS.get(name, name), "n": int(own.loc["auroc", "n"])}
        for measure, label in _COLUMNS.items():
            row[label] = _cell(own, measure, with_interval=not measure.startswith("true_share"))
        rows.append(row)
    return pd.DataFrame(rows, columns=["Pairs of", "n", *_COLUMNS.values()])


def _cell(own: pd.DataFrame, measure: str, *, with_interval: bool) -> str:
    if measure not in own.index or not np.isfinite(own.loc[measure, "value"]):
        return ABSENT
    value, low, high = (own.loc[measure, c] for c in ("value", "low", "high"))
    return f"{number(value)} {interval(low, high)}" if with_interval else number(value)


def resolution_sentence(measures: pd.DataFrame) -> str:
    """What a difference in grounding has to be before it means anything; "" without labels."""
    for name in ("labelled", "expertqa", "healthver"):
        own = measures[measures["set"] == name].set_index("measure") if len(measures) else measures
        if "smallest_difference" in own.index:
            gap = own.loc["mean_support.supported", "value"]
            gap -= own.loc["mean_support.unsupported", "value"]
            smallest = own.loc["smallest_difference"]
            people, at_1000, people_1000 = (
                own.loc[f"smallest_difference{end}", "value"]
                for end in (".people", ".at_1000", ".people.at_1000")
            )
            reach = (
                "no difference at all"
                if smallest["value"] >= 1
                else f"a difference of {100 * smallest['value']:.0f} points or more"
            )
            return (
                f"On {SETS[name]} a supported claim scores {number(gap)} higher than another on "
                f"average, so this scorer passes on that share of a true difference. With "
                f"{smallest['n']:.0f} sentences a system it can show {reach} in the share of "
                f"supported sentences, with 1,000 one of {100 * at_1000:.0f} points (80 % power, "
                f"two-sided .05, sentences taken as independent). People who read them all could "
                f"show {100 * people:.0f} points, and {100 * people_1000:.0f}."
            )
    return ""
