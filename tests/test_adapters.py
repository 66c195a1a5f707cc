"""Foreign layouts: BEIR there and back, topic files of tracks, ir_datasets ids, real hosts."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rag_reliability.datasets.hosts import type_of_host, types_of_sources
from rag_reliability.datasets.irds import read_ir_dataset
from rag_reliability.datasets.read import read_corpus
from rag_reliability.datasets.topics import read_topics, read_trec
from rag_reliability.datasets.write import write_beir
from rag_reliability.records import Claim, Corpus, Document, InputError, Topic

FULL = Document(
    "d1", "T\u2028", "a\tb", "blog", "Pub", "https://x.example/1", "2020", True, True
)  # fmt: skip
BARE = Document("d2", "", "text", "government", url="https://host.example")
TOPICS = (Topic("q1", "Does it?", "no", "Why."), Topic("q2", "What?"))
CORPUS = Corpus("beir", (FULL, BARE), TOPICS, {"q1": {"d1": 0, "d2": 3}})


# ---- BEIR ----------------------------------------------------------------------------------


def test_beir_folders_read_back_the_same(tmp_path):
    write_beir(CORPUS, tmp_path / "beir")
    assert read_corpus(tmp_path / "beir") == CORPUS
    row = json.loads((tmp_path / "beir" / "corpus.jsonl").read_text("utf-8").splitlines()[0])
    assert row["_id"] == "d1" and row["metadata"]["adversarial"] is True
    qrels = (tmp_path / "beir" / "qrels" / "test.tsv").read_text("utf-8")
    assert qrels == "query-id\tcorpus-id\tscore\nq1\td1\t0\nq1\td2\t3\n"


def test_claims_have_no_place_in_beir(tmp_path):
    topic = Topic("q1", "?", claims=(Claim("c1", "gold", "false"),))
    with pytest.warns(UserWarning, match="no place for 1 claims"):
        write_beir(Corpus("c", (FULL,), (topic,)), tmp_path)
    assert read_corpus(tmp_path).topics == (Topic("q1", "?"),)


@pytest.mark.parametrize("other", ["documents.jsonl", "qrels/dev.tsv"])
def test_beir_is_not_written_among_other_files(tmp_path, other):
    (tmp_path / "qrels").mkdir()
    (tmp_path / other).touch()
    with pytest.raises(InputError, match=rf"holds {Path(other).name}; expected a folder of its"):
        write_beir(CORPUS, tmp_path)
    assert not (tmp_path / "corpus.jsonl").exists()


def test_metadata_that_is_missing(tmp_path):
    (tmp_path / "qrels").mkdir()
    rows = [
        {"_id": "a", "text": "x", "metadata": {"url": "https://www.NIDDK.nih.gov/a"}},
        {"_id": "b", "text": "x", "metadata": {"url": "https://else.example/b"}},
        {"_id": "c", "text": "x", "metadata": {"url": "https://nih.gov", "source_type": "blog"}},
        {"_id": "d", "text": "x"},
    ]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    (tmp_path / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\n")
    known = {"nih.gov": "government"}
    corpus = read_corpus(tmp_path, host_types=known, default_type="user_generated")
    expected = ["government", "user_generated", "blog", "user_generated"]
    assert corpus.source_types.tolist() == expected
    assert corpus.sources.tolist() == ["www.niddk.nih.gov", "else.example", "nih.gov", ""]
    with pytest.raises(InputError, match=r"corpus.jsonl:2: field 'metadata.source_type' is miss"):
        read_corpus(tmp_path, host_types=known)


# ---- hosts ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("nih.gov", "government"),
        ("www.NIDDK.nih.gov.", "government"),
        ("pubmed.ncbi.nlm.nih.gov", "peer_reviewed"),
        ("fakenih.gov", None),
        ("nih.gov.evil.example", None),
        ("gov", None),
        ("", None),
    ],
)
def test_a_host_covers_those_below_it_and_the_nearest_counts(host, expected):
    types = {"nih.gov": "government", "pubmed.ncbi.nlm.nih.gov": "peer_reviewed"}
    assert type_of_host(host, types) == expected


def test_sources_are_named_as_they_are_written():
    found = types_of_sources(["WWW.cdc.gov", "x.example", "WWW.cdc.gov"], {"cdc.gov": "government"})
    assert found == {"WWW.cdc.gov": "government"}


# ---- topics --------------------------------------------------------------------------------

OLD = """<top>
<num> Number: 301
<title> International Organized Crime
<desc> Description:
Identify organizations &amp; their
part in crime.
<narr> Narrative:
A relevant document
names one.
</top>

