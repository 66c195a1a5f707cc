"""What the notebooks show: small tables from a study's artefacts, one call a cell."""

from __future__ import annotations

import pandas as pd

from rag_reliability.evaluation.significance import compare, mean_interval, topic_deltas
from rag_reliability.experiment.answering import answers_stage
from rag_reliability.experiment.ranking import RECALL_DEPTH, load_candidates, load_runs, load_trace
from rag_reliability.experiment.scoring import BASELINE
from rag_reliability.experiment.study import Study
from rag_reliability.records import InputError, Topic
from rag_reliability.reliability.trace import similarity_price


def topics_table(study: Study) -> pd.DataFrame:
    """Topics with their true stance and how many documents are relevant to each."""
    rows = [
        {
            "qid": t.qid,
            "query": t.query,
            "stance": t.stance,
            "relevant": sum(label > 0 for label in study.corpus.qrels.get(t.qid, {}).values()),
        }
        for t in study.corpus.topics
    ]
    return pd.DataFrame(rows).set_index("qid")


def topic_of(study: Study, qid: str) -> Topic:
    """The topic named ``qid``. Raises InputError naming the known ones."""
    for topic in study.corpus.topics:
        if topic.qid == qid:
            return topic
    raise InputError(
        f"unknown topic {qid!r}; known: {', '.join(t.qid for t in study.corpus.topics)}"
    )


def judged_documents(study: Study, qid: str) -> pd.DataFrame:
    """The documents judged for one topic, best label first."""
    corpus = study.corpus
    rows = []
    for docno, label in corpus.qrels[topic_of(study, qid).qid].items():
        d = corpus.documents[corpus.docid[docno]]
        rows.append((docno, label, d.source_type, d.adversarial, d.title, ", ".join(d.claims)))
    columns = ["docno", "label", "source_type", "adversarial", "title", "claims"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.sort_values(["label", "docno"], ascending=[False, True], ignore_index=True)


def price_table(study: Study) -> pd.DataFrame:
    """What each ratio of two priors buys in similarity, for this encoder and corpus."""
    pool = load_candidates(study).pool
    return similarity_price(pool, study.table, k=study.config.k, depth=RECALL_DEPTH)


def trace_table(
    study: Study, qid: str, system: str = "source_aware", depth: int = 12
) -> pd.DataFrame:
    """One topic's rank trace: the documents near the top before or after, and why they moved."""
    trace = load_trace(study, system)
    near = (trace["rank_sim"] <= depth) | (trace["rank_score"] <= depth)
    rows = trace[(trace["qid"] == topic_of(study, qid).qid) & near]
    titles = {d.docno: d.title for d in study.corpus.documents}
    shown = rows.assign(title=rows["docno"].map(titles)).sort_values("rank_score")
    columns = [
        "rank_score",
        "rank_sim",
        "docno",
        "source_type",
        "label",
        "adversarial",
        "sim",
        "prior",
        "score",
        "why",
        "title",
    ]
    return shown[columns].reset_index(drop=True)


def answers_table(study: Study, qid: str) -> pd.DataFrame:
    """What was answered to one topic, by system and arm, with the documents shown."""
    rows = [
        (a.system, a.arm, a.text, " ".join(a.docnos))
        for a in answers_stage(study)
        if a.qid == topic_of(study, qid).qid
    ]
    return pd.DataFrame(rows, columns=["system", "arm", "answer", "passages"])


def only(study: Study, metrics: pd.DataFrame, *names: str) -> pd.DataFrame:
    """The rows of the metrics named, with or without the study's cutoff (``precision@5``)."""
    wanted = {*names, *(f"{name}@{study.config.k}" for name in names)}
    return metrics[metrics["metric"].isin(wanted)]


def summary(study: Study, metrics: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Mean over topics with its bootstrap interval by group: columns ``by``, mean, low, high."""
    rows = []
    for names, group in metrics.groupby(by, sort=False, dropna=False):
        found = mean_interval(
            group["value"], n_resamples=study.config.n_resamples, seed=study.config.seed
        )
        rows.append((*names, found.mean, found.low, found.high))
    return pd.DataFrame(rows, columns=[*by, "mean", "low", "high"])


def comparison(study: Study, metrics: pd.DataFrame) -> pd.DataFrame:
    """Every system against similarity alone: differences, intervals, p-values, wins and losses."""
    config = study.config
    return compare(metrics, BASELINE, n_resamples=config.n_resamples, seed=config.seed)


def losses(
    study: Study, metrics: pd.DataFrame, metric: str, system: str = "source_aware"
) -> pd.DataFrame:
    """Topics where a system does worse than similarity alone, explained by their trace.

    Columns qid, query, baseline_value, value, lost (relevant documents that left the top k and
    why), gained (documents without relevance that came in and why).
    """
    deltas = topic_deltas(metrics[metrics["metric"] == metric], BASELINE)
    worse = deltas[(deltas["system"] == system) & (deltas["outcome"] == "loss")]
    trace = load_trace(study, system)
    rows = []
    for row in worse.itertuples():
        own = trace[trace["qid"] == row.qid]
        left = own[own["in_top_before"] & ~own["in_top_after"] & (own["label"] > 0)]
        came = own[~own["in_top_before"] & own["in_top_after"] & (own["label"] == 0)]
        rows.append(
            (
                row.qid,
                topic_of(study, row.qid).query,
                row.baseline_value,
                row.value,
                _reasons(left),
                _reasons(came),
            )
        )
    return pd.DataFrame(rows, columns=["qid", "query", "baseline_value", "value", "lost", "gained"])


def _reasons(trace: pd.DataFrame) -> str:
    return "; ".join(f"{r.docno} ({r.source_type}) {r.why}" for r in trace.itertuples())


def runs_table(study: Study, qid: str) -> pd.DataFrame:
    """The top k of one topic under every system, side by side."""
    runs = load_runs(study)
    return pd.DataFrame(
        {s: run[topic_of(study, qid).qid][: study.config.k] for s, run in runs.items()}
    )
