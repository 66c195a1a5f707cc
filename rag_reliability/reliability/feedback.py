"""Post-query prior updates from a simulated oracle.

The oracle knows the labels of the documents shown. No deployment has it: a real system sees clicks
or ratings, which are noisy, biased by rank and open to manipulation. What is learned here is an
upper bound on what such an update can do, and is reported only on topics it did not learn from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from rag_reliability.records import InputError, Pool, Qrels
from rag_reliability.reliability.learning import topic_folds
from rag_reliability.reliability.priors import prior_vector
from rag_reliability.reliability.rerank import rank_pool, tie_ranks


@dataclass(frozen=True)
class FeedbackSettings:
    """How priors are learned.

    rate: η in (0, 1]. epochs: passes over the topics. k: documents shown. window: rank window
    (None: whole pool). floor: least prior. seed: of the topics' order.
    """

    rate: float = 0.2
    epochs: int = 3
    k: int = 5
    window: int | None = None
    floor: float = 0.05
    seed: int = 7

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise InputError(f"feedback rate = {self.rate}; expected 0 < rate <= 1")
        if not 0 < self.floor <= 1:
            raise InputError(f"feedback floor = {self.floor}; expected 0 < floor <= 1")
        if self.epochs < 1 or self.k < 1:
            raise InputError(f"epochs = {self.epochs}, k = {self.k}; expected at least 1")
        if self.window is not None and self.window < self.k:
            raise InputError(f"window = {self.window}; expected at least k = {self.k}")


@dataclass(frozen=True)
class Oracle:
    """Simulated user: says of each shown document whether it was useful (label >= 1).

    Unjudged documents count as not useful; a topic that ``qrels`` lacks gets no feedback at all.
    """

    qids: tuple[str, ...]
    docnos: np.ndarray
    source_types: np.ndarray
    useful: Mapping[int, np.ndarray] = field(repr=False)

    @classmethod
    def from_qrels(
        cls,
        qids: Sequence[str],
        docnos: Sequence[str] | np.ndarray,
        source_types: Sequence[str] | np.ndarray,
        qrels: Qrels,
    ) -> Oracle:
        """Oracle over topics ``qids`` (the pool's rows) and documents (n_docs,)."""
        row = {str(docno): i for i, docno in enumerate(docnos)}
        useful = {
            t: np.array(
                [row[docno] for docno, label in qrels[qid].items() if label >= 1], dtype=np.int64
            )
            for t, qid in enumerate(qids)
            if qid in qrels
        }
        return cls(tuple(qids), np.asarray(docnos), np.asarray(source_types, dtype=str), useful)


@dataclass(frozen=True)
class CrossFitted:
    """Priors for each topic, learned without it.

    tables: λ by source type, one table for each topic. fold: int64 (n_topics,).
    trajectory: columns fold, step, epoch, qid, source_type, prior.
    """

    tables: tuple[Mapping[str, float], ...]
    fold: np.ndarray
    trajectory: pd.DataFrame


def updated(
    table: Mapping[str, float],
    shown_types: Sequence[str] | np.ndarray,
    useful: Sequence[bool] | np.ndarray,
    rate: float,
    floor: float = 0.05,
) -> dict[str, float]:
    """λ_t ← clip((1 - η) λ_t + η · useful share of t, floor, 1) for each type t shown.

    shown_types, useful: (k,), of the documents shown. Types not shown keep their prior.
    """
    types, good = np.asarray(shown_types), np.asarray(useful, dtype=float)
    new = dict(table)
    for kind in np.unique(types).tolist():
        value = (1 - rate) * table[kind] + rate * float(good[types == kind].mean())
        new[kind] = float(np.clip(value, floor, 1.0))
    return new


def learn_priors(
    pool: Pool,
    table: Mapping[str, float],
    oracle: Oracle,
    settings: FeedbackSettings,
    topics: Sequence[int] | np.ndarray | None = None,
) -> tuple[dict[str, float], pd.DataFrame]:
    """Priors after feedback on ``topics`` (rows of the pool; None: all), and their trajectory.

    Each topic's top k is ranked with the priors so far, shown, and followed by one ``updated``; the
    order of topics is drawn anew for each epoch. Trajectory: columns step, epoch, qid,
    source_type, prior, all types at every step; step 0 is the start (epoch 0, qid "").

    Raises: InputError for a source type that ``table`` lacks.
    """
    chosen = np.arange(len(oracle.qids)) if topics is None else np.asarray(topics, dtype=np.int64)
    prior_vector(table, oracle.source_types)  # refuses unknown types before any step
    kinds, codes = np.unique(oracle.source_types, return_inverse=True)
    rng, ties = np.random.default_rng(settings.seed), tie_ranks(oracle.docnos)
    current = {kind: float(value) for kind, value in table.items()}
    steps: list[tuple[int, str, dict[str, float]]] = [(0, "", current)]
    for epoch in range(1, settings.epochs + 1):
        for t in rng.permutation(chosen).tolist():
            if t in oracle.useful:
                prior = np.array([current[kind] for kind in kinds.tolist()])[codes]
                shown = _shown(pool, prior, ties, settings, t)
                useful = np.isin(shown, oracle.useful[t])
                types = oracle.source_types[shown]
                current = updated(current, types, useful, settings.rate, settings.floor)
                steps.append((epoch, oracle.qids[t], current))
    return current, _trajectory(steps)


def cross_fitted(
    pool: Pool,
    table: Mapping[str, float],
    oracle: Oracle,
    settings: FeedbackSettings,
    folds: int,
) -> CrossFitted:
    """Priors for each topic learned on the other folds' topics only, each fold from ``table`` anew.

    Folds are drawn by the settings' seed and never look at labels, so a topic's own labels cannot
    change its own ranking.

    Raises: InputError for folds < 2 or more folds than topics, or as ``learn_priors``.
    """
    n = len(oracle.qids)
    fold = topic_folds(n, folds, settings.seed)
    learned, trajectories = [], []
    for held_out in range(folds):
        result, trajectory = learn_priors(
            pool, table, oracle, settings, np.flatnonzero(fold != held_out)
        )
        learned.append(result)
        trajectories.append(trajectory.assign(fold=held_out))
    together = pd.concat(trajectories, ignore_index=True)
    columns = ["fold", *together.columns.drop("fold")]
    return CrossFitted(tuple(learned[f] for f in fold.tolist()), fold, together[columns])


def prior_rows(
    tables: Sequence[Mapping[str, float]], source_types: Sequence[str] | np.ndarray
) -> np.ndarray:
    """Priors of each topic's own table, float64 (n_topics, n_docs), as ``rerank`` takes them."""
    return np.stack([prior_vector(table, source_types) for table in tables])


def _shown(
    pool: Pool, prior: np.ndarray, ties: np.ndarray, settings: FeedbackSettings, t: int
) -> np.ndarray:
    """Docids of topic ``t``'s top k under ``prior``."""
    row = Pool(pool.docids[t : t + 1], pool.sims[t : t + 1])
    ranked = rank_pool(row, prior, ties, "source_aware", settings.window)
    return row.docids[0][(ranked.rank_score[0] < settings.k) & ranked.inside[0]]


def _trajectory(steps: list[tuple[int, str, dict[str, float]]]) -> pd.DataFrame:
    rows = [
        (step, epoch, qid, kind, prior)
        for step, (epoch, qid, table) in enumerate(steps)
        for kind, prior in table.items()
    ]
    return pd.DataFrame(rows, columns=["step", "epoch", "qid", "source_type", "prior"])
