"""Corpora and runs in other tools' formats, read by those tools and back."""

from __future__ import annotations

import json
import warnings

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rag_reliability.cli import main
from rag_reliability.commands.export import FORMATS
from rag_reliability.datasets.read import read_corpus
from rag_reliability.datasets.topics import read_topics
from rag_reliability.datasets.trec import read_qrels, read_run
from rag_reliability.datasets.write import write_corpus
from rag_reliability.evaluation.ranking import evaluate_ranking
from rag_reliability.integrations.convert import CORPUS_FORMATS, export
from rag_reliability.integrations.exports import (
    from_datasets,
    judgements,
    read_datasets,
    read_parquet,
    run_dict,
    scored_docs,
    to_datasets,
    write_datasets,
    write_parquet,
)
from rag_reliability.records import Claim, Corpus, Document, InputError, Topic

from .conftest import ROOT

RUNS = ROOT / "reports" / "paper" / "runs"
ODD = Corpus(
    "odd",
    (
        Document("d1", "\u2028", "a\tb\n=1+1", "blog", "Pub", "u", "2020", True, True, ("c:gold",)),
        Document("d2", "", "{{x}} 'é' \x00", "government"),
    ),
    (
        Topic("q1", "Does\tit\nwork?", "no", "Why.", (Claim("c", "It does.", "It does not."),)),
        Topic("q2", "What?"),
    ),
    {"q1": {"d1": 0, "d2": 3}, "q2": {"d1": 1}},
)
BARE = Corpus("bare", (Document("d1", "", "text", "blog"),))


@pytest.fixture(scope="module")
def run() -> pd.DataFrame:
    return read_run(RUNS / "source_aware.trec")


# ---- corpora -------------------------------------------------------------------------------


@pytest.mark.parametrize("corpus", [ODD, BARE], ids=lambda c: c.name)
def test_parquet_reads_back_the_same(tmp_path, corpus):
    write_parquet(corpus, tmp_path / corpus.name)
    assert read_parquet(tmp_path / corpus.name) == corpus
    frame = pd.read_parquet(tmp_path / corpus.name / "documents.parquet")
    assert frame["text"].tolist() == [d.text for d in corpus.documents]
    assert frame["verified"].dtype == bool


@pytest.mark.parametrize("corpus", [ODD, BARE], ids=lambda c: c.name)
def test_datasets_read_back_the_same(tmp_path, corpus):
    pytest.importorskip("datasets")
    found = to_datasets(corpus)
    assert found["documents"][0]["text"] == corpus.documents[0].text
    assert from_datasets(found, corpus.name) == corpus
    write_datasets(corpus, tmp_path / corpus.name)
    assert read_datasets(tmp_path / corpus.name) == corpus
    # a dataset of one's own needs no more than this
    library = pytest.importorskip("datasets")
    own = library.Dataset.from_list([{"docno": "d1", "text": "text", "source_type": "blog"}])
    assert from_datasets({"documents": own}, "bare") == BARE


def test_health120_survives_every_format_in_turn(tmp_path, health120):
    pytest.importorskip("datasets")
    export(ROOT / "corpus" / "health120", "parquet", tmp_path / "a" / "health120")
    export(tmp_path / "a" / "health120", "datasets", tmp_path / "b" / "health120")
    assert read_datasets(tmp_path / "b" / "health120") == health120
    with pytest.warns(UserWarning, match="no place for 30 claims"):
        export(tmp_path / "b" / "health120", "beir", tmp_path / "c" / "health120")
    beir = read_corpus(tmp_path / "c" / "health120")
    assert beir.qrels == health120.qrels
    assert [d.text for d in beir.documents] == [d.text for d in health120.documents]
    export(tmp_path / "c" / "health120", "trec", tmp_path / "d")
    assert read_qrels(tmp_path / "d" / "qrels.txt") == health120.qrels
    topics = read_topics(tmp_path / "d" / "topics.tsv")
    assert [(t.qid, t.query) for t in topics] == [(t.qid, t.query) for t in health120.topics]


def test_trec_topics_stand_on_one_line(tmp_path):
    write_corpus(ODD, tmp_path / "odd")
    export(tmp_path / "odd", "trec", tmp_path / "trec")
    assert (tmp_path / "trec" / "topics.tsv").read_text() == "q1\tDoes it work?\nq2\tWhat?\n"


@pytest.mark.parametrize(
    ("table", "rows", "says"),
    [
        ("documents", [{"docno": "d1", "text": "x"}], "documents, row 0: field 'source_type'"),
        ("documents", [{"docno": "d 1", "text": "x", "source_type": "b"}], "field 'docno'"),
        ("documents", [{"docno": "d1", "text": "x", "source_type": "b"}] * 2, "duplicate docno"),
        ("documents", [{"docno": 1, "text": "x", "source_type": "b"}], "row 0: field 'docno'"),
        ("documents", [{"docno": "d1", "text": "x", "source_type": "b", "z": 1}], "field 'z'"),
        ("topics", [{"qid": "q9"}], "topics, row 0: field 'query'"),
        ("qrels", [{"qid": "q1", "docno": "d9", "label": 1}], "document 'd9' is not in the corpus"),
        ("qrels", [{"qid": "q1", "docno": "d1", "label": 7}], "qrels, row 0: label '7'"),
        ("qrels", [{"qid": "q1", "docno": "d1"}], "qrels, row 0: field 'label' is missing"),
    ],
)
def test_a_faulty_table_is_named(tmp_path, table, rows, says):
    write_parquet(ODD, tmp_path)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / f"{table}.parquet")
    with pytest.raises(InputError) as caught:
        read_parquet(tmp_path)
    assert says in str(caught.value)


