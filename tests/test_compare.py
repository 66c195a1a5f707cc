"""Two runs compared: tests by hand, what is refused, and pages that escape."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rag_reliability.cli import main
from rag_reliability.datasets.write import write_corpus
from rag_reliability.experiment.compare import compare_runs
from rag_reliability.experiment.compare_sides import read_side
from rag_reliability.experiment.study import Study
from rag_reliability.records import Corpus, Document, InputError, Topic

HOSTILE = '<img/src=x/onerror="alert(1)">'
FAST = {"n_resamples": 200}
A = {"t1": 0.2, "t2": 0.4, "t3": 0.6}


def _run(
    folder: Path,
    precision: Mapping[str, float],
    *,
    share: Mapping[str, float] | None = None,
    config: Mapping[str, object] | None = None,
    corpus: str | None = "same",
    system: str = "source_aware",
    k: int = 5,
) -> Path:
    """A run's folder with what a comparison reads: one system, one or two metrics."""
    rows = [(system, q, f"precision@{k}", v) for q, v in precision.items()]
    rows += [(system, q, f"adv_share@{k}", v) for q, v in (share or {}).items()]
    (folder / "metrics").mkdir(parents=True)
    frame = pd.DataFrame(rows, columns=["system", "qid", "metric", "value"])
    frame.to_csv(folder / "metrics" / "retrieval.csv", index=False)
    if corpus:
        manifest = {"config": {"k": k, **(config or {})}, "corpus_sha256": corpus}
        (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder


def _tests(found) -> dict[str, dict]:
    return {row["metric"]: row for row in found.tests.to_dict("records")}


def test_paired_tests_by_hand(tmp_path):
    a = _run(tmp_path / "a", A, share={"t1": 0.4, "t2": 0.4, "t3": 0.0})
    b = _run(
        tmp_path / "b",
        {"t1": 0.4, "t2": 0.8, "t3": 0.8},
        share={"t1": 0.0, "t2": 0.2, "t3": 0.2},
    )
    found = compare_runs(a, b, **FAST)
    precision, share = (_tests(found)[m] for m in ("precision@5", "adv_share@5"))
    # +.2, +.4, +.2: of 2³ sign patterns only all + and all − reach the sum .8, so p = 2/8.
    assert precision["diff"] == pytest.approx(0.8 / 3)
    assert precision["p"] == pytest.approx(2 / 8)
    assert (precision["mean_a"], precision["mean_b"]) == pytest.approx((0.4, 2 / 3))
    assert (precision["wins"], precision["ties"], precision["losses"]) == (3, 0, 0)
    # −.4, −.2, +.2: |sum| .4; of |±.4 ±.2 ±.2| the values .8, .4, .4 of .8, .4, .4, 0: p = 6/8.
    assert share["p"] == pytest.approx(6 / 8)
    assert (share["wins"], share["losses"]) == (2, 1)
    # Holm over both: 2 · .25, and max(that, .75).
    assert precision["p_holm"] == pytest.approx(0.5)
    assert share["p_holm"] == pytest.approx(0.75)
    # Three topics and two tests: nothing could have gone below 2 · 2/8.
    assert found.floor == pytest.approx(0.5)
    assert "no adjusted p could fall below 0.500" in found.sentences()[0]
    assert precision["low"] <= precision["diff"] <= precision["high"]


def test_a_significant_difference_is_said_with_its_side(tmp_path):
    qids = [f"t{i}" for i in range(12)]
    a = _run(tmp_path / "a", {}, share=dict.fromkeys(qids, 0.2))
    b = _run(tmp_path / "b", {}, share=dict.fromkeys(qids, 0.4))
    (sentence,) = compare_runs(a, b).sentences()
    # 2 of 2¹² patterns.
    assert sentence == (
        "Adversarial share@5 of Source-aware (exact): b is worse by 0.200 (change 0.200, "
        "95 % interval 0.200 to 0.200, p < 0.001)."
    )


def test_identical_runs_do_not_differ(tmp_path):
    a = _run(tmp_path / "x" / "run", A, share=A)
    b = _run(tmp_path / "y" / "run", A, share=A)
    found = compare_runs(a, b, **FAST)
    assert (found.tests["diff"] == 0).all() and (found.per_topic["delta"] == 0).all()
    assert (found.tests["p"] == 1).all() and (found.tests["p_holm"] == 1).all()
    assert found.sentences() == ["No topic differs in anything compared."]
    assert found.config.empty
    # Two folders of one name are told apart by where they lie; one folder twice by letters.
    assert (found.a, found.b) == ("x/run", "y/run")
    same = compare_runs(a, a, **FAST)
    assert (same.a, same.b) == ("run (A)", "run (B)")


def test_topics_of_one_run_alone_are_left_out_and_named(tmp_path):
    a = _run(tmp_path / "a", {**A, "only-a": 1.0})
    b = _run(tmp_path / "b", {**A, "only-b": 0.0})
    found = compare_runs(a, b, **FAST)
    assert (found.only_a, found.only_b) == (("only-a",), ("only-b",))
    assert found.topics == ("t1", "t2", "t3") and (found.tests["n_topics"] == 3).all()
    page = found.write(tmp_path / "out").read_text("utf-8")
    assert "Topics of a alone, left out: only-a." in page
    said = "Topics paired: 3, of 4 in a and 4 in b."
    assert found.notes == (said,) and said in page and said in repr(found)


def _without(run: Path, text: str) -> Path:
    """The run, its lines that hold ``text`` gone."""
    path = run / "metrics" / "retrieval.csv"
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(line for line in lines if text not in line), "utf-8")
    return run


