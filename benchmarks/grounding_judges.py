"""Local models as judges of support, alone and with the cheap scorer, and larger encoders.

    python benchmarks/grounding_judges.py read MODEL … [--pairs 90] [--minutes 60]
    python benchmarks/grounding_judges.py report MODEL … [--pairs 90]

MODEL: names of configs/models.yaml, generators or encoders; the default encoder is read in any
case. ``read`` keeps what it has read in ``--cache`` and goes on from there; ``--pairs`` is how many
of each kind (docs/grounding-scorers.md has its times). ``report`` prints AUROC and differences from
the shipped default, every pair scored by a fit on the other half of the questions.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from claim_readings import Readings, read
from grounding_scorers import members
from judged_pairs import TASKS, Judged, half_of, read_all
from judged_sample import sampled

from rag_reliability import modelstore
from rag_reliability.evaluation.alignment import TextVectors, clean
from rag_reliability.evaluation.constants import load_constants
from rag_reliability.evaluation.coverage import coverage_parts
from rag_reliability.evaluation.meta import auroc_statistic
from rag_reliability.modelstore.catalogue import catalogue_path, read_catalogue
from rag_reliability.retrieval.encode import load_encoder

DEFAULT = "all-minilm-l6-v2"
QUESTIONS = ("true", "contradicts")
BLOCK = 15
"""Pairs of each kind that are read before the next model's turn."""
FITTED_TASKS = ("ExpertQA", "swaps", "HealthVer", "made counter-claims")
"""What blends are fitted on, each class of each task weighted alike; health answers are not."""
SHIPPED = "shipped default"
ROOT = Path(__file__).parents[1]


# --- reading -------------------------------------------------------------------------------------


def read_models(
    pairs: Sequence[Judged], order: Sequence[tuple[int, int]], args: argparse.Namespace
) -> None:
    """Read block by block, models in turn, until all is read or the minutes are over."""
    readings = Readings(args.cache)
    models = {name: _reader(name) for name in dict.fromkeys([DEFAULT, *args.models])}
    start = time.monotonic()
    for low in range(0, args.pairs, BLOCK):
        block = [pairs[i] for i, rank in order if low <= rank < min(low + BLOCK, args.pairs)]
        for name, (questions, reader) in models.items():
            asked = dict.fromkeys((p.claim, t) for p in block for t in _texts(p, questions))
            left = [one for one in asked if readings.known(name, one, questions) is None]
            began = time.process_time()
            for pair, found in reader(left):
                readings.keep(name, pair, questions, found)
                if time.monotonic() - start > 60 * args.minutes:
                    return
            spent = time.process_time() - began
            print(f"{name}: {low + BLOCK} of a kind, {len(left)} new, {spent:.0f} s", flush=True)


def _texts(pair: Judged, questions: Sequence[str]) -> tuple[str, ...]:
    """What a claim is read with: its passages, and nothing where beliefs are asked for."""
    return (*pair.passages, "") if questions else pair.passages


def _reader(name: str) -> tuple[tuple[str, ...], Any]:
    """Questions put to a model (none to an encoder), and what reads (claim, passage) pairs."""
    if _encodes(name):
        vectors = TextVectors(load_encoder(modelstore.resolve(name).path))
        return (), lambda asked: _encoded(vectors, asked)
    from rag_reliability.generation.models import load_generator

    generator = load_generator(name)
    return QUESTIONS, lambda asked: read(generator, asked, QUESTIONS)


def _encodes(name: str) -> bool:
    return read_catalogue(catalogue_path())[name].kind == "encoder"


def _encoded(
    vectors: TextVectors, asked: Sequence[tuple[str, str]]
) -> Iterator[tuple[tuple[str, str], dict[str, float]]]:
    for said, given in asked:
        alignment, gap = coverage_parts(vectors, [said], [given])
        claim, passage = vectors.get([clean(said), clean(given)])
        found = {"alignment": alignment[0], "gap": gap[0], "cosine": claim.whole @ passage.whole}
        yield (said, given), {name: float(value) for name, value in found.items()}


