"""Topic pages, and a report redrawn from a run that lacks most pieces: a crafted run, hostile."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pandas as pd
import pytest

from rag_reliability.artefacts import Store
from rag_reliability.config import ExperimentConfig
from rag_reliability.datasets.write import write_corpus
from rag_reliability.experiment.conclusion import sensitivity
from rag_reliability.experiment.results import redraw
from rag_reliability.experiment.study import Study
from rag_reliability.experiment.topic_parts import write_topics
from rag_reliability.records import Claim, Corpus, Document, InputError, Pool, Topic
from rag_reliability.reliability.trace import rank_trace
from rag_reliability.reporting.sources import files_of
from rag_reliability.reporting.topic_pages import cited_parts, page_names

from .conftest import ROOT

HOSTILE = '<script>alert("x")</script><img src=x onerror=alert(1)>\u202e'
QIDS = ("../../etc/<b>", "Q1", "q1", "NA")
SYSTEMS = ("similarity", "source_aware")


VOID = {"meta", "img", "br", "link"}
THEIRS = ("Is it so", "It is so", "It is not so", "A guideline", "Humble.", "Trusted.")
"""How what topics, documents and answers say begins."""


class Page(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str | None, str]] = []
        self._open: list[tuple[str, str | None]] = [("", None)]
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append((tag, dict(attrs).get("lang", self._open[-1][1])))

    def handle_endtag(self, tag):
        while tag not in VOID and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if data.strip() and self._open[-1][0] not in ("title", "style"):
            self.texts.append((self._open[-1][1], data.strip()))

    def languages(self, *, theirs: bool) -> set[str | None]:
        """Languages in which texts of the corpus and the model stand, or those of the page."""
        return {lang for lang, text in self.texts if text.startswith(THEIRS) == theirs}

    @property
    def links(self) -> list[str]:
        return [str(attrs["href"]) for tag, attrs in self.tags if tag == "a"]

    @property
    def ids(self) -> list[str]:
        return [str(attrs["id"]) for _, attrs in self.tags if "id" in attrs]


def _write_run(folder: Path, corpus: Corpus) -> None:
    """A run's files for two documents: d1, humble and similar, and d2, trusted and less so."""
    sims = np.tile([0.9, 0.5], (len(QIDS), 1))
    pool = Pool(np.tile([0, 1], (len(QIDS), 1)), sims)
    types = corpus.source_types
    trace = rank_trace(pool, np.array([0.3, 0.95]), QIDS, corpus.docnos, types, 1)
    trace["label"] = trace["docno"].map({"d1": 0, "d2": 2})
    trace["adversarial"] = trace["docno"] == "d1"
    for name in ("traces", "answers", "metrics"):
        (folder / name).mkdir(parents=True)
    trace.to_parquet(folder / "traces" / "source_aware.parquet")
    rows = [(s, q, float(s == "source_aware")) for s in SYSTEMS for q in QIDS]
    frame = pd.DataFrame(rows, columns=["system", "qid", "value"])
    retrieval = [frame.assign(metric=m) for m in ("precision@1", "mrr")]
    retrieval.append(frame.assign(metric="adv_share@1", value=1 - frame["value"]))
    retrieval.append(frame.assign(metric="low_tier_share@1", value=1 - frame["value"]))
    pd.concat(retrieval).to_csv(folder / "metrics" / "retrieval.csv", index=False)


def _write_answers(folder: Path) -> None:
    answers, said = [], []
    for qid in QIDS:
        for system, docno in zip(SYSTEMS, ("d1", "d2"), strict=True):
            text = f"It is so [1]. {HOSTILE} [1, 9]"
            row = {"qid": qid, "system": system, "arm": "plain", "text": text, "docnos": [docno]}
            answers.append(row)
            common = (system, "plain", qid)
            said.append((*common, 1, "It is so [1].", docno, docno, 0.91, "supported", "false"))
            said.append(
                (*common, 2, f"{HOSTILE} [1, 9]", docno, "", 0.02, "unsupported", "neither")
            )
    path = folder / "answers" / "answers.jsonl"
    path.write_text("".join(json.dumps(a) + "\n" for a in answers), encoding="utf-8")
    names = "system arm qid sentence_no sentence cited docno support band verdict"
    columns = names.split(" ")
    pd.DataFrame(said, columns=columns).to_csv(folder / "answers" / "sentences.csv", index=False)


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Study:
    folder = tmp_path_factory.mktemp("topics")
    documents = (
        Document("d1", HOSTILE, f"Humble. {HOSTILE}", "ai_generated", HOSTILE, adversarial=True),
        Document("d2", "A guideline", "Trusted.", "peer_reviewed", "Journal", verified=True),
    )
    claims = (Claim("c1", "It is not so.", f"It is so. {HOSTILE}"),)
    topics = tuple(Topic(q, f"Is it so? {HOSTILE}", "no", HOSTILE, claims) for q in QIDS[:1])
    topics += tuple(Topic(q, f"Is it so, {q}?") for q in QIDS[1:])
    corpus = Corpus("c", documents, topics, {q: {"d1": 0, "d2": 2} for q in QIDS})
    write_corpus(corpus, folder / "corpus")
    _write_run(folder / "run", corpus)
    _write_answers(folder / "run")
    config = ExperimentConfig(corpus=str(folder / "corpus"), k=1, n_resamples=100, language="es")
    return Study(config, Store(folder / "run", say=lambda line: None), ROOT)


