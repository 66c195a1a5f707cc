"""Compare two finished runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rag_reliability.commands.base import here
from rag_reliability.records import InputError
from rag_reliability.text import plain


def add(commands: Any) -> None:
    """Declare ``compare``."""
    sub = commands.add_parser("compare", help="compare two runs with paired tests, on one page")
    sub.add_argument("run_a", metavar="RUN", help="folder of the run that is the yardstick (A)")
    sub.add_argument("run_b", metavar="RUN", help="folder of the run to set beside it (B)")
    sub.add_argument("--out", required=True, help="folder to write page, CSV files and figure into")
    sub.add_argument(
        "--metrics", help="comma-separated, with or without cutoff (default: the chief nine)"
    )
    sub.add_argument("--systems", help="comma-separated (default: all that both runs have)")
    sub.set_defaults(run=_compare)


def _compare(args: argparse.Namespace) -> None:
    from rag_reliability.experiment.compare import ASKED, compare_runs

    out = Path(here(args.out, written=True))
    if (out / "manifest.json").exists() or (out / "metrics").exists():
        raise InputError(f"{args.out}: is a run's folder; write the comparison elsewhere")
    found = compare_runs(
        here(args.run_a),
        here(args.run_b),
        metrics=_words(args.metrics) or ASKED,
        systems=_words(args.systems),
    )
    # names of systems and topics come from files that others wrote
    print(*(plain(line) for line in (*found.sentences(), *found.notes)), sep="\n")
    print(f"done: {found.write(out)}")


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(word.strip() for word in (text or "").split(",") if word.strip())
