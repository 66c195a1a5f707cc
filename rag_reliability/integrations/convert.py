"""A corpus or a run's rankings from one format into another: what ``export`` does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from rag_reliability.experiment.exchange import read_corpus, read_run, run_table, write_beir
from rag_reliability.files import atomic_write_text, scratch_beside, write_errors
from rag_reliability.integrations.exports import (
    datasets_library,
    read_datasets,
    read_parquet,
    run_dict,
    save_dataset,
    write_datasets,
    write_parquet,
    write_table,
    write_trec,
)
from rag_reliability.records import Corpus, InputError

Runs = Mapping[str, pd.DataFrame]
"""Runs as ``read_run`` gives them, by the name of their file without its ending."""


CORPUS_FORMATS: Mapping[str, Callable[[Corpus, Path], None]] = {
    "beir": write_beir,
    "parquet": write_parquet,
    "trec": write_trec,
    "datasets": write_datasets,
}


def export(source: str | Path, to: str, out: str | Path) -> str:
    """Write a corpus, or a run's rankings, in another format into the new folder ``out``.

    source: a corpus folder (our own layout, BEIR's, Parquet or datasets), a TREC run file, or a
    run's folder, of which every ranking in ``runs/`` is taken. to: beir, parquet, trec or datasets.

    Returns: one line that says what was written.

    Raises: InputError for a source that is neither, an unknown format, a folder that holds files.
    """
    source, out = Path(source), Path(out)
    if to not in CORPUS_FORMATS:
        raise InputError(f"unknown format {to!r}; known: {', '.join(CORPUS_FORMATS)}")
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise InputError(f"{out}: is there already; expected a new folder")
    if runs := _runs_in(source):
        with _whole(out) as folder:
            _write_runs(runs, to, folder)
        return f"{out}: rankings {len(runs)}, places {sum(map(len, runs.values()))}"
    corpus = _corpus_in(source)
    if to == "beir":  # says what the layout has no place for, and where
        write_beir(corpus, out)
    else:
        with _whole(out) as folder:
            CORPUS_FORMATS[to](corpus, folder)
    judged = sum(map(len, corpus.qrels.values()))
    documents = "" if to == "trec" else f"documents {len(corpus.documents)}, "
    return f"{out}: {documents}topics {len(corpus.topics)}, judgements {judged}"


@contextmanager
def _whole(out: Path) -> Iterator[Path]:
    """A folder that becomes ``out`` when all is written, and goes if something fails."""
    with write_errors(out), scratch_beside(out.resolve()) as folder:
        folder.mkdir(parents=True)
        yield folder
        folder.replace(out)


def _write_runs(runs: Runs, to: str, folder: Path) -> None:
    if to == "parquet":
        write_table(run_table(runs.values()), folder / "runs.parquet")
    elif to == "datasets":
        save_dataset(datasets_library().Dataset(run_table(runs.values())), folder / "runs")
    elif to == "beir":  # results as its evaluation takes them; ranx reads them as well
        for name, run in runs.items():
            text = json.dumps(run_dict(run, by_rank=False), ensure_ascii=False)
            atomic_write_text(folder / f"{name}.json", text)
    else:
        for name, run in runs.items():
            atomic_write_text(folder / f"{name}.trec", "".join(_trec_lines(run)))


def _trec_lines(run: pd.DataFrame) -> Iterator[str]:
    columns = (run[name] for name in ("qid", "docno", "rank", "score", "system"))
    for qid, docno, rank, score, system in zip(*columns, strict=True):
        yield f"{qid} Q0 {docno} {rank} {float(score)!r} {system}\n"


def _runs_in(source: Path) -> Runs:
    """The rankings, under their files' names: what a file says of its system is no file name."""
    paths = [source] if source.is_file() else sorted((source / "runs").glob("*.trec"))
    return {path.stem: read_run(path) for path in paths}


def _corpus_in(source: Path) -> Corpus:
    if (source / "documents.parquet").exists():
        return read_parquet(source)
    if (source / "documents" / "dataset_info.json").exists():
        return read_datasets(source)
    return read_corpus(source)