@pytest.fixture(scope="module")
def pages(study) -> dict[str, str]:
    names = write_topics(study, study.run_dir, files_of(study.run_dir))
    return {q: (study.run_dir / "topics" / n).read_text("utf-8") for q, n in names.items()}


def test_file_names_are_safe_and_distinct():
    names = page_names(["q001", *QIDS, "con", "Ω/Ω", ".", "q" * 200])
    assert names["q001"] == "q001.html"
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,80}\.html", name) for name in names.values())
    assert len({name.casefold() for name in names.values()}) == len(names)
    assert names["con"] != "con.html"
    assert page_names(["q1"])["q1"] == "q1.html" != names["q1"]


def test_pages_escape_every_text_and_point_only_to_what_is_there(study, pages):
    assert set(pages) == set(QIDS)
    folder = study.run_dir / "topics"
    for html in pages.values():
        page = Page(html)
        assert not {tag for tag, _ in page.tags} & {"script", "img", "b/"}
        assert not any(key.startswith("on") for _, attrs in page.tags for key in attrs)
        assert "\u202e" not in html
        assert page.languages(theirs=True) == {"es"} and "en-GB" in page.languages(theirs=False)
        assert ("en-GB", "The claims in dispute") in page.texts
        assert len(page.ids) == len(set(page.ids))
        for link in page.links:
            path = unquote(urlsplit(link).path)
            if path == "../index.html":  # written after the topics
                continue
            assert (folder / path).is_file() if path else link[1:] in page.ids, link
    assert pages[QIDS[0]].count("&lt;script&gt;") >= 8


def test_pages_lead_to_one_another_in_the_corpus_order(study, pages):
    order = [t.qid for t in study.corpus.topics]
    names = page_names(order)
    for i, qid in enumerate(order):
        near = {str(a.get("rel")): a["href"] for tag, a in Page(pages[qid]).tags if "rel" in a}
        assert near.get("prev") == (names[order[i - 1]] if i else None)
        assert near.get("next") == (names[order[i + 1]] if i + 1 < len(order) else None)


def test_a_page_shows_rankings_support_claims_and_passages(pages):
    html = pages[QIDS[0]]
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))
    assert "1 out, 1 in: 0 of those that left and 1 of those that entered are relevant" in text
    assert "left: at λ 0.30 it needed similarity 1.583 to hold rank 1, has 0.900" in text
    assert "0.95 0.500 0.475 2 entered" in text
    assert "supported 0.91, best by [1] d1 · asserts a false claim" in text
    assert (
        "unsupported 0.02" in text and "best by [1]" not in text.split("unsupported 0.02")[1][:20]
    )
    assert "It is not so." in text and "true answer: no" in text
    assert "Peer-reviewed · Journal · source verified relevant 2" in text
    assert "Not measured in this run." in text  # the stance probe
    assert 'class="supported"' in html and 'class="unsupported"' in html


def test_citations_are_links_where_they_name_a_passage():
    assert cited_parts("So [1], and [2-9] 3.", ["p1", "p2"]) == [
        ("So ", None),
        ("[", None),
        ("1", "p1"),
        ("]", None),
        (", and ", None),
        ("[", None),
        ("2", "p2"),
        ("-", None),
        ("9", None),
        ("]", None),
        (" 3.", None),
    ]
    assert cited_parts("None [0] [" + "9" * 5000 + "]", ["p1"])[1:4] == [
        ("[", None),
        ("0", None),
        ("]", None),
    ]
    assert cited_parts("", []) == []


def test_sensitivity_compares_each_value_with_similarity_alone(study):
    with pytest.raises(InputError, match=r"spread\.csv: missing"):
        sensitivity(study)
    base = pd.read_csv(study.run_dir / "metrics" / "retrieval.csv", keep_default_na=False)
    own = base[base["system"] == "source_aware"]
    spread = [own.assign(value=v, gamma=g) for g, v in ((0.0, 0.0), (1.0, 1.0))]
    path = study.run_dir / "metrics" / "spread.csv"
    pd.concat(spread).to_csv(path, index=False)
    found = sensitivity(study, older=True)
    path.unlink()
    precision = found[found["metric"] == "precision"].set_index(["sweep", "value"])
    # All four topics gain 1: p = 2/2⁴; at γ = 0 the values are the baseline's own.
    assert precision.loc[("", ""), ["diff", "p"]].tolist() == [1.0, 0.125]
    assert precision.loc[("spread", 1.0), ["diff", "p", "here"]].tolist() == [1.0, 0.125, True]
    assert precision.loc[("spread", 0.0), ["diff", "p", "here"]].tolist() == [0.0, 1.0, False]
    assert (found["n_topics"] == len(QIDS)).all()


def test_a_run_that_lacks_most_pieces_is_still_drawn_and_says_so(study):
    manifest = {"config": study.config.model_dump(mode="json"), "stages": {}}
    (study.run_dir / "manifest.json").write_text(json.dumps(manifest))
    with pytest.warns(UserWarning, match="holds no metrics for: figure corpus_overview"):
        page = Page(redraw(study.run_dir).read_text("utf-8"))
    assert not {"script", "iframe"} & {tag for tag, _ in page.tags}
    assert page.languages(theirs=True) == {"es"}
    assert ("en-GB", "What would change the conclusion") in page.texts
    linked = {unquote(link) for link in page.links if not link.startswith("#")}
    assert all((study.run_dir / link).is_file() for link in linked)
    assert {"metrics/retrieval.csv", "traces/source_aware.parquet"} <= linked
    assert {f"topics/{name}" for name in page_names(QIDS).values()} <= linked
