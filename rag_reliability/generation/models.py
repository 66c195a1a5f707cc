"""The only place that loads a causal language model; GGUF files are converted once and cached."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_reliability.modelstore import ModelFiles, cache_dir, resolve
from rag_reliability.records import InputError

if TYPE_CHECKING:
    from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

_CONVERSION = 1  # raise when convert() changes what it writes
_END_OF_TURN = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<end_of_turn>", "<|end|>")
"""A GGUF file states one end token; chat models stop at either of two."""


@dataclass(frozen=True, slots=True)
class Generator:
    """A causal language model, its tokenizer, and the SHA-256 of its source weights."""

    name: str
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    sha256: str


def load_generator(
    name_or_path: str | Path,
    *,
    threads: int | None = None,
    allow_download: bool = False,
    cache: Path | None = None,
) -> Generator:
    """Load a model by catalogue name, path or hub id, ready for greedy generation.

    ``threads`` sets torch's thread count for the whole process. A GGUF file is converted to
    bfloat16 safetensors in the cache on first use.

    Raises InputError, one line, for a model that is missing, damaged or of a kind that
    transformers cannot read.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    files = resolve(name_or_path, allow_download=allow_download, cache=cache)
    folder = files.path if files.path.is_dir() else _converted(files, cache or cache_dir())
    if threads is not None:
        torch.set_num_threads(threads)
    with _transformers_errors(files), _quiet():
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=getattr(torch, compute_dtype()),
            attn_implementation="sdpa",
            local_files_only=True,
            use_safetensors=True,
            output_loading_info=True,
        )
    model, report = loaded
    if missing := sorted(report["missing_keys"]):
        raise InputError(f"{folder}: {len(missing)} weights missing, such as {missing[0]}")
    model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
    model.generation_config = _greedy(model, tokenizer)
    return Generator(files.name, model, tokenizer, files.sha256)


def compute_dtype() -> str:
    """``bfloat16`` where this machine multiplies it natively, else ``float32``.

    A processor without bfloat16 instructions emulates them: reading a prompt then takes 3.5 times
    as long as in float32 (measured on an AVX2 processor). Answers can differ between the two.
    """
    import torch

    native = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return "bfloat16" if torch.cuda.is_available() or native else "float32"


def _greedy(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> GenerationConfig:
    """Greedy decoding and every end token; a model's own sampling settings must not leak in."""
    from transformers import GenerationConfig

    added = {str(token): number for number, token in tokenizer.added_tokens_decoder.items()}
    ends = {added[text] for text in _END_OF_TURN if text in added}
    for stated in (tokenizer.eos_token_id, model.generation_config.eos_token_id):
        ends.update([stated] if isinstance(stated, int) else stated or [])
    if not ends:
        raise InputError(
            f"{model.config.name_or_path}: neither model nor tokenizer names an end token"
        )
    pad = tokenizer.pad_token_id
    return GenerationConfig(
        do_sample=False,
        num_beams=1,
        eos_token_id=sorted(ends),
        pad_token_id=min(ends) if pad is None else pad,
        bos_token_id=tokenizer.bos_token_id,
    )


def _converted(files: ModelFiles, store: Path) -> Path:
    """Folder of the GGUF file's weights in bfloat16, made on first use."""
    import transformers

    version = f"{_CONVERSION}-transformers-{transformers.__version__}"
    folder = store / "converted" / f"{files.path.stem}-{files.sha256[:16]}-{version}"
    if (folder / "source.json").is_file():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".converting-") as scratch:
            made = Path(scratch, "model")
            made.mkdir()
            with _transformers_errors(files):
                convert(files.path, made)
            source = {"name": files.name, "sha256": files.sha256, "conversion": version}
            (made / "source.json").write_text(json.dumps(source, indent=1) + "\n")
            if not folder.exists():  # another process may have been faster
                made.replace(folder)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror or error}") from error
    return folder


def convert(gguf: Path, folder: Path) -> None:
    """Write a GGUF file's weights as bfloat16 safetensors, with its config and tokenizer.

    Tensors are dequantised one by one onto a model without storage, so the peak is the bfloat16
    weights and one tensor in float32 (5.6 GB for 1.5 B parameters).
    """
    import torch
    from safetensors.torch import save_file
    from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    where: dict[str, Any] = {
        "pretrained_model_name_or_path": str(gguf.parent),
        "gguf_file": gguf.name,
    }
    config = AutoConfig.from_pretrained(**where)
    with torch.device("meta"):
        empty = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    tensors = load_gguf_checkpoint(
        str(gguf), return_tensors=True, model_to_load=empty, torch_dtype=torch.bfloat16
    )["tensors"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config.architectures = [type(empty).__name__]
    config.dtype = torch.bfloat16
    config.save_pretrained(folder)
    # not AutoTokenizer, which would parse the whole file a third time for the same tokenizer
    PreTrainedTokenizerFast.from_pretrained(**where).save_pretrained(folder)


@contextmanager
def _transformers_errors(files: ModelFiles) -> Iterator[None]:
    """Turn transformers' complaints about a model into one line that names it."""
    try:
        yield
    except (ImportError, KeyError, NotImplementedError, ValueError, OSError) as error:
        if isinstance(error, InputError):
            raise
        reason = " ".join(str(error).split())[:300]
        raise InputError(f"{files.path}: transformers cannot read this model: {reason}") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Without transformers' bar over weights, which takes longer to read than to run."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
