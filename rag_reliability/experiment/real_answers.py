"""Answers on a real corpus: what the generator makes of the passages on a few topics, scored."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from rag_reliability.evaluation.answers import score_answers
from rag_reliability.evaluation.stance import stance_metrics
from rag_reliability.experiment.answer_scoring import GROUNDING, SCORER_ENCODER, load_scorer
from rag_reliability.experiment.answering import NO_PASSAGES, STANCE_BATCH, read_answers
from rag_reliability.experiment.ranking import load_runs
from rag_reliability.experiment.real_data import answered_topics, read_runs
from rag_reliability.experiment.report_parts import saved
from rag_reliability.experiment.scoring import save_tidy
from rag_reliability.experiment.study import Study
from rag_reliability.experiment.threat_answers import Shown, generated, probed
from rag_reliability.files import sha256_file
from rag_reliability.records import Answer

ANSWERS, SENTENCES = "answers/real_answers.jsonl", "answers/real_sentences.csv"
METRICS, STANCE = "metrics/real_answers.csv", "metrics/real_stance.csv"
ANSWERED = ("similarity", "source_aware", "verified_collapse", "stance_consistent")
"""Systems and rules whose passages the generator answers from."""


def passages_shown(bed: Study, n: int) -> Shown:
    """Docnos shown by (system, qid), best first, on the ``n`` answered topics.

    Systems of ``ANSWERED`` that the retrieval stage has ranked, and none before them all.
    """
    chosen, k = answered_topics(bed, n), bed.config.k
    runs = {**load_runs(bed), **read_runs(bed.run_dir)}
    return {(NO_PASSAGES, qid): () for qid in chosen} | {
        (system, qid): tuple(runs[system][qid][:k])
        for system in ANSWERED
        if system in runs
        for qid in chosen
    }


def real_answers_stage(bed: Study, n: int) -> pd.DataFrame:
    """Answer and score ``n`` topics: ``metrics/real_answers.csv``; returns it.

    Also ``metrics/real_stance.csv`` (no rows where no topic has a stance), the answers' texts and
    their sentences. Needs the rankings of ``retrieval_stage``.
    """
    shown = passages_shown(bed, n)

    def build(folder: Path) -> None:
        scorer, corpus = load_scorer(bed), bed.corpus
        answers = generated(bed, shown)
        scores = score_answers(
            answers,
            corpus,
            scorer.support,
            scorer.judge,
            scorer.constants,
            find_span=scorer.find_span,
            words=scorer.words,
        )
        save_tidy(scores.metrics, folder / METRICS)
        save_tidy(stance_scores(bed, shown), folder / STANCE)
        (folder / "answers").mkdir()
        write_answers(answers, folder / ANSWERS)
        scores.sentences.to_csv(folder / SENTENCES, index=False, float_format="%.4f")

    config = bed.config
    bed.stage(
        "real-answers",
        inputs={
            "corpus": bed.corpus_digest,
            "shown": [[*key, *docnos] for key, docnos in shown.items()],
            "generator": bed.model_sha(config.generator),
            "max_new_tokens": config.max_new_tokens,
            "batch_size": [config.batch_size, STANCE_BATCH],
            "scorer": bed.model_sha(SCORER_ENCODER),
            "constants": sha256_file(bed.path(GROUNDING)),
            "language": bed.language.digest,
        },
        code=("generation", "evaluation", "modelstore", "text.py", "records.py", "experiment"),
        libraries=("torch", "transformers", "sentence-transformers", "sentencex"),
        outputs=(METRICS, STANCE, ANSWERS, SENTENCES),
        build=build,
    )
    return saved(bed, METRICS).astype({"qid": str})


def stance_scores(bed: Study, shown: Shown) -> pd.DataFrame:
    """Tidy stance metrics of the topics that have a stance."""
    odds = probed(bed, shown)
    if odds.empty:
        return pd.DataFrame(columns=["system", "qid", "metric", "value"])
    none = odds[odds["system"] == NO_PASSAGES].set_index("qid")["log_odds"].to_dict()
    return stance_metrics(odds, none, {t.qid: t.stance for t in bed.corpus.topics})


def write_answers(answers: list[Answer], path: Path) -> None:
    """One answer a line, as JSON."""
    rows = (json.dumps(asdict(answer), ensure_ascii=False) + "\n" for answer in answers)
    path.write_text("".join(rows), encoding="utf-8")


def real_answers(bed: Study) -> list[Answer]:
    """The saved answers."""
    return read_answers(bed.run_dir / ANSWERS)
