"""The study itself: composes the stage packages, from a config to one artefact a stage.

This package alone imports more than one stage package. Notebooks, runner and command stand on it.
"""

from __future__ import annotations

import importlib
from typing import Any

# Loaded on first use, so that a config can be checked without torch, faiss or numba.
_HOME = {
    "open_study": "study",
    "index_stage": "ranking",
    "load_candidates": "ranking",
    "rank_stage": "ranking",
    "answers_stage": "answering",
    "stance_stage": "answering",
    "retrieval_stage": "scoring",
    "answer_scores_stage": "answer_scoring",
    "sweep_stage": "sensitivity",
    "learned_stage": "learned",
    "threats_stage": "threats",
    "threat_answers_stage": "threat_answers",
    "testbed_study": "threat_results",
    "grounding_check_stage": "grounding_check",
    "results_stage": "results",
    "compare_runs": "compare",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
