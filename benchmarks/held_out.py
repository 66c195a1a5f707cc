"""What rules do on the topics that `stance_settings.py` did not choose on: every other one.

    python benchmarks/held_out.py RUN [RUN ...]

RUNs are folders that `rag-reliability threats` wrote. Prints the no-regret table of the topics at
odd places.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from rag_reliability.experiment import threat_summary as summary
from rag_reliability.experiment.threats import COSTS, read_threats

RULES = ("similarity", "source_aware", "verified_floor", "stance_consistent", "stance_verified")


def held_out(run: Path) -> pd.DataFrame:
    """The no-regret table over the other half of the run's topics."""
    frame = read_threats(run)
    qids = list(dict.fromkeys(frame["qid"]))
    kept = frame[frame["qid"].isin(qids[1::2]) & frame["rule"].isin(RULES)]
    costs = pd.read_csv(run / COSTS)
    cells = summary.cell_table(summary.topic_means(kept), n_resamples=2000, seed=0)
    return summary.no_regret_table(cells, costs[costs["rule"].isin(set(kept["rule"]))])


def main() -> None:
    """Print one table a run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    for run in parser.parse_args().runs:
        print(run.name)
        print(held_out(run).round(3).set_index("rule").T.to_string())


if __name__ == "__main__":
    main()
