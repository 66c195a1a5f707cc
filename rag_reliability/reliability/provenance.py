"""Is a document's declared source its source? Checks that need no network.

``docs/threats.md`` says what each check proves, and what it does not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rag_reliability.records import Corpus, Document, InputError
from rag_reliability.reliability.hosts import doi_prefix, domain_name, host_of
from rag_reliability.reliability.registry import Publisher, Registry
from rag_reliability.reliability.signatures import is_signed

Status = Literal["verified", "unverified", "contradicted"]
Method = Literal["signature", "host", "doi", "none"]


@dataclass(frozen=True, slots=True)
class Check:
    """What is known of a document's declared source type and source.

    status: ``verified``: a registered publisher that may declare this type stands behind it;
    ``contradicted``: what was found conflicts with what is declared; ``unverified``: neither.
    method: what decided, or "none". reason: one line for people.
    """

    status: Status
    method: Method
    reason: str


def check_document(document: Document, registry: Registry, signature: str | None = None) -> Check:
    """Check one document's declared source: its signature, and its url's host or DOI.

    One contradiction outweighs any confirmation; of several confirmations the signature is named
    first. Only ``source``, ``source_type``, ``url`` and what is signed are looked at: hosts and
    DOIs within the text are the author's to choose.
    """
    checks = [_check_url(document, registry)]
    if signature is not None:
        checks.insert(0, _check_signature(document, registry, signature))
    order = ("contradicted", "verified", "unverified")
    return min(checks, key=lambda check: order.index(check.status))


def check_corpus(
    corpus: Corpus, registry: Registry, signatures: Mapping[str, str] | None = None
) -> list[Check]:
    """One ``Check`` for each document, in the corpus's order; ``signatures`` by docno.

    Raises: InputError for signatures of unknown documents.
    """
    given = signatures or {}
    if unknown := sorted(given.keys() - corpus.docid.keys()):
        raise InputError(f"signatures name the document {unknown[0]!r}, which the corpus lacks")
    return [check_document(d, registry, given.get(d.docno)) for d in corpus.documents]


def with_verification(
    corpus: Corpus, registry: Registry, signatures: Mapping[str, str] | None = None
) -> Corpus:
    """The corpus with ``verified`` set by ``check_corpus``, whatever it was before.

    Raises: InputError for signatures of unknown documents.
    """
    checks = check_corpus(corpus, registry, signatures)
    documents = tuple(
        dataclasses.replace(d, verified=check.status == "verified")
        for d, check in zip(corpus.documents, checks, strict=True)
    )
    return dataclasses.replace(corpus, documents=documents)


def _check_url(document: Document, registry: Registry) -> Check:
    url, named = document.url.strip(), registry.named(document.source)
    if not url:
        return Check("unverified", "none", "no url")
    if (prefix := doi_prefix(url)) is not None:
        owns = named is not None and bool(named.doi_prefixes)
        return _judged(document, registry, "doi", f"DOI {prefix}", registry.of_doi(prefix), owns)
    host = host_of(url)
    if host is None:
        return Check("unverified", "none", "the url names no host beyond doubt")
    owner = registry.at_host(host)
    owns = named is not None and bool(named.hosts)
    return _judged(document, registry, "host", f"host {host}", (owner,) if owner else (), owns)


def _check_signature(document: Document, registry: Registry, signature: str) -> Check:
    for publisher in registry.publishers:
        if any(is_signed(document, signature, key) for key in publisher.keys):
            return _judged(document, registry, "signature", "signature", (publisher,), True)
    named = registry.named(document.source)
    if named is not None and named.keys:
        return Check("contradicted", "signature", f"not signed by a key of {named.name!r}")
    return Check("unverified", "none", "signed by no key in the registry")


def _judged(
    document: Document,
    registry: Registry,
    method: Method,
    found: str,
    owners: Sequence[Publisher],
    owns: bool,
) -> Check:
    """What the publishers behind a host, DOI or signature say about the declared source and type.

    owns: the registry lists such things for the declared publisher, so that this is none of them.
    """
    named = registry.named(document.source)
    if not owners:
        if owns and named is not None:
            return Check("contradicted", method, f"{found} is not of {named.name!r}")
        return Check("unverified", "none", f"{found} is not in the registry")
    names = " or ".join(repr(p.name) for p in owners)
    if named is not None and named not in owners:
        reason = f"{found} is of {names}, not of {named.name!r}"
        return Check("contradicted", method, reason)
    if named is None and domain_name(document.source.strip()) is not None:
        return Check("contradicted", method, f"{found} is of {names}, not of the declared source")
    able = [p for p in owners if document.source_type in p.types and named in (None, p)]
    if not able:
        reason = f"{found} is of {names}, which does not publish {document.source_type!r}"
        return Check("contradicted", method, reason)
    return Check("verified", method, f"{found} is of {able[0].name!r}")
