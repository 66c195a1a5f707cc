"""How well a local model reads what a passage says: AUROC on pairs whose stance is known.

    python benchmarks/stance_pairs.py --shared DIR [--model NAME ...] [--pairs 120] [--out FILE]

Pairs are drawn by a hash of question and document, so a larger number keeps the smaller one's.
Intervals draw whole questions again. `within` is the share of pairs of a yes and a no passage of
one question that are ordered rightly. Readings are kept in the cache.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

import numpy as np
import pandas as pd

from rag_reliability.datasets.pairs import STANCE_PAIRS, stance_pairs
from rag_reliability.evaluation.meta import auroc_statistic
from rag_reliability.evaluation.resampling import clustered
from rag_reliability.experiment.stances import cached_readings, stance_reader

MODELS = ("qwen2.5-coder-0.5b-instruct", "qwen2.5-coder-1.5b-instruct")


def drawn(name: str, shared: Path, n: int) -> pd.DataFrame:
    """``n`` pairs of the set, those of smallest hash."""
    frame = stance_pairs(name, shared)
    keys = [
        hashlib.sha256(f"{q} {d}".encode()).hexdigest() for q, d in frame[["qid", "docno"]].values
    ]
    return frame.assign(key=keys).sort_values("key").head(n).reset_index(drop=True)


def reading(frame: pd.DataFrame, model: str) -> tuple[np.ndarray, float]:
    """Log-odds of yes minus those without a passage, float64 (n,), and seconds a pair."""
    pairs = list(zip(frame["question"], frame["passage"], strict=True))
    asked = list(dict.fromkeys([*pairs, *((q, "") for q, _ in pairs)]))
    found, seconds = cached_readings(asked, stance_reader(model))
    values = [float(np.mean(found[q, p] - found[q, ""])) for q, p in pairs]
    return np.array(values), seconds / len(asked)


def within(frame: pd.DataFrame, values: np.ndarray) -> float:
    """Share of yes–no pairs of one question whose yes passage reads higher; NaN without any."""
    wins = []
    for _, rows in frame.assign(value=values).groupby("qid"):
        yes, no = (rows.loc[rows["answer"] == a, "value"].to_numpy() for a in ("yes", "no"))
        wins.extend((yes[:, None] > no[None, :]).ravel().tolist())
    return float(np.mean(wins)) if wins else float("nan")


def row(name: str, frame: pd.DataFrame, model: str) -> dict[str, object]:
    """One line of the table."""
    values, seconds = reading(frame, model)
    yes = (frame["answer"] == "yes").to_numpy()
    found = clustered(auroc_statistic(values, yes), frame["qid"].tolist())
    return {
        "pairs": name,
        "model": model,
        "n": len(frame),
        "yes": int(yes.sum()),
        "auroc": found.mean,
        "low": found.low,
        "high": found.high,
        "within": within(frame, values),
        "seconds_a_reading": seconds,
    }


def main() -> None:
    """Read every set with every model and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shared", type=Path, required=True)
    parser.add_argument("--model", nargs="+", default=MODELS)
    parser.add_argument("--sets", nargs="+", default=tuple(STANCE_PAIRS))
    parser.add_argument("--pairs", type=int, default=120)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows = []
    for name in args.sets:
        frame = drawn(name, args.shared, args.pairs)
        rows.extend(row(name, frame, model) for model in args.model)
        print(pd.DataFrame(rows).round(3).to_string(index=False), flush=True)
    if args.out:
        pd.DataFrame(rows).to_csv(args.out, index=False, float_format="%.4f")


if __name__ == "__main__":
    main()
