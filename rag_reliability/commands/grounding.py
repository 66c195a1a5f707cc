"""Score how far passages support claims."""

from __future__ import annotations

import argparse
from typing import Any

from rag_reliability.records import InputError


def add(commands: Any) -> None:
    """Declare ``score-grounding``."""
    about = "score how far passages support claims, for a file of any length"
    sub = commands.add_parser("score-grounding", help=about)
    sub.add_argument(
        "--pairs",
        required=True,
        metavar="FILE.jsonl",
        help='lines {"id": …, "claim": "…", "passages": ["…", …]}',
    )
    sub.add_argument(
        "--out",
        required=True,
        metavar="FILE.jsonl",
        help="lines of id, support, band, best_passage, span, recall, flags, in the same order",
    )
    sub.add_argument(
        "--judge",
        metavar="MODEL",
        help="score with an NLI or a language model instead: a catalogue name, path or hub id",
    )
    sub.add_argument(
        "--labels",
        metavar="NAME=COLUMN,…",
        help="columns of an NLI model's labels, if its config does not name them: "
        "entailment=0,neutral=1,contradiction=2",
    )
    sub.set_defaults(run=_score_grounding)


def _score_grounding(args: argparse.Namespace) -> None:
    from rag_reliability.experiment.grounding import score_grounding

    print(score_grounding(args.pairs, args.out, args.judge, labels=_labels(args.labels)))


def _labels(text: str | None) -> dict[str, int] | None:
    if text is None:
        return None
    found: dict[str, int] = {}
    for item in text.split(","):
        name, _, column = item.partition("=")
        if not column.strip().isdecimal() or name.strip() in found:
            raise InputError(f"--labels {text}: expected NAME=COLUMN,…, each name once")
        found[name.strip()] = int(column)
    return found
