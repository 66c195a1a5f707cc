"""Where each number of a report came from: the notebook that made it and the file it stands in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import quote

_RANK, _EVALUATE = "notebooks/03_rerank.ipynb", "notebooks/05_evaluate.ipynb"
_SENSITIVITY, _ADAPTIVE = "notebooks/06_sensitivity.ipynb", "notebooks/07_adaptive.ipynb"
_THREATS, _CHECK = "notebooks/08_threats.ipynb", "notebooks/11_grounding_check.ipynb"
_RETRIEVAL, _ANSWERS = "metrics/retrieval.csv", "metrics/answers.csv"
_STANCE, _TRACE = "metrics/stance.csv", "traces/source_aware.parquet"
_SENTENCES, _TEXTS = "answers/sentences.csv", "answers/answers.jsonl"
_GROUNDING, _CURVES = "grounding/measures.csv", "grounding/curves.csv"

SOURCES: Mapping[str, tuple[str, ...]] = {
    "answer": (_EVALUATE, _RETRIEVAL, _ANSWERS, _STANCE, "tables/significance.csv"),
    "study": (_EVALUATE, _RETRIEVAL, "tables/study.csv"),
    "main": (_EVALUATE, _RETRIEVAL, "tables/retrieval.csv"),
    "significance": (_EVALUATE, _RETRIEVAL, _ANSWERS, _STANCE, "tables/significance.csv"),
    "per_topic": (_EVALUATE, _RETRIEVAL, "tables/per_topic.csv", "figures/per_topic.pdf"),
    "moves": (_RANK, _TRACE),
    "answers": (_EVALUATE, _ANSWERS, "tables/answers.csv"),
    "sentences": ("notebooks/04_generate.ipynb", _TEXTS, _EVALUATE, _SENTENCES, _ANSWERS),
    "examples": ("notebooks/04_generate.ipynb", _TEXTS),
    "stance": (_EVALUATE, _STANCE, "answers/stance.csv", "tables/stance.csv"),
    "grounding_check": (_CHECK, _GROUNDING, "tables/grounding_check.csv"),
    "no_regret": (_THREATS, "metrics/threats.csv", "tables/no_regret.csv"),
    "deploy": (_THREATS, "metrics/threats.csv", "tables/deploy.csv"),
    "conclusion": (
        *(_SENSITIVITY, "metrics/spread.csv", "metrics/named_spread.csv", "metrics/k.csv"),
        *("metrics/window.csv", _THREATS, "metrics/spoofing.csv", "tables/conclusion.csv"),
    ),
    "values": ("values.json", "values.tex"),
    "figure:corpus_overview": ("notebooks/01_corpus.ipynb", "corpus.csv"),
    "figure:per_topic": (_EVALUATE, _RETRIEVAL),
    "figure:study_comparison": (_EVALUATE, _RETRIEVAL),
    "figure:spread_sensitivity": (_SENSITIVITY, "metrics/spread.csv", "metrics/named_spread.csv"),
    "figure:k_window": (_SENSITIVITY, "metrics/k.csv", "metrics/window.csv"),
    "figure:smoothing": (_SENSITIVITY, "metrics/smoothing.csv"),
    "figure:feedback": (_ADAPTIVE, "traces/feedback.parquet"),
    "figure:learned_priors": (_ADAPTIVE, "metrics/learned_priors.csv"),
    "figure:rank_flow": (_RANK, _TRACE),
    "figure:iso_score": (_RANK, _TRACE),
    "figure:answers": (_EVALUATE, _ANSWERS, _STANCE),
    "figure:grounding_check": (_CHECK, _CURVES),
    "figure:threats": (_THREATS, "metrics/spoofing.csv"),
    "figure:threat_curves": (_THREATS, "metrics/threats.csv"),
    "figure:no_regret": (_THREATS, "metrics/threats.csv"),
}
"""By what is shown: files relative to the run's folder, the notebook before what it wrote."""

_BY_VALUE = {
    "corpus": "corpus.csv",
    "grounding_check": _GROUNDING,
    "auroc": _STANCE,
    **dict.fromkeys(("log_odds", "stance_shift", "stance_error"), _STANCE),
    **dict.fromkeys(
        ("grounding", "trusted_grounding", "citation_precision", "citation_recall"), _ANSWERS
    ),
    **dict.fromkeys(("adversarial_uptake", "correctness", "harm", "abstained"), _ANSWERS),
}


def source_links(shown: str, files: Collection[str], up: str = "") -> list[tuple[str, str]]:
    """(label, link) of each file behind ``shown``, of those the run holds.

    files: names relative to the run's folder. up: the way back to it from the page ("../").
    """
    names = list(SOURCES.get(shown, ()))
    if shown.startswith("figure:"):
        names.append(f"figures/{shown.removeprefix('figure:')}.pdf")
    return [(_label(name), up + quote(name)) for name in names if name in files]


def value_links(name: str, files: Collection[str]) -> list[tuple[str, str]]:
    """(label, link) of the file that a value of values.json was computed from."""
    base = name.partition(".")[0].partition("@")[0]
    source = _BY_VALUE.get(base, _RETRIEVAL)
    return [(source, quote(source))] if source in files else []


def stage_link(stage: str, files: Collection[str]) -> str | None:
    """The sidecar that says what a stage was made from, where the run holds it."""
    name = f"stages/{stage}.json"
    return quote(name) if name in files else None


def files_of(*folders: Path) -> frozenset[str]:
    """Names of all files in a run's folders, relative to each, as links write them."""
    kept = ("notebooks", "metrics", "traces", "answers", "grounding", "stages", "tables", "figures")
    found: set[str] = set()
    for folder in folders:
        inside = [p for name in kept for p in (folder / name).glob("*") if p.is_file()]
        inside += [p for p in folder.glob("*") if p.is_file()]
        found |= {p.relative_to(folder).as_posix() for p in inside}
    return frozenset(found)


def _label(name: str) -> str:
    return PurePosixPath(name).stem if name.endswith(".ipynb") else name
