"""Claims and passages with people's judgement, in two halves that share no question or passage."""

from __future__ import annotations

import csv
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from counter_claims import counter_claim, neighbours
from labelled_sets import expertqa_pairs, read_answers


@dataclass(frozen=True)
class Judged:
    """kind: the label, within set. cluster: question (or questions that share passages)."""

    set: str
    cluster: str
    question: str
    claim: str
    passages: tuple[str, ...]
    kind: str


TASKS = {
    "ExpertQA": ("expertqa", "complete", ("partial",)),
    "swaps": ("expertqa", "complete", ("swap",)),
    "HealthVer": ("healthver", "supports", ("neutral", "refutes")),
    "HealthVer, neutral": ("healthver", "supports", ("neutral",)),
    "HealthVer, refuted": ("healthver", "supports", ("refutes",)),
    "made counter-claims": ("made", "true", ("counter",)),
    "health answers": ("answers", "true", ("counter",)),
}
"""Task: set, kind that counts as supported, kinds that do not."""


def read_all(data: Path, encoder: Any, rng: np.random.Generator) -> list[Judged]:
    """Every labelled pair under the data folder, and counter-claims made from supported ones."""
    pairs = [*_expertqa(data / "expertqa" / "dev.jsonl", rng), *_healthver(data)]
    supported = [p for p in pairs if p.kind in ("complete", "supports")]
    near = neighbours(encoder, [p.claim for p in supported])
    for p in supported:
        changed = counter_claim(p.claim, near, rng)
        if changed is not None:
            pairs.append(Judged("made", p.cluster, p.question, p.claim, p.passages, "true"))
            pairs.append(Judged("made", p.cluster, p.question, changed[0], p.passages, "counter"))
    return pairs + _answers(data / "trec-hm-answers", encoder, rng)


def half_of(pairs: list[Judged], rng: np.random.Generator) -> np.ndarray:
    """A or B for each pair by its cluster; HealthVer's few large clusters are balanced by size.

    What may be tuned is tuned on A; B is looked at once.
    """
    size = Counter(p.cluster for p in pairs)
    half: dict[str, str] = {}
    for first in ("e", "h", "t"):
        group = sorted(c for c in size if c[0] == first)
        if first == "h":
            held = {"A": 0, "B": 0}
            for cluster in sorted(group, key=lambda c: (-size[c], c)):
                half[cluster] = min(held, key=lambda h: held[h])
                held[half[cluster]] += size[cluster]
        else:
            half |= {str(c): "AB"[i % 2] for i, c in enumerate(rng.permutation(group))}
    return np.array([half[p.cluster] for p in pairs])


def _expertqa(path: Path, rng: np.random.Generator) -> list[Judged]:
    asked = [json.loads(line)["question"] for line in path.read_text(encoding="utf-8").splitlines()]
    return [
        Judged("expertqa", f"e{p.question}", asked[p.question], p.claim, p.passages, p.kind)
        for p in expertqa_pairs(path, rng)
        if any(c.isalpha() for c in p.claim)
    ]


def _healthver(data: Path) -> list[Judged]:
    path = data / "healthver" / "healthver_dev.csv"
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    root: dict[str, str] = {}

    def find(name: str) -> str:
        while root.setdefault(name, name) != name:
            name = root[name]
        return name

    for row in rows:
        root[find("e" + row["evidence"])] = find("q" + row["question"])
    return [
        Judged(
            "healthver",
            "h" + find("q" + row["question"]),
            row["question"],
            row["claim"],
            (row["evidence"],),
            row["label"].lower(),
        )
        for row in rows
    ]


def _answers(folder: Path, encoder: Any, rng: np.random.Generator) -> list[Judged]:
    """Answers as passages, with the affirmation and the denial of their topic's question."""
    claims, answers = read_answers(folder, encoder, rng, 12)
    return [
        Judged(
            "answers",
            f"t{a.topic}",
            "",
            claim,
            (" ".join(a.sentences),),
            "true" if yes == a.yes else "counter",
        )
        for a in answers
        for claim, yes in ((claims[a.topic].gold, True), (claims[a.topic].false, False))
    ]
