"""Does the model call a claim true, by a passage or by itself? One forward pass each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rag_reliability.generation.prompt import Message, one_line, prompt_ids
from rag_reliability.generation.stance import yes_no_log_odds

if TYPE_CHECKING:
    from rag_reliability.generation.models import Generator


def claim_messages(claim: str, passage: str = "") -> list[Message]:
    """Messages that ask whether a claim is true according to a passage, or, without one, at all."""
    said = one_line(claim)
    if passage:
        asked = f"Passage: {one_line(passage)}\n\nAccording to the passage, is this claim true?"
    else:
        asked = "Is this claim true?"
    system = "You check claims. You answer with Yes or No."
    user = f"{asked}\n\nClaim: {said}\n\nAnswer Yes or No."
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def claim_log_odds(
    generator: Generator,
    pairs: Sequence[tuple[str, str]],
    *,
    batch_size: int = 4,
    progress: bool = False,
) -> np.ndarray:
    """log P(yes) − log P(no) for each (claim, passage), "" for no passage; float64 (n_pairs,).

    Raises InputError as ``yes_no_log_odds``.
    """
    prompts = [prompt_ids(generator, claim_messages(*pair)) for pair in pairs]
    return yes_no_log_odds(generator, prompts, batch_size=batch_size, progress=progress)
