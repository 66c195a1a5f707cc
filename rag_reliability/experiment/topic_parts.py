"""What each topic's page shows, from a run's saved files; pieces a run lacks are left out."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pandas as pd

from rag_reliability.experiment.answering import read_answers
from rag_reliability.experiment.report_parts import read_tidy
from rag_reliability.experiment.study import Study
from rag_reliability.records import Answer, Topic
from rag_reliability.reporting.save import write_whole
from rag_reliability.reporting.topic_pages import TopicContext, page_names, render_topic

FOLDER = "topics"
SYSTEM = "source_aware"


def topic_contexts(study: Study, files: Collection[str]) -> list[TopicContext]:
    """One context for each topic, in the corpus's order."""
    run = study.run_dir
    trace = _parquet(run / "traces" / f"{SYSTEM}.parquet")
    path = run / "answers" / "answers.jsonl"
    answers = read_answers(path) if path.is_file() else []
    sentences = _csv(run / "answers" / "sentences.csv")
    ranking = _csv(run / "metrics" / "retrieval.csv").assign(arm="")
    metrics = pd.concat([ranking, _csv(run / "metrics" / "answers.csv")], ignore_index=True)
    stance = _csv(run / "metrics" / "stance.csv")
    frames = [_by_topic(frame) for frame in (trace, sentences, metrics, stance)]
    documents = {d.docno: d for d in study.corpus.documents}
    said: dict[str, list[Answer]] = {}
    for answer in answers:
        said.setdefault(answer.qid, []).append(answer)

    def context(topic: Topic) -> TopicContext:
        own = [frame.get(topic.qid, pd.DataFrame()) for frame in frames]
        return TopicContext(
            run=run.name,
            topic=topic,
            k=study.config.k,
            documents=documents,
            labels=study.corpus.qrels.get(topic.qid, {}),
            answers=said.get(topic.qid, []),
            trace=own[0],
            sentences=own[1],
            metrics=own[2],
            stance=own[3],
            files=files,
            language=study.config.language,
        )

    return [context(topic) for topic in study.corpus.topics]


def write_topics(study: Study, folder: Path, files: Collection[str]) -> dict[str, str]:
    """Write ``topics/*.html`` into ``folder``; returns the file name of each qid."""
    contexts = topic_contexts(study, files)
    qids = [c.topic.qid for c in contexts]
    names = page_names(qids)
    for i, context in enumerate(contexts):
        near = [(qids[j], names[qids[j]]) if 0 <= j < len(qids) else None for j in (i - 1, i + 1)]
        page = render_topic(context, previous=near[0], following=near[1])
        write_whole(folder / FOLDER / names[qids[i]], page)
    return names


def _csv(path: Path) -> pd.DataFrame:
    """A saved table; an empty one where the run has none."""
    return read_tidy(path) if path.is_file() else pd.DataFrame()


def _parquet(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path) if path.is_file() else pd.DataFrame()


def _by_topic(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {str(q): own for q, own in frame.groupby("qid", sort=False)} if len(frame) else {}
