"""Adversaries that publish: false pages, floods, stuffed queries, twisted or padded copies."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from rag_reliability.records import Corpus, Document
from rag_reliability.reliability.rewording import contradict, reword
from rag_reliability.reliability.threat_base import (
    HIGH_TYPES,
    LOW_TYPE,
    added,
    adversaries_by_topic,
    check_count,
    drawn,
    false_texts,
    forged,
    judged,
    rng_of,
    trusted,
)


def identifiable(
    corpus: Corpus,
    rate: float = 1.0,
    *,
    texts: Mapping[str, Sequence[str]] | None = None,
    source_type: str = LOW_TYPE,
    seed: int,
) -> Corpus:
    """The published study's adversary: a fluent false page, honestly labelled as low tier.

    Knows the topics and what is false about them. Publishes pages under its own name; their source
    type is declared (or detected) correctly. Sees neither encoder, priors nor other documents.

    rate: share of the topics that have false texts: ``texts`` by qid, else the topic's false
    claims, else the wrong answer to a yes/no topic. Others are left alone.

    Raises: InputError for a rate outside [0, 1], or texts for unknown topics or empty.
    """
    lies = false_texts(corpus, texts)
    claims = {t.qid: tuple(f"{c.claim_id}:false" for c in t.claims) for t in corpus.topics}
    new = [
        (
            forged(
                f"{qid}~false{i}",
                text,
                kind=source_type,
                claims=() if texts and qid in texts else claims[qid],
            ),
            {qid: 0},
        )
        for qid in drawn(lies, rate, seed)
        for i, text in enumerate(lies[qid])
    ]
    return added(corpus, new)


def flood(
    corpus: Corpus, rate: float = 1.0, *, n: int = 5, own_hosts: bool = False, seed: int
) -> Corpus:
    """``n`` reworded near copies of a share ``rate`` of the adversarial documents.

    Knows that a ranking has few places. Can publish at no cost: synonyms and phrases change, the
    meaning, label and verification stay, so that copies of a spoofed document are spoofed too
    (verified only if it was). own_hosts: each copy stands on a host of its own, which defeats
    quotas by publisher.

    Raises: InputError for a rate outside [0, 1] or n < 1.
    """
    check_count(n, "n")
    by_docno = {d.docno: d for d in corpus.documents if d.adversarial}
    new = []
    for docno in drawn(by_docno, rate, seed):
        original = by_docno[docno]
        texts = {original.text}
        for i in range(n):
            copy = _copy(original, f"{docno}~copy{i}", _unseen(original.text, texts, seed, docno))
            if own_hosts:
                host = f"pages-{rng_of(seed, docno, str(i)).integers(10**9):09d}.example"
                copy = dataclasses.replace(
                    copy, source=host, url=f"https://{host}/", verified=False
                )
            new.append((copy, judged(corpus, docno)))
    return added(corpus, new)


def stuff_query(corpus: Corpus, rate: float = 1.0, *, seed: int) -> Corpus:
    """False texts with the topic's query put before them, for a share ``rate`` of the topics.

    PoisonedRAG's black-box attack: text = query ⊕ false text (Zou et al., USENIX Security 2025).
    Knows the very words that will be asked, not the encoder; publishes under its own name, low
    tier. The false texts are those of adversarial documents aimed at the topic, with their label
    and source, else its false claims or its wrong answer.

    Raises: InputError for a rate outside [0, 1].
    """
    topics = {t.qid: t for t in corpus.topics}
    own = lies_by_topic(corpus)
    new = []
    for qid in drawn(own, rate, seed):
        for i, lie in enumerate(own[qid]):
            stuffed = f"{topics[qid].query} {lie.text}"
            copy = dataclasses.replace(lie, docno=f"{qid}~stuffed{i}", title="", text=stuffed)
            new.append((copy, {qid: 0}))
    return added(corpus, new)


def twist_trusted(
    corpus: Corpus,
    rate: float = 1.0,
    *,
    trusted_types: Sequence[str] = HIGH_TYPES,
    source_type: str = LOW_TYPE,
    seed: int,
) -> Corpus:
    """Copies of trusted relevant documents that say the opposite, sentence by sentence.

    Knows what trusted sources publish, and that a claim and its negation lie close for encoders.
    Copies a document under its own name, negates its sentences, or turns antonyms or numbers. A
    document in which nothing can be turned gives no copy.

    rate: share of the relevant documents of ``trusted_types``.

    Raises: InputError for a rate outside [0, 1] or no trusted types.
    """
    by_docno = {d.docno: d for d in trusted(corpus, trusted_types)}
    new = []
    for docno in drawn(by_docno, rate, seed):
        original, rng = by_docno[docno], rng_of(seed, docno)
        text = contradict(original.text, rng)
        if text is not None:
            title = (contradict(original.title, rng) if original.title else None) or original.title
            page = forged(f"{docno}~twisted", text, title=title, kind=source_type)
            new.append((page, dict.fromkeys(judged(corpus, docno), 0)))
    return added(corpus, new)


def pad_with_trusted(
    corpus: Corpus, rate: float = 1.0, *, trusted_types: Sequence[str] = HIGH_TYPES, seed: int
) -> Corpus:
    """False texts followed by a trusted relevant document's text, for a share of the topics.

    Attacks smoothing: the page's vector lies near trusted documents, so that a prior smoothed over
    neighbours rises towards theirs. Knows what trusted sources publish and that priors are
    smoothed; its own label stays as it is.

    rate: share of the topics that have both a false text and a trusted relevant document.

    Raises: InputError for a rate outside [0, 1] or no trusted types.
    """
    lies = lies_by_topic(corpus)
    models = {d.docno: d for d in trusted(corpus, trusted_types)}
    near = {
        qid: [models[n] for n in sorted(labels) if labels[n] > 0 and n in models]
        for qid, labels in corpus.qrels.items()
    }
    new = []
    for qid in drawn((q for q in lies if near.get(q)), rate, seed):
        for i, lie in enumerate(lies[qid]):
            model = near[qid][int(rng_of(seed, qid, str(i)).integers(len(near[qid])))]
            text = f"{lie.text} {model.text}"
            page = dataclasses.replace(lie, docno=f"{qid}~padded{i}", title=model.title, text=text)
            new.append((page, {qid: 0}))
    return added(corpus, new)


def crowd_trusted(
    corpus: Corpus,
    rate: float = 1.0,
    *,
    n: int = 3,
    trusted_types: Sequence[str] = HIGH_TYPES,
    source_type: str = LOW_TYPE,
    seed: int,
) -> Corpus:
    """``n`` near copies, labelled low tier, around each of a share of the trusted documents.

    The other attack on smoothing: the copies are true, but as low-tier neighbours they pull the
    trusted document's smoothed prior down. Knows what trusted sources publish. The copies keep the
    original's labels, since labels do not look at the source.

    Raises: InputError for a rate outside [0, 1], n < 1 or no trusted types.
    """
    check_count(n, "n")
    by_docno = {d.docno: d for d in trusted(corpus, trusted_types)}
    new = []
    for docno in drawn(by_docno, rate, seed):
        original, texts = by_docno[docno], {by_docno[docno].text}
        for i in range(n):
            text = _unseen(original.text, texts, seed, docno)
            page = forged(f"{docno}~crowd{i}", text, title=original.title, kind=source_type)
            new.append((page, judged(corpus, docno)))
    return added(corpus, new)


def lies_by_topic(corpus: Corpus) -> dict[str, list[Document]]:
    """False documents by topic: adversarial ones aimed at it, else pages made from its lies."""
    own = adversaries_by_topic(corpus)
    made = {
        qid: [forged(f"{qid}~lie{i}", text) for i, text in enumerate(texts)]
        for qid, texts in false_texts(corpus, None).items()
    }
    return {**made, **own}


def _copy(document: Document, docno: str, text: str) -> Document:
    return dataclasses.replace(document, docno=docno, text=text)


def _unseen(text: str, seen: set[str], seed: int, name: str) -> str:
    """A rewording of ``text`` that is not in ``seen``, and is added to it."""
    rng, new = rng_of(seed, name, str(len(seen))), text
    while new in seen:
        new = reword(new if new != text else text, rng)
    seen.add(new)
    return new
