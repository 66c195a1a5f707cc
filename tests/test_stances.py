"""Stance readings: packed passes equal single ones, and a passage is read once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_reliability.evaluation.nli import load_nli
from rag_reliability.experiment.stances import (
    EntailmentStance,
    cached_readings,
    claim_questions,
    read_stances,
    stance_reader,
)
from rag_reliability.experiment.study import open_study
from rag_reliability.generation.models import load_generator
from rag_reliability.generation.packing import pack
from rag_reliability.generation.prompt import prompt_ids
from rag_reliability.generation.reading import N_ASKS, read_pairs, reading_messages
from rag_reliability.generation.stance import yes_no_log_odds
from rag_reliability.text import is_yes_no
from tests.conftest import SMALL
from tests.test_grounding_judges import _nli as tiny_nli

prompts = st.lists(st.integers(0, 3), min_size=1, max_size=6)


@given(st.lists(st.lists(prompts, min_size=1, max_size=3), min_size=1, max_size=3))
def test_each_prompt_sees_itself_and_nothing_else(groups):
    packed = pack(groups)
    ends = iter(packed.ends.tolist())
    for group in groups:
        for prompt in group:
            end = next(ends)
            seen = np.flatnonzero(packed.allowed[end])
            order = np.argsort(packed.positions[seen])
            assert packed.ids[seen][order].tolist() == prompt
            assert packed.positions[seen][order].tolist() == list(range(len(prompt)))
    assert next(ends, None) is None


def test_a_common_beginning_is_laid_down_once():
    packed = pack([[[1, 2, 3, 4], [1, 2, 3, 5]]])
    assert packed.ids.tolist() == [1, 2, 3, 4, 5]
    assert packed.positions.tolist() == [0, 1, 2, 3, 3]
    assert packed.ends.tolist() == [3, 4]
    assert not packed.allowed[4, 3]


def test_what_all_groups_begin_with_is_laid_down_once():
    packed = pack([[[7, 1, 3], [7, 1, 4]], [[7, 2, 5]]])
    assert packed.ids.tolist() == [7, 1, 3, 4, 2, 5]
    assert packed.positions.tolist() == [0, 1, 2, 2, 1, 2]
    assert packed.ends.tolist() == [2, 3, 5]
    assert np.flatnonzero(packed.allowed[5]).tolist() == [0, 4, 5]


@pytest.fixture(scope="module")
def generator():
    return load_generator(SMALL)


@pytest.fixture(scope="module")
def pairs():
    question = "Can ginger cure a cold?"
    return [
        (question, "Ginger does not cure colds; no trial has shown that it does."),
        (question, "Yes: trials show that ginger cures the common cold within a day."),
        (question, ""),
    ]


def test_packed_readings_equal_single_ones(generator, pairs):
    packed = np.zeros((len(pairs), N_ASKS))
    for numbers, values in read_pairs(generator, pairs, progress=False):
        packed[numbers] = values
    single = np.array(
        [
            yes_no_log_odds(
                generator, [prompt_ids(generator, m) for m in reading_messages(*pair)], batch_size=1
            )
            for pair in pairs
        ]
    )
    assert packed == pytest.approx(
        single, abs=0.3 if "bfloat16" in str(generator.model.dtype) else 2e-3
    )
    assert (
        packed[1].mean() > packed[0].mean()
    )  # a claim of a cure reads more like yes than its denial


class Counting:
    """Reads a stance from a word of the passage, and counts how often it is asked."""

    key = "counting"

    def __init__(self):
        self.asked: list[tuple[str, str]] = []

    def read(self, pairs):
        self.asked += pairs
        for number, (_, passage) in enumerate(pairs):
            yield [number], np.array([[4.0 if "yes" in passage else 1.0, 2.0]])


def test_what_the_model_says_unaided_is_subtracted_and_padding_is_not_read(tmp_path):
    reader = Counting()
    cache = tmp_path / "readings.sqlite"
    found = read_stances(
        [["Is it so?"], []], [["yes", "no", None], ["yes", None, None]], reader, cache=cache
    )
    # variants (4, 2) - (1, 2) for "yes": mean 1.5; nothing is asked about the second topic
    np.testing.assert_array_equal(found.stance, [[1.5, 0.0, np.nan], [np.nan] * 3])
    assert found.calls == 3 and len(reader.asked) == 3
    again = read_stances([["Is it so?"]], [["no", "yes"]], reader, cache=cache)
    np.testing.assert_array_equal(again.stance, [[0.0, 1.5]])
    assert len(reader.asked) == 3


def test_what_was_read_before_a_failure_is_kept(tmp_path):
    class Failing(Counting):
        def read(self, pairs):
            yield [1], np.array([[1.0]])
            raise RuntimeError("out of memory")

    cache = tmp_path / "readings.sqlite"
    with pytest.raises(RuntimeError):
        cached_readings([("q", "a"), ("q", "b")], Failing(), cache)
    reader = Counting()
    cached_readings([("q", "a"), ("q", "b")], reader, cache)
    assert reader.asked == [("q", "a")]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Can vitamin C cure COVID-19?", True),
        ("I am pregnant. Should I take zinc?", True),
        ("Isn't it harmful?", True),
        ("How is hepatitis transmitted?", False),
        ("What are Schmorl's nodes?", False),
        ("", False),
        ("Is it caused by A or is it caused by B?", False),
    ],
)
def test_questions_that_yes_or_no_answers(question, expected):
    assert is_yes_no(question) is expected


def test_any_nli_model_reads_stances_in_the_same_place(tmp_path):
    folder = tiny_nli(tmp_path / "nli", ["contradiction", "neutral", "entailment"])
    reader = stance_reader(str(folder))
    assert isinstance(reader, EntailmentStance)
    found = read_stances(
        [["Is honey a cough ?"]], [["honey helps a cough .", ""]], reader, cache=tmp_path / "r"
    )
    scorer = load_nli(folder)
    odds = [
        np.log(
            scorer.probabilities(
                [f'The answer to the question "Is honey a cough ?" is {word}.'],
                ["honey helps a cough ."],
            )["entailment"][0]
        )
        for word in ("yes", "no")
    ]
    assert found.stance[0] == pytest.approx([odds[0] - odds[1], 0.0])


def test_claims_of_verified_passages_become_questions(three_topics, tmp_path):
    study = open_study({"corpus": str(three_topics), "out": str(tmp_path / "run")})
    passage = (
        "Many people ask about ginger. Where is it grown? Ginger does not cure the common cold. "
        "The harbour was full of boats that day."
    )
    asked = claim_questions(study, ["What does ginger do for a cold?", "q"], [[passage], []])
    assert asked == [['Is this true: "Ginger does not cure the common cold."'], []]
