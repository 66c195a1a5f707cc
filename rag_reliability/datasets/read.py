"""A folder of documents, topics and qrels, read into one checked ``Corpus``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from rag_reliability.datasets.beir import (
    beir_documents,
    beir_judgements,
    beir_qrels,
    beir_topics,
)
from rag_reliability.datasets.lines import json_lines, shown
from rag_reliability.datasets.schema import CLAIM_SIDES, DocumentRow, TopicRow, checked
from rag_reliability.datasets.trec import Judgement, collect_qrels, qrels_rows
from rag_reliability.records import Corpus, Document, InputError, Topic


def read_corpus(
    path: str | Path,
    *,
    known_types: Collection[str] | None = None,
    known_in: str | Path | None = None,
    unknown_ok: bool = False,
    default_type: str | None = None,
    host_types: Mapping[str, str] = MappingProxyType({}),
) -> Corpus:
    """The corpus in a folder, in our own layout or in BEIR's, told apart by the files it holds.

    Own layout: documents.jsonl and, if there, topics.jsonl and qrels.txt. BEIR: corpus.jsonl and,
    if there, queries.jsonl and qrels/*.tsv (any split). A document of a BEIR folder that states no
    source type gets that of its url's host in ``host_types`` (a host covers those below it, the
    nearest counts), else, in either layout, ``default_type`` (None: an error). Source types must be
    among ``known_types`` (None: any) unless ``unknown_ok``; ``known_in`` is the file of priors to
    name where one is not. Topics without relevant documents are kept; ``check.summarise`` reports
    them.

    Raises InputError, naming file, line, field and what was expected, for the first fault found.
    """
    folder = Path(path)
    known = None if unknown_ok else known_types
    if not _is_beir(folder):
        return _read_own(folder, known, known_in, default_type)
    return _read_beir(folder, known, known_in, default_type, host_types)


def _is_beir(folder: Path) -> bool:
    if not folder.is_dir():
        raise InputError(f"{folder}: expected a folder with documents.jsonl or corpus.jsonl")
    own, beir = (folder / "documents.jsonl").exists(), (folder / "corpus.jsonl").exists()
    if own and beir:
        raise InputError(f"{folder}: holds documents.jsonl and corpus.jsonl; expected one of them")
    if not own and not beir:
        raise InputError(f"{folder}: holds neither documents.jsonl nor corpus.jsonl (BEIR)")
    return beir


def _read_own(
    folder: Path,
    known: Collection[str] | None,
    known_in: str | Path | None,
    default_type: str | None,
) -> Corpus:
    rows = _own_documents(folder / "documents.jsonl", default_type)
    documents, lines = collect_documents(rows, known, folder, known_in)
    topics_path, qrels_path = folder / "topics.jsonl", folder / "qrels.txt"
    topics: tuple[Topic, ...] = ()
    if topics_path.exists():
        topics = collect_topics(_own_topics(topics_path))
        _check_references(documents, lines, topics)
    judged = list(qrels_rows(qrels_path)) if qrels_path.exists() else []
    check_judgements(judged, lines, topics, topics_path)
    return Corpus(folder.resolve().name, documents, topics, collect_qrels(judged))


def _read_beir(
    folder: Path,
    known: Collection[str] | None,
    known_in: str | Path | None,
    default_type: str | None,
    host_types: Mapping[str, str],
) -> Corpus:
    rows = beir_documents(folder / "corpus.jsonl", default_type, host_types)
    documents, lines = collect_documents(rows, known, folder, known_in)
    topics_path, qrels_folder = folder / "queries.jsonl", folder / "qrels"
    topics = collect_topics(beir_topics(topics_path)) if topics_path.exists() else ()
    judged = beir_judgements(qrels_folder)
    check_judgements(judged, lines, topics, topics_path)
    return Corpus(folder.resolve().name, documents, topics, beir_qrels(judged, qrels_folder))


def _own_documents(path: Path, default_type: str | None) -> Iterator[tuple[str, Document]]:
    default = {} if default_type is None else {"source_type": default_type}
    for where, row in json_lines(path):
        yield where, checked(DocumentRow, default | row, where).document()


def _own_topics(path: Path) -> Iterator[tuple[str, Topic]]:
    for where, row in json_lines(path):
        yield where, checked(TopicRow, row, where).topic()


def collect_documents(
    rows: Iterable[tuple[str, Document]],
    known: Collection[str] | None,
    folder: Path | str,
    known_in: str | Path | None = None,
) -> tuple[tuple[Document, ...], dict[str, str]]:
    """The documents, and ``file:line`` of each docno.

    Raises InputError for a docno that stands twice, a source type not in ``known``, no documents.
    """
    lines: dict[str, str] = {}
    documents = []
    for where, document in rows:
        _note(lines, document.docno, where, "docno")
        if known is not None and document.source_type not in known:
            unknown, expected = shown(document.source_type), ", ".join(sorted(known))
            mend = f"; to add it, give it a prior in each spread of {known_in}" if known_in else ""
            raise InputError(
                f"{where}: field 'source_type': unknown {unknown}; known: {expected}{mend}"
            )
        documents.append(document)
    if not documents:
        raise InputError(f"{folder}: the corpus holds no documents")
    return tuple(documents), lines


def collect_topics(rows: Iterable[tuple[str, Topic]]) -> tuple[Topic, ...]:
    """The topics of rows (``file:line``, topic).

    Raises InputError for a qid or claim id that stands twice, or a claim without a contrast.
    """
    qids: dict[str, str] = {}
    claim_ids: dict[str, str] = {}
    topics = []
    for where, topic in rows:
        _note(qids, topic.qid, where, "qid")
        for claim in topic.claims:
            _note(claim_ids, claim.claim_id, where, "claim id")
            if claim.gold.strip() == claim.false.strip():
                raise InputError(f"{where}: claim {claim.claim_id!r}: gold and false are the same")
        topics.append(topic)
    return tuple(topics)


def _note(lines: dict[str, str], name: str, where: str, field: str) -> None:
    if name in lines:
        raise InputError(f"{where}: duplicate {field} {name!r}, first at {lines[name]}")
    lines[name] = where


def _check_references(
    documents: Iterable[Document], lines: Mapping[str, str], topics: Iterable[Topic]
) -> None:
    known = {f"{c.claim_id}:{side}" for t in topics for c in t.claims for side in CLAIM_SIDES}
    for document in documents:
        if unknown := [c for c in document.claims if c not in known]:
            problem = f"field 'claims': {shown(unknown[0])} is no claim of topics.jsonl"
            raise InputError(f"{lines[document.docno]}: {problem}")


def check_judgements(
    judged: Iterable[Judgement],
    docnos: Collection[str],
    topics: Iterable[Topic],
    topics_path: Path | str,
) -> None:
    """Raise InputError for a judgement of a topic or a document that is not there."""
    qids = {t.qid for t in topics}
    for where, qid, docno, _ in judged:
        if qid not in qids:
            raise InputError(f"{where}: topic {shown(qid)} is not in {topics_path}")
        if docno not in docnos:
            raise InputError(f"{where}: document {shown(docno)} is not in the corpus")
