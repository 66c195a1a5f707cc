"""Next-token readings of many prompts in few passes: no padding, shared beginnings read once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_reliability.records import InputError

if TYPE_CHECKING:
    import torch

    from rag_reliability.generation.models import Generator

Group = Sequence[Sequence[int]]
"""Prompts (token ids) with a common beginning: one passage, several questions."""

PACK_TOKENS = 512
"""Tokens of one pass: more spill the processor's caches and its mask grows, fewer starve it."""


@dataclass(frozen=True, slots=True)
class Packed:
    """Several groups laid end to end, after what all of them begin with.

    ids, positions: int64 (n_tokens,); a token's position is its place in its own prompt.
    allowed: bool (n_tokens, n_tokens), what each token attends to: the beginning of all, the
    group's, and its own prompt, up to itself. ends: int64 (n_prompts,), where each prompt's last
    token lies.
    """

    ids: np.ndarray
    positions: np.ndarray
    allowed: np.ndarray
    ends: np.ndarray


def packed_logits(
    generator: Generator, groups: Sequence[Group], *, pack_tokens: int = PACK_TOKENS
) -> Iterator[tuple[list[int], torch.Tensor]]:
    """Next-token logits of every prompt, pass by pass, longest groups first.

    Yields the numbers of the groups read and float32 (n_prompts, vocabulary), their prompts in
    order. Equal to reading each prompt alone up to rounding: about 1e-4 in float32, ± 0.1 in
    bfloat16, where sums depend on the shape of a pass.

    Raises InputError for a prompt beyond the model's context, ValueError for an empty one.
    """
    import torch

    model: Any = generator.model
    _check(generator, groups)
    for numbers in _passes([_size(group) for group in groups], pack_tokens):
        packed = pack([groups[n] for n in numbers])
        with torch.inference_mode():
            logits = model(
                input_ids=torch.from_numpy(packed.ids)[None].to(model.device),
                position_ids=torch.from_numpy(packed.positions)[None].to(model.device),
                attention_mask=torch.from_numpy(packed.allowed)[None, None].to(model.device),
                use_cache=False,
                logits_to_keep=torch.from_numpy(packed.ends).to(model.device),
            ).logits[0]
        yield numbers, logits.float().cpu()


def pack(groups: Sequence[Group]) -> Packed:
    """What all groups begin with, then each group's own beginning and the rest of its prompts.

    Each of these stretches is there once.
    """
    root = _shared([prompt for group in groups for prompt in group])
    ids = list(groups[0][0][:root])
    positions = list(range(root))
    segment = [0] * root  # which stretch a token belongs to
    beginning = [0] * root  # the stretch that opens its group
    ends: list[int] = []
    stretches = 1
    for group in groups:
        shared, opening = _shared(group), stretches
        for number, (start, tokens) in enumerate(
            ((root, group[0][root:shared]), *((shared, prompt[shared:]) for prompt in group))
        ):
            ids.extend(tokens)
            positions.extend(range(start, start + len(tokens)))
            segment.extend([stretches] * len(tokens))
            beginning.extend([opening] * len(tokens))
            stretches += 1
            if number:  # the opening stretch ends no prompt
                ends.append(len(ids) - 1)
    own, first = np.array(segment), np.array(beginning)
    sees = (own[:, None] == own[None, :]) | (first[:, None] == own[None, :]) | (own == 0)[None, :]
    return Packed(
        np.array(ids, dtype=np.int64),
        np.array(positions, dtype=np.int64),
        np.tril(sees),
        np.array(ends, dtype=np.int64),
    )


def _shared(group: Group) -> int:
    """Length of the group's common beginning, short of the last token of its shortest prompt."""
    longest = min(len(prompt) for prompt in group) - 1
    first = group[0]
    for place in range(longest):
        if any(prompt[place] != first[place] for prompt in group):
            return place
    return longest


def _size(group: Group) -> int:
    shared = _shared(group)
    return shared + sum(len(prompt) - shared for prompt in group)


def _passes(sizes: Sequence[int], limit: int) -> Iterator[list[int]]:
    """Numbers of the groups of each pass, filled in order of falling size up to ``limit``."""
    batch: list[int] = []
    total = 0
    for number in sorted(range(len(sizes)), key=lambda n: (-sizes[n], n)):
        if batch and total + sizes[number] > limit:
            yield batch
            batch, total = [], 0
        batch.append(number)
        total += sizes[number]
    if batch:
        yield batch


def _check(generator: Generator, groups: Sequence[Group]) -> None:
    lengths = [len(prompt) for group in groups for prompt in group]
    if any(not group for group in groups) or any(n == 0 for n in lengths):
        raise ValueError("a group without prompts, or a prompt without tokens")
    context = getattr(generator.model.config, "max_position_embeddings", None)
    if lengths and context and max(lengths) > context:
        raise InputError(
            f"a prompt of {max(lengths)} tokens exceeds {generator.name}'s context of {context}"
        )
