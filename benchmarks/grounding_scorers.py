"""Scorers of support against people's labels: the table of docs/grounding-scorers.md.

    python benchmarks/grounding_scorers.py [ENCODER] [--data ../shared/data] [--half B] [--pairs N]

Prints AUROC by task, then paired differences from the chosen scorer with 95 % intervals over
resampled clusters. Combinations are fitted on half A, cross-fitted where half A is reported.
About five minutes on two idle cores; ``--pairs 15`` of each kind show in one that it works.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from cheap_signals import Signals
from judged_pairs import TASKS, Judged, half_of, read_all
from judged_sample import sampled

from rag_reliability.evaluation.alignment import TextVectors, clean
from rag_reliability.evaluation.stance import auroc
from rag_reliability.modelstore import resolve
from rag_reliability.retrieval.encode import load_encoder

CHOSEN = "content alignment − ½ polarity gap"
EQUAL_WEIGHTS: dict[str, dict[str, float]] = {
    "cosine + alignment (before)": {"cosine": 1, "alignment": 1},
    "cosine + alignment + content-word recall": {
        "cosine": 1,
        "alignment": 1,
        "content-word recall": 1,
    },
    CHOSEN: {"content alignment": 1, "polarity": 0.5},
    "soft minimum, β = 2, − ½ polarity gap": {"soft minimum, β = 2": 1, "polarity": 0.5},
    "chosen + ½ content-word recall": {
        "content alignment": 1,
        "content-word recall": 0.5,
        "polarity": 0.5,
    },
    "chosen + ½ cosine": {"content alignment": 2 / 3, "cosine": 1 / 3, "polarity": 0.5},
    "question's words out − ½ polarity gap": {"what the question lacks": 1, "polarity": 0.5},
}
"""Weights of z-scores; polarity is taken as it is, in [−1, 0]."""
FITTED_TASKS = ("ExpertQA", "swaps", "HealthVer", "made counter-claims")
ONE_SIDED = ("claim length", "passage length", "claim with question")


class Table:
    """Signals of every pair's passages, and what to do with them."""

    def __init__(self, pairs: list[Judged], signals: Signals) -> None:
        rows = [
            (i, signals.of(p.claim, t, p.question)) for i, p in enumerate(pairs) for t in p.passages
        ]
        self.names = list(rows[0][1])
        self.owner = np.array([i for i, _ in rows])
        self.x = np.array([list(values.values()) for _, values in rows])
        self.z = (self.x - self.x.mean(axis=0)) / self.x.std(axis=0)
        self.n = len(pairs)

    def best(self, scores: np.ndarray) -> np.ndarray:
        """Largest score over each pair's passages, (n_pairs,)."""
        out = np.full(self.n, -np.inf)
        np.maximum.at(out, self.owner, scores)
        return out

    def weighted(self, weights: dict[str, float]) -> np.ndarray:
        """Score of each pair by fixed weights."""
        columns = {
            n: (self.x if n == "polarity" else self.z)[:, i] for i, n in enumerate(self.names)
        }
        return self.best(np.sum([w * columns[n] for n, w in weights.items()], axis=0))


def fitted(table: Table, pairs: list[Judged], half: np.ndarray, boosted: bool) -> np.ndarray:
    """Logistic regression (or small boosted trees) on all signals but the one-sided ones."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    used = [i for i, n in enumerate(table.names) if n not in ONE_SIDED]
    first = np.array([np.flatnonzero(table.owner == i)[0] for i in range(table.n)])
    rows, truth, weight = [], [], []
    for task in FITTED_TASKS:
        yes, no = members(pairs, task)
        for mask, label in ((yes, 1), (no, 0)):
            at = np.flatnonzero(mask)
            rows.append(at)
            truth.append(np.full(at.size, label))
            weight.append(np.full(at.size, 1000 / at.size))
    at, y, w = map(np.concatenate, (rows, truth, weight))
    clusters = sorted({p.cluster for p in pairs})
    fold_of = {c: i % 5 for i, c in enumerate(np.random.default_rng(5).permutation(clusters))}
    fold = np.array([fold_of[p.cluster] for p in pairs])
    out = np.zeros(table.n)
    for i in range(6):  # five folds of A, then all of A for B
        fit = (half[at] == "A") & (fold[at] != i)
        held = (half == "A") & (fold == i) if i < 5 else half == "B"
        model = (
            HistGradientBoostingClassifier(max_iter=80, max_leaf_nodes=4, random_state=0)
            if boosted
            else LogisticRegression(C=0.1, max_iter=500)
        )
        model.fit(table.z[first[at[fit]]][:, used], y[fit], sample_weight=w[fit])
        out[held] = table.best(model.decision_function(table.z[:, used]))[held]
    return out


def members(pairs: list[Judged], task: str) -> tuple[np.ndarray, np.ndarray]:
    """Masks of a task's supported and other pairs."""
    name, yes, no = TASKS[task]
    inside = np.array([p.set == name for p in pairs])
    kind = np.array([p.kind for p in pairs])
    return inside & (kind == yes), inside & np.isin(kind, no)


