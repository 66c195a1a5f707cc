"""How long the explorer takes from a moved slider to the HTML it shows, rule by rule.

    python benchmarks/slider_response.py

Times the kernel's share: ranking, trace and HTML of one question, on health120's candidates and on
360 made-up ones (60 of each of six source types, what a large corpus gives). What the browser adds
is asserted nowhere; docs/explorer.md says what was seen. Rules that read copies, conflicts or BM25
get what they need before the clock starts, as in the explorer. Stance rules are timed with made-up
readings. Besides the clock, the process's own CPU time is given: on a busy machine that is the
number to compare.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np
import pandas as pd

from rag_reliability.experiment.bench import QUICK_RULES, READING_RULES, Bench
from rag_reliability.experiment.exploring import Session
from rag_reliability.experiment.study import open_study
from rag_reliability.explorer import render, state
from rag_reliability.records import Document


def made_up(session: Session, n: int = 360) -> Bench:
    rng = np.random.default_rng(7)
    kinds = list(session.study.table)
    words = [
        "walking",
        "heart",
        "sleep",
        "cold",
        "honey",
        "infants",
        "vitamin",
        "study",
        "found",
        "adults",
        "risk",
    ]
    documents = tuple(
        Document(
            f"doc-{i:05d}",
            " ".join(rng.choice(words, 9)),
            " ".join(rng.choice(words, 80)),
            kinds[i % len(kinds)],
            f"publisher {i % 40}",
            verified=bool(i % 2),
        )
        for i in range(n)
    )
    sims = -np.sort(-rng.uniform(0.2, 0.8, n))
    return Bench("a question?", np.zeros(384, dtype=np.float32), documents, sims)


def moved(bench: Bench, session: Session, rule: str, moves: int) -> tuple[np.ndarray, np.ndarray]:
    """Wall and CPU milliseconds of each move of one slider."""
    wall, cpu = [], []
    now = state.State(dict(session.study.table), rule=rule, window=15)
    for i in range(moves + 3):
        started, used = time.perf_counter(), time.process_time()
        now = state.with_prior(now, "government", 0.3 + 0.6 * (i % 30) / 30)
        render.ranking_panel(bench, now, state.ranking(bench, now, session.prior))
        wall.append(1000 * (time.perf_counter() - started))
        cpu.append(1000 * (time.process_time() - used))
    return np.array(wall[3:]), np.array(cpu[3:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--moves", type=int, default=60)
    parser.add_argument("--out", default="reports/mine")
    parser.add_argument("--json", help="file to write the table to as well")
    given = parser.parse_args()
    moves = given.moves
    session = Session(open_study({"out": given.out}))
    rng = np.random.default_rng(7)
    rows = []
    for name, bench in (
        ("health120", session.bench(qid=session.study.corpus.topics[0].qid)),
        ("360 made-up", made_up(session)),
    ):
        for rule in (*QUICK_RULES, *READING_RULES):
            if rule.startswith("bm25") and name != "health120":
                continue  # BM25 looks documents up in the corpus
            if rule in READING_RULES:
                stance = rng.normal(size=len(bench.documents))
                bench = replace(bench, fields={**bench.fields, "stance": stance})
            bench = session.ready_for(bench, rule)
            wall, cpu = moved(bench, session, rule, moves)
            n = len(bench.documents)
            rows.append(
                (name, n, rule, *np.percentile(wall, [50, 95]), *np.percentile(cpu, [50, 95]))
            )
    columns = ["candidates", "n", "rule", "wall_ms", "wall_p95", "cpu_ms", "cpu_p95"]
    frame = pd.DataFrame(rows, columns=columns).round(1)
    print(frame.to_string(index=False))
    if given.json:
        frame.to_json(given.json, orient="records", indent=1)


if __name__ == "__main__":
    main()
