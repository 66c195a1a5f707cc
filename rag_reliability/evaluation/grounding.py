"""How far shown passages support what an answer says: deterministic and offline.

The scorer sees wording and topic, not contradiction: a passage that denies a sentence in the same
words scores high. ``configs/grounding.yaml`` states how often each band is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rag_reliability.evaluation.alignment import TextVectors, content_recall
from rag_reliability.evaluation.blend import BlendScorer, blend_parts, pair_parts
from rag_reliability.evaluation.constants import (
    BlendConstants,
    ContrastConstants,
    CoverageConstants,
    ScoringConstants,
    load_constants,
)
from rag_reliability.evaluation.coverage import CoverageScorer
from rag_reliability.evaluation.flags import flags
from rag_reliability.evaluation.spans import SpanFinder, best_of, lexical_span
from rag_reliability.evaluation.support import Bands, PairScorer, SupportScorer, band_of
from rag_reliability.language import Words

Default = BlendScorer | CoverageScorer

__all__ = [
    "Bands",
    "BlendConstants",
    "BlendScorer",
    "ContrastConstants",
    "CoverageConstants",
    "CoverageScorer",
    "Default",
    "Grounding",
    "PairScorer",
    "ScoringConstants",
    "SupportScorer",
    "band_of",
    "blend_parts",
    "default_scorer",
    "ground_answer",
    "load_constants",
    "pair_parts",
]


def default_scorer(
    vectors: TextVectors, constants: ScoringConstants, words: Words | None = None
) -> Default:
    """The scorer that ``constants`` hold numbers for; its own ``constants`` are its bands.

    words: another language's; nothing was calibrated with them (None: English).
    """
    if constants.coverage is not None:
        return CoverageScorer(vectors, constants.coverage, words)
    return BlendScorer(vectors, constants.blend)


@dataclass(frozen=True)
class Grounding:
    """How far each passage supports each sentence of one answer.

    supports, content_recalls: float64 (n_sentences, n_passages) in [0, 1]. Best passages are rows'
    first maxima, −1 where there is no passage; an answer's sentence without passages has support 0.
    """

    sentences: tuple[str, ...]
    supports: np.ndarray
    content_recalls: np.ndarray
    bands: tuple[str, ...]
    spans: tuple[str, ...] = ()
    flags: tuple[tuple[str, ...], ...] = ()

    @property
    def best_passage(self) -> np.ndarray:
        """Index of the best-supporting passage of each sentence, int64 (n_sentences,)."""
        if self.supports.shape[1] == 0:
            return np.full(len(self.sentences), -1, dtype=np.int64)
        return self.supports.argmax(axis=1)

    @property
    def support(self) -> np.ndarray:
        """Best support of each sentence, float64 (n_sentences,)."""
        return self.supports.max(axis=1, initial=0.0)

    @property
    def table(self) -> pd.DataFrame:
        """One row a sentence.

        Columns sentence, best_passage, support, band, content_recall, span, flags, supports.
        """
        best = self.best_passage
        recall = [
            float(row[j]) if j >= 0 else 0.0
            for row, j in zip(self.content_recalls, best, strict=True)
        ]
        return pd.DataFrame(
            {
                "sentence": list(self.sentences),
                "best_passage": best,
                "support": self.support,
                "band": list(self.bands),
                "content_recall": recall,
                "span": list(self.spans),
                "flags": [list(found) for found in self.flags],
                "supports": [row.tolist() for row in self.supports],
            }
        )


def ground_answer(
    sentences: Sequence[str],
    passages: Sequence[str],
    scorer: SupportScorer,
    bands: Bands,
    find_span: SpanFinder = lexical_span,
    words: Words | None = None,
) -> Grounding:
    """Support of each sentence of an answer by each passage it was shown, its band and its span."""
    supports = scorer.support(sentences, passages).reshape(len(sentences), len(passages))
    recalls = np.array([[content_recall(s, p, words) for p in passages] for s in sentences])
    best = [best_of(row) for row in supports]
    shown = [passages[j] if j >= 0 else "" for j in best]
    spans = [find_span(s, p) for s, p in zip(sentences, shown, strict=True)]
    return Grounding(
        tuple(sentences),
        supports,
        recalls.reshape(supports.shape),
        tuple(band_of(float(row.max(initial=0.0)), bands) for row in supports),
        tuple(spans),
        tuple(
            flags(s, p, span, words) if p else ()
            for s, p, span in zip(sentences, shown, spans, strict=True)
        ),
    )
