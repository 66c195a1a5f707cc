"""A study's texts to vectors: with which encoder, in which arithmetic, and where they are kept."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rag_reliability import modelstore
from rag_reliability.artefacts import stage_key
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

    They are written in the cache first and moved when whole, so that a run that was killed goes
    on where it stopped.
    """
    from rag_reliability.retrieval.stream import encode_to

    made_from = [study.corpus_digest, study.model_sha(study.config.encoder), encoder.arithmetic]
    key = stage_key("vectors", {"from": made_from}, source_files(ENCODING))[:16]
    work = study.store.cache / "vectors" / f"{key}.npy"
    busy = f"another run is encoding this corpus into {work}"
    documents = study.corpus.documents
    with locked(work.with_suffix(".lock"), study.store.wait, busy):
        encode_to(
            work,
            (document.content for document in documents),
            encoder,
            total=len(documents),
            about=key,
            progress=True,
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(work, path)
    return np.load(path, mmap_mode="r")
