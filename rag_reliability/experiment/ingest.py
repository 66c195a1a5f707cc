"""A corpus folder made from a folder of files, and a record of what went into it."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from rag_reliability.datasets.ingest import WORDS, ingest
from rag_reliability.datasets.write import write_corpus
from rag_reliability.experiment.study import project_root
from rag_reliability.files import atomic_write_text, pretty_json
from rag_reliability.records import Corpus, InputError
from rag_reliability.reliability.priors import load_priors

RECORD = "ingest.json"


def ingest_folder(
    folder: str,
    sources: str,
    out: str,
    *,
    priors: str,
    words: int = WORDS,
    encoding: str | None = None,
) -> str:
    """Write documents.jsonl and ``ingest.json`` into a new corpus folder; returns what to do next.

    Topics and qrels are left empty, to be written by hand. ``ingest.json``: hash, encoding and
    chunks of each file, and the libraries that cut them.

    Raises InputError, one line, for bad input, a source type without a prior, or a folder that
    already holds a corpus.
    """
    target = Path(out).expanduser()
    if any((target / name).exists() for name in ("documents.jsonl", "corpus.jsonl")):
        raise InputError(f"{target}: already holds a corpus; choose another folder")
    file = project_root() / Path(priors).expanduser()
    known = load_priors(file).known_types
    made = ingest(
        Path(folder).expanduser(),
        Path(sources).expanduser(),
        words=words,
        encoding=encoding,
        known_types=known,
        known_in=file,
    )
    write_corpus(Corpus(target.name, made.documents), target)
    libraries = {name: version(name) for name in ("semchunk", "pypdf")}
    record = {"words": words, "libraries": libraries, "files": made.record()}
    atomic_write_text(target / RECORD, pretty_json(record))
    return (
        f"{out}: {len(made.documents)} documents from {len(made.files)} files\n"
        f"next: rag-reliability validate {out}\n"
        f'      rag-reliability search "a question" -p corpus {out}'
    )
