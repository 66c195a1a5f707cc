"""``init`` lays out a study that runs where it lies, from a checkout or an installed package."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rag_reliability.cli import main
from rag_reliability.config import load_config
from rag_reliability.datasets.check import summarise
from rag_reliability.datasets.read import read_corpus
from rag_reliability.experiment.init import WEIGHTS
from rag_reliability.experiment.study import open_study
from rag_reliability.files import shipped
from rag_reliability.reliability.priors import load_priors
from rag_reliability.runner import NOTEBOOKS, run_notebooks

from .conftest import ROOT


@pytest.fixture(scope="module")
def laid(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("outside") / "my-study"
    assert main(["init", str(folder)]) == 0
    return folder


def test_what_is_laid_out_is_whole(laid):
    corpus = read_corpus(
        laid / "corpus" / "mine", known_types=load_priors(laid / "configs/priors.yaml").known_types
    )
    assert summarise(corpus).warnings == ()
    assert {t.stance for t in corpus.topics} == {"yes", "no"}
    config = load_config(laid / "configs" / "study.yaml")
    assert config.corpus == "corpus/mine" and config.folds <= len(corpus.topics)
    notebooks = {p.stem for p in (laid / "notebooks").glob("*.ipynb")}
    assert notebooks >= {*NOTEBOOKS, "explore"}
    readme = (laid / "README.md").read_text()
    assert "rag-reliability run --config configs/study.yaml" in readme
    assert f"pip install {WEIGHTS}" in readme and f"requirements {config.generator})" in WEIGHTS


def test_its_notebooks_ask_for_its_config(laid):
    for path in (laid / "notebooks").glob("*.ipynb"):
        text = path.read_text(encoding="utf-8")
        assert "configs/paper.yaml" not in "".join(
            "".join(c["source"])
            for c in json.loads(text)["cells"]
            if "parameters" in c["metadata"].get("tags", [])
        ), path.name


def test_nothing_is_ever_written_over(laid, tmp_path, capsys):
    before = (laid / "README.md").read_bytes()
    file = tmp_path / "file"
    file.write_text("x", encoding="utf-8")
    for target in (laid, laid.parent, file):
        assert main(["init", str(target)]) == 2
        assert "is not an empty folder" in capsys.readouterr().err
    assert (laid / "README.md").read_bytes() == before
    (tmp_path / "empty").mkdir()
    assert main(["init", str(tmp_path / "empty")]) == 0


def test_commands_work_from_inside_and_below(laid, monkeypatch, capsys):
    monkeypatch.chdir(laid / "notebooks")
    monkeypatch.setenv("RAG_RELIABILITY_CACHE", str(laid.parent / "cache"))
    assert main(["search", "Can coffee grounds be composted?"]) == 0
    assert "Spent coffee as a compost ingredient" in capsys.readouterr().out.split("\n")[1]
    assert main(["validate", str(laid / "corpus" / "mine")]) == 0
    assert "12 documents, 3 topics" in capsys.readouterr().out


def test_a_notebook_runs_there_and_writes_there(laid, monkeypatch):
    monkeypatch.chdir(laid)
    study = run_notebooks("configs/study.yaml", "reports/mine", {}, notebooks=("01_corpus",))
    assert study.run_dir == laid / "reports" / "mine"
    assert (laid / "reports" / "mine" / "corpus.csv").is_file()


def test_configs_it_lacks_are_the_packages_and_no_others(laid, monkeypatch):
    monkeypatch.chdir(laid)
    study = open_study({"config_file": "configs/study.yaml", "out": "reports/mine"})
    assert study.path("configs/grounding.yaml") == shipped("configs/grounding.yaml")
    assert study.path("configs/priors.yaml") == laid / "configs" / "priors.yaml"
    assert study.path("corpus/health120") == laid / "corpus" / "health120"


def test_an_installed_package_brings_all_that_it_needs(tmp_path):
    """Built as for a wheel and run far from the checkout: nothing beside the package is there."""
    source = tmp_path / "source"
    source.mkdir()
    for name in ("rag_reliability", "configs", "notebooks", "corpus"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    build = [sys.executable, "setup.py", "-q", "build", "--build-lib", str(tmp_path / "lib")]
    subprocess.run(build, cwd=source, check=True, capture_output=True)
    shutil.rmtree(source)
    empty = tmp_path / "empty"
    empty.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "lib")}
    done = subprocess.run(
        [sys.executable, "-c", _FAR_AWAY],
        cwd=empty,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "12 documents" in done.stdout and "all-minilm-l6-v2" in done.stdout
    root, rest = done.stdout.splitlines()[-2:]
    assert Path(root) == tmp_path / "lib" / "rag_reliability" / "assets"
    assert rest == f"120 {empty / 'reports' / 'paper'}"


_FAR_AWAY = """
import os
from rag_reliability.cli import main
from rag_reliability.experiment.study import open_study
assert main(["init", "mine"]) == 0
assert main(["validate", "mine/corpus/mine"]) == 0
os.chdir("mine/notebooks")
assert main(["models"]) == 0
os.chdir("../..")
study = open_study({})
print(study.root)
print(len(study.corpus.documents), study.run_dir)
"""
