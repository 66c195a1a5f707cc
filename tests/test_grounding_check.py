"""The check on labelled pairs: any file, the public sets where they are, and no labels at all."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rag_reliability import modelstore
from rag_reliability.evaluation.alignment import TextVectors
from rag_reliability.evaluation.constants import load_constants
from rag_reliability.evaluation.contrast import PairJudge
from rag_reliability.evaluation.grounding import BlendScorer
from rag_reliability.evaluation.spans import vector_span
from rag_reliability.experiment.answer_scoring import Scorer
from rag_reliability.experiment.grounding_check import check
from rag_reliability.experiment.labelled import PUBLIC, labelled_pairs, sample
from rag_reliability.records import InputError
from rag_reliability.reporting.tables_grounding import grounding_table, resolution_sentence
from rag_reliability.retrieval.encode import load_encoder

from .conftest import ROOT, SHARED

FOODS = ("honey", "ginger", "garlic", "pepper", "spinach", "yoghurt", "salmon", "walnuts")
ILLS = ("cough", "nausea", "colds", "fatigue", "anaemia", "bloating")


def rows() -> list[dict]:
    """Claims with a passage that says so, and with one that speaks of another food."""
    found = []
    for f, food in enumerate(FOODS):
        for i, ill in enumerate(ILLS):
            other = FOODS[(f + 1 + i) % len(FOODS)]
            said = food if (f + i) % 2 else other
            found.append(
                {
                    "id": f"{food}-{ill}",
                    "claim": f"{food.title()} helps against {ill}.",
                    "passages": [f"In two small trials {said} eased {ill} within a week."],
                    "label": said == food,
                    "group": ill,
                }
            )
    return found


def write(path: Path, lines: list[dict]) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def scorer() -> Scorer:
    constants = load_constants(ROOT / "configs" / "grounding.yaml")
    vectors = TextVectors(load_encoder(modelstore.resolve("all-minilm-l6-v2").path))
    return Scorer(
        BlendScorer(vectors, constants.blend),
        PairJudge(vectors, constants.contrast),
        constants.blend,
        vector_span(vectors),
    )


def test_a_labelled_file_is_checked(scorer: Scorer, tmp_path: Path) -> None:
    pairs = labelled_pairs(write(tmp_path / "labelled.jsonl", rows()))
    measures, curves = check(pairs, scorer, 20, n_resamples=50)
    value = measures.set_index("measure")["value"]
    assert value["auroc"] > 0.9 and value["balanced_accuracy"] > 0.8
    assert value["auroc.content_recall"] > 0.9
    assert value["smallest_difference"] >= value["smallest_difference.people"]
    assert value["smallest_difference.at_1000"] < value["smallest_difference"]
    assert set(curves["curve"]) == {"roc", "calibration", "risk"}
    table = grounding_table(measures.assign(set="labelled"))
    assert table["n"].tolist() == [48] and table["AUROC"][0].startswith(f"{value['auroc']:.2f}")
    said = resolution_sentence(measures.assign(set="labelled"))
    assert "With 20 sentences a system" in said
    assert resolution_sentence(measures.assign(set="answers_swapped")) == ""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"label": True}, "there must be both true and false"),
        ({"label": None}, "every line needs a label"),
        ({"group": "one"}, "all pairs are of one group"),
        ({"label": "yes"}, ":1: field 'label'"),
    ],
)
def test_files_that_cannot_be_checked_are_refused(change: dict, said: str, tmp_path: Path) -> None:
    path = write(tmp_path / "labelled.jsonl", [r | change for r in rows()])
    with pytest.raises(InputError, match=said) as caught:
        labelled_pairs(path)
    assert str(path) in str(caught.value)


def test_a_sample_keeps_the_order(tmp_path: Path) -> None:
    pairs = labelled_pairs(write(tmp_path / "labelled.jsonl", rows()))
    some = sample(pairs, 10, seed=1)
    assert len(some) == 10 and some == [p for p in pairs if p in some]
    assert sample(pairs, 10, seed=1) == some != sample(pairs, 10, seed=2)
    assert sample(pairs, 100, seed=1) == pairs


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_the_public_sets_are_read(name: str) -> None:
    file, read = PUBLIC[name]
    if not (SHARED / file).is_file():
        pytest.skip(f"no {SHARED / file}: the shared data are not at hand")
    pairs = read(SHARED / file)
    labels = np.array([p.label for p in pairs])
    assert len(pairs) > 500 and 0.2 < labels.mean() < 0.8
    assert len({p.id for p in pairs}) == len(pairs) and len({p.group for p in pairs}) > 40
    assert all(p.claim and p.passages for p in pairs)
