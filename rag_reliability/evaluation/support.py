"""What every scorer of support offers, and the three bands that its scores fall into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

ABSTAINED = "abstained"
"""The band of what makes no claim, or was given no passage to rest on."""
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
