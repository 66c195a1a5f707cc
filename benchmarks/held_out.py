"""What rules do on the topics that `stance_settings.py` did not choose on.

    python benchmarks/held_out.py RUN [RUN ...] [--chosen-on BED]

RUNs are folders that `rag-reliability threats` wrote. Prints the no-regret table of the topics
left over when those of the choice are taken out: every other topic of BED, the folder that was
chosen on, from its first; without ``--chosen-on``, of the run itself.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from rag_reliability.datasets.read import read_corpus
from rag_reliability.experiment import threat_summary as summary
from rag_reliability.experiment.threats import COSTS, read_threats

RULES = ("similarity", "source_aware", "verified_floor", "stance_consistent", "stance_verified")


def held_out(run: Path, bed: Path | None) -> tuple[pd.DataFrame, int]:
    """The no-regret table over the run's topics that were not chosen on, and how many those are."""
    frame = read_threats(run)
    qids = [t.qid for t in read_corpus(bed).topics] if bed else list(dict.fromkeys(frame["qid"]))
    kept = frame[~frame["qid"].isin(qids[::2]) & frame["rule"].isin(RULES)]
    costs = pd.read_csv(run / COSTS)
    cells = summary.cell_table(summary.topic_means(kept), n_resamples=2000, seed=0)
    table = summary.no_regret_table(cells, costs[costs["rule"].isin(set(kept["rule"]))])
    return table, kept["qid"].nunique()


def main() -> None:
    """Print one table a run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    parser.add_argument("--chosen-on", type=Path, metavar="BED", default=None)
    args = parser.parse_args()
    for run in args.runs:
        table, n = held_out(run, args.chosen_on)
        print(f"{run.name}: {n} topics")
        print(table.round(3).set_index("rule").T.to_string())


if __name__ == "__main__":
    main()
