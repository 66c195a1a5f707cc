from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_reliability.records import InputError, Pool
from rag_reliability.reliability.rerank import RERANKERS, rerank
from rag_reliability.reliability.trace import COLUMNS, rank_trace, similarity_price

# Sixty-fourths: products and their ties are exact in floating point.
SIM = st.integers(-64, 64).map(lambda n: n / 64)
PRIOR = st.integers(1, 64).map(lambda n: n / 64)


@st.composite
def cases(draw, max_docs=12):
    n = draw(st.integers(2, max_docs))
    sims = draw(st.lists(SIM, min_size=n, max_size=n))
    prior = draw(st.lists(PRIOR, min_size=n, max_size=n))
    docnos = draw(st.permutations([f"d{i:02d}" for i in range(n)]))
    k = draw(st.integers(1, n))
    return np.array(sims), np.array(prior), np.array(docnos), k


def one_topic(sims):
    return Pool(np.arange(len(sims))[None, :], np.asarray(sims, dtype=float)[None, :])


def ranked(sims, prior, docnos, k, **how):
    return rerank(one_topic(sims), np.asarray(prior, dtype=float), ["q"], docnos, k, **how)


def order(*args, **how):
    return ranked(*args, **how).docids[0].tolist()


def test_hand_worked_example():
    sims, prior = [0.8, 0.6, 0.5, -0.2], [0.3, 0.5, 0.95, 0.9]
    result = ranked(sims, prior, ["a", "b", "c", "d"], 4)
    assert result.docids.tolist() == [[2, 1, 0, 3]]
    np.testing.assert_allclose(result.scores, [[0.475, 0.30, 0.24, 0.0]])
    same = ranked(sims, prior, ["a", "b", "c", "d"], 4, rule="similarity")
    assert same.docids.tolist() == [[0, 1, 2, 3]] and same.scores.tolist() == [sims]


def test_rules_are_pure_and_elementwise():
    sims, prior = np.array([0.5, -0.5]), np.array([0.5, 0.25])
    assert RERANKERS["source_aware"](sims, prior).tolist() == [0.25, 0.0]
    assert RERANKERS["similarity"](sims, prior).tolist() == [0.5, -0.5]
    assert sims.tolist() == [0.5, -0.5] and prior.tolist() == [0.5, 0.25]
    assert RERANKERS["similarity"](sims, prior) is not sims


def test_negative_similarity_never_promotes_the_less_reliable():
    assert order([-0.1, -0.2], [0.95, 0.3], ["a", "b"], 2) == [0, 1]
    assert order([-0.1, -0.2], [0.3, 0.95], ["a", "b"], 2) == [0, 1]


def test_equal_scores_stand_by_docno():
    assert order([0.5, 0.25, 0.5], [0.5, 1.0, 0.5], ["c", "b", "a"], 3) == [2, 1, 0]


@given(cases())
def test_equal_priors_of_one_give_the_similarity_order(case):
    sims, _, docnos, k = case
    ones = np.ones(len(sims))
    assert order(sims, ones, docnos, k) == order(sims, ones, docnos, k, rule="similarity")


@given(cases(), st.data())
def test_lowering_a_prior_never_raises_its_document(case, data):
    sims, prior, docnos, _ = case
    n = len(sims)
    d = data.draw(st.integers(0, n - 1))
    lower = prior.copy()
    lower[d] = data.draw(st.integers(1, int(prior[d] * 64))) / 64
    window = data.draw(st.one_of(st.none(), st.integers(n, n + 3)))
    before = order(sims, prior, docnos, n, window=window).index(d)
    assert order(sims, lower, docnos, n, window=window).index(d) >= before


@given(cases(), PRIOR)
def test_scaling_all_priors_changes_nothing(case, factor):
    sims, prior, docnos, k = case
    assert order(sims, prior * factor, docnos, k) == order(sims, prior, docnos, k)


@given(cases())
def test_window_of_k_keeps_the_similarity_set(case):
    sims, prior, docnos, k = case
    kept = order(sims, prior, docnos, k, window=k)
    assert set(kept) == set(order(sims, prior, docnos, k, rule="similarity"))


@given(cases(), st.data())
def test_wide_window_is_no_window_and_narrow_ones_nest(case, data):
    sims, prior, docnos, k = case
    n = len(sims)
    window = data.draw(st.integers(k, n))
    inside = set(order(sims, prior, docnos, window, rule="similarity"))
    assert set(order(sims, prior, docnos, k, window=window)) <= inside
    assert order(sims, prior, docnos, k, window=n) == order(sims, prior, docnos, k)


