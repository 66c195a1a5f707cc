"""Texts to vectors, with a local sentence-transformers model; nothing is fetched here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rag_reliability.records import InputError
from rag_reliability.text import plain

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

MAX_CHARACTERS = 1_000_000
"""Longest text that is encoded; about a thousand windows of MiniLM, half a minute on two cores."""

_LONGEST_WINDOW = 512


class Encoder(Protocol):
    """What the package needs of an encoder: unit vectors for texts and for their tokens."""

    @property
    def name(self) -> str:
        """Name that artefacts record."""
        ...

    @property
    def dim(self) -> int:
        """Length of each vector."""
        ...

    def encode(
        self, texts: Sequence[str], *, batch_size: int = 32, progress: bool = False
    ) -> np.ndarray:
        """Unit vectors, float32 (n_texts, dim)."""
        ...

    def encode_tokens(self, texts: Sequence[str], *, batch_size: int = 32) -> list[np.ndarray]:
        """Unit vectors of each text's tokens in context, float32 (n_tokens, dim) each."""
        ...

    def tokens(self, texts: Sequence[str]) -> list[list[str]]:
        """Each text's tokens, one for each row of ``encode_tokens``."""
        ...


@dataclass(frozen=True)
class _Windows:
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


class SentenceTransformerEncoder:
    """An encoder over a loaded ``SentenceTransformer``, in float32 on the processor.

    A text longer than the model reads (256 tokens for MiniLM) is cut into consecutive windows. Its
    vector is the mean of the windows' unit vectors, weighted by their tokens, scaled to unit norm;
    nothing is cut off. Special tokens spelled out in a text are read as plain text.
    """

    def __init__(self, model: SentenceTransformer, name: str) -> None:
        self._model: Any = model.eval()
        self._tokenizer: Any = model.tokenizer
        self.name = name
        self.dim = int(model.get_embedding_dimension() or 0)
        longest = model.max_seq_length or self._tokenizer.model_max_length
        self._window = int(min(longest, _LONGEST_WINDOW))

    def encode(
        self, texts: Sequence[str], *, batch_size: int = 32, progress: bool = False
    ) -> np.ndarray:
        """Unit vectors, float32 (n_texts, dim); equal texts get equal vectors.

        Raises: InputError for a text that is empty, has no readable word, or is longer than
        ``MAX_CHARACTERS``.
        """
        cleaned = _clean(texts)
        row = {text: i for i, text in enumerate(dict.fromkeys(cleaned))}
        windows = self._windows(list(row))
        sums = np.zeros((len(row), self.dim))
        for chosen, out in self._batches(windows, batch_size, progress):
            vectors = _unit(out["sentence_embedding"].numpy().astype(np.float64))
            weight = windows.n_tokens[chosen, None]
            np.add.at(sums, windows.owner[chosen], vectors * weight)
        return _unit(sums)[[row[text] for text in cleaned]].astype(np.float32)

    def encode_tokens(self, texts: Sequence[str], *, batch_size: int = 32) -> list[np.ndarray]:
        """Unit vectors of each text's tokens in context, float32 (n_tokens, dim) each.

        Special tokens are left out; a long text's windows follow each other, each token once.

        Raises: InputError as ``encode``.
        """
        windows = self._windows(_clean(texts))
        parts: list[np.ndarray] = [np.empty(0)] * len(windows.ids)
        for chosen, out in self._batches(windows, batch_size, progress=False):
            for i, vectors in zip(chosen, out["token_embeddings"].numpy(), strict=True):
                parts[i] = _inner_unit(vectors, windows.inner[i])
        return [np.concatenate(group) for group in _grouped(parts, windows.owner, len(texts))]

    def encode_both(
        self, texts: Sequence[str], *, batch_size: int = 32
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """``encode`` and ``encode_tokens`` of the same texts, the model run once.

        Raises: InputError as ``encode``.
        """
        windows = self._windows(_clean(texts))
        sums = np.zeros((len(texts), self.dim))
        parts: list[np.ndarray] = [np.empty(0)] * len(windows.ids)
        for chosen, out in self._batches(windows, batch_size, progress=False):
            vectors = _unit(out["sentence_embedding"].numpy().astype(np.float64))
            np.add.at(sums, windows.owner[chosen], vectors * windows.n_tokens[chosen, None])
            for i, inside in zip(chosen, out["token_embeddings"].numpy(), strict=True):
                parts[i] = _inner_unit(inside, windows.inner[i])
        tokens = [np.concatenate(group) for group in _grouped(parts, windows.owner, len(texts))]
        return _unit(sums).astype(np.float32), tokens

    def tokens(self, texts: Sequence[str]) -> list[list[str]]:
        """Each text's tokens, one for each row of ``encode_tokens``.

        Raises: InputError as ``encode``.
        """
        windows = self._windows(_clean(texts))
        parts = [
            self._tokenizer.convert_ids_to_tokens(np.array(ids)[inner].tolist())
            for ids, inner in zip(windows.ids, windows.inner, strict=True)
        ]
        return [
            list(chain.from_iterable(group)) for group in _grouped(parts, windows.owner, len(texts))
        ]

    def _windows(self, texts: list[str]) -> _Windows:
        if not texts:
            return _Windows([], np.empty(0, dtype=np.int64), [])
        read = self._tokenizer(
            texts,
            truncation=True,
            max_length=self._window,
            return_overflowing_tokens=True,
            return_special_tokens_mask=True,
            split_special_tokens=True,
        )
        inner = [~np.array(mask, dtype=bool) for mask in read["special_tokens_mask"]]
        owner = np.array(read["overflow_to_sample_mapping"], dtype=np.int64)
        windows = _Windows(read["input_ids"], owner, inner)
        if (windows.n_tokens == 0).any():
            at = int(owner[np.flatnonzero(windows.n_tokens == 0)[0]])
            raise InputError(f"text {texts[at][:40]!r} has no character that the encoder reads")
        return windows

    def _batches(
        self, windows: _Windows, batch_size: int, progress: bool
    ) -> Iterator[tuple[np.ndarray, dict[str, Any]]]:
        """Model outputs batch by batch, windows of similar length together."""
        import torch
        from tqdm import tqdm

        order = np.argsort([-len(ids) for ids in windows.ids], kind="stable")
        starts = range(0, len(order), batch_size)
        for start in tqdm(starts, desc="encode", unit="batch", disable=not progress):
            chosen = order[start : start + batch_size]
            with torch.inference_mode():
                yield chosen, self._model(self._padded([windows.ids[i] for i in chosen]))

    def _padded(self, ids: list[list[int]]) -> dict[str, Any]:
        import torch

        width = max(map(len, ids))
        pad = self._tokenizer.pad_token_id
        return {
            "input_ids": torch.tensor([row + [pad] * (width - len(row)) for row in ids]),
            "attention_mask": torch.tensor(
                [[1] * len(row) + [0] * (width - len(row)) for row in ids]
            ),
        }


def load_encoder(path: str | Path, name: str | None = None) -> SentenceTransformerEncoder:
    """The encoder in folder ``path``, read from disk only; ``name`` defaults to the folder's.

    Raises: InputError where the folder is missing or holds no model that can be loaded.
    """
    folder = Path(path)
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder}: expected a folder with an encoder's config.json and weights")
    from sentence_transformers import SentenceTransformer

    try:
        with _quiet():
            model = SentenceTransformer(
                str(folder),
                device="cpu",
                local_files_only=True,
                model_kwargs={"dtype": "float32"},
            )
    except Exception as error:  # the libraries raise a dozen kinds for a broken folder
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{folder}: cannot be loaded as an encoder: {reason}") from error
    if not model.tokenizer.is_fast:
        raise InputError(f"{folder}: the encoder needs a fast tokenizer (tokenizer.json)")
    return SentenceTransformerEncoder(model, name or folder.name)


class _quiet:
    """Keeps the progress bar of weights that load in a quarter of a second off the screen."""

    def __enter__(self) -> None:
        from transformers.utils import logging

        self._was_on = logging.is_progress_bar_enabled()
        logging.disable_progress_bar()

    def __exit__(self, *_: object) -> None:
        from transformers.utils import logging

        if self._was_on:
            logging.enable_progress_bar()


def _clean(texts: Sequence[str]) -> list[str]:
    """Texts without control characters; refuses empty and absurdly long ones."""
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


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def _inner_unit(vectors: np.ndarray, inner: np.ndarray) -> np.ndarray:
    """A window's token vectors without padding and special tokens, unit norm, float32."""
    return _unit(vectors[: len(inner)][inner].astype(np.float64)).astype(np.float32)


def _grouped(parts: list[Any], owner: np.ndarray, n_texts: int) -> list[list[Any]]:
    """Parts of each text, in window order."""
    groups: list[list[Any]] = [[] for _ in range(n_texts)]
    for part, text in zip(parts, owner.tolist(), strict=True):
        groups[text].append(part)
    return groups
