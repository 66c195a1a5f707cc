"""The explorer ranks as the study does, its edits undo, and hostile text stays text."""

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from rag_reliability.experiment import exploring_fields
from rag_reliability.experiment import ranking as stages
from rag_reliability.experiment.bench import QUICK_RULES, READING_RULES, Bench
from rag_reliability.experiment.exploring import Session
from rag_reliability.experiment.study import open_study
from rag_reliability.experiment.threat_evidence import gather
from rag_reliability.explorer import render, state
from rag_reliability.explorer.state import MINE, State
from rag_reliability.explorer.widgets import Explorer
from rag_reliability.records import Document, InputError
from rag_reliability.reliability.evidence import RobustSettings
from rag_reliability.reliability.rerank import tie_ranks
from rag_reliability.reliability.robust import ordered

from .conftest import ROOT, SMALL

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>\u202eevil'


@pytest.fixture(scope="module")
def session(three_topics, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        out = tmp_path_factory.mktemp("explorer") / "run"
        given = {
            "corpus": str(three_topics),
            "generator": SMALL,
            "out": str(out),
            "max_new_tokens": 8,
        }
        yield Session(open_study(given, say=lambda _: None))


@pytest.fixture(scope="module")
def bench(session):
    return session.bench(qid="q001")


def rows_of(session, bench, **settings):
    now = State(dict(session.study.table), **settings)
    return state.ranking(session.ready_for(bench, now.rule), now, session.prior)


def by_hand() -> Bench:
    """Four documents whose scores can be worked out in the head."""
    told = [("a", "blog", 0.9), ("b", "government", 0.8), ("c", "blog", 0.6), ("d", "journal", 0.5)]
    documents = tuple(Document(n, n.upper(), f"text {n}", kind, "src") for n, kind, _ in told)
    sims = np.array([sim for *_, sim in told])
    return Bench("a question?", np.zeros(3), documents, sims, {"b": 2, "a": 0})


TABLE = {"journal": 1.0, "government": 0.75, "blog": 0.5}


def weigh(documents, table):
    return np.array([table[d.source_type] for d in documents])


def test_a_ranking_worked_by_hand():
    rows = state.ranking(by_hand(), State(TABLE, k=2), weigh)
    # .8 · .75 = .6, .5 · 1 = .5, .9 · .5 = .45, .6 · .5 = .3
    assert [r["docno"] for r in rows] == ["b", "d", "a", "c"]
    assert [round(r["score"], 9) for r in rows] == [0.6, 0.5, 0.45, 0.3]
    assert [r["rank_sim"] for r in rows] == [2, 4, 1, 3]
    assert [r["label"] for r in rows] == [2, None, 0, None]
    assert [r["why"] for r in rows] == [
        "kept: rank 2 → 1",
        "entered: rank 4 → 2, past 2 more similar documents",
        "left: at weight 0.50 it needs similarity 1.000, has 0.900",
        "below the top 2: 3 → 4",
    ]
    assert render.facts(rows, 2)[-2:] == [("entered", "d"), ("left", "a")]


def test_outside_the_window_nothing_counts():
    rows = state.ranking(by_hand(), State(TABLE, k=2, window=3), weigh)
    assert [r["docno"] for r in rows] == ["b", "a", "c", "d"]
    assert rows[-1]["why"].startswith("outside the rank window")


def test_a_window_below_k_is_k():
    rows = state.ranking(by_hand(), State(TABLE, k=3, window=1), weigh)
    assert [r["inside"] for r in rows] == [True, True, True, False]


def test_a_filter_says_whom_it_left_out():
    table = {**TABLE, "blog": 0.4}
    rows = state.ranking(by_hand(), State(table, k=2, rule="hard_filter"), weigh)
    assert [r["docno"] for r in rows] == ["b", "d", "a", "c"]
    assert rows[2]["why"].startswith("left out by hard filter") and np.isnan(rows[2]["score"])


@pytest.mark.parametrize("window", [None, 15])
def test_the_ranking_is_the_studys_own(session, bench, window):
    found = stages.load_candidates(session.study)
    system = stages.System(stages.type_prior(session.study), window)
    trace = stages.trace(session.study, found, system)
    own = trace[trace["qid"] == "q001"].sort_values("rank_score")
    rows = rows_of(session, bench, window=window)
    assert [r["docno"] for r in rows] == own["docno"].tolist()
    assert [r["rank_sim"] for r in rows] == own["rank_sim"].tolist()
    np.testing.assert_allclose([r["sim"] for r in rows], own["sim"], atol=1e-6)
    verbs = [r["why"].split()[0].rstrip(":") for r in rows]
    assert verbs == [why.split()[0].rstrip(":") for why in own["why"]]


@pytest.mark.parametrize("rule", QUICK_RULES)
def test_every_quick_rule_ranks_as_under_threat(session, bench, rule):
    corpus = session.study.corpus
    evidence = gather(session.study, ["q001"], [rule], window=15, depth=len(corpus.documents))
    settings = RobustSettings(k=5, window=15, lowest=min(session.study.table.values()))
    order, _ = ordered(evidence.evidence, rule, tie_ranks(corpus.docnos), settings)
    docids = np.take_along_axis(evidence.evidence.docids, order, axis=1)[0]
    rows = rows_of(session, bench, rule=rule, window=15)
    assert [r["docno"] for r in rows] == corpus.docnos[docids[docids >= 0]].tolist()


def test_stance_rules_wait_for_readings(bench):
    assert set(READING_RULES) == {"stance_consistent", "stance_verified"}
    with pytest.raises(InputError, match="stance"):
        state.ranking(bench, State(TABLE, rule=READING_RULES[0]), lambda d, t: np.ones(len(d)))


def test_equal_priors_of_one_are_similarity(session, bench):
    now = State(dict.fromkeys(session.study.table, 1.0))
    rows = state.ranking(bench, now, session.prior)
    assert all(r["rank_sim"] == r["rank_score"] for r in rows)


def test_spoofing_moves_a_document_by_its_new_prior_and_undoes():
    bench, now = by_hand(), State(TABLE, k=2)
    a = bench.documents[0]
    lied = state.spoofed(now, a, "journal")
    rows = state.ranking(bench, lied, weigh)
    assert rows[0]["docno"] == "a" and rows[0]["score"] == pytest.approx(0.9)
    assert rows[0]["edited"] == "label spoofed, was blog"
    assert state.spoofed(lied, a, "blog") == now and lied.edited and not now.edited


def test_flipping_twice_is_nothing_and_once_is_seen_by_the_rule():
    bench, now = by_hand(), State(TABLE, k=2, rule="verified_boost")
    b = bench.documents[1]
    checked = state.flipped(now, b)
    rows = {r["docno"]: r for r in state.ranking(bench, checked, weigh)}
    # b: .8 · .75, the others count as cap .5 whatever they declare
    assert rows["b"]["score"] == pytest.approx(0.6) and rows["d"]["score"] == pytest.approx(0.25)
    assert rows["b"]["verified"] and rows["b"]["edited"] == "verification flipped"
    assert state.flipped(checked, b) == now


def test_a_removed_document_leaves_both_rankings():
    bench, now = by_hand(), State(TABLE, k=2)
    gone = state.without(now, "b")
    rows = state.ranking(bench, gone, weigh)
    assert [r["docno"] for r in rows] == ["d", "a", "c"]
    assert sorted(r["rank_sim"] for r in rows) == [1, 2, 3]
    assert state.reset(gone) == now


def test_priors_out_of_range_are_refused():
    assert state.with_prior(State(TABLE), "blog", 0.3).table["blog"] == 0.3
    with pytest.raises(InputError, match="expected 0 < λ <= 1"):
        state.with_prior(State(TABLE), "blog", 0.0)


def test_ones_own_text_is_encoded_and_competes(session, bench):
    mine = state.own_document(bench, "", bench.query, "peer_reviewed")
    wider = session.extended(bench, mine)
    assert len(wider.documents) == len(bench.documents) + 1
    rows = state.ranking(wider, State(dict(session.study.table)), session.prior)
    assert (rows[0]["docno"], rows[0]["edited"]) == (f"{MINE}1", "your text")
    assert rows[0]["sim"] == pytest.approx(1.0, abs=1e-5)  # the question itself
    assert state.own_document(wider, "", "more", "blog").docno == f"{MINE}2"
    assert f"{MINE}1" not in bench.docnos
    # BM25 then counts it too
    lexical = session.ready_for(wider, "bm25").fields["lexical"]
    assert lexical.argmax() == wider.docnos.tolist().index(f"{MINE}1")


def test_bad_questions_and_texts_are_refused(session, bench):
    for query, message in ((" ", "empty"), ("a\ud800b", "surrogate"), ("a" * 3000, "characters")):
        with pytest.raises(InputError, match=message):
            session.bench(query=query)
    with pytest.raises(InputError, match="empty"):
        state.own_document(bench, "title", " \n", "blog")
    with pytest.raises(InputError, match="unknown topic"):
        session.bench(qid="q999")


# ---- hostile text --------------------------------------------------------------------------


class Seen(HTMLParser):
    """Tags, attribute names and text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.text += data


def assert_harmless(page: str) -> None:
    seen = Seen(page)
    assert not seen.tags & {"script", "img", "iframe", "object", "link", "meta"}
    assert not [a for a in seen.attributes if a.startswith("on")]
    assert "<script>alert(1)</script>" in seen.text and "\u202e" not in page


def hostile_bench() -> Bench:
    bench = by_hand()
    evil = Document(HOSTILE, HOSTILE, HOSTILE, "blog", HOSTILE, adversarial=True)
    return replace(bench, documents=(evil, *bench.documents[1:]), query=HOSTILE)


def test_hostile_text_stays_text_in_ranking_and_flow():
    bench, now = hostile_bench(), State(TABLE, k=2)
    now = state.spoofed(now, bench.documents[0], "journal")
    page = render.ranking_panel(bench, now, state.ranking(bench, now, weigh))
    assert_harmless(page)
    assert page.count("data-docno=") == 4 and "⚑ adversarial" in page


def test_hostile_text_stays_text_in_answers():
    bench = hostile_bench()
    said = pd.DataFrame({"sentence": [f"{HOSTILE} [1]"], "band": ["unclear"], "support": [0.4]})
    shown = [list(bench.documents)] * 2
    page = render.answers_panel(HOSTILE, ["one", HOSTILE], shown, [said, said], {"b": HOSTILE})
    assert_harmless(page)
    assert "the answer is one" in page


# ---- widgets without a browser -------------------------------------------------------------


@pytest.fixture(scope="module")
def explorer(session):
    return Explorer(session)


@pytest.fixture
def fresh(explorer):
    """The explorer at its first topic with the config's settings."""
    c = explorer.controls
    c.spread.value, c.rule.value, c.k.value, c.window.value = "current", "source_aware", 5, "none"
    c.topic.value = "q002"
    c.topic.value = "q001"
    return explorer


def order(explorer) -> list[str]:
    return [row["docno"] for row in explorer.rows]


def test_a_slider_redraws_and_names_what_it_left(fresh):
    before, first = fresh.view.value, order(fresh)
    fresh.controls.priors["ai_generated"].value = 1.0
    assert fresh.view.value != before and order(fresh) != first
    assert fresh.controls.spread.value == "as set below"
    fresh.controls.spread.value = "current"
    assert fresh.view.value == before and fresh.controls.priors["ai_generated"].value == 0.3


def test_none_is_similarity_in_one_choice(fresh):
    fresh.controls.spread.value = "none"
    assert [r["rank_sim"] for r in fresh.rows] == list(range(1, len(fresh.rows) + 1))


def test_k_window_and_rule_follow(fresh):
    fresh.controls.k.value = 3
    assert sum(row["in_top_after"] for row in fresh.rows) == 3
    fresh.controls.window.value = "10"
    assert sum(row["inside"] for row in fresh.rows) == 10
    fresh.controls.rule.value = "hard_filter"
    assert "left out by hard filter" in fresh.view.value


def test_what_if_and_back(fresh):
    c, before = fresh.controls, fresh.view.value
    liar = next(row["docno"] for row in fresh.rows if row["adversarial"])
    c.document.value, c.as_type.value = liar, "peer_reviewed"
    c.spoof.click()
    assert order(fresh)[0] == liar and f"{liar} declares peer-reviewed" in fresh.edits.value
    c.flip.click()
    c.remove.click()
    assert liar not in order(fresh)
    c.text.value = "Antibiotics do not shorten a common cold."
    c.inject.click()
    assert f"{MINE}1" in order(fresh) and f"{MINE}1 added" in fresh.edits.value
    c.reset.click()
    assert fresh.view.value == before and "The corpus as it is." in fresh.edits.value


def test_a_question_of_ones_own(fresh):
    fresh.controls.question.value = "Is walking good for the heart?"
    assert fresh.bench.query == "Is walking good for the heart?" and fresh.bench.topic is None
    assert fresh.controls.topic.value == ""
    assert all(row["label"] is None for row in fresh.rows)


def test_stance_rules_can_be_chosen_once_passages_are_read(fresh, monkeypatch):
    monkeypatch.setattr(exploring_fields, "READ_DEPTH", 3)  # a reading is a pass of the model
    c = fresh.controls
    assert "stance_consistent" not in dict(c.rule.options).values()
    c.read.click()
    assert c.rule.value == fresh.state.rule == "stance_consistent"
    read = np.isfinite(fresh.bench.fields["stance"])
    assert read[:3].all() and not read[3:].any()
    # a text of one's own is read too, and another question starts unread
    c.text.value = fresh.bench.query
    c.inject.click()
    assert fresh.bench.documents[0].docno.startswith(MINE)
    assert np.isfinite(fresh.bench.fields["stance"][:3]).all() and not fresh.status.value
    c.topic.value = "q002"
    assert c.rule.value == "source_aware" and "stance" not in fresh.bench.fields


def test_equal_passages_are_answered_once_and_scored(fresh):
    session, shown = fresh.session, list(fresh.bench.documents[:2])
    first, second = session.answers(fresh.bench.query, [shown, shown])
    assert first == second and first.strip()
    said = session.support(first, shown)
    assert set(said["band"]) <= {"supported", "unclear", "unsupported"}
    page = render.answers_panel(fresh.bench.query, ["a", "b"], [shown] * 2, [said] * 2, {})
    assert page.count("<section") == 2


def test_refusals_are_said_and_not_raised(fresh):
    fresh.controls.text.value = " "
    fresh.controls.inject.click()
    assert 'role="alert"' in fresh.status.value and "your text is empty" in fresh.status.value
    fresh.controls.question.value = ""
    fresh.controls.ask.click()
    assert "the question is empty" in fresh.status.value


def test_everything_can_be_named_by_a_screen_reader(explorer):
    controls = vars(explorer.controls).values()
    named = [c for c in controls if hasattr(c, "description")]
    assert len(named) > 15 and all(c.description for c in named)
    assert 'role="img" aria-label="Rank flow' in explorer.view.value
