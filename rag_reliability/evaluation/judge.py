"""Support from a language model: its log-odds that a claim is true, with a passage and without."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rag_reliability.evaluation.alignment import clean
from rag_reliability.evaluation.refusals import has_word
from rag_reliability.evaluation.spans import parts
from rag_reliability.evaluation.support import all_pairs

Reader = Callable[[Sequence[tuple[str, str]]], np.ndarray]
"""``pairs of (claim, passage) -> log-odds`` that the claim is true, float64 (n_pairs,).

An empty passage asks for the model's own belief."""
WINDOW = 1_500
"""Characters of a passage that the model is shown at once; a longer one is read in windows."""


class LogOddsScorer:
    """How far a passage moves a model to call the claim true: σ(a (l − l₀) + b).

    l is the log-odds of yes to "is this claim true, according to the passage", the largest over a
    long passage's windows, l₀ the same without a passage, which takes out what the model believes
    of the claim itself. Slope a and intercept b are Platt's if calibrated; 1 and 0 are not.
    """

    def __init__(self, read: Reader, *, slope: float = 1.0, intercept: float = 0.0) -> None:
        self._read = read
        self._slope = slope
        self._intercept = intercept

    def support(self, claims: Sequence[str], passages: Sequence[str]) -> np.ndarray:
        """Support in [0, 1], float64 (n_claims, n_passages); 0 where either side has no words."""
        return all_pairs(self, claims, passages)

    def pair_scores(self, claims: Sequence[str], passages: Sequence[str]) -> dict[str, np.ndarray]:
        """``support`` of each pair, and ``log_odds``, the shift l − l₀ that it is made of."""
        said = [clean(claim) for claim in claims]
        asked = [
            (row, (claim, part))
            for row, (claim, passage) in enumerate(zip(said, passages, strict=True))
            for part in (parts(passage, WINDOW) if has_word(claim) else ())
            if has_word(part)
        ]
        shift = np.full(len(claims), -np.inf)
        if asked:
            alone = list(dict.fromkeys(claim for _, (claim, _) in asked))
            odds = self._read([*((claim, "") for claim in alone), *(pair for _, pair in asked)])
            prior = dict(zip(alone, odds, strict=False))
            rows = [row for row, _ in asked]
            without = np.array([prior[claim] for _, (claim, _) in asked])
            np.maximum.at(shift, rows, odds[len(alone) :] - without)
        with np.errstate(over="ignore"):
            support = 1 / (1 + np.exp(-(self._slope * shift + self._intercept)))
        support = np.where(np.isfinite(shift), np.round(support, 4), 0.0)
        return {"support": support, "log_odds": np.where(np.isfinite(shift), shift, 0.0).round(4)}
