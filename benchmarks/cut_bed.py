"""A smaller testbed: some of the topics and documents of a folder, drawn by hash.

    python benchmarks/cut_bed.py --data BED --out DIR [--topics 40] [--documents 1500]

Kept are the judged topics of smallest hash and, of the documents, all that are adversarial or
judged for a kept topic, filled up by hash. A larger number keeps the smaller one's. For machines
that cannot read a whole bed.
"""

from __future__ import annotations

import argparse
import hashlib
from dataclasses import replace
from pathlib import Path

from rag_reliability.datasets.read import read_corpus
from rag_reliability.datasets.write import write_beir
from rag_reliability.records import Corpus


def cut(corpus: Corpus, n_topics: int, n_documents: int) -> Corpus:
    """The corpus with at most so many topics and documents."""
    judged = [t for t in corpus.topics if corpus.qrels.get(t.qid)]
    topics = sorted(judged, key=lambda t: _hash(t.qid))[:n_topics]
    qrels = {t.qid: corpus.qrels[t.qid] for t in topics}
    needed = {docno for labels in qrels.values() for docno in labels}
    needed |= set(corpus.docnos[corpus.adversarial].tolist())
    rest = sorted((d for d in corpus.docnos.tolist() if d not in needed), key=_hash)
    kept = needed | set(rest[: max(0, n_documents - len(needed))])
    documents = tuple(d for d in corpus.documents if d.docno in kept)
    order = {t.qid for t in topics}
    return replace(
        corpus,
        documents=documents,
        topics=tuple(t for t in corpus.topics if t.qid in order),
        qrels=qrels,
    )


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def main() -> None:
    """Cut and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--topics", type=int, default=40)
    parser.add_argument("--documents", type=int, default=1500)
    args = parser.parse_args()
    smaller = cut(read_corpus(args.data), args.topics, args.documents)
    write_beir(smaller, args.out)
    print(f"{args.out}: {len(smaller.documents)} documents, {len(smaller.topics)} topics")


if __name__ == "__main__":
    main()
