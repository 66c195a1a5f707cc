"""Ranking metrics: by hand, against trec_eval's implementation, and at the edges."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from rag_reliability.evaluation.ranking import compatibility, evaluate_ranking, exposure

RUN = {"q1": ["a", "b", "c", "d", "e"], "q2": ["x", "y", "z"]}
QRELS = {"q1": {"b": 1, "d": 2, "a": 0}, "q2": {"x": 2, "w": 1}}


def _value(table: pd.DataFrame, qid: str, metric: str) -> float:
    return table.set_index(["qid", "metric"])["value"][qid, metric]


def test_by_hand() -> None:
    table = evaluate_ranking(RUN, QRELS, k=5, recall_k=3)
    assert _value(table, "q1", "precision@5") == pytest.approx(2 / 5)
    assert _value(table, "q2", "precision@5") == pytest.approx(
        1 / 5
    )  # over k, though only 3 came back
    assert _value(table, "q1", "mrr") == pytest.approx(1 / 2)
    assert _value(table, "q1", "recall@3") == pytest.approx(1 / 2)
    assert _value(table, "q2", "recall@3") == pytest.approx(1 / 2)
    ideal = 2 / math.log2(2) + 1 / math.log2(3)
    assert _value(table, "q1", "ndcg@5") == pytest.approx(
        (1 / math.log2(3) + 2 / math.log2(5)) / ideal
    )
    assert _value(table, "q2", "ndcg@5") == pytest.approx(2 / ideal)


def test_agrees_with_ir_measures() -> None:
    import ir_measures
    from ir_measures import RR, P, R, nDCG

    rng = np.random.default_rng(5)
    docnos = [f"d{i}" for i in range(40)]
    run = {f"q{i}": list(rng.permutation(docnos)[: rng.integers(15, 40)]) for i in range(12)}
    qrels = {
        q: {str(d): int(rng.integers(0, 4)) for d in rng.choice(docnos, 15, replace=False)}
        for q in run
    }
    ours = evaluate_ranking(run, qrels, k=5, recall_k=15).set_index(["qid", "metric"])["value"]
    scored = {q: {str(d): -float(i) for i, d in enumerate(ds)} for q, ds in run.items()}
    names = {P @ 5: "precision@5", nDCG @ 5: "ndcg@5", RR: "mrr", R @ 15: "recall@15"}
    seen = 0
    for found in ir_measures.iter_calc(list(names), qrels, scored):
        assert ours[found.query_id, names[found.measure]] == pytest.approx(found.value, abs=1e-9)
        seen += 1
    assert seen == len(ours) == 48


def test_topics_are_kept_and_named() -> None:
    run, qrels = {"q1": ["a"], "q2": ["b"]}, {"q1": {"a": 1}, "q3": {"c": 1}}
    with pytest.warns(UserWarning) as caught:
        table = evaluate_ranking(run, qrels, k=5)
    said = [str(w.message) for w in caught]
    assert any("without relevant documents" in s and s.endswith("q2") for s in said)
    assert any("without a ranking" in s and s.endswith("q3") for s in said)
    assert set(table.qid) == {"q1", "q2", "q3"} and table.value.notna().all()
    assert table[table.qid != "q1"].value.eq(0).all()


def test_a_document_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        evaluate_ranking({"q1": ["a", "a"]}, {"q1": {"a": 1}})


def test_exposure_by_hand() -> None:
    baseline = {"q1": ["a", "b", "c", "d"], "q2": ["x", "y"]}
    run = {"q1": ["a", "d", "e", "f"], "q2": ["y", "x"]}
    qrels = {"q1": {"b": 2, "c": 1, "d": 1}, "q2": {"x": 1}}
    table = exposure(run, qrels, {"q1": {"a"}, "q2": {"e"}}, {"a", "b", "c", "d"}, baseline, k=4)
    assert _value(table, "q1", "adv_share@4") == pytest.approx(
        2 / 4
    )  # e is q2's, and still adversarial
    assert _value(table, "q1", "adv_hit@4") == 1
    assert _value(table, "q2", "adv_hit@4") == 0
    assert _value(table, "q1", "low_tier_share@4") == pytest.approx(2 / 4)
    assert _value(table, "q1", "suppressed_true@4") == pytest.approx(2 / 3)  # b and c of b, c, d
    assert _value(table, "q1", "suppressed_true_count@4") == 2
    assert _value(table, "q2", "suppressible_true_count@4") == 0
    assert "suppressed_true@4" not in set(table[table.qid == "q2"].metric)
    assert table.value.notna().all()


def test_share_is_over_the_documents_shown() -> None:
    table = exposure({"q": ["a", "b"], "r": []}, {"q": {"b": 1}}, {"a"}, set(), {}, k=5)
    assert _value(table, "q", "adv_share@5") == pytest.approx(1 / 2)
    assert _value(table, "r", "adv_share@5") == 0


def test_compatibility_by_hand() -> None:
    """RBO over depth 2 with p = 1/2: weights 1 and 1/2, overlaps at depth 1 and 2."""
    helpful, harmful = {"q": {"a": 1}}, {"q": {"b": 1}}
    table = compatibility({"q": ["a", "b"]}, helpful, harmful, p=0.5)
    # run [a, b] against ideal [a]: (1·1 + ½·½) / 1.5 = 5/6, and so has the ideal against itself
    assert _value(table, "q", "compat_help") == pytest.approx(1)
    # against ideal [b]: (0 + ½·½) / 1.5 = 1/6, of 5/6
    assert _value(table, "q", "compat_harm") == pytest.approx(1 / 5)
    assert _value(table, "q", "compat_diff") == pytest.approx(4 / 5)


def test_compatibility_without_an_ideal_is_zero() -> None:
    table = compatibility({"q": ["a"]}, {"q": {"a": 0}}, {})
    assert table.value.eq(0).all() and len(table) == 3


def test_moving_harm_down_never_raises_compat_harm() -> None:
    docs = [f"d{i}" for i in range(10)]
    values = []
    for place in range(10):
        order = [*docs[:place], "bad", *docs[place:]]
        table = compatibility({"q": order}, {"q": {"d0": 1}}, {"q": {"bad": 1}})
        values.append(_value(table, "q", "compat_harm"))
    assert values == sorted(values, reverse=True) and values[0] > values[-1]
