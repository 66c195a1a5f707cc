"""Reliability priors: from a file of named spreads to one λ for each document."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import numpy as np
import yaml

from rag_reliability.records import InputError

_NUMBER_TAGS = ("tag:yaml.org,2002:float", "tag:yaml.org,2002:int")


@dataclass(frozen=True)
class PriorTables:
    """Prior tables by spread, and the sources that count as another type.

    spreads: ``spreads[spread][source_type]`` is λ in (0, 1]; all spreads name the same types.
    sources: ``sources[source]`` is the type its documents count as, whatever they declare.
    """

    spreads: Mapping[str, Mapping[str, float]]
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def known_types(self) -> tuple[str, ...]:
        """Source types that have a prior, in the file's order."""
        return tuple(next(iter(self.spreads.values())))

    def table(self, spread: str) -> Mapping[str, float]:
        """λ by source type of a named spread.

        Raises: InputError naming the known spreads.
        """
        if spread not in self.spreads:
            raise InputError(f"unknown spread {spread!r}; known: {', '.join(self.spreads)}")
        return self.spreads[spread]


def load_priors(path: str | Path) -> PriorTables:
    """Prior tables from a YAML file, checked.

    Raises: InputError naming file, line and key for a missing or malformed file, an unknown or
    repeated key, λ that is not a number in (0, 1], a spread that lacks a type.
    """
    path = Path(path)
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise InputError(
            f"{path}: cannot be read as YAML: {' '.join(str(error).split())}"
        ) from error
    sections: dict[str, yaml.Node] = {}
    for key, value in items(root, path, "the file"):
        if key not in ("spreads", "sources", "taxonomy"):  # the last is ``taxonomy``'s to read
            raise at_line(path, value, f"unknown key {key!r}; expected spreads, sources, taxonomy")
        sections[key] = value
    if "spreads" not in sections:
        raise InputError(f"{path}: expected a key 'spreads'")
    spreads = _spreads(sections["spreads"], path)
    known = next(iter(spreads.values()))
    sources = _sources(sections["sources"], path, known) if "sources" in sections else {}
    return PriorTables(MappingProxyType(spreads), MappingProxyType(sources))


def effective_types(
    source_types: Sequence[str] | np.ndarray,
    sources: Sequence[str] | np.ndarray,
    overrides: Mapping[str, str],
) -> np.ndarray:
    """Source type that each document counts as, str (n_docs,), after the sources' overrides.

    These, not the declared types, are the partitions that keep the index exact.
    """
    if len(source_types) != len(sources):
        raise ValueError(f"{len(source_types)} source types for {len(sources)} sources")
    by_source = {source.casefold(): kind for source, kind in overrides.items()}
    pairs = zip(np.asarray(sources).tolist(), np.asarray(source_types).tolist(), strict=True)
    return np.array([by_source.get(source.casefold(), kind) for source, kind in pairs], dtype=str)


def prior_vector(
    table: Mapping[str, float],
    source_types: Sequence[str] | np.ndarray,
    sources: Sequence[str] | np.ndarray | None = None,
    unknown_prior: float | None = None,
    *,
    overrides: Mapping[str, str] | None = None,
) -> np.ndarray:
    """Prior λ of each document, float64 (n_docs,) in (0, 1].

    table: λ by source type. source_types, sources: str (n_docs,). overrides: types that sources
    count as (``PriorTables.sources``), looked up in ``sources``. unknown_prior: λ of types that
    the table lacks.

    Raises: InputError naming an unknown type and the known ones, or a λ outside (0, 1].
    """
    if overrides and sources is not None:
        source_types = effective_types(source_types, sources, overrides)
    types, position, inverse = np.unique(
        np.asarray(source_types, dtype=str), return_index=True, return_inverse=True
    )
    values = [table.get(str(kind), unknown_prior) for kind in types]
    for kind, at, value in zip(types, position, values, strict=True):
        if value is None:
            raise InputError(
                f"source type {str(kind)!r} (document at position {at}) has no prior; "
                f"known: {', '.join(table)}; or set unknown_prior"
            )
        if not _is_prior(value):
            raise InputError(f"prior of {str(kind)!r} is {value}; expected 0 < λ <= 1")
    return np.array(values, dtype=np.float64)[inverse]


