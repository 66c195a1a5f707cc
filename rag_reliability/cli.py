"""The command ``rag-reliability``: runs the study, searches, answers, checks a corpus.

Heavy libraries load only in the subcommand that needs them.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from rag_reliability import __version__
from rag_reliability.records import InputError

PAPER = "configs/paper.yaml"
PAPER_RUN = "reports/paper"


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as every other refusal of the command."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status: 0, 2 for bad input, 1 for a defect of ours."""
    args = build_parser().parse_args(argv)
    warnings.showwarning = _one_line_warning
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)  # a log shows each stage when it is done
    try:
        args.run(args)
    except InputError as error:
        if args.debug:
            raise
        print(f"rag-reliability: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("rag-reliability: stopped; run it again to go on from here", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 0
    except OSError as error:
        if args.debug:
            raise
        where = f"{error.filename}: " if error.filename else ""
        print(f"rag-reliability: {where}{error.strerror or error}", file=sys.stderr)
        return 2
    except Exception as error:
        if args.debug:
            raise
        what = " ".join(str(error).split())
        print(f"rag-reliability: {type(error).__name__}: {what} (see --debug)", file=sys.stderr)
        return 1
    return 0


def _one_line_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"warning: {message}", file=sys.stderr)


def build_parser() -> argparse.ArgumentParser:
    """The command's arguments."""
    parser = _Parser(prog="rag-reliability", description=__doc__.splitlines()[0])
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    run = _command(commands, "run", _run, "run the notebooks from a config into a folder")
    run.add_argument("--out", help=f"the run's folder (default: {PAPER_RUN})")
    run.add_argument("--fresh", action="store_true", help="compute everything anew")

    search = _command(commands, "search", _search, "rank the corpus for a question")
    ask = _command(commands, "ask", _ask, "answer a question from the corpus, with its sources")
    for sub in (search, ask):
        sub.add_argument("query", help="the question")
        sub.add_argument(
            "--system", default="source_aware", help="similarity, source_aware_3k or source_aware"
        )
    ask.add_argument("--arm", default="plain", help="plain or credibility_in_prompt")

    validate = commands.add_parser("validate", help="check a corpus folder and count what it holds")
    validate.add_argument("folder")
    validate.add_argument(
        "--priors", default="configs/priors.yaml", help="where the known source types stand"
    )
    validate.set_defaults(run=_validate)

    models = commands.add_parser("models", help="the models by name, and whether they are here")
    models.set_defaults(run=_models)

    _add_threats(commands)
    _add_testbed(commands)
    _add_attack(commands)

    figures = commands.add_parser(
        "figures", help="redraw figures, tables and report from saved metrics"
    )
    figures.add_argument("--out", help=f"the run's folder (default: {PAPER_RUN})")
    figures.set_defaults(run=_figures)
    _add_score_grounding(commands)
    return parser


def _command(commands: Any, name: str, run: Any, help_text: str) -> argparse.ArgumentParser:
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


def _add_threats(commands: Any) -> None:
    threats = _command(
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
    attack = _command(
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


def _parameters(args: argparse.Namespace) -> dict[str, Any]:
    """Values of -p, read as YAML scalars, so that 10 is a number and null is nothing."""
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
        values[name] = _here(value) if name in ("corpus", "priors", "testbed") else value
    return values


def _here(path: Any, *, written: bool = False) -> Any:
    """A path as the user means it: from the working directory if it is there, or is to be written.

    The study reads relative paths from the project's root, where configs name corpus and priors.
    """
    from rag_reliability.experiment.study import project_root

    if not isinstance(path, str) or Path.cwd() == project_root():
        return path
    return str(Path(path).resolve()) if written or Path(path).exists() else path


def _run(args: argparse.Namespace) -> None:
    from rag_reliability.runner import run_notebooks

    out = _here(args.out, written=True) or PAPER_RUN
    study = run_notebooks(_here(args.config), out, _parameters(args), fresh=args.fresh)
    print(f"done: {study.run_dir / 'index.html'}")


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

    place = {"config_file": _here(args.config), "out": str(cache_root() / "interactive")}
    return open_study({**_parameters(args), **place}, say=say)


def _validate(args: argparse.Namespace) -> None:
    from rag_reliability.experiment.validate import validation_text

    print(validation_text(args.folder, args.priors))


def _models(_: argparse.Namespace) -> None:
    from rag_reliability.modelstore import describe_models

    print(describe_models())


def _threats(args: argparse.Namespace) -> None:
    from rag_reliability.experiment.threat_command import ThreatWords, run_threats

    given = {name: getattr(args, name) for name in ("k", "generator", "encoder")}
    parameters = {
        **_parameters(args),
        **{name: value for name, value in given.items() if value is not None},
        "corpus": _here(args.data),
        "config_file": _here(args.config),
        "out": _here(args.out, written=True),
    }
    words = ThreatWords(
        args.rules, args.spoof, args.leak, args.seeds, args.window, answers=args.answers
    )
    print(run_threats(parameters, words))


def _testbed(args: argparse.Namespace) -> None:
    from rag_reliability.experiment.threat_command import write_testbed

    shared, out = Path(args.shared), Path(args.out)
    print(write_testbed(args.name, shared, out, seed=args.seed, verifiable=args.verifiable))


def _attack(args: argparse.Namespace) -> None:
    from rag_reliability.experiment.threat_command import write_attacked

    parameters = {
        **_parameters(args),
        "corpus": _here(args.data),
        "config_file": _here(args.config),
    }
    print(write_attacked(parameters, args.threats, Path(args.out).resolve(), seed=args.seed))


def _figures(args: argparse.Namespace) -> None:
    from rag_reliability.experiment.results import redraw

    print(f"done: {redraw(_here(args.out, written=True) or PAPER_RUN)}")


def _add_score_grounding(commands: Any) -> None:
    about = "score how far passages support claims, for a file of any length"
    sub = commands.add_parser("score-grounding", help=about)
    sub.add_argument(
        "--pairs",
        required=True,
        metavar="FILE.jsonl",
        help='lines {"id": …, "claim": "…", "passages": ["…", …]}',
    )
    sub.add_argument(
        "--out",
        required=True,
        metavar="FILE.jsonl",
        help="lines of id, support, band, best_passage, span, recall, flags, in the same order",
    )
    sub.add_argument(
        "--judge",
        metavar="MODEL",
        help="score with an NLI or a language model instead: a catalogue name, path or hub id",
    )
    sub.add_argument(
        "--labels",
        metavar="NAME=COLUMN,…",
        help="columns of an NLI model's labels, if its config does not name them: "
        "entailment=0,neutral=1,contradiction=2",
    )
    sub.set_defaults(run=_score_grounding)


def _score_grounding(args: argparse.Namespace) -> None:
    from rag_reliability.experiment.grounding import score_grounding

    print(score_grounding(args.pairs, args.out, args.judge, labels=_labels(args.labels)))


def _labels(text: str | None) -> dict[str, int] | None:
    if text is None:
        return None
    found: dict[str, int] = {}
    for item in text.split(","):
        name, _, column = item.partition("=")
        if not column.strip().isdecimal() or name.strip() in found:
            raise InputError(f"--labels {text}: expected NAME=COLUMN,…, each name once")
        found[name.strip()] = int(column)
    return found


if __name__ == "__main__":
    sys.exit(main())
