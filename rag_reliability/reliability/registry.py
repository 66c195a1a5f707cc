"""The registry of publishers: hosts, DOI prefixes and keys that are known to be theirs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml

from rag_reliability.records import InputError
from rag_reliability.reliability.hosts import domain_name, owners_of, registrable_domain
from rag_reliability.reliability.priors import at_line, items
from rag_reliability.reliability.signatures import decoded

_FIELDS = ("types", "names", "hosts", "doi_prefixes", "keys")
_PREFIX = re.compile(r"10\.\d{4,9}(?:\.\d+)*", re.ASCII)


@dataclass(frozen=True)
class Publisher:
    """One publisher and what is known to be its own.

    types: source types that its documents may declare. names: what documents call it, besides
    ``name``. hosts: each covers the hosts below it. doi_prefixes: may be shared with others of the
    same registrant. keys: raw Ed25519 public keys.
    """

    name: str
    types: tuple[str, ...]
    names: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    doi_prefixes: tuple[str, ...] = ()
    keys: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Registry:
    """Publishers, and who is meant by a name, a host or a DOI prefix."""

    publishers: tuple[Publisher, ...]

    @cached_property
    def _names(self) -> dict[str, Publisher]:
        return {called(n): p for p in self.publishers for n in (p.name, *p.names)}

    @cached_property
    def _hosts(self) -> dict[str, Publisher]:
        return {host: p for p in self.publishers for host in p.hosts}

    def named(self, source: str) -> Publisher | None:
        """The publisher that a document's ``source`` names, by a name or by a host of its own."""
        if (known := self._names.get(called(source))) is not None:
            return known
        host = domain_name(source.strip())
        return self.at_host(host) if host else None

    def at_host(self, host: str) -> Publisher | None:
        """The publisher whose host this is or stands above it; the nearest entry counts."""
        return next((self._hosts[h] for h in owners_of(host) if h in self._hosts), None)

    def of_doi(self, prefix: str) -> tuple[Publisher, ...]:
        """The publishers that register DOIs under a prefix."""
        return tuple(p for p in self.publishers if prefix in p.doi_prefixes)


def called(name: str) -> str:
    """A name as it is compared: NFKC, case folded, single spaces."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def load_registry(path: str | Path, known_types: Sequence[str] | None = None) -> Registry:
    """Registry from a YAML file, checked: ``publishers`` by name, with the fields of ``Publisher``.

    known_types: the source types that may stand there; None accepts any.

    Raises: InputError naming file, line and key for a missing or malformed file, an unknown or
    repeated key, a publisher without types or of an unknown one, a host that is no name below a
    public suffix, a DOI prefix or key that is none, a name or host of two publishers.
    """
    path = Path(path)
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise InputError(
            f"{path}: cannot be read as YAML: {' '.join(str(error).split())}"
        ) from error
    sections = dict(items(root, path, "the file"))
    for key, node in sections.items():
        if key != "publishers":
            raise at_line(path, node, f"unknown key {key!r}; expected publishers")
    if "publishers" not in sections:
        raise InputError(f"{path}: expected a key 'publishers'")
    owners: dict[str, str] = {}
    return Registry(
        tuple(
            _publisher(name, node, path, owners, known_types)
            for name, node in items(sections["publishers"], path, "'publishers'")
        )
    )


def _publisher(
    name: str, node: yaml.Node, path: Path, owners: dict[str, str], known: Sequence[str] | None
) -> Publisher:
    where = f"publisher {name!r}"
    values: dict[str, list[str]] = {key: [] for key in _FIELDS}
    _claim(called(name), name, owners, path, node)
    for key, value in items(node, path, where):
        if key not in values:
            raise at_line(
                path, value, f"{where}: unknown key {key!r}; expected {', '.join(_FIELDS)}"
            )
        if not isinstance(value, yaml.SequenceNode):
            raise at_line(path, value, f"{where}: expected {key!r} to hold a list")
        for entry in value.value:
            read = _entry(key, entry, path, where)
            if key == "types" and known is not None and read not in known:
                message = f"{where}: unknown source type {read!r}; known: {', '.join(known)}"
                raise at_line(path, entry, message)
            if key in ("names", "hosts"):
                _claim(read, name, owners, path, entry)
            values[key].append(read)
    if not values["types"]:
        raise at_line(path, node, f"{where}: expected 'types' with at least one source type")
    keys = tuple(decoded(key) or b"" for key in values.pop("keys"))
    return Publisher(name, keys=keys, **{k: tuple(v) for k, v in values.items()})


def _entry(key: str, node: yaml.Node, path: Path, where: str) -> str:
    """One entry of a list, checked and in the form in which it is looked up."""
    read, expected = _READERS[key]
    shown = node.value if isinstance(node, yaml.ScalarNode) else "a list or mapping"
    value = read(shown.strip()) if isinstance(node, yaml.ScalarNode) else None
    if not value:
        raise at_line(path, node, f"{where}, {key!r}: {shown!r}; expected {expected}")
    return value


def _claim(what: str, name: str, owners: dict[str, str], path: Path, node: yaml.Node) -> None:
    if what in owners:
        raise at_line(path, node, f"{what!r} of {name!r} already belongs to {owners[what]!r}")
    owners[what] = name


def _host(text: str) -> str | None:
    name = domain_name(text)
    return name if name and registrable_domain(name) else None


def _key(text: str) -> str | None:
    raw = decoded(text)
    return text if raw is not None and len(raw) == 32 and any(raw) else None


_READERS: Mapping[str, tuple[Callable[[str], str | None], str]] = {
    "types": (str, "a source type"),
    "names": (called, "a name"),
    "hosts": (_host, "a host like nih.gov, below a public suffix, without scheme, port or path"),
    "doi_prefixes": (lambda t: t if _PREFIX.fullmatch(t) else None, "a DOI prefix like 10.1056"),
    "keys": (_key, "an Ed25519 public key: base64 of 32 bytes"),
}
