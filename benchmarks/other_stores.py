"""Retrieve and rerank, one question at a time, against what a user would pick instead, as ratios.

    python benchmarks/other_stores.py out.json [--sizes 10000,100000] [--seconds 60] [--no-memory]

Random unit vectors, 384 dimensions, 6 source types; the 15 most similar documents, ranked by
similarity and reliability of the source, of which 5 are returned. Sides, in turn in one process:

- ours: ``PartitionedIndex.search`` and ``rerank`` with a rank window of 15;
- ours_exact: the same without a window, exact over all documents under the prior table. No other
  side can give this, so it is timed beside them and not compared in its results;
- faiss: ``IndexFlatIP`` as it comes, and sim · λ in numpy on what it found;
- haystack: ``InMemoryDocumentStore``, ``InMemoryEmbeddingRetriever``, ``MetaFieldRanker`` over λ
  (mode linear_score), its own rule;
- llamaindex: ``VectorStoreIndex`` in its ``SimpleVectorStore``, and this package's postprocessor,
  since LlamaIndex has none for a number in the metadata.

The last two are left out above 200,000 documents: they hold a Python float for each number. Orders
must agree: faiss, LlamaIndex, and Haystack with this package's ranker, with ours; Haystack's own
ranker with our ``metadata_linear``. Ratios are medians over questions of the ratio within one, by
the clock and by processor time. Memory: each side builds and answers one question in a process of
its own; its anonymous memory beyond what it held before, at most and afterwards. Of ours that
counts the vectors, read from a mapped file; of the others also what they need to hold.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from search_cost import DIM, TYPES, Peak, labels_of, make_vectors, timed, unit

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

WINDOW, K, LARGEST_IN_LISTS = 15, 5, 200_000
PRIORS = dict(zip(TYPES.tolist(), (0.3, 0.5, 0.9, 0.75, 0.95, 0.4), strict=True))
Answer = Callable[[np.ndarray], list[str]]
"""From a question's vector (DIM,) to the names of the K best documents."""


def names_of(n: int) -> np.ndarray:
    return np.array([f"d{i:07d}" for i in range(n)])


def priors_of(labels: np.ndarray) -> np.ndarray:
    return np.array([PRIORS[t] for t in TYPES.tolist()])[np.searchsorted(TYPES, labels)]


def ours(vectors: np.ndarray, labels: np.ndarray, window: int | None = WINDOW) -> Answer:
    from rag_reliability.reliability.rerank import rerank
    from rag_reliability.retrieval.index import PartitionedIndex

    index = PartitionedIndex.build(vectors, labels)
    names, prior = names_of(len(vectors)), priors_of(labels)

    def answer(query: np.ndarray) -> list[str]:
        pool = index.search(query[None], window or K)
        return names[rerank(pool, prior, ["q"], names, K, window=window).docids[0]].tolist()

    return answer


def ours_exact(vectors: np.ndarray, labels: np.ndarray) -> Answer:
    return ours(vectors, labels, None)


def faiss(vectors: np.ndarray, labels: np.ndarray) -> Answer:
    import faiss as library

    index = library.IndexFlatIP(DIM)
    index.add(np.asarray(vectors))
    names, prior = names_of(len(vectors)), priors_of(labels)

    def answer(query: np.ndarray) -> list[str]:
        sims, rows = index.search(query[None], WINDOW)
        best = np.argsort(-sims[0] * prior[rows[0]], kind="stable")[:K]
        return names[rows[0][best]].tolist()

    return answer


def haystack_with(ranker: object, vectors: np.ndarray, labels: np.ndarray) -> Answer:
    from haystack import Document
    from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store = InMemoryDocumentStore(embedding_similarity_function="dot_product")
    rows = zip(names_of(len(vectors)).tolist(), labels.tolist(), vectors, strict=True)
    store.write_documents(
        [
            Document(n, n, meta={"source_type": t, "reliability": PRIORS[t]}, embedding=v.tolist())
            for n, t, v in rows
        ]
    )
    retriever = InMemoryEmbeddingRetriever(store, top_k=WINDOW, scale_score=False)

    def answer(query: np.ndarray, ranker: object = ranker) -> list[str]:
        found = retriever.run(query_embedding=query.tolist())["documents"]
        return [d.id for d in ranker.run(documents=found)["documents"]]

    return answer


def haystack(vectors: np.ndarray, labels: np.ndarray) -> Answer:
    from haystack.components.rankers import MetaFieldRanker

    ranker = MetaFieldRanker("reliability", weight=0.5, top_k=K, ranking_mode="linear_score")
    return haystack_with(ranker, vectors, labels)


def llamaindex(vectors: np.ndarray, labels: np.ndarray) -> Answer:
    from llama_index.core import MockEmbedding, QueryBundle, VectorStoreIndex
    from llama_index.core.schema import TextNode

    from rag_reliability.integrations.llamaindex import SourceReliabilityPostprocessor

    rows = zip(names_of(len(vectors)).tolist(), labels.tolist(), vectors, strict=True)
    nodes = [
        TextNode(id_=n, text=n, metadata={"source_type": t}, embedding=v.tolist())
        for n, t, v in rows
    ]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=DIM))
    retriever = index.as_retriever(similarity_top_k=WINDOW)
    ranker = SourceReliabilityPostprocessor(top_n=K, priors=PRIORS)

    def answer(query: np.ndarray) -> list[str]:
        found = retriever.retrieve(QueryBundle("", embedding=query.tolist()))
        return [node.node.node_id for node in ranker.postprocess_nodes(found)]

    return answer


