"""The study's evaluation on a corpus of somebody else's: its systems, and rules that doubt labels.

The corpus is any folder that ``read_corpus`` reads. It is a study of its own, in the folder
``testbed`` of the run that it belongs to; what is learned of it stands there as metrics/real_*.csv.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from rag_reliability.datasets.trec import read_run, write_run
from rag_reliability.evaluation.ranking import evaluate_ranking, exposure
from rag_reliability.experiment.ranking import RECALL_DEPTH, load_runs, low_tier, rank_inputs
from rag_reliability.experiment.real_hosts import REGISTRY, checked_by_host
from rag_reliability.experiment.report_parts import saved
from rag_reliability.experiment.scoring import BASELINE, Run, adversarial_by_topic, save_tidy
from rag_reliability.experiment.study import Study
from rag_reliability.experiment.threat_evidence import Gathered, gather
from rag_reliability.experiment.threat_results import testbed_study
from rag_reliability.experiment.threats import (
    ThreatPlan,
    cost_table,
    depth_of,
    judged_topics,
    read_depth,
    rules_without_model,
    settings_of,
)
from rag_reliability.files import sha256_file
from rag_reliability.records import InputError, Ranking
from rag_reliability.reliability.robust import rank_robust

METRICS, COSTS, RUNS = "metrics/real_retrieval.csv", "metrics/real_costs.csv", "runs/real"
BY_HOST = "verified_by_host"
"""The rule ``verified_floor`` with sources checked against the registry of hosts."""
RULES = (
    "verified_boost",
    "verified_floor",
    "verified_collapse",
    "hard_filter",
    "bm25_dense",
    "stance_consistent",
    "stance_verified",
)
"""Rules beside the study's systems. Those that ask a model are run on the answered topics only."""
HOW = (
    "no corpus of your own: set testbed to a folder in BEIR's layout; one is written by "
    "rag-reliability testbed liveqa-flipped --shared ../shared/data --out reports/beds/liveqa"
)
_CODE = (
    *("reliability", "retrieval", "datasets", "records.py", "text.py"),
    *("experiment", "generation", "evaluation/nli.py"),
)


def open_bed(study: Study) -> Study | None:
    """The study of the config's ``testbed``; None where there is none, and it says how to get one.

    Raises InputError where the folder cannot be read, or holds no judged topics.
    """
    folder = study.config.testbed
    if folder is None or not study.path(folder).is_dir():
        study.store.say(HOW if folder is None else f"{folder}: not there; {HOW}")
        return None
    bed = testbed_study(study)
    if bed is not None:
        judged_topics(bed)
    return bed


def answered_topics(bed: Study, n: int) -> tuple[str, ...]:
    """``n`` topics that have relevant documents, drawn by the config's seed, in corpus order.

    A larger n keeps the topics of a smaller one; all of them, where there are not more.

    Raises InputError for n below 1, and where no topic has a relevant document.
    """
    if n < 1:
        raise InputError(f"answer_topics = {n}; expected a whole number >= 1")
    qrels = bed.corpus.qrels
    able = [q for q in judged_topics(bed) if any(label > 0 for label in qrels[q].values())]
    if not able:
        raise InputError(f"{bed.config.corpus}: no topic has a relevant document")
    drawn = np.random.default_rng(bed.config.seed).permutation(len(able))[:n]
    return tuple(able[i] for i in sorted(drawn.tolist()))


def retrieval_stage(bed: Study, n: int, rules: Sequence[str] = RULES) -> pd.DataFrame:
    """Rank and score with systems and rules: ``metrics/real_retrieval.csv``; returns it.

    Also ``runs/real/*.trec``, and ``metrics/real_costs.csv``: rule, model calls, seconds. Rules
    that read stances rank the ``n`` answered topics, all others every judged topic.

    Raises InputError for an unknown rule, and as ``answered_topics``.
    """
    plan, chosen = ThreatPlan(rules=tuple(rules)), answered_topics(bed, n)
    reads = set(rules) - set(rules_without_model())
    reader = bed.config.stance_model or bed.config.generator

    def build(folder: Path) -> None:
        rankings, costs = rule_rankings(bed, rules, chosen)
        (folder / RUNS).mkdir(parents=True)
        (folder / "metrics").mkdir()
        for rule, ranking in rankings.items():
            write_run(folder / RUNS / f"{rule}.trec", ranking, bed.corpus.docnos, rule)
        frame = scored(bed, {**load_runs(bed), **read_runs(folder)})
        save_tidy(frame, folder / METRICS)
        costs.to_csv(folder / COSTS, index=False, float_format="%.1f")

    load_runs(bed)
    bed.stage(
        "real-retrieval",
        inputs={
            **rank_inputs(bed),
            "rank": bed.key("rank"),
            "rules": list(plan.rules),
            "topics": list(chosen) if reads else [],
            "reader": bed.model_sha(reader) if reads else None,
            "registry": sha256_file(bed.path(REGISTRY)),
        },
        code=(*_CODE, "evaluation/ranking.py"),
        libraries=("numpy", "faiss-cpu", "ranx", "ir-measures"),
        outputs=(METRICS, COSTS, RUNS),
        build=build,
    )
    return saved(bed, METRICS).astype({"qid": str})


