"""Readers of the labelled public sets that the scorers of answers are calibrated on."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rag_reliability.evaluation.alignment import TokenEncoder
from rag_reliability.records import Claim
from rag_reliability.text import sentences


@dataclass(frozen=True)
class Pair:
    """A claim with one evidence passage; kind: complete, partial or swap."""

    question: int
    claim: str
    passages: tuple[str, ...]
    kind: str


def expertqa_pairs(path: Path, rng: np.random.Generator) -> list[Pair]:
    """Claims with their own evidence, and supported ones with another claim's evidence."""
    pairs: list[Pair] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        labelled = [
            (c["claim_string"], _passages(c["evidence"]), c["support"])
            for answer in json.loads(line)["answers"].values()
            for c in answer["claims"]
        ]
        labelled = [
            row for row in labelled if row[1] and row[2] in ("Complete", "Partial", "Incomplete")
        ]
        for claim, own, label in labelled:
            kind = "complete" if label == "Complete" else "partial"
            pairs.append(Pair(number, claim, own, kind))
            others = sorted({p for c, ps, _ in labelled if c != claim for p in ps} - set(own))
            if kind == "complete" and others:
                swapped = rng.choice(others, size=min(len(own), len(others)), replace=False)
                pairs.append(Pair(number, claim, tuple(map(str, swapped)), "swap"))
    return pairs


def _passages(evidence: list[str]) -> tuple[str, ...]:
    """Texts after the address line; evidence that is an address alone has none."""
    texts = [e.split("\n\n", 1)[1].strip() for e in evidence if "\n\n" in e]
    return tuple(t for t in texts if len(t.split()) >= 15)


def sample(pairs: list[Pair], rng: np.random.Generator, limit: int) -> list[Pair]:
    """All pairs of randomly chosen questions, up to about ``limit`` of a kind."""
    chosen: list[Pair] = []
    by_question: dict[int, list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_question[pair.question].append(pair)
    for question in rng.permutation(list(by_question)):
        chosen += by_question[int(question)]
        if sum(p.kind == "complete" for p in chosen) >= limit:
            break
    return chosen


_QUESTION = re.compile(
    r"^(Can|Does|Will|Is|Should) (.+?) "
    r"(cure|worsen|prevent|help|treat|improve|remove|manage|reduce|apply|a good way|effective)\b"
    r"(.*)\?$"
)


def claims_of(question: str) -> tuple[str, str] | None:
    """A yes/no question as its affirmation and its denial; None for a form that is not known."""
    found = _QUESTION.match(question)
    if not found:
        return None
    aux, subject, verb, rest = found.groups()
    subject = subject[0].upper() + subject[1:]
    yes = {"Can": "can ", "Does": "", "Will": "will ", "Is": "is ", "Should": "should "}[aux]
    no = {
        "Can": "cannot",
        "Does": "does not",
        "Will": "will not",
        "Is": "is not",
        "Should": "should not",
    }
    ending = "s" if aux == "Does" else ""
    return f"{subject} {yes}{verb}{ending}{rest}.", f"{subject} {no[aux]} {verb}{rest}."


@dataclass(frozen=True)
class Stated:
    """An answer whose stance judges agree on; ``yes`` where it affirms its topic's question."""

    topic: str
    sentences: tuple[str, ...]
    yes: bool


def read_answers(
    folder: Path, encoder: TokenEncoder, rng: np.random.Generator, per_side: int
) -> tuple[dict[str, Claim], list[Stated]]:
    """Claim pairs by topic (gold = the affirmation) and a sample of answers of either stance."""
    topics = [json.loads(line) for line in (folder / "queries.jsonl").open(encoding="utf-8")]
    pairs = {t["_id"]: claims_of(t["text"]) for t in topics}
    claims = {qid: Claim(qid, *pair) for qid, pair in pairs.items() if pair}
    truth = {t["_id"]: t["metadata"]["stance"] for t in topics}
    docs = [json.loads(line) for line in (folder / "corpus.jsonl").open(encoding="utf-8")]
    topic_of = _topics_of(folder, topics, docs, encoder)
    groups: dict[tuple[str, bool], list[Stated]] = defaultdict(list)
    for i in rng.permutation(len(docs)):
        qid, false = topic_of.get(docs[i]["_id"]), docs[i]["metadata"]["adversarial"]
        if qid is not None and qid in claims and len(groups[qid, false]) < per_side:
            said = tuple(sentences(docs[i]["text"]))
            groups[qid, false].append(Stated(qid, said, (truth[qid] == "yes") != false))
    return claims, [a for key in sorted(groups) for a in groups[key]]


def _topics_of(folder: Path, topics: list, docs: list, encoder: TokenEncoder) -> dict[str, str]:
    """Topic of each answer: by the qrels for true ones, else the clearly nearest question."""
    rows = (folder / "qrels" / "dev.tsv").read_text(encoding="utf-8").splitlines()[1:]
    known = {docno: qid for qid, docno, _ in (row.split("\t") for row in rows)}
    unknown = [d for d in docs if d["_id"] not in known]
    starts = [" ".join(d["text"].split()[:40]) for d in unknown]
    sims = encoder.encode(starts) @ encoder.encode([t["text"] for t in topics]).T
    ordered = np.sort(sims, axis=1)
    clear = (ordered[:, -1] > 0.5) & (ordered[:, -1] - ordered[:, -2] > 0.08)
    nearest = {
        d["_id"]: topics[j]["_id"]
        for d, j, ok in zip(unknown, sims.argmax(1), clear, strict=True)
        if ok
    }
    return nearest | known