def test_a_row_that_one_run_lacks_is_refused_by_name(tmp_path, capsys):
    a = _run(tmp_path / "a", A, share=A)
    b = _without(_run(tmp_path / "b", A, share=A), "t2,adv_share@5")
    assert main(["compare", str(a), str(b), "--out", str(tmp_path / "out")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    where = f"{b / 'metrics' / 'retrieval.csv'}: no adv_share@5 of source_aware for topic t2, which"
    assert where in line and not (tmp_path / "out").exists()
    with pytest.raises(InputError, match=rf"{b}.*no adv_share@5 .* for topic t2, which {a} has"):
        compare_runs(b, a, **FAST)
    # What is not compared may be missing, and a topic that is not there at all is no torn row.
    assert compare_runs(a, b, metrics=["precision"], **FAST).notes == ()
    assert compare_runs(a, _without(b, ",t2,"), **FAST).topics == ("t1", "t3")


def test_a_metric_without_a_value_for_a_topic_is_paired_over_the_others(tmp_path):
    runs = []
    for name, qids in (("a", "t1 t2"), ("b", "t2 t3")):
        run = _run(tmp_path / name, A)
        with (run / "metrics" / "retrieval.csv").open("a") as file:
            file.writelines(f"source_aware,{q},suppressed_true@5,0.5\n" for q in qids.split())
        runs.append(run)
    found = compare_runs(*runs, **FAST)
    assert {m: row["n_topics"] for m, row in _tests(found).items()} == {
        "precision@5": 3,
        "suppressed_true@5": 1,
    }
    assert found.table()["Topics"].tolist() == ["3", "1"]
    assert [note[:52] for note in found.notes] == [
        "suppressed_true@5 has no value in a for topic t3: le",
        "suppressed_true@5 has no value in b for topic t1: le",
    ]
    # Another system of the run has it for that topic: then the row was lost.
    with (runs[0] / "metrics" / "retrieval.csv").open("a") as file:
        file.write("similarity,t3,suppressed_true@5,0.5\n")
    with pytest.raises(InputError, match=r"no suppressed_true@5 of source_aware for topic t3"):
        compare_runs(*runs, **FAST)


def test_files_of_other_topics_are_paired_over_those_both_have(tmp_path):
    runs = [_run(tmp_path / name, A) for name in ("a", "b")]
    for run, qids in zip(runs, (("t1", "t2"), ("t2",)), strict=True):
        text = "".join(f"source_aware,plain,{q},harm,1.0\n" for q in qids)
        (run / "metrics" / "answers.csv").write_text("system,arm,qid,metric,value\n" + text)
    found = compare_runs(*runs, **FAST)
    assert found.notes == ("Of answers, topics paired: 1, of 2 in a and 1 in b.",)
    assert _tests(found)["harm"]["n_topics"] == 1


@pytest.mark.parametrize("k", ["5", None, True, 5.0, 0, [5]])
def test_a_k_of_another_type_is_refused_by_file_and_field(tmp_path, k):
    run = _run(tmp_path / "a", A, config={"k": k})
    with pytest.raises(
        InputError, match=r"a/manifest\.json: config: k = .*expected a whole number"
    ):
        compare_runs(run, _run(tmp_path / "b", A), **FAST)


def test_configs_are_set_side_by_side(tmp_path):
    a = _run(tmp_path / "a", A, config={"spread": "current", "seed": 7, "testbed": None})
    b = _run(tmp_path / "b", A, config={"spread": "none", "seed": 7})
    found = compare_runs(a, b, **FAST).config
    assert found.to_numpy().tolist() == [["spread", "current", "none"], ["testbed", "none", "–"]]


def test_runs_with_other_cutoffs_are_compared_each_at_its_own(tmp_path):
    a, b = _run(tmp_path / "a", A, k=5), _run(tmp_path / "b", A, k=3)
    found = compare_runs(a, b, **FAST)
    assert found.tests["metric"].tolist() == ["precision@k"]
    assert "Each run is scored at its own cutoff: k = 5 in A, 3 in B." in found.notes


def test_what_one_run_alone_measured_is_named(tmp_path):
    a = _run(tmp_path / "a", A, share=A)
    b = _run(tmp_path / "b", A)
    answers = [("source_aware", "plain", "t1", "harm", 1.0)]
    columns = ["system", "arm", "qid", "metric", "value"]
    frame = pd.DataFrame(answers, columns=columns)
    frame.to_csv(b / "metrics" / "answers.csv", index=False)
    notes = compare_runs(a, b, **FAST).notes
    assert notes == ("a alone has adv_share@5: not compared.", "b alone has answers: not compared.")


def _corpus(folder: Path, queries: Mapping[str, str], label: int = 2) -> Path:
    documents = tuple(
        Document(docno, docno, f"Text of {docno}, {folder.name}.", "blog") for docno in ("d1", "d2")
    )
    topics = tuple(Topic(qid, query) for qid, query in queries.items())
    write_corpus(Corpus("c", documents, topics, {q: {"d1": label} for q in queries}), folder)
    return folder


def _on(tmp_path: Path, name: str, queries: Mapping[str, str], label: int = 2) -> Path:
    """A run on a corpus of its own, its manifest as a real one's."""
    from rag_reliability.artefacts import Store
    from rag_reliability.config import ExperimentConfig

    folder = _corpus(tmp_path / f"corpus-{name}", queries, label)
    config = ExperimentConfig(corpus=str(folder))
    digest = Study(config, Store(tmp_path), tmp_path).corpus_digest
    values = dict.fromkeys(queries, 0.4)
    given = config.model_dump(mode="json")
    return _run(tmp_path / name, values, config=given, corpus=digest)


def test_other_corpora_are_paired_by_question_and_that_is_said(tmp_path):
    a = _on(tmp_path, "a", {"t1": "Is it so?", "t2": "Is it not?", "t3": "Why?"})
    b = _on(tmp_path, "b", {"t1": "Is it  so?", "t2": "Something else?", "t4": "Who?"}, label=1)
    found = compare_runs(a, b, **FAST)
    assert found.topics == ("t1",)
    first, other, judged, counted = found.notes
    assert counted == "Topics paired: 1, of 3 in a and 3 in b."
    assert "compared are the 1 topics that ask the same question in both" in first
    assert other == "Same name, another question, left out: t2."
    assert judged.endswith("so labels differ as well: t1.")


def test_other_corpora_without_a_shared_question_are_refused(tmp_path):
    a = _on(tmp_path, "a", {"t1": "Is it so?"})
    b = _on(tmp_path, "b", {"t1": "Something else?"})
    with pytest.raises(InputError, match="share no topic"):
        compare_runs(a, b, **FAST)
    with (tmp_path / "corpus-b" / "documents.jsonl").open("a") as file:
        file.write("\n")
    with pytest.raises(InputError, match="has changed since"):
        compare_runs(a, b, **FAST)
    (tmp_path / "corpus-b" / "documents.jsonl").unlink()
    with pytest.raises(InputError, match="whether topics are shared cannot be told"):
        compare_runs(a, b, **FAST)


def test_a_run_without_manifest_is_paired_by_name_and_that_is_said(tmp_path):
    a, b = _run(tmp_path / "a", A, corpus=None), _run(tmp_path / "b", A)
    assert "topics are paired by name" in compare_runs(a, b, **FAST).notes[0]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("system,qid,metric,value\ns,q,mrr,x\n", "could not convert"),
        ("system,qid,metric,value\ns,q,mrr,\n", "empty cells"),
        ("system,qid,metric,value\ns,q,mrr,1\ns,q,mrr,1\n", "twice"),
        ("system,qid,value\ns,q,1\n", "lacks the columns metric"),
        ("system,qid,metric\ns,q,mrr\n", "lacks the column value"),
        ("system,qid,metric,value\n", "holds no rows"),
        ("system,qid,metric,value\ns,q,mrr,inf\n", "not finite"),
    ],
)
def test_damaged_metrics_are_refused_by_name(tmp_path, text, what):
    run = _run(tmp_path / "a", A)
    (run / "metrics" / "retrieval.csv").write_text(text)
    with pytest.raises(InputError, match=rf"retrieval\.csv: .*{what}"):
        read_side(run)


