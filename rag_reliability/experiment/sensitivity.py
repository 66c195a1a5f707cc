"""Sweeps over spread, k, window, smoothing, feedback and spoofed labels, on the saved vectors.

Every sweep gives tidy per-topic rows (system, qid, metric, value) with its parameters as further
columns; means and intervals are taken only where they are shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd

from rag_reliability.experiment.ranking import (
    RECALL_DEPTH,
    Candidates,
    System,
    adaptive,
    load_candidates,
    rank_inputs,
    ranked,
    similarity_system,
    type_prior,
)
from rag_reliability.experiment.scoring import run_of, save_tidy, score_run
from rag_reliability.experiment.study import Study
from rag_reliability.experiment.table_sweeps import table_rankings
from rag_reliability.records import InputError, Ranking
from rag_reliability.reliability.feedback import prior_rows
from rag_reliability.reliability.priors import effective_types, prior_vector, temper
from rag_reliability.reliability.smoothing import smooth_prior
from rag_reliability.reliability.threats import spoof_labels

T = TypeVar("T")

GAMMAS = tuple(np.round(np.arange(0, 4.01, 0.25), 2).tolist())
KS = (1, 2, 3, 4, 5, 6, 8, 10)
WINDOWS = (5, 8, 10, 15, 20, 30, 45, 60, 90)
ALPHAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
NEIGHBOURS = (3, 5, 10)
RATES = (0.05, 0.1, 0.2, 0.4, 0.8)
SPOOF_RATES = tuple(np.round(np.arange(0, 1.01, 0.1), 1).tolist())
SPOOF_SEEDS = 20

SWEEPS = ("spread", "named_spread", "k", "window", "smoothing", "feedback", "spoofing")


def _scored(study: Study, found: Candidates, system: System, name: str, k: int) -> pd.DataFrame:
    ranking = ranked(found, system, max(k, RECALL_DEPTH))
    return _scored_ranking(study, found, ranking, name, k)


def _scored_ranking(
    study: Study, found: Candidates, ranking: Ranking, name: str, k: int
) -> pd.DataFrame:
    baseline = ranked(found, similarity_system(study), max(k, RECALL_DEPTH))
    run, before = (run_of(r, study.corpus.docnos) for r in (ranking, baseline))
    return score_run(study, run, before, k).assign(system=name)


def _pair(study: Study, prior: np.ndarray) -> dict[str, System]:
    return {
        "source_aware_3k": System(prior, study.config.expansion * study.config.k),
        "source_aware": System(prior, None),
    }


def spread_sweep(study: Study, found: Candidates) -> Iterator[pd.DataFrame]:
    """λ^γ of the reference table (`current`): γ = 0 is similarity alone, 1 the table itself."""
    reference = study.priors.table(study.taxonomy.reference)
    tables = {gamma: temper(reference, gamma) for gamma in GAMMAS}
    for gamma, frame in _over_tables(study, found, tables):
        yield frame.assign(gamma=gamma)


def named_spread_sweep(study: Study, found: Candidates) -> Iterator[pd.DataFrame]:
    """The named spreads of the priors file."""
    for spread, frame in _over_tables(study, found, study.priors.spreads):
        yield frame.assign(spread=spread)


def _over_tables(
    study: Study, found: Candidates, tables: Mapping[T, Mapping[str, float]]
) -> Iterator[tuple[T, pd.DataFrame]]:
    """Each table's metrics in the study's window and without one; all are ranked at once."""
    k, depth = study.config.k, max(study.config.k, RECALL_DEPTH)
    windows = {"source_aware_3k": study.config.expansion * k, "source_aware": None}
    rankings = {
        name: table_rankings(study, found, list(tables.values()), depth, window)
        for name, window in windows.items()
    }
    for i, table in enumerate(tables):
        for name in windows:
            yield table, _scored_ranking(study, found, rankings[name][i], name, k)


def k_sweep(study: Study, found: Candidates) -> Iterator[pd.DataFrame]:
    """Documents kept, with the study's window following k. Metric names lose their cutoff."""
    prior = type_prior(study)
    for k in KS:
        both = {
            "similarity": similarity_system(study),
            "source_aware_3k": System(prior, study.config.expansion * k),
            "source_aware": System(prior, None),
        }
        for name, system in both.items():
            frame = _scored(study, found, system, name, k)
            yield frame.assign(metric=frame["metric"].str.replace(f"@{k}", "", regex=False), k=k)


