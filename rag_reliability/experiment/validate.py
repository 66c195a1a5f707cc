"""A user's own corpus, checked before it is used."""

from __future__ import annotations

import warnings
from pathlib import Path

from rag_reliability.datasets.check import summarise
from rag_reliability.datasets.read import read_corpus
from rag_reliability.experiment.study import project_root
from rag_reliability.reliability.priors import load_priors


def validation_text(folder: str, priors: str) -> str:
    """What a corpus folder holds and what in it deserves a second look, as text.

    Raises InputError naming file, line and field of the first thing that is wrong.
    """
    file = project_root() / Path(priors).expanduser()
    known = load_priors(file).known_types
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        corpus = read_corpus(Path(folder).expanduser(), known_types=known, known_in=file)
        summary = summarise(corpus)
    notes = [str(w.message) for w in caught] + list(summary.warnings)
    lines = [
        f"{summary.name}: {summary.n_documents} documents, {summary.n_topics} topics, "
        f"{summary.n_judgements} judgements; nothing wrong",
        "",
        summary.by_type.to_string(index=False),
    ]
    lines += ["", *(f"look at: {note}" for note in notes)] if notes else []
    return "\n".join(lines)
