"""Vectors of a stream of texts, written to one .npy file block by block; resumable after a kill."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np
from tqdm import tqdm

from rag_reliability.files import atomic_write_text, write_errors
from rag_reliability.records import InputError

BLOCK = 1024
"""Texts encoded together and then on disk: what a kill can lose, and about what memory holds."""
_REMEMBERED = 1 << 20
"""Distinct texts whose row is remembered, so that a repeated text gets the very same vector."""


class Vectoriser(Protocol):
    """The part of an encoder that is needed here."""

    dim: int

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors, float32 (n_texts, dim)."""
        ...


@dataclass
class _Rows:
    """Where each text stands that was seen, and the chain of hashes over all of them."""

    chain: str = ""
    row: dict[bytes, int] = field(default_factory=dict)

    def add(self, texts: Sequence[str], start: int) -> list[tuple[int, int]]:
        """Take in a block of texts; returns (place in block, earlier row) of those seen before."""
        digest, repeats = hashlib.sha256(self.chain.encode()), []
        for i, text in enumerate(texts):
            name = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
            digest.update(name)
            known = self.row.get(name[:16])
            if known is not None and known < start:
                repeats.append((i, known))
            elif known is None and len(self.row) < _REMEMBERED:
                self.row[name[:16]] = start + i
        self.chain = digest.hexdigest()
        return repeats


def encode_to(
    path: str | Path,
    texts: Iterable[str],
    encoder: Vectoriser,
    *,
    total: int | None = None,
    block: int = BLOCK,
    about: str = "",
    progress: bool = False,
) -> np.ndarray:
    """Vectors of ``texts`` in the file ``path``; returns it, memory-mapped, float32 (n, dim).

    Memory holds one block of texts and vectors, whatever the number of texts. Rows are written
    beside ``path`` under another name, and a small file, ``path`` with .json, says how many are
    whole. A run that was killed goes on from there when it is called again with the same texts, and
    the bytes are those of a run that was not; a finished file is found again, and nothing encoded,
    until ``forget`` drops that record. ``about`` names what else the vectors depend on (model,
    arithmetic): work begun under another name is thrown away. One process at a time.

    total: number of texts, for the progress bar alone. Raises InputError for a text that cannot
    be encoded, for work that was begun with other texts, and for a full disk.
    """
    path = Path(path)
    work = _Work(path, f"{about} dim={encoder.dim} block={block}", encoder.dim)
    rows, n = _Rows(), 0
    with write_errors(path), work.opened() as file, _bar(total, work.done, progress) as bar:
        for chunk in _blocks(texts, block):
            repeats, begin, n = rows.add(chunk, n), n, n + len(chunk)
            if n <= work.done:  # written before the run was killed
                if n == work.done:
                    work.check(n, rows.chain)
                continue
            if begin < work.done or work.whole:  # all was written, and now there are more texts
                raise work.other_texts()
            work.write(file, begin, _vectors(encoder, chunk, begin), repeats)
            work.note(file, n, rows.chain)
            bar.update(len(chunk))
        work.check(n, rows.chain)
        work.finish(file, n)
    return np.load(path, mmap_mode="r" if n else None)


def forget(path: Path) -> None:
    """Drop the record by which ``encode_to`` would find what it wrote to ``path``, and the file."""
    _state(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def _state(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


class _Work:
    """The file, first under another name: a .npy header, then whole rows; and its record.

    The record says how many rows there are, of what, and whether these are all.
    """

    def __init__(self, path: Path, about: str, dim: int) -> None:
        self.path, self.about, self.dim = path, about, dim
        self.partial = path.with_name(f"{path.name}.partial")
        self.state = _state(path)
        self._head_size = len(self._header(0))
        self.file, self.done, self.chain = self._begun()
        self.whole = self.file == path

    def _begun(self) -> tuple[Path, int, str]:
        """The file to go on with, its whole rows, and the hash over their texts."""
        try:
            state = json.loads(self.state.read_text(encoding="utf-8"))
            file = self.path if state["whole"] and not self.partial.exists() else self.partial
            rows, chain = int(state["rows"]), str(state["chain"])
            if state["about"] == self.about and file.stat().st_size >= self._at(rows):
                return file, rows, chain
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return self.partial, 0, ""

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """The file, cut back to its whole rows."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("r+b" if self.done or self.whole else "w+b") as file:
            if not self.done and not self.whole:
                self.state.unlink(missing_ok=True)
                file.write(self._header(0))
            file.truncate(self._at(self.done))
            yield file

    def check(self, n: int, chain: str) -> None:
        """Refuse to go on with other texts than those of the rows that are there."""
        if n < self.done or (n == self.done and chain != self.chain):
            raise self.other_texts()

    def other_texts(self) -> InputError:
        """What to raise where the rows that are there are not of these texts."""
        return InputError(f"{self.file}: was begun with other texts; remove it to start anew")

    def write(
        self, file: BinaryIO, begin: int, vectors: np.ndarray, repeats: list[tuple[int, int]]
    ) -> None:
        """Rows from ``begin`` on; a repeated text takes the row it had."""
        for place, row in repeats:
            file.seek(self._at(row))
            vectors[place] = np.frombuffer(file.read(self.dim * 4), dtype="<f4")
        file.seek(self._at(begin))
        file.write(vectors.astype("<f4").tobytes())

    def note(self, file: BinaryIO, n: int, chain: str) -> None:
        """Say that ``n`` rows are whole, once they are on disk."""
        file.flush()
        os.fsync(file.fileno())
        self.done, self.chain = n, chain
        self._record(whole=False)

    def _record(self, *, whole: bool) -> None:
        state = {"about": self.about, "rows": self.done, "chain": self.chain, "whole": whole}
        atomic_write_text(self.state, json.dumps(state) + "\n")

    def finish(self, file: BinaryIO, n: int) -> None:
        """The header with its number of rows, and the file under its own name."""
        if self.whole:
            return
        file.seek(0)
        file.write(self._header(n))
        file.flush()
        os.fsync(file.fileno())
        self._record(whole=True)  # before it has its name: whichever of the two is there, counts
        self.partial.replace(self.path)

    def _at(self, row: int) -> int:
        return self._head_size + row * self.dim * 4

    def _header(self, n: int) -> bytes:
        """A .npy header; numpy leaves room in it, so that its length does not depend on ``n``."""
        head = io.BytesIO()
        shape = {"descr": "<f4", "fortran_order": False, "shape": (n, self.dim)}
        np.lib.format.write_array_header_1_0(head, shape)
        return head.getvalue()


def _vectors(encoder: Vectoriser, chunk: Sequence[str], begin: int) -> np.ndarray:
    try:
        return encoder.encode(chunk)
    except InputError as error:
        raise InputError(f"in the texts from number {begin} on: {error}") from error


def _blocks(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    source = iter(texts)
    while chunk := list(islice(source, size)):
        yield chunk


def _bar(total: int | None, done: int, progress: bool) -> tqdm:
    """Rate and time left count what this run encodes, not what it found."""
    return tqdm(total=total, initial=done, desc="encode", unit="text", disable=not progress)
