"""What rules look at beside similarity and prior, read for the candidates of one question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rag_reliability.experiment.bench import Bench
from rag_reliability.experiment.stances import claim_questions, read_stances, stance_reader
from rag_reliability.experiment.study import Study
from rag_reliability.records import Document
from rag_reliability.reliability.copies import conflicts, copy_groups
from rag_reliability.text import is_yes_no

if TYPE_CHECKING:
    from rag_reliability.retrieval.lexical import LexicalIndex

READ_DEPTH = 30
"""Passages that a model is asked to read, twice the study's rank window."""


def read_field(
    name: str, study: Study, bench: Bench, lexical: Callable[[], LexicalIndex]
) -> np.ndarray:
    """One field of ``robust.NEEDS`` for a bench of m documents: (m,), or (m, m) for conflicts.

    lexical: gives BM25 over the whole corpus, built when it is first asked for.
    """
    if name == "lexical":
        return _lexical(study, bench, lexical)
    read = {"copies": _copies, "conflicts": _conflicts, "source": _source, "stance": _stance}
    return read[name](study, bench)


def lexical_index(study: Study, more: Sequence[Document] = ()) -> LexicalIndex:
    """BM25 over the whole corpus, and over ``more`` documents after it."""
    from rag_reliability.retrieval.lexical import LexicalIndex

    words = study.language.words
    texts = [d.content for d in (*study.corpus.documents, *more)]
    return LexicalIndex.build(texts, stopwords=sorted(words.function_words) if words else None)


def _lexical(study: Study, bench: Bench, whole: Callable[[], LexicalIndex]) -> np.ndarray:
    """BM25 over the corpus; with texts of one's own, over the corpus and them."""
    docid = study.corpus.docid
    mine = [d for d in bench.documents if d.docno not in docid]
    index = lexical_index(study, mine) if mine else whole()
    own = {d.docno: len(docid) + i for i, d in enumerate(mine)}
    rows = [own[d.docno] if d.docno in own else docid[d.docno] for d in bench.documents]
    return index.scores([bench.query], np.array([rows]))[0]


def _copies(_: Study, bench: Bench) -> np.ndarray:
    return copy_groups(_texts(bench), np.arange(len(bench.documents))[None])[0]


def _conflicts(study: Study, bench: Bench) -> np.ndarray:
    m = len(bench.documents)
    if study.language.words is not None:  # words that tell a contradiction are English
        return np.zeros((m, m), dtype=bool)
    return conflicts(_texts(bench), np.arange(m)[None])[0]


def _source(_: Study, bench: Bench) -> np.ndarray:
    names, codes = np.unique([d.source for d in bench.documents], return_inverse=True)
    return np.where(names[codes] == "", -1, codes)


def _stance(study: Study, bench: Bench) -> np.ndarray:
    """The model's readings of the most similar passages, NaN for the others."""
    near = bench.documents[:READ_DEPTH]
    known = bench.topic is not None and bench.topic.stance is not None
    if known or is_yes_no(bench.query, study.language.words):
        questions = [bench.query]
    else:
        checked = [d.content for d in near if d.verified][:2]
        questions = claim_questions(study, [bench.query], [checked])[0]
    reader = stance_reader(study.config.stance_model or study.config.generator, study.language)
    found = read_stances([questions], [[d.content for d in near]], reader).stance[0]
    return np.pad(found, (0, len(bench.documents) - len(near)), constant_values=np.nan)


def _texts(bench: Bench) -> list[str]:
    return [d.content for d in bench.documents]
