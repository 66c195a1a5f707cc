"""Topic files as tracks give them out: TREC's tagged text or XML, tab-separated, JSON Lines."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from rag_reliability.datasets.beir import beir_topics
from rag_reliability.datasets.lines import json_lines, shown, text_lines
from rag_reliability.datasets.read import check_judgements, collect_topics, read_corpus
from rag_reliability.datasets.schema import TopicRow, checked
from rag_reliability.datasets.trec import collect_qrels, qrels_rows
from rag_reliability.records import Corpus, InputError, Topic

QUERY_FIELDS = ("question", "description", "desc", "query", "title")
"""Where a topic's query is looked for, the fullest form first."""
STANCES = {"helpful": "yes", "unhelpful": "no", "yes": "yes", "no": "no"}
"""What the Health Misinformation tracks call a yes/no topic's true answer."""

Row = tuple[str, Topic]
"""(``file:line``, topic)."""

_TOPIC = re.compile(r"<(top|topic)\b([^>]*)>(.*?)</\1\s*>", re.DOTALL | re.IGNORECASE)
_FIELD = re.compile(r"<(\w+)[^>]*>([^<]*)")
_NUMBER = re.compile(r"\bnumber\s*=\s*[\"']([^\"']*)[\"']", re.IGNORECASE)
# Old TREC files repeat a field's name in words: "<num> Number: 301", "<desc> Description:".
_CAPTION = re.compile(r"\s*(?:number|topic|description|narrative)\s*:", re.IGNORECASE)


def topic_rows(path: Path, field: str | None = None) -> Iterator[Row]:
    """Topics of a file as (``file:line``, topic), its format told by what it holds.

    - ``<top>`` or ``<topic>`` elements, XML or the older tags without ends. Number: attribute
      ``number``, or field ``number`` or ``num``. Stance: field ``stance`` (helpful, unhelpful) or
      ``answer`` (yes, no) of the Health Misinformation tracks, anything else being no stance.
    - Lines of JSON in BEIR's or our own layout.
    - Lines of qid, tab, query.

    field: where tagged topics have their query (None: the first of ``QUERY_FIELDS`` they hold).

    Raises InputError, naming file and line, for a topic without number or query or a malformed row.
    """
    first = next((text.lstrip() for _, text in text_lines(path)), "")
    if first.startswith("<"):
        yield from _tagged(path, field)
    elif first.startswith("{"):
        yield from _json(path)
    else:
        yield from _tabbed(path)


def read_topics(path: str | Path, field: str | None = None) -> tuple[Topic, ...]:
    """The topics of a file in any format that ``topic_rows`` knows; no qid twice.

    Raises InputError, naming file and line, for the first fault found.
    """
    return collect_topics(topic_rows(Path(path), field))


def read_trec(
    documents: str | Path,
    topics: str | Path,
    qrels: str | Path,
    *,
    default_type: str | None = None,
    field: str | None = None,
) -> Corpus:
    """A corpus from a track's own files: topics and qrels next to a folder of documents.

    documents: a folder in our own or in BEIR's layout, whose own topics and qrels do not count.
    default_type as in ``read_corpus``, field as in ``topic_rows``.

    Raises InputError, naming file and line, for the first fault found.
    """
    corpus = read_corpus(documents, default_type=default_type)
    found = read_topics(topics, field)
    judged = list(qrels_rows(Path(qrels)))
    check_judgements(judged, corpus.docid, found, Path(topics))
    return replace(corpus, topics=found, qrels=collect_qrels(judged))


def _tagged(path: Path, field: str | None) -> Iterator[Row]:
    lines = list(text_lines(path))
    text = "\n".join(line for _, line in lines)
    found = False
    for match in _TOPIC.finditer(text):
        where = lines[text.count("\n", 0, match.start())][0]
        yield where, _topic(match[2], match[3], where, field)
        found = True
    if not found:
        raise InputError(f"{path}: holds no <top> or <topic> element that is closed")


def _topic(attributes: str, body: str, where: str, field: str | None) -> Topic:
    fields: dict[str, str] = {}
    for name, value in _FIELD.findall(body):
        fields.setdefault(name.lower(), _cleaned(value))
    number = _NUMBER.search(attributes)
    qid = number[1].strip() if number else fields.get("number") or fields.get("num")
    wanted = QUERY_FIELDS if field is None else (field.lower(),)
    query = next((fields[name] for name in wanted if fields.get(name)), None)
    for value, what in ((qid, "number"), (query, " or ".join(wanted))):
        if not value:
            held = ", ".join(fields) or "no fields"
            raise InputError(f"{where}: topic without {what}; it holds {held}")
    stance = STANCES.get((fields.get("stance") or fields.get("answer") or "").lower())
    narrative = fields.get("narrative") or fields.get("narr") or ""
    values = {"qid": qid, "query": query, "stance": stance, "narrative": narrative}
    return checked(TopicRow, values, where).topic()


def _cleaned(text: str) -> str:
    return " ".join(html.unescape(_CAPTION.sub("", text, count=1)).split())


def _json(path: Path) -> Iterator[Row]:
    _, first = next(json_lines(path))
    if "_id" in first:
        yield from beir_topics(path)
        return
    for where, row in json_lines(path):
        yield where, checked(TopicRow, row, where).topic()


def _tabbed(path: Path) -> Iterator[Row]:
    for where, text in text_lines(path):
        qid, tab, query = text.partition("\t")
        if not tab:
            raise InputError(f"{where}: expected a qid, a tab and a query, got {shown(text)}")
        values: Mapping[str, str] = {"qid": qid.strip(), "query": query.strip()}
        yield where, checked(TopicRow, values, where).topic()
