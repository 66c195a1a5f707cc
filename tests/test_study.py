"""The whole study on three topics: every notebook, real models, then again, then changed."""

import json
from pathlib import Path

import nbformat
import pandas as pd
import pytest

from rag_reliability import runner
from rag_reliability.experiment.results import redraw
from rag_reliability.experiment.study import open_study, parameters_from
from rag_reliability.files import cache_root
from rag_reliability.records import InputError

from .conftest import ROOT, SMALL

FIGURES = (
    "per_topic", "study_comparison", "spread_sensitivity", "k_window", "feedback", "smoothing",
    "learned_priors",
    "rank_flow", "iso_score", "answers", "threats", "threat_curves", "no_regret",
    "corpus_overview", "grounding_check",
)  # fmt: skip
TABLES = (
    "retrieval", "significance", "per_topic", "study", "answers", "stance", "no_regret", "deploy",
    "grounding_check",
)  # fmt: skip
SYSTEMS = {
    "similarity", "source_aware_3k", "source_aware", "source_aware_smoothed",
    "source_aware_adaptive",
}  # fmt: skip


@pytest.fixture(scope="module")
def study_run(three_topics, tmp_path_factory):
    """A finished run; returns its parameters, folder and what it said."""
    out = tmp_path_factory.mktemp("reports") / "run"
    parameters = {
        "corpus": str(three_topics),
        "generator": SMALL,
        "max_new_tokens": 24,
        "answer_systems": "similarity,source_aware",
        "n_resamples": 200,
        "check_pairs": 40,
        "folds": 3,
    }
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        # Artefacts of earlier test runs must not be reused; converted models may be.
        cache = tmp_path_factory.mktemp("cache")
        models = cache_root() / "models"
        models.mkdir(parents=True, exist_ok=True)
        (cache / "models").symlink_to(models)
        patch.setenv("RAG_RELIABILITY_CACHE", str(cache))
        runner.run_notebooks("configs/paper.yaml", str(out), parameters, say=said.append)
        yield parameters, out, said


def test_the_first_run_built_everything(study_run):
    _, _, said = study_run
    built = [line for line in said if line.startswith("notebook-")]
    assert len(built) == len(runner.NOTEBOOKS)
    assert all("built" in line for line in built)


def test_every_notebook_is_executed_whole(study_run):
    _, out, _ = study_run
    for name in runner.NOTEBOOKS:
        notebook = nbformat.read(out / "notebooks" / f"{name}.ipynb", as_version=4)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        assert all(cell.execution_count for cell in code), name
        assert any("injected-parameters" in cell.metadata.get("tags", []) for cell in code)


