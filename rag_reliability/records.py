"""The types that pass between stages. Stands on the ground: imports nothing of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

Qrels = Mapping[str, Mapping[str, int]]
"""Judgements: ``qrels[qid][docno]`` is the label, 0 (not relevant) to 3."""


class InputError(ValueError):
    """Bad input from the user; the message is one line that names what is wrong and where."""


@dataclass(frozen=True, slots=True)
class Document:
    """One passage of the corpus and what is known of where it comes from.

    place: where in its file the passage stands, such as ``lines 3-17`` or ``page 2``; mostly "".
    """

    docno: str
    title: str
    text: str
    source_type: str
    source: str = ""
    url: str = ""
    date: str = ""
    verified: bool = False
    adversarial: bool = False
    claims: tuple[str, ...] = ()
    place: str = ""

    @property
    def content(self) -> str:
        """Title and text as one string: what encoders and language models are shown."""
        return f"{self.title}\n{self.text}" if self.title else self.text


@dataclass(frozen=True, slots=True)
class Claim:
    """A gold statement and its false counterpart, alike but for the point in dispute."""

    claim_id: str
    gold: str
    false: str


@dataclass(frozen=True, slots=True)
class Topic:
    """An information need; ``stance`` is the true answer of a yes/no topic, else None."""

    qid: str
    query: str
    stance: str | None = None
    narrative: str = ""
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True)
class Corpus:
    """Documents, topics and qrels that have been checked against each other.

    A document's position in ``documents`` is its ``docid``, the row of every array over documents.
    """

    name: str
    documents: tuple[Document, ...]
    topics: tuple[Topic, ...] = ()
    qrels: Qrels = field(default_factory=dict)

    @cached_property
    def docnos(self) -> np.ndarray:
        """Document names, str (n_docs,)."""
        return np.array([d.docno for d in self.documents])

    @cached_property
    def source_types(self) -> np.ndarray:
        """Source type of each document, str (n_docs,)."""
        return np.array([d.source_type for d in self.documents])

    @cached_property
    def sources(self) -> np.ndarray:
        """Publisher or host of each document, str (n_docs,)."""
        return np.array([d.source for d in self.documents])

    @cached_property
    def adversarial(self) -> np.ndarray:
        """Whether each document is adversarial, bool (n_docs,)."""
        return np.array([d.adversarial for d in self.documents], dtype=bool)

    @cached_property
    def docid(self) -> dict[str, int]:
        """Row of each docno."""
        return {d.docno: i for i, d in enumerate(self.documents)}


def _frozen(array: np.ndarray) -> np.ndarray:
    array = np.array(array)
    array.flags.writeable = False
    return array


@dataclass(frozen=True)
class Pool:
    """Candidates per topic, before any ranking.

    docids: int64 (n_topics, m), -1 where a row has fewer than m candidates.
    sims: float64 (n_topics, m), similarity of each candidate, -inf at padding.
    """

    docids: np.ndarray
    sims: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "docids", _frozen(np.asarray(self.docids, dtype=np.int64)))
        object.__setattr__(self, "sims", _frozen(np.asarray(self.sims, dtype=np.float64)))
        if self.docids.ndim != 2 or self.docids.shape != self.sims.shape:
            raise ValueError(
                f"docids {self.docids.shape} and sims {self.sims.shape} must be equal, 2-d"
            )


@dataclass(frozen=True)
class Ranking:
    """The top k documents of each topic, best first.

    docids: int64 (n_topics, k), every row without repeats.
    scores: float64 (n_topics, k), finite, non-increasing along each row.
    """

    qids: tuple[str, ...]
    docids: np.ndarray
    scores: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "qids", tuple(self.qids))
        object.__setattr__(self, "docids", _frozen(np.asarray(self.docids, dtype=np.int64)))
        object.__setattr__(self, "scores", _frozen(np.asarray(self.scores, dtype=np.float64)))
        if self.docids.ndim != 2 or self.docids.shape != self.scores.shape:
            raise ValueError(
                f"docids {self.docids.shape} and scores {self.scores.shape} must be equal, 2-d"
            )
        if len(self.qids) != len(self.docids) or len(set(self.qids)) != len(self.qids):
            raise ValueError("a ranking needs one row for each qid, and no qid twice")
        if (self.docids < 0).any():
            raise ValueError("docids must be >= 0")
        if not np.isfinite(self.scores).all() or (np.diff(self.scores, axis=1) > 0).any():
            raise ValueError("scores must be finite and non-increasing along each row")
        if any(len(set(row)) != len(row) for row in self.docids.tolist()):
            raise ValueError("a document stands twice in one topic's ranking")

    @property
    def k(self) -> int:
        """Number of documents kept for each topic."""
        return self.docids.shape[1]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model wrote for a topic, from the passages it was shown (in the order shown)."""

    qid: str
    system: str
    arm: str
    text: str
    docnos: tuple[str, ...] = ()
