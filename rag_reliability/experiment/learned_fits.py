"""What is learned from a study's judgements, each fit kept from the topics that it will rank.

A fit is made once for each fold on all other folds' topics: element ``fold[t]`` of what these
functions return is the one for topic ``t``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rag_reliability.experiment.ranking import Candidates
from rag_reliability.experiment.study import Study
from rag_reliability.records import Corpus, Topic
from rag_reliability.reliability.agreement import agreement_reliability
from rag_reliability.reliability.calibration import Calibration, fit_calibration
from rag_reliability.reliability.learning import (
    Posteriors,
    cross_fit,
    host_posteriors,
    topic_folds,
    type_posteriors,
)
from rag_reliability.reliability.priors import load_priors

SIGNALS = ("useful", "truthful")
"""What a judgement can say of a document: see ``Judged``."""

EXPERTS = "configs/priors-expertqa.yaml"


@dataclass(frozen=True)
class Judged:
    """Judged pairs of topic and document; every array (n_pairs,).

    topic: row of the topic. docid. sim: similarity. useful: the label is at least 1. truthful: the
    document was not written to mislead and asserts none of the topic's false claims, whatever its
    label.
    """

    topic: np.ndarray
    docid: np.ndarray
    sim: np.ndarray
    useful: np.ndarray
    truthful: np.ndarray


def judged_pairs(found: Candidates) -> Judged:
    """Every pair that the corpus judges, by topic and docno."""
    corpus = found.corpus
    pairs = [
        (t, corpus.docid[docno], label)
        for t, topic in enumerate(corpus.topics)
        for docno, label in sorted(corpus.qrels.get(topic.qid, {}).items())
    ]
    topic, docid, label = np.array(pairs, dtype=np.int64).reshape(-1, 3).T
    lies = {(t, claim) for t, topic in enumerate(corpus.topics) for claim in _false_marks(topic)}
    documents = [corpus.documents[i] for i in docid.tolist()]
    truthful = np.array(
        [
            not (d.adversarial or any((t, mark) in lies for mark in d.claims))
            for t, d in zip(topic.tolist(), documents, strict=True)
        ],
        dtype=bool,
    )
    sim = (found.query_vecs[topic].astype(np.float64) * found.doc_vecs[docid]).sum(axis=1)
    return Judged(topic, docid, sim, label >= 1, truthful)


def _false_marks(topic: Topic) -> list[str]:
    return [f"{claim.claim_id}:false" for claim in topic.claims]


def folds_of(study: Study, found: Candidates) -> np.ndarray:
    """Fold of each topic, the same as those of the feedback; int64 (n_topics,)."""
    return topic_folds(len(found.qids), study.config.folds, study.config.seed)


def known_types(study: Study, found: Candidates) -> tuple[str, ...]:
    """Types of the priors file, then those that the corpus has beyond it."""
    known = study.priors.known_types
    return (*known, *sorted(set(found.partition.tolist()) - set(known)))


def posteriors(
    found: Candidates, judged: Judged, signal: str, known: Sequence[str], at: np.ndarray, by: str
) -> Posteriors:
    """Posteriors by ``type`` or ``host`` from the pairs ``at`` (indices); signal of ``SIGNALS``."""
    docids, good = judged.docid[at], getattr(judged, signal)[at]
    types = found.partition[docids]
    if by == "host":
        return host_posteriors(found.corpus.sources[docids], types, good, known)
    return type_posteriors(types, good, known)


def learned_rows(
    found: Candidates, judged: Judged, signal: str, known: Sequence[str], fold: np.ndarray, by: str
) -> np.ndarray:
    """Prior of each document for each topic, float64 (n_topics, n_docs), learned without it.

    by: ``type``, or ``host``, where a host not met among the other topics has its type's prior.
    """

    def fit(at: np.ndarray) -> np.ndarray:
        table = posteriors(found, judged, signal, known, at, "type").table
        if by == "host":
            table |= posteriors(found, judged, signal, known, at, "host").table
        pairs = zip(found.corpus.sources.tolist(), found.partition.tolist(), strict=True)
        if by == "type":
            return np.array([table[kind] for _, kind in pairs])
        return np.array([table.get(f"{h}|{t}", table.get(h, table[t])) for h, t in pairs])

    return np.stack(cross_fit(fold, judged.topic, fit))[fold]


def type_votes(corpus: Corpus, partition: np.ndarray, known: Sequence[str]) -> np.ndarray:
    """Side that each type's documents take on each topic, int64 (n_topics, n_types), 0 for none.

    A document's side is read from its claim marks (+1 gold, -1 false, of the topic's first claim):
    a perfect reading, which no model gives. A type's is the sign of its documents' sum.
    """
    column = {kind: i for i, kind in enumerate(known)}
    row = {t.claims[0].claim_id: i for i, t in enumerate(corpus.topics) if t.claims}
    sums = np.zeros((len(corpus.topics), len(known)), dtype=np.int64)
    for document, kind in zip(corpus.documents, partition.tolist(), strict=True):
        for mark in document.claims:
            claim, _, side = mark.rpartition(":")
            if claim in row:
                sums[row[claim], column[kind]] += 1 if side == "gold" else -1
    return np.sign(sums)


def agreement_tables(found: Candidates, known: Sequence[str], fold: np.ndarray) -> np.ndarray:
    """Reliability of each type by its agreement with the others, float64 (n_folds, n_types)."""
    votes = type_votes(found.corpus, found.partition, known)
    every = np.arange(len(votes))
    return np.stack(cross_fit(fold, every, lambda at: agreement_reliability(votes[at]).reliability))


def calibrations(
    found: Candidates, judged: Judged, fold: np.ndarray, pairs: str
) -> tuple[Calibration, ...]:
    """P(relevant | sim) by fold, from the ``judged`` pairs, or from ``all`` pairs of the pool.

    Of all pairs, those without a judgement count as not relevant, as the metrics count them.
    """
    topic, sim, useful = judged.topic, judged.sim, judged.useful
    if pairs == "all":
        topic, column = np.nonzero(found.pool.docids >= 0)
        sim = found.pool.sims[topic, column]
        good = set(zip(judged.topic[useful].tolist(), judged.docid[useful].tolist(), strict=True))
        named = zip(topic.tolist(), found.pool.docids[topic, column].tolist(), strict=True)
        useful = np.array([pair in good for pair in named])
    return cross_fit(fold, topic, lambda at: fit_calibration(sim[at], useful[at]))


def expert_tables(study: Study, found: Candidates) -> dict[str, Mapping[str, float]]:
    """The measured spreads of ``EXPERTS``; empty where it is missing or lacks a type met here."""
    path = study.root / EXPERTS
    if not path.is_file():
        return {}
    tables = load_priors(path)
    fits = set(found.partition.tolist()) <= set(tables.known_types)
    return {s: tables.table(s) for s in tables.spreads if s.startswith("expertqa")} if fits else {}
