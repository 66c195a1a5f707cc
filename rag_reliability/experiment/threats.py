"""Every rule under every spoof rate, leak and seed: one search, then arithmetic on arrays."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rag_reliability.experiment.preflight import known
from rag_reliability.experiment.ranking import low_tier, rank_inputs
from rag_reliability.experiment.study import Study
from rag_reliability.experiment.threat_evidence import READ, Gathered, evidence_rows, gather
from rag_reliability.experiment.threat_metrics import marks_of, top_metrics
from rag_reliability.experiment.threat_states import (
    Rows,
    States,
    declared_prior,
    distinct_rows,
    draw_states,
)
from rag_reliability.experiment.threat_summary import BASELINE
from rag_reliability.records import InputError
from rag_reliability.reliability.rerank import tie_ranks
from rag_reliability.reliability.robust import NEEDS, RULES, RobustSettings, top_docids

METRICS, COSTS = "metrics/threats.csv", "metrics/threat_costs.csv"
COLUMNS = ["rule", "spoof", "leak", "seed", "qid", "metric", "value"]
CURVES = (
    "similarity",
    "source_aware",
    "verified_boost",
    "stance_consistent",
    "stance_verified",
    "verified_min",
    "verified_collapse",
    "hard_filter",
)
"""Rules drawn over the spoof rate first; others fill what room they leave."""
_CODE = (
    *("reliability", "retrieval", "datasets", "records.py", "text.py"),
    *("experiment", "generation", "evaluation/nli.py"),
)


@dataclass(frozen=True)
class ThreatPlan:
    """What a sweep over threats tries.

    rules: names of ``robust.RULES``; similarity alone is always among them. spoof: shares of the
    adversarial documents that declare a high tier; leak: shares of those that pass the check too.
    seeds: number of draws, from the config's seed on. window: rank window (None: 3k, that is,
    the config's expansion · k). depth: similar documents looked at for each topic.

    Raises: InputError for an unknown rule, a rate outside [0, 1], no seeds, a window below k.
    """

    rules: tuple[str, ...] = ()
    spoof: tuple[float, ...] = (0.0, 0.1, 0.2, 0.35, 0.5, 1.0)
    leak: tuple[float, ...] = (0.0, 0.05, 0.2)
    seeds: int = 20
    window: int | None = None
    depth: int = 50

    def __post_init__(self) -> None:
        known("rules", self.rules, available_rules())
        unique = dict.fromkeys((BASELINE, *self.rules))
        object.__setattr__(self, "rules", tuple(unique))
        for name in ("spoof", "leak"):
            object.__setattr__(self, name, _rates(name, getattr(self, name)))
        for name in ("seeds", "depth"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} = {getattr(self, name)}; expected a whole number >= 1")


def default_plan(study: Study) -> ThreatPlan:
    """The config's ``threat_rules``, or else ``CURVES``, under every default rate."""
    there = available_rules()
    return ThreatPlan(rules=study.config.threat_rules or tuple(r for r in CURVES if r in there))


def available_rules() -> tuple[str, ...]:
    """Rules whose evidence can be read."""
    return tuple(r for r in RULES if all(name in READ for name in NEEDS.get(r, ())))


def rules_without_model() -> tuple[str, ...]:
    """Rules that need no language model."""
    return tuple(r for r in available_rules() if "stance" not in NEEDS.get(r, ()))


def _rates(name: str, rates: Collection[float]) -> tuple[float, ...]:
    if not rates:
        raise InputError(f"{name} is empty; expected rates in [0, 1]")
    for rate in rates:
        if not 0 <= rate <= 1:
            raise InputError(f"{name} = {rate}; expected 0 <= {name} <= 1")
    return tuple(sorted(set(map(float, rates))))


def settings_of(study: Study, plan: ThreatPlan) -> RobustSettings:
    """The rules' settings under this config and plan."""
    config = study.config
    window = config.expansion * config.k if plan.window is None else plan.window
    return RobustSettings(k=config.k, window=window, lowest=min(study.table.values()))


def depth_of(plan: ThreatPlan, settings: RobustSettings) -> int:
    """How many similar documents to look at: the window, and enough to fill the top k after it."""
    return max(plan.depth, (settings.window or 0) + settings.k, settings.reading or 0)


def read_depth(plan: ThreatPlan, settings: RobustSettings) -> int:
    """How many of them any rule of the plan reads: stances are read beyond the rank window."""
    if all("stance" not in NEEDS.get(rule, ()) for rule in plan.rules):
        return settings.window or plan.depth
    return settings.reading or plan.depth


def judged_topics(study: Study) -> tuple[str, ...]:
    """Topics that have judgements: a BEIR folder's queries may be of other splits.

    Raises InputError where there are none.
    """
    study.need_topics()
    qids = tuple(t.qid for t in study.corpus.topics if study.corpus.qrels.get(t.qid))
    if not qids:
        raise InputError(f"{study.config.corpus}: no topic has judgements")
    return qids


def need_adversaries(study: Study) -> None:
    """Refuse a corpus in which nobody could lie.

    Raises InputError naming the field that is expected.
    """
    if not study.corpus.adversarial.any():
        raise InputError(
            f"{study.config.corpus}: no document is marked adversarial; "
            "expected field 'adversarial' (BEIR: 'metadata.adversarial') true on some"
        )


