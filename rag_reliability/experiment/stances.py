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
from rag_reliability.files import cache_root, sha256_bytes
from rag_reliability.language import Language, english
from rag_reliability.text import is_yes_no, sentences

CLAIM_SOURCES = 2
"""Verified passages whose claim is asked about where a topic is no yes/no question."""
_BLOCK = 64
_LEAST = 1e-4  # what the NLI scorer's rounding can tell from nothing
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
    """Readings of a pool's passages, and what they cost.

    stance: float64 (n_topics, m), log-odds of yes minus those without a passage, averaged over
    prompt variants and questions; NaN at padding and for topics that nothing was asked about.
    calls: passages read, one forward pass each; seconds: what that took. Both count readings from
    the cache as when they were made, so that a rule costs the same however often it is run.
    """

    stance: np.ndarray
    calls: int
    seconds: float


@dataclass(frozen=True)
class GeneratorStance:
    """The local generator's own yes or no (``generation.reading``); loaded when first needed.

    language: whose words it is asked in (None: English).
    """

    name: str
    language: Language | None = None

    @property
    def key(self) -> str:
        """Model, data type and wording."""
        from rag_reliability.generation.models import compute_dtype
        from rag_reliability.generation.reading import WORDING

        key = f"{modelstore.resolve(self.name).sha256}-{compute_dtype()}-{WORDING}"
        return f"{key}{_asked_in(self.language)}"

    def read(self, pairs: Sequence[Pair]) -> Iterator[tuple[list[int], np.ndarray]]:
        """Readings of ``pairs``, longest first."""
        from rag_reliability.generation.models import load_generator
        from rag_reliability.generation.reading import read_pairs

        yield from read_pairs(load_generator(self.name), pairs, self.language)


@dataclass(frozen=True)
class EntailmentStance:
    """An NLI model in the same place: log P(entails yes) − log P(entails no), by path or id.

    The hypotheses quote the question, so any topic can be read without rewriting it as a claim.
    An empty passage entails nothing and reads 0. language: as in ``GeneratorStance``.
    """

    name: str
    language: Language | None = None

    @property
    def key(self) -> str:
        """Model and wording."""
        return f"{modelstore.resolve(self.name).sha256}-entailment-1{_asked_in(self.language)}"

    def read(self, pairs: Sequence[Pair]) -> Iterator[tuple[list[int], np.ndarray]]:
        """Readings of ``pairs`` in blocks, in order."""
        from rag_reliability.evaluation.nli import load_nli

        scorer = load_nli(modelstore.resolve(self.name).path)
        words = (self.language or english()).stance
        for start in range(0, len(pairs), _BLOCK):
            block = list(pairs[start : start + _BLOCK])
            passages = [passage for _, passage in block]
            yes, no = (
                scorer.probabilities(
                    [words.hypothesis.format(question=q, answer=word) for q, _ in block], passages
                )["entailment"]
                for word in words.yes_no
            )
            odds = np.log(np.maximum(yes, _LEAST)) - np.log(np.maximum(no, _LEAST))
            yield list(range(start, start + len(block))), odds[:, None]


def _asked_in(language: Language | None) -> str:
    """What another language adds to a reading's key: its prompts' hash; English adds nothing."""
    if language is None or language.stance == english().stance:
        return ""
    return f"-{language.code}-{sha256_bytes(language.stance.model_dump_json().encode())[:16]}"


def stance_reader(name: str, language: Language | None = None) -> Stance:
    """The reader for a model by catalogue name, path or hub id: NLI if it classifies sequences.

    Raises InputError when the model is not here.
    """
    config = modelstore.resolve(name).path / "config.json"
    if config.is_file():
        kinds = json.loads(config.read_text(encoding="utf-8")).get("architectures") or [""]
        if kinds[0].endswith("ForSequenceClassification"):
            return EntailmentStance(name, language)
    return GeneratorStance(name, language)


def read_stances(
    questions: Sequence[Sequence[str]],
    texts: Sequence[Sequence[str | None]],
    stance: Stance,
    *,
    cache: Path | None = None,
) -> StanceReadings:
    """Stance of each passage towards its topic's questions, averaged over them.

    questions: yes/no questions of each topic; a topic without any stays NaN and costs nothing.
    texts: (n_topics, m), None at padding.
    """
    pairs = list(
        dict.fromkeys(
            (question, text)
            for asked, row in zip(questions, texts, strict=True)
            for question in asked
            for text in (*row, "")
            if text is not None
        )
    )
    read, seconds = cached_readings(pairs, stance, cache)
    values = np.full((len(questions), max((len(row) for row in texts), default=0)), np.nan)
    for t, (asked, row) in enumerate(zip(questions, texts, strict=True)):
        for i, text in enumerate(row):
            if asked and text is not None:
                each = [np.mean(read[question, text] - read[question, ""]) for question in asked]
                values[t, i] = float(np.mean(each))
    return StanceReadings(values, len(pairs), seconds)


