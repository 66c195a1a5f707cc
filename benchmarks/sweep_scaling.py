"""How much faster two workers are than one: the same sweep, each time in a fresh cache, as JSON.

    python benchmarks/sweep_scaling.py --out benchmarks/sweep_scaling.json [--rounds 2] [--small]

Eight runs of rankings on health120 (``--small``: on three of its topics), with one worker and with
two, in turn. A worker's libraries have as many threads as leave workers × threads ≤ processors, so
that one worker has all of them. Times are of the whole command, index and comparison notebook
included; one run before them, not timed, leaves compiled code where libraries keep it. The load at
start and end is recorded: under load the ratio means little.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rag_reliability.datasets.read import read_corpus
from rag_reliability.datasets.write import write_corpus
from rag_reliability.files import cache_root
from rag_reliability.records import Corpus

ROOT = Path(__file__).resolve().parents[1]
SWEEP = """\
config: configs/paper.yaml
notebooks: [rankings]
parameters: {{corpus: {corpus}, n_resamples: 1000, folds: 3}}
grid:
  spread: [none, compressed, current, aggressive]
  k: [3, 5]
"""


def few_topics(folder: Path) -> Path:
    """Three topics of health120 with their judged documents."""
    whole = read_corpus(ROOT / "corpus" / "health120")
    qids = ("q001", "q002", "q005")
    qrels = {qid: dict(whole.qrels[qid]) for qid in qids}
    judged = {docno for labels in qrels.values() for docno in labels}
    documents = tuple(d for d in whole.documents if d.docno in judged)
    topics = tuple(t for t in whole.topics if t.qid in qids)
    write_corpus(Corpus("three", documents, topics, qrels), folder)
    return folder


def timed(sweep: Path, workers: int) -> float:
    """Seconds of the whole command, in a cache that holds the models' weights and nothing else."""
    with tempfile.TemporaryDirectory() as place:
        cache = Path(place, "cache")
        cache.mkdir()
        (cache / "models").symlink_to(cache_root() / "models")
        began = time.perf_counter()
        subprocess.run(
            [
                *(sys.executable, "-m", "rag_reliability.cli", "sweep", str(sweep)),
                *("--out", str(Path(place, "out")), "--workers", str(workers)),
            ],
            cwd=ROOT,
            check=True,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "RAG_RELIABILITY_CACHE": str(cache)},
        )
        return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--small", action="store_true", help="three topics instead of ten")
    args = parser.parse_args()
    load = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory() as place:
        corpus = few_topics(Path(place, "three")) if args.small else "corpus/health120"
        warm, sweep = Path(place, "sweep-warm.yaml"), Path(place, "sweep-scaling.yaml")
        text = SWEEP.format(corpus=corpus)
        warm.write_text(text.partition("grid:")[0] + "runs: [{k: 4}]\n", encoding="utf-8")
        timed(warm, 1)
        sweep.write_text(text, encoding="utf-8")
        seconds: dict[str, list[float]] = {"1": [], "2": []}
        for number in range(args.rounds):
            # In turn, and the other way round each time, so that a drift of the load cancels.
            for workers in sorted(seconds, reverse=bool(number % 2)):
                seconds[workers].append(round(timed(sweep, int(workers)), 1))
    load.append(os.getloadavg()[0])
    best = {workers: min(times) for workers, times in seconds.items()}
    result = {
        "runs": 8,
        "topics": 3 if args.small else 10,
        "seconds": seconds,
        "ratio": round(best["1"] / best["2"], 2),
        "aim": 1.7,
        "processors": os.cpu_count(),
        "machine": platform.processor() or platform.machine(),
        "load_average": [round(value, 1) for value in load],
    }
    args.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
