"""Priors from data: what they come to, and whether ranking with them helps on other topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from rag_reliability.experiment.learned_fits import (
    EXPERTS,
    SIGNALS,
    Judged,
    agreement_tables,
    calibrations,
    expert_tables,
    folds_of,
    judged_pairs,
    known_types,
    learned_rows,
    posteriors,
    type_votes,
)
from rag_reliability.experiment.ranking import (
    RECALL_DEPTH,
    Candidates,
    System,
    load_candidates,
    rank_inputs,
    ranked,
    similarity_system,
    type_prior,
)
from rag_reliability.experiment.report_parts import saved
from rag_reliability.experiment.scoring import run_of, save_tidy, score_run
from rag_reliability.experiment.study import Study
from rag_reliability.files import sha256_file
from rag_reliability.reliability.agreement import agreement_reliability
from rag_reliability.reliability.calibration import calibrated_pool
from rag_reliability.reliability.learning import Posteriors, cross_fit
from rag_reliability.reliability.priors import prior_vector

PRIORS, METRICS = "metrics/learned_priors.csv", "metrics/learned.csv"
WHOLE = -1
"""Fold of an estimate from all topics: it is there to be read, and ranks nothing."""

Way = tuple[str, dict[str, str], Candidates, System]


def ways(study: Study, found: Candidates, judged: Judged) -> Iterator[Way]:
    """Every system compared: its name, what it learned from, candidates, and how it ranks.

    ``source_aware_learned`` puts a learned prior in the place of the hand-set one; ``calibrated``
    puts P(relevant | sim) in the place of the similarity.
    """
    fold, priors = folds_of(study, found), topic_priors(study, found, judged)
    yield "similarity", {}, found, similarity_system(study)
    for (source, by), prior in priors.items():
        name = "source_aware" if source == "hand-set" else "source_aware_learned"
        yield name, {"source": source, "by": by}, found, System(prior, None)
    for pairs in ("judged", "all"):
        curves = calibrations(found, judged, fold, pairs)
        a, b = (np.array([getattr(c, name) for c in curves])[fold] for name in ("a", "b"))
        on_curve = replace(found, pool=calibrated_pool(found.pool, a, b))
        for source in ("hand-set", *SIGNALS):
            about = {"source": source, "by": "type", "pairs": pairs}
            yield "calibrated", about, on_curve, System(priors[source, "type"], None)


def topic_priors(
    study: Study, found: Candidates, judged: Judged
) -> dict[tuple[str, str], np.ndarray]:
    """Priors of every document for each topic, (n_topics, n_docs), by source and ``type``/``host``.

    Those learned here come from other topics; hand-set and ExpertQA's are the same for all.
    """
    fold, known = folds_of(study, found), known_types(study, found)
    shape = (len(found.qids), len(found.partition))
    priors = {("hand-set", "type"): np.broadcast_to(type_prior(study), shape)}
    for signal in SIGNALS:
        for by in ("type", "host"):
            priors[signal, by] = learned_rows(found, judged, signal, known, fold, by)
    if type_votes(found.corpus, found.partition, known).any():
        tables = agreement_tables(found, known, fold)
        rows = [prior_vector(dict(zip(known, t, strict=True)), found.partition) for t in tables]
        priors["agreement", "type"] = np.stack(rows)[fold]
    experts = expert_tables(study, found)
    if experts:
        measured = prior_vector(experts["expertqa"], found.partition)
        priors["expertqa", "type"] = np.broadcast_to(measured, shape)
    return priors


def scored(study: Study, found: Candidates, judged: Judged) -> pd.DataFrame:
    """Per-topic metrics of every way; columns qid, metric, value, system, source, by, pairs."""
    k = study.config.k
    depth, frames = max(k, RECALL_DEPTH), []
    docnos = study.corpus.docnos
    before = run_of(ranked(found, similarity_system(study), depth), docnos)
    for name, about, candidates, system in ways(study, found, judged):
        run = run_of(ranked(candidates, system, depth), docnos)
        blank = {"source": "", "by": "", "pairs": ""}
        frames.append(score_run(study, run, before, k).assign(system=name, **{**blank, **about}))
    return pd.concat(frames, ignore_index=True)


def prior_estimates(study: Study, found: Candidates, judged: Judged) -> pd.DataFrame:
    """Every prior by type: columns source, source_type, prior, low, high, n, fold.

    fold: the fold left out, or ``WHOLE``. low, high: 95 % credible interval, where there is one.
    """
    fold, known = folds_of(study, found), known_types(study, found)
    frames = [_table("hand-set", {t: study.table[t] for t in known if t in study.table})]
    for signal in SIGNALS:
        every = np.arange(len(judged.topic))
        whole = posteriors(found, judged, signal, known, every, "type")
        frames.append(_beta(signal, whole, WHOLE))
        fits = cross_fit(
            fold,
            judged.topic,
            lambda at, s=signal: posteriors(found, judged, s, known, at, "type"),  # type: ignore[misc]
        )
        frames += [_beta(signal, fit, f) for f, fit in enumerate(fits)]
    votes = type_votes(found.corpus, found.partition, known)
    if votes.any():
        counts = dict(zip(known, (votes != 0).sum(axis=0).tolist(), strict=True))
        whole_table = agreement_reliability(votes).reliability
        for f, values in enumerate([whole_table, *agreement_tables(found, known, fold)], WHOLE):
            table = dict(zip(known, values.tolist(), strict=True))
            frames.append(_table("agreement", table, f).assign(n=list(counts.values())))
    experts = expert_tables(study, found)
    if experts:
        ends = (experts["expertqa_low"], experts["expertqa_high"])
        frames.append(_table("expertqa", experts["expertqa"], WHOLE, *ends))
    return pd.concat(frames, ignore_index=True)


def _beta(source: str, found: Posteriors, fold: int) -> pd.DataFrame:
    low, high = found.interval()
    ends = {"prior": found.mean, "low": low, "high": high, "n": found.n}
    return pd.DataFrame({"source": source, "source_type": found.names, **ends, "fold": fold})


def _table(
    source: str, table: Mapping[str, float], fold: int = WHOLE, *ends: Mapping[str, float]
) -> pd.DataFrame:
    """Rows of a plain table; a type whose interval has equal ends was not measured: left out."""
    low, high = ends or ({}, {})
    kinds = [t for t in table if not ends or low[t] < high[t]]
    return pd.DataFrame(
        {
            "source": source,
            "source_type": kinds,
            "prior": [table[t] for t in kinds],
            "low": [low.get(t, np.nan) for t in kinds],
            "high": [high.get(t, np.nan) for t in kinds],
            "n": np.nan,
            "fold": fold,
        }
    )


def learned_stage(study: Study) -> pd.DataFrame:
    """Learn priors and rank with them: ``metrics/learned_priors.csv`` and ``metrics/learned.csv``.

    Returns the per-topic metrics. What ranks a topic was fitted without it.
    """

    def build(folder: Path) -> None:
        # Hosts' priors differ within a type, where only a pool of the whole corpus is exact.
        found = load_candidates(study, depth=len(study.corpus.documents))
        judged = judged_pairs(found)
        save_tidy(scored(study, found, judged), folder / METRICS)
        estimates = prior_estimates(study, found, judged)
        estimates.to_csv(folder / PRIORS, index=False, float_format="%.6f")

    experts = study.root / EXPERTS
    study.stage(
        "learned",
        inputs={
            **rank_inputs(study),
            "experts": sha256_file(experts) if experts.is_file() else None,
        },
        code=(
            *("reliability", "retrieval", "evaluation/ranking.py", "records.py"),
            *(f"experiment/{m}.py" for m in ("ranking", "scoring", "learned", "learned_fits")),
        ),
        libraries=("numpy", "scipy", "faiss-cpu", "ranx", "ir-measures"),
        outputs=(PRIORS, METRICS),
        build=build,
    )
    return saved(study, METRICS).fillna({"source": "", "by": "", "pairs": ""})
