"""Pairs that people have labelled: any file of them, and the public sets that are at hand."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from rag_reliability.datasets.lines import json_lines
from rag_reliability.evaluation.pairs import Pair, withheld
from rag_reliability.experiment.grounding import read_pairs
from rag_reliability.records import InputError

LEAST_WORDS = 15
"""Evidence shorter than this is an address or a heading."""


def labelled_pairs(path: str | Path) -> list[Pair]:
    """Pairs with labels from a JSON Lines file of id, claim, passages, label, and perhaps group.

    Raises: InputError for a bad line, and for a file without labels of both kinds.
    """
    pairs = [p for p in read_pairs(Path(path)) if not withheld(p)]
    if {p.label for p in pairs} != {True, False}:
        raise InputError(f"{path}: every line needs a label, and there must be both true and false")
    if len({p.group for p in pairs}) < 2:
        raise InputError(f"{path}: all pairs are of one group; there must be at least two")
    return pairs


def expertqa(path: Path) -> list[Pair]:
    """ExpertQA's claims with their evidence; supported where experts said complete, not partial.

    Claims without evidence in words, and those whose support nobody judged, are left out.
    (Malaviya et al., NAACL 2024.)
    """
    kinds = {"Complete": True, "Partial": False, "Incomplete": False}
    found = []
    for number, (_, row) in enumerate(json_lines(path)):
        for system, answer in row["answers"].items():
            for place, claim in enumerate(answer["claims"]):
                texts = _evidence(claim["evidence"])
                if texts and claim["support"] in kinds:
                    label = kinds[claim["support"]]
                    name = f"{number}-{system}-{place}"
                    found.append(Pair(name, claim["claim_string"], texts, label, str(number)))
    return found


def _evidence(evidence: Sequence[str]) -> tuple[str, ...]:
    """Texts after the line with the address."""
    texts = [e.split("\n\n", 1)[1].strip() for e in evidence if "\n\n" in e]
    return tuple(t for t in texts if len(t.split()) >= LEAST_WORDS)


def healthver(path: Path, *, against: Sequence[str] = ("Neutral", "Refutes")) -> list[Pair]:
    """HealthVer's claims with one evidence each: supported, or labelled one of ``against``.

    (Sarrouti et al., Findings of EMNLP 2021.)
    """
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        Pair(r["id"], r["claim"], (r["evidence"],), r["label"] == "Supports", r["question"])
        for r in rows
        if r["label"] in ("Supports", *against)
    ]


PUBLIC: Mapping[str, tuple[str, Callable[[Path], list[Pair]]]] = {
    "expertqa": ("expertqa/dev.jsonl", expertqa),
    "healthver": ("healthver/healthver_dev.csv", healthver),
    "healthver_refuted": (
        "healthver/healthver_dev.csv",
        lambda path: healthver(path, against=("Refutes",)),
    ),
}
"""Public sets by name: their file in the folder of shared data, and its reader."""


def sample(pairs: Sequence[Pair], limit: int, seed: int) -> list[Pair]:
    """At most ``limit`` pairs drawn at random, in the order given."""
    if len(pairs) <= limit:
        return list(pairs)
    chosen = np.random.default_rng(seed).choice(len(pairs), size=limit, replace=False)
    return [pairs[i] for i in sorted(chosen)]


def unlabelled(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs as if nobody had labelled them."""
    return [replace(p, label=None) for p in pairs]
