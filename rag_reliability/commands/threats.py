"""Ranking rules against adversaries that lie about sources."""

from __future__ import annotations

import argparse
from typing import Any

from rag_reliability.commands.base import config_command, here, parameters


def add(commands: Any) -> None:
    """Declare ``threats``."""
    threats = config_command(
        commands,
        "threats",
        _threats,
        "try ranking rules against adversaries that lie about sources",
    )
    threats.add_argument("--data", required=True, help="corpus folder, BEIR's layout or our own")
    threats.add_argument("--out", required=True, help="the run's folder")
    threats.add_argument(
        "--rules", help="comma-separated (default: all that need no language model)"
    )
    for name, rates, what in (
        ("--spoof", "0,0.1,0.2,0.35,0.5,1", "shares of the adversaries that claim a trusted type"),
        ("--leak", "0,0.05,0.2", "shares of those whose claim passes verification"),
    ):
        threats.add_argument(name, default=rates, help=f"{what} (default: %(default)s)")
    threats.add_argument("--seeds", type=int, default=20, help="draws (default: %(default)s)")
    threats.add_argument("--k", type=int, help="documents kept for each topic")
    threats.add_argument("--window", type=int, help="rank window of the rules (default: 3k)")
    threats.add_argument("--generator", help="language model of the stance rules")
    threats.add_argument("--encoder", help="encoder of the similarity")
    threats.add_argument(
        "--answers", action="store_true", help="also generate answers at spoof 0 and 1 (slow)"
    )


def _threats(args: argparse.Namespace) -> None:
    from rag_reliability.experiment.threat_command import ThreatWords, run_threats

    named = {name: getattr(args, name) for name in ("k", "generator", "encoder")}
    given = {
        **parameters(args),
        **{name: value for name, value in named.items() if value is not None},
        "corpus": here(args.data),
        "config_file": here(args.config),
        "out": here(args.out, written=True),
    }
    words = ThreatWords(
        args.rules, args.spoof, args.leak, args.seeds, args.window, answers=args.answers
    )
    print(run_threats(given, words))
