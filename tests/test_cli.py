import json
import socket
import subprocess
import sys

import pytest

from rag_reliability.cli import main
from rag_reliability.experiment import interactive
from rag_reliability.experiment.study import open_study
from rag_reliability.files import run_lock
from rag_reliability.records import InputError

from .conftest import ROOT, SMALL


@pytest.fixture(autouse=True)
def in_the_project(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["run", "-p", "kk", "10"], "unknown parameter 'kk'"),
        (["run", "-p", "k", "ten"], "parameter 'k'"),
        (["run", "-p", "out", "x"], "use --out"),
        (["run", "--config", "nowhere.yaml"], "nowhere.yaml"),
        (["run", "-p", "corpus", "nowhere"], "nowhere"),
        (["run", "-p", "spread", "wild", "--out", "reports/x"], "unknown spread 'wild'; known: "),
        (["run", "-p", "arms", "plain,magic"], "arms: unknown 'magic'"),
        (["run", "-p", "answer_systems", "best"], "answer_systems: unknown 'best'"),
        (["run", "-p", "generator", "no/such-model"], "no/such-model"),
        (["run", "-p", "testbed", "reports/nowhere"], "testbed: reports/nowhere: no such folder"),
        (["run", "-p", "testbed", "docs"], "docs: holds neither documents.jsonl nor corpus.jsonl"),
        (
            ["run", "-p", "labelled_pairs", "nowhere.jsonl"],
            "labelled_pairs: nowhere.jsonl: no such",
        ),
        (["run", "-p", "labelled_pairs", "README.md"], "README.md:1: "),
        (["run", "-p", "threat_rules", "magic"], "threat_rules: unknown 'magic'; known: "),
        (["run", "-p", "generator", SMALL, "-p", "stance_model", "no/such-model"], "no/such-model"),
        (["run", "-p", "backend", "milvus"], "backend = milvus needs milvus_uri"),
        *(
            (
                ["run", "-p", "backend", "milvus", "-p", "milvus_uri", uri],
                f"milvus_uri '{uri}': {why}",
            )
            for uri, why in (
                ("docs.sqlite", "expected http(s)://host:port or a file *.db"),
                ("nowhere/docs.db", "no such folder: "),
                ("http://127.0.0.1:9", "no server answers there: "),
                ("http://127.0.0.1:nine", "no server answers there: "),
            )
        ),
        (["search", "x", "--system", "magic"], "unknown system 'magic'"),
        (["search", "   "], "the question is empty"),
        *(
            ([*argv, "-p", "language", "xx"], "configs/languages.yaml: no language 'xx'; known: en")
            for argv in (
                *(["search", "x"], ["ask", "x"], ["run", "--out", "reports/x"]),
                ["attack", "--data", "corpus/health120", "--threats", "flooding", "--out", "x"],
                ["threats", "--data", "corpus/health120", "--out", "reports/x"],
            )
        ),
        (["search", "x", "-p", "language", "no"], "no language 'no'"),
        (["search", "x", "-p", "languages", "nowhere.yaml"], "nowhere.yaml"),
        (["ask", "x", "-p", "generator", "no/such-model"], "no/such-model"),
        (["ask", "x", "--arm", "magic", "-p", "generator", SMALL], "magic"),
        (["validate", "nowhere"], "nowhere"),
        (["figures", "--out", "reports/nowhere"], "holds no finished run"),
    ],
)
def test_bad_input_is_one_line_and_status_2(argv, says, capsys):
    assert main(argv) == 2
    err = capsys.readouterr().err.strip().splitlines()
    assert len(err) == 1
    assert says in err[0]
    assert err[0].startswith("rag-reliability: ")


