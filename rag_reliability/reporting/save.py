"""Writes figures, tables and values: whole or not at all, the same bytes for the same numbers."""

from __future__ import annotations

import io
from pathlib import Path

from matplotlib.figure import Figure

from rag_reliability.files import atomic_write_bytes
from rag_reliability.reporting.style import styled

_PDF = {"CreationDate": None, "Creator": "rag_reliability", "Producer": "rag_reliability"}


def write_whole(path: str | Path, content: bytes | str) -> Path:
    """Write a file whole or not at all, making its folder; returns its path."""
    path = Path(path)
    data = content.encode("utf-8") if isinstance(content, str) else content
    atomic_write_bytes(path, data)
    return path


def save_figure(fig: Figure, stem: str | Path) -> tuple[Path, Path]:
    """Write ``stem``.pdf (fonts embedded, no date) and ``stem``.png (200 dpi); both paths."""
    pdf, png = io.BytesIO(), io.BytesIO()
    with styled():
        fig.savefig(pdf, format="pdf", metadata=_PDF)
        fig.savefig(png, format="png", dpi=200, metadata={"Software": None})
    stem = Path(stem)
    return (
        write_whole(stem.with_name(f"{stem.name}.pdf"), pdf.getvalue()),
        write_whole(stem.with_name(f"{stem.name}.png"), png.getvalue()),
    )
