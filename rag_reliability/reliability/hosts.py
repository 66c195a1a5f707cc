"""Whose host a url names: the registrable domain, never a substring."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from tldextract import TLDExtract

_WEB = ("http", "https")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
# Parsers disagree on these: what one takes for the host, another takes for a path.
_DOUBTFUL = re.compile(r"[\s\\\x00-\x1f\x7f]")
_RESOLVERS = ("doi.org", "dx.doi.org", "www.doi.org")
_DOI = re.compile(r"(10\.\d{4,9}(?:\.\d+)*)/\S", re.ASCII)


def host_of(url: str) -> str | None:
    """Host that a web address leads to, in lower case and ASCII (IDNA 2008); None in doubt.

    Port and one trailing dot are left out. In doubt is what has no http(s) scheme, a user name
    (``https://nih.gov@evil.example`` leads to evil.example), a space, control character or
    backslash, a port that is no number, or no domain name (an IP address has no owner by name).
    """
    if _DOUBTFUL.search(url):
        return None
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port  # a bad port raises
    except ValueError:
        return None
    if parts.scheme.lower() not in _WEB or "@" in parts.netloc or not host:
        return None
    return domain_name(host)


def domain_name(host: str) -> str | None:
    """A host's name in lower case and ASCII, if it is one below a top-level domain; else None."""
    import idna

    host = host.removesuffix(".")
    try:
        name = host.lower() if host.isascii() else idna.encode(host, uts46=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        return None
    labels = name.split(".")
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        return None
    # A name whose last label opens with a digit is read as an IP address.
    return name if len(labels) > 1 and not labels[-1][0].isdigit() else None


def registrable_domain(name: str) -> str | None:
    """The domain that somebody registered (``www.nih.gov`` → ``nih.gov``); None for a suffix.

    By the Public Suffix List bundled with tldextract, private suffixes (github.io) included, so
    that a neighbour on shared hosting is somebody else. Nothing is fetched. A top-level domain that
    the list lacks (``.example``) counts as a suffix, as the list's own rule has it.
    """
    found = _extractor().extract_str(name)
    if not found.suffix:
        return ".".join(name.split(".")[-2:])
    return found.top_domain_under_public_suffix or None


def owners_of(name: str) -> list[str]:
    """The host and what stands above it, down to its registrable domain, nearest first."""
    domain = registrable_domain(name)
    if domain is None:
        return []
    labels, last = name.split("."), len(domain.split("."))
    return [".".join(labels[i:]) for i in range(len(labels) - last + 1)]


def doi_prefix(url: str) -> str | None:
    """DOI prefix that an address names: of a ``doi:`` address or one of the resolver doi.org."""
    if url[:4].lower() == "doi:":
        name = unquote(url[4:].strip())
    elif host_of(url) in _RESOLVERS and urlsplit(url).port in (None, 80, 443):
        name = unquote(urlsplit(url).path).lstrip("/")
    else:
        return None
    # Clients walk up at "..": the page behind such an address can be another registrant's.
    walks = any(part in (".", "..") for part in name.replace("\\", "/").split("/"))
    match = None if walks or any(c.isspace() for c in name) else _DOI.match(name)
    return match[1] if match else None


@cache
def _extractor() -> TLDExtract:
    from tldextract import TLDExtract

    return TLDExtract(cache_dir=None, suffix_list_urls=(), include_psl_private_domains=True)
