"""Stance readings of passages: read once per (question, passage, model), kept in the cache."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from rag_reliability import modelstore
from rag_reliability.experiment.study import Study
from rag_reliability.files import cache_root
from rag_reliability.text import is_yes_no

Pair = tuple[str, str]
"""A question and a passage; an empty passage asks what the model says unaided."""


class Stance(Protocol):
    """Reads how far each passage answers its question with yes (positive) or no (negative).

    key: names the model and wording; equal keys read equal values. read: yields numbers of the
    pairs and their readings, float64 (n, n_variants), as they come.
    """

    @property
    def key(self) -> str:
        """What the readings depend on beside the pair."""
        ...

    def read(self, pairs: Sequence[Pair]) -> Iterator[tuple[list[int], np.ndarray]]:
        """Readings of ``pairs``, in any order, each once."""
        ...


@dataclass(frozen=True)
class StanceReadings:
    """Readings of a pool's passages, and what they cost now.

    stance: float64 (n_topics, m), log-odds of yes minus those without a passage, averaged over
    prompt variants; NaN at padding and for topics that are no yes/no question.
    calls: passages read (cached ones count: someone paid for them). seconds: spent now.
    """

    stance: np.ndarray
    calls: int
    seconds: float


@dataclass(frozen=True)
class GeneratorStance:
    """The local generator's own yes or no (``generation.reading``); loaded when first needed."""

    name: str

    @property
    def key(self) -> str:
        """Model, data type and wording."""
        from rag_reliability.generation.models import compute_dtype
        from rag_reliability.generation.reading import WORDING

        return f"{modelstore.resolve(self.name).sha256}-{compute_dtype()}-{WORDING}"

    def read(self, pairs: Sequence[Pair]) -> Iterator[tuple[list[int], np.ndarray]]:
        """Readings of ``pairs``, longest first."""
        from rag_reliability.generation.models import load_generator
        from rag_reliability.generation.reading import read_pairs

        yield from read_pairs(load_generator(self.name), pairs)


def read_stances(
    questions: Sequence[str],
    texts: Sequence[Sequence[str | None]],
    stance: Stance,
    *,
    asked: Sequence[bool] | None = None,
    cache: Path | None = None,
) -> StanceReadings:
    """Stance of each passage towards its topic's question.

    questions: (n_topics,). texts: (n_topics, m), None at padding. asked: which topics are yes/no
    questions (default: those that read like one); the others stay NaN and cost nothing.
    """
    asked = [is_yes_no(q) for q in questions] if asked is None else asked
    pairs = list(
        dict.fromkeys(
            (question, text)
            for question, row, wanted in zip(questions, texts, asked, strict=True)
            if wanted
            for text in (*row, "")
            if text is not None
        )
    )
    started = time.perf_counter()
    read = cached_readings(pairs, stance, cache)
    seconds = time.perf_counter() - started
    width = max((len(row) for row in texts), default=0)
    values = np.full((len(questions), width), np.nan)
    for t, (question, row) in enumerate(zip(questions, texts, strict=True)):
        if asked[t]:
            unaided = read[question, ""]
            for i, text in enumerate(row):
                if text is not None:
                    values[t, i] = float(np.mean(read[question, text] - unaided))
    return StanceReadings(values, len(pairs), seconds)


def cached_readings(
    pairs: Sequence[Pair], stance: Stance, cache: Path | None = None
) -> dict[Pair, np.ndarray]:
    """Readings of ``pairs``, float64 (n_variants,) each; new ones are kept as they are read.

    So a broken run goes on where it stopped, and a passage is read once for all runs.
    """
    with _opened(cache or cache_root() / "stances.sqlite") as table:
        key = stance.key
        names = {pair: _name(key, pair) for pair in pairs}
        found: dict[Pair, np.ndarray] = {}
        for pair, name in names.items():
            row = table.execute("SELECT value FROM reading WHERE name = ?", (name,)).fetchone()
            if row:
                found[pair] = np.array(json.loads(row[0]))
        missing = [pair for pair in pairs if pair not in found]
        if missing:
            for numbers, values in stance.read(missing):
                for number, value in zip(numbers, values, strict=True):
                    found[missing[number]] = np.asarray(value, dtype=np.float64)
                    kept = (names[missing[number]], json.dumps(value.tolist()))
                    table.execute("INSERT OR REPLACE INTO reading VALUES (?, ?)", kept)
                table.commit()
    return found


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, timeout=60)) as table:
        table.execute("CREATE TABLE IF NOT EXISTS reading (name TEXT PRIMARY KEY, value TEXT)")
        yield table


def _name(key: str, pair: Pair) -> str:
    return hashlib.sha256(json.dumps([key, *pair]).encode()).hexdigest()


def pool_stances(
    study: Study, qids: Sequence[str], docids: np.ndarray, window: int, stance: Stance | None = None
) -> StanceReadings:
    """Stances of each topic's ``window`` most similar documents, towards the topic's question.

    docids: int64 (n_topics, m) by falling similarity, -1 at padding. A topic with a known true
    stance is a yes/no question; of the others those that read like one are. The true stance
    itself is not looked at.
    """
    corpus = study.corpus
    topics = {topic.qid: topic for topic in corpus.topics}
    chosen = [topics[qid] for qid in qids]
    texts = [
        [
            corpus.documents[d].content if d >= 0 and place < window else None
            for place, d in enumerate(row)
        ]
        for row in docids.tolist()
    ]
    return read_stances(
        [topic.query for topic in chosen],
        texts,
        stance or GeneratorStance(study.config.generator),
        asked=[topic.stance is not None or is_yes_no(topic.query) for topic in chosen],
    )
