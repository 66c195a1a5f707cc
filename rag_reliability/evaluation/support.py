"""What every scorer of support offers, and the three bands that its scores fall into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

ABSTAINED = "abstained"
"""The band of what makes no claim, or was given no passage to rest on."""
SHORTEST_VERBATIM = 4
_STOPS = ("", ".", "!", "?", ":", ";", "…")
_QUOTES = " \"'“”‘’«»()[]*_-•"
_MARKS = _QUOTES + ".!?:;…"
BANDS = ("supported", "unclear", "unsupported")


class SupportScorer(Protocol):
    """Anything that says how far each passage supports each claim."""

    def support(self, claims: Sequence[str], passages: Sequence[str]) -> np.ndarray:
        """Support in [0, 1], float64 (n_claims, n_passages)."""
        ...


class PairScorer(Protocol):
    """A scorer that is also asked pair by pair, for lists in which every claim has its own."""

    def pair_scores(
        self, claims: Sequence[str], passages: Sequence[str]
    ) -> Mapping[str, np.ndarray]:
        """``support`` in [0, 1] of each claim by the passage at its place, float64 (n_pairs,).

        Beside it whatever else the scorer reads, such as ``contradiction``, of the same shape.
        """
        ...


class Bands(Protocol):
    """Two thresholds that part supported, unclear and unsupported."""

    @property
    def unsupported_below(self) -> float:
        """Support below which a claim counts as unsupported."""
        ...

    @property
    def supported_from(self) -> float:
        """Support from which a claim counts as supported."""
        ...


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Bands of a scorer that nobody has calibrated: even odds, and one in five."""

    unsupported_below: float = 0.2
    supported_from: float = 0.5


def band_of(support: float, bands: Bands) -> str:
    """supported, unclear or unsupported."""
    if support >= bands.supported_from:
        return "supported"
    return "unsupported" if support < bands.unsupported_below else "unclear"


def all_pairs(scorer: PairScorer, claims: Sequence[str], passages: Sequence[str]) -> np.ndarray:
    """Support of every claim by every passage, float64 (n_claims, n_passages)."""
    left = [c for c in claims for _ in passages]
    right = [p for _ in claims for p in passages]
    return scorer.pair_scores(left, right)["support"].reshape(len(claims), len(passages))


def stands_in(claim: str, passage: str) -> bool:
    """Whether a claim of four words or more stands in a passage word for word, as a sentence.

    Both cleaned (``alignment.clean``); letter case and end marks do not count. Inside a longer
    sentence, as in "it is a myth that …", it does not stand.
    """
    said = claim.lower().strip(_MARKS)
    if len(said.split()) < SHORTEST_VERBATIM:
        return False
    text = passage.lower()
    at = text.find(said)
    while at >= 0:
        end = at + len(said)
        before = text[max(0, at - 30) : at].rstrip(_QUOTES)
        after = text[end : end + 30].lstrip(_QUOTES)
        if before[-1:] in _STOPS and after[:1] in _STOPS:
            return True
        at = text.find(said, at + 1)
    return False


def with_verbatim(
    support: np.ndarray, claims: Sequence[str], passages: Sequence[str]
) -> np.ndarray:
    """``support`` (n_pairs,), 1 where the claim stands in its passage word for word.

    Token vectors depend on their neighbours, so a copied sentence does not score 1 by itself.
    """
    copied = [stands_in(c, p) for c, p in zip(claims, passages, strict=True)]
    return np.where(np.array(copied, dtype=bool), 1.0, support)