<top>
<num> Number: 302
<title> Polio
</top>
"""
MISINFORMATION = """<?xml version="1.0" encoding="UTF-8"?>
<topics>
<topic>
  <number>101</number>
  <query>ankle brace tendonitis</query>
  <description>Will wearing an ankle brace help heal tendonitis?</description>
  <narrative>Tendons.</narrative>
  <stance>unhelpful</stance>
</topic>
<topic><number>102</number><title>x</title><description>Can it?</description><answer>yes</answer>
</topic>
<topic number="7"><query>origin</query><question>What is the origin?</question><stance>inconclusive
</stance></topic>
</topics>
"""


def topics_of(tmp_path: Path, text: str, field: str | None = None) -> tuple[Topic, ...]:
    (tmp_path / "t").write_text(text, "utf-8")
    return read_topics(tmp_path / "t", field)


def test_old_trec_topics(tmp_path):
    query = "Identify organizations & their part in crime."
    narrative = "A relevant document names one."
    first, second = topics_of(tmp_path, OLD)
    assert first == Topic("301", query, None, narrative)
    assert second == Topic("302", "Polio")
    assert topics_of(tmp_path, OLD, "title")[0].query == "International Organized Crime"


def test_xml_topics_and_their_stance(tmp_path):
    assert topics_of(tmp_path, MISINFORMATION) == (
        Topic("101", "Will wearing an ankle brace help heal tendonitis?", "no", "Tendons."),
        Topic("102", "Can it?", "yes"),
        Topic("7", "What is the origin?"),
    )


def test_topics_in_lines(tmp_path):
    expected = (Topic("1", "a b"), Topic("2", "c"))
    assert topics_of(tmp_path, "1\ta b\n2\tc\n") == expected
    assert topics_of(tmp_path, '{"_id": "1", "text": "a b"}\n{"_id": "2", "text": "c"}') == expected
    own = '{"qid": "1", "query": "a b"}\n{"qid": "2", "query": "c"}'
    assert topics_of(tmp_path, own) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 a b", "t:1: expected a qid, a tab and a query"),
        ("1\ta\n1\tb", "t:2: duplicate qid '1'"),
        ("1\t", "t:1: field 'query' is empty"),
        ("<topics>\n<topic><number>1</number></topic></topics>", "t:2: topic without question or"),
        ("<topics>\n\n<topic><query>1</query></topic></topics>", "t:3: topic without number"),
        ("<topics></topics>", "no <top> or <topic> element"),
        ("<top><num>1", "no <top> or <topic> element"),
    ],
)
def test_bad_topics(tmp_path, text, expected):
    with pytest.raises(InputError) as caught:
        topics_of(tmp_path, text)
    assert expected in str(caught.value) and "\n" not in str(caught.value)


def test_a_field_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="topic without narr; it holds num, title"):
        topics_of(tmp_path, "<top><num>1<title>x</top>", "narr")


def test_a_tracks_own_files(tmp_path):
    write_beir(Corpus("docs", (FULL, BARE)), tmp_path / "docs")
    (tmp_path / "topics.xml").write_text(MISINFORMATION)
    (tmp_path / "qrels").write_text("101 0 d2 2\n")
    files = (tmp_path / "docs", tmp_path / "topics.xml", tmp_path / "qrels")
    corpus = read_trec(*files)
    assert len(corpus.topics) == 3 and corpus.qrels == {"101": {"d2": 2}}
    (tmp_path / "qrels").write_text("103 0 d2 2\n")
    with pytest.raises(InputError, match="qrels:1: topic '103' is not in"):
        read_trec(*files)


# ---- ir_datasets ---------------------------------------------------------------------------


class Page(NamedTuple):
    doc_id: str
    title: str
    text: str
    url: str


class Snippet(NamedTuple):
    doc_id: str
    body: str

    def default_text(self) -> str:
        return self.body


class Question(NamedTuple):
    query_id: str
    title: str
    description: str
    stance: str


class Grade(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int


class Part:
    """What ir_datasets takes for one kind of a collection's rows."""

    def __init__(self, kind: str, rows: list[Any]) -> None:
        setattr(self, f"{kind}_iter", lambda: iter(rows))
        setattr(self, f"{kind}_handler", lambda: self)