@pytest.mark.parametrize("config", [None, ["k"], 5])
def test_a_manifest_of_other_types_says_nothing(tmp_path, config):
    run = _run(tmp_path / "a", A, corpus=None)
    (run / "manifest.json").write_text(json.dumps({"config": config}))
    (run / "stages").mkdir()
    (run / "stages" / "index.json").write_text('{"inputs": [1]}')
    (run / "stages" / "retrieval.json").write_text('{"git_commit": 7}')
    other = _run(tmp_path / "b", A)
    found = compare_runs(run, other)
    assert "7" in set(found.config["a"])
    assert read_side(run).config == {} and read_side(run).corpus_sha256 is None


class _Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def test_hostile_names_are_escaped_everywhere(tmp_path):
    topics = {HOSTILE: 0.2, "$x^2$": 0.4, "NA": 0.6, "007": 0.1}
    config = {"spread": HOSTILE}
    a = _run(tmp_path / "<b>a", topics, config=config, system=HOSTILE)
    b = _run(tmp_path / "b&", {q: v + 0.2 for q, v in topics.items()}, system=HOSTILE)
    found = compare_runs(a, b, **FAST)
    # Neither a number nor a missing value.
    assert {"NA", "007"} <= set(found.topics)
    page = found.write(tmp_path / "out").read_text("utf-8")
    for html in (page, found._repr_html_()):
        tags = _Tags(html).tags
        assert not {name for name, _ in tags} & {"script", "b"}
        assert [attrs for name, attrs in tags if name == "img" and attrs["src"] == "x"] == []
        assert not any(key.startswith("on") for _, attrs in tags for key in attrs)
        assert "&lt;img/src=x/" in html
    assert not any(name == "link" for name, _ in _Tags(page).tags)
    assert "&lt;b&gt;a" in page


