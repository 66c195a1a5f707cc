"""One question's candidates, side by side: any rule ranks them by arithmetic alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from rag_reliability.records import Document, Topic
from rag_reliability.reliability.evidence import Evidence, RobustSettings
from rag_reliability.reliability.rerank import tie_ranks
from rag_reliability.reliability.robust import NEEDS, RULES, ordered


def reads_passages(rule: str) -> bool:
    """Whether a rule needs a model's readings of what passages say."""
    return "stance" in NEEDS.get(rule, ())


QUICK_RULES = tuple(rule for rule in RULES if not reads_passages(rule))
"""Rules that are arithmetic on labels, words and similarities."""
READING_RULES = tuple(rule for rule in RULES if reads_passages(rule))
"""Rules that ask a model once for each passage."""


@dataclass(frozen=True, eq=False)
class Bench:
    """A question and its candidates, by falling similarity (ties by docno).

    documents: (m,). sims: float64 (m,). labels: relevance by docno where judged. topic: None for a
    question of one's own. fields: what else rules may look at, as in ``Evidence`` for one topic.
    """

    query: str
    query_vec: np.ndarray
    documents: tuple[Document, ...]
    sims: np.ndarray
    labels: Mapping[str, int] = field(default_factory=dict)
    topic: Topic | None = None
    fields: Mapping[str, np.ndarray] = field(default_factory=dict)

    @cached_property
    def docnos(self) -> np.ndarray:
        """Names of the candidates, str (m,)."""
        return np.array([d.docno for d in self.documents], dtype=str)


@dataclass(frozen=True)
class Places:
    """Where a rule puts each candidate of a bench; arrays (m,) in its order.

    rank_sim, rank_score: from 1; 0 for documents taken away. score: NaN where the rule gave none.
    inside: within the window that the rule looks at.
    """

    rank_sim: np.ndarray
    rank_score: np.ndarray
    score: np.ndarray
    inside: np.ndarray


def place(
    bench: Bench,
    prior: np.ndarray,
    verified: np.ndarray,
    kept: np.ndarray,
    rule: str,
    settings: RobustSettings,
) -> Places:
    """Rank the ``kept`` candidates (bool (m,)) by a rule; prior float64 and verified bool (m,).

    Raises InputError for an unknown rule, a prior outside (0, 1], or what the bench lacks.
    """
    at = np.flatnonzero(kept)
    chosen = {
        name: values[np.ix_(at, at)] if values.ndim == 2 else values[at]
        for name, values in bench.fields.items()
    }
    evidence = Evidence(
        docids=np.arange(len(at), dtype=np.int64)[None],
        sims=bench.sims[None, at],
        prior=prior[None, at],
        verified=verified[None, at],
        **{name: values[None] for name, values in chosen.items()},
    )
    order, scores = ordered(evidence, rule, tie_ranks(bench.docnos[at]), settings)
    m = len(bench.documents)
    places = Places(np.zeros(m, int), np.zeros(m, int), np.full(m, np.nan), np.zeros(m, bool))
    width = settings.reading if reads_passages(rule) else settings.window
    places.rank_sim[at] = np.arange(1, len(at) + 1)
    places.rank_score[at[order[0]]] = np.arange(1, len(at) + 1)
    places.score[at[order[0]]] = np.where(np.isfinite(scores[0]), scores[0], np.nan)
    places.inside[at] = np.arange(len(at)) < (width or m)
    return places
