"""Ranking a pool by similarity and prior: pure score rules, one total order."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rag_reliability.records import InputError, Pool, Ranking

ScoreRule = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""``(sims, prior) -> scores``, elementwise over arrays of one shape."""


def similarity(sims: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """The similarity itself; the prior is not looked at."""
    return np.array(sims, dtype=np.float64)


def source_aware(sims: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """max(sim, 0) · λ.

    The product alone would promote the less reliable of two documents of negative similarity.
    """
    return np.maximum(sims, 0.0) * prior


RERANKERS: Mapping[str, ScoreRule] = {"similarity": similarity, "source_aware": source_aware}


@dataclass(frozen=True)
class Ranked:
    """A pool in both orders. All arrays are (n_topics, m), in the pool's column order.

    valid: False at padding. inside: within the rank window. prior, scores: of each candidate
    (scores -inf at padding). rank_sim, rank_score: 0-based places; documents outside the window
    come after those inside, by similarity, and padding last.
    """

    valid: np.ndarray
    inside: np.ndarray
    prior: np.ndarray
    scores: np.ndarray
    rank_sim: np.ndarray
    rank_score: np.ndarray


def tie_ranks(docnos: Sequence[str] | np.ndarray, among: np.ndarray | None = None) -> np.ndarray:
    """Place of each document when sorted by docno, int64 (n_docs,): the last key of every order.

    among: docids, -1 ignored; only these are placed, among themselves. Sorting a million names
    takes longer than the search that needs the order of a few hundred.
    """
    names = np.asarray(docnos, dtype=str)
    ranks = np.zeros(len(names), dtype=np.int64)
    docids = np.arange(len(names)) if among is None else np.unique(among[among >= 0])
    ranks[docids[np.argsort(names[docids], kind="stable")]] = np.arange(len(docids))
    return ranks


def check_prior(prior: np.ndarray, n_docs: int, n_topics: int) -> np.ndarray:
    """``prior`` as float64, (n_docs,) or one row for each topic (n_topics, n_docs), in (0, 1].

    Raises: InputError naming the first λ outside (0, 1]; ValueError for another shape.
    """
    values = np.asarray(prior, dtype=np.float64)
    if values.shape not in ((n_docs,), (n_topics, n_docs)):
        raise ValueError(
            f"prior has shape {values.shape}; expected ({n_docs},) or ({n_topics}, {n_docs})"
        )
    bad = ~((values > 0) & (values <= 1))
    if bad.any():
        at = int(np.argwhere(bad)[0][-1])
        raise InputError(f"prior of document {at} is {values[bad][0]}; expected 0 < λ <= 1")
    return values


def rank_pool(
    pool: Pool, prior: np.ndarray, ties: np.ndarray, rule: str, window: int | None = None
) -> Ranked:
    """Both orders of every candidate: by (-sim, docno), and by (-score, docno).

    Where scores tie at zero the more similar stands first, so that lowering a prior never raises
    a document and λ = 1 throughout gives the similarity order. ``ties`` is from ``tie_ranks``.
    """
    if rule not in RERANKERS:
        raise InputError(f"unknown rule {rule!r}; known: {', '.join(RERANKERS)}")
    valid = pool.docids >= 0
    safe = np.where(valid, pool.docids, 0)
    tie = ties[safe]
    own = prior[safe] if prior.ndim == 1 else np.take_along_axis(prior, safe, axis=1)
    sims = np.where(valid, pool.sims, -np.inf)
    scores = np.where(valid, RERANKERS[rule](np.where(valid, sims, 0.0), own), -np.inf)
    rank_sim = _places((tie, -sims, ~valid))
    inside = valid if window is None else valid & (rank_sim < window)
    at_zero = np.where(scores == 0, -sims, 0.0)
    # Outside the window the score does not count: similarity order, after those inside.
    rank_score = _places(
        (
            np.where(inside, tie, rank_sim),
            np.where(inside, at_zero, 0.0),
            np.where(inside, -scores, 0.0),
            ~inside,
        )
    )
    return Ranked(valid, inside, own, scores, rank_sim, rank_score)


def rerank(
    pool: Pool,
    prior: np.ndarray,
    qids: Sequence[str],
    docnos: Sequence[str] | np.ndarray,
    k: int,
    *,
    rule: str = "source_aware",
    window: int | None = None,
) -> Ranking:
    """The ``k`` documents of highest score for each topic, by (-score, docno).

    prior: float64 (n_docs,), or (n_topics, n_docs) where topics have priors of their own.
    docnos: str (n_docs,). window: only this many most similar are scored; None scores the whole
    pool. The pool must reach as deep as max(k, window); the result is then exact for priors that
    are constant within the index's partitions, and for any prior if the pool holds all documents.
    Where a topic has fewer than ``k`` candidates, warns and returns that many for every topic.

    Raises: InputError for an unknown rule, λ outside (0, 1], k < 1, window < k.
    """
    check_sizes(pool, qids, len(docnos), k, window)
    values = check_prior(prior, len(docnos), len(qids))
    ranked = rank_pool(pool, values, tie_ranks(docnos, pool.docids), rule, window)
    kept = kept_of(ranked.inside, k)
    order = np.argsort(ranked.rank_score, axis=1)[:, :kept]
    return Ranking(
        tuple(qids),
        np.take_along_axis(pool.docids, order, axis=1),
        np.take_along_axis(ranked.scores, order, axis=1),
    )


def _places(keys: tuple[np.ndarray, ...]) -> np.ndarray:
    """0-based place of each column in its row; the last key counts first."""
    order = np.lexsort(keys, axis=-1)
    places = np.empty_like(order)
    np.put_along_axis(places, order, np.arange(order.shape[1])[None, :], axis=1)
    return places


def check_sizes(pool: Pool, qids: Sequence[str], n_docs: int, k: int, window: int | None) -> None:
    """Refuse k, a window or a pool that do not fit together.

    Raises: InputError for k < 1 or window < k; ValueError for other numbers of topics or documents.
    """
    if k < 1:
        raise InputError(f"k = {k}; expected a whole number >= 1")
    if window is not None and window < k:
        raise InputError(f"window = {window}; expected at least k = {k}")
    if len(qids) != len(pool.docids):
        raise ValueError(f"{len(qids)} qids for a pool of {len(pool.docids)} topics")
    if pool.docids.size and int(pool.docids.max()) >= n_docs:
        raise ValueError(f"the pool names document {pool.docids.max()} of {n_docs}")


def kept_of(inside: np.ndarray, k: int) -> int:
    """``k``, or with a warning the fewest candidates ``inside`` (n_topics, m) of any topic."""
    counts = inside.sum(axis=1)
    fewest = int(counts.min()) if len(counts) else k
    if fewest < k:
        warnings.warn(
            f"k = {k} but a topic has only {fewest} candidates: {fewest} are kept for every topic",
            stacklevel=3,
        )
    return min(k, fewest)
