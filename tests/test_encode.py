from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest
import torch

from rag_reliability.modelstore import resolve
from rag_reliability.records import InputError
from rag_reliability.retrieval import mean_pooling
from rag_reliability.retrieval.arithmetic import chosen, fastest, native_bfloat16
from rag_reliability.retrieval.encode import (
    MAX_CHARACTERS,
    SentenceTransformerEncoder,
    _by_library,
    choose_arithmetic,
    load_encoder,
)
from rag_reliability.retrieval.windows import batches

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


@cache
def plain_model():
    """The library's own model, as it is loaded by default."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(resolve("all-minilm-l6-v2").path), device="cpu").eval()


def window_vector(encoder, ids):
    """What the model makes of one window of token ids, alone."""
    features = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids))}
    with torch.inference_mode():
        return plain_model()(features)["sentence_embedding"][0].numpy()


def test_vectors_are_float32_of_unit_norm(encoder):
    vectors = encoder.encode(TEXTS)
    assert vectors.dtype == np.float32 and vectors.shape == (3, encoder.dim) == (3, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert encoder.name == "all-minilm-l6-v2"


def test_agrees_with_the_library_on_short_texts(encoder):
    theirs = plain_model().encode(TEXTS, normalize_embeddings=True, show_progress_bar=False)
    np.testing.assert_allclose(encoder.encode(TEXTS), theirs, atol=1e-6)


@pytest.mark.parametrize("arithmetic", ["float32", "bfloat16"])
def test_transformers_alone_gives_the_librarys_bits(arithmetic):
    path, texts = resolve("all-minilm-l6-v2").path, [*TEXTS, long_text(300), "ümlaut [SEP] 鋅 zinc"]
    read = (mean_pooling.read(path), _by_library(path))
    own, theirs = (SentenceTransformerEncoder(parts, "", arithmetic) for parts in read)
    vectors, tokens = own.encode_both(texts)
    expected, expected_tokens = theirs.encode_both(texts)
    np.testing.assert_array_equal(vectors, expected)
    for mine, other in zip(tokens, expected_tokens, strict=True):
        np.testing.assert_array_equal(mine, other)
    assert own.tokens(texts) == theirs.tokens(texts)
    assert (own.dim, own._window) == (theirs.dim, theirs._window) == (384, 256)


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("sentence_bert_config.json", {"do_lower_case": True}),
        ("sentence_bert_config.json", {"query_length": 32}),
        ("1_Pooling/config.json", {"pooling_mode_cls_token": True}),
        ("1_Pooling/config.json", {"pooling_mode": "max"}),
        ("config.json", {"model_type": "t5"}),
        ("config.json", {"auto_map": {"AutoModel": "own.Model"}}),
        ("adapter_config.json", {}),
        ("modules.json", None),
    ],
)
def test_another_build_is_left_to_the_library(tmp_path, file, change):
    for path in Path(resolve("all-minilm-l6-v2").path).rglob("*.json"):
        name = path.relative_to(resolve("all-minilm-l6-v2").path)
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(path.read_bytes())
    assert mean_pooling._build(tmp_path) == (256, True)
    given = tmp_path / file
    known = json.loads(given.read_text()) if given.exists() else {}
    if change is None:  # a layer more than transformer, mean and norm
        known.append({"path": "3_Dense", "type": "sentence_transformers.models.Dense"})
    given.write_text(json.dumps(known if change is None else known | change))
    assert mean_pooling.read(tmp_path) is None


def test_similar_texts_are_nearer_than_unrelated_ones(encoder):
    a, b, c = encoder.encode(["Does zinc help against a cold?", TEXTS[0], TEXTS[1]])
    assert a @ b > a @ c + 0.3


def test_order_and_batch_size_do_not_matter_beyond_rounding(encoder):
    texts = [*TEXTS, long_text(300)]
    forward = encoder.encode(texts, batch_tokens=1)
    backward = encoder.encode(texts[::-1], batch_tokens=1200)[::-1]
    np.testing.assert_allclose(forward, backward, atol=2e-6)
    np.testing.assert_array_equal(encoder.encode(texts), encoder.encode(texts))


def test_equal_texts_get_equal_vectors_whatever_stands_beside_them(encoder):
    vectors = encoder.encode([TEXTS[0], TEXTS[2], TEXTS[0], long_text(80)], batch_tokens=64)
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
    vectors, tokens = encoder.encode_tokens(texts, batch_tokens=300), encoder.tokens(texts)
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
    alone = encoder.encode_tokens(["the river bank"], batch_tokens=1)[0]
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


# ---- batches and arithmetic ----------------------------------------------------------------


def test_a_batch_fits_its_budget_and_holds_windows_of_similar_length():
    lengths = [10, 256, 30, 40, 31, 5]
    found = [numbers.tolist() for numbers in batches(lengths, 100)]
    assert found == [[1], [3, 4], [2, 0, 5]]  # 256 alone; 2 × 40; 3 × 30
    assert [n.tolist() for n in batches(lengths, 1)] == [[1], [3], [4], [2], [0], [5]]
    assert list(batches([], 100)) == []


@pytest.fixture(scope="module")
def judged(health120, encoder):
    """One topic in two of health120: its query's and all documents' vectors in float32."""
    topics = health120.topics[::2]
    texts = [d.content for d in health120.documents]
    return topics, texts, encoder.encode([t.query for t in topics]), encoder.encode(texts)


@pytest.mark.parametrize("arithmetic", ["bfloat16", "int8"])
def test_coarser_arithmetic_is_kept_only_near_float32(judged, health120, arithmetic):
    """bfloat16 must stay near and leave P@5 as it was; int8 is refused if it does not."""
    topics, texts, query_vecs, doc_vecs = judged
    path = resolve("all-minilm-l6-v2").path
    coarse = load_encoder(path, arithmetic=arithmetic)
    near = coarse.encode(texts)
    least = float(np.sum(near * doc_vecs, axis=1).min())
    if arithmetic == "int8" and least < 0.99:
        measured = {
            "float32": {"texts_per_second": 1.0, "min_cosine": 1.0},
            "int8": {"texts_per_second": 9.0, "min_cosine": least},
        }
        assert fastest(measured) == "float32"
        return
    assert least >= 0.99

    def precision(queries, docs):
        best = np.argsort(-(queries @ docs.T), axis=1, kind="stable")[:, :5]
        return [
            sum(health120.qrels[t.qid].get(health120.docnos[d], 0) >= 1 for d in row) / 5
            for t, row in zip(topics, best, strict=True)
        ]

    queries = coarse.encode([t.query for t in topics])
    assert precision(queries, near) == precision(query_vecs, doc_vecs)


def test_the_fastest_arithmetic_that_stays_near_is_chosen():
    def speeds(**given):
        return {
            name: {"texts_per_second": speed, "min_cosine": cosine}
            for name, (speed, cosine) in given.items()
        }

    exact = (10.0, 1.0)
    assert fastest(speeds(float32=exact, bfloat16=(20.0, 0.999), int8=(30.0, 0.98))) == "bfloat16"
    assert fastest(speeds(float32=exact, bfloat16=(20.0, 0.999), int8=(30.0, 0.99))) == "int8"
    assert fastest(speeds(float32=exact, bfloat16=(10.5, 1.0))) == "float32"  # not worth it
    assert fastest(speeds(float32=exact)) == "float32"


def test_the_choice_is_measured_once_and_kept_though_two_ask_at_once(tmp_path):
    path, loaded, both = resolve("all-minilm-l6-v2").path, [], Barrier(2)

    def load(path, arithmetic):
        loaded.append(arithmetic)
        return load_encoder(path, arithmetic=arithmetic)

    def ask(_):
        both.wait()
        return chosen(path, load, cache=tmp_path)

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(ask, range(2))
    assert one == other and len(loaded) == len(set(loaded))
    (kept,) = (tmp_path / "arithmetic").glob("*.json")
    record = json.loads(kept.read_text())
    assert record == one and record["measured"]["float32"]["min_cosine"] >= 0.9999
    assert choose_arithmetic(path, cache=tmp_path) == record["arithmetic"]
    assert ("bfloat16" in record["measured"]) == native_bfloat16()

    def no_measuring(*_):
        raise AssertionError("measured again")

    assert chosen(path, no_measuring, cache=tmp_path) == record


def test_an_unknown_arithmetic_is_refused():
    with pytest.raises(InputError, match="unknown arithmetic 'half'; known: auto, float32"):
        load_encoder(resolve("all-minilm-l6-v2").path, arithmetic="half")
