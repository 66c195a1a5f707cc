"""Tables of the paper: tidy results in, a table of readable cells out, written as LaTeX and CSV."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from rag_reliability.reporting.save import write_whole
from rag_reliability.reporting.style import (
    ARMS,
    SYSTEMS,
    arm_label,
    higher_is_better,
    in_order,
    metric_label,
    natural,
    need,
    system_label,
)

ABSENT = "–"
MARKS_NOTE = "Holm-adjusted p against similarity only: * < .05, ** < .01, *** < .001."
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "−": "$-$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "×": r"$\times$",
    "→": r"$\rightarrow$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "λ": r"$\lambda$",
    "α": r"$\alpha$",
    "γ": r"$\gamma$",
    "–": "--",
}


def number(value: object, digits: int = 2) -> str:
    """A number with fixed digits and a true minus sign; "–" where it is missing."""
    if value is None or not np.isfinite(float(value)):  # type: ignore[arg-type]
        return ABSENT
    text = f"{float(value):.{digits}f}"  # type: ignore[arg-type]
    zero = float(text) == 0
    return text.lstrip("-") if zero else text.replace("-", "−")


def interval(low: object, high: object, digits: int = 2) -> str:
    """An interval as "[low, high]"; "–" where either end is missing."""
    ends = number(low, digits), number(high, digits)
    return ABSENT if ABSENT in ends else f"[{ends[0]}, {ends[1]}]"


def p_text(p: object) -> str:
    """A p-value with three digits, "< .001" below that, "–" where it is missing."""
    shown = number(p, 3)
    return "< 0.001" if shown == "0.000" else shown


def p_mark(p: object) -> str:
    """Asterisks of a p-value: * < .05, ** < .01, *** < .001."""
    if p is None or not np.isfinite(float(p)):  # type: ignore[arg-type]
        return ""
    return "*" * sum(float(p) < limit for limit in (0.05, 0.01, 0.001))  # type: ignore[arg-type]


def _estimate(row: pd.Series) -> str:
    text = f"{number(row['mean'])} {interval(row['low'], row['high'])}".replace(f" {ABSENT}", "")
    return text + p_mark(row.get("p_holm"))


def _wide(summary: pd.DataFrame, index: list[str], metrics: Sequence[str] | None) -> pd.DataFrame:
    """Readable estimates, one row for each value of ``index`` and one column for each metric."""
    need(summary, *index, "metric", "mean", "low", "high")
    shown = [
        m for m in (metrics or dict.fromkeys(summary["metric"])) if m in set(summary["metric"])
    ]
    cells = summary.assign(cell=summary.apply(_estimate, axis=1) if len(summary) else [])
    wide = cells.pivot(index=index, columns="metric", values="cell").reindex(columns=shown)
    return wide.fillna(ABSENT).rename(columns=lambda m: metric_label(m, arrow=True))


def main_table(summary: pd.DataFrame, metrics: Sequence[str] | None = None) -> pd.DataFrame:
    """System by metric: mean, 95 % interval and the mark of the Holm-adjusted p.

    summary: columns system, metric, mean, low, high, and p_holm (NaN for the baseline) if tested.
    """
    wide = _wide(summary, ["system"], metrics)
    wide = wide.reindex(in_order(wide.index, SYSTEMS))
    wide.insert(0, "System", [system_label(s) for s in wide.index])
    return wide.reset_index(drop=True).rename_axis(columns=None)


def answers_table(summary: pd.DataFrame, metrics: Sequence[str] | None = None) -> pd.DataFrame:
    """System and arm by answer metric: mean, 95 % interval and the mark of the Holm-adjusted p.

    summary: columns system, arm, metric, mean, low, high, and p_holm if tested.
    """
    wide = _wide(summary.assign(arm=summary["arm"].fillna("")), ["system", "arm"], metrics)
    order = [
        (s, a)
        for s in in_order(wide.index.get_level_values("system"), SYSTEMS)
        for a in in_order(wide.index.get_level_values("arm"), ARMS)
        if (s, a) in wide.index
    ]
    wide = wide.reindex(pd.MultiIndex.from_tuples(order, names=["system", "arm"]))
    wide.insert(0, "Prompt", [arm_label(a) or ABSENT for _, a in order])
    wide.insert(0, "System", [system_label(s) for s, _ in order])
    return wide.reset_index(drop=True).rename_axis(columns=None)


def stance_table(summary: pd.DataFrame, metrics: Sequence[str] | None = None) -> pd.DataFrame:
    """System by measure of the stance probe (AUROC, shift, stance error), as ``main_table``."""
    return main_table(summary, metrics)


def study_table(frame: pd.DataFrame) -> pd.DataFrame:
    """The study's numbers beside ours with intervals; "–" where the study gives none.

    frame: columns metric, arm (baseline or source_aware), study, ours, low, high.
    """
    need(frame, "metric", "arm", "study", "ours", "low", "high")
    names = {"baseline": "Similarity only", "source_aware": "Source-aware"}
    return pd.DataFrame(
        {
            "Metric": [metric_label(m, arrow=True) for m in frame["metric"]],
            "System": [names.get(a, a) for a in frame["arm"]],
            "Study": [number(v) for v in frame["study"]],
            "Ours": [number(v) for v in frame["ours"]],
            "95 % interval": [
                interval(a, b) for a, b in zip(frame["low"], frame["high"], strict=True)
            ],
        }
    )


def outcome(metric: str, before: float, after: float) -> str:
    """ "win", "tie" or "loss" of ``after`` against ``before``, by the metric's better direction."""
    gain = (after - before) * (1 if higher_is_better(metric) else -1)
    return "–" if np.isnan(gain) else "tie" if abs(gain) < 1e-9 else "win" if gain > 0 else "loss"