# --- scores --------------------------------------------------------------------------------------


class Signals:
    """Signals of every (pair, passage), (n_rows,) each, and what to do with them."""

    def __init__(self, pairs: Sequence[Judged], half: np.ndarray, cache: Path) -> None:
        self.rows = [(i, p.claim, t) for i, p in enumerate(pairs) for t in p.passages]
        self.owner = np.array([i for i, _, _ in self.rows])
        self.first = np.array([int(np.argmax(self.owner == i)) for i in range(len(pairs))])
        self.half, self.pairs, self._readings = half, pairs, Readings(cache)

    def of(self, model: str) -> dict[str, np.ndarray]:
        """A model's signals by name, more of each means more support."""
        if _encodes(model):
            found = self._column(model, (), with_passage=True)
            z = self._z(found["alignment"]) - 0.5 * found["gap"]
            return {"coverage": z, "cosine": found["cosine"]}
        found = self._column(model, QUESTIONS, with_passage=True)
        alone = self._column(model, QUESTIONS, with_passage=False)
        yes, contradicts = (
            (found[f"{q}/0"] + found[f"{q}/1"]) / 2 for q in ("true", "contradicts")
        )
        shift = yes - (alone["true/0"] + alone["true/1"]) / 2
        return {
            "true": yes,
            "true, one order": found["true/0"],
            "true − no passage": shift,
            "does not contradict": -contradicts,
            "true − no passage, and does not contradict": self._z(shift) - self._z(contradicts),
            "likelihood − no passage": found["likelihood"] - alone["likelihood"],
        }

    def shipped(self) -> np.ndarray:
        """The default scorer before its sigmoid."""
        c = load_constants(ROOT / "configs" / "grounding.yaml").coverage
        assert c is not None
        found = self._column(DEFAULT, (), with_passage=True)
        return (found["alignment"] - c.alignment_mean) / c.alignment_std - c.gap_weight * found[
            "gap"
        ]

    def _column(
        self, model: str, questions: Sequence[str], *, with_passage: bool
    ) -> dict[str, np.ndarray]:
        read_rows = [
            self._readings.known(model, (claim, text if with_passage else ""), questions) or {}
            for _, claim, text in self.rows
        ]
        return {name: np.array([row[name] for row in read_rows]) for name in read_rows[0]}

    def _z(self, values: np.ndarray) -> np.ndarray:
        return (values - values.mean()) / values.std()

    def best(self, values: np.ndarray) -> np.ndarray:
        """Largest over each pair's passages, (n_pairs,)."""
        out = np.full(len(self.pairs), -np.inf)
        np.maximum.at(out, self.owner, values)
        return out

    def blended(self, signals: Sequence[np.ndarray]) -> np.ndarray:
        """Logistic regression fitted on the other half, best passage of each pair, (n_pairs,)."""
        from sklearn.linear_model import LogisticRegression

        at, truth, weight = _labelled(self.pairs)
        x = np.stack([self._z(s) for s in signals], axis=1)
        out = np.zeros(len(self.pairs))
        for held in "AB":
            fit = self.half[at] != held
            model = LogisticRegression(C=1.0, max_iter=500)
            model.fit(x[self.first[at[fit]]], truth[fit], sample_weight=weight[fit])
            found = self.best(model.decision_function(x))
            out[self.half == held] = found[self.half == held]
        return out


