"""Coverage and polarity: signals by hand, and the scorer with the real encoder."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rag_reliability import modelstore
from rag_reliability.evaluation.alignment import TextVectors
from rag_reliability.evaluation.coverage import CoverageConstants, CoverageScorer, calibrated
from rag_reliability.evaluation.signals import (
    SHARPNESS,
    content_alignment,
    mark_tokens,
    polarity_gap,
)
from rag_reliability.retrieval.encode import load_encoder

PLAIN = CoverageConstants(
    alignment_mean=0.5,
    alignment_std=0.25,
    gap_weight=0.5,
    slope=1,
    intercept=0,
    unsupported_below=0.4,
    supported_from=0.8,
)
PASSAGE = "Honey soothes a night cough in children. It does not shorten a cold. Tea is cheap."


@pytest.fixture(scope="module")
def scorer() -> CoverageScorer:
    encoder = load_encoder(modelstore.resolve("all-minilm-l6-v2").path)
    return CoverageScorer(TextVectors(encoder), PLAIN)


def test_marks_by_hand() -> None:
    marks = mark_tokens(
        [
            "honey",
            "sooth",
            "##es",
            ".",
            "it",
            "doesn",
            "'",
            "t",
            "cure",
            "2",
            ".",
            "5",
            "colds",
            ".",
            "the",
            "end",
        ]
    )
    assert marks.content.tolist() == [
        *(True, True, True, False, False, True, False, True),
        *(True, True, False, True, True, False, False, True),
    ]
    assert np.flatnonzero(marks.negation).tolist() == [7]
    assert marks.sentence.tolist() == [0] * 4 + [1] * 10 + [2] * 2  # 2.5 ends nothing


def test_marks_of_other_tokenisers() -> None:
    for tokens in (["▁Not", "▁the", "▁end"], ["ĠNot", "Ġthe", "Ġend"]):
        marks = mark_tokens(tokens)
        assert marks.negation.tolist() == [True, False, False]
        assert marks.content.tolist() == [True, False, True]
    assert mark_tokens(["of", "the"]).content.all()  # nothing but function words: all count


def test_signals_by_hand() -> None:
    claim = mark_tokens(["the", "honey", "helps"])
    passage = mark_tokens(["honey", "is", "sweet", ".", "it", "never", "helps"])
    similarity = np.zeros((3, 7))
    similarity[0, 1] = 1.0  # a function word: not counted
    similarity[1, 0], similarity[2, 6], similarity[1, 4] = 1.0, 0.8, 0.2
    assert content_alignment(similarity, claim) == pytest.approx((1.0 + 0.8) / 2)
    # sentence 1 covers (1 + 0) / 2 and agrees; 2 covers (.2 + .8) / 2 and negates: equal weights
    assert polarity_gap(similarity, claim, passage) == pytest.approx(0.5)
    similarity[2, 6] += 2 * SHARPNESS  # sentence 2 now covers τ more
    assert polarity_gap(similarity, claim, passage) == pytest.approx(np.e / (1 + np.e))


def test_calibration_by_hand() -> None:
    found = calibrated(np.array([0.75, 0.75]), np.array([0.0, 1.0]), PLAIN)
    np.testing.assert_allclose(found, [1 / (1 + np.exp(-1)), 1 / (1 + np.exp(-0.5))])


@given(st.lists(st.sampled_from(["a", "not", "drug", ".", "'", "t", "##s", "9"]), min_size=1))
def test_marks_fit_any_tokens(tokens: list[str]) -> None:
    marks = mark_tokens(tokens)
    assert marks.content.any() and len(marks.content) == len(marks.negation) == len(tokens)
    assert marks.sentence[0] == 0 and set(np.diff(marks.sentence)) <= {0, 1}
    similarity = np.ones((len(tokens), len(tokens)))
    assert 0 <= polarity_gap(similarity, marks, marks) <= 1


def test_denial_lowers_and_word_for_word_scores_at_the_top(scorer: CoverageScorer) -> None:
    first, denied, other = scorer.support(
        [
            "Honey soothes a night cough in children.",
            "Honey does not soothe a night cough in children.",
            "The harbour was rebuilt with granite.",
        ],
        [PASSAGE],
    )[:, 0]
    assert first > denied > other and first > 0.75


def test_what_must_change_nothing(scorer: CoverageScorer) -> None:
    plain = scorer.support(["Honey soothes a cough."], [PASSAGE])
    again = scorer.support(["Honey  soothes a cough [1]."], [PASSAGE.upper(), PASSAGE])
    np.testing.assert_allclose(again, np.hstack([plain, plain]), atol=1e-4)
    assert scorer.support(["[1]", "…"], ["a", ""]).tolist() == [[0, 0], [0, 0]]
    assert scorer.support([], ["a"]).shape == (0, 1)


def test_bands_must_be_ordered() -> None:
    with pytest.raises(ValidationError, match="must not be above"):
        CoverageConstants(**PLAIN.model_dump() | {"unsupported_below": 0.9})