def test_a_milvus_that_takes_connections_or_a_file_in_a_folder_is_not_refused(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as server:
        for uri in (f"http://127.0.0.1:{server.getsockname()[1]}", str(tmp_path / "docs.db")):
            given = {"backend": "milvus", "milvus_uri": uri, "testbed": "reports/nowhere"}
            argv = [word for name, value in given.items() for word in ("-p", name, value)]
            assert main(["run", *argv]) == 2
            assert "testbed: reports/nowhere" in capsys.readouterr().err  # looked at after it


@pytest.mark.parametrize("argv", [[], ["nonsense"], ["search"], ["run", "-p", "k"]])
def test_bad_usage_is_one_line_and_status_2(argv, capsys):
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_debug_shows_the_traceback():
    from rag_reliability.records import InputError

    with pytest.raises(InputError):
        main(["--debug", "validate", "nowhere"])


def test_the_installed_command_refuses_with_status_2():
    done = subprocess.run(
        [sys.executable, "-m", "rag_reliability.cli", "validate", "nowhere"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_validate_counts_our_corpus(capsys):
    assert main(["validate", "corpus/health120"]) == 0
    assert capsys.readouterr().out.startswith("health120: 120 documents, 10 topics")


def test_validate_names_file_line_and_field(tmp_path, capsys):
    good = {"docno": "d1", "title": "", "text": "Some words.", "source_type": "blog"}
    bad = {"docno": "d2", "title": "", "text": "Some words.", "source_type": "blogg"}
    (tmp_path / "documents.jsonl").write_text(json.dumps(good) + "\n" + json.dumps(bad) + "\n")
    assert main(["validate", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert "documents.jsonl:2" in err
    assert "'blogg'" in err
    assert "peer_reviewed" in err
    assert err.strip().endswith("configs/priors.yaml")


def test_search_shows_tier_prior_similarity_and_score(capsys):
    assert main(["search", "Is honey safe for infants?", "-p", "k", "3"]) == 0
    lines = capsys.readouterr().out.strip().splitlines()
    assert lines[0].split()[:6] == ["rank", "was", "score", "sim", "prior", "tier"]
    assert len(lines) == 4
    for rank, line in enumerate(lines[1:], start=1):
        cells = line.split()
        assert int(cells[0]) == rank
        score, sim, prior = map(float, cells[2:5])
        assert score == pytest.approx(sim * prior, abs=0.002)


def test_a_document_cannot_forge_a_line_of_the_listing():
    from rag_reliability.experiment.interactive import Hit, listing
    from rag_reliability.records import Document

    document = Document("d\x1b[2J\n   1", "ti\x07tle", "text", "bl\u202eog", source="ho\rst")
    shown = listing([Hit(1, document, 0.5, 0.5, 0.25, 1)])
    assert len(shown.splitlines()) == 2
    assert all(c.isprintable() for line in shown.splitlines() for c in line)


def test_a_question_waits_for_another_in_the_same_folder(three_topics, tmp_path, monkeypatch):
    """Two at once over two corpora: one's documents stood in the other's index."""
    study = open_study({"corpus": str(three_topics), "out": str(tmp_path / "asked")})
    monkeypatch.setattr(interactive, "PATIENCE", 0.0)
    with run_lock(study.run_dir), pytest.raises(InputError, match="another run is writing"):
        interactive.find(study, "Is honey safe for infants?", "similarity")
    assert not (study.run_dir / "index").exists()


def test_search_by_similarity_keeps_its_order(capsys):
    assert main(["search", "Is honey safe for infants?", "--system", "similarity"]) == 0
    lines = capsys.readouterr().out.strip().splitlines()[1:]
    assert [line.split()[:2] for line in lines] == [[str(i), str(i)] for i in range(1, 6)]


def test_ask_answers_with_support_and_sources(capsys):
    argv = ["ask", "Is honey safe for infants?", "-p", "generator", SMALL, "-p", "k", "2"]
    assert main([*argv, "-p", "max_new_tokens", "24"]) == 0
    out = capsys.readouterr().out
    answer, sources = out.split("\nsources\n")
    assert "support 0." in answer or "support 1." in answer or "(no answer)" in answer
    assert len(sources.strip().splitlines()) == 3


def test_models_says_what_is_here(capsys):
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    assert SMALL in out
    assert "all-minilm-l6-v2" in out


def test_a_hostile_file_name_stays_within_one_line(tmp_path, capsys):
    (tmp_path / "a\nrag-reliability: forged\x1b[31m.txt").write_bytes(b"x\xff")
    (tmp_path / "b\n\x1b[2J.bin").write_bytes(b"x")
    table = tmp_path / "sources.csv"
    table.write_text("file,source_type\n*,blog\n")
    argv = ["ingest", str(tmp_path), "--sources", str(table), "--out", str(tmp_path / "out")]
    assert main(argv) == 2
    err = capsys.readouterr().err
    assert "\x1b" not in err and len(err.splitlines()) == 2  # a warning and the refusal
    assert not (tmp_path / "out").exists()
