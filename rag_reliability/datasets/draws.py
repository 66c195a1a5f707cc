"""What public sets do not say of their documents, drawn: tier, publisher, verification."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

import numpy as np

from rag_reliability.records import Document, InputError

HIGH_TYPES = ("government", "peer_reviewed")
LOW_TYPES = ("ai_generated", "blog", "user_generated")
LOW_SHARE = 0.48
"""Share of true documents in a low tier, as in trec-hm-answers (476 of 996)."""
VERIFIABLE = 0.8
"""Share of true high-tier documents whose source can be verified."""
_ADVERSARIAL = (0.5, 0.25, 0.25)  # of LOW_TYPES, as in trec-hm-answers (440, 223, 241 of 904)
_HOSTS = {"government": 6, "peer_reviewed": 12, "ai_generated": 40, "blog": 40, "user_generated": 6}

Flip = Callable[[str], str | None]
"""A text turned into its contrary, or None where nothing in it can be turned."""


@dataclasses.dataclass(frozen=True)
class Draw:
    """How what a set does not say is filled in.

    seed: of all draws. flip: what turns a text into its contrary. low_share: share of true
    documents in a low tier. verifiable: share of true high-tier documents whose source can be
    verified. Both in [0, 1].

    Raises InputError for a share outside [0, 1].
    """

    seed: int = 0
    flip: Flip | None = None
    low_share: float = LOW_SHARE
    verifiable: float = VERIFIABLE

    def __post_init__(self) -> None:
        for name in ("low_share", "verifiable"):
            if not 0 <= (share := getattr(self, name)) <= 1:
                raise InputError(f"{name} = {share}; expected 0 <= {name} <= 1")


def with_drawn_sources(documents: Iterable[Document], draw: Draw) -> tuple[Document, ...]:
    """``documents`` with source type, publisher, url and verification drawn at random.

    An adversarial document gets a low tier (half of them ``ai_generated``) and is not verified. Any
    other gets a low tier with probability ``low_share``, else a high one, each tier as likely, and
    is verified with probability ``verifiable`` where its tier is high. What a document says has no
    part in its draw, nor has the corpus's order: draws go by docno.
    """
    documents = tuple(documents)
    docnos = sorted(d.docno for d in documents)
    draws = np.random.default_rng([draw.seed, 0]).random((len(docnos), 3))
    by_docno = dict(zip(docnos, draws.tolist(), strict=True))
    typed = tuple(_typed(d, draw, *by_docno[d.docno]) for d in documents)
    return with_drawn_hosts(typed, draw.seed)


def _typed(document: Document, draw: Draw, low: float, which: float, checked: float) -> Document:
    if document.adversarial:
        kind = LOW_TYPES[int(np.searchsorted(np.cumsum(_ADVERSARIAL), which, "right"))]
        return dataclasses.replace(document, source_type=kind, verified=False)
    types = LOW_TYPES if low < draw.low_share else HIGH_TYPES
    kind = types[int(which * len(types))]
    verified = types is HIGH_TYPES and checked < draw.verifiable
    return dataclasses.replace(document, source_type=kind, verified=verified)


def with_drawn_hosts(documents: Iterable[Document], seed: int) -> tuple[Document, ...]:
    """``documents`` with made-up publishers and urls, a few dozen for each source type.

    The ``.example`` hosts' names say nothing of the type; true and adversarial documents of a type
    share them.
    """
    documents = tuple(documents)
    rng = np.random.default_rng([seed, 1])
    numbers = rng.permutation(1000)
    first = dict(zip(_HOSTS, np.cumsum([0, *_HOSTS.values()]).tolist(), strict=False))
    docnos = sorted(d.docno for d in documents)
    picks = dict(zip(docnos, rng.random(len(docnos)).tolist(), strict=True))
    hosted = []
    for d in documents:
        row = first[d.source_type] + int(picks[d.docno] * _HOSTS[d.source_type])
        host = f"site{numbers[row]:03d}.example"
        hosted.append(dataclasses.replace(d, source=host, url=f"https://{host}/{d.docno}"))
    return tuple(hosted)


def with_verified_share(
    documents: Iterable[Document], share: float, seed: int
) -> tuple[Document, ...]:
    """``documents`` of which a random share of those marked verified stays so.

    For one seed the documents that stay are nested: a larger share keeps a superset.
    """
    documents = tuple(documents)
    docnos = sorted(d.docno for d in documents if d.verified)
    draws = np.random.default_rng([seed, 2]).random(len(docnos)).tolist()
    stays = {docno for docno, draw in zip(docnos, draws, strict=True) if draw < share}
    return tuple(dataclasses.replace(d, verified=d.docno in stays) for d in documents)


def some(docnos: Iterable[str], share: float, seed: int) -> set[str]:
    """A random share of distinct ``docnos``, each kept by its own draw; nested in ``share``."""
    ordered = sorted(set(docnos))
    draws = np.random.default_rng([seed, 3]).random(len(ordered)).tolist()
    return {docno for docno, draw in zip(ordered, draws, strict=True) if draw < share}


def flipped_copies(documents: Iterable[Document], flip: Flip) -> tuple[Document, ...]:
    """Adversarial copies of ``documents``, named ``<docno>-flipped``, where ``flip`` finds a way.

    They claim no source of the original's: publisher, url, date and verification are gone.
    """
    copies = []
    for d in documents:
        text = flip(d.text)
        if text is not None and text != d.text:
            kind = LOW_TYPES[0]
            copies.append(
                Document(f"{d.docno}-flipped", d.title, text, source_type=kind, adversarial=True)
            )
    return tuple(copies)
