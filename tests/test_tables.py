"""Tables and values: cells by hand, LaTeX that escapes, names that cannot collide."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_reliability.reporting import tables
from rag_reliability.reporting.values import macro_name, plain_value, tex_value, write_values

METRICS = pd.DataFrame(
    [
        ("similarity", "q002", "precision@5", 0.4),
        ("similarity", "q010", "precision@5", 0.6),
        ("similarity", "q001", "precision@5", 0.2),
        ("source_aware", "q002", "precision@5", 0.6),
        ("source_aware", "q010", "precision@5", 0.4),
        ("source_aware", "q001", "precision@5", 0.2),
        ("similarity", "q001", "adv_share@5", 0.2),
        ("source_aware", "q001", "adv_share@5", 0.0),
    ],
    columns=["system", "qid", "metric", "value"],
)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.485, "0.48"), (-0.25, "−0.25"), (-0.001, "0.00"), (np.nan, "–"), (None, "–"), (1, "1.00")],
)
def test_number(value: object, shown: str) -> None:
    assert tables.number(value) == shown


def test_p_values() -> None:
    assert [tables.p_text(p) for p in (0.0004, 0.0312, np.nan)] == ["< 0.001", "0.031", "–"]
    marks = [tables.p_mark(p) for p in (0.0009, 0.009, 0.049, 0.05, np.nan, None)]
    assert marks == ["***", "**", "*", "", "", ""]


def test_main_table_orders_systems_and_marks_p() -> None:
    summary = pd.DataFrame(
        [
            ("source_aware", "precision@5", 0.7, 0.5, 0.9, 0.004),
            ("similarity", "precision@5", 0.5, 0.3, 0.7, np.nan),
            ("similarity", "mrr", 0.75, np.nan, np.nan, np.nan),
        ],
        columns=["system", "metric", "mean", "low", "high", "p_holm"],
    )
    table = tables.main_table(summary)
    assert list(table.columns) == ["System", "P@5 ↑", "MRR ↑"]
    assert table.to_numpy().tolist() == [
        ["Similarity only", "0.50 [0.30, 0.70]", "0.75"],
        ["Source-aware (exact)", "0.70 [0.50, 0.90]**", "–"],
    ]


def test_answers_table_has_a_row_for_each_system_and_arm() -> None:
    summary = pd.DataFrame(
        [
            ("similarity", "credibility_in_prompt", "harm", 0.1, 0.0, 0.2),
            ("similarity", "plain", "harm", 0.2, 0.1, 0.3),
            ("no_passages", None, "harm", 0.3, 0.2, 0.4),
        ],
        columns=["system", "arm", "metric", "mean", "low", "high"],
    )
    assert tables.answers_table(summary).to_numpy().tolist() == [
        ["No passages", "–", "0.30 [0.20, 0.40]"],
        ["Similarity only", "Plain prompt", "0.20 [0.10, 0.30]"],
        ["Similarity only", "Source types in the prompt", "0.10 [0.00, 0.20]"],
    ]


def test_study_table_shows_a_dash_where_the_study_is_silent() -> None:
    frame = pd.DataFrame(
        [
            ("ndcg@5", "source_aware", np.nan, 0.68, 0.5, 0.8),
            ("mrr", "baseline", 1, 0.9, np.nan, 1),
        ],
        columns=["metric", "arm", "study", "ours", "low", "high"],
    )
    assert tables.study_table(frame).to_numpy().tolist() == [
        ["NDCG@5 ↑", "Source-aware", "–", "0.68", "[0.50, 0.80]"],
        ["MRR ↑", "Similarity only", "1.00", "0.90", "–"],
    ]


def test_per_topic_table_counts_wins_ties_losses_by_direction() -> None:
    table = tables.per_topic_table(METRICS)
    assert table["Topic"].tolist() == ["q001", "q002", "q010", "wins / ties / losses"]
    assert table["P@5 ↑, outcome"].tolist() == ["tie", "win", "loss", "1 / 1 / 1"]
    assert table["Adversarial share@5 ↓, outcome"].tolist() == ["win", "–", "–", "1 / 0 / 0"]


def test_per_topic_table_without_the_baseline_has_no_outcomes() -> None:
    table = tables.per_topic_table(METRICS[METRICS["system"] != "similarity"])
    assert set(table["P@5 ↑, outcome"]) == {"–", "0 / 0 / 0"}


def test_significance_table() -> None:
    frame = pd.DataFrame(
        [("source_aware", "adv_share@5", -0.14, -0.24, -0.04, 0.0002, 0.012, 6, 3, 1)],
        columns=[
            "system",
            "metric",
            "diff",
            "low",
            "high",
            "p",
            "p_holm",
            "wins",
            "ties",
            "losses",
        ],
    )
    assert tables.significance_table(frame).to_numpy().tolist() == [
        [
            "Source-aware (exact)",
            "Adversarial share@5 ↓",
            "−0.140",
            "[−0.240, −0.040]",
            "< 0.001",
            "0.012",
            "6 / 3 / 1",
        ]
    ]


def test_save_table_escapes_latex_and_keeps_csv_plain(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {"a_b & 95 %": ["x_1 # 50 % $5 {y} ~^\\", "P@5 ↑ −0.1 [λ ≤ 1]"], "n": [0.1, 1 / 3]}
    )
    tex, path = tables.save_table(table, tmp_path / "t")
    text = tex.read_text(encoding="utf-8")
    assert r"a\_b \& 95 \%" in text
    assert r"x\_1 \# 50 \% \$5 \{y\} \textasciitilde{}\textasciicircum{}\textbackslash{}" in text
    assert r"P@5 $\uparrow$ $-$0.1 [$\lambda$ $\leq$ 1]" in text
    assert (
        text.startswith(r"\begin{tabular}{lr}") and r"\toprule" in text and r"\bottomrule" in text
    )
    assert all(ord(c) < 128 for c in text)
    rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    assert rows[2] == ["P@5 ↑ −0.1 [λ ≤ 1]", "0.333333"]


def test_leading_bracket_is_not_taken_for_an_option(tmp_path: Path) -> None:
    """LaTeX reads a bracket or star after a rule or a row's end as an option of that command."""
    table = pd.DataFrame({"interval": ["[0.1, 0.2]", "*"]})
    text = tables.save_table(table, tmp_path / "t")[0].read_text()
    assert "\n{}[0.1, 0.2]" in text and "\n{}*" in text


