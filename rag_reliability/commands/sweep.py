"""Many runs at once, on Dask."""

from __future__ import annotations

import argparse
from typing import Any

from rag_reliability.commands.base import here


def add(commands: Any) -> None:
    """Declare ``sweep``."""
    sweep = commands.add_parser("sweep", help="run grids of parameters, in parallel")
    sweep.add_argument("files", nargs="+", metavar="FILE", help="such as configs/sweep-priors.yaml")
    sweep.add_argument("--out", required=True, help="the sweep's folder")
    place = sweep.add_mutually_exclusive_group()
    place.add_argument("--workers", type=int, help="processes of this machine (default: 2)")
    place.add_argument("--scheduler", metavar="ADDRESS", help="of a running Dask cluster")
    place.add_argument("--cluster", metavar="FILE", help="YAML with a section cluster: (Slurm)")
    sweep.set_defaults(run=_sweep)


def _sweep(args: argparse.Namespace) -> None:
    from pathlib import Path

    from rag_reliability.records import InputError
    from rag_reliability.sweep.main import run_sweeps
    from rag_reliability.sweep.spec import read_mapping

    cluster = None
    if args.cluster:
        cluster = read_mapping(Path(args.cluster)).get("cluster")
        if not isinstance(cluster, dict):
            raise InputError(
                f"{args.cluster}: cluster: expected a section with kind: slurm or local"
            )
    statuses = run_sweeps(
        [here(file) for file in args.files],
        here(args.out, written=True),
        workers=args.workers,
        scheduler=args.scheduler,
        cluster=cluster,
    )
    failed = sum(status.status != "done" for status in statuses.values())
    if failed:
        raise InputError(
            f"{failed} of {len(statuses)} runs failed, see {args.out}/failures.csv; "
            "the same command tries them again"
        )
    print(f"done: {args.out}/sweep.ipynb")
