"""A corpus file cut into shards that are encoded one by one, each file whole or absent."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_reliability.artefacts import stage_key
from rag_reliability.experiment.encoding import ENCODING
from rag_reliability.experiment.study import source_files
from rag_reliability.files import atomic_write_bytes, atomic_write_text, pretty_json
from rag_reliability.records import Document, InputError

if TYPE_CHECKING:
    from rag_reliability.retrieval.encode import SentenceTransformerEncoder

SHARD = 4096
"""Documents of a shard: about a minute on two cores, 6 MB of vectors."""
MANIFEST = "manifest.json"
_NAMES = (("documents.jsonl", "docno"), ("corpus.jsonl", "_id"))


@dataclass(frozen=True)
class Shard:
    """Consecutive lines of a corpus file: where they begin, how many bytes, and their sha256."""

    number: int
    file: str
    offset: int
    size: int
    line: int
    rows: int
    sha256: str

    @property
    def name(self) -> str:
        """Stem of the files that this shard becomes."""
        return f"shard-{self.number:06d}"


@dataclass(frozen=True)
class Recipe:
    """How shards are encoded: the model's folder and hash, and the arithmetic."""

    model: str
    sha256: str
    arithmetic: str

    def key(self, shard: Shard) -> str:
        """What a shard's vectors depend on, source code included."""
        inputs = {"lines": shard.sha256, "model": self.sha256, "arithmetic": self.arithmetic}
        return stage_key("shard", inputs, source_files((*ENCODING, "experiment/shards.py")))


def plan(folder: Path, size: int = SHARD) -> Iterator[Shard]:
    """Shards of ``size`` documents of a corpus folder, in order; reads its file once, by lines.

    Raises InputError for a folder without documents.jsonl or corpus.jsonl (BEIR).
    """
    file = corpus_file(folder)
    digest, offset, begin, line, first, rows, number = hashlib.sha256(), 0, 0, 0, 1, 0, 0
    with file.open("rb") as lines:
        for raw in lines:
            offset, line = offset + len(raw), line + 1
            digest.update(raw)
            rows += bool(raw.strip())
            if rows == size:
                yield Shard(
                    number, str(file), begin, offset - begin, first, rows, digest.hexdigest()
                )
                digest, begin, first, rows, number = (
                    hashlib.sha256(),
                    offset,
                    line + 1,
                    0,
                    number + 1,
                )
    if rows:
        yield Shard(number, str(file), begin, offset - begin, first, rows, digest.hexdigest())


def corpus_file(folder: Path) -> Path:
    """The file of documents in a corpus folder, our own layout or BEIR's.

    Raises InputError where there is none.
    """
    for name, _ in _NAMES:
        if (folder / name).is_file():
            return (folder / name).resolve()
    raise InputError(f"{folder}: holds neither documents.jsonl nor corpus.jsonl (BEIR)")


def read_shard(shard: Shard) -> tuple[list[str], list[str]]:
    """Docnos and contents of a shard's documents.

    Raises InputError naming file, line and field, and where the file changed since the plan.
    """
    with Path(shard.file).open("rb") as file:
        file.seek(shard.offset)
        raw = file.read(shard.size)
    if hashlib.sha256(raw).hexdigest() != shard.sha256:
        raise InputError(f"{shard.file}: changed while it was being encoded; start again")
    rows = [
        _row(f"{shard.file}:{shard.line + i}", line)
        for i, line in enumerate(raw.split(b"\n"))
        if line.strip()
    ]
    return [docno for docno, _ in rows], [content for _, content in rows]


def _row(where: str, line: bytes) -> tuple[str, str]:
    name = dict(_NAMES)[Path(where.rsplit(":", 1)[0]).name]
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InputError(f"{where}: not JSON in UTF-8") from error
    given = {key: row.get(key) for key in (name, "text")} if isinstance(row, dict) else {name: None}
    for key, value in given.items():
        if not isinstance(value, str) or not value.strip():
            raise InputError(f"{where}: field {key!r}: expected text that is not empty")
    title = row.get("title") or ""
    return row[name], Document(row[name], str(title), row["text"], "").content


def done(shard: Shard, out: Path, recipe: Recipe) -> bool:
    """Whether a shard's files are there, as ``recipe`` makes them; its record is written last."""
    try:
        record = json.loads((out / f"{shard.name}.json").read_text(encoding="utf-8"))
        return bool(record["key"] == recipe.key(shard) and _vectors_file(out, shard.name).is_file())
    except (OSError, ValueError, KeyError):
        return False


def encode_shard(shard: Shard, out: str, recipe: Recipe) -> dict[str, Any]:
    """Write a shard's vectors and its record into ``out``; returns the record without docnos.

    Done twice, by a worker that was thought dead and by its successor, it writes the same files.

    Raises InputError as ``read_shard``, and for a text that cannot be encoded.
    """
    docnos, texts = read_shard(shard)
    try:
        vectors = _encoder(recipe).encode(texts)
    except InputError as error:
        raise InputError(f"{shard.file}, from line {shard.line} on: {error}") from error
    data = io.BytesIO()
    np.save(data, vectors)
    atomic_write_bytes(_vectors_file(Path(out), shard.name), data.getvalue())
    record = {
        "key": recipe.key(shard),
        "rows": len(docnos),
        "sha256": hashlib.sha256(data.getvalue()).hexdigest(),
        "shard": asdict(shard),
    }
    text = pretty_json(record | {"docnos": docnos})
    atomic_write_text(Path(out) / f"{shard.name}.json", text)
    return record


@lru_cache(maxsize=1)
def _encoder(recipe: Recipe) -> SentenceTransformerEncoder:
    """A worker's encoder, loaded once."""
    from rag_reliability.retrieval.encode import load_encoder

    return load_encoder(recipe.model, arithmetic=recipe.arithmetic)  # type: ignore[arg-type]


def write_manifest(out: Path, recipe: Recipe, shards: list[Shard]) -> int:
    """Say what ``out`` holds, once every shard is there; returns the number of documents."""
    rows = sum(shard.rows for shard in shards)
    record = {
        "documents": rows,
        "shards": [shard.name for shard in shards],
        "model": {"sha256": recipe.sha256, "arithmetic": recipe.arithmetic},
    }
    atomic_write_text(out / MANIFEST, pretty_json(record))
    return rows


def load_shards(out: str | Path) -> Iterator[tuple[list[str], np.ndarray]]:
    """Docnos and vectors, float32 (n, dim) memory-mapped, shard by shard in the corpus' order.

    Raises InputError for an unfinished folder, or a shard that is not what its record says.
    """
    folder = Path(out)
    try:
        names = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["shards"]
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{folder / MANIFEST}: missing or damaged; encode it first") from error
    for name in names:
        yield load_shard(folder, name)


def load_shard(folder: Path, name: str) -> tuple[list[str], np.ndarray]:
    """One shard's docnos and vectors, checked against its record; for a worker that loads them.

    Raises InputError for a shard that is missing or not what its record says.
    """
    file = _vectors_file(folder, name)
    try:
        record = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        with file.open("rb") as data:
            same = hashlib.file_digest(data, "sha256").hexdigest() == record["sha256"]
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{file}: missing or damaged; encode it again") from error
    if not same:
        raise InputError(f"{file}: does not match its checksum; remove it and encode it again")
    return record["docnos"], np.load(file, mmap_mode="r")


def _vectors_file(out: Path, name: str) -> Path:
    return out / f"{name}.npy"
