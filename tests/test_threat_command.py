"""The commands threats and testbed, on a small folder in BEIR's layout."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from rag_reliability.cli import main
from rag_reliability.datasets.read import read_corpus

from .conftest import ROOT, SHARED, SMALL

COLUMNS = ["rule", "spoof", "leak", "seed", "qid", "metric", "value"]
TRUE = "Honey is unsafe for infants under one year because of botulism."
FALSE = "Honey is perfectly safe for infants and prevents botulism."


def write_folder(folder, *, adversarial=True, judged=True):
    """Five true and three false passages on one topic, and a topic of another split."""
    documents = [
        {
            "_id": f"d{i}",
            "title": "",
            "text": f"{FALSE if i >= 5 else TRUE} Note {i}.",
            "metadata": {
                "source_type": "blog" if i in (1, 6) else "government" if i < 5 else "ai_generated",
                "verified": i in (0, 2),
                "adversarial": adversarial and i >= 5,
            },
        }
        for i in range(8)
    ]
    topics = [{"_id": q, "text": "Is honey safe for infants?"} for q in ("q1", "q2")]
    (folder / "qrels").mkdir(parents=True)
    for name, rows in (("corpus", documents), ("queries", topics)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text)
    rows = "".join(f"q1\td{i}\t{int(i < 5)}\n" for i in range(8)) if judged else ""
    (folder / "qrels" / "dev.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}")
    return folder


@pytest.fixture(autouse=True)
def in_the_project(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run of the command; returns its folder and what it printed."""
    out = tmp_path_factory.mktemp("threats")
    data = write_folder(out / "data")
    words = ["--rules", "source_aware,verified_boost,hard_filter", "--spoof", "0,0.5,1"]
    words += ["--leak", "0,0.5", "--seeds", "3", "--k", "3", "--window", "6"]
    words += ["-p", "n_resamples", "200"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        code = main(["threats", "--data", str(data), "--out", str(out / "run"), *words])
    assert code == 0
    return out / "run"


def test_every_draw_of_every_rule_is_there(run):
    frame = pd.read_csv(run / "metrics" / "threats.csv")
    assert list(frame.columns) == COLUMNS
    assert set(frame["rule"]) == {"similarity", "source_aware", "verified_boost", "hard_filter"}
    assert set(frame["spoof"]) == {0, 0.5, 1} and set(frame["leak"]) == {0, 0.5}
    assert frame["seed"].nunique() == 3
    assert set(frame["qid"]) == {"q1"}  # q2 has no judgements
    assert not frame.duplicated(COLUMNS[:-1]).any()
    shares = frame[frame["metric"] == "adv_share@3"]
    assert len(shares) == 4 * 3 * 2 * 3
    assert shares["value"].between(0, 1).all()


def test_labels_move_what_reads_them_and_nothing_else(run):
    frame = pd.read_csv(run / "metrics" / "threats.csv")
    shares = frame[(frame["metric"] == "adv_share@3") & (frame["leak"] == 0)]
    wide = shares.pivot_table(index="rule", columns="spoof", values="value")
    assert wide.loc["similarity"].nunique() == 1
    assert wide.loc["verified_boost"].nunique() == 1
    assert wide.loc["source_aware", 0] == 0  # four honest high-tier documents fill the top three
    assert wide.loc["source_aware", 1] > 0
    assert wide.loc["source_aware"].is_monotonic_increasing


def test_tables_and_figures_are_written(run):
    table = pd.read_csv(run / "tables" / "no_regret.csv")
    assert list(table["Rule"]) == [
        "Similarity only",
        "Source-aware",
        "Verified boost",
        "Hard filter",
    ]
    deploy = pd.read_csv(run / "tables" / "deploy.csv")
    assert deploy["If you believe"].nunique() == 3
    for name in ("threat_curves", "no_regret"):
        assert (run / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    for name in ("no_regret", "deploy"):
        assert (run / "tables" / f"{name}.tex").read_text().startswith("\\begin{tabular}")
    costs = pd.read_csv(run / "metrics" / "threat_costs.csv")
    assert (costs["calls"] == 0).all()


def test_every_metric_of_every_cell_has_its_interval(run):
    cells = pd.read_csv(run / "metrics" / "threat_cells.csv")
    frame = pd.read_csv(run / "metrics" / "threats.csv")
    settings = ["rule", "spoof", "leak"]
    assert len(cells) == len(frame[[*settings, "metric"]].drop_duplicates())
    assert {"adv_share", "precision", "ndcg", "adv_hit"} <= set(cells["metric"])
    mean = (
        frame.groupby([*settings, "metric", "qid"])["value"].mean().groupby([*settings, "metric"])
    )
    of = mean.mean()["source_aware", 1, 0]
    shown = cells.set_index([*settings, "metric"]).sort_index().loc[("source_aware", 1, 0)]
    assert shown.loc["ndcg", "mean"] == pytest.approx(of["ndcg@3"], abs=1e-4)
    assert (cells["low"] <= cells["mean"]).all() and (cells["mean"] <= cells["high"]).all()
    alone = cells[cells["rule"] == "similarity"]
    assert (alone[["diff", "diff_low", "diff_high"]] == 0).all(axis=None)


@pytest.mark.parametrize(
    ("folder", "words", "says"),
    [
        ({}, ["--rules", "magic"], "rules: unknown 'magic'; known: similarity, source_aware"),
        ({}, ["--spoof", "0,2"], "spoof = 2.0; expected 0 <= spoof <= 1"),
        ({}, ["--leak", "few"], "--leak few: expected numbers"),
        ({}, ["--seeds", "0"], "seeds = 0"),
        ({}, ["--k", "4", "--window", "3"], "window = 3; expected at least k = 4"),
        ({"adversarial": False}, [], "no document is marked adversarial"),
        ({"judged": False}, [], "an experiment needs topics and qrels"),
    ],
)
def test_bad_input_is_one_line_and_status_2(folder, words, says, tmp_path, capsys):
    data = write_folder(tmp_path / "data", **folder)
    assert main(["threats", "--data", str(data), "--out", str(tmp_path / "out"), *words]) == 2
    err = capsys.readouterr().err.strip().splitlines()
    assert len(err) == 1
    assert says in err[0]
    assert not (tmp_path / "out" / "metrics").exists()


def test_an_unknown_testbed_names_the_known_ones(tmp_path, capsys):
    words = ["--shared", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main(["testbed", "magic", *words]) == 2
    err = capsys.readouterr().err
    assert "unknown testbed 'magic'; known: trec-hm-answers" in err
    assert main(["testbed", "healthver", "--shared", str(tmp_path / "no"), *words[2:]]) == 2


@pytest.mark.skipif(not SHARED.is_dir(), reason="the public sets are not beside the repository")
def test_a_testbed_is_written_and_can_be_validated(tmp_path, capsys):
    words = ["--shared", str(SHARED), "--out", str(tmp_path / "bed")]
    assert main(["testbed", "healthver", *words]) == 0
    assert "adversarial" in capsys.readouterr().out
    assert main(["validate", str(tmp_path / "bed")]) == 0


def test_attacks_are_added_in_turn_and_the_folder_can_be_read(tmp_path, capsys):
    out = tmp_path / "attacked"
    words = ["--data", str(ROOT / "corpus" / "health120"), "--out", str(out)]
    assert main(["attack", "--threats", "instructions,flooding=0.5,spoofed", *words]) == 0
    said = capsys.readouterr()
    assert "added" in said.out and "no place for 30 claims" in said.err
    before, after = read_corpus(ROOT / "corpus" / "health120"), read_corpus(out)
    added = after.documents[len(before.documents) :]
    assert len(added) > 10 and all(d.adversarial for d in added)
    assert {d.source_type for d in added} <= {"peer_reviewed", "government"}  # spoofed last
    for document, was in zip(after.documents, before.documents, strict=False):
        assert document.text == was.text and document.adversarial == was.adversarial


@pytest.mark.parametrize("threats", ["magic", "flooding=2", "flooding=x", "flooding=", "", "a=1=2"])
def test_an_attack_that_is_none_is_one_line(tmp_path, capsys, threats):
    words = ["--data", str(ROOT / "corpus" / "health120"), "--out", str(tmp_path / "a")]
    assert main(["attack", "--threats", threats, *words]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert not (tmp_path / "a").exists()


def test_stances_are_read_and_answers_written_by_the_real_model(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("rag_reliability.experiment.stances.cache_root", lambda: tmp_path)
    words = ["--rules", "stance_consistent", "--spoof", "0,1", "--leak", "0", "--seeds", "1"]
    words += ["--k", "3", "--window", "6", "--generator", SMALL, "--answers"]
    words += ["-p", "n_resamples", "200", "-p", "max_new_tokens", "24"]
    data = write_folder(tmp_path / "data")
    assert main(["threats", "--data", str(data), "--out", str(tmp_path / "run"), *words]) == 0
    costs = pd.read_csv(tmp_path / "run" / "metrics" / "threat_costs.csv").set_index("rule")
    # eight passages and the question alone, each in one pass; nothing else calls a model
    assert costs.loc["stance_consistent", "calls"] == 9
    assert costs.loc["stance_consistent", "seconds"] > 0
    assert costs.loc["similarity", "calls"] == 0
    frame = pd.read_csv(tmp_path / "run" / "metrics" / "threats.csv")
    shares = frame[frame["metric"] == "adv_share@3"].pivot(
        index="spoof", columns="rule", values="value"
    )
    assert (shares["stance_consistent"] == 0).all()  # the passages' sides are plain to read
    assert "adversarial_uptake" in capsys.readouterr().out.lower().replace(" ", "_")


def test_an_attack_never_overwrites_a_corpus(tmp_path, capsys):
    data = write_folder(tmp_path / "data")
    before = (data / "corpus.jsonl").read_bytes()
    words = ["attack", "--data", str(data), "--out", str(data), "--threats", "flooding"]
    assert main(words) == 2
    assert "holds a corpus already" in capsys.readouterr().err
    assert (data / "corpus.jsonl").read_bytes() == before
    assert main([*words[:4], str(tmp_path / "new"), *words[5:], "--seed", "-1"]) == 2
    assert "--seed -1" in capsys.readouterr().err


def test_a_missing_model_is_refused_before_anything_is_encoded(tmp_path, capsys):
    data = write_folder(tmp_path / "data")
    words = ["--rules", "stance_consistent", "--generator", "nope", "--out", str(tmp_path / "out")]
    assert main(["threats", "--data", str(data), *words]) == 2
    assert "nope" in capsys.readouterr().err
    assert not (tmp_path / "out" / "index").exists()
