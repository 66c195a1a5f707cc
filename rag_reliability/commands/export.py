"""Write a corpus or a run's rankings in another tool's format."""

from __future__ import annotations

import argparse
from typing import Any

FORMATS = ("beir", "parquet", "trec", "datasets")


def add(commands: Any) -> None:
    """Declare ``export``."""
    about = "write a corpus, or a run's rankings, in another tool's format"
    export = commands.add_parser("export", help=about)
    export.add_argument(
        "source",
        metavar="RUN|CORPUS",
        help="a run's folder or a TREC run file; or a corpus folder: our own layout, BEIR's, "
        "Parquet or Hugging Face datasets",
    )
    export.add_argument("--to", required=True, choices=FORMATS, help="format to write")
    export.add_argument("--out", required=True, metavar="DIR", help="a new folder")
    export.set_defaults(run=_export)


def _export(args: argparse.Namespace) -> None:
    from rag_reliability.integrations.convert import export

    print(export(args.source, args.to, args.out))
