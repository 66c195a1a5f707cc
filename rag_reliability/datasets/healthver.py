"""HealthVer's claims asked as yes/no questions over its passages of scientific papers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from rag_reliability.datasets.raw import Answer, Verdict, majority
from rag_reliability.records import Corpus, Document, Topic

AT_LEAST = 3
"""Verdicts, Supports or Refutes, below which a claim's truth counts as unknown."""

_ANSWERED = re.compile(r"(yes|no)\b[,:.]", re.IGNORECASE)
_SECOND_SENTENCE = re.compile(r"[a-z0-9)\"'][.!;:]\s+\S")
_PLAIN_WORD = re.compile(r"[A-Z][a-z]*\b(?!-)")

Verdicts = Mapping[str, Mapping[str, Verdict]]
_Roles = dict[str, tuple[set[str], set[str]]]


def as_question(claim: str) -> str | None:
    """``claim`` as ``Is it true that …?``, or None where that makes no question.

    Claims that are questions, answers to one, or more than one sentence make none. A first word
    that is written like any first word loses its capital; a claim all in capitals loses them all.
    """
    claim = " ".join(claim.split()).rstrip(" .,;")
    if not claim or "?" in claim or _ANSWERED.match(claim) or _SECOND_SENTENCE.search(claim):
        return None
    letters = [c for c in claim if c.isalpha()]
    capitals = sum(c.isupper() for c in letters)
    if letters and capitals == len(letters):
        claim = claim.lower()
    elif _PLAIN_WORD.match(claim):
        claim = claim[0].lower() + claim[1:]
    return f"Is it true that {claim}?"


def healthver_corpus(verdicts: Verdicts) -> Corpus:
    """Claims as yes/no topics, passages as documents of no declared source yet.

    The truth of a claim is what most of its verdicts say. A passage that says so is relevant (1),
    one that says the contrary adversarial and, like a Neutral one, not relevant (0). A document is
    adversarial or not whatever the topic, so topics are left out until no passage plays both parts
    (``consistent``).
    """
    questions = {claim: q for claim in verdicts if (q := as_question(claim)) is not None}
    known = {claim: majority(verdicts[claim], AT_LEAST) for claim in questions}
    truths = consistent({c: truth for c, truth in known.items() if truth is not None}, verdicts)
    wrong = {
        passage for passage, (_, contradicted) in _roles(truths, verdicts).items() if contradicted
    }
    qids, docnos = names(verdicts)
    documents = tuple(
        Document(docno, "", passage, "unknown", adversarial=passage in wrong)
        for passage, docno in docnos.items()
    )
    topics = tuple(Topic(qids[c], questions[c], stance=truth) for c, truth in truths.items())
    qrels = {
        qids[claim]: {docnos[p]: int(_agrees(v, truth)) for p, v in verdicts[claim].items()}
        for claim, truth in truths.items()
    }
    return Corpus("healthver", documents, topics, qrels)


def names(verdicts: Verdicts) -> tuple[dict[str, str], dict[str, str]]:
    """The qid of each claim and the docno of each passage, numbered as they come."""
    passages = dict.fromkeys(p for given in verdicts.values() for p in given)
    qids = {claim: f"hv{number:03d}" for number, claim in enumerate(verdicts, 1)}
    return qids, {passage: f"hvp{number:03d}" for number, passage in enumerate(passages, 1)}


def consistent(truths: Mapping[str, Answer], verdicts: Verdicts) -> dict[str, Answer]:
    """``truths`` less the claims that make a passage both right and wrong.

    Greedy: as long as a passage agrees with the truth of some claims and contradicts others, its
    fewer claims share one vote for leaving, and the claim with most votes leaves (ties: by name).
    """
    kept = dict(truths)
    while votes := _votes(_roles(kept, verdicts).values()):
        del kept[min(votes, key=lambda claim: (-votes[claim], claim))]
    return kept


def _votes(roles: Iterable[tuple[set[str], set[str]]]) -> dict[str, float]:
    votes: dict[str, float] = {}
    for agreeing, contradicting in roles:
        if agreeing and contradicting:
            fewer = min(agreeing, contradicting, key=len)
            for claim in fewer:
                votes[claim] = votes.get(claim, 0.0) + 1 / len(fewer)
    return votes


def _roles(truths: Mapping[str, Answer], verdicts: Verdicts) -> _Roles:
    """The claims whose truth each passage agrees with, and those it contradicts."""
    roles: _Roles = {}
    for claim, truth in truths.items():
        for passage, verdict in verdicts[claim].items():
            if verdict != "Neutral":
                both = roles.setdefault(passage, (set(), set()))
                both[not _agrees(verdict, truth)].add(claim)
    return roles


def _agrees(verdict: Verdict, truth: Answer) -> bool:
    return verdict == {"yes": "Supports", "no": "Refutes"}[truth]
