"""What the report is told about a run besides its figures: the study's numbers, facts, examples."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from rag_reliability.evaluation.significance import Interval, mean_interval, topic_deltas
from rag_reliability.experiment.answering import read_answers
from rag_reliability.experiment.ranking import low_tier
from rag_reliability.experiment.study import Study
from rag_reliability.records import InputError
from rag_reliability.reporting.captions import OWN_RERUN, own_limits
from rag_reliability.reporting.report import ReportContext

STUDY = {
    "precision": (0.48, 0.72),
    # Its "adversarial hit rate" is the share of low-credibility documents among the top 5.
    "low_tier_share": (0.32, 0.28),
    "adv_share": (None, None),
    "mrr": (None, 1.0),
    "ndcg": (None, None),
}
"""The published study's numbers, baseline and source-aware; None where it gives no figure."""
STUDY_SYSTEM = "source_aware_3k"
STUDY_CORPUS = "health120"
_TEXTS = {
    *("system", "arm", "qid", "docno", "metric", "window", "spread"),
    *("sentence", "cited", "band", "span", "flags", "verdict"),
}
_LIBRARIES = ("torch", "transformers", "sentence-transformers", "faiss-cpu", "ranx", "numpy")


def read_tidy(path: Path) -> pd.DataFrame:
    """A CSV of ours, names and texts as they stand: topics 007 and NA are no number and not lost.

    Raises ValueError where it is no CSV.
    """
    columns = pd.read_csv(path, nrows=0).columns
    numbers = [name for name in columns if name not in _TEXTS]
    return pd.read_csv(
        path,
        dtype={name: str for name in columns if name in _TEXTS},
        keep_default_na=False,
        na_values={name: ["", "nan", "NaN"] for name in numbers},
    )


def saved(study: Study, name: str) -> pd.DataFrame:
    """A CSV of this run.

    Raises InputError naming the file and what makes it, where it is missing.
    """
    path = study.run_dir / name
    if not path.is_file():
        raise InputError(f"{path}: missing; run the notebooks first (rag-reliability run)")
    return read_tidy(path)


def beside_study(study: Study) -> pd.DataFrame:
    """The study's table beside ours: columns metric, arm, study, ours, low, high."""
    frame = saved(study, "metrics/retrieval.csv")
    k, rows = study.config.k, []
    for metric, published in STUDY.items():
        name = metric if metric == "mrr" else f"{metric}@{k}"
        pairs = (("baseline", "similarity"), ("source_aware", STUDY_SYSTEM))
        for (arm, system), number in zip(pairs, published, strict=True):
            own = frame[(frame["metric"] == name) & (frame["system"] == system)]
            found = _interval(study, own["value"])
            # The study's cutoff is 5; at another k its number stands beside nothing.
            given = number if k == 5 else None
            rows.append((name, arm, given, found.mean, found.low, found.high))
    frame = pd.DataFrame(rows, columns=["metric", "arm", "study", "ours", "low", "high"])
    return frame.astype({"study": float})


def _interval(study: Study, values: pd.Series) -> Interval:
    """Mean and interval; nothing but NaN where an older run lacks the system or metric."""
    if values.empty:
        return Interval(*(float("nan"),) * 3)
    return mean_interval(values, n_resamples=study.config.n_resamples, seed=study.config.seed)


def telling_topic(study: Study) -> str:
    """The topic that source-awareness cost most precision, by rule: a figure should show a cost."""
    frame = saved(study, "metrics/retrieval.csv")
    deltas = topic_deltas(frame[frame["metric"] == f"precision@{study.config.k}"], "similarity")
    own = deltas[deltas["system"] == "source_aware"].sort_values(["delta", "qid"])
    return str(own["qid"].iloc[0])


def corpus_values(study: Study) -> dict[str, Any]:
    """Counts of the corpus, for texts."""
    corpus = study.corpus
    return {
        "corpus.documents": len(corpus.documents),
        "corpus.topics": len(corpus.topics),
        "corpus.adversarial": int(corpus.adversarial.sum()),
        "corpus.judgements": sum(len(labels) for labels in corpus.qrels.values()),
    }


