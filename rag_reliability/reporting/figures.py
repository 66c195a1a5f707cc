"""Every figure of the paper by name: tidy tables in, one ``matplotlib.figure.Figure`` out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from matplotlib.figure import Figure

from rag_reliability.reporting.figures_answers import answers, corpus_overview
from rag_reliability.reporting.figures_grounding import grounding_check
from rag_reliability.reporting.figures_iso import iso_score
from rag_reliability.reporting.figures_learning import learned_priors
from rag_reliability.reporting.figures_priors import feedback, smoothing, threats
from rag_reliability.reporting.figures_retrieval import (
    k_window,
    per_topic,
    spread_sensitivity,
    study_comparison,
)
from rag_reliability.reporting.figures_threats import no_regret, threat_curves
from rag_reliability.reporting.figures_trace import rank_flow

FIGURES: Mapping[str, Callable[..., Figure]] = {
    "per_topic": per_topic,
    "study_comparison": study_comparison,
    "spread_sensitivity": spread_sensitivity,
    "k_window": k_window,
    "feedback": feedback,
    "smoothing": smoothing,
    "learned_priors": learned_priors,
    "rank_flow": rank_flow,
    "iso_score": iso_score,
    "answers": answers,
    "grounding_check": grounding_check,
    "threats": threats,
    "threat_curves": threat_curves,
    "no_regret": no_regret,
    "corpus_overview": corpus_overview,
}
