"""What notebooks and terminals show: a table, and how it looks in either."""

from __future__ import annotations

from typing import Any

import pandas as pd

from rag_reliability.evaluation.refusals import answer_sentences
from rag_reliability.experiment import views
from rag_reliability.experiment.answering import answers_stage
from rag_reliability.experiment.display_tables import (
    Display,
    corpus_display,
    corpus_table,
    passages_table,
)
from rag_reliability.experiment.ranking import load_runs, load_trace
from rag_reliability.experiment.scoring import BASELINE
from rag_reliability.experiment.study import Study
from rag_reliability.records import Answer, Corpus, Document
from rag_reliability.reporting.html import note_html, records, style_html, tier_mark
from rag_reliability.reporting.html_answers import UNSCORED, ShownAnswer, answers_html
from rag_reliability.reporting.html_ranking import ranking_html
from rag_reliability.reporting.html_tables import comparison_html, side_html
from rag_reliability.reporting.style import arm_label, system_label, tier_label

__all__ = [
    "Display",
    "ShownAnswer",
    "answers",
    "answers_html",
    "comparison",
    "corpus",
    "corpus_display",
    "corpus_table",
    "note_html",
    "passages_table",
    "ranking",
    "ranking_html",
    "style_html",
    "tier_label",
    "tier_mark",
    "trace",
]


def corpus(study: Study) -> Display:
    """The corpus by source type: how many, how many checked, adversarial, and how judged."""
    return corpus_display(study.corpus, study.priors.known_types)


def ranking(study: Study, qid: str) -> Display:
    """The top k of one topic under every system, side by side."""
    runs, labels = load_runs(study), study.corpus.qrels.get(qid, {})
    topic = views.topic_of(study, qid)
    tops = {
        system: passages_table([_document(study, d) for d in run[qid][: study.config.k]], labels)
        for system, run in runs.items()
    }
    frame = pd.concat([t.assign(system=s) for s, t in tops.items()], ignore_index=True)
    text = f"{topic.query}\n{views.runs_table(study, qid).to_string(index=False)}"
    return Display(frame, lambda: side_html(tops, topic.query), text)


def trace(study: Study, qid: str, system: str = "source_aware", near: int = 4) -> Display:
    """One topic's rank trace: who stands in or near the top, why, and the flow of ranks.

    near: ranks shown below the top k, by similarity and by the system.
    """
    topic, k = views.topic_of(study, qid), study.config.k
    whole = load_trace(study, system)
    whole = whole[whole["qid"] == qid].sort_values("rank_score")
    frame = whole[whole[["rank_sim", "rank_score"]].min(axis=1) <= k + near]
    documents = [_document(study, docno) for docno in frame["docno"]]
    frame = frame.assign(
        title=[d.title for d in documents],
        source=[d.source for d in documents],
        verified=[d.verified for d in documents],
    )
    shown = ["rank_score", "rank_sim", "docno", "source_type", "label", "sim", "score", "why"]
    text = f"{topic.query}\n{frame[shown].to_string(index=False)}"
    name = system_label(system)

    def html() -> str:
        return ranking_html(
            records(frame), k, rule=name, caption=f"{topic.query} ({qid})", near=near
        )

    return Display(frame, html, text)


def answers(study: Study, qid: str, sentences: pd.DataFrame | None = None) -> Display:
    """The answers to one topic, citations linked to passages; sentences by band once scored.

    sentences: what ``answer_scores_stage`` returns beside the metrics.
    """
    topic = views.topic_of(study, qid)
    found = [a for a in answers_stage(study) if a.qid == qid]
    shown = [_shown(study, a, sentences) for a in found]
    text = "\n\n".join(
        f"{s.name}\n{a.text or '(empty answer)'}" for a, s in zip(found, shown, strict=True)
    )
    frame = views.answers_table(study, qid)
    return Display(frame, lambda: answers_html(shown, query=topic.query), f"{topic.query}\n{text}")


def comparison(study: Study, metrics: pd.DataFrame) -> Display:
    """Every system against similarity alone, with intervals, and what they allow to say."""
    frame = views.comparison(study, metrics)
    columns = ["metric", "system", "mean", "diff", "diff_low", "diff_high", "p_holm"]
    text = frame[frame["system"] != BASELINE][columns].round(3).to_string(index=False)
    return Display(frame, lambda: comparison_html(frame, BASELINE), text)


def register(shell: Any) -> None:
    """Let a notebook show corpora and answers as displays, wherever a cell ends with one."""
    for kind, show in ((Corpus, corpus_display), (Answer, _answer_display)):
        formatters = shell.display_formatter.formatters
        formatters["text/html"].for_type(kind, lambda it, show=show: show(it)._repr_html_())
        formatters["text/plain"].for_type(
            kind, lambda it, printer, cycle, show=show: printer.text(repr(show(it)))
        )


def _answer_display(answer: Answer) -> Display:
    said = pd.DataFrame({"sentence": answer_sentences(answer.text), "band": UNSCORED})
    listed = pd.DataFrame({"docno": answer.docnos})
    blank = {"title": "", "text": "", "source_type": "not looked up", "adversarial": False}
    shown = ShownAnswer(f"{answer.qid}, {answer.system}", said, listed.assign(**blank))
    text = f"{answer.qid}, {answer.system}\n{answer.text or '(empty answer)'}"
    return Display(said, lambda: answers_html([shown]), text)


def _document(study: Study, docno: str) -> Document:
    return study.corpus.documents[study.corpus.docid[docno]]


def _shown(study: Study, answer: Answer, sentences: pd.DataFrame | None) -> ShownAnswer:
    documents = [_document(study, docno) for docno in answer.docnos]
    said = pd.DataFrame(
        {"sentence": answer_sentences(answer.text, study.language.words), "band": UNSCORED}
    )
    if sentences is not None:
        own = sentences[
            (sentences["qid"] == answer.qid)
            & (sentences["system"] == answer.system)
            & (sentences["arm"] == answer.arm)
        ]
        place = {docno: i for i, docno in enumerate(answer.docnos)}
        said = own.assign(best_passage=[place.get(d, -1) for d in own["docno"]])
    name = f"{system_label(answer.system)}, {arm_label(answer.arm).lower()}"
    return ShownAnswer(name, said, passages_table(documents))
