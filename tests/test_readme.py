"""The README's numbers are those of the committed run, and what it names exists."""

import json
import re

import pandas as pd
import pytest

from rag_reliability.cli import build_parser
from rag_reliability.config import ExperimentConfig

from .conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
ROWS = re.findall(
    r"^\| .*?`([a-z_@0-9]+)` \| (\S+) \| (\S+) \| (\S+) \[(\S+), (\S+)\] \| (\S+) \|",
    README,
    re.MULTILINE,
)
PARTS = ("similarity.mean", "mean", "diff", "diff_low", "diff_high", "p_holm")


def test_the_findings_are_there():
    assert len(ROWS) == 11


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_finding_is_what_the_run_measured(row):
    values = json.loads((ROOT / "reports" / "paper" / "values.json").read_text(encoding="utf-8"))
    metric, *shown = row
    arm = ".plain" if f"{metric}.source_aware.plain.mean" in values else ""
    names = [f"{metric}.similarity{arm}.mean"]
    names += [f"{metric}.source_aware{arm}.{part}" for part in PARTS[1:]]
    for name, text in zip(names, shown, strict=True):
        digits = len(text.split(".")[1])
        found = f"{values[name]:.{digits}f}".replace("-", "−")
        assert text == found, name


def test_auroc_and_harm_in_the_text_are_measured():
    values = json.loads((ROOT / "reports" / "paper" / "values.json").read_text(encoding="utf-8"))
    for name in ("auroc.no_passages", "auroc.similarity", "auroc.source_aware"):
        shown = f"{values[f'{name}.mean']:.2f}"
        assert f"({shown})" in README or f"AUROC {shown})" in README, name
    assert f"Harm is {values['harm.no_passages.plain.mean']:.2f} without" in README


def test_nothing_was_left_to_fill_in():
    assert not re.findall(r"@[A-Z]+@|TODO|TBD", README)


@pytest.mark.parametrize("what", ["/tmp/", "/home/", "/root/", "TqdmWarning", "Traceback"])
def test_the_committed_run_is_clean(what):
    for path in (ROOT / "reports" / "paper").rglob("*"):
        if path.suffix in {".ipynb", ".json", ".jsonl", ".csv", ".tex", ".html", ".trec"}:
            assert what not in path.read_text(encoding="utf-8"), path


def test_every_target_command_parameter_and_notebook_named_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"(?:`|^    )make ([a-z-]+)", README, re.MULTILINE))
    assert {"reproduce", "test", "figures"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for line in re.findall(r"^    (rag-reliability .*)$", README, re.MULTILINE):
        argv = re.findall(r'"[^"]*"|\S+', line.split("#")[0])[1:]
        build_parser().parse_args([word.strip('"') for word in argv])
    for name in re.findall(r"-p ([a-z_]+) ", README):
        assert name in ExperimentConfig.model_fields, name
    for name in re.findall(r"^\| `(\w+)` \| [A-Z]", README, re.MULTILINE):
        assert (ROOT / "notebooks" / f"{name}.ipynb").is_file(), name
    for path in re.findall(r"\]\(([^)h][^)]*)\)", README):
        assert (ROOT / path).exists(), path


BEDS = ("trec-hm-answers-alone", "liveqa-flipped", "health120")
RULES = {
    "source_aware": "Source-aware",
    "verified_floor": "Verified floor",
    "stance_consistent": "Stance-consistent",
}


@pytest.mark.parametrize("rule", RULES)
def test_the_table_of_rules_is_what_the_sweeps_found(rule):
    (line,) = re.findall(rf"^\| `{rule}` \| ([−+.\d].*) \|$", README, re.MULTILINE)
    shown = [float(n.replace("−", "-")) for n in re.findall(r"[−+]?\d*\.\d+", line)]
    found = []
    for bed in BEDS:
        table = pd.read_csv(ROOT / "reports" / "threats" / bed / "tables" / "no_regret.csv")
        row = table.set_index("Rule").loc[RULES[rule]]
        for cell, kept in ((row.iloc[0], False), (row["Least true low-tier kept ↑"], True)):
            numbers = [float(n.replace("−", "-")) for n in re.findall(r"[−+]?\d*\.\d+", cell)]
            found += numbers[:1] if kept else numbers
    assert shown == found


# ---- the Spanish README says the same --------------------------------------------------------

SPANISH = (ROOT / "README.es.md").read_text(encoding="utf-8")
LANGUAGES = {"README.es.md": README, "README.md": SPANISH}


def cells(text: str) -> list[list[str]]:
    """Rows of the tables, cell by cell, without the lines below heads."""
    rows = [line.strip().strip("|").split("|") for line in re.findall(r"^\|.*\|$", text, re.M)]
    return [row for row in rows if set("".join(row)) - set("- ")]


def facts(text: str) -> list[str]:
    """What no translation changes: numbers with their signs, and code."""
    return re.findall(r"`[^`]+`|[−+]?\d*\.?\d+", text)


def test_the_spanish_tables_hold_the_english_cells_numbers_and_names():
    english, spanish = cells(README), cells(SPANISH)
    assert len(english) > 25
    assert [len(row) for row in english] == [len(row) for row in spanish]
    for ours, theirs in zip(english, spanish, strict=True):
        for cell, other in zip(ours, theirs, strict=True):
            assert sorted(facts(cell)) == sorted(facts(other)), (cell, other)


def test_the_spanish_text_has_the_same_sections_numbers_links_and_commands():
    parts = [re.split(r"^## ", text, flags=re.MULTILINE) for text in (README, SPANISH)]
    assert len(parts[0]) == len(parts[1])
    for i, (ours, theirs) in enumerate(zip(*parts, strict=True)):
        numbers = [sorted(re.findall(r"\d*\.\d+", text)) for text in (ours, theirs)]
        assert numbers[0] == numbers[1], ours.splitlines()[0]
        links = [sorted(re.findall(r"\]\(([^)]+)\)", text)) for text in (ours, theirs)]
        assert [k for k in links[0] if k not in LANGUAGES] == [
            k for k in links[1] if k not in LANGUAGES
        ]
        commands = [
            [
                line.split("#")[0].rstrip()
                for line in re.findall(r"^    (\S.*)$", text, re.MULTILINE)
            ]
            for text in (ours, theirs)
        ]
        assert commands[0] == commands[1], i


@pytest.mark.parametrize("name", ["README.es.md", "README.md"])
def test_each_readme_leads_to_the_other_in_its_first_lines(name):
    assert f"]({name})" in "\n".join(LANGUAGES[name].splitlines()[:6])
