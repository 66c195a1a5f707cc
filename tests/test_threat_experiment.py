"""The sweep over threats: its fast metrics, its draws, its tables."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pandas as pd
import pytest

from rag_reliability.evaluation.ranking import evaluate_ranking, exposure
from rag_reliability.experiment import threat_summary as summary
from rag_reliability.experiment.study import open_study
from rag_reliability.experiment.threat_metrics import NAMES, marks_of, top_metrics
from rag_reliability.experiment.threat_states import declared_prior, distinct_rows, draw_states
from rag_reliability.experiment.threats import ThreatPlan
from rag_reliability.records import Corpus, Document, InputError, Topic
from rag_reliability.reliability.threats import spoof_labels
from rag_reliability.reporting.threat_tables import decision_sentences

from .conftest import ROOT


@pytest.fixture
def study(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    return open_study({"out": str(tmp_path), "n_resamples": 200}, say=lambda line: None)


# ---- metrics -------------------------------------------------------------------------------


def _random_case(rng, k):
    """A corpus, and rankings of each topic by a system and by similarity, down to ``k``."""
    n_docs, qids = 14, tuple(f"q{i}" for i in range(6))
    documents = tuple(
        Document(f"d{i:02d}", "", "text", "blog", adversarial=bool(rng.random() < 0.3))
        for i in range(n_docs)
    )
    qrels = {
        qid: {d.docno: int(rng.integers(4)) for d in documents if rng.random() < 0.4}
        for qid in qids
    }
    qrels["q5"] = {"d00": 0}  # judged, and nothing is relevant
    corpus = Corpus("c", documents, tuple(Topic(q, "query") for q in qids), qrels)
    top, before = (
        np.array([rng.permutation(n_docs)[:k] for _ in qids], dtype=np.int64) for _ in range(2)
    )
    return corpus, qids, rng.random(n_docs) < 0.5, top, before


@pytest.mark.parametrize("k", [1, 3, 5])
def test_metrics_are_those_of_the_evaluation_package(k):
    rng = np.random.default_rng(k)
    for _ in range(5):
        corpus, qids, low, top, before = _random_case(rng, k)
        marks = marks_of(corpus, qids, low, k)
        fast = top_metrics(marks, np.arange(len(qids)), top, before)
        run, base = (
            {q: corpus.docnos[row].tolist() for q, row in zip(qids, rows, strict=True)}
            for rows in (top, before)
        )
        adversarial = set(corpus.docnos[corpus.adversarial].tolist())
        lows = set(corpus.docnos[low].tolist())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # q5 has no relevant documents
            slow = pd.concat(
                [
                    evaluate_ranking(run, corpus.qrels, k=k, recall_k=k),
                    exposure(run, corpus.qrels, adversarial, lows, base, k=k),
                ]
            )
        known = slow.set_index([slow["metric"].str.partition("@")[0], "qid"])["value"]
        for name in set(NAMES) - {"low_tier_true_share"}:
            for value, qid in zip(fast[name], qids, strict=True):
                expected = known.get((name, qid), np.nan)
                assert value == pytest.approx(expected, nan_ok=True, abs=1e-9), (name, qid)


def test_metrics_worked_by_hand():
    documents = tuple(Document(f"d{i}", "", "t", "blog", adversarial=i == 0) for i in range(5))
    corpus = Corpus("c", documents, (Topic("q", "query"),), {"q": {"d1": 2, "d2": 1, "d3": 1}})
    low = np.array([True, True, True, False, False])
    marks = marks_of(corpus, ("q",), low, 4)
    one = np.zeros(1, dtype=np.int64)
    # shown: adversarial, d1 (label 2, low), d3 (label 1), nothing; similarity had d1 and d2.
    found = top_metrics(marks, one, np.array([[0, 1, 3, -1]]), np.array([[1, 2, 4, 0]]))
    ideal = 2 + 1 / np.log2(3) + 1 / 2
    expected = {
        "precision": 2 / 4,
        "ndcg": (2 / np.log2(3) + 1 / 2) / ideal,
        "mrr": 1 / 2,
        "adv_share": 1 / 3,
        "adv_hit": 1,
        "low_tier_share": 2 / 3,
        "low_tier_true_share": 1 / 3,
        "suppressed_true": 1 / 2,
    }
    assert {name: value[0] for name, value in found.items()} == pytest.approx(expected)
    without = top_metrics(marks, one, np.array([[0, 1, 3, -1]]), np.array([[3, 4, 0, -1]]))
    assert np.isnan(without["suppressed_true"][0])


# ---- draws ---------------------------------------------------------------------------------


def test_draws_are_those_of_spoof_labels_on_the_whole_corpus(study):
    states = draw_states(study, (0.0, 0.35, 1.0), (0.0, 0.5), range(3))
    assert len(states.seed) == 3 * 2 * 3
    for i in range(len(states.seed)):
        after = spoof_labels(
            study.corpus, states.spoof[i], leak=states.leak[i], seed=int(states.seed[i])
        )
        own = states.adversaries
        assert states.prior[i] == pytest.approx(declared_prior(study, after)[own])
        assert states.verified[i].tolist() == [after.documents[d].verified for d in own]
    assert states.verified[-1].sum() == round(0.5 * len(states.adversaries))


def test_every_draw_finds_its_own_labels_among_the_distinct_rankings(study):
    states = draw_states(study, (0.0, 0.5, 1.0), (0.0, 0.2), range(4))
    n_docs = len(study.corpus.documents)
    rng = np.random.default_rng(0)
    docids = np.array([rng.permutation(n_docs)[:20] for _ in range(6)])
    docids[2, 10:] = -1
    rows = distinct_rows(states, docids, n_docs)
    assert rows.of.shape == (len(states.seed), 6)
    assert len(rows.topic) < rows.of.size  # something was saved
    for i in range(len(states.seed)):
        for topic in range(6):
            row = rows.of[i, topic]
            assert rows.topic[row] == topic
            own = np.isin(states.adversaries, docids[topic])
            same = rows.state[row]
            assert (states.prior[i, own] == states.prior[same, own]).all()
            assert (states.verified[i, own] == states.verified[same, own]).all()


# ---- plans ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"rules": ("magic",)}, "rules: unknown 'magic'; known: similarity, source_aware"),
        ({"rules": ()}, "rules is empty; known: similarity"),
        ({"rules": ("similarity",), "spoof": (0.2, 1.2)}, "spoof = 1.2; expected 0 <= spoof <= 1"),
        ({"rules": ("similarity",), "leak": (-0.1,)}, "leak = -0.1; expected 0 <= leak <= 1"),
        ({"rules": ("similarity",), "spoof": ()}, "spoof is empty"),
        ({"rules": ("similarity",), "seeds": 0}, "seeds = 0"),
    ],
)
def test_bad_plans_are_refused(given, says):
    with pytest.raises(InputError, match=says.replace("(", r"\(")):
        ThreatPlan(**given)


def test_a_plan_always_holds_the_baseline_and_each_rate_once():
    plan = ThreatPlan(rules=("source_aware",), spoof=(1, 0, 1.0), leak=(0.2, 0))
    assert plan.rules == ("similarity", "source_aware")
    assert plan.spoof == (0.0, 1.0)
    assert plan.leak == (0.0, 0.2)


def test_plans_are_not_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ThreatPlan(rules=("similarity",)).seeds = 3


# ---- tables --------------------------------------------------------------------------------


def _rows(rule, spoof, leak, share, precision, suppressed):
    """Two topics, two seeds, the same in each; suppressed has a value in topic a only."""
    values = {"adv_share@5": share, "precision@5": precision}
    rows = [
        (rule, spoof, leak, seed, qid, metric, value)
        for seed in (1, 2)
        for qid in ("a", "b")
        for metric, value in values.items()
    ]
    return rows + [
        (rule, spoof, leak, seed, "a", "suppressed_true@5", suppressed) for seed in (1, 2)
    ]


@pytest.fixture
def cells():
    rows = []
    for spoof, leak in ((0.0, 0.0), (1.0, 0.0), (0.0, 0.2), (1.0, 0.2)):
        rows += _rows("similarity", spoof, leak, 0.2, 0.6, 0.0)
        rows += _rows("source_aware", spoof, leak, 0.0 if spoof == 0 else 0.4, 0.8 - spoof, 0.5)
        rows += _rows("verified_boost", spoof, leak, 0.1 + spoof * leak, 0.7, 0.1)
    columns = ["rule", "spoof", "leak", "seed", "qid", "metric", "value"]
    means = summary.topic_means(pd.DataFrame(rows, columns=columns))
    return summary.cell_table(means, n_resamples=200, seed=1)


COSTS = pd.DataFrame(
    {
        "rule": ["similarity", "source_aware", "verified_boost"],
        "calls": [0, 0, 10],
        "seconds": [0.0, 0.0, 2.0],
    }
)


def test_worst_cases_and_aims_by_hand(cells):
    table = summary.no_regret_table(cells, COSTS).set_index("rule")
    aware, boost = table.loc["source_aware"], table.loc["verified_boost"]
    assert aware["worst_adv"] == pytest.approx(0.2)
    assert aware["honest_adv"] == pytest.approx(-0.2)
    assert aware["worst_precision"] == pytest.approx(-0.8)
    assert aware["kept"] == pytest.approx(0.5)
    assert not aware[["never_worse", "small", "more_precise", "keeps_true"]].any()
    assert boost["worst_adv"] == pytest.approx(-0.1)
    assert boost["worst_adv_all"] == pytest.approx(0.1)
    assert boost["max_adv"] == pytest.approx(0.1)
    assert boost["calls"] == 10
    assert boost[["never_worse", "small", "more_precise", "keeps_true"]].all()


def test_the_choice_follows_the_belief_and_what_may_be_called(cells):
    table = summary.decision_table(cells, COSTS)
    found = {(row.belief, row.model): row.rule for row in table.itertuples()}
    assert list(found.values()) == [
        *("source_aware", "source_aware"),  # labels are honest
        *("verified_boost", "similarity"),  # any share lies; without the rule that has a cost
        *("similarity", "similarity"),  # and up to 20 % pass the check
    ]
    text = decision_sentences(table, k=5)
    assert text[0].startswith("If labels are honest: Source-aware (adversarial share@5 at worst 0.")
    assert "without a language model Similarity only" in text[1]


def test_interval_over_topics_with_seeds_averaged_first():
    rows = [
        ("similarity", 1.0, 0.0, seed, qid, "adv_share@5", value)
        for seed, qid, value in ((1, "a", 0.2), (2, "a", 0.4), (1, "b", 0.0), (2, "b", 0.0))
    ]
    columns = ["rule", "spoof", "leak", "seed", "qid", "metric", "value"]
    means = summary.topic_means(pd.DataFrame(rows, columns=columns))
    assert means["value"].tolist() == pytest.approx([0.3, 0.0])
    cell = summary.cell_table(means, n_resamples=200, seed=1).iloc[0]
    assert (cell["mean"], cell["n_topics"]) == (pytest.approx(0.15), 2)
    assert (cell["low"], cell["high"]) == (0.0, pytest.approx(0.3))
