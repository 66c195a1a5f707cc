"""Students of what several signals of support agree on, taught without labels.

    python benchmarks/distilled_support.py [--pool 2000] [--readings 500]

Teachers: the default scorer, shared content words, the encoder's cosine, a small generator's yes.
Students learn from half A's claims and passages, no label looked at, and are read on half B.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from cheap_signals import Signals
from claim_readings import Readings, read
from counter_claims import counter_claim, neighbours
from grounding_judges import DEFAULT, QUESTIONS, ROOT
from grounding_scorers import CHOSEN, ONE_SIDED, Table, report
from judged_pairs import Judged, half_of, read_all
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rag_reliability import modelstore
from rag_reliability.evaluation.alignment import TextVectors, clean
from rag_reliability.evaluation.constants import load_constants
from rag_reliability.retrieval.encode import load_encoder

JUDGE = "qwen2.5-coder-0.5b-instruct"
TARGETS = ("ranks", "z-scores", "agreed")
RIDGE = make_pipeline(StandardScaler(), RidgeCV(np.logspace(0, 5, 11)))
"""Its strength by leave-one-out on the teacher's word."""
TREES = HistGradientBoostingRegressor(max_iter=80, max_leaf_nodes=4, random_state=0)
UNUSED = (*ONE_SIDED, "what the question lacks")
"""Signals that no student sees: artefacts, and what needs a question."""


def pool(pairs: Sequence[Judged], encoder: Any, rng: np.random.Generator) -> list[Judged]:
    """Claims with two passages given with them, one of their question's, one of another's.

    And a counter-claim of each with one of its passages; in random order, without labels.
    """
    own: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for p in pairs:
        if p.set in ("expertqa", "healthver") and p.kind != "swap":
            own[p.set, p.cluster, p.claim] |= set(p.passages)
    near = neighbours(encoder, [claim for _, _, claim in own])
    made = []
    for (name, cluster, claim), texts in own.items():
        given = list(map(str, rng.permutation(sorted(texts))))
        here = {t for (_, c, _), ts in own.items() if c == cluster for t in ts} - texts
        away = {t for (s, c, _), ts in own.items() if s == name and c != cluster for t in ts}
        others = [str(rng.choice(sorted(ts))) for ts in (here, away) if ts]
        changed = counter_claim(claim, near, rng)
        rows = [(claim, text) for text in (*given[:2], *others)]
        rows += [(changed[0], given[0])] if changed else []
        made += [Judged(name, cluster, "", said, (text,), "") for said, text in rows]
    return [made[i] for i in rng.permutation(len(made))]


def read_before(pairs: Sequence[Judged], cache: Path) -> list[Judged]:
    """Pairs that ``grounding_judges.py`` has read, one a passage; not the health answers."""
    known = Readings(cache)
    return [
        Judged(p.set, p.cluster, "", p.claim, (t,), "")
        for p in pairs
        for t in p.passages
        if p.set != "answers" and known.known(JUDGE, (p.claim, t), QUESTIONS)
    ]


def readings_of(asked: Sequence[tuple[str, str]], cache: Path, most: int) -> np.ndarray:
    """The generator's log-odds of yes for (claim, passage), both orders averaged; NaN: not read.

    Reads the first ones until ``most`` are known, with those that were before.
    """
    known = Readings(cache)
    new = [a for a in asked if known.known(JUDGE, a, QUESTIONS) is None]
    left = list(dict.fromkeys(new))[: max(0, most - len(asked) + len(new))]
    if left:
        from rag_reliability.generation.models import load_generator

        for pair, found in read(load_generator(JUDGE), left, QUESTIONS):
            known.keep(JUDGE, pair, QUESTIONS, found)
    rows = [known.known(JUDGE, a, QUESTIONS) for a in asked]
    return np.array([(r["true/0"] + r["true/1"]) / 2 if r else np.nan for r in rows])


def cheap_teachers(table: Table) -> np.ndarray:
    """The default scorer before its sigmoid, content-word recall and cosine, (n_rows, 3)."""
    c = load_constants(ROOT / "configs" / "grounding.yaml").coverage
    assert c is not None
    x = dict(zip(table.names, table.x.T, strict=True))
    aligned = (x["content alignment"] - c.alignment_mean) / c.alignment_std
    default = aligned + c.gap_weight * x["polarity"]
    return np.stack([default, x["content-word recall"], x["cosine"]], axis=1)


def taught(signals: np.ndarray, fit: np.ndarray, target: str) -> np.ndarray:
    """What a teacher says of each row, (n_rows,); places and spread are those of rows ``fit``.

    agreed: 1 where every signal is above its median, 0 where every one is below, else NaN.
    """
    if target == "z-scores":
        return ((signals - signals[fit].mean(axis=0)) / signals[fit].std(axis=0)).mean(axis=1)
    rank = np.stack([_rank(column, column[fit]) for column in signals.T], axis=1)
    if target == "ranks":
        return rank.mean(axis=1)
    above = (rank > 0.5).mean(axis=1)
    return np.where((above == 0) | (above == 1), above, np.nan)