def window_sweep(study: Study, found: Candidates) -> Iterator[pd.DataFrame]:
    """The rank window of the source-aware system, from k (only the order changes) to no limit."""
    prior, n_docs = type_prior(study), len(study.corpus.documents)
    for window in (*(w for w in WINDOWS if study.config.k <= w < n_docs), None):
        frame = _scored(study, found, System(prior, window), "source_aware", study.config.k)
        yield frame.assign(window="exact" if window is None else str(window))


def smoothing_sweep(study: Study, found: Candidates) -> Iterator[pd.DataFrame]:
    """Weight and number of neighbours in single-hop smoothing, within the study's window."""
    prior, window = type_prior(study), study.config.expansion * study.config.k
    for neighbours in NEIGHBOURS:
        for alpha in ALPHAS:
            system = System(smooth_prior(prior, found.doc_vecs, neighbours, alpha), window)
            frame = _scored(study, found, system, "source_aware_smoothed", study.config.k)
            yield frame.assign(alpha=alpha, neighbours=neighbours)


def feedback_sweep(study: Study, found: Candidates) -> Iterator[pd.DataFrame]:
    """Learning rate of the post-query update; each topic's priors come from other topics."""
    for rate in RATES:
        learned = adaptive(study, found, rate)
        system = System(prior_rows(learned.tables, found.partition), None)
        frame = _scored(study, found, system, "source_aware_adaptive", study.config.k)
        yield frame.assign(rate=rate)


def spoofing_sweep(study: Study, found: Candidates) -> Iterator[pd.DataFrame]:
    """Share of the adversaries that declare a trusted type; means over seeded draws, per topic."""
    for rate in SPOOF_RATES:
        seeds = range(SPOOF_SEEDS if 0 < rate < 1 else 1)
        draws = pd.concat([_spoofed(study, found, rate, study.config.seed + s) for s in seeds])
        by = ["system", "qid", "metric"]
        yield draws.groupby(by, sort=False)["value"].mean().reset_index().assign(rate=rate)


def _spoofed(study: Study, found: Candidates, rate: float, seed: int) -> pd.DataFrame:
    """All three systems when a share ``rate`` of the adversaries is spoofed in one draw."""
    spoofed = spoof_labels(study.corpus, rate, target_types=study.taxonomy.trusted, seed=seed)
    # The pool holds every document, so it is exact for whatever types they declare.
    types = effective_types(spoofed.source_types, spoofed.sources, study.priors.sources)
    attacked = replace(found, corpus=spoofed, partition=types)
    prior = prior_vector(study.table, types, unknown_prior=study.config.unknown_prior)
    each = {"similarity": similarity_system(study), **_pair(study, prior)}
    k = study.config.k
    return pd.concat([_scored(study, attacked, s, n, k) for n, s in each.items()])


def sweep_stage(study: Study, name: str) -> pd.DataFrame:
    """Run one sweep of ``SWEEPS``: ``metrics/<name>.csv``; returns its tidy rows."""
    sweeps = {
        "spread": spread_sweep,
        "named_spread": named_spread_sweep,
        "k": k_sweep,
        "window": window_sweep,
        "smoothing": smoothing_sweep,
        "feedback": feedback_sweep,
        "spoofing": spoofing_sweep,
    }
    if name not in sweeps:
        raise InputError(f"unknown sweep {name!r}; known: {', '.join(sweeps)}")
    output = f"metrics/{name}.csv"

    def build(folder: Path) -> None:
        # Sweeps reach past the study's window, so their pool is the whole of the small corpus.
        found = load_candidates(study, depth=len(study.corpus.documents))
        frame = pd.concat(sweeps[name](study, found), ignore_index=True)
        save_tidy(frame, folder / output)

    study.stage(
        f"sweep-{name}",
        inputs=rank_inputs(study),
        code=("reliability", "retrieval", "evaluation/ranking.py", "records.py", "experiment"),
        libraries=("numpy", "faiss-cpu", "ranx", "ir-measures"),
        outputs=(output,),
        build=build,
    )
    return pd.read_csv(study.run_dir / output, dtype={"window": str})
