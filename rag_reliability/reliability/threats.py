"""Adversaries against a ranker that trusts declared source types."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from rag_reliability.records import Corpus, InputError


def spoof_labels(
    corpus: Corpus,
    rate: float,
    *,
    target_types: Sequence[str] = ("peer_reviewed", "government"),
    seed: int,
) -> Corpus:
    """``corpus`` with a share ``rate`` of its adversarial documents declaring a high-tier type.

    The adversary knows the taxonomy and which types are trusted, not the topics, the encoder or
    the priors' values. It can write any source type on its own documents; it cannot change their
    text, url or publisher here, touch anyone else's documents, or pass a check of the source:
    ``verified`` becomes False on what it relabels.

    rate: in [0, 1]; the nearest whole number of documents is relabelled, half up. For one seed the
    documents are nested and keep their new type: a larger rate spoofs a superset. Rate 0 returns
    ``corpus`` itself. Labels and topics stay.

    Raises: InputError for a rate outside [0, 1] or no target types.
    """
    if not 0 <= rate <= 1:
        raise InputError(f"spoof rate = {rate}; expected 0 <= rate <= 1")
    if not target_types:
        raise InputError("target_types is empty; expected at least one source type")
    # Sorted by docno, so that the draw does not depend on the corpus's order.
    docnos = sorted(d.docno for d in corpus.documents if d.adversarial)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(docnos))
    types = rng.integers(len(target_types), size=len(docnos))
    n = int(np.floor(rate * len(docnos) + 0.5))
    spoofed = {docnos[order[i]]: target_types[types[i]] for i in range(n)}
    if not spoofed:
        return corpus
    documents = tuple(
        dataclasses.replace(d, source_type=spoofed[d.docno], verified=False)
        if d.docno in spoofed
        else d
        for d in corpus.documents
    )
    return dataclasses.replace(corpus, documents=documents)
