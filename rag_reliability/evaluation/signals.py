"""What token vectors say of one claim and one passage: coverage of the claim, and who negates.

Pure functions on arrays; ``docs/grounding-scorers.md`` has what else was tried, and what it gave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rag_reliability.evaluation.alignment import content_words
from rag_reliability.language import Words

_MARKERS = "▁Ġ"  # how SentencePiece and byte-level BPE write a word's start; WordPiece has ##
_NEGATION = frozenset(
    ["not", "no", "never", "none", "nor", "neither", "cannot", "without", "nobody", "nothing"]
)
_APOSTROPHES = ("'", "’")
_ENDS = frozenset(".!?")
SHORTEST = 3
"""Tokens before a full stop that ends a sentence; sooner, it is an initial's or a list's."""
SHARPNESS = 0.03
"""τ of ``polarity_gap``: a sentence that covers the claim .03 better weighs e times as much."""


@dataclass(frozen=True, slots=True)
class TokenMarks:
    """Per token: whether it is content, whether it negates (bool), and its sentence from 0 (int).

    A text without content words counts all its tokens as content.
    """

    content: np.ndarray
    negation: np.ndarray
    sentence: np.ndarray


def mark_tokens(tokens: Sequence[str], words: Words | None = None) -> TokenMarks:
    """Marks of a text's tokens, as ``encoder.tokens`` spells them, each (n_tokens,).

    words: another language's; without negations in its list no token negates.
    """
    if words:
        return _marks_by(words, tokens)
    bare = [t.removeprefix("##").strip(_MARKERS).lower() for t in tokens]
    known = {t: bool(content_words(t)) for t in set(bare)}
    content = np.array([known[t] for t in bare], dtype=bool)
    negation = [
        t in _NEGATION or t.endswith(("n't", "n’t")) or (t == "t" and before in _APOSTROPHES)
        for before, t in zip(["", *bare], bare, strict=False)
    ]
    counted = content if content.any() else np.ones(len(bare), dtype=bool)
    return TokenMarks(counted, np.array(negation, dtype=bool), _sentence_numbers(bare))


def _marks_by(words: Words, tokens: Sequence[str]) -> TokenMarks:
    """Marks by a language's own lists. A word that the tokenizer splits is read piece by piece."""
    bare = [t.removeprefix("##").strip(_MARKERS).lower() for t in tokens]
    content = np.array([bool(content_words(t, words)) for t in bare], dtype=bool)
    negation = np.array([t in words.negations for t in bare], dtype=bool)
    counted = content if content.any() else np.ones(len(bare), dtype=bool)
    return TokenMarks(counted, negation, _sentence_numbers(bare))


def _sentence_numbers(tokens: Sequence[str]) -> np.ndarray:
    numbers = np.zeros(len(tokens), dtype=np.int64)
    number = length = 0
    for i, token in enumerate(tokens):
        numbers[i] = number
        length += 1
        decimal = token == "." and "".join(tokens[i + 1 : i + 2])[:1].isdigit()
        if token in _ENDS and length > SHORTEST and not decimal:
            number, length = number + 1, 0
    return numbers


def content_alignment(similarity: np.ndarray, claim: TokenMarks) -> float:
    """Mean over the claim's content tokens of the cosine with the nearest token, in [−1, 1].

    BERTScore's recall (Zhang et al., ICLR 2020) over the tokens that carry content: function words
    and punctuation find themselves in any passage.

    Args:
        similarity: cosines, (n_claim_tokens, n_passage_tokens).
    """
    return float(similarity[claim.content].max(axis=1).mean())


def polarity_gap(similarity: np.ndarray, claim: TokenMarks, passage: TokenMarks) -> float:
    """How surely claim and passage differ in negation where the passage speaks of it, in [0, 1].

    Σ_s w_s [n(s) ≠ n(c)] over the passage's sentences s, n whether a text holds a word of negation,
    w ∝ exp(R(c, s) / τ) with R the ``content_alignment`` of the claim with the sentence alone.

    Args:
        similarity: cosines, (n_claim_tokens, n_passage_tokens).
    """
    starts = np.flatnonzero(np.diff(passage.sentence, prepend=-1))
    recall = np.maximum.reduceat(similarity[claim.content], starts, axis=1).mean(axis=0)
    weight = np.exp((recall.astype(np.float64) - recall.max()) / SHARPNESS)
    differs = np.logical_or.reduceat(passage.negation, starts) != claim.negation.any()
    return float(weight @ differs / weight.sum())
