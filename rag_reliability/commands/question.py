"""Search the corpus for one question, and answer it."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from rag_reliability.commands.base import config_command, here, parameters


def add(commands: Any) -> None:
    """Declare ``search`` and ``ask``."""
    search = config_command(commands, "search", _search, "rank the corpus for a question")
    ask = config_command(
        commands, "ask", _ask, "answer a question from the corpus, with its sources"
    )
    for sub in (search, ask):
        sub.add_argument("query", help="the question")
        sub.add_argument(
            "--system", default="source_aware", help="similarity, source_aware_3k or source_aware"
        )
    ask.add_argument("--arm", default="plain", help="plain or credibility_in_prompt")


def _search(args: argparse.Namespace) -> None:
    from rag_reliability.experiment.interactive import search

    print(search(_interactive(args), args.query, args.system))


def _ask(args: argparse.Namespace) -> None:
    from rag_reliability.experiment.interactive import ask

    print(ask(_interactive(args), args.query, args.system, args.arm))


def _interactive(args: argparse.Namespace) -> Any:
    from rag_reliability.experiment.study import open_study
    from rag_reliability.files import cache_root

    def say(line: str) -> None:
        if "reused" not in line:
            print(line, file=sys.stderr)

    place = {"config_file": here(args.config), "out": str(cache_root() / "interactive")}
    return open_study({**parameters(args), **place}, say=say)
