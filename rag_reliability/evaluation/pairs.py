"""Claims with passages of their own, as lists from elsewhere hold them: checked, then scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rag_reliability.evaluation.alignment import clean, content_recall
from rag_reliability.evaluation.flags import flags
from rag_reliability.evaluation.refusals import abstains, has_word
from rag_reliability.evaluation.spans import LONG, SpanFinder, best_of, lexical_span
from rag_reliability.evaluation.support import ABSTAINED, Bands, PairScorer, band_of
from rag_reliability.records import InputError

Id = str | int


@dataclass(frozen=True, slots=True)
class Pair:
    """A claim and its passages; ``label`` where people said whether they support it.

    group: what belongs together when data are split or resampled, such as a question.
    """

    id: Id
    claim: str
    passages: tuple[str, ...]
    label: bool | None = None
    group: str = ""


@dataclass(frozen=True, slots=True)
class PairScore:
    """How far a pair's passages support its claim.

    best_passage: place from 0 of the passage with most support, None where nothing was scored;
    span and recall (share of the claim's content words) are of that passage, as are the flags.
    more: what else the scorer reads, the largest value over the passages.
    """

    id: Id
    support: float
    band: str
    best_passage: int | None
    span: str = ""
    recall: float = 0.0
    flags: tuple[str, ...] = ()
    more: Mapping[str, float] = field(default_factory=dict)

    def row(self) -> dict[str, Any]:
        """The score as one flat object."""
        fields = ("id", "support", "band", "best_passage", "span", "recall")
        values = {name: getattr(self, name) for name in fields}
        return {**values, "flags": list(self.flags), **self.more}


def pair_of(row: Mapping[str, Any], where: str) -> Pair:
    """A pair from one object ``{id, claim, passages, label?, group?}``; other fields are ignored.

    id: text or whole number. passages: texts, or objects with ``text`` and perhaps ``title``; one
    alone need not stand in a list. label: true or false, 1 or 0. group: text or number, by
    default the id.

    Raises: InputError naming ``where`` and the field.
    """
    for name in ("id", "claim", "passages"):
        if name not in row:
            raise InputError(f"{where}: field {name!r} is missing; expected id, claim, passages")
    claim = _text(row["claim"], "claim", where)
    if len(clean(claim)) > LONG:
        raise InputError(
            f"{where}: the claim has {len(claim):,} characters; expected one claim of at most "
            f"{LONG:,}"
        )
    given = row["passages"]
    listed = given if isinstance(given, list) else [] if given is None else [given]
    passages = tuple(_passage(p, f"passages[{i}]", where) for i, p in enumerate(listed))
    known = _name(row["id"], "id", where)
    group = _name(row["group"], "group", where) if row.get("group") is not None else known
    return Pair(known, claim, passages, _label(row.get("label"), where), str(group))


def _name(value: Any, field_name: str, where: str) -> Id:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    text = _text(value, field_name, where)
    if not text.strip():
        raise InputError(f"{where}: field {field_name!r} is empty")
    return text


def _passage(value: Any, name: str, where: str) -> str:
    if not isinstance(value, dict):
        return _text(value, name, where)
    if "text" not in value:
        raise InputError(f"{where}: {name} is an object without a field 'text'")
    text = _text(value["text"], f"{name}.text", where)
    title = _text(value.get("title") or "", f"{name}.title", where)
    return f"{title}\n{text}" if title else text


def _text(value: Any, name: str, where: str) -> str:
    if not isinstance(value, str):
        kind = "null" if value is None else type(value).__name__
        raise InputError(f"{where}: field {name!r} is {kind}; expected text")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(f"{where}: field {name!r} holds half of a surrogate pair") from error
    return value


def _label(value: Any, where: str) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    raise InputError(f"{where}: field 'label' is {value!r:.40}; expected true or false, 1 or 0")


def withheld(pair: Pair) -> bool:
    """Whether there is nothing to score: no claim, a refusal, or no passage with a word."""
    return abstains(pair.claim) or not any(has_word(clean(p)) for p in pair.passages)


def score_pairs(
    pairs: Sequence[Pair],
    scorer: PairScorer,
    bands: Bands,
    find_span: SpanFinder = lexical_span,
) -> list[PairScore]:
    """Each pair's support: that of its best passage; 0 in the band ``abstained`` where withheld."""
    asked = [(n, p, text) for n, p in enumerate(pairs) if not withheld(p) for text in p.passages]
    found = scorer.pair_scores([p.claim for _, p, _ in asked], [text for _, _, text in asked])
    owner = np.array([n for n, _, _ in asked], dtype=np.int64)
    scores = []
    for number, pair in enumerate(pairs):
        own = {name: values[owner == number] for name, values in found.items()}
        scores.append(_score(pair, own, bands, find_span))
    return scores


def _score(
    pair: Pair, own: Mapping[str, np.ndarray], bands: Bands, find_span: SpanFinder
) -> PairScore:
    best = best_of(own["support"])
    if best < 0:
        return PairScore(pair.id, 0.0, ABSTAINED, None, more={k: 0.0 for k in _others(own)})
    passage, support = pair.passages[best], float(own["support"][best])
    span = find_span(pair.claim, passage)
    return PairScore(
        pair.id,
        support,
        band_of(support, bands),
        best,
        span,
        round(content_recall(pair.claim, passage), 4),
        flags(pair.claim, passage, span),
        {name: float(own[name].max()) for name in _others(own)},
    )


def _others(own: Mapping[str, np.ndarray]) -> list[str]:
    return [name for name in own if name != "support"]
