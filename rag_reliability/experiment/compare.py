"""Two runs side by side: what differs between their numbers, topic by topic, and how surely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from rag_reliability.evaluation.significance import compare, holm, smallest_p, topic_deltas
from rag_reliability.experiment.compare_pairs import BY, pairs_told, topics_told
from rag_reliability.experiment.compare_sides import (
    Side,
    config_differences,
    named_apart,
    read_side,
    shared_topics,
)
from rag_reliability.records import InputError
from rag_reliability.reporting.compare import Comparison

ASKED = (
    *("precision", "ndcg", "adv_share", "suppressed_true"),
    *("correctness", "harm", "grounding", "adversarial_uptake", "stance_error"),
)
"""Metrics compared unless others are named: few, since each takes its toll of Holm's correction."""
_JOIN = "\x1f"  # a separator that no name can hold


def compare_runs(
    run_a: str | Path,
    run_b: str | Path,
    *,
    metrics: Sequence[str] = ASKED,
    systems: Sequence[str] = (),
    n_resamples: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Compare two finished runs, B minus A, paired by topic.

    Each system of both runs is compared with itself on each metric: mean difference, percentile
    bootstrap interval, p of the paired randomisation test, and p adjusted by Holm over all systems
    and metrics compared. Runs with different k are compared each at its own cutoff, as metric@k.

    Args:
        metrics: names with or without cutoff. systems: none given takes all that both runs have.

    Topics that one run alone has are left out, and their number is said. A topic of both for which
    one run lacks a row is refused, unless the metric has no value for it there, which is said.

    Raises: InputError for a folder without a run, runs of different corpora without a shared topic,
    runs with no metric or system in common, and a run that is not whole.
    """
    a, b = (read_side(Path(run)) for run in (run_a, run_b))
    a, b = named_apart(a, b)
    shared, notes = shared_topics(a, b)
    notes += topics_told(a, b, shared)
    frames = [_chosen(side, shared, metrics, systems) for side in _same_cutoff(a, b, notes)]
    notes += _one_sided(a, b, *frames)
    notes += pairs_told(a, b, *frames)
    both = pd.concat(frames, keys=["A", "B"], names=["side"]).reset_index("side")
    both = _in_both(both)
    if both.empty:
        raise InputError(
            f"{a.folder} and {b.folder}: no system and metric in common to compare"
            + "".join(f"; {side.label} has {_has(side)}" for side in (a, b))
        )
    tests, per_topic = _tests(both, n_resamples, seed)
    own = [set(side.metrics["qid"]) for side in (a, b)]
    return Comparison(
        a=a.label,
        b=b.label,
        tests=tests,
        per_topic=per_topic,
        config=config_differences(a, b),
        topics=tuple(sorted(set(both["qid"]))),
        only_a=tuple(sorted(own[0] - shared)),
        only_b=tuple(sorted(own[1] - shared)),
        notes=tuple(notes),
        floor=min(1.0, len(tests) * smallest_p(len(set(both["qid"])), n_resamples=n_resamples)),
    )


def _same_cutoff(a: Side, b: Side, notes: list[str]) -> list[Side]:
    """Both runs, their own k written as @k where the two differ."""
    ks = [side.config.get("k") for side in (a, b)]
    if ks[0] == ks[1] or None in ks:
        return [a, b]
    notes.append(f"Each run is scored at its own cutoff: k = {ks[0]} in A, {ks[1]} in B.")
    sides = []
    for side, k in zip((a, b), ks, strict=True):
        own = side.metrics["metric"].str.endswith(f"@{k}")
        own &= ~side.metrics["metric"].str.startswith("recall@")  # at a depth of its own
        name = side.metrics["metric"].where(
            ~own, side.metrics["metric"].str.split("@").str[0] + "@k"
        )
        sides.append(replace(side, metrics=side.metrics.assign(metric=name)))
    return sides


def _has(side: Side) -> str:
    """A side's systems and metrics, in words."""
    names = (dict.fromkeys(side.metrics[column]) for column in ("system", "metric"))
    return " with ".join(", ".join(found) for found in names)


def _chosen(
    side: Side, topics: set[str], metrics: Sequence[str], systems: Sequence[str]
) -> pd.DataFrame:
    frame = side.metrics
    base = frame["metric"].str.split("@").str[0]
    keep = frame["qid"].isin(topics) & (frame["metric"].isin(metrics) | base.isin(metrics))
    if systems:
        keep &= frame["system"].isin(systems)
    return frame[keep]


def _one_sided(a: Side, b: Side, frame_a: pd.DataFrame, frame_b: pd.DataFrame) -> list[str]:
    """What one run alone has, as sentences: whole kinds, else systems and prompts, else metrics."""
    notes = []
    for side, own, other in ((a, frame_a, frame_b), (b, frame_b, frame_a)):
        alone: list[str] = []
        for columns in (["kind"], ["system", "arm"], ["metric"]):
            there = set(other[columns].itertuples(index=False, name=None))
            new = [key not in there for key in own[columns].itertuples(index=False, name=None)]
            names = own.loc[new, columns].drop_duplicates().itertuples(index=False, name=None)
            alone += [" ".join(filter(None, key)) for key in names]
            own = own[~np.array(new, dtype=bool)]
        if alone:
            notes.append(f"{side.label} alone has {', '.join(alone)}: not compared.")
    return notes


def _in_both(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows whose system, arm, metric and topic have a value on both sides."""
    sides = frame.groupby([*BY, "qid"], sort=False)["side"].transform("nunique")
    return frame[sides == 2]


def _tests(both: pd.DataFrame, n_resamples: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(one row a test, one row a test and topic); B minus A, Holm over all tests."""
    # The sides take the place of systems; what is compared within itself takes that of arms.
    within = both[["kind", "system", "arm"]].agg(_JOIN.join, axis=1)
    frame = both.assign(system=both["side"], arm=within)[
        ["system", "arm", "qid", "metric", "value"]
    ]
    found = compare(frame, "A", n_resamples=n_resamples, seed=seed)
    found = _apart(found[found["system"] == "B"]).reset_index(drop=True)
    found["p_holm"] = holm(found["p"])
    renamed = {"baseline_mean": "mean_a", "mean": "mean_b", "diff_low": "low", "diff_high": "high"}
    tests = found.drop(columns=["low", "high"]).rename(columns=renamed)
    deltas = _apart(topic_deltas(frame, "A"))
    deltas = deltas.rename(columns={"baseline_value": "a", "value": "b"})
    numbers = ["mean_a", "mean_b", "diff", "low", "high", "p", "p_holm", "p_min"]
    counts = ["wins", "ties", "losses", "n_topics"]
    return tests[[*BY, *numbers, *counts]], deltas[[*BY, "qid", "a", "b", "delta", "outcome"]]


def _apart(frame: pd.DataFrame) -> pd.DataFrame:
    """The joined arms taken apart again into kind, system and arm."""
    parts = frame["arm"].str.split(_JOIN, expand=True, regex=False)
    return frame.assign(kind=parts[0], system=parts[1], arm=parts[2])
