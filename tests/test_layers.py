"""The floors of the package: who may import whom, and what the repository may hold."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "rag_reliability"

GROUND = {"records", "config", "text", "files", "language", "modelstore", "artefacts", "cache"}
STAGES = {"datasets", "retrieval", "reliability", "generation", "evaluation", "reporting"}
OUTSIDE = {"runner", "cli", "commands", "integrations", "sweep", "explorer", "scale"}
TOP = {"experiment"} | OUTSIDE
LEAVES = {
    "reliability/priors.py": {"records"},
    "evaluation/significance.py": {"records"},
}
OWNERS = {
    "faiss": "retrieval/engines.py",
    "pymilvus": "retrieval/milvus_server.py",
    "ranx": "evaluation/ranking.py",
    "sentence_transformers": "retrieval/encode.py",
}
HEAVY = ("torch", "faiss", "numba", "transformers", "sentence_transformers", "ranx")


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), str(path))


def imported(path: Path) -> Iterator[str]:
    """Dotted names that a module imports anywhere, relative ones resolved."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = ["rag_reliability", *path.relative_to(PACKAGE).parts[:-1]]
                kept = parents[: len(parents) - node.level + 1]
                base = ".".join([*kept, base] if base else kept)
            yield from (f"{base}.{alias.name}" for alias in node.names)


def ours(path: Path) -> set[str]:
    """First parts, under the package, of what a module imports of ours."""
    parts = (name.split(".") for name in imported(path))
    return {p[1] for p in parts if p[0] == "rag_reliability" and len(p) > 1}


def floor_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def modules(*floors: str) -> list[Path]:
    return [p for p in sources() if floor_of(p) in floors]


def test_every_module_has_a_floor():
    known = GROUND | STAGES | TOP | {"__init__", "__main__"}
    assert {floor_of(p) for p in sources()} <= known


def test_records_import_nothing_of_ours():
    assert ours(PACKAGE / "records.py") == set()


@pytest.mark.parametrize("name", sorted(GROUND))
def test_ground_stands_on_the_ground(name):
    for path in modules(name):
        assert ours(path) <= GROUND, name_of(path)


def test_the_ground_has_no_cycles():
    above = {name: set().union(*(ours(p) for p in modules(name))) - {name} for name in GROUND}
    while above:
        free = {name for name, needs in above.items() if not needs & above.keys()}
        assert free, f"import cycle among {sorted(above)}"
        above = {name: needs for name, needs in above.items() if name not in free}


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_stage_packages_never_import_each_other(stage):
    assert modules(stage)
    for path in modules(stage):
        assert ours(path) <= GROUND | {stage}, name_of(path)


@pytest.mark.parametrize("leaf", sorted(LEAVES))
def test_leaves_import_nothing_else_of_ours(leaf):
    assert ours(PACKAGE / leaf) <= LEAVES[leaf]


def test_figures_import_nothing_of_ours_outside_reporting():
    figures = list((PACKAGE / "reporting").glob("figures*.py"))
    assert figures
    for path in figures:
        assert ours(path) <= {"reporting"}, name_of(path)


def test_only_experiment_composes_stage_packages():
    for path in sources():
        allowed = {floor_of(path)} & STAGES
        if floor_of(path) != "experiment":
            assert ours(path) & STAGES <= allowed, name_of(path)


def test_nothing_below_imports_what_stands_above():
    for path in modules("experiment"):
        assert not ours(path) & OUTSIDE, name_of(path)
    for path in modules("runner"):
        assert not ours(path) & {"cli", "commands"}
    for path in modules(*GROUND, *STAGES):
        assert not ours(path) & TOP, name_of(path)


@pytest.mark.parametrize(("library", "owner"), OWNERS.items())
def test_each_heavy_library_has_one_owner(library, owner):
    users = {name_of(p) for p in sources() if any(n.split(".")[0] == library for n in imported(p))}
    assert users == {owner}


LOADERS = {
    "AutoModelForCausalLM": "generation/models.py",
    # NLI models score answers, and are sequence classifiers: no part of generation.
    "AutoModelForSequenceClassification": "evaluation/nli.py",
}


@pytest.mark.parametrize(("loader", "owner"), LOADERS.items())
def test_each_kind_of_language_model_is_loaded_in_one_place(loader, owner):
    users = {
        name_of(path)
        for path in sources()
        for node in ast.walk(tree_of(path))
        if loader in (getattr(node, "id", ""), getattr(node, "attr", ""), getattr(node, "name", ""))
    }
    assert users == {owner}


