"""How alike two texts are: whole vectors, token vectors, and shared content words."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rag_reliability.language import Words
from rag_reliability.text import strip_citations

_WORD = re.compile(r"[^\W_]+(?:[.,]\d+)*(?:['’][^\W_]+)?")
_FUNCTION_WORDS = """
    a about after again all also an and any are as at be because been before being both but by can
    could did do does doing during each for from further had has have having he her here him his how
    i if in into is it its itself just may me might more most must my of on or other our out over
    own same she should so some such than that the their them then there these they this those
    through to too under until up very was we were what when where which while who whom why will
    with would you your
"""


class TokenEncoder(Protocol):
    """The part of an encoder that scoring needs; every row of what it returns has unit norm."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """One vector a text, float32 (n_texts, dim)."""
        ...

    def encode_both(self, texts: Sequence[str]) -> tuple[np.ndarray, list[np.ndarray]]:
        """One vector a text (n_texts, dim), and one a token (n_tokens, dim) for each text."""
        ...

    def tokens(self, texts: Sequence[str]) -> list[list[str]]:
        """Each text's tokens, one for each row of its token vectors."""
        ...


@dataclass(frozen=True, slots=True)
class TextVector:
    """One text's vector (dim,) and those of its tokens (n_tokens, dim), unit norm."""

    whole: np.ndarray
    tokens: np.ndarray

    @property
    def n_bytes(self) -> int:
        """Memory that the arrays take."""
        return int(self.whole.nbytes + self.tokens.nbytes)


class TextVectors:
    """Vectors of texts; those used last are kept, up to ``capacity`` bytes of them."""

    def __init__(self, encoder: TokenEncoder, capacity: int = 2**30) -> None:
        self.encoder = encoder
        self._capacity = capacity
        self._known: OrderedDict[str, TextVector] = OrderedDict()
        self._held = 0

    def get(self, texts: Iterable[str]) -> list[TextVector]:
        """Vectors of ``texts``, in order. Every text needs at least one word.

        What one call asks for is in memory together, whatever the capacity.
        """
        wanted = list(texts)
        distinct = list(dict.fromkeys(wanted))
        new = [t for t in distinct if t not in self._known]
        found = {t: self._known[t] for t in distinct if t in self._known}
        if new:
            wholes, tokens = self.encoder.encode_both(new)
            made = zip(new, wholes, tokens, strict=True)
            found |= {text: TextVector(whole, inner) for text, whole, inner in made}
        for text in distinct:
            self._keep(text, found[text])
        return [found[t] for t in wanted]

    def _keep(self, text: str, vector: TextVector) -> None:
        if text not in self._known:
            self._held += vector.n_bytes
        self._known[text] = vector
        self._known.move_to_end(text)
        while self._held > self._capacity:
            self._held -= self._known.popitem(last=False)[1].n_bytes


def clean(text: str) -> str:
    """``text`` without citation marks and with single blanks, so that layout changes no score."""
    return " ".join(strip_citations(text).split())


def token_recall(claim: TextVector, other: TextVector) -> float:
    """Mean over the claim's tokens of the cosine with the nearest token of ``other``, in [−1, 1].

    Late interaction (MaxSim) as in BERTScore's recall (Zhang et al., ICLR 2020).
    """
    return float((claim.tokens @ other.tokens.T).max(axis=1).mean())


def token_precision(claim: TextVector, other: TextVector) -> float:
    """Mean over the tokens of ``other`` of the cosine with the nearest token of the claim."""
    return token_recall(other, claim)


def content_words(text: str, words: Words | None = None) -> set[str]:
    """Lower-case words and numbers of ``text`` that are not function words; negations are kept.

    words: another language's; without function words in its list every word is content.
    """
    function = words.function_words if words else set(_FUNCTION_WORDS.split())
    return {w.replace("’", "'") for w in _WORD.findall(text.lower())} - function


def content_recall(claim: str, passage: str, words: Words | None = None) -> float:
    """Share of the claim's content words that the passage holds, |C ∩ P| / |C|; 0 for none."""
    said = content_words(strip_citations(claim), words)
    return len(said & content_words(passage, words)) / len(said) if said else 0.0
