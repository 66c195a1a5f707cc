"""Hosts of real publishers: which one an address names, and which source type it stands for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

_LONGEST = 300


def host_in(url: str) -> str:
    """Host that ``url`` names, in lower case; empty where it names none.

    Good enough to group documents; whether an address really leads to its publisher is a question
    for ``reliability.provenance``.
    """
    try:
        return (urlsplit(url).hostname or "")[:_LONGEST]
    except ValueError:
        return ""


def type_of_host(host: str, types: Mapping[str, str]) -> str | None:
    """Source type of the nearest entry of ``types`` at or above ``host``; None without one.

    ``nih.gov`` covers ``www.niddk.nih.gov``, not ``fake-nih.gov``.
    """
    labels = host.casefold().removesuffix(".").split(".")
    above = (".".join(labels[i:]) for i in range(len(labels)))
    return next((types[name] for name in above if name in types), None)


def types_of_sources(sources: Iterable[str], types: Mapping[str, str]) -> dict[str, str]:
    """Source type of each source that is a host covered by ``types``, sources as they are written.

    The result is what ``reliability.priors.effective_types`` takes as overrides.
    """
    found = {source: type_of_host(source, types) for source in dict.fromkeys(sources)}
    return {source: kind for source, kind in found.items() if kind is not None}
