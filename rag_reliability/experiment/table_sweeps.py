"""As many prior tables as one likes over one search: rankings, and metrics, in array operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from rag_reliability.experiment.ranking import (
    Candidates,
    load_candidates,
    low_tier,
    needed_depth,
)
from rag_reliability.experiment.scoring import adversarial_by_topic
from rag_reliability.experiment.study import Study
from rag_reliability.records import InputError, Ranking
from rag_reliability.reliability.priors import prior_vector
from rag_reliability.reliability.tables import rerank_tables

Table = Mapping[str, float]


def sweep_tables(
    study: Study,
    tables: Sequence[Table] | Mapping[str, Table],
    *,
    found: Candidates | None = None,
    window: int | None = None,
) -> pd.DataFrame:
    """Metrics of the source-aware system under every table, without another search.

    tables: λ by source type, under names or in order. window: rank window; None ranks the whole
    pool, which is exact. found: candidates to rank, at least ``window`` deep in each source type
    (default: the study's own, as deep as that takes).

    Returns: columns table (name or number), qid, metric, value, as ``score_run`` gives them:
    precision@k, adv_share@k, low_tier_share@k. A thousand tables take a few hundredths of a
    second, where ranx would take minutes; a test holds the two equal.

    Raises: InputError for a table that lacks a type of the corpus, a λ outside (0, 1], or
    candidates too shallow for the window.
    """
    study.need_topics()
    if found is None:
        found = load_candidates(study, max(needed_depth(study), window or 0))
    elif window is not None and study.config.index_kind == "flat":
        _check_depth(found, window)
    named = tables if isinstance(tables, Mapping) else dict(enumerate(tables))
    k = min(study.config.k, len(found.corpus.documents))
    docids, _ = _docids(study, found, list(named.values()), k, window)
    marks = _marks(study, found)
    metrics = {
        f"precision@{study.config.k}": _relevant(found, docids).sum(axis=2) / study.config.k,
        **{f"{name}@{study.config.k}": mark[docids].mean(axis=2) for name, mark in marks.items()},
    }
    return _tidy(list(named), found.qids, metrics)


def table_rankings(
    study: Study, found: Candidates, tables: Sequence[Table], depth: int, window: int | None
) -> list[Ranking]:
    """The source-aware ranking under each table: what ``ranking.ranked`` gives one by one."""
    kept = min(depth, window or depth, len(found.corpus.documents))
    docids, scores = _docids(study, found, tables, kept, window)
    return [Ranking(found.qids, d, s) for d, s in zip(docids, scores, strict=True)]


def _docids(
    study: Study, found: Candidates, tables: Sequence[Table], k: int, window: int | None
) -> tuple[np.ndarray, np.ndarray]:
    if not tables:
        raise InputError("no prior tables to sweep over")
    types, codes = np.unique(found.partition, return_inverse=True)
    unknown = study.config.unknown_prior
    priors = np.stack([prior_vector(table, types, unknown_prior=unknown) for table in tables])
    return rerank_tables(found.pool, priors, codes, found.corpus.docnos, k, window=window)


def _check_depth(found: Candidates, window: int) -> None:
    """Refuse a pool that may lack some of the ``window`` most similar documents."""
    types, codes = np.unique(found.partition, return_inverse=True)
    docids = found.pool.docids
    own = np.where(docids < 0, -1, codes[docids])
    for code, kind in enumerate(types.tolist()):
        least = min(window, int((codes == code).sum()))
        deep = int((own == code).sum(axis=1).min(initial=least))
        if deep < least:
            raise InputError(
                f"window = {window}, but the candidates hold only {deep} of {kind!r}; "
                f"load them at least {window} deep"
            )


def _marks(study: Study, found: Candidates) -> dict[str, np.ndarray]:
    """Whether each document counts as adversarial, and as low-tier, bool (n_docs,)."""
    adversarial: set[str] = set().union(*adversarial_by_topic(study).values())
    each = {"adv_share": adversarial, "low_tier_share": low_tier(study)}
    docnos = found.corpus.docnos
    return {name: np.isin(docnos, sorted(marked)) for name, marked in each.items()}


def _relevant(found: Candidates, docids: np.ndarray) -> np.ndarray:
    """Whether each ranked document is relevant (label >= 1) to its topic, like ``docids``."""
    corpus, n_docs = found.corpus, len(found.corpus.documents)
    keys = [
        topic * n_docs + corpus.docid[docno]
        for topic, qid in enumerate(found.qids)
        for docno, label in corpus.qrels.get(qid, {}).items()
        if label > 0
    ]
    known = np.unique(np.array([*keys, -1], dtype=np.int64))
    wanted = np.arange(len(found.qids))[None, :, None] * n_docs + docids
    return known[np.searchsorted(known[:-1], wanted)] == wanted if len(known) > 1 else wanted < 0


def _tidy(
    names: Sequence[str | int], qids: Sequence[str], metrics: Mapping[str, np.ndarray]
) -> pd.DataFrame:
    """Values (n_tables, n_topics) of each metric as rows."""
    parts = [
        pd.DataFrame(
            {
                "table": np.repeat(np.asarray(names), len(qids)),
                "qid": np.tile(np.asarray(qids), len(names)),
                "metric": metric,
                "value": values.ravel(),
            }
        )
        for metric, values in metrics.items()
    ]
    return pd.concat(parts, ignore_index=True)
