"""The catalogue of models: what each one is, its hash, and where copies may come from.

Needs nothing but PyYAML, so that an installer can ask for requirements before anything is there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import yaml

_FORMATS = ("gguf", "folder", "zip")


@dataclass(frozen=True, slots=True)
class Carriers:
    """Distributions whose files, joined in order of n = 1..parts, are a model's file."""

    name: str
    version: str
    file: str
    parts: int = 1

    def part(self, n: int) -> tuple[str, str]:
        """Distribution name and file pattern of part ``n``."""
        return self.name.format(n=n), self.file.format(n=n)

    def requirements(self) -> list[str]:
        """One pip requirement for each distribution, in join order."""
        return [f"{self.part(n)[0]}=={self.version}" for n in range(1, self.parts + 1)]


@dataclass(frozen=True, slots=True)
class Entry:
    """One model of the catalogue; see the head of ``configs/models.yaml`` for the fields."""

    name: str
    kind: str
    format: str = "folder"
    file: str = "model.safetensors"
    sha256: str = ""
    bytes: int = 0
    upstream: str = ""
    revision: str | None = None
    licence: str = ""
    path: str = ""
    carriers: Carriers | None = None


def read_catalogue(path: Path | None = None) -> dict[str, Entry]:
    """Entries by name.

    Raises InputError naming file, model and field for anything malformed.
    """
    source = path or catalogue_path()
    try:
        raw = yaml.safe_load(source.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise refuse(f"{source}: cannot be read as YAML: {' '.join(str(error).split())}") from error
    models = raw.get("models") if isinstance(raw, Mapping) else None
    if not isinstance(models, Mapping):
        raise refuse(f"{source}: expected a mapping under 'models'")
    return {
        str(name): _entry(str(name), value, f"{source}: model {name!r}")
        for name, value in models.items()
    }


def catalogue_path() -> Path:
    """The catalogue in force: $RAG_RELIABILITY_MODELS, configs/models.yaml here or above, or ours.

    Raises InputError when there is none.
    """
    if own := os.environ.get("RAG_RELIABILITY_MODELS"):
        return Path(own).expanduser()
    name, package = Path("configs", "models.yaml"), Path(__file__).resolve().parents[1]
    above = [folder / name for folder in Path.cwd().parents]
    # What an installed package brings along, or in a checkout the original.
    for candidate in (name, *above, package / "assets" / name, package.parent / name):
        if candidate.is_file():
            return candidate
    raise refuse(f"no model catalogue: no {name} here; set RAG_RELIABILITY_MODELS to one")


def model_requirements(names: Iterable[str], catalogue: Path | None = None) -> list[str]:
    """Pip requirements of the carrier wheels of the models called ``names``.

    Raises InputError for a name the catalogue lacks.
    """
    source = catalogue or catalogue_path()
    entries = read_catalogue(source)
    wanted: list[str] = []
    for name in names:
        if name not in entries:
            raise refuse(f"model {name!r}: not in {source} (known: {', '.join(sorted(entries))})")
        carriers = entries[name].carriers
        wanted += carriers.requirements() if carriers else []
    return list(dict.fromkeys(wanted))


def refuse(message: str) -> ValueError:
    """The InputError to raise for bad input."""
    try:  # imported late, as this module also runs where only PyYAML is installed
        from rag_reliability.records import InputError
    except ImportError:
        return ValueError(message)
    return InputError(message)


def _entry(name: str, value: Any, where: str) -> Entry:
    if not isinstance(value, Mapping):
        raise refuse(f"{where}: expected a mapping")
    known = {f.name for f in fields(Entry)} - {"name"}
    if unknown := sorted(map(str, set(value) - known)):
        raise refuse(f"{where}: unknown field {unknown[0]!r}; known: {', '.join(sorted(known))}")
    values = dict(value)
    if values.get("carriers") is not None:
        values["carriers"] = _carriers(values["carriers"], where)
    if values.get("kind") not in ("encoder", "generator"):
        raise refuse(
            f"{where}: field 'kind' = {values.get('kind')!r}, expected encoder or generator"
        )
    entry = Entry(name=name, **values)
    if entry.format not in _FORMATS:
        raise refuse(
            f"{where}: field 'format' = {entry.format!r}, expected one of {', '.join(_FORMATS)}"
        )
    if entry.sha256 and not re.fullmatch(r"[0-9a-f]{64}", str(entry.sha256)):
        raise refuse(
            f"{where}: field 'sha256' = {entry.sha256!r}, expected 64 lower-case hex digits"
        )
    if entry.carriers and not entry.sha256:
        raise refuse(f"{where}: field 'sha256' is missing, and carriers are only used with one")
    if not (entry.path or entry.carriers or entry.upstream):
        raise refuse(f"{where}: expected one of path, carriers, upstream")
    return entry


def _carriers(value: Any, where: str) -> Carriers:
    try:
        carriers = Carriers(**value)
        if type(carriers.parts) is not int or carriers.parts < 1:
            raise ValueError("parts must be a whole number >= 1")
        carriers.requirements()
        return Carriers(carriers.name, str(carriers.version), carriers.file, carriers.parts)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
        raise refuse(
            f"{where}: field 'carriers': expected name, version, file, parts ({error})"
        ) from error
