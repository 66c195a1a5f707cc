"""TREC qrels and run files, read and written with every field checked."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rag_reliability.artefacts import atomic_write_text
from rag_reliability.datasets.lines import shown, text_lines
from rag_reliability.datasets.schema import name_problem
from rag_reliability.records import InputError, Qrels, Ranking

if TYPE_CHECKING:
    import pandas as pd

LABELS = (0, 1, 2, 3)
_WHOLE = re.compile(r"[0-9]{1,9}", re.ASCII)

Judgement = tuple[str, str, str, int]
"""(``file:line``, qid, docno, label)."""


def qrels_rows(path: Path) -> Iterator[Judgement]:
    """Judgements of a TREC qrels file (``qid 0 docno label``, spaces or tabs).

    Raises InputError for a wrong number of fields and for a label other than 0, 1, 2 or 3.
    """
    for where, text in text_lines(path):
        qid, _, docno, label = _fields(text, where, ("qid", "0", "docno", "label"))
        yield where, qid, docno, parse_label(label, where)


def parse_label(label: str, where: str) -> int:
    """A relevance label, 0 to 3; InputError for anything else."""
    if label not in {str(known) for known in LABELS}:
        raise InputError(f"{where}: label {shown(label)}: expected 0, 1, 2 or 3")
    return int(label)


def collect_qrels(rows: Iterable[Judgement], *, repeats: bool = False) -> dict[str, dict[str, int]]:
    """Judgements as ``qrels[qid][docno]``.

    A pair judged twice is refused, or with ``repeats`` takes the highest of its labels.

    Raises InputError for a repeated pair unless ``repeats``.
    """
    qrels: dict[str, dict[str, int]] = {}
    for where, qid, docno, label in rows:
        labels = qrels.setdefault(qid, {})
        if docno in labels and not repeats:
            raise InputError(f"{where}: topic {qid!r} and document {docno!r} are judged twice")
        labels[docno] = max(label, labels.get(docno, label))
    return qrels


def read_qrels(path: str | Path) -> dict[str, dict[str, int]]:
    """A TREC qrels file as ``qrels[qid][docno]``, labels 0 to 3.

    Raises InputError, naming file and line, for a malformed row or a pair judged twice.
    """
    return collect_qrels(qrels_rows(Path(path)))


def read_run(path: str | Path) -> pd.DataFrame:
    """A TREC run file as columns qid, docno, rank, score, system, in the file's order of topics.

    Within a topic ranks are unique, no document stands twice, and scores do not rise with rank.

    Raises InputError, naming file and line, for a malformed row or one that breaks these rules.
    """
    path = Path(path)
    rows: dict[str, list[tuple[int, float, str, str]]] = {}
    systems: set[str] = set()
    for where, text in text_lines(path):
        names = ("qid", "Q0", "docno", "rank", "score", "system")
        qid, _, docno, rank, score, system = _fields(text, where, names)
        systems.add(system)
        if len(systems) > 1:
            raise InputError(f"{where}: expected one system in a run file, got {sorted(systems)}")
        row = (_rank(rank, where), _score(score, where), docno, where)
        rows.setdefault(qid, []).append(row)
    if not rows:
        raise InputError(f"{path}: the run holds no rows")
    import pandas as pd

    table = [
        (qid, d, r, s) for qid, ranked in rows.items() for r, s, d, _ in _in_order(qid, ranked)
    ]
    return pd.DataFrame(table, columns=["qid", "docno", "rank", "score"]).assign(
        system=systems.pop()
    )


def write_qrels(path: str | Path, qrels: Qrels) -> None:
    """Write judgements as TREC qrels, ``qid 0 docno label``, in the order of the mapping.

    Raises InputError for a name with spaces.
    """
    atomic_write_text(Path(path), qrels_text(qrels))


def write_run(path: str | Path, ranking: Ranking, docnos: np.ndarray, system: str) -> None:
    """Write a ranking as a TREC run, ``qid Q0 docno rank score system``.

    docnos: str (n_docs,), indexed by docid. Ranks start at 1; scores are the true ones, with every
    digit that they need to be read back equal.

    Raises InputError for a name with spaces.
    """
    for name in (system, *ranking.qids):
        _check_name(name, path)
    rows = []
    for qid, docids, scores in zip(ranking.qids, ranking.docids, ranking.scores, strict=True):
        for rank, (docid, score) in enumerate(zip(docids, scores, strict=True), 1):
            docno = _check_name(str(docnos[docid]), path)
            rows.append(f"{qid} Q0 {docno} {rank} {float(score)!r} {system}\n")
    atomic_write_text(Path(path), "".join(rows))


def qrels_text(qrels: Qrels) -> str:
    """Judgements as the text of a TREC qrels file."""
    rows = [
        f"{_check_name(qid, 'qrels')} 0 {_check_name(docno, 'qrels')} {label:d}\n"
        for qid, labels in qrels.items()
        for docno, label in labels.items()
    ]
    return "".join(rows)


def _in_order(
    qid: str, rows: list[tuple[int, float, str, str]]
) -> list[tuple[int, float, str, str]]:
    rows = sorted(rows, key=lambda row: row[0])
    seen: set[str] = set()
    for i, (rank, score, docno, where) in enumerate(rows):
        if docno in seen:
            raise InputError(f"{where}: document {docno!r} stands twice under topic {qid!r}")
        if i and rank == rows[i - 1][0]:
            raise InputError(f"{where}: rank {rank} stands twice under topic {qid!r}")
        if i and score > rows[i - 1][1]:
            raise InputError(f"{where}: score {score} is above that of the rank before it")
        seen.add(docno)
    return rows


def _fields(text: str, where: str, names: tuple[str, ...]) -> list[str]:
    fields = text.split()
    if len(fields) != len(names):
        expected = f"expected {len(names)} fields ({' '.join(names)})"
        raise InputError(f"{where}: {expected}, got {len(fields)}: {shown(text)}")
    return fields


def _rank(value: str, where: str) -> int:
    if not _WHOLE.fullmatch(value):
        raise InputError(f"{where}: rank {shown(value)}: expected a whole number")
    return int(value)


def _score(value: str, where: str) -> float:
    try:
        score = math.nan if "_" in value else float(value)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise InputError(f"{where}: score {shown(value)}: expected a finite number")
    return score


def _check_name(name: str, where: str | Path) -> str:
    if problem := name_problem(name):
        raise InputError(f"{where}: {name!r} {problem}")
    return name
