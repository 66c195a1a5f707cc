"""Displays: worth looking at in a notebook, plain in a terminal, and never a way in for a text."""

from html.parser import HTMLParser
from types import SimpleNamespace

import pandas as pd
import pytest
from IPython.core.formatters import DisplayFormatter

from rag_reliability.experiment import displays
from rag_reliability.experiment.answering import read_answers
from rag_reliability.experiment.study import open_study
from rag_reliability.records import Answer, Corpus, Document, Topic
from rag_reliability.reporting.html import cut, note_html, records, tier_mark
from rag_reliability.reporting.html_answers import ShownAnswer, answers_html, pieces
from rag_reliability.reporting.html_ranking import marker_path, ranking_html
from rag_reliability.reporting.html_tables import comparison_html, side_html
from rag_reliability.reporting.style import TIERS

from .conftest import ROOT

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>\u202eevil'


class Page(HTMLParser):
    """What a browser would make of a page: tags, attributes, text, ids and links."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.names: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}
        self.ids += [value for name, value in attrs if name == "id"]
        self.links += [value for name, value in attrs if name == "href"]

    def handle_data(self, data):
        self.text += data


def assert_harmless(page: str) -> Page:
    seen = Page(page)
    assert not set(seen.tags) & {"script", "img", "iframe", "object", "link", "meta", "form"}
    assert not [name for name in seen.names if name.startswith("on")]
    assert "<script>alert(1)</script>" in seen.text and "\u202e" not in page
    return seen


@pytest.fixture(scope="module")
def study(three_topics, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        out = tmp_path_factory.mktemp("displays") / "run"
        given = {"corpus": str(three_topics), "out": str(out), "folds": 3}
        yield open_study(given, say=lambda _: None)


def evil_corpus() -> Corpus:
    documents = (
        Document(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, adversarial=True),
        Document("d2", "Plain", "words", "blog", verified=True),
    )
    topics = (Topic("q1", HOSTILE),)
    return Corpus(HOSTILE, documents, topics, {"q1": {HOSTILE: 0, "d2": 2}})


def test_a_corpus_by_source_type(health120):
    shown = displays.corpus_display(health120, tuple(TIERS))
    frame = shown.frame.set_index("source_type")
    assert list(frame.index) == list(TIERS)
    assert frame["documents"].sum() == 120 and frame["adversarial"].sum() == 10
    counted = [sum(d.verified and d.source_type == t for d in health120.documents) for t in TIERS]
    assert frame["verified"].tolist() == counted
    judged = sum(len(labels) for labels in health120.qrels.values())
    assert frame[[c for c in frame.columns if isinstance(c, int)]].to_numpy().sum() == judged
    assert repr(shown).startswith("health120: 120 documents, 10 topics") and "<" not in repr(shown)
    page = Page(shown._repr_html_())
    assert page.tags.count("tr") == 1 + len(TIERS) and "Peer-reviewed" in page.text


def test_a_corpus_nobody_judged_is_shown_too():
    corpus = Corpus("bare", (Document("d1", "", "words", "blog"),))
    shown = displays.corpus_display(corpus)
    assert shown.frame.to_dict("list") == {
        "source_type": ["blog"], "documents": [1], "verified": [0], "adversarial": [0],
    }  # fmt: skip
    assert "bare" in shown._repr_html_()


def test_ranking_and_trace_of_a_topic(study):
    shown = displays.ranking(study, "q001")
    assert shown.frame.groupby("system").size().eq(5).all() and shown.frame["system"].nunique() == 5
    page = Page(shown._repr_html_())
    assert page.tags.count("tr") == 6 and "Similarity only" in page.text
    trace = displays.trace(study, "q001")
    assert trace.frame["in_top_after"].sum() == 5
    page = Page(trace._repr_html_())
    assert "svg" in page.tags and page.tags.count("tr") == 1 + len(trace.frame)
    for row in trace.frame.itertuples():
        assert row.why in page.text and row.docno in repr(trace)


def test_answers_of_the_committed_run_link_to_their_passages(study):
    paper = ROOT / "reports" / "paper" / "answers"
    answers = [a for a in read_answers(paper / "answers.jsonl") if a.docnos]
    sentences = pd.read_csv(paper / "sentences.csv", keep_default_na=False)
    whole = open_study({"out": str(ROOT / "reports" / "paper")}, say=lambda _: None)
    shown = [displays._shown(whole, a, sentences) for a in answers[:12]]
    page = Page(answers_html(shown, query="?"))
    assert len(set(page.ids)) == len(page.ids) == sum(len(a.docnos) for a in answers[:12])
    assert page.links and {link.removeprefix("#") for link in page.links} <= set(page.ids)
    bands = {band for a in shown for band in a.sentences["band"]}
    assert bands and all(band in page.text for band in bands)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Yes [1].", [("Yes ", None), ("[", None), ("1", 1), ("]", None), (".", None)]),
        ("[1, 3]", [("[", None), ("1", 1), (", ", None), ("3", 3), ("]", None)]),
        ("[4]", [("[", None), ("4", None), ("]", None)]),  # no such passage: no link
        ("[0] [123456789]", None),
        ("in 1990", [("in 1990", None)]),
    ],
)
def test_only_citations_of_a_passage_become_links(text, expected):
    found = [(p["text"], p["number"]) for p in pieces(text, 3)]
    assert "".join(part for part, _ in found) == text
    if expected is None:
        assert not any(number for _, number in found)
    else:
        assert found == expected


def test_bands_differ_by_sign_and_word_and_not_by_colour_alone():
    said = pd.DataFrame(
        {
            "sentence": ["a b", "c d", "e f"],
            "band": ["supported", "unclear", "unsupported"],
            "support": [0.9, 0.5, 0.1],
            "best_passage": [0, -1, 7],
        }
    )
    passages = displays.passages_table([Document("d1", "T", "x", "blog")])
    page = Page(answers_html([ShownAnswer("one", said, passages)]))
    for word in ("✓ supported, support 0.90", "? unclear", "✗ unsupported"):
        assert word in page.text
    # a best passage that was not shown is not linked to
    assert len(page.links) == 1 and page.links[0].endswith("-p1")
    assert "⚑" not in page.text
    lie = displays.passages_table([Document("d1", "T", "x", "blog", adversarial=True)])
    assert "nearest passage 1 (⚑ adversarial)" in Page(
        answers_html([ShownAnswer("one", said, lie)])
    ).text.replace("\n", "")


def test_an_answer_without_words_or_passages_says_so():
    blank = pd.DataFrame({"sentence": [], "band": []})
    page = Page(answers_html([ShownAnswer("none", blank, displays.passages_table([]))]))
    assert "(empty answer)" in page.text and "no passages were shown" in page.text


def test_a_comparison_reads_intervals_by_the_better_side():
    frame = pd.DataFrame(
        [
            ("similarity", "precision@5", 0.5, 0.0, 0.0, 0.0, 1.0),
            ("a", "precision@5", 0.7, 0.2, 0.1, 0.3, 0.01),
            ("a", "adv_share@5", 0.1, -0.2, -0.3, -0.1, 0.01),
            ("b", "adv_share@5", 0.4, 0.2, 0.1, 0.3, 0.01),
            ("b", "precision@5", 0.5, 0.0, -0.1, 0.1, 1.0),
            ("b", "made_up", 2.0, 1.0, 0.5, 1.5, 0.2),
        ],
        columns=["system", "metric", "mean", "diff", "diff_low", "diff_high", "p_holm"],
    ).assign(wins=1, ties=2, losses=3)
    page = comparison_html(frame, "similarity")
    told = [cell.split(">")[-1] for cell in page.split("</td></tr>")[:-1]]
    assert told == ["▲ better", "· open", "▲ better", "▼ worse", "higher"]
    assert "+0.20" in page and "−0.20" in page


def test_hostile_text_stays_text_everywhere():
    corpus = evil_corpus()
    assert_harmless(displays.corpus_display(corpus)._repr_html_())
    table = displays.passages_table(list(corpus.documents), corpus.qrels["q1"])
    assert_harmless(side_html({HOSTILE: table}, HOSTILE))
    trace = table.assign(
        sim=[0.9, 0.5], prior=1.0, score=[0.9, float("nan")], rank_sim=[1, 2], rank_score=[1, 2],
        in_top_before=True, in_top_after=True, why=HOSTILE, edited=HOSTILE, source=HOSTILE,
    )  # fmt: skip
    facts = [(HOSTILE, HOSTILE)]
    page = ranking_html(records(trace), 2, rule=HOSTILE, caption=HOSTILE, facts=facts)
    assert_harmless(page)
    said = pd.DataFrame({"sentence": [HOSTILE], "band": [HOSTILE], "flags": [[HOSTILE]]})
    shown = ShownAnswer(HOSTILE, said, table.assign(edited=HOSTILE))
    assert_harmless(answers_html([shown], query=HOSTILE, note=HOSTILE))
    assert_harmless(note_html(HOSTILE, alert=True))
    assert_harmless(displays._answer_display(Answer("q1", HOSTILE, "plain", HOSTILE, ("d",)))
                    ._repr_html_())  # fmt: skip
    terminal = repr(displays.corpus_display(corpus))
    assert "\u202e" not in terminal and HOSTILE.split("\u202e")[0] in terminal


def test_long_texts_are_cut_before_they_are_shown():
    huge = Document("d1", "t" * 10**6, "w " * 10**6, "blog")
    said = pd.DataFrame({"sentence": ["x y"], "band": ["unclear"]})
    page = answers_html([ShownAnswer("a", said, displays.passages_table([huge]))], styled=False)
    assert len(page) < 10_000 and "t…" in page
    assert cut("abcdef", 4) == "abc…" and cut("abc", 4) == "abc"


def test_every_source_type_has_a_shape_of_its_own():
    marks = [tier_mark(t) for t in TIERS]
    assert len({m.glyph for m in marks}) == len({m.colour for m in marks}) == len(TIERS)
    paths = {marker_path(m.marker, 0, 0) for m in marks}
    assert len(paths) == len(TIERS)
    assert tier_mark("something else") == tier_mark("something else")


def test_a_notebook_shows_corpora_and_answers_as_displays(health120):
    shell = SimpleNamespace(display_formatter=DisplayFormatter())
    displays.register(shell)
    data, _ = shell.display_formatter.format(health120)
    assert 'class="rr"' in data["text/html"] and "<style>" in data["text/html"]
    assert data["text/plain"].startswith("health120: 120 documents")
    data, _ = shell.display_formatter.format(
        Answer("q1", "similarity", "plain", "Yes [1].", ("d",))
    )
    assert "not looked up" in data["text/html"] and "Yes [1]." in data["text/plain"]
