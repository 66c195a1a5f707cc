"""Index, systems and rankings: the retrieval half of a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_reliability.datasets.trec import read_run, write_run
from rag_reliability.experiment.backends import index_settings, open_backend
from rag_reliability.experiment.encoding import (
    ENCODERS,
    ENCODING,
    READING,
    arithmetic,
    study_encoder,
    write_vectors,
)
from rag_reliability.experiment.study import Study
from rag_reliability.records import Corpus, Pool, Ranking
from rag_reliability.reliability.priors import effective_types, prior_vector
from rag_reliability.reliability.rerank import rerank
from rag_reliability.reliability.smoothing import smooth_prior

if TYPE_CHECKING:  # a search ranks without tables: pandas loads where one is made
    import pandas as pd

    from rag_reliability.reliability.feedback import CrossFitted

SYSTEMS = (
    "similarity",
    "source_aware_3k",
    "source_aware",
    "source_aware_smoothed",
    "source_aware_adaptive",
)
RECALL_DEPTH = 15


@dataclass(frozen=True)
class Candidates:
    """What ranking needs: every topic's pool and the vectors behind it.

    doc_vecs: float32 (n_docs, dim) unit norm. partition: str (n_docs,), the type each counts as.
    """

    corpus: Corpus
    partition: np.ndarray
    doc_vecs: np.ndarray
    query_vecs: np.ndarray
    pool: Pool

    @property
    def qids(self) -> tuple[str, ...]:
        """Topic names, in row order."""
        return tuple(topic.qid for topic in self.corpus.topics)


@dataclass(frozen=True)
class System:
    """A way to rank: prior (n_docs,) or (n_topics, n_docs), rank window (None: no limit), rule."""

    prior: np.ndarray
    window: int | None
    rule: str = "source_aware"


def partitions(study: Study) -> np.ndarray:
    """Source type that each document counts as, str (n_docs,): the index's partitions."""
    corpus = study.corpus
    return effective_types(corpus.source_types, corpus.sources, study.priors.sources)


def index_stage(study: Study) -> Path:
    """Encode documents and topics and save the partitioned index; returns its folder."""

    def build(folder: Path) -> None:
        from rag_reliability.retrieval.index import PartitionedIndex

        encoder, index = study_encoder(study), folder / "index"
        doc_vecs = write_vectors(study, index / "doc_vecs.npy", encoder)
        how = index_settings(study.config)
        PartitionedIndex.build(doc_vecs, partitions(study), folder=index, **how).save(index)
        queries = [t.query for t in study.corpus.topics]
        query_vecs = encoder.encode(queries) if queries else doc_vecs[:0]
        np.save(index / "query_vecs.npy", query_vecs)

    study.stage(
        "index",
        inputs={
            "corpus": study.corpus_digest,
            "encoder": study.model_sha(study.config.encoder),
            "encoder_dtype": arithmetic(study),
            "overrides": dict(study.priors.sources),
            "index": index_settings(study.config),
        },
        code=(
            *(*ENCODING, *READING, "retrieval/index.py", "retrieval/index_files.py"),
            *("retrieval/engines.py", "retrieval/vectors.py"),
        ),
        libraries=("faiss-cpu", *ENCODERS),
        outputs=("index",),
        build=build,
    )
    return study.run_dir / "index"


def load_candidates(study: Study, depth: int | None = None) -> Candidates:
    """The saved vectors, searched ``depth`` deep in each partition (default: ``needed_depth``).

    The pool is then exact for every prior per type and for windows up to ``depth`` (DESIGN §4),
    if the index is flat.
    """
    folder, partition = index_stage(study), partitions(study)
    query_vecs = np.load(folder / "query_vecs.npy")
    with open_backend(study, partition) as backend:
        pool = backend.search(query_vecs, depth or needed_depth(study))
    # Mapped, not read: a second copy of a large corpus's vectors would not fit.
    doc_vecs = np.load(folder / "doc_vecs.npy", mmap_mode="r")
    return Candidates(study.corpus, partition, doc_vecs, query_vecs, pool)


def type_prior(study: Study, table: Mapping[str, float] | None = None) -> np.ndarray:
    """Prior of each document, (n_docs,), under ``table`` or else the config's spread."""
    return prior_vector(
        study.table if table is None else table,
        partitions(study),
        unknown_prior=study.config.unknown_prior,
    )


def low_tier(study: Study) -> set[str]:
    """Docnos of low-tier documents: by default a prior of at most .5 in the `current` spread."""
    prior = type_prior(study, study.priors.table(study.taxonomy.reference))
    return set(study.corpus.docnos[prior <= study.taxonomy.low_at].tolist())


def needed_depth(study: Study) -> int:
    """Depth of each partition's candidates that makes every system of this config exact."""
    config = study.config
    return max(RECALL_DEPTH, config.k * config.expansion, _window(study) or 0)


def _window(study: Study) -> int | None:
    return study.config.window if isinstance(study.config.window, int) else None


