"""Encoding ahead of scoring: the same scores, and each text once."""

from __future__ import annotations

import pandas as pd

from rag_reliability.evaluation.answers import score_answers
from rag_reliability.experiment.answer_scoring import encode_ahead, load_scorer
from rag_reliability.experiment.study import open_study
from rag_reliability.records import Answer


def test_scores_are_the_same_and_each_text_is_encoded_once(health120, monkeypatch, tmp_path):
    docnos = tuple(str(d) for d in health120.docnos[:3])
    answers = [
        Answer(
            "q001",
            "similarity",
            "plain",
            "Antibiotics do not help. They kill bacteria [1].",
            docnos,
        ),
        Answer("q002", "source_aware", "plain", "It does not prevent colds [2].", docnos[::-1]),
    ]
    study = open_study({"out": str(tmp_path)}, say=lambda _: None)

    def scores(scorer):
        parts = (scorer.support, scorer.judge, scorer.constants)
        made = score_answers(
            answers, health120, *parts, find_span=scorer.find_span, words=scorer.words
        )
        return made.metrics, made.sentences

    plain = scores(load_scorer(study))
    scorer, asked = load_scorer(study), []
    encoder = scorer.judge.vectors.encoder
    encode = encoder.encode_both
    monkeypatch.setattr(
        encoder, "encode_both", lambda texts, **k: asked.append(list(texts)) or encode(texts, **k)
    )
    n = encode_ahead(scorer, answers, health120)
    assert len(asked) == 1 and len(asked[0]) == len(set(asked[0])) == n
    ahead = scores(scorer)
    assert len(asked) == 1  # nothing was left to encode
    for one, other in zip(plain, ahead, strict=True):
        pd.testing.assert_frame_equal(one, other)
