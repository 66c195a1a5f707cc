"""From a saved sweep over threats to the no-regret table, the decision table and their figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from rag_reliability.artefacts import Store
from rag_reliability.evaluation.significance import mean_interval
from rag_reliability.experiment import threat_summary as summary
from rag_reliability.experiment.report_parts import saved
from rag_reliability.experiment.study import Study
from rag_reliability.experiment.threat_answers import ANSWER_METRICS
from rag_reliability.experiment.threats import COSTS, CURVES, read_threats
from rag_reliability.reporting import threat_tables as tables
from rag_reliability.reporting.figures_threats import MOST, no_regret, threat_curves
from rag_reliability.reporting.save import save_figure
from rag_reliability.reporting.tables import save_table

CELLS = "metrics/threat_cells.csv"


def cells(study: Study) -> pd.DataFrame:
    """Every rule under every spoof rate and leak, with intervals: see ``summary.cell_table``."""
    return _cells(study, study.key("threats"))


@cache
def _cells(study: Study, key: str) -> pd.DataFrame:
    """The cells of the sweep that was saved under ``key``: a later one has another."""
    config = study.config
    means = summary.topic_means(read_threats(study.run_dir))
    return summary.cell_table(means, n_resamples=config.n_resamples, seed=config.seed)


def no_regret_frame(study: Study) -> pd.DataFrame:
    """One row a rule: see ``summary.no_regret_table``."""
    return summary.no_regret_table(cells(study), saved(study, COSTS))


def decision_frame(study: Study) -> pd.DataFrame:
    """Which rule to deploy under which belief: see ``summary.decision_table``."""
    return summary.decision_table(cells(study), saved(study, COSTS))


def threat_tables(study: Study) -> dict[str, pd.DataFrame]:
    """The readable tables by name: no_regret and deploy."""
    k, leak = study.config.k, summary.leak_limit(cells(study))
    return {
        "no_regret": tables.no_regret_table(no_regret_frame(study), k=k, leak=leak),
        "deploy": tables.decision_table(decision_frame(study), k=k),
    }


def threat_figures(study: Study) -> Mapping[str, Figure]:
    """The figures by name: threat_curves and no_regret."""
    k, frame = study.config.k, cells(study)
    return {
        "threat_curves": threat_curves(summary.curves(frame, drawn_rules(frame)), k=k),
        "no_regret": no_regret(no_regret_frame(study), k=k, leak=summary.leak_limit(frame)),
    }


def drawn_rules(frame: pd.DataFrame) -> Sequence[str]:
    """At most ``MOST`` of the rules, those of ``CURVES`` first."""
    there = list(dict.fromkeys(frame["rule"]))
    first = [r for r in CURVES if r in there]
    return [*first, *(r for r in there if r not in first)][:MOST]


def threat_results_stage(study: Study) -> Path:
    """Draw a saved sweep; returns the run's folder.

    tables/no_regret, tables/deploy, figures, and metrics/threat_cells.csv: ``cells``, which has
    every metric of every rule at every spoof rate and leak with its intervals.
    """
    names = ("no_regret", "deploy")
    drawn = ("threat_curves", "no_regret")
    outputs = (
        CELLS,
        *(f"tables/{name}.{kind}" for name in names for kind in ("csv", "tex")),
        *(f"figures/{name}.{kind}" for name in drawn for kind in ("pdf", "png")),
    )

    def build(folder: Path) -> None:
        (folder / CELLS).parent.mkdir()
        cells(study).to_csv(folder / CELLS, index=False, float_format="%.4f")
        for name, table in threat_tables(study).items():
            save_table(table, folder / "tables" / name)
        for name, figure in threat_figures(study).items():
            save_figure(figure, folder / "figures" / name)

    study.stage(
        "threat-results",
        inputs={
            "threats": study.store.sidecar("threats")["outputs"],
            **{name: getattr(study.config, name) for name in ("k", "n_resamples", "seed")},
        },
        code=("reporting", "evaluation/significance.py", "experiment"),
        libraries=("matplotlib", "scipy", "pandas"),
        outputs=outputs,
        build=build,
    )
    return study.run_dir


def testbed_study(study: Study) -> Study | None:
    """The same study on the config's ``testbed``, in a folder of its own inside this run's.

    None where no testbed is given or its folder is not there, and it says so.
    """
    folder = study.config.testbed
    if folder is None or not study.path(folder).is_dir():
        study.store.say(f"no testbed: {folder or 'set testbed to the folder of one'}")
        return None
    config = study.config.model_copy(update={"corpus": folder, "testbed": None})
    return Study(config, Store(study.run_dir / "testbed", say=study.store.say), study.root)


def threat_text(study: Study) -> str:
    """The tables and what they say, as text for a terminal."""
    k, decisions = study.config.k, decision_frame(study)
    left = sorted(set(cells(study)["rule"]) - set(drawn_rules(cells(study))))
    parts = [tables.aligned(table) for table in threat_tables(study).values()]
    notes = [f"not drawn over the spoof rate: {', '.join(left)}"] if left else []
    return "\n\n".join([*parts, "\n".join(tables.decision_sentences(decisions, k=k)), *notes])


ANSWER_SHOWN = ("adversarial_uptake", "correctness", "harm", "stance_shift", "stance_error")


def answers_frame(study: Study) -> pd.DataFrame:
    """Answer metrics by rule and spoof rate, means with intervals over topics.

    Columns rule, spoof, metric, mean, low, high, n_topics.
    """
    frame = saved(study, ANSWER_METRICS)
    rows = []
    shown = frame[frame["metric"].isin(ANSWER_SHOWN)]
    for (rule, spoof, metric), group in shown.groupby(["rule", "spoof", "metric"], sort=False):
        found = mean_interval(
            group["value"], n_resamples=study.config.n_resamples, seed=study.config.seed
        )
        rows.append((rule, spoof, metric, found.mean, found.low, found.high, len(group)))
    columns = ["rule", "spoof", "metric", "mean", "low", "high", "n_topics"]
    return pd.DataFrame(rows, columns=columns)


def answers_table(study: Study) -> pd.DataFrame:
    """The readable table of ``answers_frame``: a row for each rule and spoof rate."""
    return tables.answers_table(answers_frame(study), ANSWER_SHOWN)


def answers_text(study: Study) -> str:
    """The answers' table as text for a terminal."""
    return tables.aligned(answers_table(study))
