"""Scores of rankings: from saved runs to tidy metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from rag_reliability.evaluation.ranking import evaluate_ranking, exposure
from rag_reliability.experiment.ranking import RECALL_DEPTH, SYSTEMS, load_runs, low_tier
from rag_reliability.experiment.study import Study
from rag_reliability.records import Ranking

BASELINE = "similarity"
Run = Mapping[str, Sequence[str]]


def run_of(ranking: Ranking, docnos: np.ndarray) -> dict[str, list[str]]:
    """``run[qid]``: docnos best first."""
    return {q: docnos[row].tolist() for q, row in zip(ranking.qids, ranking.docids, strict=True)}


def adversarial_by_topic(study: Study) -> dict[str, set[str]]:
    """Docnos of the adversarial documents judged for each topic, that is, written against it."""
    marked = {d.docno for d in study.corpus.documents if d.adversarial}
    return {t.qid: marked & set(study.corpus.qrels.get(t.qid, {})) for t in study.corpus.topics}


def score_run(study: Study, run: Run, baseline: Run, k: int) -> pd.DataFrame:
    """All ranking and exposure metrics of one run, per topic: columns qid, metric, value."""
    qrels = study.corpus.qrels
    quality = evaluate_ranking(run, qrels, k=k, recall_k=RECALL_DEPTH)
    seen = exposure(run, qrels, adversarial_by_topic(study), low_tier(study), baseline, k=k)
    return pd.concat([quality, seen], ignore_index=True)


def retrieval_stage(study: Study) -> pd.DataFrame:
    """Score every system's run: ``metrics/retrieval.csv``; returns it."""
    output = "metrics/retrieval.csv"

    def build(folder: Path) -> None:
        runs = load_runs(study)
        frames = [
            score_run(study, runs[s], runs[BASELINE], study.config.k).assign(system=s)
            for s in SYSTEMS
        ]
        save_tidy(pd.concat(frames, ignore_index=True), folder / output)

    load_runs(study)
    study.stage(
        "retrieval",
        inputs={"rank": study.key("rank"), "k": study.config.k},
        code=("evaluation/ranking.py", "experiment/scoring.py", "records.py"),
        libraries=("ranx", "ir-measures"),
        outputs=(output,),
        build=build,
    )
    return pd.read_csv(study.run_dir / output)


def save_tidy(frame: pd.DataFrame, path: Path) -> None:
    """Write a tidy table, columns system, qid, metric, value first, six decimals."""
    first = ["system", "qid", "metric", "value"]
    path.parent.mkdir(parents=True, exist_ok=True)
    ordered = frame[[*first, *frame.columns.difference(first, sort=False)]]
    ordered.to_csv(path, index=False, float_format="%.6f")
