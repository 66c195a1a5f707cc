"""Show what the cache of artefacts holds, and make it smaller."""

from __future__ import annotations

import argparse
from typing import Any


def add(commands: Any) -> None:
    """Declare ``cache``."""
    about = "show the size of the cached artefacts by stage and last use, or remove old ones"
    sub = commands.add_parser("cache", help=about)
    what = sub.add_mutually_exclusive_group()
    what.add_argument(
        "--prune",
        type=float,
        metavar="DAYS",
        help="remove what was not used for so many days (never what was used within the hour)",
    )
    what.add_argument(
        "--all",
        action="store_true",
        help="remove everything that was not used within the hour and is not in use",
    )
    sub.set_defaults(run=_cache)


def _cache(args: argparse.Namespace) -> None:
    from rag_reliability.cache import artefacts, overview, prune, size_text

    days = 0.0 if args.all else args.prune
    if days is not None:
        removed, held = prune(days)
        freed = size_text(sum(found.size for found in removed))
        print(f"removed: {len(removed)} artefacts, {freed}; kept because in use: {held}")
    print(overview(artefacts()))
