"""What a sweep is: its YAML file, checked whole before anything starts, and its runs."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, StrictStr, ValidationError

from rag_reliability.config import ExperimentConfig, load_config
from rag_reliability.files import canonical_json
from rag_reliability.records import InputError
from rag_reliability.runner import KNOWN, NOTEBOOKS

Scalar = str | int | float | bool


class _File(BaseModel):
    """The fields of a sweep's file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    config: StrictStr
    notebooks: list[StrictStr] = Field(default_factory=lambda: list(NOTEBOOKS), min_length=1)
    parameters: dict[StrictStr, Any] = {}
    grid: dict[StrictStr, list[Any]] = {}
    runs: list[dict[StrictStr, Any]] = []
    cluster: dict[StrictStr, Any] | None = None


@dataclass(frozen=True)
class Run:
    """One parameter set and the notebooks to run with it.

    parameters: what differs from the config file, as scalars. config: everything, checked.
    """

    run: str
    sweep: str
    config_file: str
    notebooks: tuple[str, ...]
    parameters: Mapping[str, Scalar]
    config: ExperimentConfig

    def value(self, name: str) -> Scalar:
        """Value of a parameter in this run; a list as its comma-separated words, null as ''."""
        value = getattr(self.config, name)
        return ",".join(value) if isinstance(value, tuple) else "" if value is None else value


@dataclass(frozen=True)
class Sweep:
    """A checked sweep: its name (of the file, without ``sweep-``), varied parameters and runs."""

    name: str
    file: str
    varied: tuple[str, ...]
    runs: tuple[Run, ...]
    cluster: Mapping[str, Any] | None


def read_sweep(path: str | Path, root: Path) -> Sweep:
    """Read a sweep's file and check every run it asks for; ``root`` is where configs are found.

    Raises InputError, one line naming file and field: unknown names, a config that any run would
    be refused for, a run that is there twice.
    """
    file = _read(Path(path))
    for name in file.notebooks:
        if name not in KNOWN:
            raise InputError(f"{path}: notebooks: unknown {name!r}; known: {', '.join(KNOWN)}")
    fixed = _values(file.parameters, f"{path}: parameters")
    grid = {n: _choices(n, values, fixed, str(path)) for n, values in file.grid.items()}
    named = [(_where(i, own), own) for i, own in _asked(file, grid, str(path))]
    name = Path(path).stem.removeprefix("sweep-")
    varied = tuple(dict.fromkeys([*grid, *(n for _, own in named for n in own)]))
    notebooks = tuple(n for n in KNOWN if n in file.notebooks)
    runs: dict[bytes, Run] = {}
    for where, own in named:
        # Each value is checked beside the others, since a window must hold k.
        config = _config(root, file.config, {**fixed, **own}, f"{path}: {where}")
        same = canonical_json(config.model_dump(mode="json"))
        if same in runs:
            raise InputError(f"{path}: {where}: the same run as {runs[same].run}")
        shown = {n: own.get(n, getattr(config, n)) for n in varied}
        run = _name(name, shown, [file.config, file.notebooks, {**fixed, **own}])
        runs[same] = Run(run, name, file.config, notebooks, {**fixed, **own}, config)
    if not runs:
        raise InputError(f"{path}: no runs: give grid or runs")
    return Sweep(name, str(path), varied, tuple(runs.values()), file.cluster)


def read_sweeps(paths: Sequence[str | Path], root: Path) -> list[Sweep]:
    """Several sweeps, their names distinct. Raises InputError as ``read_sweep``."""
    sweeps: dict[str, Sweep] = {}
    for path in paths:
        sweep = read_sweep(path, root)
        if sweep.name in sweeps:
            raise InputError(f"{path}: a sweep of this name came from {sweeps[sweep.name].file}")
        sweeps[sweep.name] = sweep
    return list(sweeps.values())


