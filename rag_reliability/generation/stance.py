"""The stance probe: does the model read yes or no from the passages? One forward pass, no judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rag_reliability.generation.generate import first_logits
from rag_reliability.generation.prompt import Message, Passage, one_line, plain_ids
from rag_reliability.language import Language, english
from rag_reliability.records import InputError

if TYPE_CHECKING:
    from rag_reliability.generation.models import Generator

MAX_STANCE_CHARS = 700
"""Characters of each passage that the probe is shown."""


def stance_messages(
    query: str, passages: Sequence[Passage], language: Language | None = None
) -> list[Message]:
    """Messages that ask for yes or no according to the passages, or to nothing if there are none.

    Source types are not shown. language: whose words are used (None: English).
    """
    words = (language or english()).stance
    shown = [words.passage.format(passage=one_line(p.text, MAX_STANCE_CHARS)) for p in passages]
    according = words.according_many if len(shown) > 1 else words.according_one
    question = one_line(query)
    asked = according.format(question=question) if shown else question
    user = "\n\n".join([*shown, f"{asked} {words.asks[0]}"])
    return [{"role": "system", "content": words.system}, {"role": "user", "content": user}]


def yes_no_log_odds(
    generator: Generator,
    prompts: Sequence[Sequence[int]],
    *,
    language: Language | None = None,
    batch_size: int = 4,
    progress: bool = False,
) -> np.ndarray:
    """log P(yes) − log P(no) of each prompt's next token, float64 (n_prompts,).

    Each word's probability is summed over its spellings that are one token of the model. The
    value is a reading, not a calibrated probability: compare it with the same model's reading
    without passages. bfloat16 logits make it coarse, to about ± 0.1.

    Raises InputError when the model has no one-token yes or no, or a prompt exceeds its context.
    """
    import torch

    yes, no = yes_no_spellings(generator, language)
    odds = {
        prompt: float(torch.logsumexp(row[yes], 0) - torch.logsumexp(row[no], 0))
        for prompt, row in first_logits(
            generator, prompts, batch_size=batch_size, progress=progress
        )
    }
    return np.array([odds[tuple(prompt)] for prompt in prompts], dtype=np.float64)


def yes_no_spellings(
    generator: Generator, language: Language | None = None
) -> tuple[list[int], list[int]]:
    """Tokens of the model that spell a language's yes, and those that spell its no.

    Raises InputError when it has no one-token yes or no.
    """
    words = (language or english()).stance
    return _spellings(generator, words.yes), _spellings(generator, words.no)


def _spellings(generator: Generator, words: Sequence[str]) -> list[int]:
    tokens = [plain_ids(generator.tokenizer, word) for word in words]
    single = sorted({ids[0] for ids in tokens if len(ids) == 1})
    if not single:
        raise InputError(f"{generator.name}: none of {', '.join(words)} is one token of this model")
    return single
