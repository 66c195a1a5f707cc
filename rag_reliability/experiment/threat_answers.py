"""What the generator makes of the passages that rules choose, with honest and with lying labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pandas as pd

from rag_reliability.evaluation.answers import score_answers
from rag_reliability.evaluation.stance import stance_metrics
from rag_reliability.experiment.answer_scoring import load_scorer
from rag_reliability.experiment.answering import NO_PASSAGES, STANCE_BATCH, answer_prompt, passage
from rag_reliability.experiment.study import Study
from rag_reliability.experiment.threat_evidence import gather
from rag_reliability.experiment.threat_states import distinct_rows, draw_states
from rag_reliability.experiment.threats import (
    ThreatPlan,
    depth_of,
    judged_topics,
    ranked_rows,
    settings_of,
    threat_inputs,
)
from rag_reliability.generation.models import load_generator
from rag_reliability.generation.prompt import prompt_ids
from rag_reliability.generation.stance import stance_messages, yes_no_log_odds
from rag_reliability.records import Answer

ANSWERS, ANSWER_METRICS = "answers/threat_answers.csv", "metrics/threat_answers.csv"
ARM = "plain"
"""No source types in the prompt: a label then acts through the ranking alone."""

Shown = Mapping[tuple[str, str], tuple[str, ...]]
"""Docnos shown, best first, by (system, qid)."""


def threat_answers_stage(study: Study, plan: ThreatPlan) -> pd.DataFrame:
    """Answers and stance probe of each rule at the lowest and the highest spoof rate.

    Without leak (or at the smallest), first seed. ``metrics/threat_answers.csv``: rule, spoof,
    qid, metric, value, with all of the answers' metrics and, for topics of known stance, stance
    shift and error. ``answers/threat_answers.csv`` holds the texts. Returns the metrics.
    """
    ends = replace(plan, spoof=(plan.spoof[0], plan.spoof[-1]), leak=(plan.leak[0],), seeds=1)

    def build(folder: Path) -> None:
        shown = passages_shown(study, ends)
        answers = generated(study, shown)
        stances = probed(study, shown)
        scorer = load_scorer(study)
        scores = score_answers(
            answers,
            study.corpus,
            scorer.support,
            scorer.judge,
            scorer.constants,
            words=scorer.words,
        ).metrics
        truths = {t.qid: t.stance for t in study.corpus.topics}
        none = stances[stances["system"] == NO_PASSAGES].set_index("qid")["log_odds"].to_dict()
        frames = [scores.drop(columns="arm")]
        if len(stances):
            frames.append(stance_metrics(stances, none, truths))
        for name in ("answers", "metrics"):
            (folder / name).mkdir()
        texts = pd.DataFrame([(a.system, a.qid, " ".join(a.docnos), a.text) for a in answers])
        texts.columns = pd.Index(["system", "qid", "docnos", "text"])
        _by_rule(texts).to_csv(folder / ANSWERS, index=False)
        metrics = _by_rule(pd.concat(frames, ignore_index=True))
        metrics.to_csv(folder / ANSWER_METRICS, index=False, float_format="%.6g")

    settings = settings_of(study, ends)
    study.stage(
        "threat-answers",
        inputs={
            **threat_inputs(study, ends, settings),
            "generator": study.model_sha(study.config.generator),
            "language": study.language.digest,
            **{n: getattr(study.config, n) for n in ("max_new_tokens", "batch_size")},
        },
        code=("generation", "evaluation", "reliability", "experiment", "retrieval", "records.py"),
        libraries=("torch", "transformers"),
        outputs=(ANSWERS, ANSWER_METRICS),
        build=build,
    )
    return pd.read_csv(study.run_dir / ANSWER_METRICS)


def passages_shown(study: Study, plan: ThreatPlan) -> Shown:
    """Docnos shown by (system, qid), best first; a system is ``rule|spoof rate``."""
    settings, qids = settings_of(study, plan), judged_topics(study)
    depth = depth_of(plan, settings)
    found = gather(study, qids, plan.rules, window=settings.window or depth, depth=depth)
    states = draw_states(study, plan.spoof, plan.leak, [study.config.seed])
    rows = distinct_rows(states, found.evidence.docids, len(study.corpus.documents))
    tops = ranked_rows(study, plan.rules, settings, found, states, rows)
    docnos = study.corpus.docnos
    return {
        (f"{rule}|{spoof:g}", qid): tuple(docnos[[d for d in top[rows.of[s, t]] if d >= 0]])
        for rule, top in tops.items()
        for s, spoof in enumerate(states.spoof)
        for t, qid in enumerate(qids)
    } | {(NO_PASSAGES, qid): () for qid in qids}


def generated(study: Study, shown: Shown) -> list[Answer]:
    """One answer for each (system, qid); equal passages in equal order are answered once."""
    from rag_reliability.generation.generate import generate

    sets = list(dict.fromkeys((qid, docnos) for (_, qid), docnos in shown.items()))
    generator = load_generator(study.config.generator)
    blank = [Answer(qid, "", ARM, "", docnos) for qid, docnos in sets]
    texts = generate(
        generator,
        [answer_prompt(study, generator, answer) for answer in blank],
        max_new_tokens=study.config.max_new_tokens,
        batch_size=study.config.batch_size,
        language=study.language.splitter,
        progress=True,
    )
    text = dict(zip(sets, texts, strict=True))
    return [
        Answer(qid, system, ARM, text[qid, docnos], docnos)
        for (system, qid), docnos in shown.items()
    ]


def probed(study: Study, shown: Shown) -> pd.DataFrame:
    """Stance probe of each (system, qid) of known stance: columns system, qid, log_odds."""
    corpus = study.corpus
    query = {t.qid: t.query for t in corpus.topics if t.stance}
    rows = {key: docnos for key, docnos in shown.items() if key[1] in query}
    frame = pd.DataFrame(list(rows), columns=["system", "qid"])
    if frame.empty:
        return frame.assign(log_odds=pd.Series(dtype=float))
    generator = load_generator(study.config.generator)
    prompts = [
        prompt_ids(
            generator,
            stance_messages(
                query[qid],
                [passage(corpus.documents[corpus.docid[d]]) for d in docs],
                study.language,
            ),
        )
        for (_, qid), docs in rows.items()
    ]
    odds = yes_no_log_odds(
        generator, prompts, language=study.language, batch_size=STANCE_BATCH, progress=True
    )
    return frame.assign(log_odds=odds)


def _by_rule(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns rule and spoof in place of system; without passages there is no spoof rate."""
    parts = frame["system"].str.partition("|")
    rest = frame.drop(columns="system")
    return rest.assign(rule=parts[0], spoof=parts[2].replace("", "0").astype(float))[
        ["rule", "spoof", *rest.columns]
    ]
