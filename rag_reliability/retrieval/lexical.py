"""BM25 over the documents' words: the only module that calls bm25s."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_reliability.records import InputError, Pool

Stemmer = Callable[[list[str]], list[str]]
"""Stems of a list of words, in order, e.g. ``Stemmer.Stemmer("english").stemWords``."""


@dataclass(frozen=True)
class LexicalIndex:
    """BM25 scores of a corpus, looked up for queries.

    Scores: Σ_w idf(w) · tf / (tf + k1 · (1 - b + b · length / mean length)) over the query's words,
    idf = ln(1 + (N - n_w + .5) / (n_w + .5)); Robertson and Zaragoza (2009) in Lucene's form, see
    Kamphuis et al., ECIR 2020. Words are lower-case runs of two or more word characters without
    English stop words; a word that the query repeats counts as often.
    """

    n_docs: int
    index: Any
    stemmer: Stemmer | None = None
    stopwords: Sequence[str] | None = None

    @classmethod
    def build(
        cls,
        texts: Sequence[str],
        *,
        k1: float = 1.5,
        b: float = 0.75,
        stemmer: Stemmer | None = None,
        stopwords: Sequence[str] | None = None,
    ) -> LexicalIndex:
        """Index over ``texts``, one for each docid. stopwords: another language's (None: English).

        Raises: InputError for k1 < 0, b outside [0, 1] or texts without a single word.
        """
        import bm25s  # heavy: loads numba

        if k1 < 0 or not 0 <= b <= 1:
            raise InputError(f"k1 = {k1}, b = {b}; expected k1 >= 0 and 0 <= b <= 1")
        words = _words(texts, stemmer, stopwords)
        if not any(words):
            raise InputError(f"none of {len(texts)} texts holds a word; expected words to index")
        index = bm25s.BM25(k1=k1, b=b, method="lucene", dtype="float64", backend="numpy")
        # Words in order of first use: bm25s's own table has the order of a set, not the same twice.
        vocabulary = {word: i for i, word in enumerate(dict.fromkeys(w for t in words for w in t))}
        ids = [[vocabulary[word] for word in text] for text in words]
        index.index((ids, vocabulary), show_progress=False)
        return cls(len(texts), index, stemmer, stopwords)

    def scores(self, queries: Sequence[str], docids: np.ndarray) -> np.ndarray:
        """BM25 score of each candidate, float64 (n_topics, m) >= 0; 0 at padding.

        docids: int64 (n_topics, m), -1 at padding; row t belongs to ``queries[t]``.
        """
        if len(queries) != len(docids):
            raise ValueError(f"{len(queries)} queries for docids of {len(docids)} topics")
        found = np.zeros(docids.shape)
        for t, words in enumerate(_words(queries, self.stemmer, self.stopwords)):
            found[t] = np.where(docids[t] >= 0, self._all(words)[docids[t]], 0.0)
        return found

    def search(self, queries: Sequence[str], k: int) -> Pool:
        """The ``k`` documents of highest BM25 score for each query, by (-score, docid).

        ``sims`` of the pool are the scores. Documents that share no word with the query are not
        found: padding, -1 and -inf, stands in their place.

        Raises: InputError for k < 1.
        """
        if k < 1:
            raise InputError(f"k = {k}; expected a whole number >= 1")
        docids = np.full((len(queries), k), -1, dtype=np.int64)
        sims = np.full((len(queries), k), -np.inf)
        for t, words in enumerate(_words(queries, self.stemmer, self.stopwords)):
            scores = self._all(words)
            top = np.argsort(-scores, kind="stable")[:k]
            top = top[scores[top] > 0]
            docids[t, : len(top)], sims[t, : len(top)] = top, scores[top]
        return Pool(docids, sims)

    def _all(self, words: list[str]) -> np.ndarray:
        """Score of every document, float64 (n_docs,)."""
        known = [self.index.vocab_dict[w] for w in words if w in self.index.vocab_dict]
        if not known:
            return np.zeros(self.n_docs)
        return np.asarray(self.index.get_scores_from_ids(known), dtype=np.float64)


def _words(
    texts: Sequence[str], stemmer: Stemmer | None, stopwords: Sequence[str] | None
) -> list[list[str]]:
    import bm25s

    left_out: Any = "english" if stopwords is None else list(stopwords)
    words = bm25s.tokenize(list(texts), stopwords=left_out, return_ids=False, show_progress=False)
    return [stemmer(text) if text else [] for text in words] if stemmer else words
