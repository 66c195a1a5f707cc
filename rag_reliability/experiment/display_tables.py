"""What a display is, and the tables of documents that displays are made of; no run is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd

from rag_reliability.records import Corpus, Document
from rag_reliability.reporting.html_tables import corpus_html
from rag_reliability.text import plain


@dataclass(frozen=True, eq=False)
class Display:
    """Something to look at. frame: its numbers. In a notebook it is HTML, elsewhere plain text."""

    frame: pd.DataFrame
    html: Callable[[], str]
    text: str

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        return plain(self.text)


def corpus_display(found: Corpus, order: tuple[str, ...] = ()) -> Display:
    """The same for any corpus; source types in ``order`` come first."""
    frame = corpus_table(found, order)
    facts = [
        ("documents", f"{len(found.documents):,}"),
        ("topics", f"{len(found.topics):,}"),
        ("judgements", f"{sum(map(len, found.qrels.values())):,}"),
    ]
    head = f"{found.name}: " + ", ".join(f"{value} {name}" for name, value in facts)
    text = f"{head}\n{frame.to_string(index=False)}"
    return Display(frame, lambda: corpus_html(frame, found.name, facts), text)


def corpus_table(found: Corpus, order: tuple[str, ...] = ()) -> pd.DataFrame:
    """One row for each source type: source_type, documents, verified, adversarial, labels 0, 1, …

    A label's column counts judgements, and a document may be judged for several topics.
    """
    documents = pd.DataFrame(
        [(d.docno, d.source_type, d.verified, d.adversarial) for d in found.documents],
        columns=["docno", "source_type", "verified", "adversarial"],
    )
    grouped = documents.groupby("source_type")
    frame = grouped[["verified", "adversarial"]].sum().astype(int)
    frame.insert(0, "documents", grouped.size())
    labels = [(n, v) for judged in found.qrels.values() for n, v in judged.items()]
    judged = pd.DataFrame(labels, columns=["docno", "label"]).merge(documents, on="docno")
    counts = judged.groupby(["source_type", "label"]).size().unstack(fill_value=0)
    counts.columns = [int(c) for c in counts.columns]
    kinds = [t for t in order if t in frame.index]
    whole = frame.join(counts).fillna(0).astype(int)
    return whole.reindex([*kinds, *whole.index.difference(kinds)]).reset_index()


def passages_table(
    documents: list[Document], labels: Mapping[str, int] | None = None
) -> pd.DataFrame:
    """Documents as displays take them: docno, title, text, source_type, verified, adversarial.

    labels: relevance by docno; adds the column label, NaN where nobody judged.
    """
    rows = [
        (d.docno, d.title or d.text[:80], d.text, d.source_type, d.verified, d.adversarial)
        for d in documents
    ]
    columns = ["docno", "title", "text", "source_type", "verified", "adversarial"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame if labels is None else frame.assign(label=frame["docno"].map(labels))