def test_no_star_imports():
    for path in sources():
        assert not any(name.endswith(".*") for name in imported(path)), name_of(path)


@pytest.mark.parametrize("module", ["rag_reliability", "rag_reliability.cli"])
def test_importing_is_light(module):
    program = f"import sys, {module}; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[]"


# ---- notebooks -----------------------------------------------------------------------------

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def code_of(cell: dict) -> ast.Module:
    kept = [ln for ln in "".join(cell["source"]).splitlines() if not re.match(r"\s*[%!]", ln)]
    return ast.parse("\n".join(kept))


def code_cells(path: Path) -> list[dict]:
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def test_the_notebooks_of_the_study_are_there():
    assert [p.name[:2] for p in NOTEBOOKS if p.name[0] == "0"] == [f"0{i}" for i in range(1, 10)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebooks_hold_no_code_of_their_own(path):
    refused = (
        *(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef),
        *(ast.For, ast.AsyncFor, ast.While),
    )
    for cell in code_cells(path):
        found = [type(n).__name__ for n in ast.walk(code_of(cell)) if isinstance(n, refused)]
        assert not found, (path.name, found)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebooks_are_kept_without_outputs(path):
    for cell in code_cells(path):
        assert cell["outputs"] == [] and cell["execution_count"] is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_one_parameters_cell_of_plain_scalars(path):
    tagged = [c for c in code_cells(path) if "parameters" in c["metadata"].get("tags", [])]
    assert len(tagged) == 1
    for statement in code_of(tagged[0]).body:
        assert isinstance(statement, ast.Assign | ast.AnnAssign), ast.unparse(statement)
        value = ast.literal_eval(statement.value)
        assert value is None or isinstance(value, str | int | float | bool)


# ---- pins ----------------------------------------------------------------------------------

_PIN = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([A-Za-z0-9.!+_-]+)")


def pins(requirements: list[str]) -> dict[str, str]:
    """Exact pins by normalised name; every requirement must be one."""
    found = {}
    for requirement in requirements:
        match = _PIN.fullmatch(requirement.split(";")[0].strip())
        assert match, f"{requirement!r} is not pinned with =="
        found[re.sub(r"[-_.]+", "-", match[1]).lower()] = match[2]
    return found


def test_environment_and_pyproject_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = pins(project["dependencies"])
    extras = [r for rs in project.get("optional-dependencies", {}).values() for r in rs]
    known = wanted | pins([r for r in extras if not r.startswith(project["name"])])
    entries = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))["dependencies"]
    conda = [e for e in entries if isinstance(e, str)]
    pip = [r for e in entries if isinstance(e, dict) for r in e["pip"]]
    given = pins([r for r in pip if not re.match(r"(-e|--editable)\s", r)])
    given |= pins([e.replace("=", "==") for e in conda if e not in ("pip",) and "python=" not in e])
    assert wanted.items() <= given.items()
    assert given.items() <= known.items()
    (python,) = (e.split("=")[-1] for e in conda if e.startswith("python="))
    low, high = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", project["requires-python"]).groups()
    assert int(low) <= int(python.split(".")[1]) < int(high)


# ---- what no file names --------------------------------------------------------------------

# Spelt apart, so that this file passes its own test.
REGISTRIES = re.compile(
    "|".join(
        [
            r"(?:extra-)?index-" + r"url\s*[= ]\s*https?://(?!download\.pytorch\.org)",
            r"PIP_INDEX_" + r"URL\s*=",
            r"files\.python" + r"hosted\.org",
            r"pypi\.org/" + r"simple",
            r"trusted-" + r"host",
            r"/opt/" + r"(?:pypi|wheels)",
        ]
    )
)


def repository_files() -> Iterator[Path]:
    skipped = {"__pycache__", "build", "dist", "node_modules"}
    for folder, below, names in os.walk(ROOT):
        below[:] = [b for b in below if not (b.startswith(".") and b != ".ci") and b not in skipped]
        yield from (Path(folder) / name for name in names if not name.endswith(".lock"))


def test_no_file_names_a_registry_host():
    binary = {".png", ".pdf", ".parquet", ".npy", ".faiss", ".bin", ".pyc"}
    for path in repository_files():
        if path.suffix not in binary:
            found = REGISTRIES.search(path.read_text("utf-8", errors="replace"))
            assert not found, f"{path.relative_to(ROOT)}: {found and found[0]}"
