"""The largest set of candidates that do not contradict each other."""

from __future__ import annotations

import numpy as np

from rag_reliability.reliability.evidence import Evidence, RobustSettings


def independent_set(evidence: Evidence, settings: RobustSettings) -> np.ndarray:
    """The similarity of the largest set of candidates without a contradiction; others left out.

    ReliabilityRAG's maximum independent set of the contradiction graph (Shen et al., NeurIPS 2025,
    arXiv:2509.23519): a majority decides. Among sets of that size the one that is first in order of
    reliability, (-λ, similarity), is taken, as theirs takes the first by retrieval rank. Exact;
    meant for windows up to 20. They read contradictions by an NLI model between the answers that
    single passages give; here ``conflicts`` says what contradicts what.
    """
    conflicts, valid = evidence.conflicts, evidence.valid
    assert conflicts is not None  # rank_robust has checked NEEDS
    edges = (conflicts | conflicts.transpose(0, 2, 1)) & valid[:, :, None] & valid[:, None, :]
    edges &= ~np.eye(edges.shape[1], dtype=bool)
    kept = valid.copy()
    order = np.argsort(np.where(valid, -evidence.prior, np.inf), axis=1, kind="stable")
    known: dict[tuple[int, ...], int] = {}
    for t in np.flatnonzero(edges.any(axis=(1, 2))):
        disputed = order[t][edges[t][order[t]].any(axis=1)]
        graph = _bitmasks(edges[t][np.ix_(disputed, disputed)])
        if graph not in known:
            known[graph] = first_maximum(graph)
        members = known[graph]
        kept[t, disputed] = [bool(members >> i & 1) for i in range(len(disputed))]
    return np.where(kept, evidence.sims, -np.inf)


def first_maximum(graph: tuple[int, ...]) -> int:
    """Largest independent set of a graph, as bits; of several the first by its lowest vertices.

    graph: bit j of ``graph[i]`` says that i and j are joined; symmetric, no loops.
    """
    sizes: dict[int, int] = {0: 0}
    left, chosen = (1 << len(graph)) - 1, 0
    for vertex, neighbours in enumerate(graph):
        bit = 1 << vertex
        without = left & ~neighbours & ~bit
        # The vertex is in if some largest set holds it and all those chosen so far.
        if left & bit and _size(graph, without, sizes) + 1 == _size(graph, left, sizes):
            chosen, left = chosen | bit, without
        else:
            left &= ~bit
    return chosen


def _size(graph: tuple[int, ...], left: int, sizes: dict[int, int]) -> int:
    """Size of the largest independent set among the vertices ``left``; ``sizes`` remembers."""
    if left not in sizes:
        degree, vertex = max(
            ((graph[v] & left).bit_count(), v) for v in range(len(graph)) if left >> v & 1
        )
        rest = left & ~(1 << vertex)
        if degree == 0:
            sizes[left] = left.bit_count()
        else:
            inside = 1 + _size(graph, rest & ~graph[vertex], sizes)
            # A vertex joined to one other only may always be taken.
            sizes[left] = inside if degree == 1 else max(inside, _size(graph, rest, sizes))
    return sizes[left]


def _bitmasks(edges: np.ndarray) -> tuple[int, ...]:
    return tuple(sum(1 << int(j) for j in np.flatnonzero(row)) for row in edges)
