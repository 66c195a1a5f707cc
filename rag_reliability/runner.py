"""Runs the notebooks in order through papermill, and reuses those in which nothing has changed."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from rag_reliability.artefacts import StageResult, stage_key
from rag_reliability.experiment.preflight import preflight
from rag_reliability.experiment.study import Study, open_study, source_files
from rag_reliability.files import atomic_write_text, run_lock, sha256_tree
from rag_reliability.records import InputError

NOTEBOOKS: Mapping[str, tuple[str, ...]] = {
    "01_corpus": ("corpus",),
    "02_index": ("index",),
    "03_rerank": ("rank",),
    "04_generate": ("answers", "stance"),
    "05_evaluate": ("retrieval", "answer-scores"),
    "06_sensitivity": (
        "sweep-spread",
        "sweep-named_spread",
        "sweep-k",
        "sweep-window",
        "sweep-smoothing",
    ),
    "07_adaptive": ("sweep-feedback", "learned"),
    "08_threats": ("sweep-spoofing", "threats"),
    "10_real_data": (),
    "11_grounding_check": ("grounding-check",),
    "09_figures": ("results",),
}
"""Each notebook and the stages it asks for, in the order of a whole run."""
EXTRA: Mapping[str, tuple[str, ...]] = {"rankings": ("index", "rank", "retrieval")}
"""Notebooks that no whole run needs, for sweeps: one kernel where a whole run starts eleven."""
KNOWN = {**NOTEBOOKS, **EXTRA}
_NO_GENERATOR = frozenset(EXTRA)


def run_notebooks(
    config_file: str,
    out: str,
    parameters: Mapping[str, Any],
    *,
    notebooks: Sequence[str] = tuple(NOTEBOOKS),
    fresh: bool = False,
    say: Callable[[str], None] = print,
    output: TextIO | None = None,
    wait: float = 2.0,
) -> Study:
    """Execute notebooks into ``out``/notebooks, all or those named, in order; returns the study.

    Config, corpus and models are checked before the first notebook starts. A notebook whose source,
    parameters, package and stages are unchanged is not executed again, and the run says so.
    ``output`` takes what the notebooks print (default: this process's own streams); ``wait`` is
    how many seconds another writer of the folder is waited for.

    Raises InputError, one line, for bad input and for a notebook that fails.
    """
    study = open_study({**parameters, "config_file": config_file, "out": out}, say=say)
    preflight(study, answers=needs_generator(notebooks))
    given = {**parameters, "config_file": config_file, "out": out}
    with run_lock(study.run_dir, wait):
        if fresh:
            study.store.clear_cache()
        for number, name in enumerate(notebooks, start=1):
            say(f"[{number}/{len(notebooks)}] {name}")
            _run_one(study, name, given, output)
        write_manifest(study, notebooks)
    return study


def needs_generator(notebooks: Sequence[str]) -> bool:
    """Whether any of these notebooks depends on the generator's weights."""
    return not _NO_GENERATOR.issuperset(notebooks)


def is_done(study: Study, notebooks: Sequence[str], parameters: Mapping[str, Any]) -> bool:
    """Whether notebooks and their stages were computed here and lie in the run's folder, unchanged.

    ``parameters``: as ``run_notebooks`` was given them, ``config_file`` and ``out`` among them.
    """
    for name in notebooks:
        stage, key = f"notebook-{name}", _key(study, name, parameters)[0]
        if not (study.store.knows(stage, key) and study.store.holds(stage, key)):
            return False
    return all(_stages_hold(study, _used(name)) for name in notebooks)


def _given(study: Study) -> dict[str, str]:
    """Hashes of the folders and files that a config names beside corpus and priors."""
    named = {n: getattr(study.config, n) for n in ("testbed", "labelled_pairs", "languages")}
    return {n: sha256_tree(study.path(path)) for n, path in named.items() if path}


def _used(name: str) -> str:
    return f"stages/{name}.uses.json"


def _key(study: Study, name: str, parameters: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Key of an executed notebook, and what it was made from."""
    source = study.root / "notebooks" / f"{name}.ipynb"
    if not source.is_file():
        raise InputError(f"{source}: no such notebook")
    models = [study.config.encoder]
    if needs_generator([name]):
        models.append(study.config.generator)
    inputs = {
        "notebook": sha256_tree(source),
        "parameters": dict(parameters),
        "config": study.config.model_dump(mode="json"),
        "priors": sha256_tree(study.path(study.config.priors)),
        "corpus": study.corpus_digest,
        "given": _given(study),
        "models": [study.model_sha(m) for m in models],
    }
    return stage_key(f"notebook-{name}", inputs, source_files((".",))), inputs


def _run_one(study: Study, name: str, parameters: Mapping[str, Any], output: TextIO | None) -> None:
    key, inputs = _key(study, name, parameters)
    executed, used = f"notebooks/{name}.ipynb", _used(name)

    def build(folder: Path) -> None:
        (folder / "notebooks").mkdir(parents=True)
        (folder / "stages").mkdir()
        source = study.root / executed
        execute(source, folder / executed, parameters, study.root, output)
        uses = {stage: study.key(stage) for stage in KNOWN[name]}
        (folder / used).write_text(json.dumps(uses, indent=1) + "\n", encoding="utf-8")

    def run() -> StageResult:
        return study.store.stage(
            f"notebook-{name}", key, (executed, used), build, meta={"inputs": inputs}
        )

    # The executed copy may be at hand while the stages it made were changed or taken away.
    if run().status != "built" and not _stages_hold(study, used):
        study.store.forget(f"notebook-{name}", key)
        run()


def _stages_hold(study: Study, used: str) -> bool:
    """Whether the stages that a notebook made are still what it made, in this run's folder."""
    try:
        uses = json.loads((study.run_dir / used).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return all(study.store.holds(stage, key) for stage, key in uses.items())


def execute(
    source: Path,
    target: Path,
    parameters: Mapping[str, Any],
    cwd: Path,
    output: TextIO | None = None,
) -> None:
    """Execute one notebook through papermill, its progress and prints shown as they come.

    ``output`` takes what it prints, instead of this process's own streams.

    Raises InputError: what the notebook was refused for, or the cell and error it stopped at.
    """
    import papermill

    # Parameters that a notebook does not list are checked by ExperimentConfig, not by papermill.
    logging.getLogger("papermill").setLevel(logging.ERROR)
    try:
        papermill.execute_notebook(
            str(source),
            str(target),
            parameters=dict(parameters),
            cwd=str(cwd),
            stdout_file=output or sys.stdout,
            stderr_file=output or sys.stderr,
            progress_bar=output is None and sys.stderr.isatty(),
            # Kernel errors only: the note that a local kernel's socket is not encrypted is no news.
            extra_arguments=["--log-level=40"],
        )
    except papermill.PapermillExecutionError as error:
        if error.ename == "InputError":
            raise InputError(str(error.evalue)) from error
        raise InputError(
            f"{source.name}, cell {error.exec_count}: {error.ename}: {error.evalue}"
        ) from error
    _without_paths(target, cwd)


def _without_paths(notebook: Path, root: Path) -> None:
    """Make an executed notebook fit to travel: it names no folder of this machine."""
    text = notebook.read_text(encoding="utf-8")
    read = json.loads(text)
    about = read["metadata"].get("papermill", {})
    about.update(input_path=f"notebooks/{notebook.name}", output_path=notebook.name)
    text = json.dumps(read, indent=1, ensure_ascii=False) + "\n"
    for folder, name in ((f"{root}/", ""), (str(root), "."), (str(Path.home()), "~")):
        if len(folder) > 1:  # where home is "/", there is nothing to hide
            text = text.replace(folder, name)
    notebook.write_text(text, encoding="utf-8")


def write_manifest(study: Study, notebooks: Sequence[str] = tuple(NOTEBOOKS)) -> None:
    """``manifest.json``: the config, and every stage with its key, outputs and inputs."""
    records = [study.store.sidecar(s) for name in notebooks for s in KNOWN[name]]
    manifest = {
        "config": study.config.model_dump(mode="json"),
        "corpus_sha256": study.corpus_digest,
        "stages": {
            r["name"]: {"key": r["key"], "seconds": r["seconds"], "outputs": r["outputs"]}
            for r in records
        },
    }
    text = json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    atomic_write_text(study.run_dir / "manifest.json", text)
