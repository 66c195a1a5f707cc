"""Carrier wheels: distributions that hold model files as data; read as files, never imported."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path, PurePosixPath

from rag_reliability.modelstore.catalogue import Carriers, Entry, refuse
from rag_reliability.modelstore.files import check

_BLOCK = 1 << 22


def part(carriers: Carriers, n: int) -> Path | None:
    """File ``n`` of the carriers, if that distribution is installed at the pinned version."""
    name, pattern = carriers.part(n)
    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None
    if distribution.version != carriers.version:
        return None
    for file in distribution.files or ():
        if fnmatch(str(PurePosixPath(file)), pattern):
            path = Path(str(distribution.locate_file(file))).resolve()
            return path if path.is_file() else None
    return None


def from_carriers(entry: Entry, target: Path, *, progress: bool) -> Path | None:
    """The model's weights, in place or joined into the cache; None if a carrier is missing."""
    assert entry.carriers is not None
    found = [part(entry.carriers, n) for n in range(1, entry.carriers.parts + 1)]
    parts = [p for p in found if p is not None]
    if len(parts) != len(found):
        return None
    if entry.format == "folder":
        return parts[0]
    folder = target.parent
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".joining-") as scratch:
            whole = Path(scratch, "whole")
            digest = _join(parts, whole, entry.name, progress=progress)
            if entry.format == "zip":
                made = _unzip(whole, Path(scratch, "model"), entry)
            else:
                check(target, entry.sha256, digest)
                made = Path(scratch, "model")
                made.mkdir()
                whole.replace(made / entry.file)
            return _settle(made, folder) / entry.file
    except OSError as error:
        raise refuse(f"{folder}: cannot be written: {error.strerror or error}") from error


def _settle(made: Path, folder: Path) -> Path:
    """Move a finished folder into the cache; another process may have been faster."""
    if folder.exists() and not any(folder.iterdir()):
        folder.rmdir()
    if not folder.exists():
        made.replace(folder)
    return folder


def _join(parts: Sequence[Path], target: Path, label: str, *, progress: bool) -> str:
    """Write ``parts`` one after the other to ``target``; the SHA-256 of the whole."""
    from tqdm import tqdm

    digest = hashlib.sha256()
    total = sum(p.stat().st_size for p in parts)
    bar = tqdm(
        total=total, unit="B", unit_scale=True, desc=f"joining {label}", disable=not progress
    )
    with bar, target.open("wb") as out:
        for part in parts:
            with part.open("rb") as stream:
                while block := stream.read(_BLOCK):
                    digest.update(block)
                    out.write(block)
                    bar.update(len(block))
    return digest.hexdigest()


def _unzip(archive: Path, target: Path, entry: Entry) -> Path:
    """Unpack the folder that holds the weights, and nothing outside it, as ``target``."""
    try:
        zipped = zipfile.ZipFile(archive)
    except zipfile.BadZipFile as error:
        raise refuse(f"model {entry.name!r}: its carriers do not join to a zip file") from error
    with zipped:
        homes = [p.parent for p in map(PurePosixPath, zipped.namelist()) if p.name == entry.file]
        if not homes:
            raise refuse(f"model {entry.name!r}: the joined zip holds no {entry.file}")
        home = min(homes, key=lambda h: (len(h.parts), h))
        for member in zipped.infolist():
            inside = PurePosixPath(member.filename)
            if member.is_dir() or ".." in inside.parts or not inside.is_relative_to(home):
                continue
            out = target / inside.relative_to(home)
            out.parent.mkdir(parents=True, exist_ok=True)
            with zipped.open(member) as stream, out.open("wb") as copy:
                shutil.copyfileobj(stream, copy, _BLOCK)
    with (target / entry.file).open("rb") as stream:
        check(target / entry.file, entry.sha256, hashlib.file_digest(stream, "sha256").hexdigest())
    return target
