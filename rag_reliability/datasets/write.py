"""Corpora written so that reading them back gives the same."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rag_reliability.artefacts import atomic_write_text
from rag_reliability.datasets.schema import DocumentRow, TopicRow, checked
from rag_reliability.datasets.trec import qrels_text
from rag_reliability.records import Corpus, Document, InputError, Topic

# JSON may hold these raw, but other tools end a line at them.
_LINE_ENDS = {ord(c): f"\\u{ord(c):04x}" for c in "\x85\u2028\u2029"}


def write_corpus(corpus: Corpus, path: str | Path) -> None:
    """Write documents.jsonl, topics.jsonl and qrels.txt into the folder ``path``.

    ``read_corpus(path)`` gives back the same documents, topics and qrels, whatever they hold.

    Raises InputError for a value that could not be read back, before anything is written.
    """
    folder = Path(path)
    documents = _lines(_document_row(d) for d in corpus.documents)
    topics = _lines(_topic_row(t) for t in corpus.topics)
    qrels = qrels_text(corpus.qrels)
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write_text(folder / "documents.jsonl", documents)
    atomic_write_text(folder / "topics.jsonl", topics)
    atomic_write_text(folder / "qrels.txt", qrels)


def write_beir(corpus: Corpus, path: str | Path) -> None:
    """Write corpus.jsonl, queries.jsonl and qrels/test.tsv into the folder ``path`` (BEIR layout).

    What BEIR has no field for stands in ``metadata``, so ``read_corpus(path)`` gives back the same
    documents, topics and judgements; only claims have no place there, and a warning counts them.

    Raises InputError for a value that could not be read back, or a folder that holds other qrels or
    a corpus in our own layout, before anything is written.
    """
    folder = Path(path)
    others = {p.name for p in (folder / "qrels").glob("*.tsv")} - {"test.tsv"}
    if (folder / "documents.jsonl").exists():
        others.add("documents.jsonl")
    if others:
        raise InputError(f"{folder}: holds {sorted(others)[0]}; expected a folder of its own")
    documents = _lines(_beir_document(d) for d in corpus.documents)
    topics = _lines(_beir_topic(t) for t in corpus.topics)
    rows = (line.split() for line in qrels_text(corpus.qrels).splitlines())
    qrels = "".join(f"{qid}\t{docno}\t{label}\n" for qid, _, docno, label in rows)
    if lost := sum(len(t.claims) for t in corpus.topics):
        warnings.warn(f"{folder}: the BEIR layout has no place for {lost} claims", stacklevel=2)
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    atomic_write_text(folder / "corpus.jsonl", documents)
    atomic_write_text(folder / "queries.jsonl", topics)
    atomic_write_text(folder / "qrels" / "test.tsv", f"query-id\tcorpus-id\tscore\n{qrels}")


def _beir_document(document: Document) -> dict[str, Any]:
    row = _document_row(document)
    del row["claims"]
    body = {"_id": row.pop("docno"), "title": row.pop("title"), "text": row.pop("text")}
    return body | {"metadata": row}


def _beir_topic(topic: Topic) -> dict[str, Any]:
    row = _topic_row(topic)
    del row["claims"]
    body = {"_id": row.pop("qid"), "text": row.pop("query")}
    return body | {"metadata": {name: value for name, value in row.items() if value}}


def _document_row(document: Document) -> dict[str, Any]:
    row = {**asdict(document), "claims": list(document.claims)}
    written = checked(DocumentRow, row, f"document {document.docno!r}").model_dump()
    return written if written["place"] else {k: v for k, v in written.items() if k != "place"}


def _topic_row(topic: Topic) -> dict[str, Any]:
    claims = [{"id": c.claim_id, "gold": c.gold, "false": c.false} for c in topic.claims]
    row = {**asdict(topic), "claims": claims}
    return checked(TopicRow, row, f"topic {topic.qid!r}").model_dump()


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(f"{_json_line(row)}\n" for row in rows)


def _json_line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, allow_nan=False).translate(_LINE_ENDS)
