"""Support of sentences by passages: by hand on small vectors, and with the real encoder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_reliability import modelstore
from rag_reliability.evaluation.alignment import (
    TextVector,
    TextVectors,
    content_recall,
    token_precision,
    token_recall,
)
from rag_reliability.evaluation.grounding import (
    BlendConstants,
    BlendScorer,
    CoverageConstants,
    band_of,
    default_scorer,
    ground_answer,
    load_constants,
)
from rag_reliability.records import InputError
from rag_reliability.retrieval.encode import load_encoder

from .conftest import ROOT

CONFIG = Path(__file__).parents[1] / "configs" / "grounding.yaml"
PASSAGES = [
    "Vitamin D. Daily vitamin D tablets lower the risk of falls in older adults. They are cheap.",
    "Honey soothes a night cough in children older than one year, two small trials found.",
    "The harbour was rebuilt in 1904 after a fire, with granite from a quarry nearby.",
]


@pytest.fixture(scope="module")
def scorer() -> BlendScorer:
    encoder = load_encoder(modelstore.resolve("all-minilm-l6-v2").path)
    return BlendScorer(TextVectors(encoder), load_constants(CONFIG).blend)


def test_alignment_by_hand() -> None:
    x, y = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    claim = TextVector(x, np.array([x, y]))
    other = TextVector(x, np.array([x, x, 0.6 * x + 0.8 * y]))
    # x finds itself (1), y finds .8: 1.8 / 2; the other's tokens find 1, 1 and .8: 2.8 / 3
    assert token_recall(claim, other) == pytest.approx(1.8 / 2)
    assert token_precision(claim, other) == pytest.approx(2.8 / 3)


def test_content_recall_by_hand() -> None:
    assert content_recall("The honey soothes coughs [1].", "Honey is sweet.") == pytest.approx(
        1 / 3
    )
    assert content_recall("It is not safe.", "It is safe.") == pytest.approx(
        1 / 2
    )  # negation is content
    assert content_recall("of the", "anything") == 0
    assert content_recall("2.5 mg", "2.5 mg daily") == 1


class _Axes:
    """An encoder whose vectors are known: words a and b are the two axes."""

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return self.encode_both(texts)[0]

    def encode_both(self, texts: Sequence[str]) -> tuple[np.ndarray, list[np.ndarray]]:
        self.encoded += texts
        tokens = [
            np.array([[1.0, 0.0] if w == "a" else [0.0, 1.0] for w in t])
            for t in self.tokens(texts)
        ]
        sums = np.array([t.sum(axis=0) for t in tokens])
        return sums / np.linalg.norm(sums, axis=1, keepdims=True), tokens

    def tokens(self, texts: Sequence[str]) -> list[list[str]]:
        return [t.split() for t in texts]


PLAIN = BlendConstants(
    cosine_mean=0.5,
    cosine_std=0.5,
    alignment_mean=0.5,
    alignment_std=0.25,
    slope=1,
    intercept=0,
    unsupported_below=0.4,
    supported_from=0.8,
)


def test_support_by_hand() -> None:
    found = BlendScorer(TextVectors(_Axes()), PLAIN).support(["a"], ["a", "b"])
    # a in a: cosine 1, alignment 1: z = (1 + 2) / 2; a in b: 0 and 0: z = (−1 − 2) / 2
    np.testing.assert_allclose(found, [[1 / (1 + np.exp(-1.5)), 1 / (1 + np.exp(1.5))]], atol=1e-4)


def test_texts_are_encoded_once_and_memory_is_bounded() -> None:
    encoder = _Axes()
    vectors = TextVectors(encoder, capacity=2 * 32)  # two texts of one word: 2 × 2 × 8 bytes each
    vectors.get(["a", "b", "a"])
    vectors.get(["b", "a"])
    assert encoder.encoded == ["a", "b"]
    vectors.get(["b"])
    assert len(vectors.get(["b b", "b"])) == 2  # a was used longest ago, then b b's 48 bytes
    assert list(vectors._known) == ["b"] and vectors._held == 32


def test_no_words_no_support() -> None:
    scorer = BlendScorer(TextVectors(_Axes()), PLAIN)
    assert scorer.support(["[1]", "…"], ["a", ""]).tolist() == [[0, 0], [0, 0]]
    assert scorer.support([], ["a"]).shape == (0, 1)
    assert scorer.support(["a"], []).shape == (1, 0)


def test_ground_answer_by_hand() -> None:
    class Known:
        def support(self, claims: Sequence[str], passages: Sequence[str]) -> np.ndarray:
            return np.array([[0.2, 0.9, 0.9], [0.3, 0.1, 0.0], [0.5, 0.4, 0.1]])

    grounds = ground_answer(["s1", "s2", "s3"], ["p1", "s1", "p3"], Known(), PLAIN)
    assert grounds.best_passage.tolist() == [1, 0, 0]  # of equals, the one shown first
    assert grounds.support.tolist() == [0.9, 0.3, 0.5]
    assert grounds.bands == ("supported", "unsupported", "unclear")
    assert grounds.table.content_recall.tolist() == [1, 0, 0]
    assert list(grounds.table.supports[1]) == [0.3, 0.1, 0.0]


def test_no_passages_and_no_sentences() -> None:
    scorer = BlendScorer(TextVectors(_Axes()), PLAIN)
    alone = ground_answer(["a"], [], scorer, PLAIN)
    assert alone.best_passage.tolist() == [-1] and alone.support.tolist() == [0]
    assert alone.bands == ("unsupported",) and alone.table.content_recall.tolist() == [0]
    assert ground_answer([], ["a"], scorer, PLAIN).table.empty


def test_bands_meet_without_a_gap() -> None:
    assert [band_of(v, PLAIN) for v in (0.39999, 0.4, 0.79999, 0.8)] == [
        "unsupported",
        "unclear",
        "unclear",
        "supported",
    ]


def test_a_sentence_finds_its_passage(scorer: BlendScorer) -> None:
    claims = [
        "Vitamin D tablets taken daily make falls less likely in older people.",
        "Two small trials found that honey eases cough at night in children over one.",
        "Granite was used to rebuild the harbour after the fire of 1904.",
    ]
    supports = scorer.support(claims, PASSAGES)
    assert supports.argmax(axis=1).tolist() == [0, 1, 2]
    bands = [[band_of(v, scorer.constants) for v in row] for row in supports]
    assert all(bands[i][i] == "supported" for i in range(3))
    assert all(bands[i][j] == "unsupported" for i in range(3) for j in range(3) if i != j)


def test_verbatim_is_at_the_top(scorer: BlendScorer) -> None:
    claim = "Daily vitamin D tablets lower the risk of falls in older adults."
    others = ["Vitamin D may matter for falls.", "Falls in older adults are common.", *PASSAGES[1:]]
    supports = scorer.support([claim], [claim, *others, PASSAGES[0]])[0]
    assert supports.argmax() == 0 and supports[0] > 0.95
    assert supports[-1] > max(supports[1:-1])


def test_layout_and_citations_change_nothing(scorer: BlendScorer) -> None:
    plain = scorer.support(["Honey soothes a night cough."], PASSAGES)
    marked = scorer.support(
        ["Honey  soothes a\nnight cough [2]."], ["  " + p.replace(" ", "  ") for p in PASSAGES]
    )
    upper = scorer.support(["HONEY soothes a night cough."], [p.upper() for p in PASSAGES])
    np.testing.assert_allclose(marked, plain, atol=1e-4)
    np.testing.assert_allclose(upper, plain, atol=1e-4)


@settings(max_examples=10, deadline=None)
@given(order=st.permutations(range(3)), extra=st.booleans())
def test_neighbours_and_order_change_nothing(
    scorer: BlendScorer, order: list[int], extra: bool
) -> None:
    claims = ["Honey soothes a night cough.", "The harbour burned."]
    passages = [PASSAGES[i] for i in order] + (
        ["Knitting patterns for beginners."] if extra else []
    )
    fresh = BlendScorer(TextVectors(scorer.vectors.encoder), scorer.constants)
    expected = scorer.support(claims, PASSAGES)
    np.testing.assert_allclose(
        fresh.support(claims, passages)[:, :3], expected[:, order], atol=1.5e-4
    )


def test_shipped_constants_state_their_errors() -> None:
    import yaml

    loaded = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    shares = loaded["blend"]["measured"]["share_of_each_kind_in_each_band"]
    assert all(sum(bands.values()) == pytest.approx(1, abs=0.002) for bands in shares.values())
    auroc = loaded["blend"]["measured"]["auroc_complete_against_swap"]
    assert auroc["low"] <= auroc["value"] <= auroc["high"] and auroc["low"] > 0.6


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("blend: [", "cannot be read as YAML"),
        ("contrast: {temperature: 1, cue_weight: 0, band: 0, floor: 0}", "blend: Field required"),
        ("7", "file: "),
    ],
)
def test_bad_constants(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "grounding.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=said) as caught:
        load_constants(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_the_default_scorer_is_the_one_with_constants() -> None:
    vectors, loaded = TextVectors(_Axes()), load_constants(CONFIG)
    blend = loaded.model_copy(update={"coverage": None})
    assert default_scorer(vectors, blend).constants == loaded.blend
    own = CoverageConstants(
        alignment_mean=0.6, alignment_std=0.1, gap_weight=0.5, slope=1, intercept=0,
        unsupported_below=0.2, supported_from=0.8,
    )  # fmt: skip
    found = default_scorer(vectors, loaded.model_copy(update={"coverage": own}))
    assert found.constants == own and found.support(["a b"], ["b a", "!"]).shape == (1, 2)


def test_bands_out_of_order_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "grounding.yaml"
    text = CONFIG.read_text(encoding="utf-8")
    path.write_text(text.replace("unsupported_below: 0", "unsupported_below: 0.99 #"))
    with pytest.raises(InputError, match="must not be above"):
        load_constants(path)


def test_the_report_states_the_judges_measured_accuracy():
    from rag_reliability.reporting.captions import LIMITS

    measured = yaml.safe_load((ROOT / "configs" / "grounding.yaml").read_text())["contrast"]
    value = measured["measured"]["held_out_two_sentences_accuracy_where_decided"]["value"]
    assert any(f"right in {100 * value:.0f} %" in limit for limit in LIMITS)
