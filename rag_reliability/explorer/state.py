"""What the explorer shows, as a value: settings and what-if edits in, a ranking out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rag_reliability.experiment.bench import Bench, Places, RobustSettings, place
from rag_reliability.explorer.reasons import reasons
from rag_reliability.records import Document, InputError

Priors = Callable[[Sequence[Document], Mapping[str, float]], np.ndarray]
"""``(documents, table) -> λ`` of each, float64 (m,)."""


@dataclass(frozen=True)
class State:
    """Settings and edits. table: λ by source type. window: None for none.

    types, verified: what edited documents declare, by docno. removed: docnos taken away.
    """

    table: Mapping[str, float]
    k: int = 5
    window: int | None = None
    rule: str = "source_aware"
    types: Mapping[str, str] = field(default_factory=dict)
    verified: Mapping[str, bool] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()

    @property
    def edited(self) -> bool:
        """Whether anything was changed from what the corpus says."""
        return bool(self.types or self.verified or self.removed)


def with_prior(state: State, source_type: str, prior: float) -> State:
    """λ of one source type set. Raises InputError outside (0, 1]."""
    if not 0 < prior <= 1:
        raise InputError(f"λ of {source_type} is {prior}; expected 0 < λ <= 1")
    return replace(state, table={**state.table, source_type: prior})


def spoofed(state: State, document: Document, source_type: str) -> State:
    """The document declares another type; its own type again undoes it."""
    types = {k: v for k, v in state.types.items() if k != document.docno}
    if source_type != document.source_type:
        types[document.docno] = source_type
    return replace(state, types=types)


def flipped(state: State, document: Document) -> State:
    """The document's source counts as checked if it did not, and the other way round."""
    verified = dict(state.verified)
    if document.docno in verified:
        del verified[document.docno]
    else:
        verified[document.docno] = not document.verified
    return replace(state, verified=verified)


def without(state: State, docno: str) -> State:
    """The document is taken out of the corpus."""
    return replace(state, removed=state.removed | {docno})


def reset(state: State) -> State:
    """The same settings, and every document as the corpus has it."""
    return replace(state, types={}, verified={}, removed=frozenset())


def as_edited(state: State, document: Document) -> Document:
    """The document as the rules are to see it."""
    if document.docno not in state.types and document.docno not in state.verified:
        return document
    return replace(
        document,
        source_type=state.types.get(document.docno, document.source_type),
        verified=state.verified.get(document.docno, document.verified),
    )


Row = dict[str, Any]
"""One candidate of a ranking, by column."""


def ranking(bench: Bench, state: State, priors: Priors) -> list[Row]:
    """Every candidate by ``rank_score``: the columns of a rank trace, and what was edited.

    Keys: docno, title, source, source_type (as declared now), verified, adversarial, label (None
    where nobody judged), sim, prior, score (NaN: none), rank_sim, rank_score, inside,
    in_top_before, in_top_after, edited (words, empty for none), why. Documents taken away are not
    there. Plain rows, since a table of pandas costs more than the ranking; ``pd.DataFrame(rows)``
    is one.

    Raises InputError for what the rule needs and the bench lacks.
    """
    documents = [as_edited(state, d) for d in bench.documents]
    prior = priors(documents, state.table)
    verified = np.array([d.verified for d in documents], dtype=bool)
    kept = np.array([d.docno not in state.removed for d in documents], dtype=bool)
    window = None if state.window is None else max(state.window, state.k)
    settings = RobustSettings(k=state.k, window=window, lowest=min(state.table.values()))
    places = place(bench, prior, verified, kept, state.rule, settings)
    rows = _rows(bench, documents, prior, places, state.k)
    for row, document, there in zip(rows, bench.documents, kept.tolist(), strict=True):
        row["edited"] = _edits(state, document) if there else ""
    rows = sorted((r for r in rows if r["rank_score"]), key=lambda r: r["rank_score"])
    for row, why in zip(rows, reasons(rows, state.k, state.rule), strict=True):
        row["why"] = why
    return rows


def top(rows: list[Row], by: str, k: int) -> list[str]:
    """The first ``k`` docnos by ``rank_sim`` or ``rank_score``, in order."""
    return [row["docno"] for row in sorted(rows, key=lambda r: r[by])[:k]]


def _rows(
    bench: Bench, documents: list[Document], prior: np.ndarray, places: Places, k: int
) -> list[Row]:
    columns = zip(
        documents, bench.sims.tolist(), prior.tolist(), places.score.tolist(),
        places.rank_sim.tolist(), places.rank_score.tolist(), places.inside.tolist(),
        strict=True,
    )  # fmt: skip
    return [
        {
            "docno": d.docno,
            "title": d.title or d.text[:80],
            "source": d.source or d.url,
            "source_type": d.source_type,
            "verified": d.verified,
            "adversarial": d.adversarial,
            "label": bench.labels.get(d.docno),
            "sim": sim,
            "prior": own,
            "score": score,
            "rank_sim": before,
            "rank_score": after,
            "inside": inside,
            "in_top_before": before <= k,
            "in_top_after": after <= k,
        }
        for d, sim, own, score, before, after, inside in columns
    ]


def _edits(state: State, document: Document) -> str:
    words = []
    if document.docno in state.types:
        words.append(f"label spoofed, was {document.source_type.replace('_', ' ')}")
    if document.docno in state.verified:
        words.append("verification flipped")
    if document.docno.startswith(MINE):
        words.append("your text")
    return "; ".join(words)


MINE = "mine-"
"""How the docnos of texts of one's own begin."""


def own_document(
    bench: Bench, title: str, text: str, source_type: str, verified: bool = False
) -> Document:
    """A document of one's own, named so that no other bears its name.

    Raises InputError for an empty text.
    """
    if not text.strip():
        raise InputError("your text is empty; write a passage first")
    taken = set(bench.docnos.tolist())
    docno = next(f"{MINE}{n}" for n in range(1, len(taken) + 2) if f"{MINE}{n}" not in taken)
    return Document(docno, title.strip(), text.strip(), source_type, "you", verified=verified)
