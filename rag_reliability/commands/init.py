"""Lay out the folder of a new study."""

from __future__ import annotations

import argparse
from typing import Any


def add(commands: Any) -> None:
    """Declare ``init``."""
    init = commands.add_parser(
        "init", help="lay out a new study: a small corpus to replace, configs and notebooks"
    )
    init.add_argument("folder", help="a new or empty folder")
    init.set_defaults(run=_init)


def _init(args: argparse.Namespace) -> None:
    from rag_reliability.experiment.init import lay_out

    print(lay_out(args.folder))