def per_topic_table(
    metrics: pd.DataFrame,
    *,
    system: str = "source_aware",
    baseline: str = "similarity",
    names: Sequence[str] = ("precision@5", "adv_share@5"),
) -> pd.DataFrame:
    """Each topic's values under baseline and system with win, tie or loss; last row counts them.

    metrics: columns system, qid, metric, value.
    """
    need(metrics, "system", "qid", "metric", "value")
    qids = sorted(metrics["qid"].unique(), key=natural)
    columns: dict[str, list[str]] = {"Topic": [*qids, "wins / ties / losses"]}
    wide = metrics.pivot_table(index="qid", columns=["metric", "system"], values="value")
    for name in names:
        nothing = pd.Series(np.nan, index=wide.index)
        before = wide.get((name, baseline), nothing).reindex(qids)
        after = wide.get((name, system), nothing).reindex(qids)
        ends = [outcome(name, b, a) for b, a in zip(before, after, strict=True)]
        label = metric_label(name, arrow=True)
        columns[f"{label}, similarity"] = [*(number(v) for v in before), ""]
        columns[f"{label}, source-aware"] = [*(number(v) for v in after), ""]
        total = " / ".join(str(ends.count(word)) for word in ("win", "tie", "loss"))
        columns[f"{label}, outcome"] = [*ends, total]
    return pd.DataFrame(columns)


def significance_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Paired differences against the baseline: estimate, interval, p, Holm p, wins/ties/losses.

    frame: columns system, metric, diff, low, high, p, p_holm; if known arm, wins, ties, losses.
    """
    need(frame, "system", "metric", "diff", "low", "high", "p", "p_holm")
    table = pd.DataFrame({"System": [system_label(s) for s in frame["system"]]})
    if "arm" in frame:
        table["Prompt"] = [arm_label(a) or ABSENT for a in frame["arm"].fillna("")]
    table["Metric"] = [metric_label(m, arrow=True) for m in frame["metric"]]
    table["Difference"] = [number(v, 3) for v in frame["diff"]]
    ends = zip(frame["low"], frame["high"], strict=True)
    table["95 % interval"] = [interval(a, b, 3) for a, b in ends]
    table["p"] = [p_text(v) for v in frame["p"]]
    table["p (Holm)"] = [p_text(v) for v in frame["p_holm"]]
    if {"wins", "ties", "losses"} <= set(frame.columns):
        counts = frame[["wins", "ties", "losses"]].astype(int).to_numpy()
        table["wins / ties / losses"] = [" / ".join(map(str, row)) for row in counts]
    return table


def latex_text(value: object) -> str:
    """A cell for LaTeX: special characters escaped, symbols as math, floats with three digits."""
    text = number(value, 3) if isinstance(value, float | np.floating) else str(value)
    escaped = "".join(_LATEX.get(c, c) for c in text)
    # After a rule or a row's end LaTeX takes a bracket or star for an option of that command.
    return f"{{}}{escaped}" if escaped.startswith(("[", "*")) else escaped


def save_table(table: pd.DataFrame, stem: str | Path) -> tuple[Path, Path]:
    """Write ``stem``.tex (booktabs) and ``stem``.csv, floats in fixed digits; both paths."""
    stem = Path(stem)
    styler = table.style.hide(axis="index").format(latex_text).format_index(latex_text, axis=1)
    numeric = [pd.api.types.is_numeric_dtype(kind) for kind in table.dtypes]
    columns = "".join("r" if n else "l" for n in numeric)
    tex = styler.to_latex(hrules=True, column_format=columns)
    csv = table.to_csv(index=False, lineterminator="\n", float_format="%.6g")
    return (
        write_whole(stem.with_name(f"{stem.name}.tex"), tex),
        write_whole(stem.with_name(f"{stem.name}.csv"), csv),
    )
