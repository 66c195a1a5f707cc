"""One question's candidates as plain arrays, ranked: what every adapter to another tool calls."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rag_reliability.datasets.lines import shown
from rag_reliability.files import shipped
from rag_reliability.records import InputError
from rag_reliability.reliability.evidence import Evidence, RobustSettings
from rag_reliability.reliability.priors import load_priors
from rag_reliability.reliability.robust import NEEDS, RULES, rank_robust

RULES_HERE = tuple(name for name in RULES if set(NEEDS.get(name, ())) <= {"source"})
"""Rules that need neither texts nor a model: labels, checks and publishers are enough."""

_SETTABLE = ("cap", "low", "quota", "label_error", "meta_weight")


@dataclass(frozen=True)
class Order:
    """The candidates kept, best first: their positions in the input, scores and priors, (kept,).

    order: int64. scores: float64, non-increasing; those that the rule left out stand last, at the
    lowest score minus 1, 2, … . priors: float64, λ of each one's declared type.
    """

    order: np.ndarray
    scores: np.ndarray
    priors: np.ndarray


@dataclass(frozen=True)
class PriorTable:
    """λ by source type, and the publishers whose documents count as another type.

    file: where it was read, for complaints; empty for a table that was given.
    """

    by_type: Mapping[str, float]
    sources: Mapping[str, str]
    file: str = ""

    def __post_init__(self) -> None:
        if not self.by_type:
            raise InputError("priors: the table is empty; expected λ by source type")
        for kind, value in self.by_type.items():
            if not (_is_number(value) and 0 < value <= 1):
                raise InputError(
                    f"priors: λ of {shown(kind)} is {shown(value)}; expected 0 < λ <= 1"
                )


def prior_table(
    priors: Mapping[str, float] | str | Path | None = None, spread: str = "current"
) -> PriorTable:
    """The prior table that ``priors`` means.

    A mapping is λ by source type itself. A path is a file like ``configs/priors.yaml``, of which
    ``spread`` and the publishers' overrides are taken; None is that of the nearest folder above the
    working directory, else ours.

    Raises: InputError naming what is wrong with the file, the spread or a λ.
    """
    if isinstance(priors, Mapping):
        return PriorTable(dict(priors), {})
    from rag_reliability.experiment.study import project_root

    own = project_root() / "configs" / "priors.yaml"
    path = Path(priors) if priors is not None else own
    file = path if path.is_file() or priors else shipped("configs/priors.yaml")
    tables = load_priors(file)
    return PriorTable(tables.table(spread), tables.sources, str(file))


def rank_candidates(
    sims: Sequence[float] | np.ndarray,
    source_types: Sequence[str | None],
    verified: Sequence[bool | None] | None = None,
    *,
    priors: PriorTable | Mapping[str, float] | str | Path | None = None,
    rule: str = "source_aware",
    k: int | None = None,
    window: int | None = None,
    sources: Sequence[str | None] | None = None,
    docnos: Sequence[str] | None = None,
    unknown_prior: float | None = None,
    rule_settings: Mapping[str, Any] | None = None,
) -> Order:
    """The candidates of one question in the order of a rule, by (-score, -similarity, docno).

    The formulas are those of ``docs/robust-rules.md``; the candidates are the n that a retriever
    found, in any order.

    sims: (n,), finite; below 0 counts as 0 where a prior is multiplied on. source_types: n names
    of the prior table. verified: whether each declared type has been *checked*, by you; None counts
    as not. priors: see ``prior_table``. rule: one of ``RULES_HERE``. k: how many to keep, at most
    the window (None: the window, else all). window: only this many most similar are scored, the
    others come after them. sources: publishers, for the table's overrides and ``source_quota``.
    docnos: names for ties and complaints (None: positions). unknown_prior: λ of a missing or
    unknown source type. rule_settings: cap, low, quota, label_error, meta_weight
    (``RobustSettings``).

    Raises: InputError naming the document and what is wrong with it, or the setting.
    """
    names = [f"#{i}" for i in range(len(sims))] if docnos is None else [str(d) for d in docnos]
    _check_lengths(len(names), source_types, verified, sources, docnos)
    table = priors if isinstance(priors, PriorTable) else prior_table(priors)
    wanted = k if k is not None else window or max(len(names), 1)
    settings = _settings(rule, table, wanted, window, rule_settings or {})
    kept = min(settings.k, len(names))
    prior = _priors(source_types, sources, table, unknown_prior, names)
    evidence = Evidence(
        docids=np.arange(len(names), dtype=np.int64)[None, :],
        sims=_sims(sims, names)[None, :],
        prior=prior[None, :],
        verified=_checks(verified, names)[None, :],
        source=None if sources is None else _codes(sources)[None, :],
    )
    if not kept:
        return Order(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))
    ties = [f"{i:09d}" for i in range(len(names))] if docnos is None else names
    ranking = rank_robust(evidence, rule, ("",), ties, replace(settings, k=kept))
    order = ranking.docids[0]
    return Order(order, ranking.scores[0], prior[order])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _check_lengths(n: int, *columns: Sequence[Any] | None) -> None:
    names = ("source types", "values of verified", "sources", "docnos")
    for what, column in zip(names, columns, strict=True):
        if column is not None and len(column) != n:
            raise InputError(f"{len(column)} {what} for {n} similarities")


def _settings(
    rule: str, table: PriorTable, k: int, window: int | None, given: Mapping[str, Any]
) -> RobustSettings:
    """The rule's settings, checked."""
    if rule not in RULES_HERE:
        raise InputError(f"rule {shown(rule)}: expected one of {', '.join(RULES_HERE)}")
    for name, value in given.items():
        if name not in _SETTABLE:
            known = ", ".join(_SETTABLE)
            raise InputError(f"rule_settings: unknown {shown(name)}; known: {known}")
        if not _is_number(value):
            raise InputError(f"rule_settings: {name} = {shown(value)}; expected a number")
    return RobustSettings(k=k, window=window, lowest=min(table.by_type.values()), **given)


