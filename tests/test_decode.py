"""The decoding loop against transformers' own, on a small model of a real kind in float32."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest
import torch
from transformers import GenerationConfig, Qwen2Config, Qwen2ForCausalLM

from rag_reliability.generation.decode import decode, keeps_states, read
from rag_reliability.generation.generate import generate
from rag_reliability.generation.models import load_generator
from rag_reliability.generation.prompt import build_messages, prompt_ids

END, NEW = 3, 20


@pytest.fixture(scope="module")
def model():
    """Grouped heads, two layers, random weights; ends often enough to leave a batch early."""
    torch.manual_seed(5)
    config = Qwen2Config(
        vocab_size=60,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        initializer_range=0.4,
    )
    made = Qwen2ForCausalLM(config).eval()
    made.generation_config = GenerationConfig(
        do_sample=False, eos_token_id=[END, 7, 11, 19, 23], pad_token_id=0
    )
    return made


@pytest.fixture(scope="module")
def prompts():
    """Some of 100 to 130 tokens that share 90 or so, some short, one the beginning of another."""
    rng = np.random.default_rng(3)
    begin = rng.integers(24, 60, 90).tolist()
    tails = [rng.integers(24, 60, n).tolist() for n in (10, 40, 25, 11, 33, 17)]
    long = [tuple(begin + tail) for tail in tails]
    short = [tuple(rng.integers(24, 60, n).tolist()) for n in (1, 5, 9, 30)]
    return [*long, *short, (*long[0], 30, 31), tuple(begin)]


@pytest.fixture(scope="module")
def theirs(model, prompts):
    """What transformers makes of each prompt alone."""
    made = {}
    for prompt in prompts:
        row = model.generate(torch.tensor([prompt]), max_new_tokens=NEW)[0, len(prompt) :].tolist()
        made[prompt] = row[:-1] if row[-1] in model.generation_config.eos_token_id else row
    assert len({len(row) for row in made.values()}) > 3  # rows leave at different times
    assert NEW in map(len, made.values())
    return made


@pytest.mark.parametrize("batch_size", [1, 3, 4, 50])
def test_each_prompt_gets_what_it_gets_alone(model, prompts, theirs, batch_size):
    assert dict(decode(model, prompts, batch_size=batch_size, new_tokens=NEW)) == theirs


def test_each_prompt_comes_once(model, prompts, theirs):
    told = list(decode(model, [*prompts, *prompts], batch_size=5, new_tokens=NEW))
    assert len(told) == len(theirs)
    one = dict(decode(model, prompts, batch_size=5, new_tokens=1))
    assert one == {prompt: row[:1] for prompt, row in theirs.items()}
    assert list(decode(model, [], batch_size=5, new_tokens=NEW)) == []


def test_a_shared_beginning_is_read_once_and_changes_no_logit(model, prompts):
    asked = sorted(prompts)
    counted = 0

    def count(_, args, kwargs):
        nonlocal counted
        counted += args[0].shape[1]

    hook = model.register_forward_pre_hook(count, with_kwargs=True)
    found = [(prompt, logits) for prompt, logits, _ in read(model, asked)]
    hook.remove()
    assert [prompt for prompt, _ in found] == asked
    assert counted < sum(map(len, asked)) - 5 * 90  # of seven that share 90, one is read whole
    with torch.inference_mode():
        for prompt, logits in found:
            alone = model(torch.tensor([prompt])).logits[0, -1]
            torch.testing.assert_close(logits, alone, atol=1e-4, rtol=0)


def test_a_model_with_other_memory_is_told_apart(model):
    assert keeps_states(model)
    recurrent = copy.copy(model)
    recurrent.config = copy.deepcopy(model.config)
    recurrent.config.layer_types = ["linear_attention", "full_attention"]
    assert not keeps_states(recurrent)


def test_in_float32_an_answer_does_not_depend_on_the_batch():
    loaded = load_generator("qwen2.5-coder-0.5b-instruct")
    exact = dataclasses.replace(loaded, model=loaded.model.float())
    queries = ("Is tea a drink?", "Does zinc help against a cold?", "Is salt bad for the heart?")
    asked = [prompt_ids(exact, build_messages(query, ())) for query in queries]

    def answers(given, batch_size):
        return generate(exact, given, max_new_tokens=6, batch_size=batch_size, progress=False)

    together = answers(asked, 3)
    assert all(together) and len(set(together)) == 3
    assert [answers([one], 1)[0] for one in asked] == together
