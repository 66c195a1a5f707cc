"""From saved metrics to figures, tables, values and report: draws, and computes no score."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from rag_reliability.artefacts import Store
from rag_reliability.config import ExperimentConfig
from rag_reliability.evaluation.stance import stance_summary
from rag_reliability.experiment import report_parts
from rag_reliability.experiment.report_parts import saved
from rag_reliability.experiment.sensitivity import SWEEPS
from rag_reliability.experiment.study import Study, project_root
from rag_reliability.experiment.views import comparison, only, summary
from rag_reliability.records import InputError
from rag_reliability.reporting import tables
from rag_reliability.reporting.figures import FIGURES
from rag_reliability.reporting.report import render_report
from rag_reliability.reporting.save import save_figure, write_whole
from rag_reliability.reporting.values import write_values

SHOWN = (
    "precision",
    "ndcg",
    "mrr",
    "recall",
    "adv_share",
    "adv_hit",
    "low_tier_share",
    "suppressed_true",
    "compat_help",
    "compat_harm",
    "compat_diff",
)
SWEPT = ("precision", "adv_share", "suppressed_true")
ANSWERS = (
    "grounding",
    "trusted_grounding",
    "citation_precision",
    "citation_recall",
    "adversarial_uptake",
    "correctness",
    "harm",
    "abstained",
)


def corpus_stage(study: Study) -> pd.DataFrame:
    """Count judgements by source type, topic, label, intent: ``corpus.csv``; returns the pivot."""

    def build(folder: Path) -> None:
        corpus = study.corpus
        rows = [
            (d.source_type, qid, label, d.adversarial)
            for qid, labels in corpus.qrels.items()
            for docno, label in labels.items()
            for d in (corpus.documents[corpus.docid[docno]],)
        ]
        columns = ["source_type", "qid", "label", "adversarial"]
        counts = pd.DataFrame(rows, columns=columns).value_counts(sort=False).rename("n")
        counts.reset_index().to_csv(folder / "corpus.csv", index=False)

    study.stage(
        "corpus",
        inputs={"corpus": study.corpus_digest},
        code=("datasets", "records.py", "experiment/results.py"),
        outputs=("corpus.csv",),
        build=build,
    )
    counts = saved(study, "corpus.csv")
    table = counts.pivot_table(
        index="source_type",
        columns=["adversarial", "label"],
        values="n",
        aggfunc="sum",
        fill_value=0,
    )
    order = [t for t in study.priors.known_types if t in table.index]
    return table.reindex([*order, *table.index.difference(order)])


def figure(study: Study, name: str, qid: str | None = None) -> Figure:
    """One figure from this run's saved metrics; ``qid`` chooses the topic of a trace figure.

    Raises InputError for an unknown figure or topic, or metrics that have not been made.
    """
    if name not in _DRAW:
        raise InputError(f"unknown figure {name!r}; known: {', '.join(_DRAW)}")
    return (
        _DRAW[name](study, qid) if name in ("rank_flow", "iso_score") else _DRAW[name](study, None)
    )


def _at_k(study: Study, names: tuple[str, ...]) -> list[str]:
    """Metric names with the study's cutoff, where they take one."""
    cut = {"precision", "ndcg", "adv_share", "adv_hit", "low_tier_share", "suppressed_true"}
    return [
        f"{n}@{study.config.k}" if n in cut else "recall@15" if n == "recall" else n for n in names
    ]


def _swept(study: Study, name: str, by: list[str], names: tuple[str, ...] = SWEPT) -> pd.DataFrame:
    return summary(study, only(study, saved(study, f"metrics/{name}.csv"), *names), [*by, "metric"])


def _per_topic(study: Study, _: str | None) -> Figure:
    names = _at_k(study, ("precision", "adv_share"))
    return FIGURES["per_topic"](saved(study, "metrics/retrieval.csv"), names=names)


def _spread(study: Study, _: str | None) -> Figure:
    return FIGURES["spread_sensitivity"](
        _swept(study, "spread", ["gamma", "system"]),
        _swept(study, "named_spread", ["spread", "system"]),
    )


def _k_window(study: Study, _: str | None) -> Figure:
    by_k = _swept(study, "k", ["k", "system"]).assign(window="exact")
    # Shown over k is the exact system; the study's window, which grows with k, is in the CSV.
    by_k = by_k[by_k["system"] != "source_aware_3k"]
    by_window = _swept(study, "window", ["window", "system"]).assign(k=study.config.k)
    by_window = by_window[by_window["window"] != "exact"]
    by_window["metric"] = by_window["metric"].str.partition("@")[0]
    return FIGURES["k_window"](pd.concat([by_k, by_window], ignore_index=True), k=study.config.k)


