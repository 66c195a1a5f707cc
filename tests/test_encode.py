from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from rag_reliability.modelstore import resolve
from rag_reliability.records import InputError
from rag_reliability.retrieval.encode import MAX_CHARACTERS, load_encoder

TEXTS = [
    "Zinc lozenges shorten a cold by about a day.",
    "Vaccines do not cause autism.",
    "A much longer passage about sleep, caffeine and blood pressure in adults over sixty-five.",
]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder(resolve("all-minilm-l6-v2").path, "all-minilm-l6-v2")


def long_text(n_words):
    """Sentences of 17 words, each word one or two tokens."""
    words = re.findall(
        r"\w+", "salt raises blood pressure while sleep and walking lower it in adults"
    )
    return " ".join(words[i % len(words)] + ("." if i % 17 == 16 else "") for i in range(n_words))


def window_vector(encoder, ids):
    """What the model makes of one window of token ids, alone."""
    features = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids))}
    with torch.inference_mode():
        return encoder._model(features)["sentence_embedding"][0].numpy()


def test_vectors_are_float32_of_unit_norm(encoder):
    vectors = encoder.encode(TEXTS)
    assert vectors.dtype == np.float32 and vectors.shape == (3, encoder.dim) == (3, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert encoder.name == "all-minilm-l6-v2"


def test_agrees_with_the_library_on_short_texts(encoder):
    theirs = encoder._model.encode(TEXTS, normalize_embeddings=True, show_progress_bar=False)
    np.testing.assert_allclose(encoder.encode(TEXTS), theirs, atol=1e-6)


def test_similar_texts_are_nearer_than_unrelated_ones(encoder):
    a, b, c = encoder.encode(["Does zinc help against a cold?", TEXTS[0], TEXTS[1]])
    assert a @ b > a @ c + 0.3


def test_order_and_batch_size_do_not_matter_beyond_rounding(encoder):
    texts = [*TEXTS, long_text(300)]
    forward = encoder.encode(texts, batch_size=1)
    backward = encoder.encode(texts[::-1], batch_size=4)[::-1]
    np.testing.assert_allclose(forward, backward, atol=2e-6)
    np.testing.assert_array_equal(encoder.encode(texts), encoder.encode(texts))


def test_equal_texts_get_equal_vectors_whatever_stands_beside_them(encoder):
    vectors = encoder.encode([TEXTS[0], TEXTS[2], TEXTS[0], long_text(80)], batch_size=2)
    np.testing.assert_array_equal(vectors[0], vectors[2])


def test_long_text_is_the_token_weighted_mean_of_its_windows(encoder):
    text = long_text(400)
    tokenizer = encoder._tokenizer
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    pieces = [ids[i : i + 254] for i in range(0, len(ids), 254)]
    assert len(pieces) >= 2 and len(pieces[-1]) < 254
    windows = (
        [{"input_ids": [tokenizer.build_inputs_with_special_tokens(p)]} for p in pieces]
        if hasattr(tokenizer, "build_inputs_with_special_tokens")
        else None
    )
    if windows is None:
        vectors = [window_vector(encoder, [101, *piece, 102]) for piece in pieces]
    mean = sum(len(p) * v for p, v in zip(pieces, vectors, strict=True))
    np.testing.assert_allclose(encoder.encode([text])[0], mean / np.linalg.norm(mean), atol=2e-6)


def test_the_end_of_a_long_text_counts(encoder):
    body = long_text(600)
    with_end = encoder.encode([body, body + " " + "Quantum chromodynamics of gluons. " * 40])
    assert with_end[0] @ with_end[1] < 0.98


def test_tokens_and_their_vectors_are_aligned_and_unit(encoder):
    texts = [*TEXTS, long_text(700)]
    vectors, tokens = encoder.encode_tokens(texts, batch_size=2), encoder.tokens(texts)
    assert [len(v) for v in vectors] == [len(t) for t in tokens]
    assert tokens[1] == ["vaccines", "do", "not", "cause", "autism", "."]
    assert len(tokens[3]) > 700
    for matrix in vectors:
        assert matrix.dtype == np.float32 and matrix.shape[1] == 384
        np.testing.assert_allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-6)


def test_token_vectors_are_contextual_and_in_order(encoder):
    river, money, again = encoder.encode_tokens(
        ["the river bank", "the savings bank", "the river bank"]
    )
    np.testing.assert_array_equal(river, again)
    assert river[2] @ money[2] < 0.95
    alone = encoder.encode_tokens(["the river bank"], batch_size=1)[0]
    np.testing.assert_allclose(river, alone, atol=2e-6)


def test_special_tokens_in_a_text_are_read_as_plain_text(encoder):
    tokens = encoder.tokens(["ignore [SEP] this [PAD]"])[0]
    assert tokens == ["ignore", "[", "sep", "]", "this", "[", "pad", "]"]


def test_control_characters_are_dropped(encoder):
    clean, dirty = encoder.encode(["vaccines are safe", "vac\x00cines\u202e are\x07 safe"])
    np.testing.assert_array_equal(clean, dirty)


@pytest.mark.parametrize("text", ["", "  \n", "\x00\x07", "\ufffd"])
def test_text_without_words_is_refused(encoder, text):
    for read in (encoder.encode, encoder.encode_tokens, encoder.tokens):
        with pytest.raises(InputError) as error:
            read(["fine", text])
        assert "\n" not in str(error.value)


def test_absurd_length_is_refused_before_any_work(encoder):
    with pytest.raises(InputError, match="text 1 has 1,000,001 characters"):
        encoder.encode(["fine", "a" * (MAX_CHARACTERS + 1)])


def test_no_texts_give_no_rows(encoder):
    assert encoder.encode([]).shape == (0, 384)
    assert encoder.encode_tokens([]) == [] and encoder.tokens([]) == []
    with pytest.raises(TypeError):
        encoder.encode("one text")


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"config\.json"):
        load_encoder(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(InputError) as error:
        load_encoder(tmp_path)
    assert str(tmp_path) in str(error.value) and "\n" not in str(error.value)
