"""Tables on threats: what each rule risks and gains, and which to deploy under which belief."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from rag_reliability.reporting.style import metric_label, need
from rag_reliability.reporting.tables import ABSENT, interval, number
from rag_reliability.reporting.threat_marks import rule_label

AIMS = ("never_worse", "small", "more_precise", "keeps_true")


def no_regret_table(frame: pd.DataFrame, *, k: int, leak: float) -> pd.DataFrame:
    """One row a rule: worst cases and honest-label gains with 95 % intervals, costs, aims met.

    frame: one row a rule with rule, calls, seconds, the four aims as bool, and the estimates
    worst_adv, worst_adv_all, max_adv, worst_precision, kept, honest_adv and honest_precision with
    their ends in _low and _high. leak: the largest leak that the worst cases allow for.
    """
    need(frame, "rule", "worst_adv", "worst_adv_all", "max_adv", "worst_precision", "kept")
    need(frame, "honest_adv", "honest_precision", "calls", "seconds", *AIMS)
    upto = f"leak ≤ {leak:g}"
    columns = {
        f"Worst Δ adv. share@{k}, {upto} ↓": _estimates(frame, "worst_adv"),
        "… all leaks": _estimates(frame, "worst_adv_all"),
        f"Largest adv. share@{k}": _estimates(frame, "max_adv"),
        f"Worst Δ P@{k} ↑": _estimates(frame, "worst_precision"),
        "Least true low-tier kept ↑": _estimates(frame, "kept"),
        "Honest: Δ adv. share": _estimates(frame, "honest_adv"),
        f"Honest: Δ P@{k}": _estimates(frame, "honest_precision"),
        "Model calls": [f"{calls:,}" for calls in frame["calls"]],
        "Seconds": [number(s, 0) for s in frame["seconds"]],
        "Never worse": _verdicts(frame, "never_worse"),
        "Adv. share ≤ .10": _verdicts(frame, "small"),
        f"P@{k} above": _verdicts(frame, "more_precise"),
        "Keeps ≥ 80 %": _verdicts(frame, "keeps_true"),
    }
    return pd.DataFrame({"Rule": [rule_label(r) for r in frame["rule"]], **columns})


def _estimates(frame: pd.DataFrame, name: str) -> list[str]:
    parts = zip(frame[name], frame[f"{name}_low"], frame[f"{name}_high"], strict=True)
    return [f"{number(m)} {interval(a, b)}".replace("– –", "–") for m, a, b in parts]


def _verdicts(frame: pd.DataFrame, name: str) -> list[str]:
    return ["–" if pd.isna(met) else "yes" if met else "no" for met in frame[name]]


def decision_table(frame: pd.DataFrame, *, k: int) -> pd.DataFrame:
    """Which rule to deploy under which belief about the adversary, with and without a model.

    frame: columns belief, model, rule, adv_share, precision, kept, calls, seconds.
    """
    need(frame, "belief", "model", "rule", "adv_share", "precision", "kept", "calls", "seconds")
    return pd.DataFrame(
        {
            "If you believe": frame["belief"].tolist(),
            "Model": ["may be called" if m else "none" for m in frame["model"]],
            "Deploy": [rule_label(r) for r in frame["rule"]],
            f"Adv. share@{k}, worst": [number(v) for v in frame["adv_share"]],
            f"P@{k}, worst": [number(v) for v in frame["precision"]],
            "True low-tier kept, least": [number(v) for v in frame["kept"]],
            "Model calls": [f"{calls:,}" for calls in frame["calls"]],
            "Seconds": [number(s, 0) for s in frame["seconds"]],
        }
    )


def decision_sentences(frame: pd.DataFrame, *, k: int) -> list[str]:
    """The decision table as sentences, one for each belief."""
    sentences = []
    for belief, rows in frame.groupby("belief", sort=False):
        best, plain = rows[rows["model"]].iloc[0], rows[~rows["model"]].iloc[0]
        text = f"If {belief}: {_choice(best, k)}"
        if best["calls"] and plain["rule"] != best["rule"]:
            text += f"; without a language model {_choice(plain, k)}"
        sentences.append(f"{text}.")
    return sentences


def _choice(row: pd.Series, k: int) -> str:
    cost = f"{row['calls']:,} model calls" if row["calls"] else "no model calls"
    return (
        f"{rule_label(row['rule'])} (adversarial share@{k} at worst {number(row['adv_share'])}, "
        f"P@{k} {number(row['precision'])}, {cost})"
    )


def answers_table(frame: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Rule and spoof rate by answer metric: mean and 95 % interval.

    frame: columns rule, spoof, metric, mean, low, high; metrics without a value are left out.
    """
    need(frame, "rule", "spoof", "metric", "mean", "low", "high")
    parts = zip(frame["mean"], frame["low"], frame["high"], strict=True)
    cells = frame.assign(cell=[f"{number(m)} {interval(a, b)}" for m, a, b in parts])
    wide = cells.pivot_table(
        index=["rule", "spoof"], columns="metric", values="cell", aggfunc="first", sort=False
    ).fillna(ABSENT)
    shown = [m for m in metrics if m in wide.columns]
    table = wide[shown].rename(columns=lambda m: metric_label(m, arrow=True)).reset_index()
    table["rule"] = [rule_label(r) for r in table["rule"]]
    table["spoof"] = [number(s) for s in table["spoof"]]
    return table.rename(columns={"rule": "Rule", "spoof": "Spoofed"}).rename_axis(columns=None)


def aligned(table: pd.DataFrame) -> str:
    """A table of readable cells as text in aligned columns."""
    rows = [list(table.columns), *table.astype(str).to_numpy().tolist()]
    widths = [max(len(row[i]) for row in rows) for i in range(len(table.columns))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)
