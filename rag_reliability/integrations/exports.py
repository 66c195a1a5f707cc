"""Corpora and runs for other tools: ranx, ir-measures, Parquet, Hugging Face datasets, TREC, BEIR.

What is written can be read back to the same corpus or run, but for what a format has no place for
(BEIR: claims; TREC: all but topics' questions and judgements).
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from rag_reliability.experiment.exchange import TABLES, corpus_of, corpus_tables, write_qrels
from rag_reliability.files import atomic_write_bytes, atomic_write_text
from rag_reliability.records import Corpus, InputError, Qrels

if TYPE_CHECKING:
    from datasets import Dataset


def run_dict(run: pd.DataFrame, *, by_rank: bool = True) -> dict[str, dict[str, float]]:
    """A run as ``{qid: {docno: score}}``: what ``ranx.Run`` and ``ir_measures`` take.

    run: as ``read_run`` gives it. by_rank: give 1 / rank in place of the score, since these tools
    break ties of the score each in its own way, and the run's order is the one that counts.
    """
    score = 1.0 / run["rank"] if by_rank else run["score"]
    scored: dict[str, dict[str, float]] = {}
    for qid, docno, value in zip(run["qid"], run["docno"], score, strict=True):
        scored.setdefault(qid, {})[docno] = float(value)
    return scored


def scored_docs(run: pd.DataFrame, *, by_rank: bool = True) -> Iterator[Any]:
    """A run as ``ir_measures.ScoredDoc``, for its iterable interface; by_rank as ``run_dict``."""
    import ir_measures

    for qid, scores in run_dict(run, by_rank=by_rank).items():
        yield from (ir_measures.ScoredDoc(qid, docno, score) for docno, score in scores.items())


def judgements(qrels: Qrels) -> Iterator[Any]:
    """Judgements as ``ir_measures.Qrel``; ``ranx.Qrels`` takes ``qrels`` as they are."""
    import ir_measures

    for qid, labels in qrels.items():
        yield from (ir_measures.Qrel(qid, docno, label) for docno, label in labels.items())


def write_parquet(corpus: Corpus, folder: str | Path) -> None:
    """Write documents.parquet, topics.parquet and qrels.parquet into ``folder``."""
    for name, table in corpus_tables(corpus).items():
        write_table(table, Path(folder) / f"{name}.parquet")


def read_parquet(folder: str | Path) -> Corpus:
    """The corpus that ``write_parquet`` wrote, or one laid out like it (documents are enough).

    Raises: InputError naming file, row and field of the first fault.
    """
    folder = Path(folder)
    rows: dict[str, list[dict[str, Any]]] = {}
    for name in TABLES:
        path = folder / f"{name}.parquet"
        if not path.exists() and name != "documents":
            continue
        try:
            rows[name] = pq.read_table(path).to_pylist()
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{path}: cannot be read as Parquet: {_line(error)}") from error
    return corpus_of(rows, folder.resolve().name)


def to_datasets(corpus: Corpus) -> dict[str, Dataset]:
    """The corpus as Hugging Face datasets ``documents``, ``topics`` and ``qrels``.

    Raises: InputError if the library is not installed.
    """
    return {
        name: datasets_library().Dataset(table) for name, table in corpus_tables(corpus).items()
    }


def from_datasets(found: Mapping[str, Dataset], name: str) -> Corpus:
    """The corpus of datasets with the columns that ``to_datasets`` gives (documents are enough).

    Raises: InputError naming table, row and field of the first fault.
    """
    return corpus_of({key: dataset.to_list() for key, dataset in found.items()}, name)


def write_datasets(corpus: Corpus, folder: str | Path) -> None:
    """Save ``to_datasets`` as one folder each under ``folder``, for ``load_from_disk``."""
    for name, dataset in to_datasets(corpus).items():
        if dataset.num_rows:  # the library cannot load an empty one again
            save_dataset(dataset, Path(folder) / name)


def read_datasets(folder: str | Path) -> Corpus:
    """The corpus that ``write_datasets`` wrote.

    Raises: InputError naming the folder, or table, row and field, of the first fault.
    """
    library, folder = datasets_library(), Path(folder)
    try:
        places = {name: folder / name for name in TABLES if (folder / name).is_dir()}
        found = {name: library.load_from_disk(str(path)) for name, path in places.items()}
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(f"{folder}: cannot be read as datasets: {_line(error)}") from error
    return from_datasets(found, folder.resolve().name)


def write_trec(corpus: Corpus, folder: str | Path) -> None:
    """Write topics.tsv (qid, tab, query) and qrels.txt; a track's documents stay where they are."""
    folder = Path(folder)
    topics = "".join(f"{t.qid}\t{' '.join(t.query.split())}\n" for t in corpus.topics)
    atomic_write_text(folder / "topics.tsv", topics)
    write_qrels(folder / "qrels.txt", corpus.qrels)


def write_table(table: pa.Table, path: Path) -> None:
    """Write one table as a Parquet file, whole or not at all."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    atomic_write_bytes(path, buffer.getvalue())


def save_dataset(dataset: Dataset, folder: Path) -> None:
    """``Dataset.save_to_disk`` without its progress bars."""
    library = datasets_library()
    silent = library.are_progress_bars_disabled()
    library.disable_progress_bars()
    try:
        dataset.save_to_disk(str(folder))
    finally:
        if not silent:
            library.enable_progress_bars()


def datasets_library() -> Any:
    """Hugging Face's library.

    Raises: InputError if it is not installed.
    """
    try:
        import datasets
    except ImportError as error:
        raise InputError("needs the library datasets (extra 'datasets')") from error
    return datasets


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