@given(cases(), st.data())
def test_order_of_documents_does_not_matter(case, data):
    sims, prior, docnos, k = case
    shuffle = np.array(data.draw(st.permutations(range(len(sims)))))
    window = data.draw(st.one_of(st.none(), st.integers(k, len(sims))))
    names = docnos[order(sims, prior, docnos, k, window=window)]
    moved = docnos[shuffle]
    again = order(sims[shuffle], prior[shuffle], moved, k, window=window)
    assert moved[again].tolist() == names.tolist()


@settings(max_examples=50)
@given(st.integers(0, 5_000))
def test_topics_at_once_equal_topics_one_by_one(seed):
    rng = np.random.default_rng(seed)
    docids = np.stack([rng.permutation(30)[:12] for _ in range(5)])
    sims = rng.integers(-8, 64, size=(5, 12)) / 64
    docids[1, 9:], sims[1, 9:] = -1, -np.inf  # padding
    prior, docnos = rng.integers(1, 65, size=30) / 64, [f"d{i}" for i in range(30)]
    together = rerank(Pool(docids, sims), prior, list("abcde"), docnos, 6, window=8)
    for t in range(5):
        alone = rerank(Pool(docids[[t]], sims[[t]]), prior, ["q"], docnos, 6, window=8)
        assert alone.docids[0].tolist() == together.docids[t].tolist()
    each = rerank(Pool(docids, sims), np.tile(prior, (5, 1)), list("abcde"), docnos, 6, window=8)
    np.testing.assert_array_equal(each.docids, together.docids)


def test_topics_can_have_priors_of_their_own():
    pool = Pool(np.array([[0, 1], [0, 1]]), np.array([[0.6, 0.5], [0.6, 0.5]]))
    result = rerank(pool, np.array([[0.5, 1.0], [1.0, 0.5]]), ["a", "b"], ["x", "y"], 1)
    assert result.docids.tolist() == [[1], [0]]


