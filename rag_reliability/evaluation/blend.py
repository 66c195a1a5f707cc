"""The default scorer: how alike a claim and a passage are in topic and in wording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rag_reliability.evaluation.alignment import TextVectors, clean, token_recall
from rag_reliability.evaluation.constants import BlendConstants
from rag_reliability.evaluation.refusals import has_word
from rag_reliability.evaluation.spans import parts
from rag_reliability.evaluation.support import all_pairs, with_verbatim

GROUP = 200_000
"""Characters encoded together: some 50,000 tokens, 80 MB of MiniLM's vectors."""


class BlendScorer:
    """Support from a sentence encoder: mean of two z-scores, mapped to [0, 1] by Platt's sigmoid.

    z = ½ [(cos(c, p) − μ₁) / σ₁ + (R(c, p) − μ₂) / σ₂] with cos the cosine of claim and whole
    passage and R the token-alignment recall of the claim (``alignment.token_recall``);
    support = 1 / (1 + exp(−(a z + b))) (Platt, 1999), rounded to 4 decimals so that batches and
    threads do not show. Constants are fixed, so a passage's score does not depend on its
    neighbours. A claim that is a sentence of the passage has support 1. Of a passage longer than
    ``spans.LONG`` characters the best part counts.
    """

    def __init__(self, vectors: TextVectors, constants: BlendConstants) -> None:
        self.vectors = vectors
        self.constants = constants

    def support(self, claims: Sequence[str], passages: Sequence[str]) -> np.ndarray:
        """Support in [0, 1], float64 (n_claims, n_passages); 0 where either side has no words."""
        return all_pairs(self, claims, passages)

    def pair_scores(self, claims: Sequence[str], passages: Sequence[str]) -> dict[str, np.ndarray]:
        """``support`` of each claim by the passage at its place, in [0, 1], float64 (n_pairs,)."""
        found = np.zeros(len(claims))
        for rows, left, right in groups(claims, passages):
            support = self._calibrated(*pair_parts(self.vectors, left, right))
            np.maximum.at(found, rows, with_verbatim(support, left, right))
        return {"support": found}

    def _calibrated(self, cosine: np.ndarray, alignment: np.ndarray) -> np.ndarray:
        c = self.constants
        z = (cosine - c.cosine_mean) / c.cosine_std + (
            alignment - c.alignment_mean
        ) / c.alignment_std
        return np.round(1 / (1 + np.exp(-(c.slope * z / 2 + c.intercept))), 4)


def groups(
    claims: Sequence[str], passages: Sequence[str]
) -> Iterator[tuple[list[int], list[str], list[str]]]:
    """(rows, claims, passage parts) that are scored together; pairs without words are left out.

    A group ends at ``GROUP`` characters, so that its vectors' memory is bounded.
    """
    rows: list[int] = []
    left: list[str] = []
    right: list[str] = []
    size = 0
    for row, (claim, passage) in enumerate(zip(map(clean, claims), passages, strict=True)):
        for part in parts(passage) if has_word(claim) else ():
            if has_word(part):
                rows.append(row)
                left.append(claim)
                right.append(part)
                size += len(claim) + len(part)
            if size > GROUP:
                yield rows, left, right
                rows, left, right, size = [], [], [], 0
    if rows:
        yield rows, left, right


def pair_parts(
    vectors: TextVectors, claims: Sequence[str], passages: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Cosine with the whole passage and token-alignment recall of each pair, each (n_pairs,)."""
    found = vectors.get([clean(t) for t in (*claims, *passages)])
    pairs = list(zip(found[: len(claims)], found[len(claims) :], strict=True))
    cosine = np.array([a.whole @ b.whole for a, b in pairs], dtype=np.float64)
    return cosine, np.array([token_recall(a, b) for a, b in pairs], dtype=np.float64)


def blend_parts(
    vectors: TextVectors, claims: Sequence[str], passages: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Cosine with the whole passage and token-alignment recall, each (n_claims, n_passages)."""
    left = [c for c in claims for _ in passages]
    cosine, alignment = pair_parts(vectors, left, [p for _ in claims for p in passages])
    shape = (len(claims), len(passages))
    return cosine.reshape(shape), alignment.reshape(shape)
