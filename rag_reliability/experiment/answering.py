"""Answers and stance readings: what a local language model makes of each system's passages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from rag_reliability.experiment.ranking import SYSTEMS, load_runs
from rag_reliability.experiment.study import Study
from rag_reliability.generation.models import Generator, load_generator
from rag_reliability.generation.prompt import Passage, build_messages, prompt_ids
from rag_reliability.generation.stance import stance_messages, yes_no_log_odds
from rag_reliability.records import Answer, Document, InputError

NO_PASSAGES = "no_passages"
"""The baseline that sees the question alone: bad passages can be worse than none."""
STANCE_BATCH = 4
"""Reading is all computing: small batches waste least on padding (measured)."""
_CODE = ("generation", "modelstore", "text.py", "records.py", "experiment/answering.py")
_LIBRARIES = ("torch", "transformers")


def passage(document: Document) -> Passage:
    """A document as the generator sees it."""
    return Passage(document.content, document.source_type)


def shown(study: Study, systems: Sequence[str]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """(system, qid, docnos shown) for each system and topic; the no-passages baseline first."""
    for topic in study.corpus.topics:
        yield NO_PASSAGES, topic.qid, ()
    runs = load_runs(study)
    for system in systems:
        if system not in runs:
            raise InputError(
                f"unknown system {system!r} in answer_systems; known: {', '.join(SYSTEMS)}"
            )
        for topic in study.corpus.topics:
            yield system, topic.qid, tuple(runs[system][topic.qid][: study.config.k])


def answers_stage(study: Study) -> list[Answer]:
    """Generate every system's answer in every arm: ``answers/answers.jsonl``; returns them."""

    def build(folder: Path) -> None:
        from rag_reliability.generation.generate import generate

        blank = [
            Answer(qid, system, arm, "", docnos)
            for system, qid, docnos in shown(study, study.config.answer_systems)
            for arm in (study.config.arms if docnos else ("plain",))
        ]
        generator = load_generator(study.config.generator)
        texts = generate(
            generator,
            [answer_prompt(study, generator, answer) for answer in blank],
            max_new_tokens=study.config.max_new_tokens,
            batch_size=study.config.batch_size,
            language=study.language.splitter,
            progress=True,
        )
        rows = [asdict(a) | {"text": text} for a, text in zip(blank, texts, strict=True)]
        path = folder / "answers" / "answers.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text(
            "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), encoding="utf-8"
        )

    runs = load_runs(study)
    config = study.config
    study.stage(
        "answers",
        inputs={
            "corpus": study.corpus_digest,
            "runs": {
                s: {q: d[: config.k] for q, d in runs[s].items()}
                for s in config.answer_systems
                if s in runs
            },
            "generator": study.model_sha(config.generator),
            "language": study.language.digest,
            **{
                name: getattr(config, name)
                for name in ("answer_systems", "arms", "max_new_tokens", "batch_size")
            },
        },
        code=_CODE,
        libraries=_LIBRARIES,
        outputs=("answers/answers.jsonl",),
        build=build,
    )
    return read_answers(study.run_dir / "answers" / "answers.jsonl")


def answer_prompt(study: Study, generator: Generator, answer: Answer) -> list[int]:
    """Token ids of the prompt for one answer."""
    corpus = study.corpus
    query = next(t.query for t in corpus.topics if t.qid == answer.qid)
    passages = [passage(corpus.documents[corpus.docid[d]]) for d in answer.docnos]
    return prompt_ids(generator, build_messages(query, passages, answer.arm, study.language))


def read_answers(path: Path) -> list[Answer]:
    """Answers from their file, in its order."""
    with path.open(encoding="utf-8") as lines:  # not splitlines, which also ends lines at U+2028
        rows = [json.loads(line) for line in lines]
    return [Answer(**{**row, "docnos": tuple(row["docnos"])}) for row in rows]


def stance_stage(study: Study) -> pd.DataFrame:
    """Read the stance that each system's passages give: ``answers/stance.csv``.

    Returns columns system, qid, log_odds: log P(yes) − log P(no) over the first token.
    """

    def build(folder: Path) -> None:
        corpus = study.corpus
        query = {t.qid: t.query for t in corpus.topics if t.stance}
        rows = [row for row in shown(study, SYSTEMS) if row[1] in query]
        generator = load_generator(study.config.generator)
        prompts = [
            prompt_ids(
                generator,
                stance_messages(
                    query[qid],
                    [passage(corpus.documents[corpus.docid[d]]) for d in docnos],
                    study.language,
                ),
            )
            for _, qid, docnos in rows
        ]
        frame = pd.DataFrame([row[:2] for row in rows], columns=["system", "qid"])
        frame["log_odds"] = yes_no_log_odds(
            generator,
            prompts,
            language=study.language,
            batch_size=STANCE_BATCH,
            progress=True,
        )
        path = folder / "answers" / "stance.csv"
        path.parent.mkdir(parents=True)
        frame.to_csv(path, index=False, float_format="%.6f")

    runs = load_runs(study)
    config = study.config
    study.stage(
        "stance",
        inputs={
            "corpus": study.corpus_digest,
            "runs": {s: {q: d[: config.k] for q, d in run.items()} for s, run in runs.items()},
            "generator": study.model_sha(config.generator),
            "language": study.language.digest,
            "batch_size": STANCE_BATCH,
        },
        code=_CODE,
        libraries=_LIBRARIES,
        outputs=("answers/stance.csv",),
        build=build,
    )
    return pd.read_csv(study.run_dir / "answers" / "stance.csv")
