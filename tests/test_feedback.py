from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_reliability.records import InputError, Pool
from rag_reliability.reliability.feedback import (
    FeedbackSettings,
    Oracle,
    cross_fitted,
    learn_priors,
    prior_rows,
    updated,
)
from rag_reliability.reliability.rerank import rerank

TABLE = {"peer": 0.9, "blog": 0.5, "ai": 0.3}


def world(seed=0, n_topics=12, n_docs=30):
    rng = np.random.default_rng(seed)
    docids = np.tile(np.arange(n_docs), (n_topics, 1))
    pool = Pool(docids, rng.uniform(0.2, 0.9, size=(n_topics, n_docs)))
    types = rng.choice(list(TABLE), size=n_docs)
    docnos = [f"d{i:02d}" for i in range(n_docs)]
    qids = [f"q{t:02d}" for t in range(n_topics)]
    labels = rng.integers(0, 3, size=(n_topics, n_docs))
    qrels = {
        q: dict(zip(docnos, row.tolist(), strict=True)) for q, row in zip(qids, labels, strict=True)
    }
    return pool, qids, docnos, types, qrels


def test_one_update_by_hand():
    new = updated(TABLE, ["peer", "peer", "blog", "ai"], [True, False, True, False], rate=0.2)
    assert new["peer"] == pytest.approx(0.8 * 0.9 + 0.2 * 0.5)
    assert new["blog"] == pytest.approx(0.8 * 0.5 + 0.2 * 1.0)
    assert new["ai"] == pytest.approx(0.8 * 0.3)
    assert TABLE == {"peer": 0.9, "blog": 0.5, "ai": 0.3}


def test_types_not_shown_keep_their_prior_and_the_floor_holds():
    new = updated(TABLE, ["ai"], [False], rate=1.0)
    assert new == {"peer": 0.9, "blog": 0.5, "ai": 0.05}
    assert updated(TABLE, ["blog"], [True], rate=1.0)["blog"] == 1.0


def test_a_whole_step_by_hand():
    pool = Pool(np.array([[0, 1, 2]]), np.array([[0.8, 0.6, 0.5]]))
    # scores .24 .30 .45: shown are the blog and the peer, of which the peer is useful
    oracle = Oracle.from_qrels(["q"], ["a", "b", "c"], ["ai", "blog", "peer"], {"q": {"c": 2}})
    settings_ = FeedbackSettings(rate=0.5, epochs=1, k=2)
    learned, trajectory = learn_priors(pool, TABLE, oracle, settings_)
    assert learned == pytest.approx({"peer": 0.95, "blog": 0.25, "ai": 0.3})
    assert list(trajectory.columns) == ["step", "epoch", "qid", "source_type", "prior"]
    assert trajectory["step"].tolist() == [0, 0, 0, 1, 1, 1]
    assert trajectory["qid"].tolist() == ["", "", "", "q", "q", "q"]


def test_priors_come_to_the_useful_share():
    pool, qids, docnos, types, _ = world(n_topics=30)
    qrels = {q: {d: int(t == "peer") for d, t in zip(docnos, types, strict=True)} for q in qids}
    oracle = Oracle.from_qrels(qids, docnos, types, qrels)
    learned, _ = learn_priors(pool, dict.fromkeys(TABLE, 0.5), oracle, FeedbackSettings(epochs=5))
    # A useless type sinks only until it is no longer shown, so it need not reach the floor.
    assert learned["peer"] > 0.99 and learned["ai"] < 0.3 and learned["blog"] < 0.3


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.floats(0.01, 1.0))
def test_priors_stay_valid(seed, rate):
    pool, qids, docnos, types, qrels = world(seed, n_topics=4)
    oracle = Oracle.from_qrels(qids, docnos, types, qrels)
    _, trajectory = learn_priors(pool, TABLE, oracle, FeedbackSettings(rate=rate, seed=seed))
    assert trajectory["prior"].between(0.05, 1.0).all()


def test_same_seed_same_priors_other_seed_other_order():
    pool, qids, docnos, types, qrels = world()
    oracle = Oracle.from_qrels(qids, docnos, types, qrels)
    runs = [learn_priors(pool, TABLE, oracle, FeedbackSettings(seed=s))[1] for s in (1, 1, 2)]
    assert runs[0].equals(runs[1])
    assert runs[0]["qid"].tolist() != runs[2]["qid"].tolist()


def test_topics_without_judgements_teach_nothing():
    pool, qids, docnos, types, _ = world(n_topics=3)
    oracle = Oracle.from_qrels(qids, docnos, types, {})
    learned, trajectory = learn_priors(pool, TABLE, oracle, FeedbackSettings())
    assert learned == TABLE and trajectory["step"].max() == 0


def adaptive(qrels, seed=3):
    pool, qids, docnos, types, _ = world()
    oracle = Oracle.from_qrels(qids, docnos, types, qrels)
    fitted = cross_fitted(pool, TABLE, oracle, FeedbackSettings(rate=0.4, seed=seed), folds=4)
    ranking = rerank(pool, prior_rows(fitted.tables, types), qids, docnos, 5)
    return fitted, ranking


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 11), st.integers(0, 1000))
def test_a_topics_own_labels_never_change_its_own_ranking(topic, seed):
    _, qids, docnos, _, qrels = world()
    rng = np.random.default_rng(seed)
    changed = dict(qrels)
    changed[qids[topic]] = dict(zip(docnos, rng.integers(0, 3, 30).tolist(), strict=True))
    (fitted, ranking), (other, again) = adaptive(qrels), adaptive(changed)
    assert fitted.tables[topic] == other.tables[topic]
    np.testing.assert_array_equal(ranking.docids[topic], again.docids[topic])
    np.testing.assert_array_equal(ranking.scores[topic], again.scores[topic])


def test_labels_of_other_folds_do_count():
    _, qids, docnos, _, qrels = world()
    fitted, _ = adaptive(qrels)
    flipped = dict(qrels)
    flipped[qids[0]] = dict.fromkeys(docnos, 0)
    other, _ = adaptive(flipped)
    outside = np.flatnonzero(fitted.fold != fitted.fold[0])
    assert any(fitted.tables[t] != other.tables[t] for t in outside)


def test_folds_are_even_and_the_trajectory_leaves_them_out():
    _, qids, _, _, qrels = world()
    fitted, _ = adaptive(qrels)
    assert sorted(np.bincount(fitted.fold).tolist()) == [3, 3, 3, 3]
    assert fitted.trajectory.columns[0] == "fold"
    for fold, part in fitted.trajectory.groupby("fold"):
        held_out = {qids[t] for t in np.flatnonzero(fitted.fold == fold)}
        assert not held_out & set(part["qid"])


def test_bad_settings_are_refused():
    for bad in ({"rate": 0}, {"rate": 1.1}, {"epochs": 0}, {"floor": 0}, {"k": 5, "window": 3}):
        with pytest.raises(InputError):
            FeedbackSettings(**bad)
    pool, qids, docnos, types, qrels = world(n_topics=3)
    oracle = Oracle.from_qrels(qids, docnos, types, qrels)
    for folds in (1, 4):
        with pytest.raises(InputError, match="expected 2 to 3"):
            cross_fitted(pool, TABLE, oracle, FeedbackSettings(), folds)
    with pytest.raises(InputError, match="known: peer"):
        learn_priors(pool, {"peer": 0.9}, oracle, FeedbackSettings())
