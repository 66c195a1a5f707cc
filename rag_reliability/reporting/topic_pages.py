"""One page a topic: both rankings, the answers sentence by sentence, claims, stance, passages."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from rag_reliability.records import Answer, Document, Topic
from rag_reliability.reporting.pages import environment
from rag_reliability.reporting.sources import source_links
from rag_reliability.reporting.style import ARMS, SYSTEMS, in_order
from rag_reliability.reporting.wording import why_lost

NO_PASSAGES = "no_passages"
_SAFE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
_RESERVED = re.compile(r"con|prn|aux|nul|com\d|lpt\d", re.ASCII)
_MARK = re.compile(r"(\[\s*\d+(?:\s*[,;–-]\s*\d+)*\s*\])")
_DIGITS = re.compile(r"(\d+)", re.ASCII)


@dataclass(frozen=True)
class TopicContext:
    """What one topic's page is made of; empty tables leave a plain note in their place.

    trace: the topic's rows of ``system``'s rank trace, with label and adversarial. documents: by
    docno, at least those shown. labels: judgements by docno. answers: all of this topic's.
    sentences: rows of answers/sentences.csv. metrics: system, arm ("" for ranking), metric, value.
    stance: system, metric, value. files: names in the run's folder, for links to sources. language:
    code of what topic, documents and answers are written in; the page itself is English.
    """

    run: str
    topic: Topic
    k: int
    trace: pd.DataFrame = field(default_factory=pd.DataFrame)
    documents: Mapping[str, Document] = field(default_factory=dict)
    labels: Mapping[str, int] = field(default_factory=dict)
    answers: Sequence[Answer] = ()
    sentences: pd.DataFrame = field(default_factory=pd.DataFrame)
    metrics: pd.DataFrame = field(default_factory=pd.DataFrame)
    stance: pd.DataFrame = field(default_factory=pd.DataFrame)
    files: Collection[str] = frozenset()
    system: str = "source_aware"
    baseline: str = "similarity"
    language: str = "en"


def page_names(qids: Iterable[str]) -> dict[str, str]:
    """A file name for each qid, safe on every file system and distinct where case is ignored.

    ``q001`` is q001.html; what holds other characters, is long, reserved or differs from another
    by case alone gets its readable part and a hash.
    """
    qids = list(qids)
    folded = Counter(qid.casefold() for qid in qids)
    return {qid: f"{_stem(qid, alone=folded[qid.casefold()] == 1)}.html" for qid in qids}


def _stem(qid: str, *, alone: bool) -> str:
    plain = _SAFE.fullmatch(qid.lower()) and not _RESERVED.fullmatch(qid.lower())
    if plain and alone:
        return qid
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", qid, flags=re.ASCII).strip("-_")[:32]
    digest = hashlib.sha256(qid.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{readable or 'topic'}-{digest}"


def render_topic(
    context: TopicContext,
    *,
    previous: tuple[str, str] | None = None,
    following: tuple[str, str] | None = None,
) -> str:
    """The page as a string, self-contained, all text escaped.

    previous, following: (qid, file name) of the neighbouring pages.
    """
    c = context
    shown = passages(c)
    anchors = {docno: f"p{n}" for n, docno in enumerate(shown, start=1)}
    pair, others = answer_pairs(c, anchors)
    return (
        environment()
        .get_template("topic.html")
        .render(
            c=c,
            previous=previous,
            following=following,
            before=ranking(c, "rank_sim", anchors),
            after=ranking(c, "rank_score", anchors),
            exchange=why_lost(c.trace)["sentence"],
            pair=pair,
            others=others,
            numbers=numbers(c),
            stance=stance_rows(c),
            passages=[_passage(c, docno, anchors[docno]) for docno in shown],
            sources=lambda name: source_links(name, c.files, up="../"),
        )
    )


def passages(context: TopicContext) -> list[str]:
    """Docnos shown on the page: the top k of both rankings, then what else answers were shown."""
    c = context
    found: dict[str, None] = {}
    if len(c.trace):
        for column in ("rank_score", "rank_sim"):
            found |= dict.fromkeys(c.trace[c.trace[column] <= c.k].sort_values(column)["docno"])
    for answer in c.answers:
        found |= dict.fromkeys(answer.docnos)
    return [docno for docno in found if docno in c.documents]


def ranking(context: TopicContext, column: str, anchors: Mapping[str, str]) -> list[dict[str, Any]]:
    """The top k by ``column`` (rank_sim or rank_score) of the trace, as rows to show."""
    c = context
    if not len(c.trace):
        return []
    other = "in_top_after" if column == "rank_sim" else "in_top_before"
    top = c.trace[c.trace[column] <= c.k].sort_values(column)
    if column == "rank_score":
        top = top[top["in_top_after"].astype(bool)]
    return [
        {
            **row,
            "rank": row[column],
            "anchor": anchors.get(row["docno"]),
            "document": c.documents.get(row["docno"]),
            "moved": not row[other],
        }
        for row in top.to_dict("records")
    ]


def answer_pairs(
    context: TopicContext, anchors: Mapping[str, str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The answers of baseline and system in the first arm, side by side; and all others."""
    c = context
    arms = in_order((a.arm for a in c.answers if a.system != NO_PASSAGES), ARMS)
    systems = in_order((a.system for a in c.answers), SYSTEMS)
    order = sorted(c.answers, key=lambda a: (a.arm not in arms[:1], systems.index(a.system)))
    first = [(name, arms[0]) for name in (c.baseline, c.system)] if arms else []
    made = [(a, _answer(c, a, anchors)) for a in order]
    pair = [m for key in first for a, m in made if (a.system, a.arm) == key]
    return pair, [m for a, m in made if (a.system, a.arm) not in first]


