"""Text, Markdown and PDF files as text whose lines or pages can be found again."""

from __future__ import annotations

import codecs
import logging
import warnings
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rag_reliability.records import InputError
from rag_reliability.text import plain

if TYPE_CHECKING:
    from pypdf import PdfReader

TEXT, PDF = (".txt", ".text", ".md", ".markdown"), (".pdf",)
KINDS = (*TEXT, *PDF)
_PAGE = "\n\n"
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True)
class FileText:
    """A file's text, and where its units (lines or pages) start in it.

    starts: offsets, ascending from 0. unit: ``line`` or ``page``. encoding: "" for PDF.
    """

    text: str
    starts: Sequence[int]
    unit: str
    encoding: str
    title: str = ""

    def place(self, start: int, end: int) -> str:
        """Where characters ``start`` to ``end`` stand: ``lines 3-17``, ``page 2``."""
        first, last = (bisect_right(self.starts, at) for at in (start, max(start, end - 1)))
        return f"{self.unit} {first}" if first == last else f"{self.unit}s {first}-{last}"


def read_file(path: Path, encoding: str | None = None) -> FileText:
    """The text of one file, by its ending.

    Raises InputError, one line, for a file that is binary, damaged, encrypted, in an encoding that
    nobody named, or without a word to read.
    """
    found = _pdf(path) if path.suffix.lower() in PDF else _text(path, encoding)
    if not any(c.isalnum() for c in found.text):
        why = "; it may be scanned: recognise its text first" if found.unit == "page" else ""
        raise InputError(f"{path}: holds no text{why}")
    return found


def decoded(path: Path, encoding: str | None) -> tuple[str, str]:
    """A text file's characters and its encoding; lines end with ``\\n``.

    A byte order mark decides; without one it is UTF-8, or else ``encoding`` if that is given.
    Nothing is guessed: bytes that fit no encoding told are refused.

    Raises InputError naming the first byte that does not fit.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    marked = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    if marked is None and b"\0" in data:
        raise InputError(f"{path}: is a binary file (a zero byte at {data.index(0) + 1})")
    tried = [marked] if marked else ["utf-8", *([encoding] if encoding else [])]
    for number, name in enumerate(tried, start=1):
        try:
            text = data.decode(name)
        except UnicodeDecodeError as error:
            if number == len(tried):
                at = f"0x{data[error.start]:02x} at byte {error.start + 1}"
                raise InputError(
                    f"{path}: not {' or '.join(tried)} ({at}); say --encoding, such as cp1252"
                ) from error
        except LookupError as error:
            raise InputError(f"unknown encoding {name!r}") from error
        else:
            return text.replace("\r\n", "\n").replace("\r", "\n"), name.removesuffix("-sig")
    raise AssertionError("one of the encodings returns or raises")


def _text(path: Path, encoding: str | None) -> FileText:
    raw, used = decoded(path, encoding)
    text = plain(raw)
    starts = [0, *(at + 1 for at, char in enumerate(text) if char == "\n")]
    title = ""
    if path.suffix.lower() in (".md", ".markdown"):
        heads = (line[2:].strip() for line in text.splitlines() if line.startswith("# "))
        title = next(heads, "")
    return FileText(text, starts, "line", used, title)


def _pdf(path: Path) -> FileText:
    pages = _pages(path)
    starts, at = [], 0
    for page in pages:
        starts.append(at)
        at += len(page) + len(_PAGE)
    found = FileText(_PAGE.join(pages), starts or [0], "page", "")
    blank = [str(n) for n, page in enumerate(pages, start=1) if not page.strip()]
    if blank and len(blank) < len(pages):
        warnings.warn(f"{path}: no text on page {', '.join(blank)}", stacklevel=4)
    return found


def _pages(path: Path) -> list[str]:
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError
    except ImportError as error:
        raise InputError("PDF files need pypdf: pip install 'rag-reliability[ingest]'") from error
    logging.getLogger("pypdf").setLevel(logging.ERROR)  # repairs that it makes are no news
    try:
        reader = PdfReader(path)
        _unlock(reader, path)
        return [plain(page.extract_text()).strip() for page in reader.pages]
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except InputError:
        raise
    # A damaged file raises whatever its damage leads the parser to, and not only PyPdfError.
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        what = " ".join(str(error).split())[:120]
        raise InputError(f"{path}: is no PDF that can be read: {what}") from error


def _unlock(reader: PdfReader, path: Path) -> None:
    """Some PDFs are encrypted with an empty password, against printing and not reading."""
    if reader.is_encrypted and not reader.decrypt(""):
        raise InputError(f"{path}: is encrypted; save a copy without its password")
