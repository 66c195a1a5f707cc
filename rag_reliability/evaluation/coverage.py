"""Support from coverage and polarity: are the claim's words there, and not the other way round?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag_reliability.evaluation.alignment import TextVectors, clean
from rag_reliability.evaluation.blend import groups
from rag_reliability.evaluation.constants import CoverageConstants
from rag_reliability.evaluation.signals import content_alignment, mark_tokens, polarity_gap
from rag_reliability.evaluation.support import all_pairs, with_verbatim
from rag_reliability.language import Words


class CoverageScorer:
    """Support from a sentence encoder's token vectors, mapped to [0, 1] by Platt's sigmoid.

    z = (A(c, p) − μ) / σ − w G(c, p), with A the alignment of the claim's content tokens and G the
    gap in polarity (``signals``); support = 1 / (1 + exp(−(a z + b))) (Platt, 1999), rounded to 4
    decimals so that batches and threads do not show. Constants are fixed, so a passage's score does
    not depend on its neighbours. Of a passage longer than ``spans.LONG`` characters the best part
    counts.
    """

    def __init__(
        self, vectors: TextVectors, constants: CoverageConstants, words: Words | None = None
    ) -> None:
        self.vectors = vectors
        self.constants = constants
        self.words = words

    def support(self, claims: Sequence[str], passages: Sequence[str]) -> np.ndarray:
        """Support in [0, 1], float64 (n_claims, n_passages); 0 where either side has no words."""
        return all_pairs(self, claims, passages)

    def pair_scores(self, claims: Sequence[str], passages: Sequence[str]) -> dict[str, np.ndarray]:
        """``support`` of each claim by the passage at its place, in [0, 1], float64 (n_pairs,)."""
        found = np.zeros(len(claims))
        for rows, left, right in groups(claims, passages):
            parts = coverage_parts(self.vectors, left, right, self.words)
            support = np.round(calibrated(*parts, self.constants), 4)
            np.maximum.at(found, rows, with_verbatim(support, left, right))
        return {"support": found}


def calibrated(alignment: np.ndarray, gap: np.ndarray, c: CoverageConstants) -> np.ndarray:
    """Support in [0, 1] from the two parts, each (n_pairs,)."""
    z = (alignment - c.alignment_mean) / c.alignment_std - c.gap_weight * gap
    return 1 / (1 + np.exp(-(c.slope * z + c.intercept)))


def coverage_parts(
    vectors: TextVectors,
    claims: Sequence[str],
    passages: Sequence[str],
    words: Words | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Content alignment and polarity gap of each pair, each float64 (n_pairs,)."""
    texts = [clean(t) for t in (*claims, *passages)]
    distinct = list(dict.fromkeys(texts))
    marks = {
        text: mark_tokens(tokens, words)
        for text, tokens in zip(distinct, vectors.encoder.tokens(distinct), strict=True)
    }
    found = vectors.get(texts)
    rows = []
    for at in range(len(claims)):
        claim, passage = marks[texts[at]], marks[texts[len(claims) + at]]
        similarity = found[at].tokens @ found[len(claims) + at].tokens.T
        rows.append(
            (content_alignment(similarity, claim), polarity_gap(similarity, claim, passage))
        )
    alignment, gap = np.array(rows, dtype=np.float64).reshape(-1, 2).T
    return alignment, gap