@pytest.mark.parametrize(
    ("name", "figures"),
    [("01_corpus", 1), ("03_rerank", 2), ("05_evaluate", 3), ("06_sensitivity", 3)],
)
def test_figures_are_seen_in_the_notebooks(study_run, name, figures):
    _, out, _ = study_run
    notebook = nbformat.read(out / "notebooks" / f"{name}.ipynb", as_version=4)
    seen = [
        output
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    assert len(seen) == figures


def test_executed_notebooks_name_no_folder_of_this_machine(study_run):
    _, out, _ = study_run
    for path in (out / "notebooks").glob("*.ipynb"):
        text = path.read_text(encoding="utf-8")
        assert str(ROOT) not in text, path.name
        assert str(Path.home()) not in text, path.name


def test_metrics_are_tidy_and_whole(study_run):
    _, out, _ = study_run
    for path in (out / "metrics").glob("*.csv"):
        frame = pd.read_csv(path)
        if path.stem == "threat_costs":
            assert list(frame.columns) == ["rule", "calls", "seconds"]
            continue
        if path.stem == "learned_priors":
            assert {"source", "source_type", "prior", "low", "high", "fold"} <= set(frame.columns)
            continue
        if path.stem == "threats":
            first = ["rule", "spoof", "leak", "seed", "qid", "metric", "value"]
            assert list(frame.columns) == first
        else:
            assert list(frame.columns[:4]) == ["system", "qid", "metric", "value"], path.name
        assert not frame["value"].isna().any(), path.name
    retrieval = pd.read_csv(out / "metrics" / "retrieval.csv")
    assert set(retrieval["system"]) == SYSTEMS
    for metric in ("precision@5", "ndcg@5", "mrr", "recall@15", "adv_share@5", "adv_hit@5"):
        own = retrieval[retrieval["metric"] == metric]
        assert len(own) == 3 * len(SYSTEMS), metric
        assert own["value"].between(0, 1).all(), metric


def test_precision_is_what_the_run_file_and_qrels_say(study_run, health120):
    _, out, _ = study_run
    retrieval = pd.read_csv(out / "metrics" / "retrieval.csv")
    lines = (out / "runs" / "source_aware.trec").read_text().splitlines()
    for qid in ("q001", "q002", "q005"):
        top = [line.split()[2] for line in lines if line.split()[0] == qid][:5]
        by_hand = sum(health120.qrels[qid].get(docno, 0) >= 1 for docno in top) / 5
        found = retrieval[
            (retrieval["system"] == "source_aware")
            & (retrieval["qid"] == qid)
            & (retrieval["metric"] == "precision@5")
        ]
        assert found["value"].item() == pytest.approx(by_hand)


def test_each_answer_was_shown_its_systems_top_five(study_run):
    _, out, _ = study_run
    answers = [
        json.loads(line) for line in (out / "answers" / "answers.jsonl").read_text().splitlines()
    ]
    assert {(a["system"], a["arm"]) for a in answers} == {
        ("no_passages", "plain"),
        ("similarity", "plain"),
        ("similarity", "credibility_in_prompt"),
        ("source_aware", "plain"),
        ("source_aware", "credibility_in_prompt"),
    }
    lines = (out / "runs" / "similarity.trec").read_text().splitlines()
    top = [line.split()[2] for line in lines if line.split()[0] == "q002"][:5]
    shown = next(a["docnos"] for a in answers if (a["system"], a["qid"]) == ("similarity", "q002"))
    assert shown == top
    assert all(a["text"].strip() for a in answers)


def test_figures_tables_values_and_report_are_there(study_run):
    _, out, _ = study_run
    for name in FIGURES:
        assert (out / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        assert (out / "figures" / f"{name}.png").stat().st_size > 5_000
    for name in TABLES:
        assert (out / "tables" / f"{name}.tex").is_file()
        assert len(pd.read_csv(out / "tables" / f"{name}.csv"))
    values = json.loads((out / "values.json").read_text())
    retrieval = pd.read_csv(out / "metrics" / "retrieval.csv")
    own = retrieval[(retrieval["system"] == "source_aware") & (retrieval["metric"] == "mrr")]
    assert values["mrr.source_aware.mean"] == pytest.approx(own["value"].mean(), abs=1e-5)
    page = (out / "index.html").read_text()
    assert page.count("data:image/png;base64") == len(FIGURES)
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_a_second_run_executes_nothing_and_says_so(study_run):
    parameters, out, _ = study_run
    said: list[str] = []
    before = {p: p.stat().st_mtime_ns for p in (out / "notebooks").iterdir()}
    runner.run_notebooks("configs/paper.yaml", str(out), parameters, say=said.append)
    assert {p: p.stat().st_mtime_ns for p in (out / "notebooks").iterdir()} == before
    reused = [line for line in said if line.startswith("notebook-")]
    assert len(reused) == len(runner.NOTEBOOKS)
    assert all("reused" in line for line in reused)


def test_a_lost_artefact_is_restored_by_its_notebook(study_run):
    parameters, out, _ = study_run
    lost = out / "metrics" / "retrieval.csv"
    text = lost.read_text()
    lost.unlink()
    runner.run_notebooks("configs/paper.yaml", str(out), parameters, say=lambda line: None)
    assert lost.read_text() == text


def test_figures_are_redrawn_to_the_same_bytes(study_run):
    _, out, _ = study_run
    before = {p.name: p.read_bytes() for p in (out / "figures").glob("*.pdf")}
    (out / "figures" / "per_topic.pdf").unlink()
    redraw(out)
    assert {p.name: p.read_bytes() for p in (out / "figures").glob("*.pdf")} == before


def test_a_changed_k_reuses_the_index_and_says_so(study_run, tmp_path):
    parameters, _, _ = study_run
    from rag_reliability.experiment import rank_stage

    said: list[str] = []
    study = open_study({**parameters, "k": 3, "out": str(tmp_path / "k3")}, say=said.append)
    rank_stage(study)
    assert any(line.startswith("index: restored") for line in said)
    assert any(line.startswith("rank: built") for line in said)


def test_a_run_in_progress_keeps_others_out(study_run):
    from rag_reliability.files import run_lock

    parameters, out, _ = study_run
    with run_lock(out), pytest.raises(InputError, match="another run is writing"):
        runner.run_notebooks("configs/paper.yaml", str(out), parameters, say=lambda line: None)


def test_a_notebook_with_an_unknown_parameter_is_refused(tmp_path):
    source = ROOT / "notebooks" / "01_corpus.ipynb"
    with pytest.raises(InputError, match="unknown parameter 'kk'"):
        runner.execute(source, tmp_path / "x.ipynb", {"kk": 3, "out": str(tmp_path)}, ROOT)


def test_parameters_are_the_plain_scalars_of_a_notebook():
    namespace = {"k": 5, "spread": None, "_hidden": 3, "In": [], "results": runner, "x": [1]}
    assert parameters_from(namespace) == {"k": 5}
