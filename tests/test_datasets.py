"""Reading refuses early and says where; writing gives back what was read."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_reliability.datasets.check import summarise
from rag_reliability.datasets.read import read_corpus
from rag_reliability.datasets.trec import read_qrels, read_run, write_qrels, write_run
from rag_reliability.datasets.write import write_corpus
from rag_reliability.records import Claim, Corpus, Document, InputError, Ranking, Topic

SHARED = Path(__file__).parents[1].parent / "shared" / "data"
TYPES = ("government", "blog")

DOCUMENT = {"docno": "d1", "title": "T", "text": "Some text.", "source_type": "blog"}
SECOND = {"docno": "d2", "text": "More text.", "source_type": "government"}
CLAIM = {"id": "q1-c1", "gold": "It does.", "false": "It does not."}
TOPIC = {"qid": "q1", "query": "Does it?", "stance": "yes", "claims": [CLAIM]}
QRELS = "q1 0 d1 2\nq1 0 d2 0\n"


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


Folder = Callable[..., Path]


@pytest.fixture
def own(tmp_path: Path) -> Folder:
    """Writes a corpus folder in our layout; anything but None can be replaced."""

    def write(
        documents: str | bytes = lines(DOCUMENT, SECOND),
        topics: str | None = lines(TOPIC),
        qrels: str | None = QRELS,
    ) -> Path:
        folder = tmp_path / "own"
        folder.mkdir()
        files = {"documents.jsonl": documents, "topics.jsonl": topics, "qrels.txt": qrels}
        for name, text in files.items():
            if text is not None:
                data = text if isinstance(text, bytes) else text.encode("utf-8")
                (folder / name).write_bytes(data)
        return folder

    return write


@pytest.fixture
def beir(tmp_path: Path) -> Folder:
    def write(
        corpus: str | None = None,
        queries: str | None = None,
        qrels: str = "query-id\tcorpus-id\tscore\nq1\td1\t3\n",
    ) -> Path:
        folder = tmp_path / "beir"
        (folder / "qrels").mkdir(parents=True)
        meta = {"source_type": "blog", "url": "https://Blog.example/x", "verified": True}
        document = {"_id": "d1", "title": "", "text": "Some text.", "metadata": meta}
        query = {"_id": "q1", "text": "Does it?", "metadata": {"stance": "no"}}
        (folder / "corpus.jsonl").write_text(corpus or lines(document), "utf-8")
        (folder / "queries.jsonl").write_text(queries or lines(query), "utf-8")
        (folder / "qrels" / "test.tsv").write_text(qrels, "utf-8")
        return folder

    return write


def refused(folder: Path, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read_corpus(folder, **options)
    message = str(caught.value)
    assert "\n" not in message and len(message) < 600
    return message


# ---- what is read --------------------------------------------------------------------------


def test_own_layout(own):
    corpus = read_corpus(own(), known_types=TYPES)
    assert corpus.name == "own"
    assert corpus.documents[0] == Document("d1", "T", "Some text.", "blog")
    assert corpus.topics == (
        Topic("q1", "Does it?", "yes", "", (Claim("q1-c1", "It does.", "It does not."),)),
    )
    assert corpus.qrels == {"q1": {"d1": 2, "d2": 0}}


def test_documents_alone_are_a_corpus(own):
    corpus = read_corpus(own(topics=None, qrels=None))
    assert (len(corpus.documents), corpus.topics, corpus.qrels) == (2, (), {})


def test_beir_layout(beir):
    corpus = read_corpus(beir())
    assert corpus.documents == (
        Document(
            "d1", "", "Some text.", "blog",
            source="blog.example", url="https://Blog.example/x", verified=True,
        ),
    )  # fmt: skip
    assert corpus.topics == (Topic("q1", "Does it?", "no"),)
    assert corpus.qrels == {"q1": {"d1": 3}}


def test_beir_defaults_and_foreign_metadata(beir):
    row = {"_id": "d1", "text": "x", "metadata": {"pubmed_id": 7, "url": "http://[bad"}}
    folder = beir(lines(row))
    message = refused(folder)
    assert "corpus.jsonl:1" in message and "'metadata.source_type' is missing" in message
    document = read_corpus(folder, default_type="government").documents[0]
    assert (document.source_type, document.source, document.adversarial) == (
        "government",
        "",
        False,
    )
    assert "known: blog" in refused(folder, default_type="government", known_types=["blog"])


def test_beir_repeats_keep_the_highest_label_and_are_counted(beir):
    folder = beir(qrels="query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td1\t3\nq1\td1\t2\n")
    with pytest.warns(UserWarning, match="2 judgements repeat a pair; its highest"):
        assert read_corpus(folder).qrels == {"q1": {"d1": 3}}


def test_every_beir_split_is_read(beir):
    folder = beir(lines({"_id": "d1", "text": "x"}, {"_id": "d2", "text": "y"}))
    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td2\t1\n")
    assert read_corpus(folder, default_type="blog").qrels == {"q1": {"d2": 1, "d1": 3}}


@pytest.mark.parametrize("text", ["\ufeff", "\n\n", "  \n"])
def test_byte_order_marks_and_blank_lines_are_passed_over(own, text):
    assert len(read_corpus(own(documents=text + lines(DOCUMENT, SECOND))).documents) == 2


def test_windows_line_ends(own):
    folder = own(lines(DOCUMENT, SECOND).replace("\n", "\r\n"), qrels=QRELS.replace("\n", "\r\n"))
    assert read_corpus(folder).qrels == {"q1": {"d1": 2, "d2": 0}}


def test_unicode_line_separators_do_not_end_a_line(own):
    text = "one\u2028two\u2029three\x85four"
    row = json.dumps(DOCUMENT | {"text": text}, ensure_ascii=False)
    assert read_corpus(own(row + "\n" + lines(SECOND))).documents[0].text == text


def test_a_line_of_ten_megabytes(own):
    text = "word " * 2_000_000
    assert read_corpus(own(lines(DOCUMENT | {"text": text}, SECOND))).documents[0].text == text


def test_a_broken_line_of_ten_megabytes_is_refused_in_few_words(own):
    assert "field 'verified'" in refused(own(lines(DOCUMENT | {"verified": "x" * 10_000_000})))


def test_known_types(own):
    folder = own()
    assert len(read_corpus(folder, known_types=["blog"], unknown_ok=True).documents) == 2
    message = refused(folder, known_types=["blog", "ai_generated"])
    assert "documents.jsonl:2" in message and "unknown 'government'" in message
    assert message.endswith("known: ai_generated, blog")
    message = refused(folder, known_types=["blog"], known_in="my/priors.yaml")
    assert message.endswith("; to add it, give it a prior in each spread of my/priors.yaml")


def test_topics_without_relevant_documents_are_kept_and_reported(own):
    folder = own(topics=lines(TOPIC, {"qid": "q2", "query": "?"}), qrels="q1 0 d1 0\n")
    corpus = read_corpus(folder)
    assert [t.qid for t in corpus.topics] == ["q1", "q2"]
    said = summarise(corpus).warnings
    assert "no judgements: 1 topic (q2)" in said
    assert "no relevant document: 1 topic (q1)" in said


# ---- what is refused -----------------------------------------------------------------------

BAD_DOCUMENTS = {
    "not json": ("{", ":1: not JSON"),
    "two objects": ("{}{}", ":1: not JSON"),
    "array": ("[1]", ":1: expected one JSON object"),
    "null": ("null", ":1: expected one JSON object"),
    "nan": (lines(DOCUMENT | {"verified": float("nan")}), ":1: not JSON that can be read: NaN"),
    "infinity": ('{"docno": -Infinity}', "-Infinity is not a JSON value"),
    "too deep": ("[" * 100_000, ":1: not JSON"),
    "endless number": ('{"docno": ' + "9" * 10_000 + "}", ":1: not JSON that can be read"),
    "field twice": ('{"docno": "a", "docno": "b"}', "field 'docno' stands twice"),
    "second line": (lines(DOCUMENT) + "{", ":2: not JSON"),
    "no docno": (lines({"text": "x", "source_type": "blog"}), ":1: field 'docno' is missing"),
    "null docno": (
        lines(DOCUMENT | {"docno": None}),
        "field 'docno' input should be a valid string",
    ),
    "empty docno": (lines(DOCUMENT | {"docno": ""}), "field 'docno' must not be empty"),
    "number docno": (
        lines(DOCUMENT | {"docno": 7}),
        "field 'docno' input should be a valid string",
    ),
    "space in docno": (lines(DOCUMENT | {"docno": "a b"}), "must not hold spaces"),
    "tab in docno": (lines(DOCUMENT | {"docno": "a\tb"}), "must not hold spaces"),
    "separator in docno": (lines(DOCUMENT | {"docno": "a\u2028b"}), "must not hold spaces"),
    "NUL in docno": (lines(DOCUMENT | {"docno": "a\0"}), "must not hold spaces"),
    "long docno": (lines(DOCUMENT | {"docno": "a" * 201}), "has 201 characters"),
    "duplicate docno": (lines(DOCUMENT, DOCUMENT), ":2: duplicate docno 'd1', first at"),
    "no text": (lines({"docno": "d", "source_type": "blog"}), "field 'text' is missing"),
    "empty text": (lines(DOCUMENT | {"text": ""}), "field 'text' is empty"),
    "blank text": (lines(DOCUMENT | {"text": " \n\u2028\u200b\0"}), "field 'text' is empty"),
    "half a pair": (lines(DOCUMENT | {"text": "a\ud800"}), "half a surrogate pair"),
    "no type": (lines({"docno": "d", "text": "x"}), "field 'source_type' is missing"),
    "long source": (lines(DOCUMENT | {"source": "s" * 301}), "field 'source'"),
    "verified word": (lines(DOCUMENT | {"verified": "true"}), "field 'verified' input should be"),
    "verified number": (lines(DOCUMENT | {"verified": 1}), "field 'verified' input should be"),
    "adversarial null": (lines(DOCUMENT | {"adversarial": None}), "field 'adversarial'"),
    "date number": (lines(DOCUMENT | {"date": 2020}), "field 'date'"),
    "claims text": (lines(DOCUMENT | {"claims": "q1-c1:gold"}), "field 'claims'"),
    "claims numbers": (lines(DOCUMENT | {"claims": [1]}), "field 'claims.0'"),
    "claim side": (lines(DOCUMENT | {"claims": ["q1-c1:wrong"]}), "with :gold or :false"),
    "claim alone": (lines(DOCUMENT | {"claims": ["q1-c1"]}), "with :gold or :false"),
    "claim unknown": (
        lines(SECOND, DOCUMENT | {"claims": ["q9-c1:gold"]}),
        ":2: field 'claims': 'q9-c1:gold' is no claim of topics.jsonl",
    ),
    "typo": (lines(DOCUMENT | {"adverserial": True}), "did you mean 'adversarial'?"),
    "foreign field": (lines(DOCUMENT | {"zzz": 1}), "unknown field 'zzz'; known: docno"),
    "no documents": ("", "the corpus holds no documents"),
    "latin-1": ('{"docno": "d\xe9"}'.encode("latin-1"), ":1: not UTF-8 (0xe9 at byte 13"),
    "utf-16": (lines(DOCUMENT).encode("utf-16"), ":1: not UTF-8"),
}


@pytest.mark.parametrize("case", BAD_DOCUMENTS)
def test_bad_documents(own, case):
    text, expected = BAD_DOCUMENTS[case]
    message = refused(own(text))
    assert expected in message
    assert "documents.jsonl" in message or case == "no documents"


BAD_TOPICS = {
    "no qid": ({"query": "?"}, "field 'qid' is missing"),
    "no query": ({"qid": "q1"}, "field 'query' is missing"),
    "blank query": (TOPIC | {"query": "  "}, "field 'query' is empty"),
    "space in qid": (TOPIC | {"qid": "q 1"}, "must not hold spaces"),
    "stance maybe": (TOPIC | {"stance": "maybe"}, "field 'stance' input should be 'yes' or 'no'"),
    "stance true": (TOPIC | {"stance": True}, "field 'stance'"),
    "typo": (TOPIC | {"stanse": "no"}, "did you mean 'stance'?"),
    "claims object": (TOPIC | {"claims": CLAIM}, "field 'claims'"),
    "claim without false": (
        TOPIC | {"claims": [{"id": "c", "gold": "x"}]},
        "'claims.0.false' is missing",
    ),
    "claim without gold": (
        TOPIC | {"claims": [CLAIM, {"id": "c", "false": "x"}]},
        "'claims.1.gold' is missing",
    ),
    "claim empty": (TOPIC | {"claims": [CLAIM | {"gold": ""}]}, "'claims.0.gold' is empty"),
    "claim typo": (TOPIC | {"claims": [CLAIM | {"fals": "x"}]}, "did you mean 'false'?"),
    "claim twice": (TOPIC | {"claims": [CLAIM, CLAIM]}, "duplicate claim id 'q1-c1'"),
    "claim no pair": (TOPIC | {"claims": [CLAIM | {"false": "It does. "}]}, "are the same"),
}


@pytest.mark.parametrize("case", BAD_TOPICS)
def test_bad_topics(own, case):
    row, expected = BAD_TOPICS[case]
    message = refused(own(topics=lines(row), qrels=None))
    assert expected in message and "topics.jsonl:1" in message


def test_duplicate_topics_and_claims_across_topics(own):
    other = TOPIC | {"qid": "q2"}
    assert "topics.jsonl:2: duplicate claim id" in refused(own(topics=lines(TOPIC, other)))


def test_duplicate_qid(own):
    assert "topics.jsonl:2: duplicate qid 'q1'" in refused(own(topics=lines(TOPIC, TOPIC)))


BAD_QRELS = {
    "three fields": ("q1 d1 1", "expected 4 fields (qid 0 docno label), got 3"),
    "five fields": ("q1 0 d1 1 x", "expected 4 fields"),
    "unknown docno": ("q1 0 d9 1", "document 'd9' is not in the corpus"),
    "unknown topic": ("q9 0 d1 1", "topic 'q9' is not in"),
    "fraction": ("q1 0 d1 1.0", "label '1.0': expected 0, 1, 2 or 3"),
    "word": ("q1 0 d1 high", "label 'high'"),
    "negative": ("q1 0 d1 -1", "label '-1'"),
    "above 3": ("q1 0 d1 4", "label '4'"),
    "foreign digit": ("q1 0 d1 ١", "label '١'"),
    "twice": ("q1 0 d1 1\nq1 0 d1 1", "topic 'q1' and document 'd1' are judged twice"),
}


@pytest.mark.parametrize("case", BAD_QRELS)
def test_bad_qrels(own, case):
    text, expected = BAD_QRELS[case]
    message = refused(own(qrels=text))
    assert expected in message and f"qrels.txt:{text.count(chr(10)) + 1}: " in message


def test_qrels_need_topics(own):
    assert "topic 'q1' is not in" in refused(own(topics=None))


BAD_BEIR = {
    "typo": ({"metadata": {"adverserial": True}}, "'metadata.adverserial': did you mean"),
    "misplaced": ({"source_type": "blog"}, "field 'source_type' belongs into 'metadata'"),
    "metadata": ({"metadata": []}, "field 'metadata' must be an object"),
    "verified": ({"metadata": {"verified": "yes"}}, "field 'metadata.verified'"),
    "id": ({"_id": "a b"}, "field '_id' must not hold spaces"),
    "text": ({"text": ""}, "field 'text' is empty"),
}


@pytest.mark.parametrize("case", BAD_BEIR)
def test_bad_beir_documents(beir, case):
    change, expected = BAD_BEIR[case]
    message = refused(beir(lines({"_id": "d1", "text": "x", **change})), default_type="blog")
    assert expected in message and "corpus.jsonl:1" in message


@pytest.mark.parametrize(
    ("qrels", "expected"),
    [
        ("q1\td1\t1\n", "test.tsv:1: expected the header query-id corpus-id score"),
        ("", "test.tsv:1: expected the header"),
        ("query-id\tcorpus-id\tscore\nq1 d1 1\n", "test.tsv:2: expected 3 fields between tabs"),
        ("query-id\tcorpus-id\tscore\nq1\td1\t1.5\n", "test.tsv:2: label '1.5'"),
        ("query-id\tcorpus-id\tscore\nq1\td7\t1\n", "document 'd7' is not in the corpus"),
        ("query-id\tcorpus-id\tscore\nq7\td1\t1\n", "topic 'q7' is not in"),
    ],
)
def test_bad_beir_qrels(beir, qrels, expected):
    assert expected in refused(beir(qrels=qrels))


def test_bad_beir_queries(beir):
    row = {"_id": "q1", "text": "?", "metadata": {"stance": "perhaps"}}
    assert "queries.jsonl:1: field 'metadata.stance'" in refused(beir(queries=lines(row)))


def test_folders_that_are_no_corpus(tmp_path, own):
    assert "expected a folder" in refused(tmp_path / "nowhere")
    assert "neither documents.jsonl nor corpus.jsonl" in refused(tmp_path)
    folder = own()
    assert "expected a folder" in refused(folder / "qrels.txt")
    (folder / "corpus.jsonl").touch()
    assert "expected one of them" in refused(folder)


def test_a_folder_named_like_a_file_is_one_line(tmp_path):
    (tmp_path / "documents.jsonl").mkdir()
    assert "documents.jsonl: cannot be read: Is a directory" in refused(tmp_path)


# ---- there and back ------------------------------------------------------------------------

names = st.text(min_size=1, max_size=8).filter(
    lambda s: s.isprintable() and " " not in s and s == s.encode("utf-8", "ignore").decode()
)
hostile = st.one_of(
    st.text(),
    st.sampled_from(
        [
            "\u2028\u2029\x85",
            "\0\x1b[31m",
            '"}\n{"',
            "<|im_start|>system",
            "</script>",
            "\ufeff",
            "\\u2028",
        ]
    ),
)
texts = hostile.map(lambda s: "x" + s)
claims = st.builds(Claim, st.just("c"), texts.map("a{}".format), texts.map("b{}".format))


@st.composite
def corpora(draw: st.DrawFn) -> Corpus:
    docnos = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    qids = draw(st.lists(names, max_size=3, unique=True))
    topics = tuple(
        Topic(qid, draw(texts), draw(st.sampled_from(["yes", "no", None])), draw(hostile),
              (Claim(f"c{i}", draw(texts) + "1", draw(texts) + "2"),))
        for i, qid in enumerate(qids)
    )  # fmt: skip
    refs = [f"c{i}:{side}" for i in range(len(qids)) for side in ("gold", "false")]
    mentioned = st.lists(st.sampled_from(refs), max_size=2).map(tuple) if refs else st.just(())
    documents = tuple(
        Document(docno, draw(hostile), draw(texts), draw(names), draw(hostile)[:300],
                 draw(hostile), draw(hostile), draw(st.booleans()), draw(st.booleans()),
                 draw(mentioned))
        for docno in docnos
    )  # fmt: skip
    labels = st.dictionaries(st.sampled_from(docnos), st.integers(0, 3), min_size=1)
    qrels = draw(st.dictionaries(st.sampled_from(qids), labels)) if qids else {}
    return Corpus("round", documents, topics, qrels)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(corpus=corpora())
def test_written_corpora_read_back_the_same(tmp_path, corpus):
    write_corpus(corpus, tmp_path / "round")
    assert read_corpus(tmp_path / "round") == corpus
    # Other tools count lines by every Unicode line end.
    text = (tmp_path / "round" / "documents.jsonl").read_text("utf-8")
    assert len(text.splitlines()) == len(corpus.documents)


@pytest.mark.parametrize(
    "document",
    [
        Document("a b", "", "x", "blog"),
        Document("a", "", "", "blog"),
        Document("a", "", "\ud800", "b"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(tmp_path, document):
    good = Document("good", "", "x", "blog")
    with pytest.raises(InputError, match="document"):
        write_corpus(Corpus("c", (good, document)), tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_qrels_round_trip(tmp_path):
    qrels = {"q2": {"d1": 0}, "q1": {"d9": 3, "d2": 1}}
    write_qrels(tmp_path / "q.txt", qrels)
    assert (tmp_path / "q.txt").read_text() == "q2 0 d1 0\nq1 0 d9 3\nq1 0 d2 1\n"
    assert read_qrels(tmp_path / "q.txt") == qrels
    with pytest.raises(InputError, match="must not hold spaces"):
        write_qrels(tmp_path / "q.txt", {"q 1": {"d": 1}})
    assert read_qrels(tmp_path / "q.txt") == qrels


# ---- runs ----------------------------------------------------------------------------------


def test_run_file_by_hand(tmp_path):
    ranking = Ranking(("q1", "q2"), [[1, 0], [0, 1]], [[0.5, 0.25], [1 / 3, -2e-17]])
    write_run(tmp_path / "s.trec", ranking, np.array(["da", "db"]), "sys")
    assert (tmp_path / "s.trec").read_text() == (
        "q1 Q0 db 1 0.5 sys\nq1 Q0 da 2 0.25 sys\n"
        "q2 Q0 da 1 0.3333333333333333 sys\nq2 Q0 db 2 -2e-17 sys\n"
    )
    run = read_run(tmp_path / "s.trec")
    assert list(run.columns) == ["qid", "docno", "rank", "score", "system"]
    assert run["rank"].tolist() == [1, 2, 1, 2] and set(run["system"]) == {"sys"}


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6))
def test_scores_read_back_to_the_last_digit(tmp_path, scores):
    scores = sorted(scores, reverse=True)
    ranking = Ranking(("q",), [list(range(len(scores)))], [scores])
    write_run(tmp_path / "r", ranking, np.array([f"d{i}" for i in range(len(scores))]), "s")
    assert read_run(tmp_path / "r")["score"].tolist() == scores


def test_foreign_runs_may_use_tabs_and_start_at_zero_out_of_order(tmp_path):
    (tmp_path / "r").write_text("q\tQ0\td1\t1\t1.5\ts\nq  Q0 d2  0 2e0 s\n")
    assert read_run(tmp_path / "r")["docno"].tolist() == ["d2", "d1"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("q Q0 d 1 s", ":1: expected 6 fields"),
        ("q Q0 d 1.5 1 s", ":1: rank '1.5'"),
        ("q Q0 d -1 1 s", ":1: rank '-1'"),
        ("q Q0 d 1 nan s", ":1: score 'nan': expected a finite number"),
        ("q Q0 d 1 inf s", ":1: score 'inf'"),
        ("q Q0 d 1 1_0 s", ":1: score '1_0'"),
        ("q Q0 d 1 x s", ":1: score 'x'"),
        ("q Q0 d 1 2 s\nq Q0 d 2 1 s", ":2: document 'd' stands twice"),
        ("q Q0 d 1 2 s\nq Q0 e 1 1 s", ":2: rank 1 stands twice"),
        ("q Q0 d 1 1 s\nq Q0 e 2 2 s", ":2: score 2.0 is above"),
        ("q Q0 d 1 1 s\nq Q0 e 2 1 t", ":2: expected one system"),
        ("\n", "the run holds no rows"),
    ],
)
def test_bad_runs(tmp_path, text, expected):
    (tmp_path / "r").write_text(text)
    with pytest.raises(InputError) as caught:
        read_run(tmp_path / "r")
    assert expected in str(caught.value) and str(caught.value).startswith(str(tmp_path / "r"))


def test_a_missing_run_is_one_line(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_run(tmp_path / "none")


def test_a_run_with_spaces_in_a_name_is_not_written(tmp_path):
    ranking = Ranking(("q",), [[0]], [[1.0]])
    for docno, system in (("a b", "s"), ("a", "s t")):
        with pytest.raises(InputError, match="must not hold spaces"):
            write_run(tmp_path / "r", ranking, np.array([docno]), system)
    assert not (tmp_path / "r").exists()


# ---- summary -------------------------------------------------------------------------------


def test_summary_counts_by_hand():
    documents = (
        Document("a", "", "same  Text", "blog", "s", "https://x.example", "2020-02-29", True),
        Document("b", "", "same text", "blog", "s", "ftp://x.example", "2021-02-29", False, True),
        Document("c", "", "w " * 2000, "government", "", "", "2019"),
    )
    topics = (Topic("q1", "?"), Topic("q2", "?"))
    corpus = Corpus("c", documents, topics, {"q1": {"a": 2, "b": 0, "c": 2}, "q2": {"a": 1}})
    summary = summarise(corpus)
    assert (summary.n_documents, summary.n_topics, summary.n_judgements) == (3, 2, 4)
    assert summary.by_type.to_dict("list") == {
        "source_type": ["blog", "government"],
        "documents": [2, 1],
        "adversarial": [1, 0],
        "verified": [1, 0],
        "label_0": [1, 0],
        "label_1": [1, 0],
        "label_2": [1, 1],
        "label_3": [0, 0],
    }
    assert summary.by_topic.values.tolist() == [
        ["q1", "blog", 0, 1],
        ["q1", "blog", 2, 1],
        ["q1", "government", 2, 1],
        ["q2", "blog", 1, 1],
    ]
    assert summary.warnings == (
        "text shared with another document: 2 documents (a, b)",
        "2,000 words or more: 1 document (c)",
        "date not YYYY, YYYY-MM or YYYY-MM-DD: 1 document (b)",
        "no url: 1 document (c)",
        "url not http or https, or without a host: 1 document (b)",
        "no source: 1 document (c)",
    )


def test_summary_of_documents_alone():
    summary = summarise(Corpus("c", tuple(replace(DOC, docno=f"d{i}") for i in range(7))))
    assert summary.by_topic.empty and summary.by_type["label_0"].tolist() == [0]
    assert summary.warnings[0] == "no topics: the corpus can be searched, but not scored"
    assert summary.warnings[1].endswith(": 7 documents (d0, d1, d2, d3, d4, …)")


DOC = Document("d", "", "x", "blog")


# ---- public sets ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "n_documents", "n_topics", "n_adversarial"),
    [("liveqa-medquad", 6000, 43, 0), ("trec-hm-answers", 1900, 28, 904)],
)
def test_public_sets_read_and_round_trip(tmp_path, name, n_documents, n_topics, n_adversarial):
    if not (SHARED / name).is_dir():
        pytest.skip(f"{SHARED / name} is missing: public data is not part of this repository")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        corpus = read_corpus(SHARED / name)
    found = (len(corpus.documents), len(corpus.topics), int(corpus.adversarial.sum()))
    assert found == (n_documents, n_topics, n_adversarial)
    write_corpus(corpus, tmp_path / name)
    assert read_corpus(tmp_path / name) == corpus
