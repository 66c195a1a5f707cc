"""The stance probe's arithmetic, by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_reliability.evaluation.stance import auroc, auroc_interval, stance_metrics, stance_summary
from rag_reliability.records import InputError

STANCES = {"q1": "yes", "q2": "no", "q3": "yes", "q4": "no", "q5": None}
NO_PASSAGES = {"q1": -1.0, "q2": -2.0, "q3": -3.0, "q4": -4.0}


def _log_odds(**systems: list[float]) -> pd.DataFrame:
    rows = [(s, f"q{i + 1}", v) for s, values in systems.items() for i, v in enumerate(values)]
    return pd.DataFrame(rows, columns=["system", "qid", "log_odds"])


def test_auroc_by_hand() -> None:
    # pairs (true, false): 3>1, 3>2, 1=1, 1<2 → (1 + 1 + ½ + 0) / 4
    assert auroc([3, 1, 1, 2], [True, True, False, False]) == pytest.approx(2.5 / 4)
    with pytest.raises(ValueError, match="both classes"):
        auroc([1, 2], [True, True])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=20))
def test_auroc_is_sklearns_and_turns_round(rows: list[tuple[int, bool]]) -> None:
    from sklearn.metrics import roc_auc_score

    scores, truths = np.array([r[0] for r in rows], float), np.array([r[1] for r in rows])
    if truths.all() or not truths.any():
        return
    assert auroc(scores, truths) == pytest.approx(roc_auc_score(truths, scores))
    assert auroc(-scores, truths) == pytest.approx(1 - auroc(scores, truths))


def test_interval_holds_the_value_and_is_seeded() -> None:
    rng = np.random.default_rng(0)
    truths = np.arange(60) % 2 == 0
    scores = rng.normal(size=60) + truths
    low, high = auroc_interval(scores, truths, seed=4)
    assert low < auroc(scores, truths) < high
    assert (low, high) == auroc_interval(scores, truths, seed=4)
    assert auroc_interval([1, 1, 0, 0], [True, True, False, False]) == (1, 1)


def test_metrics_by_hand() -> None:
    table = stance_metrics(_log_odds(s=[0.0, -2.5, -3.0, -1.0, 9.0]), NO_PASSAGES, STANCES)
    value = table.set_index(["metric", "qid"])["value"]
    assert "q5" not in set(table.qid)
    # toward the truth: yes 0 − (−1), no −(−2.5 + 2), yes −3 + 3, no −(−1 + 4)
    assert value["stance_shift"].to_list() == [1, 0.5, 0, -3]
    # the median without passages is −2.5: yes above, no at it, yes below, no above
    assert value["stance_error"].to_list() == [0, 0.5, 1, 1]
    assert value["log_odds"].to_list() == [0, -2.5, -3, -1]


def test_a_biased_model_is_not_called_wrong_for_its_bias() -> None:
    """It always says No, but less so where the answer is yes."""
    table = stance_metrics(
        _log_odds(s=[-5.0, -9.0, -4.0, -8.0]), dict.fromkeys(STANCES, -7.0), STANCES
    )
    assert table[table.metric == "stance_error"].value.eq(0).all()


def test_summary() -> None:
    odds = _log_odds(good=[1.0, -3.0, 2.0, -4.0], bad=[-4.0, 1.0, -3.0, 2.0])
    summary = stance_summary(stance_metrics(odds, NO_PASSAGES, STANCES), STANCES).set_index(
        "system"
    )
    assert summary.loc["good"].auroc == 1 and summary.loc["bad"].auroc == 0
    assert summary.loc["good"].stance_error == 0 and summary.loc["bad"].stance_error == 1
    assert summary.loc["good"].stance_shift == pytest.approx((2 + 1 + 5 + 0) / 4)
    assert (summary.n_topics == 4).all() and summary.notna().all().all()


def test_arms_are_kept_apart() -> None:
    odds = pd.concat([_log_odds(s=[1.0, -3.0]).assign(arm=arm) for arm in ("plain", "other")])
    summary = stance_summary(stance_metrics(odds, NO_PASSAGES, STANCES), STANCES)
    assert summary.arm.to_list() == ["plain", "other"]


@pytest.mark.parametrize(
    ("no_passages", "stances", "said"),
    [
        (NO_PASSAGES, {"q1": "maybe", "q2": "no"}, "q1: stance 'maybe', expected yes or no"),
        (NO_PASSAGES, {"q1": "yes"}, "q2: no stance is known"),
        ({"q1": 0.0}, {"q1": "yes", "q2": "no"}, "q2: no log-odds without passages"),
    ],
)
def test_bad_input(no_passages: dict[str, float], stances: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        stance_metrics(_log_odds(s=[0.0, 1.0]), no_passages, stances)


def test_not_finite_and_one_sided() -> None:
    with pytest.raises(InputError, match="not finite"):
        stance_metrics(_log_odds(s=[np.nan]), NO_PASSAGES, STANCES)
    one = stance_metrics(_log_odds(s=[1.0]), NO_PASSAGES, STANCES)
    with pytest.raises(InputError, match="both true answers"):
        stance_summary(one, STANCES)
