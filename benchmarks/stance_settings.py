"""How the stance rule's settings were chosen: on every other topic of some testbeds, no others.

    python benchmarks/stance_settings.py --data BED [BED ...] [--generator NAME]

BEDs are folders of `rag-reliability testbed`. Each weighs the same. Chosen is the setting of least
adversarial share on the fitting topics, with every adversary spoofed, among those that keep at
least 85 % of the true low-tier documents there (where none does: that keeps most). Readings come
from the cache where they are in it.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import tempfile

import numpy as np
import pandas as pd

from rag_reliability.experiment.ranking import low_tier
from rag_reliability.experiment.study import open_study
from rag_reliability.experiment.threat_evidence import gather
from rag_reliability.experiment.threat_metrics import marks_of, top_metrics
from rag_reliability.experiment.threat_states import distinct_rows, draw_states
from rag_reliability.experiment.threats import (
    BASELINE,
    ThreatPlan,
    depth_of,
    judged_topics,
    ranked_rows,
    read_depth,
    settings_of,
)
from rag_reliability.reliability.stance import StanceSettings

RULE = "stance_consistent"
LEAST_KEPT = 0.85
GRID = {
    "nearest": (3, 5, 10, None),
    "tolerance": (0.75, 1.0, 1.25, 1.5),
    "softness": (0.05, 0.25),
    "least_spread": (0.2,),
    "least_verified": (2,),
}


def settings_table(data: str, generator: str, out: str) -> pd.DataFrame:
    """Every setting of the grid: adversarial share, precision and kept share on both halves."""
    study = open_study({"corpus": data, "generator": generator, "out": out})
    plan = ThreatPlan(rules=(RULE,), spoof=(1.0,), leak=(0.0, 0.05), seeds=10)
    settings, qids = settings_of(study, plan), judged_topics(study)
    depth, read = depth_of(plan, settings), read_depth(plan, settings)
    found = gather(study, qids, plan.rules, window=read, depth=depth)
    states = draw_states(study, plan.spoof, plan.leak, range(plan.seeds))
    rows = distinct_rows(states, found.evidence.docids, len(study.corpus.documents))
    low = np.isin(study.corpus.docnos, sorted(low_tier(study)))
    marks = marks_of(study.corpus, qids, low, settings.k)
    table = []
    for values in itertools.product(*GRID.values()):
        chosen = dict(zip(GRID, values, strict=True))
        tried = dataclasses.replace(settings, stance=StanceSettings(**chosen))
        tops = ranked_rows(study, (BASELINE, RULE), tried, found, states, rows)
        metrics = top_metrics(marks, rows.topic, tops[RULE], tops[BASELINE])
        row = dict(chosen)
        for half, start in (("fit", 0), ("rest", 1)):
            for name in ("adv_share", "precision", "suppressed_true"):
                by_topic = metrics[name][rows.of][:, start::2]
                row[f"{name}_{half}"] = float(np.nanmean(by_topic))
        table.append(row)
    return pd.DataFrame(table)


def main() -> None:
    """Print the grid and the choice."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, nargs="+")
    parser.add_argument("--generator", default="qwen2.5-coder-1.5b-instruct")
    args = parser.parse_args()
    tables = []
    for data in args.data:
        with tempfile.TemporaryDirectory() as out:
            tables.append(settings_table(data, args.generator, out))
    values = sum(t.drop(columns=list(GRID)) for t in tables) / len(tables)
    table = pd.concat([tables[0][list(GRID)], values], axis=1)
    order = table.sort_values(["adv_share_fit", "suppressed_true_fit"], kind="stable")
    least = max(1 - LEAST_KEPT, order["suppressed_true_fit"].min())
    kept = order[order["suppressed_true_fit"] <= least]
    print(order.round(3).to_string(index=False))
    print("chosen:", kept.iloc[0][list(GRID)].to_dict())


if __name__ == "__main__":
    main()
