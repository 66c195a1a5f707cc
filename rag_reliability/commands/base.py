"""What subcommands share: the config, its parameters, and paths as the user means them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rag_reliability.records import InputError

PAPER = "configs/paper.yaml"
PAPER_RUN = "reports/paper"
OWN = "configs/study.yaml"
_PATHS = ("corpus", "priors", "testbed", "labelled_pairs", "languages")


def config_command(commands: Any, name: str, run: Any, help_text: str) -> argparse.ArgumentParser:
    """A subcommand that takes a config file and -p NAME VALUE."""
    sub = commands.add_parser(name, help=help_text)
    sub.add_argument("--config", default=PAPER, help="config file (default: %(default)s)")
    sub.add_argument(
        "-p",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "VALUE"),
        dest="parameters",
        help="set one parameter of the config; may be given many times",
    )
    sub.set_defaults(run=run)
    return sub


def parameters(args: argparse.Namespace) -> dict[str, Any]:
    """Values of -p, read as YAML scalars, so that 10 is a number and null is nothing.

    Where words alone are taken they stay as written, so that ``language no`` is Norwegian.
    """
    import yaml

    from rag_reliability.config import ExperimentConfig

    values: dict[str, Any] = {}
    for name, text in args.parameters:
        if name in ("config_file", "out"):
            raise InputError(f"-p {name}: use --{'config' if name == 'config_file' else 'out'}")
        if name not in ExperimentConfig.model_fields:
            known = ", ".join(sorted(ExperimentConfig.model_fields))
            raise InputError(f"-p: unknown parameter {name!r}; known: {known}")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            value = text
        if isinstance(value, list | dict):
            raise InputError(f"-p {name}: {text} is not one value; write lists as a,b")
        words = ExperimentConfig.model_fields[name].annotation in (str, str | None)
        if words and value is not None and not isinstance(value, str):
            value = text
        values[name] = here(value) if name in _PATHS else value
    return values


def default_run() -> str:
    """The paper's run, in the project, or below the working directory where there is no project."""
    from rag_reliability.experiment.study import outputs_root, project_root

    root = project_root()
    return PAPER_RUN if outputs_root(root) == root else str(outputs_root(root) / PAPER_RUN)


def here(path: Any, *, written: bool = False) -> Any:
    """A path as the user means it: from the working directory if it is there, or is to be written.

    The study reads relative paths from the project's root, where configs name corpus and priors.
    A project that ``init`` laid out has its own default config.
    """
    from rag_reliability.experiment.study import project_root

    root = project_root()
    if path == PAPER and not (root / PAPER).is_file() and (root / OWN).is_file():
        return OWN
    if not isinstance(path, str) or Path.cwd() == root:
        return path
    return str(Path(path).resolve()) if written or Path(path).exists() else path