def _sims(sims: Sequence[float] | np.ndarray, names: Sequence[str]) -> np.ndarray:
    """The similarities, float64 (n,), each a finite number."""
    for name, value in zip(names, sims, strict=True):
        if not (_is_number(value) and math.isfinite(value)):
            raise InputError(
                f"document {shown(name)}: similarity {shown(value)}; expected a finite number"
            )
    return np.asarray(sims, dtype=np.float64)


def _priors(
    kinds: Sequence[str | None],
    sources: Sequence[str | None] | None,
    table: PriorTable,
    unknown_prior: float | None,
    names: Sequence[str],
) -> np.ndarray:
    """λ of each candidate, float64 (n,)."""
    overrides = {source.casefold(): kind for source, kind in table.sources.items()}
    publishers = [None] * len(names) if sources is None else sources
    values = []
    for name, kind, source in zip(names, kinds, publishers, strict=True):
        counts_as = overrides.get(source.casefold()) if isinstance(source, str) else None
        declared = counts_as or kind
        value = table.by_type.get(declared) if isinstance(declared, str) else None
        if value is None and unknown_prior is None:
            mend = f"give it one in each spread of {table.file}" if table.file else "give it one"
            raise InputError(
                f"document {shown(name)}: source type {shown(declared)} has no prior; "
                f"known: {', '.join(table.by_type)}; {mend}, or set unknown_prior"
            )
        values.append(unknown_prior if value is None else value)
    if unknown_prior is not None and not 0 < unknown_prior <= 1:
        raise InputError(f"unknown_prior = {shown(unknown_prior)}; expected 0 < λ <= 1")
    return np.array(values, dtype=np.float64)


def _checks(verified: Sequence[bool | None] | None, names: Sequence[str]) -> np.ndarray:
    """Whether each type was checked, bool (n,). A text such as "false" must not pass for true."""
    for name, value in zip(names, verified if verified is not None else (), strict=False):
        if value is not None and not isinstance(value, bool | np.bool_):
            raise InputError(
                f"document {shown(name)}: verified is {shown(value)}; expected true or false"
            )
    if verified is None:
        return np.zeros(len(names), dtype=bool)
    return np.array([bool(value) for value in verified], dtype=bool)


def _codes(sources: Sequence[str | None]) -> np.ndarray:
    """A number for each publisher, -1 where none is named, int64 (n,)."""
    names = [s if isinstance(s, str) else "" for s in sources]
    codes = {name: i for i, name in enumerate(dict.fromkeys(names))} | {"": -1}
    return np.array([codes[name] for name in names], dtype=np.int64)