def _trace_figure(name: str) -> Callable[[Study, str | None], Figure]:
    def draw(study: Study, qid: str | None) -> Figure:
        trace = pd.read_parquet(study.run_dir / "traces" / "source_aware.parquet")
        chosen = qid or report_parts.telling_topic(study)
        own = trace[trace["qid"] == chosen]
        if own.empty:
            raise InputError(f"unknown topic {chosen!r}; known: {', '.join(trace['qid'].unique())}")
        return FIGURES[name](own)

    return draw


def _feedback(study: Study, _: str | None) -> Figure:
    trajectory = pd.read_parquet(study.run_dir / "traces" / "feedback.parquet")
    return FIGURES["feedback"](trajectory, initial=dict(study.table))


_DRAW: Mapping[str, Callable[[Study, str | None], Figure]] = {
    "corpus_overview": lambda s, _: FIGURES["corpus_overview"](saved(s, "corpus.csv")),
    "per_topic": _per_topic,
    "study_comparison": lambda s, _: FIGURES["study_comparison"](report_parts.beside_study(s)),
    "spread_sensitivity": _spread,
    "k_window": _k_window,
    "feedback": _feedback,
    "smoothing": lambda s, _: FIGURES["smoothing"](_swept(s, "smoothing", ["alpha", "neighbours"])),
    "rank_flow": _trace_figure("rank_flow"),
    "iso_score": _trace_figure("iso_score"),
    "answers": lambda s, _: FIGURES["answers"](answer_summary(s)),
    "threats": lambda s, _: FIGURES["threats"](_swept(s, "threats", ["rate", "system"], SWEPT[:2])),
}


def retrieval_comparison(study: Study) -> pd.DataFrame:
    """Every system against similarity alone on every ranking metric shown."""
    frame = saved(study, "metrics/retrieval.csv")
    return comparison(study, frame[frame["metric"].isin(_at_k(study, SHOWN))])


def answer_comparison(study: Study) -> pd.DataFrame:
    """Every system against similarity alone on every answer metric, arm by arm."""
    return comparison(study, saved(study, "metrics/answers.csv"))


def stance_comparison(study: Study) -> pd.DataFrame:
    """Every system against similarity alone in stance error and shift."""
    frame = saved(study, "metrics/stance.csv")
    return comparison(study, frame[frame["metric"] != "log_odds"])


def answer_summary(study: Study) -> pd.DataFrame:
    """Means with intervals of answer metrics by system and arm, and of the stance error."""
    answers = summary(study, saved(study, "metrics/answers.csv"), ["system", "arm", "metric"])
    stance = saved(study, "metrics/stance.csv")
    error = summary(study, stance[stance["metric"] == "stance_error"], ["system", "metric"])
    return pd.concat([answers, error.assign(arm="")], ignore_index=True)


