"""A fixed, balanced sample of the judged pairs, for scorers that are too slow for all of them."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence

from judged_pairs import Judged

Kind = tuple[str, str]


def sampled(pairs: Sequence[Judged]) -> list[tuple[int, int]]:
    """(place in pairs, rank within its kind), by a hash; the first ranks are a smaller sample.

    ExpertQA: questions with a partly supported claim, three claims of a kind at most, and for each
    complete one its swap. HealthVer: one pair of a kind for each evidence. Counter-claims are those
    of the supported claims drawn. Answers are drawn with both claims.
    """
    of: dict[Kind, list[int]] = defaultdict(list)
    for i, pair in enumerate(pairs):
        of[pair.set, pair.kind].append(i)
    asked = {pairs[i].cluster for i in of["expertqa", "partial"]}
    drawn: dict[Kind, list[int]] = {}
    for kind in ("complete", "partial"):
        near = [i for i in of["expertqa", kind] if pairs[i].cluster in asked]
        drawn["expertqa", kind] = _few(pairs, near, lambda p: p.cluster, 3)
    for kind in ("supports", "neutral", "refutes"):
        drawn["healthver", kind] = _few(pairs, of["healthver", kind], lambda p: p.passages, 1)
    drawn["expertqa", "swap"] = _swaps(pairs, of, drawn["expertqa", "complete"])
    sources = [drawn["expertqa", "complete"], drawn["healthver", "supports"]]
    rank = {_text(pairs[i]): n for places in sources for n, i in enumerate(places)}
    true = [i for i in of["made", "true"] if _text(pairs[i]) in rank]
    true.sort(key=lambda i: rank[_text(pairs[i])])
    drawn["made", "true"], drawn["made", "counter"] = true, [i + 1 for i in true]
    mate = {(pairs[i].passages, pairs[i].cluster): i for i in of["answers", "counter"]}
    answers = sorted(of["answers", "true"], key=lambda i: _hash(*pairs[i].passages))
    drawn["answers", "true"] = answers
    drawn["answers", "counter"] = [mate[pairs[i].passages, pairs[i].cluster] for i in answers]
    return [(i, rank) for places in drawn.values() for rank, i in enumerate(places)]


def _swaps(
    pairs: Sequence[Judged], of: dict[Kind, list[int]], complete: Sequence[int]
) -> list[int]:
    """The swap of each complete claim, where it has one."""
    found: dict[tuple[str, str], int] = {}
    for i in of["expertqa", "swap"]:
        found.setdefault((pairs[i].cluster, pairs[i].claim), i)
    keys = [(pairs[i].cluster, pairs[i].claim) for i in complete]
    return [found[key] for key in keys if key in found]


def _few(
    pairs: Sequence[Judged],
    places: Sequence[int],
    group: Callable[[Judged], Hashable],
    most: int,
) -> list[int]:
    """At most so many of each group, group after group, so that passages are read once."""
    taken: dict[Hashable, int] = defaultdict(int)
    kept = []
    for i in sorted(places, key=lambda i: _hash(pairs[i].cluster, *_text(pairs[i]))):
        if taken[group(pairs[i])] < most:
            taken[group(pairs[i])] += 1
            kept.append(i)
    return sorted(kept, key=lambda i: _hash(str(group(pairs[i]))))


def _text(pair: Judged) -> tuple[str, ...]:
    return pair.claim, *pair.passages


def _hash(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()
