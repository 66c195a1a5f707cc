"""Test collections by the id that ir_datasets knows them by.

S. MacAvaney et al., Simplified Data Wrangling with ir_datasets, SIGIR 2021. That library fetches a
collection into its own cache when its id is asked for; nothing else here does.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Literal

from rag_reliability.datasets.hosts import host_in, type_of_host
from rag_reliability.datasets.lines import shown
from rag_reliability.datasets.read import collect_documents, collect_topics
from rag_reliability.datasets.schema import DocumentRow, TopicRow, checked
from rag_reliability.datasets.topics import QUERY_FIELDS, STANCES
from rag_reliability.datasets.trec import LABELS, Judgement, collect_qrels
from rag_reliability.records import Corpus, Document, InputError, Topic


def read_ir_dataset(
    dataset_id: str,
    *,
    default_type: str | None = None,
    host_types: Mapping[str, str] = MappingProxyType({}),
    documents: Literal["all", "judged"] = "all",
    field: str | None = None,
) -> Corpus:
    """The collection ``dataset_id`` of ir_datasets as a corpus.

    Title, text and url are taken from fields of these names (text: the library's own choice, where
    a document has no ``text``). A document's source is its url's host, its source type what
    ``host_types`` says of that host, else ``default_type``. documents: "judged" takes only those
    with a judgement, so that a collection of millions can be tried. field: where a topic has its
    query (None: the first of ``topics.QUERY_FIELDS`` it has, else the library's choice).

    Public collections are as they are, so what a corpus cannot hold is mended, and warnings count
    it: documents without text and judgements of unknown documents or topics are left out, labels
    below 0 count as 0, above 3 as 3.

    Raises InputError for an unknown id, a collection without documents, a document without source
    type, a value that a corpus cannot hold, or if the library is not installed.
    """
    dataset = _load(dataset_id)
    with _told(dataset_id):
        topics = collect_topics(_topics(dataset, dataset_id, field))
        judged = list(_judgements(dataset, dataset_id))
        wanted = None if documents == "all" else {docno for _, _, docno, _ in judged}
        rows, empty = _documents(dataset, dataset_id, wanted, default_type, host_types)
    kept, places = collect_documents(rows, None, dataset_id)
    qids = {topic.qid for topic in topics}
    known = [row for row in judged if row[1] in qids and row[2] in places]
    outside = sum(label not in LABELS for *_, label in known)
    _warn(dataset_id, empty, len(judged) - len(known), outside)
    clipped = [(at, q, d, min(max(label, LABELS[0]), LABELS[-1])) for at, q, d, label in known]
    return Corpus(dataset_id, kept, topics, collect_qrels(clipped, repeats=True))


def _load(dataset_id: str) -> Any:
    try:
        import ir_datasets
    except ImportError as error:
        raise InputError(
            f"{dataset_id}: needs the library ir-datasets (extra 'ir-datasets')"
        ) from error
    try:
        dataset = ir_datasets.load(dataset_id)
    except KeyError as error:
        raise InputError(f"ir_datasets has no collection {dataset_id!r}") from error
    if not dataset.has_docs():
        raise InputError(f"{dataset_id}: has no documents; name a collection that has them")
    return dataset


@contextmanager
def _told(dataset_id: str) -> Iterator[None]:
    """What the library raises while it fetches or reads, as one line."""
    try:
        yield
    except InputError:
        raise
    except (OSError, RuntimeError, UnicodeError) as error:
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise InputError(f"{dataset_id}: ir_datasets could not read it: {reason}") from error


def _documents(
    dataset: Any,
    name: str,
    wanted: Collection[str] | None,
    default_type: str | None,
    host_types: Mapping[str, str],
) -> tuple[list[tuple[str, Document]], int]:
    """The documents as (where, document), and the number of those without text."""
    rows, empty = [], 0
    for found in dataset.docs_iter():
        if wanted is not None and found.doc_id not in wanted:
            continue
        where = f"{name}: document {shown(found.doc_id)}"
        text = getattr(found, "text", None) or found.default_text()
        if not text.strip():
            empty += 1
            continue
        url = getattr(found, "url", None) or ""
        host = host_in(url)
        values = {"docno": found.doc_id, "text": text, "url": url, "source": host}
        values["title"] = getattr(found, "title", None) or ""
        if (kind := type_of_host(host, host_types) or default_type) is not None:
            values["source_type"] = kind
        rows.append((where, checked(DocumentRow, values, where).document()))
    return rows, empty


def _topics(dataset: Any, name: str, field: str | None) -> Iterator[tuple[str, Topic]]:
    if not dataset.has_queries():
        return
    for found in dataset.queries_iter():
        where = f"{name}: topic {shown(found.query_id)}"
        if field is not None and not hasattr(found, field):
            raise InputError(f"{where}: no field {field!r}; it has {', '.join(found._fields)}")
        names = QUERY_FIELDS if field is None else (field,)
        query = next((q for n in names if (q := getattr(found, n, None))), None)
        stance = getattr(found, "stance", None) or getattr(found, "answer", None)
        values = {
            "qid": found.query_id,
            "query": query or found.default_text(),
            "stance": STANCES.get(str(stance).lower()),
            "narrative": getattr(found, "narrative", None) or "",
        }
        yield where, checked(TopicRow, values, where).topic()


def _judgements(dataset: Any, name: str) -> Iterator[Judgement]:
    if dataset.has_qrels():
        for found in dataset.qrels_iter():
            yield f"{name}: qrels", found.query_id, found.doc_id, int(found.relevance)


def _warn(name: str, empty: int, unknown: int, outside: int) -> None:
    found = {
        "documents without text were left out": empty,
        "judgements of unknown documents or topics were left out": unknown,
        "labels outside 0 to 3 were cut to these": outside,
    }
    for what, n in found.items():
        if n:
            warnings.warn(f"{name}: {n} {what}", stacklevel=3)
