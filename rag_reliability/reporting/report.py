"""The report: one self-contained HTML page that tells the study with its figures and numbers."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from rag_reliability.reporting import tables, wording
from rag_reliability.reporting.captions import CAPTIONS, LIMITS, QUESTION, RERUN
from rag_reliability.reporting.conclusion import conclusion_table, tally, turns
from rag_reliability.reporting.pages import environment, trusted
from rag_reliability.reporting.sources import source_links, stage_link, value_links
from rag_reliability.reporting.style import metric_label, natural
from rag_reliability.reporting.tables_grounding import grounding_table, resolution_sentence
from rag_reliability.reporting.values import plain_value


@dataclass(frozen=True)
class ReportContext:
    """Everything the report is made of; an empty table leaves a plain note in its place.

    summary: system, metric, mean, low, high, p_holm (ranking metrics).
    contrasts: system, arm (None for ranking and stance), metric, diff, low, high, p, p_holm, and
        wins, ties, losses if counted; each system against ``baseline``.
    study: metric, arm (baseline or source_aware), study, ours, low, high.
    per_topic: system, qid, metric, value.
    traces: rank trace of ``system`` with label, adversarial and low_tier; all topics.
    answers: system, arm, metric, mean, low, high. stance: system, metric, mean, low, high.
    grounding_check: set, measure, value, low, high, n.
    threats: rate, system, metric, mean, low, high.
    no_regret, deploy: tables of ``threat_tables``, ready to be read.
    sensitivity: as ``experiment.conclusion`` makes it, the run itself and every swept value.
    topics: query by qid. titles: title by docno. figures: PNG file by figure name.
    examples: answers worth reading, each with qid, system, arm and text.
    files: names in the run's folder, which sources link to. pages: each topic's page there by qid.
    language: code of what topics, titles and answers are written in; the report itself is English.
    values: what values.json holds. provenance: facts of the run. stages: stage, seconds, reused.
    """

    run: str
    summary: pd.DataFrame
    contrasts: pd.DataFrame
    study: pd.DataFrame
    per_topic: pd.DataFrame
    traces: pd.DataFrame = field(default_factory=pd.DataFrame)
    answers: pd.DataFrame = field(default_factory=pd.DataFrame)
    stance: pd.DataFrame = field(default_factory=pd.DataFrame)
    grounding_check: pd.DataFrame = field(default_factory=pd.DataFrame)
    threats: pd.DataFrame = field(default_factory=pd.DataFrame)
    no_regret: pd.DataFrame = field(default_factory=pd.DataFrame)
    deploy: pd.DataFrame = field(default_factory=pd.DataFrame)
    sensitivity: pd.DataFrame = field(default_factory=pd.DataFrame)
    stages: pd.DataFrame = field(default_factory=pd.DataFrame)
    topics: Mapping[str, str] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, Path] = field(default_factory=dict)
    files: Collection[str] = frozenset()
    pages: Mapping[str, str] = field(default_factory=dict)
    examples: Sequence[Mapping[str, str]] = ()
    values: Mapping[str, object] = field(default_factory=dict)
    provenance: Mapping[str, str] = field(default_factory=dict)
    limits: Sequence[str] = LIMITS
    rerun: Sequence[str] = RERUN
    question: str = QUESTION
    system: str = "source_aware"
    baseline: str = "similarity"
    arm: str = "plain"
    k: int = 5
    language: str = "en"


def render_report(context: ReportContext) -> str:
    """The page as a string: styles and figures inside, no request to anywhere, all text escaped.

    Raises FileNotFoundError for a figure that is named but not there.
    """
    found = turns(context.sensitivity, context.k)
    return (
        environment()
        .get_template("report.html")
        .render(
            c=context,
            figures={name: _figure(name, path) for name, path in context.figures.items()},
            answer=answer_sentences(context),
            tables=_tables(context),
            resolution=resolution_sentence(context.grounding_check),
            losses=losses(context),
            suppressed=suppressed(context),
            values={name: plain_value(context.values[name]) for name in sorted(context.values)},
            marks_note=tables.MARKS_NOTE,
            turns=found,
            tally=tally(found),
            pages={qid: quote(page) for qid, page in context.pages.items()},
            sources=lambda shown: source_links(shown, context.files),
            value_links=value_links,
            stage_link=stage_link,
        )
    )


def answer_sentences(context: ReportContext) -> list[str]:
    """The answer in three sentences, made from the run's own numbers."""
    c = context
    return [
        wording.ranking_sentence(c.contrasts, c.system, c.k),
        wording.answer_sentence(c.contrasts, c.system, c.arm),
        wording.cost_sentence(c.summary, c.threats, c.system, c.baseline, c.k),
    ]