def read_mapping(path: Path) -> dict[str, Any]:
    """A YAML file that holds a mapping, no name in it twice. Raises InputError, one line."""
    try:
        # A subclass of the safe loader: it builds plain values only.
        loaded = yaml.load(path.read_text(encoding="utf-8"), Loader=_Once)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise InputError(
            f"{path}: cannot be read as YAML: {' '.join(str(error).split())}"
        ) from error
    if not isinstance(loaded, dict):
        raise InputError(f"{path}: expected a mapping of field: value")
    return loaded


class _Once(yaml.SafeLoader):
    """YAML's safe loader, which would keep the last of two equal names, refusing the second."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value]
        for (key, _), seen in zip(node.value, _before(names), strict=True):
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"{key.value!r} is there twice", key.start_mark
                )
        return super().construct_mapping(node, deep)


def _before(names: list[Any]) -> Iterator[list[Any]]:
    return (names[:i] for i in range(len(names)))


def _read(path: Path) -> _File:
    try:
        return _File(**read_mapping(path))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            known = ", ".join(_File.model_fields)
            raise InputError(f"{path}: unknown field {field!r}; known: {known}") from error
        raise InputError(f"{path}: {field}: {first['msg']}") from error


def _asked(
    file: _File, grid: Mapping[str, list[Scalar]], path: str
) -> Iterator[tuple[int | None, dict[str, Scalar]]]:
    """Each run's own values: the grid's product, then those listed with their place in the list."""
    if grid:
        for values in itertools.product(*grid.values()):
            yield None, dict(zip(grid, values, strict=True))
    for i, own in enumerate(file.runs):
        yield i, _values(own, f"{path}: runs[{i}]")


def _where(place: int | None, own: Mapping[str, Scalar]) -> str:
    shown = ", ".join(f"{name} = {value}" for name, value in own.items())
    return f"grid: {shown}" if place is None else f"runs[{place}]"


def _choices(name: str, values: list[Any], fixed: Mapping[str, Scalar], path: str) -> list[Scalar]:
    where = f"{path}: grid.{name}"
    if name in fixed:
        raise InputError(f"{where}: also in parameters; it is either fixed or varied")
    if not values:
        raise InputError(f"{where}: no values")
    found = [_values({name: value}, f"{path}: grid")[name] for value in values]
    for i, value in enumerate(found):
        if any(value == v and type(value) is type(v) for v in found[:i]):
            raise InputError(f"{where}: {value} is there twice")
    return found


def _values(given: Mapping[str, Any], where: str) -> dict[str, Scalar]:
    """Known names with scalars: papermill hands over nothing else, so lists become words."""
    found: dict[str, Scalar] = {}
    for name, value in given.items():
        if name not in ExperimentConfig.model_fields:
            known = ", ".join(sorted(ExperimentConfig.model_fields))
            raise InputError(f"{where}.{name}: unknown parameter; known: {known}")
        if isinstance(value, list) and all(isinstance(v, str) for v in value):
            value = ",".join(value)
        if not isinstance(value, str | int | float | bool):
            raise InputError(f"{where}.{name}: {value!r} is neither a scalar nor a list of words")
        found[name] = value
    return found


def _config(root: Path, file: str, values: Mapping[str, Scalar], where: str) -> ExperimentConfig:
    if not (root / file).is_file():
        raise InputError(f"{where.partition(': ')[0]}: config: no such file: {file}")
    try:
        return load_config(root / file, **values)
    except InputError as error:
        raise InputError(f"{where}: {str(error).removeprefix(f'{root / file}: ')}") from error


def _name(sweep: str, varied: Mapping[str, Any], made_from: Any) -> str:
    """A folder's name to read, and a hash that keeps it apart from every other."""
    words = "_".join(f"{n}-{','.join(v) if isinstance(v, tuple) else v}" for n, v in varied.items())
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{sweep}_{words}")[:80].strip("-._")
    return f"{readable}_{hashlib.sha256(canonical_json(made_from)).hexdigest()[:12]}"
