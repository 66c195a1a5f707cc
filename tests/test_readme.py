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


BEDS = ("trec-hm-answers-alone", "liveqa-flipped-10", "health120")
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
