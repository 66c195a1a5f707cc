"""Where in a passage a claim finds its support: the best sentence, or a piece of a long one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from rag_reliability.evaluation.alignment import TextVectors, clean, content_recall
from rag_reliability.evaluation.refusals import has_word
from rag_reliability.language import Words
from rag_reliability.text import sentences

SpanFinder = Callable[[str, str], str]
"""``(claim, passage) -> text``: the part of the cleaned passage that speaks most to the claim."""

MAX_WORDS = 60
"""Longest span: a passage may be one sentence without a full stop."""
LONG = 20_000
"""Characters of a passage that are scored as one text; a longer one is cut, the best part counts.

A vector of more than some 5,000 tokens says little of any one claim, and takes 7 MB."""


def pieces(passage: str, words: Words | None = None) -> list[str]:
    """Sentences of a cleaned passage, cut to ``MAX_WORDS`` words; those without a word go."""
    found: list[str] = []
    for sentence in sentences(clean(passage), words.splitter if words else "en"):
        said = sentence.split()
        starts = range(0, len(said), MAX_WORDS)
        found += [" ".join(said[i : i + MAX_WORDS]) for i in starts]
    return [piece for piece in found if has_word(piece)]


def parts(passage: str, limit: int = LONG) -> list[str]:
    """A cleaned passage in consecutive parts of at most ``limit`` characters, cut at blanks."""
    return list(_cut(clean(passage), limit))


def _cut(text: str, limit: int) -> Iterator[str]:
    start = 0
    while len(text) - start > limit:
        blank = text.rfind(" ", start + 1, start + limit)
        end = blank if blank > 0 else start + limit
        yield text[start:end]
        start = end + (blank > 0)
    yield text[start:]


def lexical_span(claim: str, passage: str, words: Words | None = None) -> str:
    """The piece with most of the claim's content words; the first of equals, "" for none."""
    found = pieces(passage, words)
    return max(found, key=lambda piece: content_recall(claim, piece, words), default="")


def vector_span(vectors: TextVectors, words: Words | None = None) -> SpanFinder:
    """A finder by token alignment: the piece whose tokens, as read in their passage, align best.

    For a piece s the mean over the claim's tokens of the cosine with the nearest token of s; the
    first of equals. Where the tokens of the pieces are not those of the passage one for one, and
    in passages longer than ``LONG``, shared content words decide.
    """

    def find(claim: str, passage: str) -> str:
        found, text = pieces(passage, words), clean(passage)
        if len(found) < 2 or len(text) > LONG or not has_word(clean(claim)):
            return lexical_span(claim, passage, words)
        left, right = vectors.get([clean(claim), text])
        ends = np.cumsum([len(t) for t in vectors.encoder.tokens(found)])
        if ends[-1] != len(right.tokens):
            return lexical_span(claim, passage, words)
        nearest = np.maximum.reduceat(left.tokens @ right.tokens.T, [0, *ends[:-1]], axis=1)
        return found[int(np.round(nearest.mean(axis=0), 4).argmax())]

    return find


def best_of(values: Sequence[float] | np.ndarray) -> int:
    """Index of the first maximum, −1 of nothing."""
    return int(np.argmax(values)) if len(values) else -1
