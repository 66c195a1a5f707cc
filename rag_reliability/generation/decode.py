"""Greedy decoding with keys and values kept: a shared beginning is read once, finished rows leave.

Imported only where a model is loaded: torch and transformers come with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import torch
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer

Prompt = tuple[int, ...]
States = list[tuple[torch.Tensor, torch.Tensor]]
"""Keys and values of one row, by layer, each (heads, n_tokens, dim)."""

ROWS = 1024
"""Token positions read in one pass: more spill the processor's caches, fewer starve it."""
_WORTH_SHARING = 64
"""Common tokens from which going on costs less than reading anew, which needs no mask."""
_FULL = 0.75
"""A batch is laid out anew, with waiting prompts, when no more than this share of it is left."""
_KINDS = {"full_attention", "sliding_attention"}


def keeps_states(model: Any) -> bool:
    """Whether all that the model remembers of its text is keys and values of attention."""
    config = model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ()) or {"full_attention"}
    return kinds <= _KINDS and not getattr(model, "_is_stateful", False)


def read(model: Any, prompts: Iterable[Prompt]) -> Iterator[tuple[Prompt, torch.Tensor, Cache]]:
    """Each prompt, its next-token logits (vocabulary,), and its keys and values.

    One prompt at a time, so without padding. What a prompt has in common with the one before it
    is not read again: in sorted order that is all that can be shared. A prompt's cache holds until
    the next one is asked for.
    """
    before: Prompt = ()
    cache: Cache = DynamicCache()
    for prompt in prompts:
        shared = min(_common(before, prompt), len(prompt) - 1)
        shared = shared if shared >= _WORTH_SHARING else 0
        cache = _cut(cache, shared)
        for start in range(shared, len(prompt), ROWS):
            piece = torch.tensor([prompt[start : start + ROWS]], device=model.device)
            with torch.inference_mode():
                out = model(piece, cache=cache, use_cache=True, logits_to_keep=1)
        yield prompt, out.logits[0, -1], cache
        before = prompt


def decode(
    model: Any, prompts: Iterable[Prompt], *, batch_size: int, new_tokens: int
) -> Iterator[tuple[Prompt, list[int]]]:
    """Each distinct prompt and its continuation, greedily, as they are finished.

    A continuation ends before the first end token, or after ``new_tokens``. A prompt is read
    alone and then continued in a batch of ``batch_size`` rows at most: a row that is finished
    leaves it, and a waiting prompt comes in.
    """
    ends = set(model.generation_config.eos_token_id)
    waiting = read(model, sorted(set(prompts)))
    batch = _Batch(model, [], new_tokens)
    while True:
        for row in batch.take_finished(ends, new_tokens):
            yield row.prompt, row.told
        if len(batch.live) <= _FULL * len(batch.rows):
            rows = [batch.own(i) for i in batch.live]
            came = islice(waiting, batch_size - len(rows))
            rows += [_Row(p, [int(logits.argmax())], _states(cache)) for p, logits, cache in came]
            if not rows:
                return
            batch = _Batch(model, rows, new_tokens)
        else:
            batch.step()


@dataclass
class _Row:
    """One prompt, the tokens made so far, and the keys and values of all but the last."""

    prompt: Prompt
    tokens: list[int]
    states: States = field(repr=False)
    told: list[int] = field(default_factory=list)


class _Batch:
    """Rows that are continued together, left-padded; ``live`` are the numbers of those unfinished.

    The arrays hold room for ``room`` more tokens, so that none of them grows by being copied.
    """

    def __init__(self, model: Any, rows: list[_Row], room: int) -> None:
        self.model, self.rows, self.live = model, rows, list(range(len(rows)))
        if not rows:
            return
        lengths = [row.states[0][0].shape[1] for row in rows]
        width = max(lengths)
        layers = []
        for i in range(len(rows[0].states)):
            keys, values = (
                _padded([row.states[i][j] for row in rows], width, room) for j in (0, 1)
            )
            layers.append(_Roomy(keys, values, width))
        self.cache = Cache(layers=list(layers))
        self.positions = torch.tensor(lengths, device=model.device)
        seen = torch.arange(width + room, device=model.device)
        self.mask = (seen >= width - self.positions[:, None]).long()
        self.width = width
        for row in rows:
            row.states = []  # the batch holds them now

    def step(self) -> None:
        """One more token for every row; those of finished rows are not looked at."""
        last = torch.tensor([[row.tokens[-1]] for row in self.rows], device=self.model.device)
        self.width += 1
        with torch.inference_mode():
            logits = self.model(
                last,
                attention_mask=self.mask[:, : self.width],
                position_ids=self.positions[:, None],
                cache=self.cache,
                use_cache=True,
                logits_to_keep=1,
            ).logits[:, -1]
        self.positions = self.positions + 1
        for row, token in zip(self.rows, logits.argmax(-1).tolist(), strict=True):
            row.tokens.append(token)

    def take_finished(self, ends: set[int], new_tokens: int) -> list[_Row]:
        """Rows whose last token ended them or was the last allowed; they are live no longer."""
        done = []
        for i in list(self.live):
            row = self.rows[i]
            if row.tokens[-1] in ends or len(row.tokens) == new_tokens:
                row.told = row.tokens[:-1] if row.tokens[-1] in ends else list(row.tokens)
                self.live.remove(i)
                done.append(row)
        return done

    def own(self, i: int) -> _Row:
        """Row ``i`` with its own keys and values, padding left out."""
        row, kept = self.rows[i], int(self.positions[i])
        layers: Any = self.cache.layers
        row.states = [(la.keys[i, :, -kept:], la.values[i, :, -kept:]) for la in layers]
        return row


class _Roomy(DynamicLayer):
    """One layer's keys and values, (n_rows, heads, n, dim), in arrays with room to the right."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor, width: int) -> None:
        super().__init__()
        self._whole, self._width = (keys, values), width
        self.keys, self.values = keys[:, :, :width], values[:, :, :width]
        self.dtype, self.device, self.is_initialized = keys.dtype, keys.device, True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Put new states into the room; returns all there are, as views."""
        start, self._width = self._width, self._width + key_states.shape[2]
        for whole, new in zip(self._whole, (key_states, value_states), strict=True):
            whole[:, :, start : self._width] = new
        keys, values = (whole[:, :, : self._width] for whole in self._whole)
        self.keys, self.values = keys, values
        return keys, values


def _padded(states: Sequence[torch.Tensor], width: int, room: int) -> torch.Tensor:
    """Rows' states to the left of ``width``, zeros before them, and room behind."""
    heads, _, dim = states[0].shape
    whole = states[0].new_zeros((len(states), heads, width + room, dim))
    for row, own in zip(whole, states, strict=True):
        row[:, width - own.shape[1] : width] = own
    return whole


def _common(one: Prompt, other: Prompt) -> int:
    """Tokens that two prompts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def _states(cache: Cache) -> States:
    layers: Any = cache.layers
    return [(layer.keys[0], layer.values[0]) for layer in layers]


def _cut(cache: Cache, n: int) -> Cache:
    """A new cache with the first ``n`` tokens of another."""
    new, layers = DynamicCache(), list[Any](cache.layers)
    if n:
        for i, layer in enumerate(layers):
            new.update(layer.keys[:, :, :n], layer.values[:, :, :n], i)
    return new
