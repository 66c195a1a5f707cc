"""From a sweep's tidy rows to what a user decides by: worst cases, gains, costs, and a choice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from rag_reliability.evaluation.significance import Interval, mean_interval

BASELINE = "similarity"
LEAK_LIMIT = 0.05
"""Share of liars that pass the check up to which a rule must hold to be called safe."""
SMALL_SHARE, ENOUGH_KEPT = 0.10, 0.80
"""The aims: adversarial share at most this, and at least this share of true low-tier kept."""
_ROUNDING = 1e-9
LABELS_ALONE = (
    *("source_aware", "collapse", "uncertain_labels", "source_quota", "hard_filter"),
    *("metadata_linear", "metadata_rrf"),
)
"""Rules that believe what nobody checked."""
LABEL_TRUSTING = ("verified_boost", "verified_min", "verified_collapse")
"""Rules that can rank a checked document of a low tier below an unchecked one."""


def topic_means(frame: pd.DataFrame) -> pd.DataFrame:
    """Per topic means over seeds: columns rule, spoof, leak, qid, metric (no cutoff), value.

    kept, the share of similarity's true low-tier documents that the rule still shows, is 1 −
    suppressed_true and stands in its place.
    """
    by = ["rule", "spoof", "leak", "qid", "metric"]
    means = frame.groupby(by, sort=False, observed=True)["value"].mean().reset_index()
    means = means.astype({"rule": str, "metric": str})
    means["metric"] = means["metric"].str.partition("@")[0]
    suppressed = means["metric"] == "suppressed_true"
    means["value"] = means["value"].where(~suppressed, 1 - means["value"])
    means["metric"] = means["metric"].mask(suppressed, "kept")
    return means


def cell_table(means: pd.DataFrame, *, n_resamples: int, seed: int) -> pd.DataFrame:
    """Each rule under each spoof rate and leak, alone and against similarity alone.

    means: from ``topic_means``. Returns columns rule, spoof, leak, metric, mean, low, high, diff,
    diff_low, diff_high, n_topics; intervals over topics (``significance.mean_interval``).
    """
    wide = means.pivot_table(
        index=["metric", "rule", "spoof", "leak"], columns="qid", values="value", sort=False
    )
    known: dict[bytes, Interval] = {}

    def interval(values: np.ndarray) -> Interval:
        # Most rules do not move at most rates, so most intervals are asked for many times.
        key = values.tobytes()
        if key not in known:
            known[key] = mean_interval(values, n_resamples=n_resamples, seed=seed)
        return known[key]

    rows = []
    for (metric, rule, spoof, leak), values in wide.iterrows():
        own = values.to_numpy(dtype=np.float64)
        delta = own - wide.loc[(metric, BASELINE, spoof, leak)].to_numpy(dtype=np.float64)
        alone, against = (interval(v[~np.isnan(v)]) for v in (own, delta))
        ends = (alone.mean, alone.low, alone.high, against.mean, against.low, against.high)
        rows.append((rule, spoof, leak, metric, *ends, int((~np.isnan(own)).sum())))
    columns = ["rule", "spoof", "leak", "metric", "mean", "low", "high"]
    return pd.DataFrame(rows, columns=[*columns, "diff", "diff_low", "diff_high", "n_topics"])


def leak_limit(cells: pd.DataFrame) -> float:
    """``LEAK_LIMIT``, or the smallest leak where every one is larger."""
    return max(LEAK_LIMIT, float(cells["leak"].min()))


def no_regret_table(cells: pd.DataFrame, costs: pd.DataFrame) -> pd.DataFrame:
    """One row a rule: what it can cost and what it gains, and which of the four aims it meets.

    cells: from ``cell_table``. costs: columns rule, calls, seconds. Every estimate has its
    interval in ``_low`` and ``_high``. Worst cases are over all spoof rates and leaks up to
    ``leak_limit``, those named ``_all`` over all leaks:

    - worst_adv, worst_adv_all: largest change in adversarial share against similarity alone;
    - max_adv: largest adversarial share; worst_precision: smallest change in precision;
    - kept: smallest share of similarity's true low-tier documents still shown;
    - honest_adv, honest_precision: the changes where no label lies (NaN if rate 0 was not run);
    - never_worse: no interval of the change in adversarial share reaches above 0; small: max_adv at
      most ``SMALL_SHARE``; more_precise: every interval of the change in precision lies above 0;
      keeps_true: kept at least ``ENOUGH_KEPT``.
    """
    limit = leak_limit(cells)
    rows = [_regret(rule, own, limit) for rule, own in cells.groupby("rule", sort=False)]
    table = pd.DataFrame(rows).merge(costs, on="rule", how="left")
    return table.astype({"calls": int})


def _regret(rule: str, own: pd.DataFrame, limit: float) -> dict[str, object]:
    near, honest = own[own["leak"] <= limit], own[own["spoof"] == 0]
    share, precision, kept = (_of(near, m) for m in ("adv_share", "precision", "kept"))
    return {
        "rule": rule,
        **_extreme("worst_adv", share, "diff", largest=True),
        **_extreme("worst_adv_all", _of(own, "adv_share"), "diff", largest=True),
        **_extreme("max_adv", share, "mean", largest=True),
        **_extreme("worst_precision", precision, "diff", largest=False),
        **_extreme("kept", kept, "mean", largest=False),
        **_extreme("honest_adv", _of(honest, "adv_share"), "diff", largest=True),
        **_extreme("honest_precision", _of(honest, "precision"), "diff", largest=False),
        "never_worse": _met(share["diff_high"] <= _ROUNDING),
        "small": _met(share["mean"] <= SMALL_SHARE + _ROUNDING),
        "more_precise": _met(precision["diff_low"] > _ROUNDING),
        "keeps_true": _met(kept["mean"] >= ENOUGH_KEPT - _ROUNDING),
    }


def _met(each: pd.Series) -> bool | None:
    """Whether an aim is met in every cell; None where nothing was measured."""
    return bool(each.all()) if len(each) else None


def _of(cells: pd.DataFrame, metric: str) -> pd.DataFrame:
    return cells[cells["metric"] == metric]


def _extreme(name: str, cells: pd.DataFrame, column: str, *, largest: bool) -> dict[str, float]:
    """The most extreme cell with its interval; NaN where there is none."""
    stem = "diff_" if column == "diff" else ""
    found = {name: np.nan, f"{name}_low": np.nan, f"{name}_high": np.nan}
    if cells.empty:
        return found
    end = f"{stem}high" if largest else f"{stem}low"
    row = cells.sort_values([column, end], ascending=not largest, kind="stable").iloc[0]
    ends = (row[column], row[f"{stem}low"], row[f"{stem}high"])
    return dict(zip(found, map(float, ends), strict=True))


def beliefs(cells: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """What one may believe of the adversary, and the cells that belief allows for."""
    found = []
    if (cells["spoof"] == 0).any():
        found.append(("labels are honest", cells[cells["spoof"] == 0]))
    for leak in sorted(cells["leak"].unique()):
        passed = "none passes the check" if leak == 0 else f"up to {leak:.0%} pass the check"
        text = f"any share lies about its source, {passed}".replace("%", " %")
        found.append((text, cells[cells["leak"] <= leak]))
    return found


def decision_table(cells: pd.DataFrame, costs: pd.DataFrame) -> pd.DataFrame:
    """Which rule to deploy under which belief about the adversary, with and without a model.

    A rule is eligible when no interval of its change in adversarial share reaches above 0 in any
    cell that the belief allows for; of those the smallest worst adversarial share (to three digits)
    wins, then the largest worst precision, the fewest model calls, the least trust in labels that
    nobody checked or that cost a checked document, and the order of rules.

    Returns: columns belief, model (may the rule call one?), rule, adv_share, precision, kept (the
    worst values), calls, seconds. Similarity alone is always eligible.
    """
    rows = []
    for belief, allowed in beliefs(cells):
        candidates = _candidates(allowed, costs)
        for model in (True, False):
            own = candidates if model else candidates[candidates["calls"] == 0]
            rows.append({"belief": belief, "model": model, **own.iloc[0].to_dict()})
    return pd.DataFrame(rows)


def _candidates(cells: pd.DataFrame, costs: pd.DataFrame) -> pd.DataFrame:
    """Eligible rules, best first: columns rule, adv_share, precision, kept, calls, seconds."""
    share = _of(cells, "adv_share").groupby("rule", sort=False)
    worst = pd.DataFrame(
        {
            "adv_share": share["mean"].max(),
            "precision": _of(cells, "precision").groupby("rule", sort=False)["mean"].min(),
            "kept": _of(cells, "kept").groupby("rule", sort=False)["mean"].min(),
        }
    )
    eligible = worst[(share["diff_high"].max() <= _ROUNDING).reindex(worst.index)]
    table = eligible.rename_axis("rule").reset_index().merge(costs, on="rule", how="left")
    order = table.assign(
        adv_share=table["adv_share"].round(3), precision=-table["precision"].round(3)
    )
    order["trusting"] = order["rule"].isin(LABEL_TRUSTING) + 2 * order["rule"].isin(LABELS_ALONE)
    order = order.sort_values(["adv_share", "precision", "calls", "trusting"], kind="stable")
    return table.loc[order.index, ["rule", "adv_share", "precision", "kept", "calls", "seconds"]]


def curves(cells: pd.DataFrame, rules: Sequence[str]) -> pd.DataFrame:
    """The cells that the figure over spoof rates shows: adversarial share and precision."""
    own = cells[cells["rule"].isin(rules)]
    return pd.concat([_of(own, metric) for metric in ("adv_share", "precision")])
