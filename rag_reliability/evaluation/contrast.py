"""Which of two contrasting claims a text asserts: the gold one, the false one, or neither."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rag_reliability.evaluation.alignment import TextVectors, clean, token_precision, token_recall
from rag_reliability.evaluation.grounding import ContrastConstants
from rag_reliability.language import Words
from rag_reliability.records import Claim

# Closed-class negation, and common words by which English prose denies or doubts a claim.
_CUES = re.compile(
    r"\b(?:not|no|never|cannot|none|nor|neither|without|lacks?|lacking|unlikely|ineffective|"
    r"insufficient|false|myth|unproven|unsupported|misconception|little|limited|fails?|failed|avoid|"
    r"against|inconclusive|unclear|incorrect|untrue|refuted?|discouraged|instead|rather)\b|n['’]t\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """What a text says on one pair of claims.

    verdict: gold, false or neither. contrast: above 0 on the gold side. relatedness: how close the
    closest sentence comes to either claim, in [−1, 1].
    """

    claim_id: str
    verdict: str
    contrast: float
    relatedness: float


class PairJudge:
    """Contrastive verdicts by token alignment and polarity, sentence by sentence.

    For a sentence s and the claims g (gold) and f (false), with P the mean over the *sentence's*
    tokens of the cosine with the claim's nearest token, and n(x) = −1 where x holds a negation or
    a word of denial, else +1:

        contrast(s) = P(g, s) − P(f, s) + w · n(s) · [n(g) − n(f)] / 2

    so polarity counts only where the claims differ in it. Over sentences the mean weighted by
    exp(relatedness / τ), relatedness = max(R(g, s), R(f, s)), R the claim's token recall. The
    verdict is *neither* where no sentence's relatedness reaches the floor or |contrast| ≤ band.
    Aligning the answer's tokens to the claims told the two apart better than aligning the claims'
    tokens to the answer (figures in ``configs/grounding.yaml``).
    """

    def __init__(
        self, vectors: TextVectors, constants: ContrastConstants, words: Words | None = None
    ) -> None:
        self.vectors = vectors
        self.constants = constants
        self.words = words

    def judge(self, sentences: Sequence[str], claim: Claim) -> PairVerdict:
        """The verdict of all ``sentences`` together; neither for no sentences."""
        c = self.constants
        contrast, relatedness = pair_scores(
            self.vectors,
            sentences,
            claim,
            temperature=c.temperature,
            cue_weight=c.cue_weight,
            words=self.words,
        )
        verdict = "neither"
        if relatedness >= c.floor and abs(contrast) > c.band:
            verdict = "gold" if contrast > 0 else "false"
        return PairVerdict(claim.claim_id, verdict, contrast, relatedness)


def pair_scores(
    vectors: TextVectors,
    sentences: Sequence[str],
    claim: Claim,
    *,
    temperature: float,
    cue_weight: float,
    words: Words | None = None,
) -> tuple[float, float]:
    """(contrast, relatedness) of sentences to a pair of claims; (0, −1) for no sentences."""
    read = [s for s in map(clean, sentences) if s]
    if not read:
        return 0.0, -1.0
    gold, false = vectors.get([clean(claim.gold), clean(claim.false)])
    said = vectors.get(read)
    related = np.array([max(token_recall(gold, s), token_recall(false, s)) for s in said])
    aligned = np.array([token_precision(gold, s) - token_precision(false, s) for s in said])
    turn = (polarity(claim.gold, words) - polarity(claim.false, words)) / 2
    contrast = aligned + cue_weight * turn * np.array([polarity(s, words) for s in read])
    weights = np.exp((related - related.max()) / temperature)
    return round(float(weights @ contrast / weights.sum()), 6), round(float(related.max()), 6)


def polarity(text: str, words: Words | None = None) -> int:
    """−1 where ``text`` holds a negation or a word of denial or doubt, else +1.

    words: another language's; without expressions of denial in its list always +1.
    """
    return -1 if (words.denies(text) if words else _CUES.search(text)) else 1
