"""What source-aware search costs beside one plain flat search of the same vectors, as ratios.

    python benchmarks/search_cost.py out.json [--sizes 10000,100000,1000000] [--seconds 60]

Random unit vectors, 384 dimensions, 6 source types, 100 topics, k = 5. In turn, in one process:

- plain: ``IndexFlatIP.search``, as faiss comes;
- plain_tuned: the same with faiss's switch to matrix products lowered to where this package has
  it (``engines.MATRIX_FROM``): the hardest thing to compare with;
- search_rerank: the partitioned index, exact, and reranking under one prior table;
- tables: ``rerank_tables`` of 1,000 prior tables on the pool of that search.

Ratios are medians over rounds of the ratio within a round, by the clock on the wall and by
processor time. On a machine that does other work, set OMP_NUM_THREADS=1 and look at the latter:
there threads that wait for each other cost more than the search. Memory: each index is built from a
memory-mapped file in a process of its own, whose largest anonymous memory is looked at every
5 ms; file pages, which the system can drop, are not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

DIM, TOPICS, K, TABLES = 384, 100, 5, 1_000
TYPES = np.array(["ai", "blog", "government", "news", "peer_reviewed", "user"])


def unit(rng: np.random.Generator, n: int) -> np.ndarray:
    vectors = rng.standard_normal((n, DIM), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def make_vectors(path: Path, n: int) -> None:
    rng = np.random.default_rng(0)
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, DIM))
    for start in range(0, n, 50_000):
        out[start : start + 50_000] = unit(rng, min(50_000, n - start))
    out.flush()


def labels_of(n: int) -> np.ndarray:
    return TYPES[np.random.default_rng(1).integers(0, len(TYPES), n)]


def blocks(vectors: np.ndarray):
    for start in range(0, len(vectors), 16_384):
        yield np.ascontiguousarray(vectors[start : start + 16_384])


def plain_index(vectors: np.ndarray):
    import faiss

    index = faiss.IndexFlatIP(DIM)
    for block in blocks(vectors):
        index.add(block)
    return index


class Peak:
    """Largest anonymous memory of this process, in bytes, while the block runs."""

    def __enter__(self):
        self.most, self._stop = self._now(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        self.most = max(self.most, self._now())

    def _watch(self):
        while not self._stop.wait(0.005):
            self.most = max(self.most, self._now())

    @staticmethod
    def _now() -> int:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("RssAnon"):
                return int(line.split()[1]) * 1024
        raise RuntimeError("no RssAnon: Linux only")


def memory(what: str, path: str) -> None:
    """Build one index, search it, and print bytes: before, at most, after."""
    import faiss

    from rag_reliability.retrieval.index import PartitionedIndex

    queries = unit(np.random.default_rng(2), TOPICS)
    vectors = np.load(path, mmap_mode="r")
    labels = labels_of(len(vectors))
    before = Peak._now()
    with Peak() as peak:
        if what == "plain_at_once":
            index = faiss.IndexFlatIP(DIM)
            index.add(np.asarray(vectors))  # still mapped: the least that a plain index can take
        elif what == "plain_in_blocks":
            index = plain_index(vectors)
        else:
            index = PartitionedIndex.build(vectors, labels)
        index.search(queries, K)
    after = Peak._now()
    print(json.dumps({"peak": peak.most - before, "held": after - before}))


def peaks(path: Path) -> dict:
    found = {}
    for what in ("plain_at_once", "plain_in_blocks", "partitioned"):
        command = [sys.executable, __file__, "--memory", what, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found[what] = json.loads(done.stdout)
    least = found["plain_at_once"]
    return found | {
        "ratio_peak": found["partitioned"]["peak"] / least["peak"],
        "ratio_held": found["partitioned"]["held"] / least["held"],
    }


def timed(call) -> tuple[float, float]:
    """Seconds on the wall, and of processor time."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def times(path: Path, seconds: float) -> dict:
    import faiss

    from rag_reliability.reliability.rerank import rerank
    from rag_reliability.reliability.tables import rerank_tables
    from rag_reliability.retrieval import engines
    from rag_reliability.retrieval.index import PartitionedIndex

    vectors = np.load(path, mmap_mode="r")
    n, rng = len(vectors), np.random.default_rng(2)
    queries, labels = unit(rng, TOPICS), labels_of(n)
    plain, index = plain_index(vectors), PartitionedIndex.build(vectors, labels)
    codes = np.searchsorted(TYPES, labels)
    tables = rng.uniform(0.05, 1, (TABLES, len(TYPES)))
    prior, qids = tables[0][codes], [str(i) for i in range(TOPICS)]
    docnos = np.array([f"d{i:07d}" for i in range(n)])
    pool = index.search(queries, K)

    def search_rerank():
        rerank(index.search(queries, K), prior, qids, docnos, K)

    def as_it_comes():
        faiss.cvar.distance_compute_blas_threshold = 128_000
        try:
            plain.search(queries, K)
        finally:
            faiss.cvar.distance_compute_blas_threshold = engines.MATRIX_FROM

    calls = {
        "plain": as_it_comes,
        "plain_tuned": lambda: plain.search(queries, K),
        "search": lambda: index.search(queries, K),
        "search_rerank": search_rerank,
        "tables": lambda: rerank_tables(pool, tables, codes, docnos, K),
    }
    for name, call in calls.items():  # once for warmth, and for caches of libraries
        if n < 1_000_000 or name != "plain":
            call()
    rounds, until = [], time.perf_counter() + seconds
    while len(rounds) < 3 or (time.perf_counter() < until and len(rounds) < 50):
        rounds.append({name: timed(call) for name, call in calls.items()})

    return {"rounds": len(rounds)} | {
        clock: summary([{name: both[i] for name, both in r.items()} for r in rounds])
        for i, clock in enumerate(("wall", "cpu"))
    }


def summary(rounds: list[dict[str, float]]) -> dict:
    def ratio(a: str, b: str) -> float:
        return round(float(np.median([r[a] / r[b] for r in rounds])), 4)

    return {
        "median_ms": {
            name: round(float(np.median([r[name] for r in rounds])) * 1e3, 2) for name in rounds[0]
        },
        "search_rerank_over_plain": ratio("search_rerank", "plain"),
        "search_rerank_over_plain_tuned": ratio("search_rerank", "plain_tuned"),
        "tables_over_search": ratio("tables", "search"),
        "tables_over_plain": ratio("tables", "plain"),
    }


def machine() -> dict:
    return {
        "processor": platform.processor() or platform.machine(),
        "cpus": os.cpu_count(),
        "load_average": os.getloadavg(),
        "omp_num_threads": os.environ.get("OMP_NUM_THREADS"),
        "dim": DIM,
        "topics": TOPICS,
        "k": K,
        "tables": TABLES,
        "types": len(TYPES),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", nargs="?", help="JSON file to write")
    parser.add_argument("--sizes", default="10000,100000")
    parser.add_argument("--seconds", type=float, default=60, help="of rounds for each size")
    parser.add_argument("--memory", nargs=2, metavar=("WHAT", "FILE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.memory:
        memory(*given.memory)
        return
    if not given.out:
        parser.error("name a JSON file to write")
    results: dict = {"machine": machine(), "sizes": {}}
    with tempfile.TemporaryDirectory() as folder:
        for n in map(int, given.sizes.split(",")):
            path = Path(folder) / "vectors.npy"
            make_vectors(path, n)
            result = {"memory": peaks(path), **times(path, given.seconds)}
            results["sizes"][n] = result
            print(n, json.dumps(result))
            Path(given.out).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
