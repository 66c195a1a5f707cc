"""Corpora and runs as Arrow tables, and back through the same checks as any other file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pandas as pd
import pyarrow as pa

from rag_reliability.datasets.read import (
    check_judgements,
    collect_documents,
    collect_topics,
    read_corpus,
)
from rag_reliability.datasets.schema import DocumentRow, TopicRow, checked
from rag_reliability.datasets.trec import (
    Judgement,
    collect_qrels,
    parse_label,
    read_run,
    write_qrels,
)
from rag_reliability.datasets.write import write_beir
from rag_reliability.records import Corpus, Document, InputError, Topic

__all__ = [
    "TABLES",
    "corpus_of",
    "corpus_tables",
    "read_corpus",
    "read_run",
    "run_table",
    "write_beir",
    "write_qrels",
]

_CLAIM = pa.struct({"id": pa.string(), "gold": pa.string(), "false": pa.string()})

TABLES: Mapping[str, pa.Schema] = {
    "documents": pa.schema(
        {
            **dict.fromkeys(("docno", "title", "text", "source_type"), pa.string()),
            **dict.fromkeys(("source", "url", "date"), pa.string()),
            **dict.fromkeys(("verified", "adversarial"), pa.bool_()),
            "claims": pa.list_(pa.string()),
        }
    ),
    "topics": pa.schema(
        {
            **dict.fromkeys(("qid", "query", "stance", "narrative"), pa.string()),
            "claims": pa.list_(_CLAIM),
        }
    ),
    "qrels": pa.schema({"qid": pa.string(), "docno": pa.string(), "label": pa.int64()}),
}
"""The three tables of a corpus, fields as in ``documents.jsonl``, ``topics.jsonl``, qrels."""

_RUN = pa.schema(
    {
        "system": pa.string(),
        "qid": pa.string(),
        "docno": pa.string(),
        "rank": pa.int64(),
        "score": pa.float64(),
    }
)


def corpus_tables(corpus: Corpus) -> dict[str, pa.Table]:
    """The corpus as tables ``documents``, ``topics`` and ``qrels``, rows in its own order."""
    rows: dict[str, list[dict[str, Any]]] = {
        "documents": [asdict(d) for d in corpus.documents],
        "topics": [_topic_row(t) for t in corpus.topics],
        "qrels": [
            {"qid": qid, "docno": docno, "label": label}
            for qid, labels in corpus.qrels.items()
            for docno, label in labels.items()
        ],
    }
    return {name: pa.Table.from_pylist(rows[name], schema=TABLES[name]) for name in TABLES}


def corpus_of(rows: Mapping[str, list[dict[str, Any]]], name: str) -> Corpus:
    """A corpus from the rows of its tables; topics and qrels may be missing.

    Fields that are missing or null take the defaults of ``documents.jsonl``. Documents' claims may
    name topics that are not there, as in a BEIR folder.

    Raises: InputError naming table, row and field of the first fault.
    """
    documents, places = collect_documents(_documents(rows.get("documents", []), name), None, name)
    topics = collect_topics(_topics(rows.get("topics", []), name))
    judged = list(_judgements(rows.get("qrels", []), name))
    check_judgements(judged, places, topics, f"{name}: topics")
    return Corpus(name, documents, topics, collect_qrels(judged))


def run_table(runs: Iterable[pd.DataFrame]) -> pa.Table:
    """Runs, each as ``read_run`` gives it, as one table: system, qid, docno, rank, score."""
    rows = [row for run in runs for row in run.to_dict(orient="records")]
    return pa.Table.from_pylist(rows, schema=_RUN)


def _topic_row(topic: Topic) -> dict[str, Any]:
    claims = [{"id": c.claim_id, "gold": c.gold, "false": c.false} for c in topic.claims]
    return {**asdict(topic), "claims": claims}


def _documents(rows: list[dict[str, Any]], name: str) -> Iterator[tuple[str, Document]]:
    for i, row in enumerate(rows):
        where = f"{name}: documents, row {i}"
        yield where, checked(DocumentRow, _given(row), where).document()


def _topics(rows: list[dict[str, Any]], name: str) -> Iterator[tuple[str, Topic]]:
    for i, row in enumerate(rows):
        where = f"{name}: topics, row {i}"
        yield where, checked(TopicRow, _given(row), where).topic()


def _judgements(rows: list[dict[str, Any]], name: str) -> Iterator[Judgement]:
    for i, row in enumerate(rows):
        where = f"{name}: qrels, row {i}"
        if missing := [field for field in TABLES["qrels"].names if row.get(field) is None]:
            raise InputError(f"{where}: field {missing[0]!r} is missing")
        label = parse_label(str(row["label"]), where)
        yield where, str(row["qid"]), str(row["docno"]), label


def _given(row: Mapping[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in row.items() if value is not None}