PAGES = [
    Page("p1", "Title", "Words.", "https://www.cdc.gov/x"),
    Page("p2", "", "Others.", "https://blog.example/"),
    Page("p3", "", "  ", ""),
]
QUESTIONS = [Question("1", "short", "Does it help?", "unhelpful")]
GRADES = [Grade("1", "p1", 4), Grade("1", "p2", -2), Grade("1", "p9", 1), Grade("9", "p1", 1)]


@pytest.fixture
def collection():
    """Registers rows under a new id with ir_datasets."""
    library = pytest.importorskip("ir_datasets", reason="the extra ir-datasets is not installed")
    number = len(list(library.registry))

    def register(**parts: list[Any]) -> str:
        name = f"local-test/{number}-{len(list(library.registry))}"
        rows = [Part(kind, found) for kind, found in parts.items()]
        library.registry.register(name, library.Dataset(*rows))
        return name

    return register


def test_a_collection_by_its_id(collection):
    name = collection(docs=PAGES, queries=QUESTIONS, qrels=GRADES)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        corpus = read_ir_dataset(name, default_type="blog", host_types={"cdc.gov": "government"})
    assert corpus.name == name
    assert corpus.documents == (
        Document("p1", "Title", "Words.", "government", "www.cdc.gov", "https://www.cdc.gov/x"),
        Document("p2", "", "Others.", "blog", "blog.example", "https://blog.example/"),
    )
    assert corpus.topics == (Topic("1", "Does it help?", "no"),)
    assert corpus.qrels == {"1": {"p1": 3, "p2": 0}}
    told = [str(w.message) for w in caught if name in str(w.message)]
    assert [text.split(": ")[1].split()[0] for text in told] == ["1", "2", "2"]


def test_parts_of_a_collection(collection):
    name = collection(docs=PAGES[:2], queries=QUESTIONS, qrels=GRADES[:1])
    with pytest.warns(UserWarning, match="1 labels outside 0 to 3"):
        corpus = read_ir_dataset(name, default_type="blog", documents="judged", field="title")
    assert corpus.docnos.tolist() == ["p1"] and corpus.topics[0].query == "short"
    documents = read_ir_dataset(collection(docs=[Snippet("s", "x")]), default_type="blog")
    assert documents.documents[0].text == "x" and documents.topics == ()


def test_collections_that_cannot_be_read(collection):
    def message(*args: Any, **options: Any) -> str:
        with pytest.raises(InputError) as caught:
            read_ir_dataset(*args, **options)
        return str(caught.value)

    assert "no collection 'local-test/nowhere'" in message("local-test/nowhere")
    assert "has no documents" in message(collection(queries=QUESTIONS))
    name = collection(docs=PAGES[:1], queries=QUESTIONS)
    assert "document 'p1': field 'source_type' is missing" in message(name)
    assert "no field 'x'; it has query_id, title" in message(name, default_type="b", field="x")
    twice = collection(docs=PAGES[:1] * 2)
    assert "duplicate docno 'p1'" in message(twice, default_type="blog")


def test_what_fails_while_it_is_fetched_is_one_line(collection):
    def broken() -> Any:
        raise OSError("no\nroute")

    library = pytest.importorskip("ir_datasets")
    name = collection(docs=PAGES)
    library.load(name).docs_handler().docs_iter = broken
    with pytest.raises(InputError, match="could not read it: no route"):
        read_ir_dataset(name, default_type="blog")
