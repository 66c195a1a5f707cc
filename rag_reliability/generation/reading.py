"""What stance a passage takes on a question: one short reading by the local model, no judge.

Zero-shot, with nothing fitted: the model's log-odds of yes after reading the passage, minus its
log-odds without it. Vera (Pradeep et al., SIGIR 2021) reads stances with a fine-tuned T5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from tqdm import tqdm

from rag_reliability.generation.packing import packed_logits
from rag_reliability.generation.prompt import Message, one_line, prompt_ids
from rag_reliability.generation.stance import MAX_STANCE_CHARS, yes_no_spellings
from rag_reliability.language import Language, english

if TYPE_CHECKING:
    from rag_reliability.generation.models import Generator

WORDING = "2"
"""Raise when a prompt here changes: saved readings are known by it."""
N_ASKS = 2
"""Both orders of yes and no are read and averaged: small models lean to the word named last."""


def reading_messages(
    question: str, passage: str, language: Language | None = None
) -> list[list[Message]]:
    """One chat for each order of yes and no; an empty passage asks for what the model says unaided.

    language: whose words are used (None: English).
    """
    words = (language or english()).stance
    asked = one_line(question)
    if passage:
        shown = words.passage.format(passage=one_line(passage, MAX_STANCE_CHARS))
        asked = f"{shown}\n\n{words.according_one.format(question=asked)}"
    return [
        [
            {"role": "system", "content": words.system},
            {"role": "user", "content": f"{asked} {ask}"},
        ]
        for ask in words.asks
    ]


def read_pairs(
    generator: Generator,
    pairs: Sequence[tuple[str, str]],
    language: Language | None = None,
    *,
    progress: bool = True,
) -> Iterator[tuple[list[int], np.ndarray]]:
    """Log-odds of yes for (question, passage) pairs, as they are read.

    Yields the numbers of some pairs and their readings, float64 (n, N_ASKS): log P(yes) −
    log P(no) of the next token, the words' spellings summed. What the model says without a
    passage is read as the pair (question, ""); subtract it. Raises as ``packed_logits``.
    """
    import torch

    yes, no = yes_no_spellings(generator, language)
    groups = [
        [prompt_ids(generator, messages) for messages in reading_messages(*pair, language)]
        for pair in pairs
    ]
    with tqdm(total=len(pairs), unit="passage", desc="reading", disable=not progress) as bar:
        for numbers, logits in packed_logits(generator, groups):
            odds = torch.logsumexp(logits[:, yes], 1) - torch.logsumexp(logits[:, no], 1)
            yield numbers, odds.double().numpy().reshape(len(numbers), N_ASKS)
            bar.update(len(numbers))
