"""Adversaries as pure functions corpus → corpus; ``docs/threats.md`` says what each one can do.

A threat adds documents marked adversarial, or changes what adversarial documents declare. It never
touches other documents. All take ``(corpus, rate, seed=…)``: rate 0 gives the corpus back, and for
one seed a larger rate attacks a superset of the same targets. So they compose:

    spoof_labels(flood(identifiable(corpus, 1.0, seed=1), 0.5, n=10, seed=1), 0.35, seed=1)
    combine(corpus, [("identifiable", 1.0), ("flooding", 0.5), ("spoofed", 0.35)], seed=1)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from rag_reliability.records import Corpus, Document, InputError
from rag_reliability.reliability.threat_base import (
    HIGH_TYPES,
    check_rate,
    drawn,
    rng_of,
    share,
)
from rag_reliability.reliability.threat_content import (
    crowd_trusted,
    flood,
    identifiable,
    pad_with_trusted,
    stuff_query,
    twist_trusted,
)
from rag_reliability.reliability.threat_reading import hedge, instruct, mimic_stance

LEAK = 0.2


class Threat(Protocol):
    """What every threat looks like to a loop over ``THREATS``."""

    def __call__(self, corpus: Corpus, rate: float = ..., *, seed: int) -> Corpus:
        """The corpus after an attack on a share ``rate`` of the possible targets."""


def spoof_labels(
    corpus: Corpus,
    rate: float = 1.0,
    *,
    target_types: Sequence[str] = HIGH_TYPES,
    leak: float = 0.0,
    seed: int,
) -> Corpus:
    """``corpus`` with a share ``rate`` of its adversarial documents declaring a high-tier type.

    The adversary knows the taxonomy and which types are trusted, not the topics, the encoder or
    the priors' values. It can write any source type on its own documents; it cannot change their
    text, url or publisher here, or touch anyone else's documents. A check of the source catches all
    but a share ``leak`` of the lies: those come out ``verified``, the others not.

    rate, leak: in [0, 1]; the nearest whole number of documents, half up. For one seed documents
    are nested and keep their new type: a larger rate spoofs a superset, and a larger rate or leak
    verifies a superset. Rate 0 returns ``corpus`` itself. Labels and topics stay.

    Raises: InputError for a rate or leak outside [0, 1] or no target types.
    """
    check_rate(rate, "spoof rate")
    check_rate(leak, "leak")
    if not target_types:
        raise InputError("target_types is empty; expected at least one source type")
    # Sorted by docno, so that the draw does not depend on the corpus's order.
    docnos = sorted(d.docno for d in corpus.documents if d.adversarial)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(docnos))
    types = rng.integers(len(target_types), size=len(docnos))
    n = share(rate, len(docnos))
    n_leaked = share(leak, n)
    spoofed = {docnos[order[i]]: (target_types[types[i]], i < n_leaked) for i in range(n)}
    return _redeclared(
        corpus,
        {
            docno: {"source_type": kind, "verified": leaked}
            for docno, (kind, leaked) in spoofed.items()
        },
    )


def impersonate(
    corpus: Corpus, rate: float = 1.0, *, trusted_types: Sequence[str] = HIGH_TYPES, seed: int
) -> Corpus:
    """A share ``rate`` of the adversarial documents borrow a trusted publisher's type and name.

    The adversary knows who is trusted, and registers a host that only looks like the publisher's:
    the publisher's whole host in front of a domain of its own (agency.gov.pages.example), so that a
    check by substring would believe it. It cannot serve pages from the publisher's host or sign
    with its key. ``verified`` becomes False. A corpus without trusted documents stays as it is.

    Raises: InputError for a rate outside [0, 1] or no trusted types.
    """
    if not trusted_types:
        raise InputError("trusted_types is empty; expected at least one source type")
    models = sorted(
        {
            (d.source, d.source_type, _host_part(d.url))
            for d in corpus.documents
            if d.source_type in trusted_types and d.source and not d.adversarial
        }
    )
    chosen = drawn((d.docno for d in corpus.documents if d.adversarial), rate, seed)
    changes: dict[str, dict[str, object]] = {}
    for docno in chosen if models else ():
        source, kind, host = models[int(rng_of(seed, docno).integers(len(models)))]
        url = f"https://{host}pages-of-record.example/{len(changes)}"
        changes[docno] = {"source": source, "source_type": kind, "url": url, "verified": False}
    return _redeclared(corpus, changes)


THREATS: Mapping[str, Threat] = {
    "identifiable": identifiable,
    "spoofed": spoof_labels,
    "spoofed_leaky": partial(spoof_labels, leak=LEAK),
    "impersonating": impersonate,
    "flooding": flood,
    "query_stuffed": stuff_query,
    "twisted": twist_trusted,
    "padded": pad_with_trusted,
    "crowding": crowd_trusted,
    "instructions": instruct,
    "hedged": hedge,
    "mimicking": mimic_stance,
}


def combine(corpus: Corpus, steps: Sequence[tuple[str, float]], *, seed: int) -> Corpus:
    """The corpus after several threats in turn, each ``(name in THREATS, rate)``.

    Order matters: what a step adds is attacked by the steps after it, so labels are spoofed last.

    Raises: InputError for an unknown name, or a rate outside [0, 1].
    """
    for name, rate in steps:
        if name not in THREATS:
            raise InputError(f"unknown threat {name!r}; known: {', '.join(THREATS)}")
        check_rate(rate, f"{name} rate")
    for name, rate in steps:
        corpus = THREATS[name](corpus, rate, seed=seed)
    return corpus


def _redeclared(corpus: Corpus, changes: Mapping[str, Mapping[str, object]]) -> Corpus:
    """The corpus with fields of some documents changed; itself where none are."""
    if not changes:
        return corpus
    return dataclasses.replace(
        corpus, documents=tuple(_with(d, changes.get(d.docno, {})) for d in corpus.documents)
    )


def _with(document: Document, fields: Mapping[str, object]) -> Document:
    return dataclasses.replace(document, **fields) if fields else document  # type: ignore[arg-type]


def _host_part(url: str) -> str:
    host = url.partition("://")[2].partition("/")[0].rpartition("@")[2].partition(":")[0]
    return f"{host}." if host else ""
