"""Everything that can be refused before the first notebook starts is refused here."""

from __future__ import annotations

import socket
from collections.abc import Collection
from dataclasses import replace
from importlib.util import find_spec
from urllib.parse import urlsplit

from rag_reliability.experiment.ranking import SYSTEMS
from rag_reliability.experiment.study import Study
from rag_reliability.generation.prompt import ARMS
from rag_reliability.records import InputError

PATIENCE = 3.0
"""Seconds that a Milvus server is given to take a connection."""
_MILVUS_PORT = 19530


def preflight(study: Study, *, answers: bool = True) -> None:
    """Check names, priors, files, corpora and models of a run, cheapest first.

    ``answers``: whether anything is generated, so that the models' weights are needed, and what
    only the later notebooks of a whole run read.

    Raises InputError, one line, for the first thing that is wrong.
    """
    known("answer_systems", study.config.answer_systems, SYSTEMS)
    known("arms", study.config.arms, tuple(ARMS))
    study.priors.table(study.config.spread)
    if study.config.backend == "milvus":
        _milvus(study)
    _named_files(study)
    study.need_topics()
    if answers and not {"yes", "no"} <= {topic.stance for topic in study.corpus.topics}:
        raise InputError(
            f"{study.config.corpus}: a whole run needs topics whose stance is yes and others whose "
            "stance is no; for rankings alone run notebooks/rankings.ipynb"
        )
    study.language  # noqa: B018 (read and checked)
    study.taxonomy  # noqa: B018
    study.model_sha(study.config.encoder)
    if answers:
        _later(study)


def _named_files(study: Study) -> None:
    """The testbed's folder and the file of labelled pairs: every notebook is known by them."""
    bed, pairs = study.config.testbed, study.config.labelled_pairs
    if bed is not None and not study.path(bed).is_dir():
        raise InputError(f"testbed: {bed}: no such folder; null leaves it out")
    if pairs is not None and not study.path(pairs).is_file():
        raise InputError(f"labelled_pairs: {pairs}: no such file; null leaves them out")


def _later(study: Study) -> None:
    """What notebooks 04, 08, 10 and 11 would stop at, after hours of others."""
    from rag_reliability.experiment.labelled import labelled_pairs
    from rag_reliability.experiment.threats import available_rules

    config = study.config
    if config.threat_rules:
        known("threat_rules", config.threat_rules, available_rules())
    if config.labelled_pairs is not None:
        labelled_pairs(study.path(config.labelled_pairs))
    if config.testbed is not None:
        bed = config.model_copy(update={"corpus": config.testbed})
        replace(study, config=bed).need_topics()
    for model in filter(None, (config.generator, config.stance_model)):
        study.model_sha(model)


def _milvus(study: Study) -> None:
    """The address, and whether a server takes connections there, or a file could be written."""
    uri = study.config.milvus_uri
    if not uri:
        raise InputError("backend = milvus needs milvus_uri: http(s)://host:port, or a file *.db")
    if find_spec("pymilvus") is None:
        raise InputError("backend milvus needs pymilvus: pip install 'rag-reliability[milvus]'")
    if "://" not in uri:
        if not uri.endswith(".db"):
            raise InputError(f"milvus_uri {uri!r}: expected http(s)://host:port or a file *.db")
        if not (folder := study.path(uri).parent).is_dir():
            raise InputError(f"milvus_uri {uri!r}: no such folder: {folder}")
        return
    try:
        parts = urlsplit(uri)
        port = parts.port or (443 if parts.scheme == "https" else _MILVUS_PORT)
        socket.create_connection((parts.hostname or "", port), PATIENCE).close()
    except (ValueError, OSError) as error:
        raise InputError(f"milvus_uri {uri!r}: no server answers there: {error}") from error


def known(parameter: str, names: Collection[str], there_are: Collection[str]) -> None:
    """Refuse a name that does not exist.

    Raises InputError naming the parameter, the name and the known ones.
    """
    if not names:
        raise InputError(f"{parameter} is empty; known: {', '.join(there_are)}")
    for name in names:
        if name not in there_are:
            raise InputError(f"{parameter}: unknown {name!r}; known: {', '.join(there_are)}")
