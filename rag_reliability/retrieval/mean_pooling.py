"""Encoders that are a transformer and the mean of its tokens, read with transformers alone.

sentence-transformers reads any folder, and takes most of a short search to be imported. Folders
of the commonest build need no more than a model and a tokenizer; vectors are the same bits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MODEL_TYPES = ("bert", "mpnet")
"""Architectures of which a test holds that both ways give the same bits."""
_MODULES = (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
_MEAN = "pooling_mode_mean_tokens"


@dataclass(frozen=True)
class Parts:
    """What an encoder is made of, whoever read it.

    transformer: torch module; features: what it makes of a batch (input_ids, attention_mask), with
    token_embeddings (n, width, dim) among it; after: steps from there to sentence_embedding
    (n, dim); longest: tokens of one window, special ones included.
    """

    tokenizer: Any
    transformer: Any
    features: Callable[[Any, dict[str, Any]], dict[str, Any]]
    after: Sequence[Callable[[dict[str, Any]], dict[str, Any]]]
    longest: int
    dim: int


def read(folder: Path) -> Parts | None:
    """The encoder in ``folder``, its weights in float32; None where it is of another build.

    Raises: whatever transformers raises for files that are damaged.
    """
    if (build := _build(folder)) is None:
        return None
    from transformers import AutoModel, AutoTokenizer

    longest, normalised = build
    how: dict[str, Any] = {} if longest is None else {"model_max_length": longest}
    tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, **how)
    model = AutoModel.from_pretrained(str(folder), local_files_only=True, dtype="float32").eval()
    if longest is None:
        longest = min(tokenizer.model_max_length, model.config.max_position_embeddings)
    after = (_mean, _normalised) if normalised else (_mean,)
    return Parts(tokenizer, model, _features, after, longest, int(model.config.hidden_size))


def _build(folder: Path) -> tuple[int | None, bool] | None:
    """Longest window if one is given, and whether vectors are normalised; None: not this build."""
    try:
        modules = _json(folder / "modules.json")
        names = [str(m["type"]) for m in modules]
        pooling = _json(folder / str(modules[1]["path"]) / "config.json")
        settings = _json(folder / "sentence_bert_config.json")
        config = _json(folder / "config.json")
        plain = (
            all(name.startswith("sentence_transformers.") for name in names)
            and [name.rsplit(".", 1)[1] for name in names] in _MODULES
            and modules[0]["path"] == ""
            and _is_mean(pooling)
            and set(settings) <= {"max_seq_length", "do_lower_case"}
            and not settings.get("do_lower_case")
            and config["model_type"] in _MODEL_TYPES
            and not (config.get("is_decoder") or config.get("auto_map"))
            and not (folder / "adapter_config.json").exists()
        )
        return (settings.get("max_seq_length"), len(names) == 3) if plain else None
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError):
        return None  # sentence-transformers says what is wrong with it


def _is_mean(pooling: dict[str, Any]) -> bool:
    if "pooling_mode" in pooling:
        return bool(pooling["pooling_mode"] == "mean")
    return [name for name, on in pooling.items() if name.startswith("pooling_mode_") and on] == [
        _MEAN
    ]


def _json(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def _features(model: Any, batch: dict[str, Any]) -> dict[str, Any]:
    return {**batch, "token_embeddings": model(**batch).last_hidden_state}


def _mean(features: dict[str, Any]) -> dict[str, Any]:
    """Mean of a window's tokens, special ones included, padding not."""
    tokens = features["token_embeddings"]
    mask = features["attention_mask"].unsqueeze(-1).to(tokens.dtype)
    mean = (tokens * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1e-9)
    return {**features, "sentence_embedding": mean}


def _normalised(features: dict[str, Any]) -> dict[str, Any]:
    from torch.nn.functional import normalize

    return {**features, "sentence_embedding": normalize(features["sentence_embedding"], dim=1)}