def _rank(values: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Share of ``among`` that is smaller, equal ones by half; NaN stays NaN."""
    ordered = np.sort(among)
    left, right = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
    return np.where(np.isnan(values), np.nan, (left + right) / (2 * among.size))


def heads(vectors: TextVectors, asked: Sequence[tuple[str, str]]) -> np.ndarray:
    """Claim vector, passage vector, their product and absolute difference, (n_rows, 4 dim)."""
    claims, passages = (
        np.stack([v.whole for v in vectors.get(map(clean, side))])
        for side in zip(*asked, strict=True)
    )
    return np.hstack([claims, passages, claims * passages, np.abs(claims - passages)])


def all_scores(
    table: Table, yes: np.ndarray, n_fit: int, kinds: dict[str, tuple[Any, np.ndarray]]
) -> dict[str, np.ndarray]:
    """The default, teachers, and students by kind (a model, its columns), each (n_rows,).

    Rows before ``n_fit`` have no labels: students are taught on them and say nothing of them.
    """
    cheap = cheap_teachers(table)
    scores = {CHOSEN: cheap[:, 0], "0.5 B alone": yes}
    every = {"three": cheap, "four": np.column_stack([cheap, yes])}
    for teacher, signals in every.items():
        fit = np.flatnonzero(~np.isnan(signals[:n_fit]).any(axis=1))
        rank = np.stack([_rank(s[fit], s[fit]) for s in signals.T])
        print(f"{teacher}: rank correlations\n{np.corrcoef(rank).round(2)}")
        for target in TARGETS:
            wanted = taught(signals, fit, target)
            at = fit[~np.isnan(wanted[fit])]
            print(f"{teacher}, {target}: {at.size} pairs, mean {wanted[at].mean():.2f}", flush=True)
            if target != "agreed":
                scores[f"teacher: {teacher}, {target}"] = wanted
            for name, (model, x) in kinds.items():
                said = model.fit(x[at], wanted[at]).predict(x[n_fit:])
                scores[f"{name}: {teacher}, {target}"] = np.append(np.zeros(n_fit), said)
    return scores


def main() -> None:
    """Teach, read half B, print."""
    kind = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=kind)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    cache = modelstore.cache_dir() / "grounding-judges.sqlite"
    parser.add_argument("--cache", type=Path, default=cache, help="readings that are kept")
    parser.add_argument("--pool", type=int, default=2000, help="pairs without labels, at most")
    parser.add_argument("--readings", type=int, default=500, help="of these, by the generator")
    args = parser.parse_args()
    encoder = load_encoder(modelstore.resolve(DEFAULT).path)
    pairs = read_all(args.data, encoder, np.random.default_rng(4))
    half = half_of(pairs, np.random.default_rng(11))
    of = {h: [p for p, own in zip(pairs, half, strict=True) if own == h] for h in "AB"}
    made = pool(of["A"], encoder, np.random.default_rng(7))[: args.pool]
    first = list(dict.fromkeys([*read_before(of["A"], args.cache), *made]))
    both = first + [replace(p, question="") for p in of["B"]]
    vectors = TextVectors(encoder, capacity=2**33)
    vectors.get(sorted({clean(t) for p in both for t in (p.claim, *p.passages)}, key=len))
    with (args.data / "liveqa-medquad" / "corpus.jsonl").open(encoding="utf-8") as lines:
        said = (json.loads(line)["text"][:1500] for line in lines)
        table = Table(both, Signals(encoder, vectors, said))
    asked, n = [(p.claim, t) for p in both for t in p.passages], len(first)
    known = readings_of(asked[:n], args.cache, args.readings), readings_of(asked[n:], args.cache, 0)
    x = table.x[:, [i for i, name in enumerate(table.names) if name not in UNUSED]]
    kinds = {"ridge": (RIDGE, x), "trees": (TREES, x), "head": (RIDGE, heads(vectors, asked))}
    scores = all_scores(table, np.concatenate(known), n, kinds)
    found = {name: table.best(values)[n:] for name, values in scores.items()}
    was_read = ~np.isnan(found["0.5 B alone"])
    whole = {name: s for name, s in found.items() if not np.isnan(s).any()}
    print(f"{len(whole)} scorers, {n} pairs without labels")
    report(whole, both[n:], np.ones(len(was_read), dtype=bool))
    print(f"\nTeachers, on the {was_read.sum()} pairs of half B that the generator has read")
    few = [CHOSEN, *(name for name in found if name.startswith(("teacher", "0.5")))]
    report({name: found[name] for name in few}, both[n:], was_read)


if __name__ == "__main__":
    main()
