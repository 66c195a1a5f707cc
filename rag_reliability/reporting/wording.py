"""Sentences made from numbers: what they say follows the sign, the interval and the p-value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from rag_reliability.reporting.style import higher_is_better, metric_label, tier_label
from rag_reliability.reporting.tables import number, p_text

ALPHA = 0.05
NOT_MEASURED = "not measured in this run"


def verdict(diff: float, low: float, high: float, p: float, higher_is_better: bool) -> str:
    """What a paired difference (system − baseline) shows, with its interval and p.

    Better or worse is plainly said only when p < .05 and the interval leaves out zero; when only
    one of the two holds, that is said; otherwise chance alone could explain the difference.
    """
    if not np.isfinite(diff):
        return NOT_MEASURED
    sure = [bool(p < ALPHA)] if np.isfinite(p) else []
    sure += [bool(low > 0 or high < 0)] if np.isfinite(low) and np.isfinite(high) else []
    if abs(diff) < 5e-4:
        head = "unchanged on average"
    else:
        word = "better" if (diff > 0) == higher_is_better else "worse"
        head = f"{word} by {number(abs(diff), 3)}{_certainty(sure)}"
    return f"{head} ({_evidence(diff, low, high, p)})"


def _certainty(sure: list[bool]) -> str:
    if not sure:
        return ", untested"
    if all(sure):
        return ""
    if any(sure):
        return ", on uncertain evidence: interval and test disagree"
    return " on average, which chance alone could explain"


def _evidence(diff: float, low: float, high: float, p: float) -> str:
    parts = [f"change {number(diff, 3)}"]
    if np.isfinite(low) and np.isfinite(high):
        parts.append(f"95 % interval {number(low, 3)} to {number(high, 3)}")
    if np.isfinite(p):
        parts.append(f"p {p_text(p)}" if p_text(p).startswith("<") else f"p = {p_text(p)}")
    return ", ".join(parts)


def find(frame: pd.DataFrame, **keys: Any) -> dict[str, Any] | None:
    """The one row with these values, as a dict; None when there is none. NaN matches None."""
    if not len(frame) or not set(keys) <= set(frame.columns):
        return None
    mask = np.ones(len(frame), dtype=bool)
    for column, value in keys.items():
        column_mask = frame[column].isna() if value is None else frame[column] == value
        mask &= column_mask.to_numpy(bool)
    rows = frame[mask].to_dict("records")
    return {str(k): v for k, v in rows[0].items()} if rows else None


def contrast(contrasts: pd.DataFrame, system: str, metric: str, arm: str | None = None) -> str:
    """The verdict on one system and metric, by the Holm-adjusted p where there is one."""
    keys = {"arm": arm} if "arm" in contrasts.columns else {}
    row = find(contrasts, system=system, metric=metric, **keys)
    if row is None:
        return NOT_MEASURED
    adjusted = row.get("p_holm", np.nan)
    p = adjusted if np.isfinite(adjusted) else row.get("p", np.nan)
    return verdict(row["diff"], row["low"], row["high"], p, higher_is_better(metric))


def ranking_sentence(contrasts: pd.DataFrame, system: str, k: int) -> str:
    """First sentence of the answer: what happens to the ranking."""
    precision, share = (contrast(contrasts, system, f"{m}@{k}") for m in ("precision", "adv_share"))
    return (
        f"Ranking by similarity times the source's prior instead of by similarity alone, P@{k} is "
        f"{precision}, and the adversarial share of the top {k} is {share}."
    )


def answer_sentence(contrasts: pd.DataFrame, system: str, arm: str) -> str:
    """Second sentence: what happens to the answers and to the model's stance."""
    correct, harm = (contrast(contrasts, system, m, arm) for m in ("correctness", "harm"))
    stance = contrast(contrasts, system, "stance_error")
    return (
        f"In the answers generated from those passages, correctness is {correct}, and harm is "
        f"{harm}; the stance error of the yes/no probe is {stance}."
    )


def cost_sentence(
    summary: pd.DataFrame, threats: pd.DataFrame, system: str, baseline: str, k: int
) -> str:
    """Third sentence: what it costs in true low-tier documents, and what is left under spoofing."""
    lost = find(summary, system=system, metric=f"suppressed_true@{k}")
    cost = (
        f"{number(lost['mean'] * 100, 0)} % of the relevant low-tier documents that similarity "
        f"had in its top {k} are lost (mean over topics)"
        if lost and np.isfinite(lost["mean"])
        else f"relevant low-tier documents lost from the top {k}: {NOT_MEASURED}"
    )
    return f"The price: {cost}; {spoofing(threats, system, baseline, f'adv_share@{k}')}."


def spoofing(threats: pd.DataFrame, system: str, baseline: str, metric: str) -> str:
    """What the greatest spoofed share does to a metric, against the baseline at the same share."""
    rate = threats["rate"].max() if len(threats) else np.nan
    mine = find(threats, system=system, metric=metric, rate=rate)
    other = find(threats, system=baseline, metric=metric, rate=rate)
    if not mine or not other:
        return f"spoofed source labels: {NOT_MEASURED}"
    gain = (mine["mean"] - other["mean"]) * (1 if higher_is_better(metric) else -1)
    end = (
        "so on average the advantage is gone"
        if abs(gain) < 5e-4
        else "so on average some advantage remains"
        if gain > 0
        else "so on average the prior then works for the adversary"
    )
    return (
        f"when {number(rate * 100, 0)} % of the adversarial documents claim a trusted source type, "
        f"{_mid_sentence(metric_label(metric))} is {number(mine['mean'])} against "
        f"{number(other['mean'])} for similarity alone, {end}"
    )


def _mid_sentence(label: str) -> str:
    """A label within a sentence: lower case, but for names such as P@5 and MRR."""
    return label if label[:2].isupper() or label[1:2] == "@" else label[0].lower() + label[1:]


def why_lost(trace: pd.DataFrame) -> dict[str, Any]:
    """What left and what entered a topic's top k, and in one sentence what that meant.

    trace: the topic's rows of a rank trace with label and adversarial. Keys: left, entered (lists
    of rows), sentence.
    """
    if not len(trace):
        return {"left": [], "entered": [], "sentence": "No trace was kept of this topic."}
    before, after = (trace[c].astype(bool) for c in ("in_top_before", "in_top_after"))
    left = trace[before & ~after].sort_values("rank_sim")
    entered = trace[after & ~before].sort_values("rank_score")
    return {
        "left": [_moved(r) for r in left.to_dict("records")],
        "entered": [_moved(r) for r in entered.to_dict("records")],
        "sentence": _exchange(left, entered),
    }


def _moved(row: dict[Any, Any]) -> dict[str, Any]:
    return {**row, "tier": tier_label(row["source_type"]), "prior": number(row["prior"])}


def _exchange(left: pd.DataFrame, entered: pd.DataFrame) -> str:
    if not len(left) and not len(entered):
        return "The same documents stand in the top k, in another order."
    lost, gained = int((left["label"] > 0).sum()), int((entered["label"] > 0).sum())
    bad_out, bad_in = int(left["adversarial"].sum()), int(entered["adversarial"].sum())
    text = (
        f"{len(left)} out, {len(entered)} in: {lost} of those that left and {gained} of those that "
        f"entered are relevant"
    )
    if bad_out or bad_in:
        text += f"; adversarial: {bad_out} left, {bad_in} entered"
    if len(left) and len(entered):
        means = left["prior"].mean(), entered["prior"].mean()
        text += f". Their mean prior is {number(means[0])} and {number(means[1])}"
    return text + "."