def resampled(
    scores: dict[str, np.ndarray], truth: np.ndarray, clusters: np.ndarray, n: int, seed: int
) -> dict[str, np.ndarray]:
    """AUROC of each scorer in ``n`` bootstraps over whole clusters, the same ones for all."""
    rng = np.random.default_rng(seed)
    places = [np.flatnonzero(clusters == c) for c in np.unique(clusters)]
    drawn: dict[str, list[float]] = {name: [] for name in scores}
    for _ in range(n):
        at = np.concatenate([places[i] for i in rng.integers(len(places), size=len(places))])
        if truth[at].any() and not truth[at].all():
            for name, values in scores.items():
                drawn[name].append(auroc(values[at], truth[at]))
    return {name: np.array(values) for name, values in drawn.items()}


def report(scores: dict[str, np.ndarray], pairs: list[Judged], use: np.ndarray) -> None:
    """Print both tables."""
    width = max(map(len, scores))
    masks = {task: members(pairs, task) for task in TASKS}
    print(" " * width, *(f"{task:>20}" for task in TASKS))
    for name, values in scores.items():
        cells = [
            auroc(values[(yes | no) & use], yes[(yes | no) & use]) for yes, no in masks.values()
        ]
        print(f"{name:<{width}}", *(f"{cell:20.3f}" for cell in cells))
    cluster = np.array([p.cluster for p in pairs])
    for task, (yes, no) in masks.items():
        inside = (yes | no) & use
        picked = {n: v[inside] for n, v in scores.items()}
        drawn = resampled(picked, yes[inside], cluster[inside], 1000, 3)
        print(f"\n{task}: {int((yes & use).sum())} supported, {int((no & use).sum())} not")
        for name, values in drawn.items():
            gap = values - drawn[CHOSEN]
            low, high = np.quantile(values, [0.025, 0.975])
            down, up = np.quantile(gap, [0.025, 0.975])
            print(
                f"{name:<{width}} [{low:.3f}, {high:.3f}]",
                f" {gap.mean():+.3f} [{down:+.3f}, {up:+.3f}]",
            )


def main() -> None:
    """Read, score, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("encoder", nargs="?", default="all-minilm-l6-v2", help="name or folder")
    root = Path(__file__).parents[1]
    parser.add_argument("--data", type=Path, default=root.parent / "shared" / "data")
    parser.add_argument("--half", choices=["A", "B"], default="B")
    parser.add_argument("--pairs", type=int, help="of each kind; without it all")
    args = parser.parse_args()
    encoder = load_encoder(resolve(args.encoder).path)
    pairs = read_all(args.data, encoder, np.random.default_rng(4))
    half = half_of(pairs, np.random.default_rng(11))
    if args.pairs:
        kept = [i for i, rank in sampled(pairs) if rank < args.pairs]
        pairs, half = [pairs[i] for i in kept], half[kept]
    vectors = TextVectors(encoder, capacity=2**33)
    texts = dict.fromkeys(clean(t) for p in pairs for t in (p.claim, p.question, *p.passages) if t)
    vectors.get(sorted(texts, key=len))
    lines = (args.data / "liveqa-medquad" / "corpus.jsonl").open(encoding="utf-8")
    table = Table(pairs, Signals(encoder, vectors, (json.loads(x)["text"][:1500] for x in lines)))
    scores = {n: table.best(table.z[:, i]) for i, n in enumerate(table.names)}
    scores |= {name: table.weighted(weights) for name, weights in EQUAL_WEIGHTS.items()}
    scores["logistic regression, all signals"] = fitted(table, pairs, half, boosted=False)
    scores["boosted trees, all signals"] = fitted(table, pairs, half, boosted=True)
    report(scores, pairs, half == args.half)


if __name__ == "__main__":
    main()
