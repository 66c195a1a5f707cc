"""From saved metrics to figures, tables, values and report: draws, and computes no score."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd

from rag_reliability.artefacts import Store
from rag_reliability.config import ExperimentConfig
from rag_reliability.evaluation.stance import stance_summary
from rag_reliability.experiment import report_parts
from rag_reliability.experiment.conclusion import sensitivity
from rag_reliability.experiment.drawing import (
    DRAW,
    answer_summary,
    at_k,
    figure,
    own_tiers,
    swept,
)
from rag_reliability.experiment.grounding_check import MEASURES
from rag_reliability.experiment.report_parts import saved
from rag_reliability.experiment.sensitivity import SWEEPS
from rag_reliability.experiment.study import Study, project_root
from rag_reliability.experiment.threat_results import threat_tables
from rag_reliability.experiment.topic_parts import FOLDER, write_topics
from rag_reliability.experiment.views import comparison, summary
from rag_reliability.files import sha256_tree
from rag_reliability.records import InputError
from rag_reliability.reporting import tables
from rag_reliability.reporting.conclusion import conclusion_table
from rag_reliability.reporting.report import render_report
from rag_reliability.reporting.save import save_figure, write_whole
from rag_reliability.reporting.sources import files_of
from rag_reliability.reporting.tables_grounding import grounding_table
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


@cache
def retrieval_comparison(study: Study) -> pd.DataFrame:
    """Every system against similarity alone on every ranking metric shown."""
    frame = saved(study, "metrics/retrieval.csv")
    return comparison(study, frame[frame["metric"].isin(at_k(study, SHOWN))])


@cache
def answer_comparison(study: Study) -> pd.DataFrame:
    """Every system against similarity alone on every answer metric, arm by arm."""
    return comparison(study, saved(study, "metrics/answers.csv"))


@cache
def stance_comparison(study: Study) -> pd.DataFrame:
    """Every system against similarity alone in stance error and shift."""
    frame = saved(study, "metrics/stance.csv")
    return comparison(study, frame[frame["metric"] != "log_odds"])


def with_arm(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that belong to generated answers: the stance probe has no arm."""
    return frame[frame["arm"] != ""]


@cache
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


@cache
def _sensitivity(study: Study, older: bool) -> pd.DataFrame:
    return sensitivity(study, older=older)


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
    with own_tiers(study):
        return _TABLE[name](study)


def _comparisons(study: Study, older: bool) -> list[pd.DataFrame]:
    """The comparisons of ranking, answers and stance; of an older run those that it has."""
    made = (retrieval_comparison, answer_comparison, stance_comparison)
    return [f for make in made if len(f := _if_made(partial(make, study), older))]


def contrasts(study: Study, *, older: bool = False) -> pd.DataFrame:
    """All paired differences against similarity alone: ranking, answers and stance."""
    both = pd.concat(_comparisons(study, older), ignore_index=True)
    both = both if "arm" in both else both.assign(arm=None)
    both = both[both["system"] != "similarity"].drop(columns=["low", "high"])
    renamed = both.rename(columns={"diff_low": "low", "diff_high": "high"})
    arms = renamed["arm"].astype(object)
    return renamed.assign(arm=arms.where(arms.notna(), None))


_TABLE: Mapping[str, Callable[[Study], pd.DataFrame]] = {
    "retrieval": lambda s: tables.main_table(_untested(retrieval_comparison(s)), at_k(s, SHOWN)),
    "significance": lambda s: tables.significance_table(contrasts(s)),
    "per_topic": lambda s: tables.per_topic_table(
        saved(s, "metrics/retrieval.csv"), names=at_k(s, ("precision", "adv_share"))
    ),
    "study": lambda s: tables.study_table(report_parts.beside_study(s)),
    "answers": lambda s: tables.answers_table(with_arm(answer_summary(s)), ANSWERS),
    "stance": lambda s: tables.stance_table(stance_table_frame(s)),
    "grounding_check": lambda s: grounding_table(saved(s, MEASURES)),
    "conclusion": lambda s: conclusion_table(_sensitivity(s, False), s.config.k),
    "no_regret": lambda s: threat_tables(s)["no_regret"],
    "deploy": lambda s: threat_tables(s)["deploy"],
}


