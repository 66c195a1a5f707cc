"""The ranking metrics on arrays of docids: evaluation/ranking.py's definitions, a sweep at a time.

A sweep ranks the same topics tens of thousands of times; here each metric is a few array
operations over all those rankings. A test holds the values equal to ``evaluation.ranking``'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rag_reliability.records import Corpus

NAMES = (
    "precision",
    "ndcg",
    "mrr",
    "adv_share",
    "adv_hit",
    "low_tier_share",
    "low_tier_true_share",
    "suppressed_true",
)


@dataclass(frozen=True)
class Marks:
    """What the metrics must know of documents and topics.

    adversarial, low_tier: bool (n_docs,), low tier by the *true* type. keys: int64, ascending,
    row of topic · n_docs + docid of every judged pair; labels: int64, its label. ideal: int64
    (n_topics, depth), each topic's labels, best first, 0 where it has fewer.
    """

    adversarial: np.ndarray
    low_tier: np.ndarray
    keys: np.ndarray
    labels: np.ndarray
    ideal: np.ndarray


def marks_of(corpus: Corpus, qids: Sequence[str], low_tier: np.ndarray, depth: int) -> Marks:
    """Marks for ``qids`` (the rows of topics) and metrics down to ``depth``."""
    n_docs = len(corpus.documents)
    pairs = [
        (row * n_docs + corpus.docid[docno], label)
        for row, qid in enumerate(qids)
        for docno, label in corpus.qrels.get(qid, {}).items()
    ]
    keys, labels = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2).T
    ideal = np.zeros((len(qids), depth), dtype=np.int64)
    for row, qid in enumerate(qids):
        best = sorted(corpus.qrels.get(qid, {}).values(), reverse=True)[:depth]
        ideal[row, : len(best)] = best
    return Marks(corpus.adversarial, np.asarray(low_tier, dtype=bool), keys, labels, ideal)


def labels_at(marks: Marks, topics: np.ndarray, docids: np.ndarray) -> np.ndarray:
    """Label of each document for its row's topic, int64 (n, k); 0 where not judged or padding."""
    if not len(marks.keys):
        return np.zeros(docids.shape, dtype=np.int64)
    wanted = topics[:, None] * len(marks.adversarial) + docids
    at = np.minimum(np.searchsorted(marks.keys, wanted), len(marks.keys) - 1)
    return np.where((marks.keys[at] == wanted) & (docids >= 0), marks.labels[at], 0)


def top_metrics(
    marks: Marks, topics: np.ndarray, top: np.ndarray, baseline: np.ndarray
) -> dict[str, np.ndarray]:
    """Each metric of ``NAMES`` for each ranking, float64 (n,); NaN where it has no value.

    topics: int64 (n,), each ranking's row of topic. top: int64 (n, k) docids best first, -1 where
    fewer than k were returned; baseline: the same of similarity alone. k is the cutoff of every
    metric. low_tier_true_share is the share of the documents returned that are low-tier and
    relevant; suppressed_true has no value where the baseline had no such document.
    """
    labels, shown = labels_at(marks, topics, top), top >= 0
    safe = np.where(shown, top, 0)
    low = marks.low_tier[safe] & shown
    relevant, k = labels > 0, top.shape[1]
    returned = np.maximum(shown.sum(axis=1), 1)
    adv_share = (marks.adversarial[safe] & shown).sum(axis=1) / returned
    return {
        "precision": relevant.sum(axis=1) / k,
        "ndcg": _ndcg(labels, marks.ideal[topics, :k]),
        "mrr": np.where(relevant.any(axis=1), 1 / (1 + relevant.argmax(axis=1)), 0.0),
        "adv_share": adv_share,
        "adv_hit": (adv_share > 0).astype(np.float64),
        "low_tier_share": low.sum(axis=1) / returned,
        "low_tier_true_share": (low & relevant).sum(axis=1) / returned,
        "suppressed_true": _suppressed(marks, topics, top, baseline),
    }


def _ndcg(labels: np.ndarray, ideal: np.ndarray) -> np.ndarray:
    discount = 1 / np.log2(np.arange(2, labels.shape[1] + 2))
    best = ideal @ discount[: ideal.shape[1]]
    return np.divide(labels @ discount, best, out=np.zeros(len(labels)), where=best > 0)


def _suppressed(
    marks: Marks, topics: np.ndarray, top: np.ndarray, baseline: np.ndarray
) -> np.ndarray:
    had = (baseline >= 0) & (labels_at(marks, topics, baseline) > 0)
    had &= marks.low_tier[np.where(baseline >= 0, baseline, 0)]
    kept = (baseline[:, :, None] == top[:, None, :]).any(axis=2)
    of, lost = had.sum(axis=1), (had & ~kept).sum(axis=1)
    return np.divide(lost, of, out=np.full(len(of), np.nan), where=of > 0)