def losses(context: ReportContext) -> list[dict[str, Any]]:
    """Topics where the system does worse than the baseline, each explained once by its trace."""
    c = context
    changes: dict[str, list[str]] = {}
    wide = c.per_topic.pivot_table(index=["qid", "metric"], columns="system", values="value")
    if not {c.system, c.baseline} <= set(wide.columns):
        return []
    wide = wide[wide.index.get_level_values("metric").isin(_headline(c.k))]
    rows = zip(wide.index, wide[c.baseline], wide[c.system], strict=True)
    for (qid, metric), before, after in rows:
        if tables.outcome(metric, before, after) == "loss":
            change = f"{metric_label(metric)} {tables.number(before)} → {tables.number(after)}"
            changes.setdefault(qid, []).append(change)
    return [_loss(c, qid, changes[qid]) for qid in sorted(changes, key=natural)]


def _headline(k: int) -> list[str]:
    return [f"precision@{k}", f"adv_share@{k}"]


def _loss(c: ReportContext, qid: str, changes: list[str]) -> dict[str, Any]:
    trace = c.traces[c.traces["qid"] == qid] if len(c.traces) else c.traces
    query = c.topics.get(qid, "")
    return {"qid": qid, "query": query, "changes": changes, **wording.why_lost(trace)}


def suppressed(context: ReportContext) -> list[dict[Any, Any]]:
    """Relevant low-tier documents that similarity alone had in its top k and the system lost."""
    if not len(context.traces):
        return []
    t = context.traces
    lost = t["in_top_before"].astype(bool) & ~t["in_top_after"].astype(bool)
    rows = t[lost & (t["label"] > 0) & t["low_tier"].astype(bool)]
    return sorted(rows.to_dict("records"), key=lambda r: (natural(r["qid"]), r["rank_sim"]))


def _tables(c: ReportContext) -> dict[str, pd.DataFrame]:
    """The tables that this run has numbers for."""
    made: dict[str, tuple[pd.DataFrame, Callable[[pd.DataFrame], pd.DataFrame]]] = {
        "study": (c.study, tables.study_table),
        "main": (c.summary, tables.main_table),
        "significance": (c.contrasts, tables.significance_table),
        "answers": (c.answers, tables.answers_table),
        "stance": (c.stance, tables.stance_table),
        "grounding_check": (c.grounding_check, grounding_table),
        "no_regret": (c.no_regret, lambda frame: frame),
        "deploy": (c.deploy, lambda frame: frame),
    }
    done = {name: build(frame) for name, (frame, build) in made.items() if len(frame)}
    if len(c.sensitivity):
        done["conclusion"] = conclusion_table(c.sensitivity, c.k)
    if len(c.per_topic):
        done["per_topic"] = tables.per_topic_table(
            c.per_topic, system=c.system, baseline=c.baseline, names=_headline(c.k)
        )
    return done


def _figure(name: str, path: Path) -> dict[str, Any]:
    data = Path(path).read_bytes()
    width = struct.unpack(">I", data[16:20])[0]
    caption, alt = CAPTIONS.get(name, (name.replace("_", " "), name.replace("_", " ")))
    return {
        "src": trusted(f"data:image/png;base64,{base64.b64encode(data).decode('ascii')}"),
        "width": round(width * 0.64),
        "caption": caption,
        "alt": alt,
    }
