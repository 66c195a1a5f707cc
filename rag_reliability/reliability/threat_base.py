"""What all threats share: who is attacked, what the lie is, how a document is added."""

from __future__ import annotations

import dataclasses
import math
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal

import numpy as np

from rag_reliability.records import Corpus, Document, InputError, Topic

HIGH_TYPES = ("peer_reviewed", "government")
LOW_TYPE = "ai_generated"
_LONGEST_DOCNO = 200
_OVERLAP, _MOST = 0.6, 3


def check_rate(value: float, name: str) -> float:
    """``value``, if it is a share.

    Raises: InputError for a value outside [0, 1].
    """
    if not 0 <= value <= 1:
        raise InputError(f"{name} = {value}; expected 0 <= {name.split()[-1]} <= 1")
    return value


def share(rate: float, n: int) -> int:
    """The nearest whole number to rate · n, half up, of ``rate`` as it is written in decimals."""
    return int((Decimal(repr(float(rate))) * n).to_integral_value(ROUND_HALF_UP))


def drawn(names: Iterable[str], rate: float, seed: int) -> list[str]:
    """A share ``rate`` of ``names``: nested in rate, and independent of their order.

    Raises: InputError for a rate outside [0, 1].
    """
    ordered = sorted(set(names))
    order = np.random.default_rng(seed).permutation(len(ordered))
    return [ordered[i] for i in order[: share(check_rate(rate, "rate"), len(ordered))]]


def rng_of(seed: int, *names: str) -> np.random.Generator:
    """A generator of its own for each name, so that one document's draws leave others' alone."""
    return np.random.default_rng([seed, *(zlib.crc32(name.encode("utf-8")) for name in names)])


def judged(corpus: Corpus, docno: str) -> dict[str, int]:
    """Labels of a document by topic."""
    return {qid: labels[docno] for qid, labels in corpus.qrels.items() if docno in labels}


def added(corpus: Corpus, new: Sequence[tuple[Document, Mapping[str, int]]]) -> Corpus:
    """The corpus with new adversarial documents at its end, and their labels by topic.

    A docno that is taken gets a number behind it. Topics without judgements stay without.
    """
    if not new:
        return corpus
    taken = {d.docno for d in corpus.documents}
    qrels = {qid: dict(labels) for qid, labels in corpus.qrels.items()}
    documents = list(corpus.documents)
    for document, labels in new:
        docno = _free(document.docno, taken)
        taken.add(docno)
        documents.append(dataclasses.replace(document, docno=docno, adversarial=True))
        for qid, label in labels.items():
            if qid in qrels:
                qrels[qid][docno] = label
    return dataclasses.replace(corpus, documents=tuple(documents), qrels=qrels)


def forged(
    name: str, text: str, *, title: str = "", claims: tuple[str, ...] = (), kind: str = LOW_TYPE
) -> Document:
    """An adversary's own page: low tier unless told otherwise, unverified, on a host of its own."""
    host = "unnamed-pages.example"
    url = f"https://{host}/{zlib.crc32(name.encode('utf-8')):08x}"
    return Document(name, title, text, kind, source=host, url=url, adversarial=True, claims=claims)


def false_texts(corpus: Corpus, texts: Mapping[str, Sequence[str]] | None) -> dict[str, list[str]]:
    """False texts by topic, for the topics that have any.

    The given ``texts``; for other topics the false claims as one text, or the wrong answer to a
    yes/no topic.
    """
    _check_texts(corpus, texts)
    found = {t.qid: list((texts or {}).get(t.qid, ())) or _own_lie(t) for t in corpus.topics}
    return {qid: lies for qid, lies in found.items() if lies}


def adversaries_by_topic(corpus: Corpus) -> dict[str, list[Document]]:
    """Adversarial documents by the topics they are aimed at.

    Those judged for the topic; where none is, up to three that hold most of the query's words, if
    they hold at least 60 %.
    """
    adversaries = [d for d in corpus.documents if d.adversarial]
    words = [_words(d.content) for d in adversaries]
    found = {}
    for topic in corpus.topics:
        labels = corpus.qrels.get(topic.qid, {})
        own = [d for d in adversaries if d.docno in labels]
        if not own:
            query = _words(topic.query)
            near = [
                (-len(query & w) / max(len(query), 1), d.docno, d)
                for w, d in zip(words, adversaries, strict=True)
            ]
            own = [d for nearness, _, d in sorted(near)[:_MOST] if -nearness >= _OVERLAP]
        if own:
            found[topic.qid] = sorted(own, key=lambda d: d.docno)
    return found


def trusted(corpus: Corpus, types: Sequence[str] = HIGH_TYPES) -> list[Document]:
    """Relevant documents of trusted types, not adversarial, by docno.

    Raises: InputError for no types.
    """
    if not types:
        raise InputError("trusted_types is empty; expected at least one source type")
    relevant = {n for labels in corpus.qrels.values() for n, label in labels.items() if label > 0}
    kept = (
        d
        for d in corpus.documents
        if d.docno in relevant and d.source_type in types and not d.adversarial
    )
    return sorted(kept, key=lambda d: d.docno)


def wrong_answer(topic: Topic) -> str | None:
    """The wrong one of yes and no, or None where the topic has no stance."""
    return {"yes": "no", "no": "yes"}.get(topic.stance or "")


def check_count(n: int, name: str) -> int:
    """``n``, if it is a whole number of at least 1.

    Raises: InputError otherwise.
    """
    if isinstance(n, bool) or not math.isfinite(n) or n != int(n) or n < 1:
        raise InputError(f"{name} = {n}; expected a whole number >= 1")
    return int(n)


def _own_lie(topic: Topic) -> list[str]:
    if topic.claims:
        return [" ".join(claim.false for claim in topic.claims)]
    if (wrong := wrong_answer(topic)) is None:
        return []
    return [f"{topic.query} The answer is {wrong}. Studies and doctors agree that it is {wrong}."]


def _check_texts(corpus: Corpus, texts: Mapping[str, Sequence[str]] | None) -> None:
    known = {t.qid for t in corpus.topics}
    for qid, given in (texts or {}).items():
        if qid not in known:
            raise InputError(f"texts name the topic {qid!r}, which the corpus lacks")
        if isinstance(given, str) or not all(isinstance(t, str) and t.strip() for t in given):
            raise InputError(
                f"texts of topic {qid!r}: expected a list of texts, none of them empty"
            )


def _words(text: str) -> set[str]:
    return {w for w in re.findall(r"\w+", text.lower()) if len(w) > 2}


def _free(docno: str, taken: set[str]) -> str:
    docno = docno[: _LONGEST_DOCNO - 8]
    name, n = docno, 1
    while name in taken:
        n += 1
        name = f"{docno}.{n}"
    return name
