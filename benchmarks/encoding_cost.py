"""Encoding against sentence-transformers' own ``encode`` as it comes, in one run; JSON out.

    python benchmarks/encoding_cost.py [--data CORPUS] [--n 400] [--rounds 3] --out encoding.json

Rounds are interleaved, and the median of each side counts. ``encode`` cuts a text off at the
model's longest input; ours reads all of it. So the same texts are measured twice: cut to what both
read (``same_work``), and whole (``whole_texts``), where ours does more.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from rag_reliability.datasets.read import read_corpus
from rag_reliability.modelstore import resolve
from rag_reliability.retrieval.arithmetic import ARITHMETICS, chosen, native_bfloat16
from rag_reliability.retrieval.encode import load_encoder

WORDS = (8, 20, 60, 120, 180, 400)
"""Lengths that the default texts are cut or joined to, in equal shares."""


def mixed_texts(n: int) -> list[str]:
    """Texts of mixed length from the study's own corpus."""
    root = Path(__file__).parents[1]
    contents = [d.content for d in read_corpus(root / "corpus" / "health120").documents]
    words = " ".join(contents).split()
    rng = np.random.default_rng(0)
    starts = rng.integers(0, len(words) - max(WORDS), n).tolist()
    return [" ".join(words[s : s + WORDS[i % len(WORDS)]]) for i, s in enumerate(starts)]


def corpus_texts(folder: str, n: int) -> list[str]:
    """``n`` documents of a corpus, drawn at random."""
    contents = [d.content for d in read_corpus(folder, unknown_ok=True, default_type="x").documents]
    rng = np.random.default_rng(0)
    chosen_rows = rng.permutation(len(contents))[:n].tolist()
    return [contents[i] for i in chosen_rows]


def cut_to_model(model: SentenceTransformer, texts: list[str]) -> list[str]:
    """Texts that fit the model whole: cut by tokens, with room for what cutting may add."""
    longest = int(model.max_seq_length or 256) - 8
    found = []
    for text in texts:
        places = model.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        ends = places["offset_mapping"][:longest]
        found.append(text[: ends[-1][1]])
    return found


def timed(sides: dict[str, Callable[[], object]], rounds: int) -> dict[str, dict[str, float]]:
    """Seconds of each side, rounds interleaved; the first, unmeasured round warms up."""
    wall: dict[str, list[float]] = {name: [] for name in sides}
    cpu: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, side in sides.items():
            began = time.perf_counter(), time.process_time()
            side()
            if number:
                wall[name].append(time.perf_counter() - began[0])
                cpu[name].append(time.process_time() - began[1])
    return {
        name: {
            "seconds": round(statistics.median(wall[name]), 3),
            "cpu_seconds": round(statistics.median(cpu[name]), 3),
        }
        for name in sides
    }


def compared(plain: SentenceTransformer, texts: list[str], path: Path, rounds: int) -> dict:
    """Both sides on the same texts, and how near the vectors lie."""
    kinds = [a for a in ARITHMETICS if a != "bfloat16" or native_bfloat16()]
    ours = {kind: load_encoder(path, arithmetic=kind) for kind in kinds}
    sides: dict[str, Callable[[], object]] = {
        "default": lambda: plain.encode(texts, show_progress_bar=False)
    }
    sides |= {kind: lambda e=encoder: e.encode(texts) for kind, encoder in ours.items()}
    seconds = timed(sides, rounds)
    theirs = plain.encode(texts, show_progress_bar=False, normalize_embeddings=True)
    for kind, encoder in ours.items():
        seconds[kind] |= {
            "times_as_fast": round(seconds["default"]["seconds"] / seconds[kind]["seconds"], 2),
            "min_cosine_to_default": round(float((encoder.encode(texts) * theirs).sum(1).min()), 5),
        }
    return {"texts": len(texts), "sides": seconds}


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="corpus folder; default: mixed lengths from health120")
    parser.add_argument("--n", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    path = resolve("all-minilm-l6-v2").path
    plain = SentenceTransformer(str(path), device="cpu")
    whole = corpus_texts(args.data, args.n) if args.data else mixed_texts(args.n)
    report = {
        "machine": {
            "threads": torch.get_num_threads(),
            "capability": torch.backends.cpu.get_cpu_capability(),
            "load": os.getloadavg()[0],
        },
        "chosen": chosen(path, lambda p, a: load_encoder(p, arithmetic=a)),
        "same_work": compared(plain, cut_to_model(plain, whole), path, args.rounds),
        "whole_texts": compared(plain, whole, path, args.rounds),
    }
    args.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