def test_missing_column_is_named() -> None:
    with pytest.raises(ValueError, match="p_holm"):
        tables.significance_table(
            pd.DataFrame(columns=["system", "metric", "diff", "low", "high", "p"])
        )


@pytest.mark.parametrize(
    ("name", "macro"),
    [
        ("precision@5_similarity", "valPrecisionFiveSimilarity"),
        ("q010", "valQZeroOneZero"),
        ("ndcg@15.mean", "valNdcgOneFiveMean"),
    ],
)
def test_macro_name(name: str, macro: str) -> None:
    assert macro_name(name) == macro


@given(st.text(min_size=1))
def test_macro_names_are_letters_or_refused(name: str) -> None:
    try:
        macro = macro_name(name)
    except ValueError:
        return
    assert macro.isascii() and macro.isalpha() and macro.startswith("val")


def test_values_are_sorted_rounded_and_stable(tmp_path: Path) -> None:
    values = {
        "z": np.float64(0.1) + 0.2,
        "a": np.int64(3),
        "b": float("nan"),
        "c": "5 %",
        "d": -0.0,
    }
    first = [p.read_bytes() for p in write_values(values, tmp_path)]
    again = [p.read_bytes() for p in write_values(dict(reversed(values.items())), tmp_path)]
    assert first == again
    loaded = json.loads(first[0])
    assert list(loaded.items()) == [("a", 3), ("b", None), ("c", "5 %"), ("d", 0.0), ("z", 0.3)]
    lines = first[1].decode().splitlines()
    assert lines == [
        r"\newcommand{\valA}{3}",
        r"\newcommand{\valB}{--}",
        r"\newcommand{\valC}{5 \%}",
        r"\newcommand{\valD}{0.000}",
        r"\newcommand{\valZ}{0.300}",
    ]


def test_tex_values() -> None:
    assert tex_value(-0.2412) == r"\ensuremath{-0.241}"
    assert tex_value(1.2e-7) == r"\ensuremath{1.2\times10^{-7}}"
    assert tex_value(12345.6) == "12346"


def test_colliding_names_are_refused_before_writing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'p@5' and 'p_5'.*valPFive"):
        write_values({"p@5": 1, "p_5": 2}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_values_of_other_kinds_are_refused() -> None:
    with pytest.raises(ValueError, match="list"):
        plain_value([1])
    assert plain_value(np.bool_(True)) is True
