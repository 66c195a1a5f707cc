"""What the documentation and the READMEs tell a reader to type works as it stands there."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import tomllib
from pathlib import Path

import pytest

from rag_reliability.cli import build_parser, main
from rag_reliability.commands.base import here, parameters
from rag_reliability.experiment.preflight import preflight
from rag_reliability.experiment.study import open_study
from rag_reliability.sweep.spec import read_sweeps

from .conftest import ROOT, SHARED
from .snippets import Block, blocks

# README.es.md has README.md's commands, as test_readme.py holds.
FILES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
PAGES = {
    name: blocks(path, name)
    for path in FILES
    if (name := path.relative_to(ROOT).as_posix()) != "docs/integrations.md"  # has its own test
}
WITH_PYTHON = [name for name, found in PAGES.items() if any(b.kind == "python" for b in found)]
WITH_SHELL = [name for name, found in PAGES.items() if any(b.kind == "shell" for b in found)]
RUN = {"search", "validate", "models", "export", "init", "testbed", "ingest"}
OTHERS = {"cd", "source", "conda", "dask"}  # the shell's own, or other people's programs
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
SOURCES = "file,source_type,source,url,date,verified,title\n*.txt,blog,Plain,,,false,\n"


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    """A folder laid out as the project's, beside the public sets, that snippets may write into."""
    home = tmp_path / "project"
    for name in ("corpus", "reports/paper/runs", "reports/paper/metrics", "configs", "notebooks"):
        shutil.copytree(ROOT / name, home / name)
    if SHARED.is_dir():
        (tmp_path / "shared").symlink_to(SHARED.parent)
    for folder in ("papers", "files"):
        (home / folder).mkdir()
        (home / folder / "note.txt").write_text("Water in the morning.\n", "utf-8")
    (home / "sources.csv").write_text(SOURCES, "utf-8")
    monkeypatch.chdir(home)
    return home


# ---- Python --------------------------------------------------------------------------------


@pytest.mark.parametrize("page", WITH_PYTHON)
def test_python_runs_and_prints_what_the_page_says(page, project):
    if "../shared" in "".join(b.source for b in PAGES[page] if b.kind == "python"):
        needs_shared()
    space: dict[str, object] = {}  # a page's snippets build on each other
    for block, after in zip(PAGES[page], [*PAGES[page][1:], None], strict=True):
        if block.kind != "python":
            continue
        code = compile(block.source, block.name, "exec")
        if block.why:
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, space)
        if after and after.kind == "text" and printed.getvalue():
            assert printed.getvalue() == after.source, block.name


# ---- the shell -----------------------------------------------------------------------------


@pytest.mark.parametrize("page", WITH_SHELL)
def test_commands_are_understood_and_the_cheap_ones_work(page, project, capsys):
    for block, after in zip(PAGES[page], [*PAGES[page][1:], None], strict=True):
        if block.kind != "shell":
            continue
        os.chdir(project)
        done = [tried(words, block) for words in block.commands()]
        printed = capsys.readouterr().out
        assert any(done) or block.why or not names(block, "rag-reliability"), (
            f"{block.name}: nothing of it is run, and no marker says why"
        )
        if after and after.kind == "text" and any(done) and page == "docs/tutorial.md":
            assert alike(printed, after.source), block.name


def alike(printed: str, page: str) -> bool:
    """Equal words; numbers with three digits after the point may differ by two in the last."""
    ours, theirs = printed.split(), page.split()
    number = re.compile(r"-?\d+\.\d{3}")
    return len(ours) == len(theirs) and all(
        abs(float(a) - float(b)) < 0.0025 if number.fullmatch(a) and number.fullmatch(b) else a == b
        for a, b in zip(ours, theirs, strict=True)
    )


def tried(words: list[str], block: Block) -> bool:
    """Check one command as far as that is cheap; whether anything of it was run."""
    program, *rest = words
    if program == "cd":
        os.chdir(rest[0])
    elif program == "make":
        assert re.search(rf"^{rest[0]}:", MAKEFILE, re.MULTILINE), block.name
    elif program == "pip":
        for extra in re.findall(r"\[([\w,-]+)\]", " ".join(rest)):
            assert set(extra.split(",")) <= set(PROJECT["optional-dependencies"]), block.name
    elif program in {"python", "papermill"}:
        assert (ROOT / rest[0]).is_file(), block.name
    elif program == "rag-reliability":
        return command(rest, block)
    else:
        assert program in OTHERS, f"{block.name}: {program}"
    return False


def command(words: list[str], block: Block) -> bool:
    optional = re.findall(r"\[(.*?)\]", " ".join(words))
    if optional:  # each by itself, as some exclude each other
        words = words[: next(i for i, word in enumerate(words) if word.startswith("["))]
        for option in optional:
            build_parser().parse_args([*words, *option.split()])
    if "--shared" in words:
        needs_shared()
        words[words.index("--shared") + 1] = str(SHARED)
    args = build_parser().parse_args(words)
    if hasattr(args, "parameters"):
        assert parameters(args) is not None
    if args.command == "run":
        given = {"config_file": here(args.config), "out": "reports/dry", **parameters(args)}
        preflight(open_study(given), answers=False)
        return True
    if args.command == "sweep" and not block.why:
        assert read_sweeps(args.files, Path.cwd())
        return True
    if args.command in RUN and not block.why:
        assert main(words) == 0, block.name
        return True
    return False


def needs_shared() -> None:
    if not SHARED.is_dir():
        pytest.skip(f"no {SHARED}: the public sets are not beside the repository")


def names(block: Block, program: str) -> bool:
    return any(words[0] == program for words in block.commands())


# ---- what is not run -------------------------------------------------------------------------


def test_few_blocks_are_not_run_and_each_says_why():
    code = [b for found in PAGES.values() for b in found if b.kind in {"python", "shell"}]
    marked = [b for b in code if b.why]
    assert len(code) > 35
    assert len(marked) <= len(code) / 3, [b.name for b in marked]
    everywhere = [b for found in PAGES.values() for b in found if b.why]
    assert everywhere == marked, "a marker before something that is no code"
    texts = "".join(path.read_text("utf-8") for path in FILES)
    assert texts.count("<!-- not run:") == len(marked), "a marker that no block follows"