def _labelled(pairs: Sequence[Judged]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places, labels and weights of what blends are fitted on; 100 for each class of each task."""
    at, truth, weight = [], [], []
    for task in FITTED_TASKS:
        for mask, label in zip(members(list(pairs), task), (1, 0), strict=True):
            places = np.flatnonzero(mask)
            at.append(places)
            truth.append(np.full(places.size, label))
            weight.append(np.full(places.size, 100 / max(places.size, 1)))
    return np.concatenate(at), np.concatenate(truth), np.concatenate(weight)


def all_scores(signals: Signals, models: Sequence[str]) -> dict[str, np.ndarray]:
    """Every scorer that was tried, (n_pairs,) each."""
    cheap = signals.shipped()
    scores = {SHIPPED: signals.best(cheap)}
    shifts, every = [], []
    for model in models:
        own = signals.of(model)
        scores |= {f"{model}: {name}": signals.best(values) for name, values in own.items()}
        if _encodes(model):
            continue
        shift, turn = own["true − no passage"], own["does not contradict"]
        lift = own["likelihood − no passage"]
        shifts.append(shift)
        every += [shift, turn, lift]
        z = signals._z
        scores[f"{model}: default + shift, equal weights"] = signals.best(z(cheap) + z(shift))
        for name, some in {
            "shift": [shift],
            "likelihood": [lift],
            "shift, contradiction": [shift, turn],
            "shift, contradiction, likelihood": [shift, turn, lift],
        }.items():
            scores[f"{model}: default + {name}, fitted"] = signals.blended([cheap, *some])
    if len(shifts) > 1:
        scores["all models: default + shifts, fitted"] = signals.blended([cheap, *shifts])
        scores["all models: default + all, fitted"] = signals.blended([cheap, *every])
    return scores


# --- report --------------------------------------------------------------------------------------


def two_halves(values: np.ndarray, truth: np.ndarray, half: np.ndarray) -> Any:
    """AUROC within each half, averaged, as a function of weights: fits are of either half."""
    inside = [half == h for h in "AB"]
    parts = [auroc_statistic(values[mask], truth[mask]) for mask in inside]

    def statistic(weights: np.ndarray) -> float:
        return float(np.mean([part(weights[m]) for part, m in zip(parts, inside, strict=True)]))

    return statistic


def report(scores: dict[str, np.ndarray], pairs: Sequence[Judged], half: np.ndarray) -> None:
    """Print AUROC by task, and differences from the shipped default with 95 % intervals."""
    print(f"{len(scores)} scorers")
    cluster = np.array([p.cluster for p in pairs])
    for task in TASKS:
        yes, no = members(list(pairs), task)
        use = yes | no
        groups, place = np.unique(cluster[use], return_inverse=True)
        rng = np.random.default_rng(3)
        counts = rng.multinomial(len(groups), np.full(len(groups), 1 / len(groups)), size=1000)
        of = {n: two_halves(v[use], yes[use], half[use]) for n, v in scores.items()}
        drawn = {n: np.array([f(c[place].astype(float)) for c in counts]) for n, f in of.items()}
        print(f"\n{task}: {yes.sum()} supported, {no.sum()} not, {len(groups)} clusters")
        for name, statistic in of.items():
            low, high = np.nanquantile(drawn[name], [0.025, 0.975])
            gap = drawn[name] - drawn[SHIPPED]
            down, up = np.nanquantile(gap, [0.025, 0.975])
            value = statistic(np.ones(int(use.sum())))
            print(
                f"{name:<75} {value:.3f} [{low:.3f}, {high:.3f}]"
                f"  {np.nanmean(gap):+.3f} [{down:+.3f}, {up:+.3f}]"
            )


def main() -> None:
    """Read or report."""
    kind = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=kind)
    parser.add_argument("what", choices=["read", "report"])
    parser.add_argument("models", nargs="*")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    cache = modelstore.cache_dir() / "grounding-judges.sqlite"
    parser.add_argument("--cache", type=Path, default=cache)
    parser.add_argument("--pairs", type=int, default=90)
    parser.add_argument("--minutes", type=float, default=24 * 60)
    args = parser.parse_args()
    encoder = load_encoder(modelstore.resolve(DEFAULT).path)
    pairs = read_all(args.data, encoder, np.random.default_rng(4))
    half = half_of(pairs, np.random.default_rng(11))
    order = sampled(pairs)
    if args.what == "read":
        read_models(pairs, order, args)
        return
    kept = [i for i, rank in order if rank < args.pairs]
    chosen = [pairs[i] for i in kept]
    report(all_scores(Signals(chosen, half[kept], args.cache), args.models), chosen, half[kept])


if __name__ == "__main__":
    main()
