"""What adversaries declare in every draw, and which rankings that changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rag_reliability.experiment.study import Study
from rag_reliability.records import Corpus
from rag_reliability.reliability.priors import effective_types, prior_vector
from rag_reliability.reliability.threats import spoof_labels


@dataclass(frozen=True)
class States:
    """One draw a row: what each adversarial document declares in it.

    spoof, leak: float64 (n_states,); seed: int64 (n_states,). adversaries: int64 (n_adv,), docids.
    prior: float64 (n_states, n_adv), λ of the type each declares. verified: bool, the same shape.
    """

    spoof: np.ndarray
    leak: np.ndarray
    seed: np.ndarray
    adversaries: np.ndarray
    prior: np.ndarray
    verified: np.ndarray


@dataclass(frozen=True)
class Rows:
    """The distinct rankings among all draws: most labels that change stand in no topic's pool.

    topic, state: int64 (n_rows,), a topic and the first draw that gives this ranking. of: int64
    (n_states, n_topics), the row in which each draw's ranking of each topic is found.
    """

    topic: np.ndarray
    state: np.ndarray
    of: np.ndarray


def declared_prior(study: Study, corpus: Corpus) -> np.ndarray:
    """λ of the type that each document of ``corpus`` declares, (n_docs,), after overrides."""
    types = effective_types(corpus.source_types, corpus.sources, study.priors.sources)
    return prior_vector(study.table, types, unknown_prior=study.config.unknown_prior)


def draw_states(
    study: Study, spoofs: Sequence[float], leaks: Sequence[float], seeds: Sequence[int]
) -> States:
    """Every combination of spoof rate, leak and seed, in that order of nesting."""
    corpus = study.corpus
    adversaries = np.flatnonzero(corpus.adversarial)
    # The draw looks at adversarial documents only, so the rest need not be carried along.
    alone = replace(corpus, documents=tuple(corpus.documents[i] for i in adversaries))
    cells = [(spoof, leak, seed) for spoof in spoofs for leak in leaks for seed in seeds]
    trusted = study.taxonomy.trusted
    drawn = [
        spoof_labels(alone, spoof, target_types=trusted, leak=leak, seed=seed)
        for spoof, leak, seed in cells
    ]
    spoof, leak, seed = (np.array(column) for column in zip(*cells, strict=True))
    return States(
        spoof=spoof.astype(np.float64),
        leak=leak.astype(np.float64),
        seed=seed.astype(np.int64),
        adversaries=adversaries,
        prior=np.array([declared_prior(study, after) for after in drawn]),
        verified=np.array([[d.verified for d in after.documents] for after in drawn], dtype=bool),
    )


def distinct_rows(states: States, docids: np.ndarray, n_docs: int) -> Rows:
    """The distinct rankings of a pool, ``docids`` int64 (n_topics, m), over all draws."""
    at = adversary_at(states, n_docs)
    topics, firsts, columns, count = [], [], [], 0
    for topic, row in enumerate(docids):
        own = at[row[row >= 0]]
        own = own[own >= 0]
        first, inverse = _distinct(states.prior[:, own], states.verified[:, own])
        topics.append(np.full(len(first), topic))
        firsts.append(first)
        columns.append(count + inverse)
        count += len(first)
    return Rows(np.concatenate(topics), np.concatenate(firsts), np.stack(columns, axis=1))


def _distinct(prior: np.ndarray, verified: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First row of each distinct one, and which of them each row is."""
    # The leading column keeps the array two-dimensional where no adversary is in the pool.
    labels = np.column_stack([np.zeros(len(prior)), prior, verified])
    _, first, inverse = np.unique(labels, axis=0, return_index=True, return_inverse=True)
    return first, inverse.reshape(-1)


def adversary_at(states: States, n_docs: int) -> np.ndarray:
    """Column of each document among the adversaries, int64 (n_docs,), -1 for the others."""
    at = np.full(n_docs, -1, dtype=np.int64)
    at[states.adversaries] = np.arange(len(states.adversaries))
    return at