def adaptive(study: Study, found: Candidates, rate: float | None = None) -> CrossFitted:
    """Each topic's prior table learned from other topics' feedback only, and the trajectories."""
    from rag_reliability.reliability.feedback import FeedbackSettings, Oracle, cross_fitted

    config = study.config
    # Types the table lacks start from unknown_prior, which they have in every other system.
    missing = set(found.partition.tolist()) - set(study.table)
    table = {**study.table, **{t: config.unknown_prior or 1.0 for t in sorted(missing)}}
    oracle = Oracle.from_qrels(found.qids, study.corpus.docnos, found.partition, study.corpus.qrels)
    settings = FeedbackSettings(
        rate=config.feedback_rate if rate is None else rate,
        epochs=config.feedback_epochs,
        k=config.k,
        window=_window(study),
        seed=config.seed,
    )
    return cross_fitted(found.pool, table, oracle, settings, config.folds)


def similarity_system(study: Study) -> System:
    """The baseline: similarity alone."""
    return System(np.ones(len(study.corpus.documents)), None, rule="similarity")


def systems(study: Study, found: Candidates) -> dict[str, System]:
    """The study's five systems under this config."""
    from rag_reliability.reliability.feedback import prior_rows

    config = study.config
    prior, window = type_prior(study), _window(study)
    study_window = config.expansion * config.k
    smoothed = smooth_prior(
        prior, found.doc_vecs, config.smoothing_neighbours, config.smoothing_alpha
    )
    return {
        "similarity": similarity_system(study),
        "source_aware_3k": System(prior, study_window),
        "source_aware": System(prior, window),
        # Smoothed priors differ within a type, where no pool is exact: they keep a window.
        "source_aware_smoothed": System(smoothed, window or study_window),
        "source_aware_adaptive": System(
            prior_rows(adaptive(study, found).tables, found.partition), window
        ),
    }


def ranked(found: Candidates, system: System, depth: int) -> Ranking:
    """A system's ranking, ``depth`` deep or as deep as its window reaches."""
    kept = min(depth, system.window or depth, len(found.corpus.documents))
    return rerank(
        found.pool,
        system.prior,
        found.qids,
        found.corpus.docnos,
        kept,
        rule=system.rule,
        window=system.window,
    )


_RANK_FIELDS = (
    *("k", "window", "expansion", "spread", "unknown_prior", "smoothing_alpha"),
    *("smoothing_neighbours", "feedback_rate", "feedback_epochs", "folds", "seed"),
)


def rank_inputs(study: Study) -> dict[str, Any]:
    """What any ranking of this study depends on; makes the index if it is not there.

    Raises InputError for a corpus without topics or qrels.
    """
    study.need_topics()
    index_stage(study)
    return {
        "index": study.key("index"),
        "backend": study.config.backend,
        "tables": {spread: dict(table) for spread, table in study.priors.spreads.items()},
        **{name: getattr(study.config, name) for name in _RANK_FIELDS},
    }


def rank_stage(study: Study) -> Path:
    """Rank every topic with every system: ``runs/*.trec``, ``traces/*.parquet``, trajectories."""

    def build(folder: Path) -> None:
        found = load_candidates(study)
        depth = max(study.config.k, RECALL_DEPTH)
        (folder / "runs").mkdir(parents=True)
        (folder / "traces").mkdir()
        for name, system in systems(study, found).items():
            ranking = ranked(found, system, depth)
            write_run(folder / "runs" / f"{name}.trec", ranking, study.corpus.docnos, name)
            trace(study, found, system).to_parquet(folder / "traces" / f"{name}.parquet")
        adaptive(study, found).trajectory.to_parquet(folder / "traces" / "feedback.parquet")

    study.stage(
        "rank",
        inputs=rank_inputs(study),
        code=("reliability", "retrieval", "datasets", "records.py", "experiment/ranking.py"),
        libraries=("numpy", "faiss-cpu"),
        outputs=(
            *(f"runs/{s}.trec" for s in SYSTEMS),
            *(f"traces/{s}.parquet" for s in SYSTEMS),
            "traces/feedback.parquet",
        ),
        build=build,
    )
    return study.run_dir


def trace(study: Study, found: Candidates, system: System) -> pd.DataFrame:
    """Every candidate's way from similarity rank to final rank, with its label and marks.

    Similarity ranks beyond ``needed_depth`` are ranks within the pool, not in the corpus.
    """
    from rag_reliability.reliability.trace import rank_trace

    corpus = study.corpus
    frame = rank_trace(
        found.pool,
        system.prior,
        found.qids,
        corpus.docnos,
        corpus.source_types,
        study.config.k,
        rule=system.rule,
        window=system.window,
    )
    pairs = zip(frame["qid"], frame["docno"], strict=True)
    frame["label"] = [corpus.qrels.get(qid, {}).get(docno, 0) for qid, docno in pairs]
    frame["adversarial"] = corpus.adversarial[frame["docid"].to_numpy()]
    return frame


def load_runs(study: Study) -> dict[str, dict[str, list[str]]]:
    """``runs[system][qid]``: docnos best first, from the saved run files."""
    rank_stage(study)
    runs = {name: read_run(study.run_dir / "runs" / f"{name}.trec") for name in SYSTEMS}
    return {
        name: run.groupby("qid", sort=False)["docno"].agg(list).to_dict()
        for name, run in runs.items()
    }


def load_trace(study: Study, system: str) -> pd.DataFrame:
    """The rank trace of one system, from its file."""
    import pandas as pd

    rank_stage(study)
    return pd.read_parquet(study.run_dir / "traces" / f"{system}.parquet")
