"""What a corpus holds and what in it deserves a second look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from rag_reliability.datasets.facts import DATES, is_date, is_web_address
from rag_reliability.records import Corpus, Document

LONG_TEXT = 2_000
"""Words from which a text counts as very long: encoders and prompts see it in parts."""


@dataclass(frozen=True)
class Summary:
    """Counts and warnings of one corpus.

    by_type: one row per source type; columns documents, adversarial, verified, label_0 … label_3
    (judgements).
    by_topic: tidy judgements; columns qid, source_type, label, n.
    warnings: one line each; none is an error.
    """

    name: str
    n_documents: int
    n_topics: int
    n_judgements: int
    by_type: pd.DataFrame
    by_topic: pd.DataFrame
    warnings: tuple[str, ...]


def summarise(corpus: Corpus) -> Summary:
    """Count a corpus by source type, topic and label, and list what deserves a second look."""
    by_topic = _by_topic(corpus)
    return Summary(
        name=corpus.name,
        n_documents=len(corpus.documents),
        n_topics=len(corpus.topics),
        n_judgements=sum(map(len, corpus.qrels.values())),
        by_type=_by_type(corpus, by_topic),
        by_topic=by_topic,
        warnings=tuple(_warnings(corpus)),
    )


def _by_topic(corpus: Corpus) -> pd.DataFrame:
    counts = Counter(
        (qid, corpus.documents[corpus.docid[docno]].source_type, label)
        for qid, labels in corpus.qrels.items()
        for docno, label in labels.items()
    )
    rows = [(*key, n) for key, n in sorted(counts.items())]
    return pd.DataFrame(rows, columns=["qid", "source_type", "label", "n"])


def _by_type(corpus: Corpus, by_topic: pd.DataFrame) -> pd.DataFrame:
    documents = pd.DataFrame(
        [(d.source_type, 1, d.adversarial, d.verified) for d in corpus.documents],
        columns=["source_type", "documents", "adversarial", "verified"],
    )
    table = documents.groupby("source_type").sum().astype(int)
    judged = by_topic.groupby(["source_type", "label"])["n"].sum()
    for label in range(4):
        chosen = judged[judged.index.get_level_values("label") == label].droplevel("label")
        table[f"label_{label}"] = chosen.reindex(table.index, fill_value=0).astype(int)
    return table.reset_index()


def _warnings(corpus: Corpus) -> Iterator[str]:
    yield from _topic_warnings(corpus)
    documents = corpus.documents
    texts = Counter(" ".join(d.text.split()).casefold() for d in documents)
    twice = [d for d in documents if texts[" ".join(d.text.split()).casefold()] > 1]
    findings = {
        "text shared with another document": twice,
        f"{LONG_TEXT:,} words or more": [d for d in documents if _words(d) >= LONG_TEXT],
        "no date": [d for d in documents if not d.date],
        f"date not {DATES}": [d for d in documents if d.date and not is_date(d.date)],
        "no url": [d for d in documents if not d.url],
        "url not http or https, or without a host": [
            d for d in documents if d.url and not is_web_address(d.url)
        ],
        "no source": [d for d in documents if not d.source],
    }
    for finding, found in findings.items():
        if found:
            yield f"{finding}: {_some([d.docno for d in found])}"


def _topic_warnings(corpus: Corpus) -> Iterator[str]:
    labels = {t.qid: corpus.qrels.get(t.qid, {}).values() for t in corpus.topics}
    if not corpus.topics:
        yield "no topics: the corpus can be searched, but not scored"
        return
    if unjudged := [qid for qid, given in labels.items() if not given]:
        yield f"no judgements: {_some(unjudged, 'topic')}"
    if hopeless := [qid for qid, given in labels.items() if given and not any(given)]:
        yield f"no relevant document: {_some(hopeless, 'topic')}"


def _words(document: Document) -> int:
    return len(document.text.split())


def _some(names: list[str], noun: str = "document", shown: int = 5) -> str:
    """``3 documents (a, b, c)``, naming the first few."""
    rest = ", …" if len(names) > shown else ""
    return f"{len(names):,} {noun}{'s' * (len(names) != 1)} ({', '.join(names[:shown])}{rest})"
