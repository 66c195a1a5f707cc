"""Signals of support that were tried: token alignment in many forms, shared words, and artefacts.

Names are those of ``docs/grounding-scorers.md``. Higher means more support.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from counter_claims import input_table

from rag_reliability.evaluation.alignment import (
    TextVectors,
    clean,
    content_recall,
    content_words,
    token_recall,
)
from rag_reliability.evaluation.signals import content_alignment, mark_tokens, polarity_gap

_WORD = re.compile(r"[^\W_]+")
_FIRST_WORD_ID = 1996
"""Of BERT's vocabulary, which is ordered by frequency from here on, but for a few signs before."""


class Signals:
    """All signals of a claim, a passage and a question (which may be empty)."""

    def __init__(self, encoder: Any, vectors: TextVectors, background: Iterable[str]) -> None:
        self.table = input_table(encoder)
        self.ids = encoder._tokenizer.convert_tokens_to_ids
        self.encoder, self.vectors = encoder, vectors
        texts = [set(_stems(t)) for t in background]
        self.n, self.df = len(texts), Counter(w for words in texts for w in words)

    def of(self, claim: str, passage: str, question: str = "") -> dict[str, float]:
        """Name to value."""
        said, given = clean(claim), clean(passage)
        c, p = self.vectors.get([said, given])
        tokens = self.encoder.tokens([said, given])
        marks = [mark_tokens(t) for t in tokens]
        ids = [np.array(self.ids(t)) for t in tokens]
        similarity = c.tokens @ p.tokens.T
        best, zipf = similarity.max(axis=1), _zipf(ids[0])
        starts = np.flatnonzero(np.diff(marks[1].sentence, prepend=-1))
        by_sentence = np.maximum.reduceat(similarity, starts, axis=1)
        two = (
            np.maximum(by_sentence[:, :-1], by_sentence[:, 1:]) if len(starts) > 1 else by_sentence
        )
        still = (self.table[ids[0]] @ self.table[ids[1]].T).max(axis=1)
        out = {
            "cosine": float(c.whole @ p.whole),
            "alignment": token_recall(c, p),
            "content alignment": content_alignment(similarity, marks[0]),
            "Zipf-weighted alignment": _mean(best, zipf),
            "IDF-weighted alignment": _mean(best, self._idf(tokens[0]) * marks[0].content),
            "soft minimum, β = 2": _soft_minimum(best[marks[0].content], 2),
            "soft minimum, β = 6": _soft_minimum(best[marks[0].content], 6),
            "worst content token": float(best[marks[0].content].min()),
            "best sentence": float((zipf @ by_sentence / zipf.sum()).max()),
            "best two sentences": float((zipf @ two / zipf.sum()).max()),
            "neighbouring tokens together": _neighbours(similarity, zipf),
            "input-table alignment": float(still[marks[0].content].mean()),
            "polarity": -polarity_gap(similarity, *marks),
        }
        return out | self._words(said, given) | self._one_sided(said, given, question, best, zipf)

    def _words(self, said: str, given: str) -> dict[str, float]:
        words, there = set(_stems(said, content=True)), set(_stems(given))
        weight = np.array([self._rarity(w) for w in sorted(words)])
        held = np.array([w in there for w in sorted(words)], dtype=float)
        numbers = set(re.findall(r"\d+", said))
        return {
            "content-word recall": content_recall(said, given),
            "IDF content-word recall": _mean(held, weight) if len(words) else 0.0,
            "longest common n-gram": _longest(_stems(said), _stems(given)),
            "numbers present": -float(len(numbers - set(re.findall(r"\d+", given)))),
        }

    def _one_sided(
        self, said: str, given: str, question: str, best: np.ndarray, zipf: np.ndarray
    ) -> dict[str, float]:
        out = {
            "claim length": float(len(said.split())),
            "passage length": float(len(given.split())),
        }
        if not question:
            return out | {"claim with question": 0.0, "what the question lacks": _mean(best, zipf)}
        claim, asked = self.vectors.get([said, clean(question)])
        new = zipf * np.clip(1 - (claim.tokens @ asked.tokens.T).max(axis=1), 0, 1)
        return out | {
            "claim with question": float(claim.whole @ asked.whole),
            "what the question lacks": _mean(best, new),
        }

    def _idf(self, tokens: list[str]) -> np.ndarray:
        return np.array([self._rarity(t.removeprefix("##")[:6]) for t in tokens])

    def _rarity(self, stem: str) -> float:
        return float(np.log((self.n + 1) / (self.df[stem] + 0.5)))


def _zipf(ids: np.ndarray) -> np.ndarray:
    return np.where(ids >= _FIRST_WORD_ID, np.log(np.maximum(ids - _FIRST_WORD_ID + 2, 1)), 0.5)


def _mean(values: np.ndarray, weights: np.ndarray) -> float:
    return float((values * weights).sum() / max(weights.sum(), 1e-9))


def _soft_minimum(values: np.ndarray, sharpness: float) -> float:
    """−(1/β) log mean exp(−β x): the mean for β → 0, the minimum for β → ∞."""
    return float(-np.log(np.mean(np.exp(-sharpness * values.astype(np.float64)))) / sharpness)


def _neighbours(similarity: np.ndarray, zipf: np.ndarray) -> float:
    """Alignment of adjacent claim tokens to passage tokens at most three places apart."""
    if similarity.shape[0] < 2 or similarity.shape[1] < 5:
        return _mean(similarity.max(axis=1), zipf)
    after = [np.pad(similarity[1:, j:], ((0, 0), (0, j)), constant_values=-1) for j in (1, 2, 3)]
    both = (similarity[:-1] + np.stack(after).max(axis=0)) / 2
    return _mean(both.max(axis=1), np.minimum(zipf[:-1], zipf[1:]))


def _stems(text: str, content: bool = False) -> list[str]:
    words = _WORD.findall(text.lower())
    kept = [w for w in words if content_words(w)] if content else words
    return [w[:6] for w in kept]


def _longest(left: list[str], right: list[str]) -> float:
    best, before = 0, np.zeros(len(right) + 1, dtype=int)
    there = np.array(right)
    for word in left:
        now = np.zeros_like(before)
        hit = np.flatnonzero(there == word)
        now[hit + 1] = before[hit] + 1
        best, before = max(best, int(now.max(initial=0))), now
    return float(np.log1p(best))
