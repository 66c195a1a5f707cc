"""Who stands behind the pages of a corpus, by the registry of hosts, and what a prior adds then."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from rag_reliability.experiment.ranking import Candidates, load_candidates, type_prior
from rag_reliability.experiment.study import Study
from rag_reliability.experiment.threats import judged_topics
from rag_reliability.records import Pool
from rag_reliability.reliability.evidence import Evidence
from rag_reliability.reliability.hosts import host_of
from rag_reliability.reliability.provenance import check_corpus
from rag_reliability.reliability.registry import Registry, load_registry
from rag_reliability.reliability.rerank import rerank

REGISTRY = "configs/registry.yaml"
NOBODY = "not in the registry"


def registry_of(bed: Study) -> Registry:
    """The project's registry of publishers."""
    return load_registry(bed.path(REGISTRY), bed.priors.known_types)


def statuses(bed: Study) -> np.ndarray:
    """verified, unverified or contradicted: each document's declared source, str (n_docs,)."""
    return np.array([check.status for check in check_corpus(bed.corpus, registry_of(bed))])


def checked_by_host(bed: Study, evidence: Evidence) -> Evidence:
    """The evidence with ``verified`` as the registry says, whatever the corpus says."""
    valid = evidence.docids >= 0
    verified = statuses(bed) == "verified"
    return replace(evidence, verified=verified[np.where(valid, evidence.docids, 0)] & valid)


def publishers_table(bed: Study) -> pd.DataFrame:
    """Documents by publisher, as the registry names the owners of their hosts.

    Columns publisher, hosts, declared (source types), prior (least to most λ), documents, relevant
    (to any topic), adversarial, marked (as verified in the corpus), verified (by the registry).
    """
    corpus, registry = bed.corpus, registry_of(bed)
    hosts = [host_of(d.url) for d in corpus.documents]
    owners = [registry.at_host(host) if host else None for host in hosts]
    relevant = {d for labels in corpus.qrels.values() for d, label in labels.items() if label > 0}
    frame = pd.DataFrame(
        {
            "publisher": [owner.name if owner else NOBODY for owner in owners],
            "host": hosts,
            "declared": corpus.source_types,
            "prior": type_prior(bed),
            "relevant": [d.docno in relevant for d in corpus.documents],
            "adversarial": corpus.adversarial,
            "marked": [d.verified for d in corpus.documents],
            "verified": statuses(bed) == "verified",
        }
    )
    groups = frame.groupby("publisher")
    table = groups[["relevant", "adversarial", "marked", "verified"]].sum()
    table.insert(0, "documents", groups.size())
    table.insert(0, "prior", groups["prior"].agg(_span))
    table.insert(0, "declared", groups["declared"].agg(lambda kinds: ", ".join(sorted({*kinds}))))
    table.insert(0, "hosts", groups["host"].nunique())
    return table.sort_values("documents", ascending=False).reset_index()


def _span(priors: pd.Series) -> str:
    low, high = priors.min(), priors.max()
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def prior_effect_table(bed: Study) -> pd.DataFrame:
    """In how many topics the prior changes the top k: on the whole corpus, and on parts of it.

    Columns corpus, documents, priors (different λ among them), changed, topics.
    """
    found, checked = load_candidates(bed), statuses(bed) == "verified"
    parts = {
        "every document": np.ones(len(checked), dtype=bool),
        "without the adversarial ones": ~bed.corpus.adversarial,
        "only pages whose host the registry verifies": checked,
    }
    prior, qids = type_prior(bed), judged_topics(bed)
    rows = [
        (
            name,
            int(kept.sum()),
            len(np.unique(prior[kept])),
            changed_topics(found, prior, np.flatnonzero(kept), bed.config.k, qids),
            len(qids),
        )
        for name, kept in parts.items()
    ]
    return pd.DataFrame(rows, columns=["corpus", "documents", "priors", "changed", "topics"])


def changed_topics(
    found: Candidates, prior: np.ndarray, docids: np.ndarray, k: int, qids: tuple[str, ...]
) -> int:
    """Topics whose top k among ``docids``, int64 (n,), is another with the prior than without."""
    if not len(docids):
        return 0
    rows = [found.qids.index(qid) for qid in qids]
    sims = found.query_vecs[rows] @ found.doc_vecs[docids].T
    pool = Pool(np.tile(docids, (len(rows), 1)), sims)
    kept = min(k, len(docids))
    before, after = (
        rerank(pool, prior, qids, found.corpus.docnos, kept, rule=rule).docids
        for rule in ("similarity", "source_aware")
    )
    return int((before != after).any(axis=1).sum())
