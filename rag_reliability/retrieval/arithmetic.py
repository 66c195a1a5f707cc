"""Which arithmetic an encoder computes in, and the choice among them by measurement.

float32 is exact to rounding and comes back anywhere. The others read the same weights coarser:
bfloat16 keeps 8 bits of each number and needs a processor that multiplies it; int8 rounds weights
and activations to 255 steps when a layer is computed (torch's dynamic quantisation).
"""

from __future__ import annotations

import hashlib
import json
import platform
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rag_reliability.files import atomic_write_text, cache_root, locked, pretty_json
from rag_reliability.modelstore import resolve
from rag_reliability.records import InputError

if TYPE_CHECKING:
    from rag_reliability.retrieval.encode import SentenceTransformerEncoder

Arithmetic = Literal["float32", "bfloat16", "int8"]
ARITHMETICS: tuple[Arithmetic, ...] = ("float32", "bfloat16", "int8")
LEAST_COSINE = 0.99
"""How near to its float32 vector every text of the sample must stay."""
_WORTH = 0.9  # a coarser arithmetic must take at most this share of float32's time
_FORMAT = 1  # raise when what is measured changes
_PATIENCE = 600.0  # seconds to wait for another process that measures; it takes a few

_SENTENCES = (
    "Zinc lozenges may shorten a common cold by about a day if they are started early.",
    "The device failed after three weeks, and the seller refused to take it back.",
    "In a trial of 412 adults, blood pressure fell by 6 mmHg with less salt in the diet.",
    "Honestly, I have never seen anything like it, and I have lived here for forty years!",
    "Le vaccin est recommandé aux personnes âgées; parlez-en à votre médecin.",
    "Results: no difference between groups (RR 0.98, 95 % CI 0.81 to 1.19, p = 0.84).",
    "Turn the valve clockwise until it stops, wait ten seconds, then press START twice.",
    "Critics say that the report leaves out the costs, which its authors deny.",
)


def sample() -> list[str]:
    """24 texts of mixed length, about 20 to 240 tokens each, that any encoder is measured on."""
    turned = [_SENTENCES[i:] + _SENTENCES[:i] for i in range(len(_SENTENCES))]
    return [" ".join((row * 2)[:n]) for row in turned for n in (1, 4, 10)]


def apply(module: Any, arithmetic: Arithmetic) -> Any:
    """An encoder's transformer, its linear layers turned to ``arithmetic``; may change ``module``.

    float32 layers go to oneDNN with their weights laid out once, where this torch has it: torch's
    own choice for float32 is MKL, which on some processors reaches half of that.
    """
    import torch

    with warnings.catch_warnings():  # torch means to move what two of these are built on
        warnings.simplefilter("ignore")
        if arithmetic == "bfloat16":
            return module.to(torch.bfloat16)
        if arithmetic == "int8":
            from torch.ao.quantization import per_channel_dynamic_qconfig, quantize_dynamic

            return quantize_dynamic(module, {torch.nn.Linear: per_channel_dynamic_qconfig})
        from torch.utils.mkldnn import to_mkldnn

        return to_mkldnn(module) if torch.backends.mkldnn.is_available() else module


def checked(name: str) -> Arithmetic:
    """``name`` if it is an arithmetic.

    Raises InputError listing those there are.
    """
    for known in ARITHMETICS:
        if name == known:
            return known
    raise InputError(f"unknown arithmetic {name!r}; known: auto, {', '.join(ARITHMETICS)}")


def native_bfloat16() -> bool:
    """Whether this processor multiplies bfloat16; others emulate it, slower than float32."""
    import torch

    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def chosen(
    path: Path,
    load: Callable[[Path, Arithmetic], SentenceTransformerEncoder],
    *,
    cache: Path | None = None,
) -> dict[str, Any]:
    """The fastest arithmetic that keeps every vector of the sample near float32's.

    Measured on first use, by one process while others wait, and kept in ``cache`` (default: ours)
    by machine, torch, threads and weights: whoever asks gets the one choice. Returns a record:
    ``arithmetic``, ``machine``, and ``measured``, for each one tried texts_per_second and
    min_cosine.

    Raises: InputError where another process measures for ten minutes.
    """
    machine = _machine()
    key = hashlib.sha256(json.dumps([_FORMAT, machine, resolve(path).sha256]).encode())
    file = (cache or cache_root()) / "arithmetic" / f"{key.hexdigest()[:24]}.json"
    if (known := _read(file)) is not None:
        return known
    busy = f"another process is measuring which arithmetic is fastest, for {file}"
    with locked(file.with_suffix(".lock"), _PATIENCE, busy):
        if (known := _read(file)) is not None:  # measured while this process waited
            return known
        tried = [a for a in ARITHMETICS if a != "bfloat16" or native_bfloat16()]
        measured = _measured({a: load(path, a) for a in tried})
        record = {"arithmetic": fastest(measured), "machine": machine, "measured": measured}
        atomic_write_text(file, pretty_json(record))
    return record


def fastest(measured: Mapping[str, Mapping[str, float]]) -> str:
    """The name with most texts_per_second whose min_cosine is at least ``LEAST_COSINE``.

    One that is not clearly faster than float32 is not worth its rounding.
    """
    least = measured["float32"]["texts_per_second"] / _WORTH
    good = {
        name: m["texts_per_second"]
        for name, m in measured.items()
        if m["min_cosine"] >= LEAST_COSINE and m["texts_per_second"] >= least
    }
    return max(good, key=lambda name: good[name], default="float32")


def _measured(
    encoders: Mapping[Arithmetic, SentenceTransformerEncoder],
) -> dict[str, dict[str, float]]:
    """Speed and nearness of each; rounds are interleaved, so that a busy moment hits all alike."""
    texts = sample()
    vectors = {name: encoder.encode(texts) for name, encoder in encoders.items()}  # warms up too
    seconds: dict[str, float] = dict.fromkeys(encoders, float("inf"))
    for _ in range(3):
        for name, encoder in encoders.items():
            began = time.perf_counter()
            encoder.encode(texts)
            seconds[name] = min(seconds[name], time.perf_counter() - began)
    cosines = {n: float(np.sum(v * vectors["float32"], axis=1).min()) for n, v in vectors.items()}
    return {
        name: {
            "texts_per_second": round(len(texts) / seconds[name], 1),
            "min_cosine": round(cosines[name], 5),
        }
        for name in encoders
    }


def _machine() -> dict[str, Any]:
    """What the speed of an arithmetic depends on."""
    import torch

    return {
        "processor": platform.machine(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "bfloat16": native_bfloat16(),
        "node": hashlib.sha256(platform.node().encode()).hexdigest()[:12],
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }


def _read(file: Path) -> dict[str, Any] | None:
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if record.get("arithmetic") in ARITHMETICS else None
