"""Texts cut into windows of tokens that an encoder can read whole, and windows put into batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_reliability.records import InputError
from rag_reliability.text import plain

MAX_CHARACTERS = 1_000_000
"""Longest text that is encoded; about a thousand windows of MiniLM, half a minute on two cores."""

BATCH_TOKENS = 1024
"""Tokens of one batch, padding included: more spill the processor's caches, fewer starve it."""


@dataclass(frozen=True)
class Windows:
    """Texts cut into pieces that the model can read whole.

    ids: token ids of each window, special tokens included; owner: int64 (n_windows,), the text it
    is from; inner: bool mask of each window, False at special tokens.
    """

    ids: list[list[int]]
    owner: np.ndarray
    inner: list[np.ndarray]

    @property
    def n_tokens(self) -> np.ndarray:
        """Tokens of each window without the special ones, int64 (n_windows,)."""
        return np.array([int(mask.sum()) for mask in self.inner], dtype=np.int64)

    def grouped(self, parts: Sequence[Any], n_texts: int) -> list[list[Any]]:
        """What was made of each window, gathered by text, in window order."""
        groups: list[list[Any]] = [[] for _ in range(n_texts)]
        for part, text in zip(parts, self.owner.tolist(), strict=True):
            groups[text].append(part)
        return groups


def cut(tokenizer: Any, texts: list[str], longest: int) -> Windows:
    """Cleaned texts as consecutive windows of at most ``longest`` tokens.

    Special tokens spelt out in a text are read as plain text.

    Raises InputError for a text without a character that the tokenizer knows.
    """
    if not texts:
        return Windows([], np.empty(0, dtype=np.int64), [])
    read = tokenizer(
        texts,
        truncation=True,
        max_length=longest,
        return_overflowing_tokens=True,
        return_special_tokens_mask=True,
        split_special_tokens=True,
    )
    inner = [~np.array(mask, dtype=bool) for mask in read["special_tokens_mask"]]
    owner = np.array(read["overflow_to_sample_mapping"], dtype=np.int64)
    windows = Windows(read["input_ids"], owner, inner)
    if (windows.n_tokens == 0).any():
        at = int(owner[np.flatnonzero(windows.n_tokens == 0)[0]])
        raise InputError(f"text {texts[at][:40]!r} has no character that the encoder reads")
    return windows


def batches(lengths: Sequence[int], budget: int) -> Iterator[np.ndarray]:
    """Numbers of the windows of each batch, longest first; int64 (n,).

    A batch holds as many as fit into ``budget`` tokens when each is padded to its longest, and at
    least one. Windows of similar length lie together, so little of a batch is padding.
    """
    order = np.argsort([-n for n in lengths], kind="stable")
    start = 0
    while start < len(order):
        size = max(1, budget // max(1, lengths[order[start]]))
        yield order[start : start + size]
        start += size


def clean(texts: Sequence[str]) -> list[str]:
    """Texts without control characters; refuses empty and absurdly long ones.

    Raises InputError naming the text by its number, TypeError for one text instead of several.
    """
    if isinstance(texts, str):
        raise TypeError("texts must be a sequence of texts, not one text")
    cleaned = []
    for i, text in enumerate(texts):
        if len(text) > MAX_CHARACTERS:
            raise InputError(
                f"text {i} has {len(text):,} characters; expected at most {MAX_CHARACTERS:,}"
            )
        cleaned.append(plain(text).strip())
        if not cleaned[-1]:
            raise InputError(f"text {i} is empty; expected at least one word")
    return cleaned