def values(
    study: Study, grounding_check: pd.DataFrame | None = None, *, older: bool = False
) -> dict[str, Any]:
    """Every number that a text would quote, by name; the grounding check is read if not given."""
    checked = saved(study, MEASURES) if grounding_check is None else grounding_check
    found = report_parts.corpus_values(study)
    for frame in _comparisons(study, older):
        for row in frame.to_dict("records"):
            arm = f".{row['arm']}" if isinstance(row.get("arm"), str) else ""
            stem = f"{row['metric']}.{row['system']}{arm}"
            found |= {f"{stem}.{part}": row[part] for part in ("mean", "low", "high")}
            if row["system"] != "similarity":
                parts = ("diff", "diff_low", "diff_high", "p", "p_holm", "wins", "ties", "losses")
                found |= {f"{stem}.{part}": row[part] for part in parts}
    for row in checked.to_dict("records"):
        stem = f"grounding_check.{row['set']}.{row['measure']}"
        found |= {f"{stem}.{part}": row[part] for part in ("value", "low", "high", "n")}
    for row in _if_made(partial(stance_table_frame, study), older).to_dict("records"):
        if row["metric"] == "auroc":
            stem = f"auroc.{row['system']}"
            found |= {f"{stem}.{part}": row[part] for part in ("mean", "low", "high")}
    return found


def _draw(study: Study, folder: Path, older: bool) -> tuple[dict[str, Path], dict[str, Any]]:
    """Write every figure and table; returns the figures' PNG files and the tables by name."""
    drawn, shown, absent = {}, {}, []
    for kind, names in (("figure", DRAW), ("table", _TABLE)):
        for name in names:
            try:
                if kind == "figure":
                    drawn[name] = save_figure(figure(study, name), folder / "figures" / name)[1]
                else:
                    shown[name] = table(study, name)
                    tables.save_table(shown[name], folder / "tables" / name)
            except (InputError, FileNotFoundError):
                if not older:
                    raise
                absent.append(f"{kind} {name}")
    if absent:
        what = ", ".join(absent)
        warnings.warn(f"this run holds no metrics for: {what}; run it again for them", stacklevel=2)
    return drawn, shown


def draw_all(study: Study, folder: Path, *, older: bool = False) -> None:
    """Write figures, tables, values, report and topic pages of a study into ``folder``.

    older: the run may have been made before some stages existed; what those would show is left out,
    with a warning that names it.
    """
    with own_tiers(study):
        _draw_all(study, folder, older)


def _draw_all(study: Study, folder: Path, older: bool) -> None:
    drawn, shown = _draw(study, folder, older)
    checked = _if_made(lambda: saved(study, MEASURES), older)
    numbers = values(study, checked, older=older)
    write_values(numbers, folder)
    files = files_of(study.run_dir, folder)
    pages = write_topics(study, folder, files)
    context = report_parts.report_context(
        study,
        figures=drawn,
        values=numbers,
        files=files,
        pages={qid: f"{FOLDER}/{name}" for qid, name in pages.items()},
        summary=_untested(retrieval_comparison(study)),
        contrasts=contrasts(study, older=older),
        answers=_if_made(lambda: with_arm(answer_summary(study)), older),
        stance=_if_made(lambda: stance_table_frame(study), older),
        sensitivity=_sensitivity(study, older),
        grounding_check=checked,
        **{name: shown[name] for name in ("no_regret", "deploy") if name in shown},
        threats=_if_made(lambda: swept(study, "spoofing", ["rate", "system"]), older),
    )
    write_whole(folder / "index.html", render_report(context))


def _if_made(make: Callable[[], pd.DataFrame], older: bool) -> pd.DataFrame:
    """The frame, or an empty one where an older run does not have it."""
    try:
        return make()
    except InputError:
        if not older:
            raise
        return pd.DataFrame()


def results_stage(study: Study) -> Path:
    """Draw everything from saved metrics; returns the report's path."""
    upstream = (
        "corpus",
        "rank",
        "answers",
        "stance",
        "retrieval",
        "answer-scores",
        "grounding-check",
        *(f"sweep-{name}" for name in SWEEPS),
        "learned",
        "threats",
    )
    study.stage(
        "results",
        inputs={
            "stages": {name: study.store.sidecar(name)["outputs"] for name in upstream},
            "config": study.config.model_dump(mode="json"),
            # The report links to the executed notebooks that lie beside it.
            "notebooks": sorted(
                name
                for name in files_of(study.run_dir)
                if name.startswith("notebooks/") and not name.endswith("09_figures.ipynb")
            ),
        },
        code=("reporting", "evaluation/significance.py", "evaluation/stance.py", "experiment"),
        libraries=("matplotlib", "scipy", "pandas"),
        outputs=("figures", "tables", "values.json", "values.tex", "index.html", FOLDER),
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
    changed = sorted(
        name
        for stage, record in manifest["stages"].items()
        if stage != "results"
        for name, sha256 in record["outputs"].items()
        if (run_dir / name).exists() and sha256_tree(run_dir / name) != sha256
    )
    if changed:
        warnings.warn(f"changed since the run that made it: {', '.join(changed)}", stacklevel=2)
    study = Study(config, Store(run_dir, say=lambda line: None), root)
    try:
        draw_all(study, run_dir, older=True)
    except (KeyError, ValueError) as error:
        what = " ".join(str(error).split())
        raise InputError(f"{run_dir}: cannot be drawn from what it holds: {what}") from error
    return run_dir / "index.html"
