"""How far label-free reliability is from the truth: synthetic sources, then TREC health answers.

Usage:

    python benchmarks/agreement_truth.py [--data ../shared/data/trec-hm-answers] [--seeds 20]

Prints Markdown tables of means over seeds. In the answers the source types were drawn at random, so
that they test the estimate and say nothing of real sources. Never reads corpus/. Some ten seconds.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from rag_reliability.reliability.agreement import agreement_reliability, distance_from_truth

ROOT = Path(__file__).resolve().parents[1]
HIGH = ("government", "peer_reviewed")
LOW = ("blog", "user_generated", "ai_generated")
HEAD = ("| {} | votes right | majority right | consensus right | error of p | pairs in order |",)

Draw = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]
"""Draws (votes (n_topics, n_sources), truth (n_topics,), reliability, trusted (n_sources,))."""


def synthetic(reliability: list[float], n_topics: int, trusted: int = 0, together: int = 0) -> Draw:
    """Sources of known reliability; the last ``together`` copy the lies of the first of them."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        p, truth = np.array(reliability), rng.choice([-1, 1], size=n_topics)
        votes = np.where(rng.random((n_topics, len(p))) < p, truth[:, None], -truth[:, None])
        if together:
            votes[:, -together:] = votes[:, [-together]]
        return votes, truth, p, np.arange(len(p)) < trusted

    return draw


def read_answers(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Topic, adversarial and source type of each answer, and how many had no sure topic.

    The judgements name the true answers' topics only. The file is in blocks by topic, so a wrong
    answer belongs to the topic of the true ones before and after it, where they agree.
    """
    lines = (folder / "qrels" / "dev.tsv").read_text(encoding="utf-8").splitlines()[1:]
    topic_of = {docno: qid for qid, docno, _ in (line.split("\t") for line in lines)}
    documents = [json.loads(line) for line in (folder / "corpus.jsonl").open(encoding="utf-8")]
    own = [topic_of.get(d["_id"]) for d in documents]
    before, after = _carried(own), _carried(own[::-1])[::-1]
    rows = [
        (b, d["metadata"]["adversarial"], d["metadata"]["source_type"])
        for d, b, a in zip(documents, before, after, strict=True)
        if a == b
    ]
    topic, adversarial, kind = (np.array(column) for column in zip(*rows, strict=True))
    return topic, adversarial.astype(bool), kind, len(documents) - len(rows)


def _carried(values: list[str | None]) -> list[str | None]:
    last, carried = None, []
    for value in values:
        last = value or last
        carried.append(last)
    return carried


def from_answers(
    folder: Path, counts: tuple[int, int], spoof: float = 0.0, trusted: bool = False
) -> Draw:
    """Each source answers each topic with one answer of its type, drawn at random.

    counts: sources of each high and of each low type. spoof: share of the wrong answers that take a
    high type. trusted: whether sources of high types start the estimate.
    """
    topic, adversarial, kind, _ = read_answers(folder)

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        declared = np.where(
            adversarial & (rng.random(len(kind)) < spoof), rng.choice(HIGH, len(kind)), kind
        )
        sources = [t for t in HIGH for _ in range(counts[0])]
        sources += [t for t in LOW for _ in range(counts[1])]
        qids = np.unique(topic)
        truth = rng.choice([-1, 1], size=len(qids))
        votes = np.zeros((len(qids), len(sources)), dtype=int)
        share = np.full((len(qids), len(sources)), np.nan)
        for row, qid in enumerate(qids):
            for column, source in enumerate(sources):
                own = np.flatnonzero((topic == qid) & (declared == source))
                if len(own):
                    wrong = adversarial[rng.choice(own)]
                    votes[row, column] = -truth[row] if wrong else truth[row]
                    share[row, column] = 1 - adversarial[own].mean()
        return votes, truth, np.nanmean(share, axis=0), np.isin(sources, HIGH) & trusted

    return draw


def measure(name: str, draw: Draw, seeds: int, own_vote: bool = False) -> str:
    """One row: means over seeds."""
    rows = []
    for seed in range(seeds):
        votes, truth, p, trusted = draw(np.random.default_rng(seed))
        start = trusted if trusted.any() else None
        found = agreement_reliability(votes, trusted=start, own_vote=own_vote)
        off = distance_from_truth(found.reliability, p)
        cast = votes != 0
        rows.append(
            (
                (votes == truth[:, None])[cast].mean(),
                _right(np.sign(votes.sum(axis=1)), truth),
                _right(found.consensus, truth),
                off["mean_error"],
                off["pairs_in_order"],
            )
        )
    means = np.nanmean(np.array(rows), axis=0)
    return f"| {name} | " + " | ".join(f"{v:.2f}" for v in means) + " |"


def _right(side: np.ndarray, truth: np.ndarray) -> float:
    """Share of topics on the true side; a tie counts one half."""
    return float(((side * truth + 1) / 2).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, default=ROOT.parent / "shared" / "data" / "trec-hm-answers"
    )
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    rule = "|---" * 6 + "|"
    spread, mixed = np.linspace(0.55, 0.95, 9).tolist(), [0.95, 0.9, 0.9, *[0.6] * 6]
    liars = [0.9, 0.9, 0.85, *[0.15] * 5]
    print(HEAD[0].format("synthetic sources"), rule, sep="\n")
    for name, draw, own in (
        ("9 sources, p .55–.95, 20 topics", synthetic(spread, 20), False),
        ("the same, 200 topics", synthetic(spread, 200), False),
        ("the same, each also against itself", synthetic(spread, 200), True),
        ("3 good, 6 at p = .6, 50 topics", synthetic(mixed, 50), False),
        ("the same 6 all copies of one", synthetic(mixed, 50, together=6), False),
        ("3 good, 5 at p = .15, 50 topics", synthetic(liars, 50), False),
        ("the same, 1 good one trusted", synthetic(liars, 50, trusted=1), False),
    ):
        print(measure(name, draw, given.seeds, own))
    folder = given.data
    print("", HEAD[0].format("answers to TREC health topics"), rule, sep="\n")
    for name, draw in (
        ("5 sources of each type, honest labels", from_answers(folder, (5, 5))),
        ("the same, 50 % spoofed", from_answers(folder, (5, 5), 0.5)),
        ("the same, all spoofed", from_answers(folder, (5, 5), 1.0)),
        ("2 of each high, 10 of each low type", from_answers(folder, (2, 10))),
        ("the same, high types trusted", from_answers(folder, (2, 10), trusted=True)),
        ("the same, trusted, 50 % spoofed", from_answers(folder, (2, 10), 0.5, True)),
        ("the same, trusted, all spoofed", from_answers(folder, (2, 10), 1.0, True)),
    ):
        print(measure(name, draw, given.seeds))
    topic, adversarial, kind, unsure = read_answers(folder)
    shares = {k: round(float(1 - adversarial[kind == k].mean()), 2) for k in (*HIGH, *LOW)}
    print(
        f"\n{len(topic)} answers, {len(np.unique(topic))} topics, {unsure} of unsure topic; true: "
    )
    print(shares)


if __name__ == "__main__":
    main()