def with_arm(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that belong to generated answers: the stance probe has no arm."""
    return frame[frame["arm"] != ""]


def stance_table_frame(study: Study) -> pd.DataFrame:
    """AUROC, stance error and shift by system: columns system, metric, mean, low, high."""
    frame = saved(study, "metrics/stance.csv")
    stances = {t.qid: t.stance for t in study.corpus.topics}
    found = stance_summary(
        frame, stances, n_resamples=study.config.n_resamples, seed=study.config.seed
    )
    auroc = found.rename(columns={"auroc": "mean"})[["system", "mean", "low", "high"]]
    rest = summary(study, frame[frame["metric"] != "log_odds"], ["system", "metric"])
    return pd.concat([auroc.assign(metric="auroc"), rest], ignore_index=True)


def _untested(frame: pd.DataFrame) -> pd.DataFrame:
    """The baseline is not tested against itself: its p is absent, not 1."""
    baseline = frame["system"] == "similarity"
    return frame.assign(p=frame["p"].mask(baseline), p_holm=frame["p_holm"].mask(baseline))


def table(study: Study, name: str) -> pd.DataFrame:
    """One of the paper's tables by its name in ``_TABLE``, its cells readable.

    Raises InputError for an unknown table.
    """
    if name not in _TABLE:
        raise InputError(f"unknown table {name!r}; known: {', '.join(_TABLE)}")
    return _TABLE[name](study)


def contrasts(study: Study) -> pd.DataFrame:
    """All paired differences against similarity alone: ranking, answers and stance."""
    parts = [retrieval_comparison(study), answer_comparison(study), stance_comparison(study)]
    both = pd.concat(parts, ignore_index=True)
    both = both[both["system"] != "similarity"].drop(columns=["low", "high"])
    renamed = both.rename(columns={"diff_low": "low", "diff_high": "high"})
    arms = renamed["arm"].astype(object)
    return renamed.assign(arm=arms.where(arms.notna(), None))


_TABLE: Mapping[str, Callable[[Study], pd.DataFrame]] = {
    "retrieval": lambda s: tables.main_table(_untested(retrieval_comparison(s)), _at_k(s, SHOWN)),
    "significance": lambda s: tables.significance_table(contrasts(s)),
    "per_topic": lambda s: tables.per_topic_table(
        saved(s, "metrics/retrieval.csv"), names=_at_k(s, ("precision", "adv_share"))
    ),
    "study": lambda s: tables.study_table(report_parts.beside_study(s)),
    "answers": lambda s: tables.answers_table(with_arm(answer_summary(s)), ANSWERS),
    "stance": lambda s: tables.stance_table(stance_table_frame(s)),
}


def values(study: Study) -> dict[str, Any]:
    """Every number that a text would quote, by name."""
    found = report_parts.corpus_values(study)
    for frame in (retrieval_comparison(study), answer_comparison(study), stance_comparison(study)):
        for row in frame.to_dict("records"):
            arm = f".{row['arm']}" if isinstance(row.get("arm"), str) else ""
            stem = f"{row['metric']}.{row['system']}{arm}"
            found |= {f"{stem}.{part}": row[part] for part in ("mean", "low", "high")}
            if row["system"] != "similarity":
                parts = ("diff", "diff_low", "diff_high", "p", "p_holm", "wins", "ties", "losses")
                found |= {f"{stem}.{part}": row[part] for part in parts}
    auroc = stance_table_frame(study)
    for row in auroc[auroc["metric"] == "auroc"].to_dict("records"):
        found |= {f"auroc.{row['system']}.{part}": row[part] for part in ("mean", "low", "high")}
    return found


def draw_all(study: Study, folder: Path) -> None:
    """Write figures, tables, values and report of a study into ``folder``."""
    drawn = {}
    for name in _DRAW:
        drawn[name] = save_figure(figure(study, name), folder / "figures" / name)[1]
    made = {name: table(study, name) for name in _TABLE}
    for name, frame in made.items():
        tables.save_table(frame, folder / "tables" / name)
    numbers = values(study)
    write_values(numbers, folder)
    context = report_parts.report_context(
        study,
        figures=drawn,
        values=numbers,
        summary=_untested(retrieval_comparison(study)),
        contrasts=contrasts(study),
        answers=with_arm(answer_summary(study)),
        stance=stance_table_frame(study),
        threats=_swept(study, "threats", ["rate", "system"]),
    )
    write_whole(folder / "index.html", render_report(context))


def results_stage(study: Study) -> Path:
    """Draw everything from saved metrics; returns the report's path."""
    upstream = (
        "corpus",
        "rank",
        "answers",
        "stance",
        "retrieval",
        "answer-scores",
        *(f"sweep-{name}" for name in SWEEPS),
    )
    study.stage(
        "results",
        inputs={
            "stages": {name: study.store.sidecar(name)["outputs"] for name in upstream},
            "config": study.config.model_dump(mode="json"),
        },
        code=("reporting", "evaluation/significance.py", "evaluation/stance.py", "experiment"),
        libraries=("matplotlib", "scipy", "pandas"),
        outputs=("figures", "tables", "values.json", "values.tex", "index.html"),
        build=lambda folder: draw_all(study, folder),
    )
    return study.run_dir / "index.html"


def redraw(out: str | Path) -> Path:
    """Draw a finished run again from its saved metrics alone; returns the report's path.

    Raises InputError for a folder without a finished run.
    """
    root = project_root()
    run_dir = root / out
    try:
        manifest = json.loads((run_dir / "manifest.json").read_text(encoding="utf-8"))
        config = ExperimentConfig(**manifest["config"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{run_dir}: holds no finished run (manifest.json missing or damaged)"
        ) from error
    study = Study(config, Store(run_dir, say=lambda line: None), root)
    draw_all(study, run_dir)
    return run_dir / "index.html"
