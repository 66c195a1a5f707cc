"""Opens questions for exploring: searches, encodes and reads once what ranking then builds on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from rag_reliability.experiment.answer_scoring import Scorer, load_scorer, sentence_table
from rag_reliability.experiment.answering import passage
from rag_reliability.experiment.backends import open_backend
from rag_reliability.experiment.bench import Bench
from rag_reliability.experiment.encoding import study_encoder
from rag_reliability.experiment.exploring_fields import lexical_index, read_field
from rag_reliability.experiment.ranking import index_stage, needed_depth, partitions
from rag_reliability.experiment.study import Study
from rag_reliability.experiment.views import topic_of
from rag_reliability.generation.prompt import build_messages, prompt_ids
from rag_reliability.records import Document, InputError
from rag_reliability.reliability.priors import effective_types, prior_vector
from rag_reliability.reliability.rerank import tie_ranks
from rag_reliability.reliability.robust import NEEDS, RULES

if TYPE_CHECKING:
    from rag_reliability.generation.models import Generator
    from rag_reliability.retrieval.encode import SentenceTransformerEncoder
    from rag_reliability.retrieval.lexical import LexicalIndex

DEPTH = 60
"""Candidates of each source type: rankings are exact up to this rank window, for any priors."""
LONGEST = 2000
"""Characters of a question."""


@dataclass(frozen=True, eq=False)
class Session:
    """A study's models, each loaded once, on first use."""

    study: Study

    @cached_property
    def encoder(self) -> SentenceTransformerEncoder:
        """The study's encoder."""
        return study_encoder(self.study)

    @cached_property
    def lexical(self) -> LexicalIndex:
        """BM25 over the whole corpus."""
        return lexical_index(self.study)

    @cached_property
    def generator(self) -> Generator:
        """The study's language model."""
        from rag_reliability.generation.models import load_generator

        return load_generator(self.study.config.generator)

    @cached_property
    def scorer(self) -> Scorer:
        """The grounding scorer."""
        return load_scorer(self.study)

    def bench(self, qid: str | None = None, query: str = "") -> Bench:
        """Candidates of a topic, or of a question of one's own.

        Raises InputError for an unknown topic or an empty question.
        """
        topic = topic_of(self.study, qid) if qid else None
        asked = topic.query if topic else checked_question(query)
        vector = self.encoder.encode([asked])
        index_stage(self.study)
        with open_backend(self.study, partitions(self.study)) as backend:
            pool = backend.search(vector, max(DEPTH, needed_depth(self.study)))
        docids, sims = pool.docids[0][pool.docids[0] >= 0], pool.sims[0][pool.docids[0] >= 0]
        ties = tie_ranks(self.study.corpus.docnos)[docids]
        order = np.lexsort((ties, -sims))
        return Bench(
            asked,
            vector[0],
            tuple(self.study.corpus.documents[d] for d in docids[order]),
            sims[order],
            dict(self.study.corpus.qrels.get(qid or "", {})),
            topic,
        )

    def prior(self, documents: Sequence[Document], table: Mapping[str, float]) -> np.ndarray:
        """λ of each document under ``table``, float64 (m,), after the sources' overrides."""
        kinds = effective_types(
            [d.source_type for d in documents],
            [d.source for d in documents],
            self.study.priors.sources,
        )
        return prior_vector(table, kinds, unknown_prior=self.study.config.unknown_prior)

    def extended(self, bench: Bench, document: Document) -> Bench:
        """The bench with one more document, encoded here, once; what was read of it is dropped.

        Raises InputError for a text without a readable word or a docno that is taken.
        """
        if document.docno in bench.docnos:
            raise InputError(f"{document.docno!r} is already there; expected a new docno")
        vector = self.encoder.encode([document.content])[0]
        sim = float(vector.astype(np.float64) @ bench.query_vec.astype(np.float64))
        documents, sims = (*bench.documents, document), np.append(bench.sims, sim)
        order = np.lexsort((tie_ranks([d.docno for d in documents]), -sims))
        return Bench(
            bench.query,
            bench.query_vec,
            tuple(documents[i] for i in order),
            sims[order],
            bench.labels,
            bench.topic,
        )

    def ready_for(self, bench: Bench, rule: str) -> Bench:
        """The bench with all that ``rule`` looks at; stances are read by the model, once a passage.

        Raises InputError for an unknown rule.
        """
        if rule not in RULES:
            raise InputError(f"unknown rule {rule!r}; known: {', '.join(RULES)}")
        missing = [name for name in NEEDS.get(rule, ()) if name not in bench.fields]
        if not missing:
            return bench
        fields = dict(bench.fields)
        for name in missing:
            fields[name] = read_field(name, self.study, bench, lambda: self.lexical)
        return replace(bench, fields=fields)

    def answers(self, query: str, shown: Sequence[Sequence[Document]]) -> list[str]:
        """An answer from each list of documents; equal lists are answered once."""
        from rag_reliability.generation.generate import generate

        language = self.study.language
        asked = [
            build_messages(query, [passage(d) for d in documents], "plain", language)
            for documents in shown
        ]
        prompts = [prompt_ids(self.generator, messages) for messages in asked]
        return generate(
            self.generator,
            prompts,
            language=language.splitter,
            max_new_tokens=self.study.config.max_new_tokens,
            batch_size=len(prompts),
            progress=False,
        )

    def support(self, text: str, documents: Sequence[Document]) -> pd.DataFrame:
        """Support of each sentence of an answer by the documents shown (``ground_answer``)."""
        return sentence_table(text, [d.content for d in documents], self.scorer)


def checked_question(query: str) -> str:
    """The question, trimmed. Raises InputError for an empty, overlong or invalid one."""
    if not query.strip():
        raise InputError("the question is empty")
    if any("\ud800" <= c <= "\udfff" for c in query):
        raise InputError("the question is not valid text (a lone surrogate)")
    if len(query) > LONGEST:
        raise InputError(f"the question has {len(query)} characters; expected at most {LONGEST}")
    return query.strip()
