"""Answers and stance readings against plain transformers, in one run; JSON out.

    python benchmarks/generation_cost.py --out generation.json [--generator NAME] [--topics 10]

Prompts are those of the study on health120. Sides: ours; ``model.generate`` in the same arithmetic
on left-padded batches of the same size in the order given; ``model.generate`` in float32, one
prompt at a time, on a few of them. Then yes/no readings of passages: ours against one pass for each
passage and wording.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from rag_reliability.experiment.answering import answer_prompt, passage, shown
from rag_reliability.experiment.study import Study, open_study
from rag_reliability.generation.decode import read
from rag_reliability.generation.generate import generate
from rag_reliability.generation.models import Generator, load_generator
from rag_reliability.generation.prompt import prompt_ids
from rag_reliability.generation.reading import read_pairs, reading_messages
from rag_reliability.records import Answer


def study_prompts(study: Study, generator: Generator, topics: int) -> list[list[int]]:
    """The prompts of the study's answers to its first topics."""
    qids = [t.qid for t in study.corpus.topics][:topics]
    return [
        answer_prompt(study, generator, Answer(qid, system, arm, "", docnos))
        for system, qid, docnos in shown(study, study.config.answer_systems)
        if qid in qids
        for arm in (study.config.arms if docnos else ("plain",))
    ]


def plain_generate(model: Any, prompts: Sequence[Sequence[int]], new: int, size: int) -> list:
    """``model.generate`` on left-padded batches, in the order given."""
    pad, made = model.generation_config.pad_token_id, []
    ends = set(model.generation_config.eos_token_id)
    for start in range(0, len(prompts), size):
        batch = prompts[start : start + size]
        width = max(map(len, batch))
        ids = torch.tensor([[pad] * (width - len(p)) + list(p) for p in batch])
        mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in batch])
        with torch.inference_mode():
            rows = model.generate(input_ids=ids, attention_mask=mask, max_new_tokens=new)
        for row in rows[:, width:].tolist():
            made.append(row[: next((i for i, t in enumerate(row) if t in ends), len(row))])
    return made


def plain_readings(generator: Generator, pairs: Sequence[tuple[str, str]]) -> None:
    """One pass for each passage and wording."""
    for pair in pairs:
        for messages in reading_messages(*pair):
            with torch.inference_mode():
                generator.model(torch.tensor([prompt_ids(generator, messages)]), logits_to_keep=1)


def seconds(work: Any) -> tuple[float, Any]:
    """Wall seconds of a call, and what it gave."""
    began = time.perf_counter()
    made = work()
    return round(time.perf_counter() - began, 2), made


def reading(generator: Generator, prompts: Sequence[Sequence[int]]) -> tuple[float, int]:
    """Seconds of reading all prompts, and tokens that then pass through the model.

    What is read in common is read once. Answers cannot take less than this, however many tokens
    a step continues.
    """
    count = 0

    def note(_: Any, args: Any, kwargs: Any) -> None:
        nonlocal count
        count += args[0].shape[1]

    hook = generator.model.register_forward_pre_hook(note, with_kwargs=True)
    took, _ = seconds(
        lambda: [None for _ in read(generator.model, sorted(set(map(tuple, prompts))))]
    )
    hook.remove()
    return took, count


def answers(generator: Generator, prompts: list, args: argparse.Namespace) -> dict[str, Any]:
    """Seconds of each side, answers that differ, and what sharing saves."""
    new, size = args.new_tokens, args.batch_size
    options = {"max_new_tokens": new, "batch_size": size, "progress": False}
    ours, texts = seconds(lambda: generate(generator, prompts, **options))
    plain, rows = seconds(lambda: plain_generate(generator.model, prompts, new, size))
    decoded = [generator.tokenizer.decode(r, skip_special_tokens=True).strip() for r in rows]
    differ = sum(not d.startswith(t) for d, t in zip(decoded, texts, strict=True))
    few = prompts[:: max(1, len(prompts) // max(1, args.one_by_one))][: args.one_by_one]
    exact = copy.deepcopy(generator.model).float()
    alone, _ = seconds(lambda: [plain_generate(exact, [p], new, 1) for p in few])
    whole = sum(map(len, set(map(tuple, prompts))))
    alone_reading, tokens = reading(generator, prompts)
    return {
        "prompts": len(prompts),
        "seconds": {"ours": ours, "of_that_reading": alone_reading, "plain_batched": plain},
        "seconds_a_prompt_one_by_one_float32": round(alone / max(1, len(few)), 2),
        "times_as_fast": {
            "than_plain_batched": round(plain / ours, 2),
            "than_one_by_one_float32": round(alone / max(1, len(few)) * len(prompts) / ours, 2),
        },
        "answers_that_differ_from_plain_batched": differ,
        "prompt_tokens": {"all": whole, "read": tokens},
    }


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generator", default="qwen2.5-coder-0.5b-instruct")
    parser.add_argument("--topics", type=int, default=10)
    parser.add_argument("--new-tokens", type=int, default=96)
    parser.add_argument("--batch-size", type=int, default=20)
    parser.add_argument("--one-by-one", type=int, default=4, help="prompts read in float32")
    parser.add_argument("--passages", type=int, default=60, help="read for their stance")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        study = open_study({"out": scratch, "generator": args.generator}, say=lambda _: None)
        load, generator = seconds(lambda: load_generator(args.generator))
        report: dict[str, Any] = {
            "machine": {"threads": torch.get_num_threads(), "load": os.getloadavg()[0]},
            "generator": {"name": generator.name, "dtype": str(generator.model.dtype)},
            "seconds_to_load_converted": load,
            "answers": answers(generator, study_prompts(study, generator, args.topics), args),
        }
        query = study.corpus.topics[0].query
        pairs = [(query, passage(d).text) for d in study.corpus.documents[: args.passages]]
    ours, _ = seconds(lambda: list(read_pairs(generator, pairs, progress=False)))
    plain, _ = seconds(lambda: plain_readings(generator, pairs))
    report["readings"] = {
        "passages": len(pairs),
        "seconds": {"ours": ours, "plain_loop": plain},
        "times_as_fast": round(plain / ours, 2),
    }
    args.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
