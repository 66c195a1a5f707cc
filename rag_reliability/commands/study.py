"""Run the study; redraw what it drew."""

from __future__ import annotations

import argparse
from typing import Any

from rag_reliability.commands.base import (
    PAPER_RUN,
    config_command,
    default_run,
    here,
    parameters,
)


def add(commands: Any) -> None:
    """Declare ``run`` and ``figures``."""
    run = config_command(commands, "run", _run, "run the notebooks from a config into a folder")
    run.add_argument("--out", help=f"the run's folder (default: {PAPER_RUN})")
    run.add_argument("--fresh", action="store_true", help="compute everything anew")
    figures = commands.add_parser(
        "figures", help="redraw figures, tables and report from saved metrics"
    )
    figures.add_argument("--out", help=f"the run's folder (default: {PAPER_RUN})")
    figures.set_defaults(run=_figures)


def _run(args: argparse.Namespace) -> None:
    from rag_reliability.runner import run_notebooks

    out = here(args.out, written=True) or default_run()
    study = run_notebooks(here(args.config), out, parameters(args), fresh=args.fresh)
    print(f"done: {study.run_dir / 'index.html'}")


def _figures(args: argparse.Namespace) -> None:
    from rag_reliability.experiment.results import redraw

    print(f"done: {redraw(here(args.out, written=True) or default_run())}")