def rule_rankings(
    bed: Study, rules: Sequence[str], chosen: Sequence[str]
) -> tuple[dict[str, Ranking], pd.DataFrame]:
    """Ranking of each rule, as deep as recall needs or its window reaches, and what it cost."""
    free = [rule for rule in rules if rule in rules_without_model()]
    reading = [rule for rule in rules if rule not in free]
    found = _gathered(bed, free, judged_topics(bed))
    rankings = _ranked(bed, found, free, judged_topics(bed))
    checked = replace(found, evidence=checked_by_host(bed, found.evidence))
    (by_host,) = _ranked(bed, checked, ["verified_floor"], judged_topics(bed)).values()
    costs = [cost_table(free, found)]
    if reading:
        found = _gathered(bed, reading, chosen)
        rankings |= _ranked(bed, found, reading, chosen)
        costs.append(cost_table(reading, found))
    return {**rankings, BY_HOST: by_host}, pd.concat(costs, ignore_index=True)


def _gathered(bed: Study, rules: Sequence[str], qids: Sequence[str]) -> Gathered:
    plan = ThreatPlan(rules=(BASELINE, *rules))
    settings = settings_of(bed, plan)
    window, depth = read_depth(plan, settings), depth_of(plan, settings)
    return gather(bed, qids, rules, window=window, depth=depth)


def _ranked(
    bed: Study, found: Gathered, rules: Sequence[str], qids: Sequence[str]
) -> dict[str, Ranking]:
    settings = settings_of(bed, ThreatPlan(rules=(BASELINE, *rules)))
    wanted = max(settings.k, RECALL_DEPTH)
    # No rule looks at k: it is only how much of the order is kept. The window stays the study's.
    deep = replace(settings, k=min(wanted, settings.window or wanted, len(bed.corpus.documents)))
    docnos = bed.corpus.docnos
    return {rule: rank_robust(found.evidence, rule, qids, docnos, deep) for rule in rules}


def read_runs(run_dir: Path) -> dict[str, dict[str, list[str]]]:
    """``runs[rule][qid]``: docnos best first, from ``runs/real`` in a run's folder."""
    runs = {path.stem: read_run(path) for path in sorted((run_dir / RUNS).glob("*.trec"))}
    return {
        name: run.groupby("qid", sort=False)["docno"].agg(list).to_dict()
        for name, run in runs.items()
    }


def scored(bed: Study, runs: Mapping[str, Run]) -> pd.DataFrame:
    """All ranking and exposure metrics of each run on the judged topics that it ranks."""
    corpus, k = bed.corpus, bed.config.k
    # The last entry is no topic's: it marks adversarial documents that are judged for none.
    marked = {d.docno for d in corpus.documents if d.adversarial}
    aimed, low = {**adversarial_by_topic(bed), "": marked}, low_tier(bed)
    frames = []
    for system, run in runs.items():
        qids = [qid for qid in judged_topics(bed) if qid in run]
        own = {qid: run[qid] for qid in qids}
        qrels = {qid: corpus.qrels[qid] for qid in qids}
        with warnings.catch_warnings():
            # The notebook counts them; the warning would name them again for each system.
            warnings.filterwarnings("ignore", message="topics without relevant documents")
            quality = evaluate_ranking(own, qrels, k=k, recall_k=RECALL_DEPTH)
        seen = exposure(own, qrels, aimed, low, runs[BASELINE], k=k)
        frames.append(pd.concat([quality, seen], ignore_index=True).assign(system=system))
    return pd.concat(frames, ignore_index=True)
