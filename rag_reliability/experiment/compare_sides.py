"""The two sides of a comparison: a run as it lies in its folder, and what two runs share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rag_reliability.artefacts import Store
from rag_reliability.config import ExperimentConfig
from rag_reliability.experiment.report_parts import read_tidy
from rag_reliability.experiment.study import Study, project_root
from rag_reliability.records import Corpus, InputError

FILES = {
    "ranking": "metrics/retrieval.csv",
    "answers": "metrics/answers.csv",
    "stance": "metrics/stance.csv",
}
_COLUMNS = ["kind", "system", "arm", "qid", "metric", "value"]


@dataclass(frozen=True)
class Side:
    """One run as it lies in its folder; config and corpus are empty where it does not say them."""

    label: str
    folder: Path
    config: Mapping[str, Any]
    corpus_sha256: str | None
    commit: str | None
    metrics: pd.DataFrame


def read_side(folder: Path) -> Side:
    """A run from its folder: metrics, and what its manifest says.

    Raises InputError naming the file that is missing or cannot be used.
    """
    root = folder if folder.is_dir() else project_root() / folder
    if not (root / FILES["ranking"]).is_file():
        raise InputError(f"{folder}: holds no run (expected {FILES['ranking']} in it)")
    frames = [
        _read(root / name).assign(kind=kind)
        for kind, name in FILES.items()
        if (root / name).is_file()
    ]
    manifest = _json(root / "manifest.json")
    index = _mapping(_json(root / "stages" / "index.json"), "inputs")
    return Side(
        label=root.resolve().name,
        folder=folder,
        config=_config(root / "manifest.json", manifest),
        corpus_sha256=_text(manifest.get("corpus_sha256")) or _text(index.get("corpus")),
        commit=_json(root / "stages" / "retrieval.json").get("git_commit"),
        metrics=pd.concat(frames, ignore_index=True)[_COLUMNS],
    )


def _read(path: Path) -> pd.DataFrame:
    try:
        frame = read_tidy(path)
        frame["value"] = frame["value"].astype(float)
    except KeyError as error:
        raise InputError(f"{path}: lacks the column {error.args[0]}") from error
    except (ValueError, OSError) as error:
        raise InputError(f"{path}: {' '.join(str(error).split())}") from error
    frame = frame if "arm" in frame else frame.assign(arm="")
    if missing := {"system", "qid", "metric"} - set(frame.columns):
        raise InputError(f"{path}: lacks the columns {', '.join(sorted(missing))}")
    if frame.empty:
        raise InputError(f"{path}: holds no rows")
    if frame["value"].isna().any():
        raise InputError(f"{path}: column value holds empty cells")
    if not np.isfinite(frame["value"]).all():
        raise InputError(f"{path}: column value holds a number that is not finite")
    if frame.duplicated(["system", "arm", "qid", "metric"]).any():
        raise InputError(f"{path}: holds a system, topic and metric twice")
    return frame


def _json(path: Path) -> dict[str, Any]:
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return read if isinstance(read, dict) else {}


def _config(path: Path, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """The manifest's config. Raises InputError for a k by which no metric can be told."""
    config = _mapping(manifest, "config")
    k = config.get("k", 1)
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        given = json.dumps(k, ensure_ascii=False)[:60]
        raise InputError(f"{path}: config: k = {given}; expected a whole number >= 1")
    return config


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _mapping(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A field that should be a mapping; an empty one where it is anything else."""
    found = record.get(name)
    return found if isinstance(found, dict) else {}


def named_apart(a: Side, b: Side) -> tuple[Side, Side]:
    """Labels that differ: the folder's name, or with its parent's, or A and B."""
    if a.label != b.label:
        return a, b
    longer = ["/".join(side.folder.resolve().parts[-2:]) for side in (a, b)]
    labels = longer if longer[0] != longer[1] else [f"{a.label} (A)", f"{b.label} (B)"]
    return replace(a, label=labels[0]), replace(b, label=labels[1])


def shared_topics(a: Side, b: Side) -> tuple[set[str], list[str]]:
    """Topics that both runs answer to, and what must be said of how they are shared.

    Raises InputError for different corpora that share no topic, or that cannot be looked into.
    """
    common = set(a.metrics["qid"]) & set(b.metrics["qid"])
    if None in (a.corpus_sha256, b.corpus_sha256):
        note = "A run does not say which corpus it was made from: topics are paired by name."
        return _some(a, b, common), [note]
    if a.corpus_sha256 == b.corpus_sha256:
        return _some(a, b, common), []
    corpora = [_corpus(side) for side in (a, b)]
    queries = [{t.qid: " ".join(t.query.split()) for t in c.topics} for c in corpora]
    same = {q for q in common if queries[0].get(q) == queries[1].get(q) is not None}
    notes = [
        f"The runs were made from different corpora; compared are the {len(same)} topics that ask "
        "the same question in both. Their documents may differ."
    ]
    if other := sorted(common - same):
        notes.append(f"Same name, another question, left out: {', '.join(other)}.")
    judged = [{q: dict(c.qrels.get(q, {})) for q in same} for c in corpora]
    if unlike := sorted(q for q in same if judged[0][q] != judged[1][q]):
        names = ", ".join(unlike)
        notes.append(f"Judged differently in the two corpora, so labels differ as well: {names}.")
    return _some(a, b, same), notes


def _some(a: Side, b: Side, topics: set[str]) -> set[str]:
    if not topics:
        raise InputError(f"{a.folder} and {b.folder}: the runs share no topic, nothing is paired")
    return topics


def _corpus(side: Side) -> Corpus:
    """The corpus a run was made from, if it still lies where the config says."""
    try:
        study = Study(ExperimentConfig(**side.config), Store(side.folder), project_root())
        found, corpus = study.corpus_digest, study.corpus
    except (InputError, ValueError, TypeError, OSError) as error:
        raise InputError(
            f"{side.folder}: the runs were made from different corpora, and this one's cannot be "
            f"read, so whether topics are shared cannot be told: {' '.join(str(error).split())}"
        ) from error
    if found != side.corpus_sha256:
        raise InputError(
            f"{side.folder}: the runs were made from different corpora, and "
            f"{side.config.get('corpus')} has changed since this one"
        )
    return corpus


def config_differences(a: Side, b: Side) -> pd.DataFrame:
    """Parameters that differ: columns parameter, a, b; "–" where a run does not have one."""
    facts = [
        {**s.config, "corpus sha256": s.corpus_sha256, "code": str(s.commit or "")[:12]}
        for s in (a, b)
    ]
    names = list(dict.fromkeys([*facts[0], *facts[1]]))
    rows = [
        (name, *(_plain(fact[name]) if name in fact else "–" for fact in facts))
        for name in names
        if facts[0].get(name) != facts[1].get(name) or (name in facts[0]) != (name in facts[1])
    ]
    return pd.DataFrame(rows, columns=["parameter", "a", "b"])


def _plain(value: Any) -> str:
    if value is None or value == []:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