def test_many_topics_show_those_that_differ_most(tmp_path):
    values = {f"t{i}": (i % 7) / 10 for i in range(230)}
    a = _run(tmp_path / "a", values)
    b = _run(tmp_path / "b", {**values, "t229": 1.0, "t3": 0.9})
    found = compare_runs(a, b, **FAST)
    shown = found.topic_table()
    assert len(shown) == 200 and {"t229", "t3"} <= set(shown["Topic"])
    assert "The 200 of 230 topics that differ most" in found.write(tmp_path / "o").read_text(
        "utf-8"
    )


def test_the_command_writes_page_tables_and_figure(tmp_path, capsys):
    a, b = _run(tmp_path / "a", A, share=A), _run(tmp_path / "b", dict.fromkeys(A, 0.4), share=A)
    out = tmp_path / "out"
    asked = ["--out", str(out), "--metrics", "precision"]
    assert main(["compare", str(a), str(b), *asked]) == 0
    assert str(out / "index.html") in capsys.readouterr().out
    tidy = pd.read_csv(out / "comparison.csv")
    assert tidy["metric"].tolist() == ["precision@5"]  # what was not asked costs no correction
    per_topic = pd.read_csv(out / "per_topic.csv").set_index("qid")
    np.testing.assert_allclose(per_topic["delta"], [0.2, 0.0, -0.2], atol=1e-12)
    assert per_topic["outcome"].tolist() == ["win", "tie", "loss"]
    assert (out / "figures" / "topic_differences.pdf").read_bytes().startswith(b"%PDF")
    # Never over a run, and never without one.
    assert main(["compare", str(a), str(b), "--out", str(b)]) == 2
    assert "is a run's folder" in capsys.readouterr().err
    assert main(["compare", str(a), str(tmp_path), "--out", str(out)]) == 2
    assert "holds no run" in capsys.readouterr().err
    assert main(["compare", str(a), str(b), "--out", str(out), "--metrics", "mrr"]) == 2
    assert "in common to compare; a has source_aware with precision@5" in capsys.readouterr().err


def test_a_name_cannot_forge_what_the_terminal_shows(tmp_path, capsys):
    a, b = _run(tmp_path / "a", A), _run(tmp_path / "ru\x1b[31m\u202en", A, share=A)
    assert main(["compare", str(a), str(b), "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "ru[31mn alone has" in said
    assert "\x1b" not in said
    assert "\u202e" not in said


def test_in_a_terminal_it_is_plain_text(tmp_path):
    a, b = _run(tmp_path / "a", A), _run(tmp_path / "b", dict.fromkeys(A, 0.4))
    text = repr(compare_runs(a, b, **FAST))
    assert text.startswith("b minus a, 3 topics") and "<" not in text and "P@5" in text
