"""Whether each topic that two runs share has a value in both: said where that is no fault, else
refused, since a comparison over fewer topics than it seems is another comparison."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from rag_reliability.experiment.compare_sides import FILES, Side
from rag_reliability.records import InputError

BY = ["kind", "system", "arm", "metric"]
NOT_EVERYWHERE = ("suppressed_true", "correctness", "harm")
"""Metrics that some topics do not have: without a low-tier document worth showing, or without claim
pairs. Such a topic has none under any system; all other metrics have a value for every topic."""
_NAMED = 5


def topics_told(a: Side, b: Side, shared: set[str]) -> list[str]:
    """How many topics are paired, where the topics of the runs or of one of their files differ.

    shared: topics that can be paired at all.
    """
    own = [set(side.metrics["qid"]) for side in (a, b)]
    notes = []
    if any(topics != shared for topics in own):
        notes.append(
            f"Topics paired: {len(shared)}, of {len(own[0])} in {a.label} and {len(own[1])} in "
            f"{b.label}."
        )
    for kind in FILES:
        there = [_topics(side, kind) & shared for side in (a, b)]
        if all(there) and there[0] != there[1]:
            notes.append(
                f"Of {kind}, topics paired: {len(there[0] & there[1])}, of {len(there[0])} in "
                f"{a.label} and {len(there[1])} in {b.label}."
            )
    return notes


def pairs_told(a: Side, b: Side, frame_a: pd.DataFrame, frame_b: pd.DataFrame) -> list[str]:
    """Which values of what is compared stand in one run alone, because a topic has none there.

    frame_a, frame_b: the rows compared, columns ``BY``, qid and value.

    Raises InputError naming file, metric, system and topics where a run lacks a row that it should
    have: its file is not whole.
    """
    rows = frame_a.merge(frame_b, on=[*BY, "qid"], how="outer", indicator="found")
    rows = rows[_in(rows, BY, _keys(frame_a, BY) & _keys(frame_b, BY))]
    notes = []
    for side, other, own, found in ((a, b, frame_a, "right_only"), (b, a, frame_b, "left_only")):
        lacking = rows[rows["found"] == found]
        whole = {(kind, qid) for kind in FILES for qid in _topics(side, kind)}
        lacking = lacking[_in(lacking, ["kind", "qid"], whole)]
        topic = ["kind", "metric", "qid"]
        none = lacking["metric"].str.split("@").str[0].isin(NOT_EVERYWHERE)
        none &= ~_in(lacking, topic, _keys(own, topic))
        _refuse(side, other, lacking[~none])
        for metric, qids in lacking[none].groupby("metric")["qid"]:
            notes.append(
                f"{metric} has no value in {side.label} for {_some(sorted(set(qids)))}: "
                "left out there, and the column of topics says how many are paired."
            )
    return notes


def _refuse(side: Side, other: Side, lacking: pd.DataFrame) -> None:
    for (kind, system, arm, metric), qids in lacking.groupby(BY, sort=False)["qid"]:
        of = " ".join(filter(None, (system, arm)))
        raise InputError(
            f"{side.folder / FILES[kind]}: no {metric} of {of} for {_some(list(qids))}, which "
            f"{other.folder} has; a run that is not whole is not compared"
        )


def _topics(side: Side, kind: str) -> set[str]:
    return set(side.metrics.loc[side.metrics["kind"] == kind, "qid"])


def _keys(frame: pd.DataFrame, columns: list[str]) -> set[tuple[str, ...]]:
    return set(frame[columns].itertuples(index=False, name=None))


def _in(frame: pd.DataFrame, columns: list[str], keys: Iterable[tuple[str, ...]]) -> pd.Series:
    known = set(keys)
    found = [key in known for key in frame[columns].itertuples(index=False, name=None)]
    return pd.Series(found, index=frame.index, dtype=bool)


def _some(qids: Sequence[str]) -> str:
    rest = f" and {len(qids) - _NAMED} more" if len(qids) > _NAMED else ""
    return f"topic {', '.join(qids[:_NAMED])}{rest}"
