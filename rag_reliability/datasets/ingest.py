"""A folder of files and a table of sources become documents, one for each chunk of a file.

Chunks are cut by semchunk at paragraphs, then lines, then sentences, and never longer than a number
of words; words are counted by white space, so no tokenizer is needed and the same files give the
same chunks everywhere.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rag_reliability.datasets.ingest_files import KINDS, FileText, read_file
from rag_reliability.datasets.ingest_sources import SourceRow, matched, read_sources
from rag_reliability.datasets.lines import shown
from rag_reliability.datasets.schema import DocumentRow, checked
from rag_reliability.files import sha256_file
from rag_reliability.records import Document, InputError

WORDS = 150
"""Longest chunk: what the default encoder reads whole (256 word pieces) and prompts show uncut."""


@dataclass(frozen=True)
class FileFacts:
    """What was read of one file: its hash, encoding ("" for PDF) and number of chunks."""

    sha256: str
    encoding: str
    chunks: int


@dataclass(frozen=True)
class Ingested:
    """Documents by file and place, and the facts of each file by name."""

    documents: tuple[Document, ...]
    files: Mapping[str, FileFacts]

    def record(self) -> dict[str, Any]:
        """The files' facts as plain values."""
        return {name: asdict(facts) for name, facts in self.files.items()}


def ingest(
    folder: str | Path,
    sources: str | Path,
    *,
    words: int = WORDS,
    encoding: str | None = None,
    known_types: Collection[str] | None = None,
    known_in: str | Path | None = None,
) -> Ingested:
    """Documents of a folder's text, Markdown and PDF files, chunk by chunk.

    sources: CSV with the columns of ``ingest_sources.COLUMNS``; every file needs a row and every
    row a file. words: longest chunk, in words. encoding: of text files that are not UTF-8.
    known_types: source types that a row may give (None: any); known_in: the file of priors that
    they stand in, to name where one does not.

    A chunk's docno is the file's name below the folder, blanks as ``_``, with ``#`` and its number;
    ``place`` says which lines or pages it comes from. The title is the row's, else a Markdown
    file's first heading, else the file's name.

    Raises InputError, one line, for anything that cannot be read or does not match.
    """
    root, table = Path(folder), Path(sources)
    if not root.is_dir():
        raise InputError(f"{root}: expected a folder of {', '.join(KINDS)} files")
    if words < 1:
        raise InputError(f"words = {words}; expected a whole number >= 1")
    rows = read_sources(table, encoding)
    names = _names(root, table)
    found = matched(names, rows)
    if known_types is not None:
        _check_types(found.values(), known_types, known_in)
    documents: list[Document] = []
    facts: dict[str, FileFacts] = {}
    for name in names:
        read = read_file(root / name, encoding)
        own = _documents(name, read, found[name], words)
        documents += own
        facts[name] = FileFacts(sha256_file(root / name), read.encoding, len(own))
    _check_distinct(documents)
    return Ingested(tuple(documents), facts)


def _names(root: Path, table: Path) -> list[str]:
    """Names below the folder of the files that can be read, sorted; others are warned of."""
    files = [
        path
        for path in sorted(root.rglob("*"))
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(root).parts)
        and path.resolve() != table.resolve()
    ]
    chosen = [p.relative_to(root).as_posix() for p in files if p.suffix.lower() in KINDS]
    others = [p.relative_to(root).as_posix() for p in files if p.suffix.lower() not in KINDS]
    if not chosen:
        raise InputError(f"{root}: holds no {', '.join(KINDS)} files")
    if others:
        shown = ", ".join(others[:5]) + (", …" if len(others) > 5 else "")
        message = f"{root}: {len(others)} files of other kinds were passed over: {shown}"
        warnings.warn(message, stacklevel=3)
    return chosen


def _check_types(
    rows: Iterable[SourceRow], known: Collection[str], known_in: str | Path | None
) -> None:
    for row in rows:
        kind = row.values["source_type"]
        if kind not in known:
            place = f" in {known_in}" if known_in else ""
            raise InputError(
                f"{row.where}: field 'source_type': {shown(kind)} has no prior{place}; known: "
                f"{', '.join(known)}; mend the row, or give the type a prior in each spread there"
            )


def _documents(name: str, read: FileText, row: SourceRow, words: int) -> list[Document]:
    stem = "_".join(name.split())
    title = (
        row.values.get("title") or read.title or " ".join(Path(name).stem.replace("_", " ").split())
    )
    documents = []
    for number, (start, end) in enumerate(_chunks(read.text, words), start=1):
        values = {
            **row.values,
            "title": title,
            "docno": f"{stem}#{number:03d}",
            "text": read.text[start:end],
            "place": read.place(start, end),
        }
        documents.append(checked(DocumentRow, values, f"{name} ({row.where})").document())
    return documents


def _chunks(text: str, words: int) -> list[tuple[int, int]]:
    """Where each chunk with a word in it starts and ends."""
    try:
        from semchunk import chunk
    except ImportError as error:
        raise InputError("ingest needs semchunk: pip install 'rag-reliability[ingest]'") from error
    cut: Any = chunk(text, words, _count, memoize=False, offsets=True)
    return [_trimmed(text, a, b) for a, b in cut[1] if any(c.isalnum() for c in text[a:b])]


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The same stretch without white space at its ends."""
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip())


def _count(text: str) -> int:
    return len(text.split())


def _check_distinct(documents: list[Document]) -> None:
    seen: set[str] = set()
    for document in documents:
        if document.docno in seen:
            raise InputError(f"{document.docno}: two files give this docno; rename one of them")
        seen.add(document.docno)