SIDES = {f.__name__: f for f in (ours, ours_exact, faiss, haystack, llamaindex)}


def sides_for(n: int) -> list[str]:
    return [s for s in SIDES if n <= LARGEST_IN_LISTS or s not in ("haystack", "llamaindex")]


def metadata_linear(vectors: np.ndarray, labels: np.ndarray, query: np.ndarray) -> list[str]:
    """What Haystack's ranker must give, by this package's rule on the same window."""
    from rag_reliability.experiment.candidates import rank_candidates

    sims = vectors @ query
    near = np.argsort(-sims, kind="stable")[:WINDOW]
    order = rank_candidates(
        sims[near].tolist(), labels[near].tolist(), priors=PRIORS, rule="metadata_linear", k=K
    ).order
    return names_of(len(vectors))[near[order]].tolist()


def agreement(answers: dict[str, Answer], queries: np.ndarray, vectors, labels) -> dict:
    """Share of the questions in which an order is the one that it must be."""
    from rag_reliability.integrations.haystack import SourceReliabilityRanker

    def share(side: Answer, wanted: Answer) -> float:
        return float(np.mean([side(q) == wanted(q) for q in queries]))

    found = {s: share(answers[s], answers["ours"]) for s in ("faiss", "llamaindex") if s in answers}
    if "haystack" in answers:
        ranker = SourceReliabilityRanker(top_k=K, priors=PRIORS)
        found["haystack, our ranker"] = share(
            lambda q: answers["haystack"](q, ranker), answers["ours"]
        )
        found["haystack, our metadata_linear"] = share(
            answers["haystack"], lambda q: metadata_linear(vectors, labels, q)
        )
    return found


def measured(path: Path, seconds: float, checked: int) -> dict:
    vectors = np.load(path, mmap_mode="r")
    n, labels = len(vectors), labels_of(len(vectors))
    answers, build = {}, {}
    for name in sides_for(n):
        began = time.process_time()
        answers[name] = SIDES[name](vectors, labels)
        build[name] = round(time.process_time() - began, 2)
    queries = unit(np.random.default_rng(3), 1_000)
    agree = agreement(answers, queries[:checked], vectors, labels)  # warms all sides as well
    rounds, until = [], time.perf_counter() + seconds
    for query in queries[checked:]:
        rounds.append({s: timed(lambda a=a, q=query: a(q)) for s, a in answers.items()})
        if len(rounds) >= 3 and time.perf_counter() > until:
            break
    result = {"questions": len(rounds), "orders_equal": agree, "build_cpu_seconds": build}
    for i, clock in enumerate(("wall", "cpu")):
        result[clock] = summary([{s: both[i] for s, both in r.items()} for r in rounds])
    return result


def summary(rounds: Sequence[dict[str, float]]) -> dict:
    def median(values: list[float], digits: int) -> float:
        return round(float(np.median(values)), digits)

    return {
        "median_ms": {s: median([r[s] * 1e3 for r in rounds], 3) for s in rounds[0]},
        "over_ours": {s: median([r[s] / r["ours"] for r in rounds], 3) for s in rounds[0]},
    }


def memory(side: str, path: str) -> None:
    """Print bytes that one side takes: at most, and afterwards."""
    vectors = np.load(path, mmap_mode="r")
    labels, query = labels_of(len(vectors)), unit(np.random.default_rng(3), 1)[0]
    SIDES[side](vectors[:50], labels[:50])(query)  # loads libraries
    before = Peak._now()
    with Peak() as peak:
        answer = SIDES[side](vectors, labels)
        answer(query)
    print(json.dumps({"peak": peak.most - before, "held": Peak._now() - before}))


def peaks(path: Path, n: int) -> dict:
    found = {}
    for side in sides_for(n):
        command = [sys.executable, __file__, "--memory", side, str(path)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found[side] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", nargs="?", help="JSON file to write")
    parser.add_argument("--sizes", default="10000,100000")
    parser.add_argument("--seconds", type=float, default=60, help="of rounds for each size")
    parser.add_argument("--checked", type=int, default=3, help="questions for the orders")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--memory", nargs=2, metavar=("SIDE", "FILE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.memory:
        memory(*given.memory)
        return
    if not given.out:
        parser.error("name a JSON file to write")
    results: dict = {"window": WINDOW, "k": K, "dim": DIM, "sizes": {}}
    with tempfile.TemporaryDirectory() as folder:
        for n in map(int, given.sizes.split(",")):
            path = Path(folder) / "vectors.npy"
            make_vectors(path, n)
            result = measured(path, given.seconds, given.checked)
            results["sizes"][n] = result
            Path(given.out).write_text(json.dumps(results, indent=1) + "\n")
            print(n, json.dumps(result), flush=True)
            if not given.no_memory:
                result["memory_bytes"] = peaks(path, n)
                Path(given.out).write_text(json.dumps(results, indent=1) + "\n")
                print(n, json.dumps(result["memory_bytes"]), flush=True)


if __name__ == "__main__":
    main()
