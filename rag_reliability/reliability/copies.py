"""Near copies among a topic's candidates, and near-verbatim sentences that contradict each other.

Words only, no model: what is found was changed in a word or two. A lie told in its own words is
not seen here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from rag_reliability.records import InputError
from rag_reliability.reliability.contradictions import Statement, contradict, statements

_WORD = re.compile(r"[^\W_]+")
_FEWEST_SHINGLES = 8
_MOST_TIMES = 3
_FEWEST_COMMON = 3
_MOST_APART = 3


def copy_groups(
    texts: Sequence[str], docids: np.ndarray, *, threshold: float = 0.7, width: int = 3
) -> np.ndarray:
    """Group of near copies of each candidate, int64 (n_topics, m): its smallest docid, -1 padding.

    Two candidates of a topic are near copies where |A ∩ B| / min(|A|, |B|) >= threshold, A and B
    their sets of ``width`` successive words (containment of shingles: Broder, SEQUENCES 1997), or
    where their words are all the same; copies of copies are in the group. Containment, so that a
    copy with text added is one, up to three times the length: beyond that a page that quotes two
    others would join them. Texts of fewer than 8 shingles must be equal.

    texts: (n_docs,). docids: int64 (n_topics, m), -1 at padding.

    Raises: InputError for a threshold outside (0, 1] or width < 1.
    """
    if not 0 < threshold <= 1 or width < 1:
        raise InputError(
            f"threshold = {threshold}, width = {width}; expected 0 < threshold <= 1, width >= 1"
        )
    known = np.unique(docids[docids >= 0])
    words = [_WORD.findall(texts[d].casefold()) for d in known]
    same = _codes([tuple(w) for w in words])
    shingles = _incidence([set(zip(*(w[i:] for i in range(width)), strict=False)) for w in words])
    groups = np.full(docids.shape, -1, dtype=np.int64)
    for t, valid in _topics(docids):
        rows = np.searchsorted(known, docids[t, valid])
        mine = shingles[rows]
        common = (mine @ mine.T).toarray()
        sizes = common.diagonal()
        least = np.minimum(sizes[:, None], sizes[None, :])
        alike = (least >= _FEWEST_SHINGLES) & (
            _MOST_TIMES * least >= np.maximum.outer(sizes, sizes)
        )
        near = alike & (common >= threshold * least)
        near |= same[rows][:, None] == same[rows][None, :]
        labels = connected_components(csr_array(near), directed=False)[1]
        first = np.full(labels.max() + 1, np.iinfo(np.int64).max)
        np.minimum.at(first, labels, known[rows])
        groups[t, valid] = first[labels]
    return groups


def conflicts(texts: Sequence[str], docids: np.ndarray) -> np.ndarray:
    """Whether two candidates hold near-verbatim sentences that contradict each other.

    bool (n_topics, m, m), symmetric, False at padding and along the diagonal; what counts is told
    in ``contradictions.contradict``. texts: (n_docs,). docids: int64 (n_topics, m), -1 at padding.
    """
    known = np.unique(docids[docids >= 0])
    told = [statements(texts[d]) for d in known]
    flat = list(chain.from_iterable(told))
    start = np.concatenate([[0], np.cumsum([len(s) for s in told])]).astype(np.int64)
    same, words = _codes(flat), _incidence([set(s.words) for s in flat])
    verdicts: dict[tuple[int, int], bool] = {}
    found = np.zeros((*docids.shape, docids.shape[1]), dtype=bool)
    for t, valid in _topics(docids):
        rows = np.searchsorted(known, docids[t, valid])
        own = np.concatenate([np.arange(start[r], start[r + 1]) for r in rows])
        column = np.repeat(valid, [start[r + 1] - start[r] for r in rows])
        for a, b in _alike(words, own, column, same):
            key = (int(same[own[a]]), int(same[own[b]]))
            if key not in verdicts:
                verdicts[key] = contradict(flat[own[a]], flat[own[b]])
            if verdicts[key]:
                found[t, column[a], column[b]] = found[t, column[b], column[a]] = True
    return found


def _alike(
    words: csr_array, own: np.ndarray, column: np.ndarray, same: np.ndarray
) -> Iterator[tuple[int, int]]:
    """Pairs of sentences of two documents with nearly the same words, that are not the same."""
    mine = words[own]
    sizes = np.asarray(mine.sum(axis=1)).ravel()
    common = (mine @ mine.T).tocoo()
    a, b = common.coords
    most = np.maximum(sizes[a], sizes[b])
    close = (common.data >= np.maximum(_FEWEST_COMMON, most - _MOST_APART)) & (a < b)
    close &= (column[a] != column[b]) & (same[own[a]] != same[own[b]])
    return zip(a[close].tolist(), b[close].tolist(), strict=True)


def _topics(docids: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Each topic that has candidates, and their columns."""
    for t, row in enumerate(docids):
        valid = np.flatnonzero(row >= 0)
        if len(valid):
            yield t, valid


def _codes(items: Sequence[Statement] | Sequence[tuple[str, ...]]) -> np.ndarray:
    """A number for each item, int64; equal numbers for equal items."""
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(item, len(numbers)) for item in items], dtype=np.int64)


def _incidence(sets: Sequence[set]) -> csr_array:
    """Rows: sets; columns: their members; 1 where a set holds one."""
    numbers: dict[object, int] = {}
    columns = [numbers.setdefault(member, len(numbers)) for row in sets for member in row]
    ends = np.concatenate([[0], np.cumsum([len(row) for row in sets])])
    shape = (len(sets), max(len(numbers), 1))
    return csr_array((np.ones(len(columns), dtype=np.int32), columns, ends), shape=shape)
