"""Texts to vectors, with a local sentence-transformers model; nothing is fetched here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from rag_reliability.records import InputError
from rag_reliability.retrieval import mean_pooling
from rag_reliability.retrieval.arithmetic import Arithmetic, apply, checked, chosen
from rag_reliability.retrieval.mean_pooling import Parts
from rag_reliability.retrieval.windows import (
    BATCH_TOKENS,
    MAX_CHARACTERS,
    Windows,
    batches,
    clean,
    cut,
)

__all__ = [
    "MAX_CHARACTERS",
    "Encoder",
    "SentenceTransformerEncoder",
    "choose_arithmetic",
    "load_encoder",
]
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
        self, texts: Sequence[str], *, batch_tokens: int = BATCH_TOKENS, progress: bool = False
    ) -> np.ndarray:
        """Unit vectors, float32 (n_texts, dim)."""
        ...

    def encode_tokens(
        self, texts: Sequence[str], *, batch_tokens: int = BATCH_TOKENS
    ) -> list[np.ndarray]:
        """Unit vectors of each text's tokens in context, float32 (n_tokens, dim) each."""
        ...

    def tokens(self, texts: Sequence[str]) -> list[list[str]]:
        """Each text's tokens, one for each row of ``encode_tokens``."""
        ...


class SentenceTransformerEncoder:
    """An encoder in sentence-transformers' format, on the processor.

    A text longer than the model reads (256 tokens for MiniLM) is cut into consecutive windows. Its
    vector is the mean of the windows' unit vectors, weighted by their tokens, scaled to unit norm;
    nothing is cut off. Special tokens spelled out in a text are read as plain text.

    In float32 a vector does not depend on what is encoded beside it beyond 1e-6; in bfloat16 and
    int8 beyond about 1e-2, since their sums are rounded by the shape of a batch.
    """

    def __init__(self, parts: Parts, name: str, arithmetic: Arithmetic = "float32") -> None:
        self.name, self.arithmetic, self.dim = name, arithmetic, parts.dim
        self._tokenizer: Any = parts.tokenizer
        self._window = min(parts.longest, _LONGEST_WINDOW)
        self._features, self._after = parts.features, parts.after
        self._transformer: Any = apply(parts.transformer, arithmetic)

    def encode(
        self, texts: Sequence[str], *, batch_tokens: int = BATCH_TOKENS, progress: bool = False
    ) -> np.ndarray:
        """Unit vectors, float32 (n_texts, dim); equal texts get equal vectors.

        Raises: InputError for a text that is empty, has no readable word, or is longer than
        ``MAX_CHARACTERS``.
        """
        cleaned = clean(texts)
        row = {text: i for i, text in enumerate(dict.fromkeys(cleaned))}
        windows = cut(self._tokenizer, list(row), self._window)
        sums, weight = np.zeros((len(row), self.dim)), windows.n_tokens
        for numbers, out in self._batches(windows, batch_tokens, progress):
            np.add.at(sums, windows.owner[numbers], _whole(out) * weight[numbers, None])
        return _unit(sums)[[row[text] for text in cleaned]].astype(np.float32)

    def encode_tokens(
        self, texts: Sequence[str], *, batch_tokens: int = BATCH_TOKENS
    ) -> list[np.ndarray]:
        """Unit vectors of each text's tokens in context, float32 (n_tokens, dim) each.

        Special tokens are left out; a long text's windows follow each other, each token once.

        Raises: InputError as ``encode``.
        """
        return self.encode_both(texts, batch_tokens=batch_tokens)[1]

    def encode_both(
        self, texts: Sequence[str], *, batch_tokens: int = BATCH_TOKENS
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """``encode`` and ``encode_tokens`` of the same texts, the model run once.

        Raises: InputError as ``encode``.
        """
        windows = cut(self._tokenizer, clean(texts), self._window)
        sums, weight = np.zeros((len(texts), self.dim)), windows.n_tokens
        parts: list[np.ndarray] = [np.empty(0)] * len(windows.ids)
        for numbers, out in self._batches(windows, batch_tokens, progress=False):
            np.add.at(sums, windows.owner[numbers], _whole(out) * weight[numbers, None])
            for i, inside in zip(numbers, out["token_embeddings"].numpy(), strict=True):
                parts[i] = _inner_unit(inside, windows.inner[i])
        tokens = [np.concatenate(group) for group in windows.grouped(parts, len(texts))]
        return _unit(sums).astype(np.float32), tokens

    def tokens(self, texts: Sequence[str]) -> list[list[str]]:
        """Each text's tokens, one for each row of ``encode_tokens``.

        Raises: InputError as ``encode``.
        """
        windows = cut(self._tokenizer, clean(texts), self._window)
        parts = [
            self._tokenizer.convert_ids_to_tokens(np.array(ids)[inner].tolist())
            for ids, inner in zip(windows.ids, windows.inner, strict=True)
        ]
        return [list(chain.from_iterable(group)) for group in windows.grouped(parts, len(texts))]

    def _batches(
        self, windows: Windows, budget: int, progress: bool
    ) -> Iterator[tuple[np.ndarray, dict[str, Any]]]:
        """Model outputs batch by batch, windows of similar length together."""
        import torch
        from tqdm import tqdm

        lengths = list(map(len, windows.ids))
        with tqdm(total=sum(lengths), desc="encode", unit="token", disable=not progress) as bar:
            for numbers in batches(lengths, budget):
                with torch.inference_mode():
                    yield numbers, self._read([windows.ids[i] for i in numbers])
                bar.update(sum(lengths[i] for i in numbers))

    def _read(self, ids: list[list[int]]) -> dict[str, Any]:
        """The model on one batch; what follows the transformer is computed in float32."""
        out = self._features(self._transformer, self._padded(ids))
        out["token_embeddings"] = out["token_embeddings"].float()
        for step in self._after:
            out = step(out)
        return out

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


def load_encoder(
    path: str | Path,
    name: str | None = None,
    arithmetic: Arithmetic | Literal["auto"] = "float32",
) -> SentenceTransformerEncoder:
    """The encoder in folder ``path``, read from disk only; ``name`` defaults to the folder's.

    ``auto`` takes what ``choose_arithmetic`` found fastest here.

    Raises: InputError where the folder is missing or holds no model that can be loaded.
    """
    folder = Path(path)
    kind = choose_arithmetic(folder) if arithmetic == "auto" else checked(arithmetic)
    parts = _loaded(folder)
    if not parts.tokenizer.is_fast:
        raise InputError(f"{folder}: the encoder needs a fast tokenizer (tokenizer.json)")
    return SentenceTransformerEncoder(parts, name or folder.name, kind)


def choose_arithmetic(path: str | Path, *, cache: Path | None = None) -> Arithmetic:
    """The fastest arithmetic on this machine that keeps vectors within .99 cosine of float32.

    Measured on first use (a few seconds), then kept by machine and weights.

    Raises: InputError as ``load_encoder``.
    """
    record = chosen(Path(path), lambda p, a: load_encoder(p, arithmetic=a), cache=cache)
    return checked(record["arithmetic"])


def _loaded(folder: Path) -> Parts:
    """The encoder in ``folder``, its weights in float32."""
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder}: expected a folder with an encoder's config.json and weights")
    try:
        with _quiet():
            return mean_pooling.read(folder) or _by_library(folder)
    except Exception as error:  # the libraries raise a dozen kinds for a broken folder
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{folder}: cannot be loaded as an encoder: {reason}") from error


def _by_library(folder: Path) -> Parts:
    """The encoder in ``folder`` of any build, read by the library itself."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(
        str(folder), device="cpu", local_files_only=True, model_kwargs={"dtype": "float32"}
    ).eval()
    transformer, *after = list(model)
    tokenizer: Any = model.tokenizer
    longest = model.max_seq_length or tokenizer.model_max_length
    dim = int(model.get_embedding_dimension() or 0)
    return Parts(tokenizer, transformer, lambda m, batch: m(batch), after, int(longest), dim)


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


def _whole(out: dict[str, Any]) -> np.ndarray:
    """Unit vectors of a batch's windows, float64 (n, dim)."""
    return _unit(out["sentence_embedding"].float().numpy().astype(np.float64))


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def _inner_unit(vectors: np.ndarray, inner: np.ndarray) -> np.ndarray:
    """A window's token vectors without padding and special tokens, unit norm, float32."""
    return _unit(vectors[: len(inner)][inner].astype(np.float64)).astype(np.float32)