def threats_stage(study: Study, plan: ThreatPlan | None = None) -> pd.DataFrame:
    """Sweep rules over threats: ``metrics/threats.csv``; returns its tidy rows.

    Columns rule, spoof, leak, seed, qid, metric, value. ``metrics/threat_costs.csv`` says what
    each rule's evidence cost: rule, calls, seconds.
    """
    plan = plan or default_plan(study)
    settings, qids = settings_of(study, plan), judged_topics(study)

    def build(folder: Path) -> None:
        window = read_depth(plan, settings)
        found = gather(study, qids, plan.rules, window=window, depth=depth_of(plan, settings))
        (folder / "metrics").mkdir()
        frame = sweep(study, qids, plan, settings, found)
        frame.to_csv(folder / METRICS, index=False, float_format="%.6g")
        costs = cost_table(plan.rules, found)
        costs.to_csv(folder / COSTS, index=False, float_format="%.1f")

    study.stage(
        "threats",
        inputs=threat_inputs(study, plan, settings),
        code=_CODE,
        libraries=("numpy", "faiss-cpu"),
        outputs=(METRICS, COSTS),
        build=build,
    )
    return read_threats(study.run_dir)


def threat_inputs(study: Study, plan: ThreatPlan, settings: RobustSettings) -> dict[str, Any]:
    """What a sweep depends on; the generator only where a rule reads stances."""
    reader = study.config.stance_model or study.config.generator
    model = reader if set(plan.rules) - set(rules_without_model()) else None
    return {
        **rank_inputs(study),
        "plan": {name: list(v) if isinstance(v, tuple) else v for name, v in vars(plan).items()},
        "settings": asdict(settings),
        "generator": model and study.model_sha(model),
    }


def sweep(
    study: Study,
    qids: tuple[str, ...],
    plan: ThreatPlan,
    settings: RobustSettings,
    found: Gathered,
) -> pd.DataFrame:
    """All rules × draws × topics × metrics, tidy; metrics without a value are absent."""
    seeds = [study.config.seed + i for i in range(plan.seeds)]
    states = draw_states(study, plan.spoof, plan.leak, seeds)
    rows = distinct_rows(states, found.evidence.docids, len(study.corpus.documents))
    low = np.isin(study.corpus.docnos, sorted(low_tier(study)))
    marks = marks_of(study.corpus, qids, low, settings.k)
    tops = ranked_rows(study, plan.rules, settings, found, states, rows)
    baseline = tops[BASELINE]
    frames = []
    for rule, top in tops.items():
        values = top_metrics(marks, rows.topic, top, baseline)
        frames.append(_tidy(values, states, rows, qids, settings.k).assign(rule=rule))
    frame = pd.concat(frames, ignore_index=True)
    return frame.assign(rule=pd.Categorical(frame["rule"], categories=list(tops)))[COLUMNS]


def ranked_rows(
    study: Study,
    rules: Collection[str],
    settings: RobustSettings,
    found: Gathered,
    states: States,
    rows: Rows,
) -> dict[str, np.ndarray]:
    """Top k of every distinct ranking under each rule, int64 (n_rows, k), -1 where fewer."""
    corpus = study.corpus
    ties, prior = tie_ranks(corpus.docnos), declared_prior(study, corpus)
    verified = np.array([d.verified for d in corpus.documents], dtype=bool)
    parts: dict[str, list[np.ndarray]] = {rule: [] for rule in rules}
    for evidence in evidence_rows(found.evidence, states, rows, prior, verified):
        for rule in rules:
            parts[rule].append(top_docids(evidence, rule, ties, settings))
    return {rule: np.concatenate(tops) for rule, tops in parts.items()}


def _tidy(
    values: dict[str, np.ndarray], states: States, rows: Rows, qids: tuple[str, ...], k: int
) -> pd.DataFrame:
    """Values of the distinct rankings, spread over every draw and topic, NaN left out."""
    n_states, n_topics = rows.of.shape
    names = [f"{name}@{k}" for name in values]
    stacked = np.stack([column[rows.of] for column in values.values()], axis=2)

    def repeated(column: np.ndarray) -> np.ndarray:
        return np.repeat(column, n_topics * len(names))

    frame = pd.DataFrame(
        {
            "spoof": repeated(states.spoof),
            "leak": repeated(states.leak),
            "seed": repeated(states.seed),
            "qid": pd.Categorical.from_codes(
                np.tile(np.repeat(np.arange(n_topics), len(names)), n_states), list(qids)
            ),
            "metric": pd.Categorical.from_codes(
                np.tile(np.arange(len(names)), n_states * n_topics), names
            ),
            "value": stacked.reshape(-1),
        }
    )
    return frame[frame["value"].notna()]


def cost_table(rules: Collection[str], found: Gathered) -> pd.DataFrame:
    """Model calls and seconds of what each rule needs to know: columns rule, calls, seconds."""
    rows = []
    for rule in rules:
        each = [found.cost[name] for name in NEEDS.get(rule, ())]
        rows.append((rule, sum(calls for calls, _ in each), sum(s for _, s in each)))
    return pd.DataFrame(rows, columns=["rule", "calls", "seconds"])


def read_threats(run_dir: Path) -> pd.DataFrame:
    """The saved sweep, its names as categories."""
    names = {"rule": "category", "metric": "category", "qid": "category"}
    return pd.read_csv(run_dir / METRICS, dtype=names)
