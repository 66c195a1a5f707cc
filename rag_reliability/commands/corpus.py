"""Check a corpus, write a testbed, attack a corpus; list the models."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rag_reliability.commands.base import config_command, here, parameters


def add(commands: Any) -> None:
    """Declare ``validate``, ``models``, ``testbed`` and ``attack``."""
    validate = commands.add_parser("validate", help="check a corpus folder and count what it holds")
    validate.add_argument("folder")
    validate.add_argument(
        "--priors", default="configs/priors.yaml", help="where the known source types stand"
    )
    validate.set_defaults(run=_validate)
    models = commands.add_parser("models", help="the models by name, and whether they are here")
    models.set_defaults(run=_models)
    _add_testbed(commands)
    _add_attack(commands)


def _add_testbed(commands: Any) -> None:
    testbed = commands.add_parser(
        "testbed", help="write a testbed made of public sets as a BEIR folder"
    )
    testbed.add_argument("name", metavar="NAME")
    testbed.add_argument("--shared", required=True, help="folder that holds the public sets")
    testbed.add_argument("--out", required=True, help="folder to write")
    testbed.add_argument("--seed", type=int, default=0, help="of all draws (default: %(default)s)")
    testbed.add_argument(
        "--verifiable",
        type=float,
        default=0.8,
        help="share of true high-tier documents that pass a check (default: %(default)s)",
    )
    testbed.set_defaults(run=_testbed)


def _add_attack(commands: Any) -> None:
    attack = config_command(
        commands, "attack", _attack, "add adversarial documents to a corpus, as a BEIR folder"
    )
    attack.add_argument("--data", required=True, help="corpus folder, BEIR's layout or our own")
    attack.add_argument(
        "--threats",
        required=True,
        metavar="NAME=RATE,…",
        help="threats in turn, like query_stuffed,flooding=0.5,spoofed (docs/threats.md)",
    )
    attack.add_argument("--out", required=True, help="folder to write")
    attack.add_argument("--seed", type=int, default=0, help="of all draws (default: %(default)s)")


def _validate(args: argparse.Namespace) -> None:
    from rag_reliability.experiment.validate import validation_text

    print(validation_text(args.folder, here(args.priors)))


def _models(_: argparse.Namespace) -> None:
    from rag_reliability.modelstore import describe_models

    print(describe_models())


def _testbed(args: argparse.Namespace) -> None:
    from rag_reliability.experiment.threat_command import write_testbed

    shared, out = Path(args.shared), Path(args.out)
    print(write_testbed(args.name, shared, out, seed=args.seed, verifiable=args.verifiable))


def _attack(args: argparse.Namespace) -> None:
    from rag_reliability.experiment.threat_command import write_attacked

    given = {
        **parameters(args),
        "corpus": here(args.data),
        "config_file": here(args.config),
    }
    print(write_attacked(given, args.threats, Path(args.out).resolve(), seed=args.seed))