def test_k_beyond_the_candidates_warns_once_and_stays_rectangular():
    pool = Pool(np.array([[0, 1, 2], [1, 2, -1]]), np.array([[0.3, 0.2, 0.1], [0.5, 0.4, -np.inf]]))
    with pytest.warns(UserWarning, match="k = 9 but a topic has only 2") as caught:
        result = rerank(pool, np.ones(3), ["a", "b"], ["x", "y", "z"], 9)
    assert len(caught) == 1 and result.docids.tolist() == [[0, 1], [1, 2]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rerank(pool, np.ones(3), ["a", "b"], ["x", "y", "z"], 2)


@pytest.mark.parametrize("bad", [0.0, -0.1, 1.01, np.nan, np.inf])
def test_bad_priors_are_refused(bad):
    with pytest.raises(InputError, match=r"prior of document 1 is .*expected 0 < λ <= 1"):
        ranked([0.5, 0.4], [1.0, bad], ["a", "b"], 1)


def test_other_bad_arguments_are_refused():
    with pytest.raises(InputError, match="'magic'; known: similarity, source_aware"):
        ranked([0.5], [1.0], ["a"], 1, rule="magic")
    with pytest.raises(InputError, match="window = 1; expected at least k = 2"):
        ranked([0.5, 0.4], [1.0, 1.0], ["a", "b"], 2, window=1)
    with pytest.raises(InputError, match="k = 0"):
        ranked([0.5], [1.0], ["a"], 0)
    with pytest.raises(ValueError, match="shape"):
        ranked([0.5, 0.4], [1.0], ["a", "b"], 1)
    with pytest.raises(ValueError, match="2 qids"):
        rerank(one_topic([0.5]), np.ones(1), ["a", "b"], ["x"], 1)
    with pytest.raises(ValueError, match="document 1 of 1"):
        rerank(one_topic([0.5, 0.4]), np.ones(1), ["a"], ["x"], 1)


TRACE = {
    "sims": [0.80, 0.70, 0.60, 0.50, 0.20],
    "prior": [0.30, 0.90, 0.95, 0.95, 0.90],
    "docnos": ["ai", "gov", "peer", "late", "far"],
    "types": ["ai_generated", "government", "peer_reviewed", "peer_reviewed", "government"],
}


def traced(k, **how):
    pool, prior = one_topic(TRACE["sims"]), np.array(TRACE["prior"])
    frame = rank_trace(pool, prior, ["q"], TRACE["docnos"], TRACE["types"], k, **how)
    return frame.set_index("docno", drop=False)


def test_trace_says_what_moved_and_why():
    frame = traced(3)
    assert frame["docno"].tolist() == ["gov", "peer", "late", "ai", "far"]
    assert frame["rank_score"].tolist() == [1, 2, 3, 4, 5]
    assert frame["rank_sim"].tolist() == [2, 3, 4, 1, 5]
    assert frame["in_top_before"].tolist() == [True, True, False, True, False]
    assert frame["in_top_after"].tolist() == [True, True, True, False, False]
    assert frame.loc["gov", "why"] == "kept: rank 2 → 1"
    assert frame.loc["late", "why"] == (
        "entered: λ 0.95 lifts it past 1 document with a lower prior"
    )
    # last kept scores .50 · .95 = .475, and .475 / .30 = 1.583
    assert frame.loc["ai", "why"] == (
        "left: at λ 0.30 it needed similarity 1.583 to hold rank 3, has 0.800"
    )
    assert frame.loc["far", "why"] == "below the top 3: stays at rank 5"


def test_trace_of_similarity_moves_nothing():
    frame = traced(2, rule="similarity")
    assert (frame["rank_sim"] == frame["rank_score"]).all()
    assert frame["why"].str.contains("stays at rank").all()


def test_trace_names_the_window():
    frame = traced(2, window=3)
    assert frame.loc["far", "why"] == "outside the window of 3: rank 5 by similarity"
    assert not frame.loc[["late", "far"], "in_top_after"].any()
    assert frame["docno"].tolist() == ["gov", "peer", "ai", "late", "far"]


@given(cases(), st.data())
def test_trace_agrees_with_the_ranking_and_its_sentences_are_true(case, data):
    sims, prior, docnos, k = case
    n = len(sims)
    window = data.draw(st.one_of(st.none(), st.integers(k, n)))
    pool, types = one_topic(sims), ["t"] * n
    frame = rank_trace(pool, prior, ["q"], docnos, types, k, window=window)
    result = ranked(sims, prior, docnos, k, window=window)
    assert frame["docid"].tolist()[:k] == result.docids[0].tolist()
    assert frame["in_top_after"].sum() == frame["in_top_before"].sum() == k and len(frame) == n
    for row in frame.itertuples():
        if row.why.startswith("entered"):
            assert "past 0" not in row.why
        if row.why.startswith("left: at"):
            needed = result.scores[0, -1] / row.prior
            assert row.sim < needed and f"{needed:.3f}" in row.why
        if window is not None and row.rank_sim > window:
            assert row.why.startswith("outside")


def test_trace_columns_and_empty():
    columns = list(traced(1).columns)
    assert columns == list(COLUMNS)
    assert columns[:4] == ["qid", "docno", "docid", "source_type"] and columns[-1] == "why"
    assert columns[4:7] == ["sim", "prior", "score"]
    assert columns[7:11] == ["rank_sim", "rank_score", "in_top_before", "in_top_after"]
    empty = Pool(np.empty((0, 3), dtype=int), np.empty((0, 3)))
    assert list(rank_trace(empty, np.ones(1), [], ["a"], ["t"], 1).columns) == columns


def test_price_of_a_prior_in_similarity():
    pool = Pool(np.array([[0, 1, 2]] * 2), np.array([[0.8, 0.6, 0.4], [0.6, 0.5, -np.inf]]))
    table = {"peer": 0.9, "blog": 0.6, "wiki": 0.6, "ai": 0.3}
    frame = similarity_price(pool, table, k=2, depth=3)
    assert frame[["higher", "lower"]].values.tolist()[0] == ["peer", "blog"]
    assert len(frame) == 5 and not ((frame.higher == "blog") & (frame.lower == "wiki")).any()
    first, last = frame.iloc[0], frame.iloc[-1]
    assert first.ratio == pytest.approx(1.5) and last.ratio == pytest.approx(3)
    assert first.median_sim == pytest.approx(0.6)  # of .8 .6 .6 .5
    assert first.needed_sim == pytest.approx(0.9)
    assert first.pool_ratio == pytest.approx((0.8 / 0.4 + 0.6 / 0.5) / 2)
    assert not first.decides and last.decides