def cached_readings(
    pairs: Sequence[Pair], stance: Stance, cache: Path | None = None
) -> tuple[dict[Pair, np.ndarray], float]:
    """Readings of ``pairs``, float64 (n_variants,) each, and the seconds that they took.

    New ones are kept as they are read, so a broken run goes on where it stopped, and a passage is
    read once for all runs.
    """
    with _opened(cache or cache_root() / "stances.sqlite") as table:
        key, spent = stance.key, 0.0
        names = {pair: _name(key, pair) for pair in pairs}
        found: dict[Pair, np.ndarray] = {}
        for pair, name in names.items():
            query = "SELECT value, seconds FROM reading WHERE name = ?"
            if row := table.execute(query, (name,)).fetchone():
                found[pair] = np.array(json.loads(row[0]))
                spent += row[1]
        missing = [pair for pair in pairs if pair not in found]
        started = time.perf_counter()
        for numbers, values in stance.read(missing) if missing else ():
            each = (time.perf_counter() - started) / len(numbers)
            for number, value in zip(numbers, values, strict=True):
                found[missing[number]] = np.asarray(value, dtype=np.float64)
                kept = (names[missing[number]], json.dumps(value.tolist()), each)
                table.execute("INSERT OR REPLACE INTO reading VALUES (?, ?, ?)", kept)
            table.commit()
            spent += each * len(numbers)
            started = time.perf_counter()
    return found, spent


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, timeout=60)) as table:
        table.execute(
            "CREATE TABLE IF NOT EXISTS reading (name TEXT PRIMARY KEY, value TEXT, seconds REAL)"
        )
        yield table


def _name(key: str, pair: Pair) -> str:
    return hashlib.sha256(json.dumps([key, *pair]).encode()).hexdigest()


def pool_stances(
    study: Study, qids: Sequence[str], docids: np.ndarray, depth: int
) -> StanceReadings:
    """Stances of each topic's ``depth`` most similar documents.

    docids: int64 (n_topics, m) by falling similarity, -1 at padding. A topic of known stance is a
    yes/no question, and so is one that reads like one; others are asked about the claims of
    their verified passages (``claim_questions``). The true stance itself is not looked at.
    """
    documents = study.corpus.documents
    topics = {topic.qid: topic for topic in study.corpus.topics}
    chosen = [topics[qid] for qid in qids]
    near = docids[:, :depth].tolist()
    open_ended = [
        topic.stance is None and not is_yes_no(topic.query, study.language.words)
        for topic in chosen
    ]
    verified = [
        [documents[d].content for d in row if d >= 0 and documents[d].verified][:CLAIM_SOURCES]
        if wanted
        else []
        for row, wanted in zip(near, open_ended, strict=True)
    ]
    claims = claim_questions(study, [topic.query for topic in chosen], verified)
    questions = [
        found if wanted else [topic.query]
        for topic, found, wanted in zip(chosen, claims, open_ended, strict=True)
    ]
    texts = [[documents[d].content if d >= 0 else None for d in row] for row in near]
    config = study.config
    reader = stance_reader(config.stance_model or config.generator, study.language)
    return read_stances(questions, texts, reader)


def claim_questions(
    study: Study, queries: Sequence[str], passages: Sequence[Sequence[str]]
) -> list[list[str]]:
    """For each topic, one yes/no question for each of its (verified) passages.

    The claim is the passage's sentence that is nearest to the query, of 5 to 60 words and no
    question itself. Passages that say it read high, those that deny it low.
    """
    from rag_reliability.experiment.encoding import study_encoder

    spoken = study.language
    told = [[_statements(text, spoken.splitter) for text in row] for row in passages]
    flat = [sentence for row in told for found in row for sentence in found]
    if not flat:
        return [[] for _ in queries]
    encoder = study_encoder(study)
    vectors = iter(encoder.encode(flat))
    questions: list[list[str]] = []
    for query, row in zip(encoder.encode(list(queries)), told, strict=True):
        asked = []
        for found in row:
            sims = [float(query @ next(vectors)) for _ in found]
            if sims:
                asked.append(spoken.stance.claim.format(claim=found[int(np.argmax(sims))]))
        questions.append(asked)
    return questions


def _statements(text: str, language: str) -> list[str]:
    return [
        s for s in sentences(text, language) if not s.endswith("?") and 5 <= len(s.split()) <= 60
    ]
