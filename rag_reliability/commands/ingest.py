"""Make a corpus of a folder of files."""

from __future__ import annotations

import argparse
from typing import Any

from rag_reliability.commands.base import here


def add(commands: Any) -> None:
    """Declare ``ingest``."""
    about = "make a corpus of text, Markdown and PDF files and a CSV of their sources"
    sub = commands.add_parser("ingest", help=about)
    sub.add_argument("folder", help="searched with all folders below it")
    sub.add_argument(
        "--sources",
        required=True,
        metavar="FILE.csv",
        help="columns file (name or glob), source_type; and, if known, source, url, date, "
        "verified, adversarial, title",
    )
    sub.add_argument("--out", required=True, metavar="CORPUS", help="corpus folder to write")
    sub.add_argument(
        "--words", type=int, default=150, help="longest chunk, in words (default: %(default)s)"
    )
    sub.add_argument(
        "--encoding", help="of text files that are not UTF-8, such as cp1252 (nothing is guessed)"
    )
    sub.add_argument(
        "--priors", default="configs/priors.yaml", help="where the known source types stand"
    )
    sub.set_defaults(run=_ingest)


def _ingest(args: argparse.Namespace) -> None:
    from rag_reliability.experiment.ingest import ingest_folder

    print(
        ingest_folder(
            args.folder,
            args.sources,
            args.out,
            priors=here(args.priors),
            words=args.words,
            encoding=args.encoding,
        )
    )
