"""A study's texts to vectors: with which encoder, in which arithmetic, and where they are kept."""

from __future__ import annotations

import os
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rag_reliability import modelstore
from rag_reliability.artefacts import Store, stage_key
from rag_reliability.experiment.study import Study, source_files
from rag_reliability.files import locked

if TYPE_CHECKING:
    from rag_reliability.retrieval.arithmetic import Arithmetic
    from rag_reliability.retrieval.encode import SentenceTransformerEncoder

ENCODING = (
    *(f"retrieval/{name}.py" for name in ("encode", "mean_pooling", "windows")),
    *(f"retrieval/{name}.py" for name in ("arithmetic", "stream")),
    "text.py",  # which characters of a text are read
)
"""Sources that vectors depend on."""
READING = (
    "records.py",
    *(f"datasets/{name}.py" for name in ("read", "beir", "lines", "schema", "trec")),
)
"""Sources that the texts of a corpus depend on."""
ENCODERS = ("torch", "transformers", "sentence-transformers")
"""Libraries that compute vectors."""


def settled(model: Path, dtype: str) -> Arithmetic:
    """The arithmetic that ``dtype`` names; ``auto``: what was found fastest here.

    Raises InputError for an unknown name.
    """
    from rag_reliability.retrieval.arithmetic import checked
    from rag_reliability.retrieval.encode import choose_arithmetic

    return choose_arithmetic(model) if dtype == "auto" else checked(dtype)


def arithmetic(study: Study) -> str:
    """What the study's encoder computes in: the config's word, or what ``auto`` found here."""
    given = study.config.encoder_dtype
    return settled(modelstore.resolve(study.config.encoder).path, given)


def study_encoder(study: Study) -> SentenceTransformerEncoder:
    """The study's encoder, for documents and questions alike."""
    from rag_reliability.retrieval.encode import load_encoder

    path = modelstore.resolve(study.config.encoder).path
    return load_encoder(path, arithmetic=study.config.encoder_dtype)


def write_vectors(study: Study, path: Path, encoder: SentenceTransformerEncoder) -> np.ndarray:
    """The documents' vectors in the file ``path``, float32 (n_docs, dim), memory-mapped.

    They are a stage of their own in the cache: another kind of index over them encodes nothing
    anew. They stay in the work folder until the stage is recorded, so that a run that was killed,
    at whatever moment, goes on where it stopped.
    """
    from rag_reliability.retrieval.stream import encode_to, forget

    made_from = {
        "corpus": study.corpus_digest,
        "encoder": study.model_sha(study.config.encoder),
        "encoder_dtype": encoder.arithmetic,
        "libraries": {name: version(name) for name in ENCODERS},
    }
    key = stage_key("vectors", made_from, source_files((*ENCODING, *READING)))
    work = study.store.cache / "vectors" / f"{key[:16]}.npy"
    busy = f"another run is encoding this corpus into {work}"
    documents, store = study.corpus.documents, study.store

    def build(folder: Path) -> None:
        texts = (document.content for document in documents)
        encode_to(work, texts, encoder, total=len(documents), about=key, progress=True)
        _link(work, folder / path.name)

    with locked(work.with_suffix(".lock"), store.wait, busy):
        own = Store(
            path.with_suffix(".stage"),
            store.cache.parent,
            fresh=store.fresh,
            say=store.say,
            wait=store.wait,
        )
        own.stage("vectors", key, (path.name,), build, meta={"inputs": made_from})
        forget(work)
    (own.run_dir / path.name).replace(path)
    shutil.rmtree(own.run_dir)
    return np.load(path, mmap_mode="r")


def _link(source: Path, target: Path) -> None:
    """A second name for a file, or a copy where the file system has none."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
