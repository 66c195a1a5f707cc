"""Folders in the BEIR layout: corpus.jsonl, queries.jsonl, qrels/*.tsv."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rag_reliability.datasets.hosts import host_in, type_of_host
from rag_reliability.datasets.lines import json_lines, shown, text_lines
from rag_reliability.datasets.schema import DocumentRow, TopicRow, checked
from rag_reliability.datasets.trec import Judgement, collect_qrels, parse_label
from rag_reliability.records import Document, InputError, Topic

_HEADER = ["query-id", "corpus-id", "score"]
_DOCUMENT_METADATA = ("source_type", "source", "url", "date", "verified", "adversarial", "place")
_TOPIC_METADATA = ("stance", "narrative")


def beir_documents(
    path: Path, default_type: str | None, host_types: Mapping[str, str]
) -> Iterator[tuple[str, Document]]:
    """Documents of a corpus.jsonl as (``file:line``, document).

    Metadata that a document lacks takes the defaults of ``Document``; the source is then the host
    of its url, the source type what ``host_types`` says of that host, else ``default_type``.

    Raises InputError for a malformed row, or a missing source type without a default.
    """
    called = {"docno": "_id"} | {name: f"metadata.{name}" for name in _DOCUMENT_METADATA}
    for where, row in json_lines(path):
        values = _flat(row, where, "docno", "text", _DOCUMENT_METADATA)
        host = host_in(values["url"]) if isinstance(values.get("url"), str) else ""
        if host:
            values.setdefault("source", host)
        if (assumed := type_of_host(host, host_types) or default_type) is not None:
            values.setdefault("source_type", assumed)
        yield where, checked(DocumentRow, values, where, called).document()


def beir_topics(path: Path) -> Iterator[tuple[str, Topic]]:
    """Topics of a queries.jsonl as (``file:line``, topic); metadata may carry the stance."""
    called = {"qid": "_id", "query": "text"} | {n: f"metadata.{n}" for n in _TOPIC_METADATA}
    for where, row in json_lines(path):
        values = _flat(row, where, "qid", "query", _TOPIC_METADATA)
        values.pop("title", None)  # some BEIR sets carry an empty one
        yield where, checked(TopicRow, values, where, called).topic()


def beir_judgements(folder: Path) -> list[Judgement]:
    """Judgements of every .tsv file in a qrels folder, as rows of ``file:line``, qid, docno, label.

    Raises InputError for a missing header, a wrong number of fields or a label outside 0 to 3.
    """
    return [row for path in sorted(folder.glob("*.tsv")) for row in _tsv(path)]


def beir_qrels(rows: list[Judgement], folder: Path) -> dict[str, dict[str, int]]:
    """Judgements as ``qrels[qid][docno]``; a pair judged more than once keeps its highest label.

    Public BEIR sets hold every assessor's row, so repeats are no error here, but a warning counts
    them.
    """
    qrels = collect_qrels(rows, repeats=True)
    if repeated := len(rows) - sum(map(len, qrels.values())):
        message = f"{folder}: {repeated} judgements repeat a pair; its highest label was kept"
        warnings.warn(message, stacklevel=3)
    return qrels


def _tsv(path: Path) -> Iterator[Judgement]:
    lines = text_lines(path)
    where, header = next(lines, (f"{path}:1", ""))
    if header.split() != _HEADER:
        raise InputError(f"{where}: expected the header {' '.join(_HEADER)}, got {shown(header)}")
    for where, text in lines:
        fields = text.split("\t")
        if len(fields) != len(_HEADER):
            raise InputError(f"{where}: expected 3 fields between tabs, got {shown(text)}")
        qid, docno, label = (field.strip() for field in fields)
        yield where, qid, docno, parse_label(label, where)


def _flat(
    row: Mapping[str, Any], where: str, name: str, body: str, known: tuple[str, ...]
) -> dict[str, Any]:
    """One flat row under our field names; metadata that we have no use for is left out."""
    metadata = row.get("metadata", {})
    if not isinstance(metadata, dict):
        raise InputError(f"{where}: field 'metadata' must be an object, got {shown(metadata)}")
    if misplaced := sorted(row.keys() & set(known)):
        raise InputError(f"{where}: field {misplaced[0]!r} belongs into 'metadata'")
    absent = set(known) - metadata.keys()
    for given in sorted(metadata.keys() - set(known)):
        # A foreign field is none of our business; a misspelt one would silently lose a mark.
        if near := difflib.get_close_matches(given, absent, n=1, cutoff=0.85):
            raise InputError(f"{where}: field 'metadata.{given}': did you mean {near[0]!r}?")
    values = {field: metadata[field] for field in known if field in metadata}
    ours = {"_id": name, "text": body, "title": "title"}
    return values | {new: row[old] for old, new in ours.items() if old in row}
