"""How far shown passages support what an answer says: deterministic and offline.

The scorer sees wording and topic, not contradiction: a passage that denies a sentence in the same
words scores high. ``configs/grounding.yaml`` states how often each band is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pandas as pd
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from rag_reliability.evaluation.alignment import TextVectors, clean, content_recall, token_recall
from rag_reliability.records import InputError


class SupportScorer(Protocol):
    """Anything that says how far each passage supports each claim."""

    def support(self, claims: Sequence[str], passages: Sequence[str]) -> np.ndarray:
        """Support in [0, 1], float64 (n_claims, n_passages)."""
        ...


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class BlendConstants(_Frozen):
    """Means and deviations of the blend's two parts, Platt's slope and intercept, and bands."""

    cosine_mean: float
    cosine_std: float = Field(gt=0)
    alignment_mean: float
    alignment_std: float = Field(gt=0)
    slope: float = Field(gt=0)
    intercept: float
    unsupported_below: float = Field(ge=0, le=1)
    supported_from: float = Field(ge=0, le=1)

    @model_validator(mode="after")
    def _ordered(self) -> BlendConstants:
        if self.unsupported_below > self.supported_from:
            raise ValueError("unsupported_below must not be above supported_from")
        return self


class ContrastConstants(_Frozen):
    """Constants of the contrastive verdict: see ``contrast.PairJudge``."""

    temperature: float = Field(gt=0)
    cue_weight: float = Field(ge=0)
    band: float = Field(ge=0)
    floor: float = Field(ge=-1, le=1)


class ScoringConstants(_Frozen):
    """What ``configs/grounding.yaml`` holds; fields that report its measurement are not read."""

    blend: BlendConstants
    contrast: ContrastConstants


def load_constants(path: str | Path) -> ScoringConstants:
    """Constants written by ``benchmarks/calibrate_grounding.py``.

    Raises: InputError, one line, naming the file and the field.
    """
    try:
        loaded = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        return ScoringConstants.model_validate(loaded)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(
            f"{path}: cannot be read as YAML: {' '.join(str(error).split())}"
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "file"
        raise InputError(f"{path}: {field}: {first['msg']}") from error


class BlendScorer:
    """Support from a sentence encoder: mean of two z-scores, mapped to [0, 1] by Platt's sigmoid.

    z = ½ [(cos(c, p) − μ₁) / σ₁ + (R(c, p) − μ₂) / σ₂] with cos the cosine of claim and whole
    passage and R the token-alignment recall of the claim (``alignment.token_recall``);
    support = 1 / (1 + exp(−(a z + b))) (Platt, 1999), rounded to 4 decimals so that batches and
    threads do not show. Constants are fixed, so a passage's score does not depend on its
    neighbours.
    """

    def __init__(self, vectors: TextVectors, constants: BlendConstants) -> None:
        self.vectors = vectors
        self.constants = constants

    def support(self, claims: Sequence[str], passages: Sequence[str]) -> np.ndarray:
        """Support in [0, 1], float64 (n_claims, n_passages); 0 where either side has no words."""
        found = np.zeros((len(claims), len(passages)))
        asked = [i for i, c in enumerate(claims) if _has_word(clean(c))]
        given = [j for j, p in enumerate(passages) if _has_word(clean(p))]
        if asked and given:
            parts = blend_parts(
                self.vectors, [claims[i] for i in asked], [passages[j] for j in given]
            )
            found[np.ix_(asked, given)] = self._calibrated(*parts)
        return found

    def _calibrated(self, cosine: np.ndarray, alignment: np.ndarray) -> np.ndarray:
        c = self.constants
        z = (cosine - c.cosine_mean) / c.cosine_std + (
            alignment - c.alignment_mean
        ) / c.alignment_std
        return np.round(1 / (1 + np.exp(-(c.slope * z / 2 + c.intercept))), 4)


def blend_parts(
    vectors: TextVectors, claims: Sequence[str], passages: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Cosine with the whole passage and token-alignment recall, each (n_claims, n_passages)."""
    left = vectors.get(map(clean, claims))
    right = vectors.get(map(clean, passages))
    cosine = np.array([[a.whole @ b.whole for b in right] for a in left], dtype=np.float64)
    alignment = np.array([[token_recall(a, b) for b in right] for a in left])
    return cosine, alignment


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
        """One row a sentence: sentence, best_passage, support, band, content_recall, supports."""
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
                "supports": [row.tolist() for row in self.supports],
            }
        )


def ground_answer(
    sentences: Sequence[str],
    passages: Sequence[str],
    scorer: SupportScorer,
    constants: BlendConstants,
) -> Grounding:
    """Support of each sentence of an answer by each passage it was shown, and its band."""
    supports = scorer.support(sentences, passages).reshape(len(sentences), len(passages))
    recalls = np.array([[content_recall(s, p) for p in passages] for s in sentences])
    bands = tuple(band_of(float(row.max(initial=0.0)), constants) for row in supports)
    return Grounding(tuple(sentences), supports, recalls.reshape(supports.shape), bands)


def band_of(support: float, constants: BlendConstants) -> str:
    """supported, unclear or unsupported."""
    if support >= constants.supported_from:
        return "supported"
    return "unsupported" if support < constants.unsupported_below else "unclear"


def _has_word(text: str) -> bool:
    return any(c.isalnum() for c in text)