def _sidecars(study: Study) -> list[dict[str, Any]]:
    names = sorted(p.stem for p in (study.run_dir / "stages").glob("*.json") if "." not in p.stem)
    return [
        study.store.sidecar(n) for n in names if not n.startswith("notebook-") and n != "results"
    ]


def _provenance(study: Study, sidecars: list[dict[str, Any]]) -> dict[str, str]:
    config = study.config
    commits = sorted({str(s["git_commit"])[:12] for s in sidecars if s.get("git_commit")})
    models = {s["name"]: s.get("inputs", {}) for s in sidecars}
    return {
        "Corpus": f"{study.corpus.name}, sha256 {study.corpus_digest[:16]}…",
        "Encoder": _model(config.encoder, models.get("index", {}).get("encoder")),
        "Generator": _model(config.generator, models.get("answers", {}).get("generator")),
        "Priors": f"spread {config.spread}: "
        + ", ".join(f"{t} {v}" for t, v in study.table.items()),
        "k and window": f"k = {config.k}, window {config.window}, seed {config.seed}",
        "Code": ", ".join(commits) or "not in a git checkout",
        "Libraries": ", ".join(f"{name} {version(name)}" for name in _LIBRARIES),
    }


def _model(name: str, sha256: str | None) -> str:
    return f"{name}, sha256 {sha256[:16]}…" if sha256 else f"{name}, no record in this run"


def _examples(study: Study, qids: list[str]) -> list[dict[str, str]]:
    path = study.run_dir / "answers" / "answers.jsonl"
    answers = read_answers(path) if path.is_file() else []
    wanted = ("no_passages", "similarity", "source_aware")
    return [
        {"qid": a.qid, "system": a.system, "arm": a.arm, "text": a.text}
        for qid in qids
        for a in answers
        if a.qid == qid and a.system in wanted and a.arm == "plain"
    ]


def report_context(
    study: Study,
    *,
    figures: Mapping[str, Path],
    values: Mapping[str, Any],
    files: Collection[str] = frozenset(),
    pages: Mapping[str, str] | None = None,
    **frames: pd.DataFrame,
) -> ReportContext:
    """All that the report shows; ``frames`` are its tidy tables by field name."""
    per_topic = saved(study, "metrics/retrieval.csv")
    sidecars = _sidecars(study)
    stages = [(s["name"], s["seconds"], False) for s in sidecars]
    path = study.run_dir / "traces" / "source_aware.parquet"
    traces = pd.read_parquet(path) if path.is_file() else pd.DataFrame()
    if len(traces):
        # Low-tier by the `current` table, as in the metrics, whatever spread this run uses.
        traces["low_tier"] = traces["docno"].isin(low_tier(study))
    # Two topics by rule, so that nobody picks the answers: the costliest and the first.
    qids = list(dict.fromkeys([telling_topic(study), study.corpus.topics[0].qid]))
    return ReportContext(
        run=study.run_dir.name,
        study=beside_study(study),
        per_topic=per_topic,
        traces=traces,
        stages=pd.DataFrame(stages, columns=["stage", "seconds", "reused"]),
        topics={t.qid: t.query for t in study.corpus.topics},
        titles={d.docno: d.title for d in study.corpus.documents},
        figures=dict(figures),
        files=files,
        pages=dict(pages or {}),
        examples=_examples(study, qids),
        values=values,
        provenance=_provenance(study, sidecars),
        k=study.config.k,
        language=study.config.language,
        **_own_words(study),
        **frames,
    )


def _own_words(study: Study) -> dict[str, Any]:
    """Limits and commands of a run on another corpus: the report's own speak of the study's."""
    if study.corpus.name == STUDY_CORPUS:
        return {}
    english = study.language.words is None
    return {"limits": own_limits(len(study.corpus.topics), english=english), "rerun": OWN_RERUN}
