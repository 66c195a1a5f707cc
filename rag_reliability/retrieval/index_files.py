"""A partitioned index on disk: vectors that can be mapped, docids, and checksums of all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from rag_reliability.records import InputError
from rag_reliability.retrieval.engines import Engine, Flat, write_engine
from rag_reliability.retrieval.vectors import BLOCK_ROWS

FORMAT = "rag_reliability.partitioned_index"
VERSION = 2

_MAPPED = 1 << 22
"""Bytes from which a file of vectors is mapped into memory rather than read."""


class Labelled(Protocol):
    """A partition as it is saved."""

    @property
    def label(self) -> str:
        """Its name."""

    @property
    def docids(self) -> np.ndarray:
        """Its documents."""

    @property
    def engine(self) -> Engine:
        """What searches it."""


def new_blocks(sizes: Sequence[int], dim: int, folder: str | Path | None) -> list[np.ndarray]:
    """Empty float32 blocks (size, dim): in memory, or mapped from new files in ``folder``."""
    if folder is None:
        return [np.empty((size, dim), dtype=np.float32) for size in sizes]
    Path(folder).mkdir(parents=True, exist_ok=True)
    (Path(folder) / "index.json").unlink(missing_ok=True)
    blocks: list[np.ndarray] = []
    for i, size in enumerate(sizes):
        path = Path(folder) / f"part-{i}.npy"
        path.unlink(missing_ok=True)  # never written through: another index may have mapped it
        blocks.append(
            np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(size, dim))
        )
    return blocks


def write_index(
    folder: Path, partitions: Sequence[Labelled], dim: int, settings: dict[str, Any]
) -> None:
    """Write vectors, docids and, last, ``index.json``: a folder that holds it is a whole index."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.json").unlink(missing_ok=True)
    entries = []
    for i, part in enumerate(partitions):
        vectors, docids = _write_engine(part.engine, folder, i), folder / f"docids-{i}.npy"
        np.save(docids, part.docids)
        entries.append(
            {
                "label": part.label,
                "n_docs": len(part.docids),
                "vectors": {"file": vectors.name, "sha256": _sha256(vectors)},
                "docids": {"file": docids.name, "sha256": _sha256(docids)},
            }
        )
    n_docs = sum(len(part.docids) for part in partitions)
    about = {"format": FORMAT, "version": VERSION, "dim": dim, "n_docs": n_docs}
    text = json.dumps(about | {"settings": settings, "partitions": entries}, indent=1)
    (folder / "index.json").write_text(text + "\n", encoding="utf-8")


def read_index(
    folder: Path,
) -> tuple[dict[str, Any], list[tuple[str, np.ndarray, np.ndarray | Path]]]:
    """What ``write_index`` wrote: the description, and each part's label, docids and vectors.

    Vectors are an array, mapped if large, or the path of a file in faiss's format.

    Raises: InputError, one line, for a missing, foreign or corrupt index.
    """
    about = _read_about(folder / "index.json")
    try:
        parts = [_read_part(folder, entry) for entry in about["partitions"]]
        about["dim"], n_docs = int(about["dim"]), int(about["n_docs"])
    except (KeyError, TypeError, ValueError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{folder}: corrupt index: {reason}; build it again") from error
    docids = np.concatenate([own for _, own, _ in parts]) if parts else np.empty(0)
    if not n_docs or not np.array_equal(np.sort(docids), np.arange(n_docs)):
        raise InputError(f"{folder}: corrupt index: parts do not fit together; build it again")
    return about, parts


def _write_engine(engine: Engine, folder: Path, i: int) -> Path:
    if not isinstance(engine, Flat):
        # A flat block may have been kept here while the partition was built.
        (folder / f"part-{i}.npy").unlink(missing_ok=True)
        write_engine(engine, folder / f"part-{i}.faiss")
        return folder / f"part-{i}.faiss"
    path = folder / f"part-{i}.npy"
    if isinstance(engine.block, np.memmap):
        engine.block.flush()  # it may have been built here
    if not _holds(path, engine.block):
        path.unlink(missing_ok=True)  # never written through: another index may have mapped it
        np.save(path, engine.block)
    return path


def _holds(path: Path, block: np.ndarray) -> bool:
    """Whether a file's rows are those of ``block``; another index may have taken its name."""
    try:
        there = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError):
        return False
    return (there.shape, there.dtype) == (block.shape, block.dtype) and all(
        np.array_equal(there[start : start + BLOCK_ROWS], block[start : start + BLOCK_ROWS])
        for start in range(0, len(block), BLOCK_ROWS)
    )


def _read_part(folder: Path, entry: dict[str, Any]) -> tuple[str, np.ndarray, np.ndarray | Path]:
    path = _verified(folder, entry["vectors"])
    docids = np.load(_verified(folder, entry["docids"]), allow_pickle=False).astype(np.int64)
    if path.suffix == ".faiss":
        return str(entry["label"]), docids, path
    mode: Literal["r"] | None = "r" if path.stat().st_size >= _MAPPED else None
    vectors = np.load(path, mmap_mode=mode, allow_pickle=False)
    if vectors.dtype != np.float32 or vectors.ndim != 2 or not vectors.flags.c_contiguous:
        raise ValueError(f"{path.name} does not hold rows of float32")
    return str(entry["label"]), docids, vectors


def _read_about(path: Path) -> dict[str, Any]:
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path.parent}: no index here (index.json is missing)") from None
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InputError(f"{path}: corrupt: not JSON ({' '.join(str(error).split())})") from error
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise InputError(f"{path}: not an index of this package; expected format {FORMAT!r}")
    if about.get("version") != VERSION:
        raise InputError(
            f"{path}: format version {about.get('version')!r}; expected {VERSION}; build it again"
        )
    return about


def _verified(folder: Path, entry: dict[str, str]) -> Path:
    path = folder / Path(entry["file"]).name  # a hostile index.json names no file elsewhere
    if not path.is_file():
        raise ValueError(f"{path.name} is missing")
    if _sha256(path) != entry["sha256"]:
        raise ValueError(f"{path.name} does not match its checksum")
    return path


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
