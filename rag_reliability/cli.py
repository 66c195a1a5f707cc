"""The command ``rag-reliability``: runs the study, searches, answers, checks a corpus.

Heavy libraries load only in the subcommand that needs them.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

from rag_reliability import __version__
from rag_reliability.commands import (
    cache,
    compare,
    corpus,
    export,
    grounding,
    ingest,
    init,
    question,
    scale,
    study,
    sweep,
    threats,
)
from rag_reliability.records import InputError


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
        print(f"rag-reliability: {_one_line(error)}", file=sys.stderr)
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
        print(f"rag-reliability: {_one_line(f'{where}{error.strerror or error}')}", file=sys.stderr)
        return 2
    except Exception as error:
        if args.debug:
            raise
        what = f"{type(error).__name__}: {_one_line(error)}"
        print(f"rag-reliability: {what} (see --debug)", file=sys.stderr)
        return 1
    return 0


def _one_line_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"warning: {_one_line(message)}", file=sys.stderr)


def _one_line(message: object) -> str:
    """A message as one line without control characters: file names are hostile, too."""
    from rag_reliability.text import plain

    return plain(" ".join(str(message).split()))


def build_parser() -> argparse.ArgumentParser:
    """The command's arguments; each module of ``commands`` declares its own."""
    parser = _Parser(prog="rag-reliability", description=__doc__.splitlines()[0])
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in (
        init,
        study,
        compare,
        question,
        corpus,
        threats,
        grounding,
        sweep,
        scale,
        export,
        ingest,
        cache,
    ):
        module.add(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
