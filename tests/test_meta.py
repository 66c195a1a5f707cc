"""Agreement with people, by hand and against other implementations; controls and power."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_reliability.evaluation.controls import one_sided_scores, smallest_difference, swapped
from rag_reliability.evaluation.meta import (
    agreement,
    auroc_statistic,
    balanced_statistic,
    band_shares,
    best_threshold,
    calibration_curve,
    calibration_error,
    fitted_thresholds,
    risk_coverage,
    roc_curve,
)
from rag_reliability.evaluation.pairs import Pair
from rag_reliability.evaluation.resampling import clustered, folds
from rag_reliability.evaluation.stance import auroc
from rag_reliability.evaluation.support import BANDS, Thresholds

SCORES = np.array([0.9, 0.8, 0.8, 0.4, 0.1])
TRUTHS = np.array([True, True, False, True, False])
GROUPS = ["a", "a", "b", "b", "c"]


def test_auroc_by_hand_and_by_weights() -> None:
    # pairs (true, false): .9 and .8 beat .8 (one tie) and .1, .4 loses and wins: 4.5 of 6
    found = auroc_statistic(SCORES, TRUTHS)
    assert found(np.ones(5)) == pytest.approx(4.5 / 6) == auroc(SCORES, TRUTHS)
    twice = found(np.array([1, 1, 2, 1, 1]))  # as if the third row stood there twice
    assert twice == pytest.approx(auroc([*SCORES, 0.8], [*TRUTHS, False]))
    assert np.isnan(found(np.array([1, 1, 0, 1, 0])))


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=30))
def test_auroc_is_the_rank_statistic(rows) -> None:
    scores, truths = np.array([s for s, _ in rows]), np.array([t for _, t in rows])
    if truths.any() and not truths.all():
        found = auroc_statistic(scores, truths)(np.ones(len(rows)))
        assert found == pytest.approx(auroc(scores, truths))


def test_balanced_accuracy_by_hand() -> None:
    said = [True, True, True, False, False]  # 2 of 3 true ones and 1 of 2 false ones right
    assert balanced_statistic(said, TRUTHS)(np.ones(5)) == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert best_threshold(SCORES, TRUTHS) == 0.4  # all true ones and one of two false ones


def test_thresholds_come_from_other_groups() -> None:
    # in every group the true one scores higher, at a level of the group's own
    scores = np.array([0.1, 0.2, 0.5, 0.6, 0.8, 0.9])
    truths = np.array([False, True] * 3)
    groups = ["a", "a", "b", "b", "c", "c"]
    cut = fitted_thresholds(scores, truths, groups)
    for group in "abc":
        own = np.array([g == group for g in groups])
        assert len(set(cut[own])) == 1 and cut[own][0] not in scores[own]
    fold = folds(["x", "y", "x", "z", "y"], n_folds=2)
    assert fold[0] == fold[2] and fold[1] == fold[4] and set(fold) == {0, 1}
    with pytest.raises(ValueError, match="at least two groups"):
        folds(["x", "x"])


def test_intervals_resample_whole_groups() -> None:
    # ten copies of each row in its own group: no narrower than the rows themselves
    rng = np.random.default_rng(0)
    values, rows = rng.random(40), np.arange(40)

    def width(values, groups):
        found = clustered(lambda w: float(w @ values / w.sum()), groups, seed=1)
        assert found.low < found.mean < found.high
        return found.high - found.low

    alone, copied = width(values, rows), width(np.repeat(values, 10), np.repeat(rows, 10))
    assert copied == pytest.approx(alone, rel=0.15)
    assert width(np.repeat(values, 10), np.arange(400)) < alone / 2
    assert 1.96 * 2 * values.std() / np.sqrt(40) == pytest.approx(alone, rel=0.15)


def test_calibration_by_hand() -> None:
    scores = np.array([0.1] * 4 + [0.9] * 4)
    truths = np.array([False, False, False, True, True, True, True, False])
    curve = calibration_curve(scores, truths, range(8), n_bins=2, n_resamples=50)
    np.testing.assert_allclose(curve[["x", "y", "n"]], [[0.1, 0.25, 4], [0.9, 0.75, 4]])
    assert (curve["low"] <= curve["y"]).all() and (curve["y"] <= curve["high"]).all()
    assert calibration_error(curve) == pytest.approx(0.15)


def test_a_calibrated_score_has_no_error() -> None:
    rng = np.random.default_rng(1)
    p = rng.random(4000)
    curve = calibration_curve(p, rng.random(4000) < p, range(4000), n_resamples=20)
    assert calibration_error(curve) < 0.03


def test_risk_coverage_by_hand() -> None:
    scores, truths = np.array([0.9, 0.1, 0.6, 0.4]), np.array([True, False, False, True])
    curve = risk_coverage(scores, truths, np.full(4, 0.5), n_points=2)
    # the surer half is right, the other half wrong
    np.testing.assert_allclose(curve[["x", "y"]], [[0.5, 0], [1, 0.5]])


def test_roc_holds_the_auroc() -> None:
    curve = roc_curve(SCORES, TRUTHS)
    assert curve.iloc[0].tolist() == [0, 0] and curve.iloc[-1].tolist() == [1, 1]
    area = np.trapezoid(curve["y"], curve["x"])
    assert area == pytest.approx(4.5 / 6)


def test_bands_by_hand() -> None:
    found = band_shares(SCORES, TRUTHS, GROUPS, Thresholds(0.3, 0.7), n_resamples=20)
    assert found["measure"].tolist() == [f"true_share.{band}" for band in BANDS]
    np.testing.assert_allclose(found["value"], [2 / 3, 1, 0])
    assert found["n"].tolist() == [3, 1, 1]
    empty = band_shares([0.9, 0.9], [True, False], "ab", Thresholds(), n_resamples=5)
    assert empty["value"].isna().tolist() == [False, True, True]


def test_agreement_holds_everything() -> None:
    rng = np.random.default_rng(2)
    truths = rng.random(300) < 0.5
    scores = np.clip(0.5 + 0.2 * truths + 0.2 * rng.normal(size=300) - 0.1, 0, 1)
    groups = np.arange(300) // 3
    measures, curves = agreement(scores, truths, groups, Thresholds(), n_resamples=200)
    value = measures.set_index("measure")
    assert value.loc["auroc", "low"] < value.loc["auroc", "value"] < value.loc["auroc", "high"]
    assert 0.65 < value.loc["auroc", "value"] < 0.85
    assert value.loc["balanced_accuracy", "value"] == pytest.approx(0.69, abs=0.06)
    assert value.loc["mean_support.supported", "value"] == pytest.approx(scores[truths].mean())
    assert set(curves["curve"]) == {"roc", "calibration", "risk"}
    again, _ = agreement(scores, truths, groups, Thresholds(), n_resamples=200)
    assert again.equals(measures)
    with pytest.raises(ValueError, match="both kinds"):
        agreement(scores, truths | True, groups, Thresholds())


# ---- controls ------------------------------------------------------------------------------


def _pairs() -> list[Pair]:
    return [
        Pair("1", "c1", ("p1", "p2"), True, "a"),
        Pair("2", "c2", ("p3",), False, "a"),
        Pair("3", "c3", ("p4",), None, "b"),
        Pair("4", "c1", ("p5",), True, "a"),
        Pair("5", "c5", (), True, "a"),
    ]


@given(st.integers(0, 50))
def test_swaps_within_a_group(seed: int) -> None:
    found = swapped(_pairs(), within=True, seed=seed)
    # c1 may only get p3 (p1, p2 and p5 are its own); c3 is alone in its group
    assert [(p.id, p.passages, p.label) for p in found] == [
        ("1", ("p1", "p2"), True), ("1", ("p3",), False),
        ("4", ("p5",), True), ("4", ("p3",), False),
    ]  # fmt: skip


@given(st.integers(0, 50))
def test_swaps_with_another_group(seed: int) -> None:
    found = swapped(_pairs(), within=False, seed=seed)
    assert [p.label for p in found] == [True, False] * 3
    for own, other in zip(found[::2], found[1::2], strict=True):
        assert own.claim == other.claim and not set(own.passages) & set(other.passages)
    assert found[1].passages == ("p4",) and set(found[3].passages) <= {"p1", "p2", "p3", "p5"}
    assert swapped(_pairs(), within=False, seed=seed) == found


def test_one_side_shows_an_artefact_and_nothing_else() -> None:
    rng = np.random.default_rng(3)
    truths, groups = rng.random(400) < 0.4, np.arange(400) // 4
    noise = rng.normal(size=(400, 20))
    leaks = noise + np.outer(truths, np.eye(20)[0] * 2)
    assert auroc(one_sided_scores(leaks, truths, groups), truths) > 0.85
    assert abs(auroc(one_sided_scores(noise, truths, groups), truths) - 0.5) < 0.12


def test_the_smallest_difference_is_found_four_times_in_five() -> None:
    from scipy.stats import ttest_ind

    rng = np.random.default_rng(4)
    truths = rng.random(4000) < 0.5
    scores = rng.normal(0.35 + 0.2 * truths, 0.15)
    n = 400
    own, people = smallest_difference(scores, truths, n)
    # people: (1.96 + .84) √(2 · ¼ / 400) = .099
    assert people == pytest.approx(0.099, abs=0.001) and own > people
    found = []
    for _ in range(400):
        a, b = (rng.random(n) < 0.5 + own / 2), (rng.random(n) < 0.5 - own / 2)
        x, y = (rng.normal(0.35 + 0.2 * t, 0.15) for t in (a, b))
        found.append(ttest_ind(x, y).pvalue < 0.05)
    assert np.mean(found) == pytest.approx(0.8, abs=0.07)
    assert smallest_difference(scores, truths, 1) == (1, 1)