def test_files_that_are_no_tables(tmp_path):
    (tmp_path / "documents.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(InputError, match=r"documents.parquet: cannot be read as Parquet"):
        export(tmp_path, "beir", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    pytest.importorskip("datasets")
    (tmp_path / "x" / "documents").mkdir(parents=True)
    (tmp_path / "x" / "documents" / "dataset_info.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read as datasets"):
        export(tmp_path / "x", "beir", tmp_path / "out")


# ---- runs ----------------------------------------------------------------------------------


def test_ranx_and_ir_measures_agree_with_ours(run, health120):
    import ir_measures
    import ranx

    order = {qid: rows["docno"].tolist() for qid, rows in run.groupby("qid")}
    ours = evaluate_ranking(order, health120.qrels).groupby("metric")["value"].mean()
    names = ["precision@5", "ndcg@5", "mrr"]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="unsafe cast")
        theirs = ranx.evaluate(ranx.Qrels(health120.qrels), ranx.Run(run_dict(run)), names)
    assert theirs == pytest.approx({name: ours[name] for name in names})
    measures = [ir_measures.P @ 5, ir_measures.nDCG @ 5, ir_measures.RR]
    for qrels, scored in (
        (judgements(health120.qrels), scored_docs(run)),
        (health120.qrels, run_dict(run)),
    ):
        found = ir_measures.calc_aggregate(measures, qrels, scored)
        assert [found[m] for m in measures] == pytest.approx([ours[name] for name in names])


def test_ties_keep_the_run_s_order():
    rows = [("q", "a", 1, 0.5, "s"), ("q", "b", 2, 0.5, "s"), ("q", "c", 3, 0.1, "s")]
    run = pd.DataFrame(rows, columns=["qid", "docno", "rank", "score", "system"])
    assert run_dict(run) == {"q": {"a": 1.0, "b": 0.5, "c": pytest.approx(1 / 3)}}
    assert run_dict(run, by_rank=False) == {"q": {"a": 0.5, "b": 0.5, "c": 0.1}}


def test_a_run_s_folder_in_every_format(tmp_path, run):
    datasets = pytest.importorskip("datasets")
    ranx = pytest.importorskip("ranx")
    source = ROOT / "reports" / "paper"
    for to in FORMATS:
        export(source, to, tmp_path / to)
    written = tmp_path / "trec" / "source_aware.trec"
    assert written.read_bytes() == (RUNS / "source_aware.trec").read_bytes()
    table = pd.read_parquet(tmp_path / "parquet" / "runs.parquet")
    own = table[table["system"] == "source_aware"].reset_index(drop=True)
    pd.testing.assert_frame_equal(own[run.columns], run, check_dtype=False)
    assert set(table["system"]) == {path.stem for path in RUNS.glob("*.trec")}
    assert datasets.load_from_disk(str(tmp_path / "datasets" / "runs")).num_rows == len(table)
    read = ranx.Run.from_file(str(tmp_path / "beir" / "source_aware.json")).to_dict()
    assert read == run_dict(run, by_rank=False)


def test_a_system_s_name_is_no_path(tmp_path):
    (tmp_path / "mine.trec").write_text("q1 Q0 d1 1 0.5 ../../evil\n")
    export(tmp_path / "mine.trec", "trec", tmp_path / "out")
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["mine.trec"]
    assert not [p for p in tmp_path.rglob("*evil*")]


# ---- the command ---------------------------------------------------------------------------


def test_the_command_knows_the_formats():
    assert set(FORMATS) == set(CORPUS_FORMATS)


def test_the_command_exports(tmp_path, capsys):
    out = tmp_path / "out"
    source = str(ROOT / "corpus" / "health120")
    assert main(["export", source, "--to", "parquet", "--out", str(out)]) == 0
    expected = f"{out}: documents 120, topics 10, judgements 121\n"
    assert capsys.readouterr().out == expected
    assert sorted(p.name for p in out.parent.iterdir()) == ["out"]  # nothing left beside it
    assert main(["export", str(RUNS / "similarity.trec"), "--to", "beir", "--out", f"{out}2"]) == 0
    assert json.loads((tmp_path / "out2" / "similarity.json").read_text())["q001"]
    assert "rankings 1, places " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["nowhere", "--to", "beir", "--out", "OUT"], "nowhere: expected a folder with"),
        (["CORPUS", "--to", "beir", "--out", "FULL"], "is there already; expected a new folder"),
        (["FULL/file", "--to", "trec", "--out", "OUT"], "file:1: expected 6 fields"),
    ],
)
def test_the_command_refuses_in_one_line(tmp_path, capsys, argv, says):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("some text\n")
    places = {
        "CORPUS": str(ROOT / "corpus" / "health120"),
        "FULL/file": str(tmp_path / "full" / "file"),
        "FULL": str(tmp_path / "full"),
        "OUT": str(tmp_path / "out"),
    }
    assert main(["export", *(places.get(word, word) for word in argv)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line
    assert not (tmp_path / "out").exists()
    assert [p.name for p in (tmp_path / "full").iterdir()] == ["file"]
