"""Priors by source type from the experts of ExpertQA; writes configs/priors-expertqa.yaml.

Usage:

    python benchmarks/expertqa_priors.py [--data ../shared/data/expertqa] [--out FILE]

ExpertQA (Malaviya et al., NAACL 2024; MIT licence): experts called the source of a claim's evidence
reliable, somewhat reliable or not reliable at all. Never reads corpus/. A few seconds.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from expertqa_hosts import OTHER, UNIVERSITY, host_of, type_of

from rag_reliability.reliability.learning import Posteriors, host_posteriors, type_posteriors
from rag_reliability.reliability.priors import load_priors

CODINGS: Mapping[str, Mapping[str, float]] = {
    "expertqa": {"Reliable": 1.0, "Somewhat reliable": 0.5, "Not reliable at all": 0.0},
    "expertqa_strict": {"Reliable": 1.0, "Somewhat reliable": 0.0, "Not reliable at all": 0.0},
    "expertqa_lenient": {"Reliable": 1.0, "Somewhat reliable": 1.0, "Not reliable at all": 0.0},
}
ROOT = Path(__file__).resolve().parents[1]


def judged_hosts(path: Path, worth: Mapping[str, float]) -> tuple[list[str], list[float], int]:
    """(host, reliability) of each question and host, the mean over its claims; claims set aside.

    Claims of one answer share expert and evidence, so a question counts a host once. A claim with
    evidence from several hosts does not say which of them was meant, and is set aside.
    """
    found: dict[tuple[int, str], list[float]] = defaultdict(list)
    aside = 0
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        for answer in json.loads(line)["answers"].values():
            for claim in answer["claims"]:
                hosts = {host_of(e) for e in claim["evidence"]} - {None}
                if claim["reliability"] not in worth or not hosts:
                    continue
                if len(hosts) > 1:
                    aside += 1
                    continue
                found[number, str(hosts.pop())].append(worth[claim["reliability"]])
    return [h for _, h in found], [float(np.mean(v)) for v in found.values()], aside


def measured(path: Path, known: tuple[str, ...], coding: str) -> Posteriors:
    """Posteriors of the known types, universities and all other hosts under one coding."""
    hosts, reliable, _ = judged_hosts(path, CODINGS[coding])
    return type_posteriors([type_of(h) for h in hosts], reliable, (*known, UNIVERSITY, OTHER))


def spread_lines(name: str, note: str, table: Mapping[str, float], notes: Mapping[str, str]) -> str:
    """One spread as YAML, a comment above it and one behind each number."""
    rows = [f"    {k}: {v:.3f}{'  # ' + notes[k] if k in notes else ''}" for k, v in table.items()]
    return "\n".join([f"  # {note}", f"  {name}:", *rows])


def render(path: Path, hand: Mapping[str, Mapping[str, float]]) -> str:
    """The whole file: the hand-set spreads a study needs, then the measured ones."""
    known = tuple(hand["current"])
    parts = [
        spread_lines("none", "Similarity alone.", hand["none"], {}),
        spread_lines("current", "Hand-set, as in priors.yaml.", hand["current"], {}),
    ]
    about = {
        "expertqa": "Posterior means; somewhat reliable counts one half.",
        "expertqa_strict": "Posterior means; only reliable counts.",
        "expertqa_lenient": "Posterior means; somewhat reliable counts in full.",
    }
    for coding, note in about.items():
        found = measured(path, known, coding)
        parts.append(_spread(coding, note, found, found.mean, hand["current"]))
        if coding == "expertqa":
            for name, end in zip(("low", "high"), found.interval(), strict=True):
                text = f"The {name} end of the 95 % credible intervals of `expertqa`."
                parts.append(_spread(f"expertqa_{name}", text, found, end, hand["current"]))
    return HEADER + "\nspreads:\n" + "\n\n".join(parts) + "\n\nsources: {}\n"


def _spread(
    name: str, note: str, found: Posteriors, values: np.ndarray, hand: Mapping[str, float]
) -> str:
    by_type = dict(zip(found.names, zip(values, found.n, strict=True), strict=True))
    table = {k: float(by_type[k][0]) if by_type[k][1] else hand[k] for k in hand}
    notes = {k: f"n = {by_type[k][1]:.0f}" if by_type[k][1] else "no data: hand-set" for k in hand}
    return spread_lines(name, note, table, notes)


HEADER = """\
# Reliability priors λ of the source types, measured. Made by benchmarks/expertqa_priors.py; the
# numbers are read from ExpertQA (C. Malaviya et al., ExpertQA: Expert-Curated Questions and
# Attributed Answers, NAACL 2024; MIT licence), of which nothing else is here.
#
# Each is the mean of Beta(1/2 + r, 1/2 + n - r): of n pairs of question and host, experts called r
# reliable. Hosts became types by the rules of benchmarks/expertqa_hosts.py. Most hosts are of no
# type here and are left out (docs/learned-priors.md has them). Experts judged pages that search
# engines and language models chose to cite, so a type is seen at its better end; nothing in
# ExpertQA is AI-generated. Use it with:  -p priors configs/priors-expertqa.yaml -p spread expertqa
"""


def tables(path: Path, known: tuple[str, ...]) -> str:
    """Every type's posterior under every coding, and the hosts judged most often, as Markdown."""
    lines = ["| type | n | " + " | ".join(CODINGS) + " |", "|---|---|" + "---|" * len(CODINGS)]
    found = [measured(path, known, coding) for coding in CODINGS]
    ends = [f.interval() for f in found]
    for i, name in enumerate(found[0].names):
        cells = [
            f"{f.mean[i]:.2f} [{lo[i]:.2f}, {hi[i]:.2f}]"
            for f, (lo, hi) in zip(found, ends, strict=True)
        ]
        lines.append(f"| {name} | {found[0].n[i]:.0f} | {' | '.join(cells)} |")
    hosts, reliable, aside = judged_hosts(path, CODINGS["expertqa"])
    kinds = [type_of(h) for h in hosts]
    each = host_posteriors(hosts, kinds, reliable, (*known, UNIVERSITY, OTHER))
    low, high = each.interval()
    lines += ["", f"{len(hosts)} pairs, {len(set(hosts))} hosts, {aside} claims set aside", ""]
    lines += ["| host | type | n | alone | shrunk |", "|---|---|---|---|---|"]
    for i in np.argsort(-each.n, kind="stable")[:12].tolist():
        host = each.names[i]
        own = np.mean([r for h, r in zip(hosts, reliable, strict=True) if h == host])
        shrunk = f"{each.mean[i]:.2f} [{low[i]:.2f}, {high[i]:.2f}]"
        lines.append(f"| {host} | {type_of(host)} | {each.n[i]:.0f} | {own:.2f} | {shrunk} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "expertqa")
    parser.add_argument("--out", type=Path, default=ROOT / "configs" / "priors-expertqa.yaml")
    given = parser.parse_args()
    hand, data = load_priors(ROOT / "configs" / "priors.yaml").spreads, given.data / "dev.jsonl"
    given.out.write_text(render(data, hand), encoding="utf-8")
    load_priors(given.out)
    print(tables(data, tuple(hand["current"])))


if __name__ == "__main__":
    main()
