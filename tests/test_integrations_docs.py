"""Every snippet of docs/integrations.md runs and prints what the page says."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
from pathlib import Path

import pytest

from rag_reliability.cli import main

from .conftest import ROOT

PAGE = (ROOT / "docs" / "integrations.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
LIBRARIES = ("haystack", "llama_index", "langchain_classic", "pyterrier", "datasets")


@pytest.fixture
def in_a_copy(tmp_path, monkeypatch) -> Path:
    """A folder laid out as the project's, which commands may write into."""
    for name in ("corpus/health120", "reports/paper/runs", "configs"):
        shutil.copytree(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAYSTACK_TELEMETRY_ENABLED", "False")  # as the page's snippet sets it
    return tmp_path


def test_the_page_s_snippets_are_all_of_a_kind_that_is_run():
    kinds = [kind for kind, _ in BLOCKS]
    assert set(kinds) == {"python", "text", "console"}
    assert kinds.count("python") == 11
    for before, kind in zip(["", *kinds], kinds, strict=False):
        assert kind != "text" or before == "python"


def test_python_snippets_print_what_the_page_says(in_a_copy):
    for library in LIBRARIES:
        pytest.importorskip(library)
    space: dict[str, object] = {}  # the page's snippets build on each other
    for i, (kind, source) in enumerate(BLOCKS):
        if kind != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, f"docs/integrations.md, snippet {i}", "exec"), space)
        follows, expected = BLOCKS[i + 1] if i + 1 < len(BLOCKS) else ("", "")
        assert printed.getvalue() == (expected if follows == "text" else ""), source


def test_commands_print_what_the_page_says(in_a_copy, capsys):
    pytest.importorskip("datasets")
    (session,) = [source for kind, source in BLOCKS if kind == "console"]
    for command, expected in re.findall(
        r"^\$ rag-reliability (.*)\n([^$]*)", session, re.MULTILINE
    ):
        assert main(shlex.split(command)) == 0
        assert capsys.readouterr().out == expected


def test_the_versions_of_the_page_are_those_of_the_extras():
    pins = (ROOT / "pyproject.toml").read_text("utf-8")
    rows = re.findall(r"^\| [A-Z][\w ]+? ([\d.]+).*? \| `(\w+)` \|", PAGE, re.MULTILINE)
    assert len(rows) == 5
    for version, extra in rows:
        assert re.search(rf'^{extra} = \["[\w-]+=={re.escape(version)}"\]', pins, re.MULTILINE), (
            extra
        )
