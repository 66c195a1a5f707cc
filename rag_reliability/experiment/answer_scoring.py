"""Scores of answers and stance readings: from saved answers to tidy metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from rag_reliability import modelstore
from rag_reliability.evaluation.alignment import TextVectors, clean
from rag_reliability.evaluation.answers import score_answers
from rag_reliability.evaluation.contrast import PairJudge
from rag_reliability.evaluation.grounding import (
    Default,
    default_scorer,
    ground_answer,
    load_constants,
)
from rag_reliability.evaluation.refusals import answer_sentences, has_word
from rag_reliability.evaluation.spans import LONG, SpanFinder, vector_span
from rag_reliability.evaluation.stance import stance_metrics
from rag_reliability.evaluation.support import Bands
from rag_reliability.experiment.answering import (
    NO_PASSAGES,
    answers_stage,
    read_answers,
    stance_stage,
)
from rag_reliability.experiment.encoding import ENCODERS, ENCODING
from rag_reliability.experiment.scoring import save_tidy
from rag_reliability.experiment.study import Study
from rag_reliability.files import sha256_file
from rag_reliability.language import Words
from rag_reliability.records import Answer, Corpus
from rag_reliability.text import strip_citations

GROUNDING = "configs/grounding.yaml"
SCORER_ENCODER = "all-minilm-l6-v2"
_AHEAD = 2_000_000
"""Characters encoded ahead of scoring: about 0.8 GB of token vectors, less than are kept."""


@dataclass(frozen=True)
class Scorer:
    """The grounding scorer and the judge of claim pairs, sharing one encoder."""

    support: Default
    judge: PairJudge
    constants: Bands
    find_span: SpanFinder
    words: Words | None = None


def load_scorer(study: Study) -> Scorer:
    """The scorer of configs/grounding.yaml, which was calibrated for its own encoder, in English.

    It does not follow ``encoder``: another retriever must not change the measuring rod.
    """
    from rag_reliability.retrieval.encode import load_encoder

    constants = load_constants(study.path(GROUNDING))
    vectors = TextVectors(load_encoder(modelstore.resolve(SCORER_ENCODER).path))
    words = study.language.words
    support = default_scorer(vectors, constants, words)
    judge = PairJudge(vectors, constants.contrast, words)
    return Scorer(support, judge, support.constants, vector_span(vectors, words), words)


def sentence_table(text: str, passages: Sequence[str], scorer: Scorer) -> pd.DataFrame:
    """Support of each sentence of one answer: sentence, best_passage, support, band, …."""
    said = answer_sentences(text, scorer.words)
    parts = (scorer.support, scorer.constants, scorer.find_span, scorer.words)
    return ground_answer(said, passages, *parts).table


def encode_ahead(scorer: Scorer, answers: Sequence[Answer], corpus: Corpus) -> int:
    """Encode all sentences, passages and claims at once, each text once; returns their number.

    Scoring then finds their vectors in memory. Answers are taken in until their texts would not be
    kept there together; the rest is encoded as it is scored.
    """
    topics, texts, size = {topic.qid: topic for topic in corpus.topics}, dict[str, None](), 0
    for answer in answers:
        claims = topics[answer.qid].claims if answer.qid in topics else ()
        told = [
            *(strip_citations(s) for s in answer_sentences(answer.text, scorer.words)),
            *(side for claim in claims for side in (claim.gold, claim.false)),
            *(
                corpus.documents[corpus.docid[d]].content
                for d in answer.docnos
                if d in corpus.docid
            ),
        ]
        for text in map(clean, told):
            size += len(text) if text not in texts else 0
            if size > _AHEAD:
                break
            if has_word(text) and len(text) <= LONG:
                texts[text] = None
    scorer.judge.vectors.get(texts)
    return len(texts)


def answer_scores_stage(study: Study) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Score answers and stance: ``metrics/answers.csv``, ``metrics/stance.csv``, sentences.

    Returns the answers' tidy metrics and the table of sentences with their support.
    """
    outputs = ("metrics/answers.csv", "metrics/stance.csv", "answers/sentences.csv")

    def build(folder: Path) -> None:
        scorer = load_scorer(study)
        answers = read_answers(study.run_dir / "answers" / "answers.jsonl")
        encode_ahead(scorer, answers, study.corpus)
        scores = score_answers(
            answers,
            study.corpus,
            scorer.support,
            scorer.judge,
            scorer.constants,
            find_span=scorer.find_span,
            words=scorer.words,
        )
        save_tidy(scores.metrics, folder / outputs[0])
        save_tidy(_stance_scores(study), folder / outputs[1])
        (folder / "answers").mkdir()
        scores.sentences.to_csv(folder / outputs[2], index=False, float_format="%.4f")

    answers_stage(study)
    stance_stage(study)
    study.stage(
        "answer-scores",
        inputs={
            "answers": study.store.sidecar("answers")["outputs"],
            "stance": study.store.sidecar("stance")["outputs"],
            "corpus": study.corpus_digest,
            "encoder": study.model_sha(SCORER_ENCODER),
            "constants": sha256_file(study.path(GROUNDING)),
            "language": study.language.digest,
        },
        code=(
            "evaluation",
            *ENCODING,
            "records.py",
            "experiment/answer_scoring.py",
        ),
        libraries=(*ENCODERS, "sentencex"),
        outputs=outputs,
        build=build,
    )
    return (
        pd.read_csv(study.run_dir / outputs[0]),
        pd.read_csv(study.run_dir / outputs[2], keep_default_na=False),
    )


def _stance_scores(study: Study) -> pd.DataFrame:
    frame = pd.read_csv(study.run_dir / "answers" / "stance.csv")
    none = frame[frame["system"] == NO_PASSAGES].set_index("qid")["log_odds"].to_dict()
    return stance_metrics(frame, none, {t.qid: t.stance for t in study.corpus.topics})