def temper(table: Mapping[str, float], gamma: float) -> dict[str, float]:
    """λ^γ by source type: γ = 0 is similarity alone, 1 the table itself, above 1 more extreme.

    Raises: InputError for γ that is negative or not finite, or so large that a λ becomes 0.
    """
    if not (math.isfinite(gamma) and gamma >= 0):
        raise InputError(f"gamma = {gamma}; expected a finite number >= 0")
    tempered = {kind: float(value**gamma) for kind, value in table.items()}
    for kind, value in tempered.items():
        if not _is_prior(value):
            raise InputError(f"gamma = {gamma} makes the prior of {kind!r} {value}; expected > 0")
    return tempered


def _is_prior(value: float) -> bool:
    return math.isfinite(value) and 0 < value <= 1


def at_line(path: Path, node: yaml.Node, message: str) -> InputError:
    """The complaint about a node of a YAML file, with the file and its line."""
    return InputError(f"{path}:{node.start_mark.line + 1}: {message}")


def items(node: yaml.Node | None, path: Path, where: str) -> Iterator[tuple[str, yaml.Node]]:
    """Key and value nodes of a mapping, each key once."""
    if not isinstance(node, yaml.MappingNode):
        message = f"expected {where} to hold key: value pairs"
        raise InputError(f"{path}: {message}") if node is None else at_line(path, node, message)
    seen: set[str] = set()
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or not key.value:
            raise at_line(path, key, f"expected a word as key in {where}")
        if key.value in seen:
            raise at_line(path, key, f"{key.value!r} stands twice in {where}")
        seen.add(key.value)
        yield key.value, value


def _spreads(node: yaml.Node, path: Path) -> dict[str, Mapping[str, float]]:
    spreads: dict[str, Mapping[str, float]] = {}
    for spread, body in items(node, path, "'spreads'"):
        where = f"spread {spread!r}"
        table = {
            kind: _prior(v, path, f"{where}, {kind!r}") for kind, v in items(body, path, where)
        }
        first = next(iter(spreads.values()), table)
        if set(table) != set(first) or not table:
            raise at_line(
                path,
                body,
                f"{where} names {', '.join(table) or 'nothing'}; "
                f"expected {', '.join(first) or 'source types'}",
            )
        spreads[spread] = MappingProxyType({kind: table[kind] for kind in first})
    if not spreads:
        raise at_line(path, node, "expected at least one spread")
    return spreads


def _prior(node: yaml.Node, path: Path, where: str) -> float:
    value = math.nan
    if isinstance(node, yaml.ScalarNode) and node.tag in _NUMBER_TAGS:
        with contextlib.suppress(TypeError, ValueError, yaml.YAMLError):
            value = float(yaml.safe_load(node.value))
    if not _is_prior(value):
        shown = node.value if isinstance(node, yaml.ScalarNode) else "a list or mapping"
        raise at_line(path, node, f"{where}: λ = {shown}; expected a number, 0 < λ <= 1")
    return value


def _sources(node: yaml.Node, path: Path, known: Mapping[str, float]) -> dict[str, str]:
    sources: dict[str, str] = {}
    for source, value in items(node, path, "'sources'"):
        if not isinstance(value, yaml.ScalarNode) or value.value not in known:
            shown = value.value if isinstance(value, yaml.ScalarNode) else "a list or mapping"
            raise at_line(
                path,
                value,
                f"source {source!r} counts as {shown}; expected one of {', '.join(known)}",
            )
        sources[source] = value.value
    return sources