def _answer(c: TopicContext, answer: Answer, anchors: Mapping[str, str]) -> dict[str, Any]:
    rows = _of(c.sentences, answer)
    links = [anchors.get(docno) for docno in answer.docnos]
    said = [
        {**row, "parts": cited_parts(str(row["sentence"]), links), "best": _best(row, answer)}
        for row in rows.to_dict("records")
    ]
    scores = _of(c.metrics, answer)
    return {
        "system": answer.system,
        "arm": answer.arm,
        "docnos": [(d, anchors.get(d)) for d in answer.docnos],
        "sentences": said,
        "parts": cited_parts(answer.text, links),
        "scores": dict(zip(scores["metric"], scores["value"], strict=True)) if len(scores) else {},
    }


def _of(frame: pd.DataFrame, answer: Answer) -> pd.DataFrame:
    if not len(frame):
        return frame
    return frame[(frame["system"] == answer.system) & (frame["arm"] == answer.arm)]


def _best(row: Mapping[Any, Any], answer: Answer) -> int | None:
    """Number of the passage that supports a sentence best, as the answer's marks count."""
    docno = row.get("docno")
    return answer.docnos.index(docno) + 1 if docno in answer.docnos else None


def cited_parts(text: str, links: Sequence[str | None]) -> list[tuple[str, str | None]]:
    """``text`` in pieces (piece, anchor): each number in a mark like [2] that names a passage."""
    parts: list[tuple[str, str | None]] = []
    for piece in _MARK.split(text):
        inside = _DIGITS.split(piece) if _MARK.fullmatch(piece) else [piece]
        for bit in inside:
            # A number of a thousand digits is no passage, and int() would refuse it.
            n = int(bit) if len(inside) > 1 and bit.isdigit() and len(bit) < 6 else 0
            parts.append((bit, links[n - 1] if 0 < n <= len(links) else None))
    return [part for part in parts if part[0]]


def numbers(context: TopicContext) -> pd.DataFrame:
    """The topic's ranking metrics, metric by system; empty where there are none."""
    frame = context.metrics
    own = frame[frame["arm"] == ""] if len(frame) else frame
    if not len(own):
        return pd.DataFrame()
    order = list(dict.fromkeys(own["metric"]))
    wide = own.pivot_table(index="metric", columns="system", values="value").reindex(order)
    return wide[in_order(wide.columns, SYSTEMS)]


def stance_rows(context: TopicContext) -> list[dict[str, Any]]:
    """What the yes/no probe read under each system: log_odds, stance_shift, stance_error."""
    if not len(context.stance):
        return []
    wide = context.stance.pivot_table(index="system", columns="metric", values="value")
    wide = wide.reindex(in_order(wide.index, SYSTEMS))
    return [{"system": name, **row} for name, row in wide.to_dict("index").items()]


def _passage(c: TopicContext, docno: str, anchor: str) -> dict[str, Any]:
    return {"anchor": anchor, "document": c.documents[docno], "label": c.labels.get(docno)}
