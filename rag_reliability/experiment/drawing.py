"""Each figure from a run's saved metrics: what it needs, gathered and handed to its drawer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

import pandas as pd
from matplotlib.figure import Figure

from rag_reliability.evaluation.constants import load_constants
from rag_reliability.experiment import report_parts
from rag_reliability.experiment.answer_scoring import GROUNDING
from rag_reliability.experiment.grounding_check import CURVES
from rag_reliability.experiment.report_parts import saved
from rag_reliability.experiment.study import Study
from rag_reliability.experiment.threat_results import threat_figures
from rag_reliability.experiment.views import only, summary
from rag_reliability.records import InputError
from rag_reliability.reporting.figures import FIGURES
from rag_reliability.reporting.style import TIERS, TierStyle, named_tiers

LEARNED = "metrics/learned_priors.csv"
SWEPT = ("precision", "adv_share", "suppressed_true")


def figure(study: Study, name: str, qid: str | None = None) -> Figure:
    """One figure from this run's saved metrics; ``qid`` chooses the topic of a trace figure.

    Raises InputError for an unknown figure or topic, or metrics that have not been made.
    """
    with own_tiers(study):
        return _figure(study, name, qid)


def own_tiers(study: Study) -> AbstractContextManager[None]:
    """Within it source types are called and drawn as the study's own taxonomy says, if it has one.

    Types that the study's six do not cover come in the order of the priors file.
    """
    named, known = study.taxonomy.types, study.priors.known_types
    if not named and set(known) <= set(TIERS):
        return named_tiers({})
    words = {kind: named.get(kind) for kind in known}
    return named_tiers(
        {
            kind: TierStyle(own.label, own.colour, own.marker) if own else TierStyle()
            for kind, own in words.items()
        }
    )


def _figure(study: Study, name: str, qid: str | None) -> Figure:
    if name not in DRAW:
        raise InputError(f"unknown figure {name!r}; known: {', '.join(DRAW)}")
    return DRAW[name](study, qid) if name in ("rank_flow", "iso_score") else DRAW[name](study, None)


def at_k(study: Study, names: tuple[str, ...]) -> list[str]:
    """Metric names with the study's cutoff, where they take one."""
    cut = {"precision", "ndcg", "adv_share", "adv_hit", "low_tier_share", "suppressed_true"}
    return [
        f"{n}@{study.config.k}" if n in cut else "recall@15" if n == "recall" else n for n in names
    ]


def swept(study: Study, name: str, by: list[str], names: tuple[str, ...] = SWEPT) -> pd.DataFrame:
    """Means with intervals of a saved sweep: columns ``by``, metric, mean, low, high."""
    return summary(study, only(study, saved(study, f"metrics/{name}.csv"), *names), [*by, "metric"])


def _per_topic(study: Study, _: str | None) -> Figure:
    names = at_k(study, ("precision", "adv_share"))
    return FIGURES["per_topic"](saved(study, "metrics/retrieval.csv"), names=names)


def _spread(study: Study, _: str | None) -> Figure:
    return FIGURES["spread_sensitivity"](
        swept(study, "spread", ["gamma", "system"]),
        swept(study, "named_spread", ["spread", "system"]),
    )


def _k_window(study: Study, _: str | None) -> Figure:
    by_k = swept(study, "k", ["k", "system"]).assign(window="exact")
    # Shown over k is the exact system; the study's window, which grows with k, is in the CSV.
    by_k = by_k[by_k["system"] != "source_aware_3k"]
    by_window = swept(study, "window", ["window", "system"]).assign(k=study.config.k)
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


def _grounding_check(study: Study, _: str | None) -> Figure:
    constants = load_constants(study.path(GROUNDING))
    own = constants.coverage or constants.blend
    bands = (own.unsupported_below, own.supported_from)
    return FIGURES["grounding_check"](saved(study, CURVES), bands=bands)


DRAW: Mapping[str, Callable[[Study, str | None], Figure]] = {
    "corpus_overview": lambda s, _: FIGURES["corpus_overview"](saved(s, "corpus.csv")),
    "per_topic": _per_topic,
    "study_comparison": lambda s, _: FIGURES["study_comparison"](report_parts.beside_study(s)),
    "spread_sensitivity": _spread,
    "k_window": _k_window,
    "feedback": _feedback,
    "smoothing": lambda s, _: FIGURES["smoothing"](swept(s, "smoothing", ["alpha", "neighbours"])),
    "learned_priors": lambda s, _: FIGURES["learned_priors"](saved(s, LEARNED)),
    "rank_flow": _trace_figure("rank_flow"),
    "iso_score": _trace_figure("iso_score"),
    "answers": lambda s, _: FIGURES["answers"](answer_summary(s)),
    "grounding_check": _grounding_check,
    "threats": lambda s, _: FIGURES["threats"](swept(s, "spoofing", ["rate", "system"], SWEPT[:2])),
    "threat_curves": lambda s, _: threat_figures(s)["threat_curves"],
    "no_regret": lambda s, _: threat_figures(s)["no_regret"],
}


def answer_summary(study: Study) -> pd.DataFrame:
    """Means with intervals of answer metrics by system and arm, and of the stance error."""
    answers = summary(study, saved(study, "metrics/answers.csv"), ["system", "arm", "metric"])
    stance = saved(study, "metrics/stance.csv")
    error = summary(study, stance[stance["metric"] == "stance_error"], ["system", "metric"])
    return pd.concat([answers, error.assign(arm="")], ignore_index=True)
