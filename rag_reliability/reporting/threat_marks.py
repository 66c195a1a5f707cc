"""What the rules are called and how they look, in figures and tables on threats."""

from __future__ import annotations

from collections.abc import Mapping

from rag_reliability.reporting.style import Look

RULES: Mapping[str, str] = {
    "similarity": "Similarity only",
    "source_aware": "Source-aware",
    "verified_boost": "Verified boost",
    "verified_floor": "Verified floor",
    "verified_min": "Verified min",
    "uncertain_labels": "Uncertain labels",
    "collapse": "Collapse",
    "verified_collapse": "Verified collapse",
    "stance_consistent": "Stance-consistent",
    "stance_verified": "Stance × verified",
    "source_quota": "Source quota",
    "hard_filter": "Hard filter",
    "metadata_linear": "Metadata, linear",
    "metadata_rrf": "Metadata, RRF",
    "independent_set": "Independent set",
    "bm25": "BM25",
    "bm25_dense": "BM25 + dense",
}

# Okabe-Ito with two greys; lines and markers differ too, so that greyscale keeps them apart.
_LOOKS: Mapping[str, Look] = {
    "similarity": Look("#000000", "o", "--", 5.5, False),
    "source_aware": Look("#0072B2", "D", "-", 3.4),
    "verified_boost": Look("#E69F00", "s", "-", 4.0),
    "verified_floor": Look("#E69F00", "s", ":", 4.0, False),
    "verified_min": Look("#CC79A7", "v", "-.", 4.2),
    "uncertain_labels": Look("#56B4E9", "<", "-", 4.2),
    "collapse": Look("#0072B2", "d", ":", 4.2, False),
    "verified_collapse": Look("#D55E00", "X", "-.", 4.2),
    "stance_consistent": Look("#009E73", "^", "-", 4.6),
    "stance_verified": Look("#009E73", "P", "-.", 4.6, False),
    "source_quota": Look("#777777", "p", ":", 4.2),
    "hard_filter": Look("#D55E00", "h", "-", 4.4),
    "metadata_linear": Look("#CC79A7", ">", ":", 4.2, False),
    "metadata_rrf": Look("#56B4E9", "*", ":", 5.0),
    "independent_set": Look("#777777", "p", "-.", 4.4, False),
    "bm25": Look("#999999", "x", ":", 4.2),
    "bm25_dense": Look("#999999", "+", "-", 4.8),
}
_SPARE = Look("#555555", "1", "-", 5.0)


def rule_label(name: str) -> str:
    """Readable name of a rule; an unknown one is shown with its underscores as spaces."""
    return RULES.get(name, name.replace("_", " "))


def rule_look(name: str) -> Look:
    """Colour, marker and line of a rule."""
    return _LOOKS.get(name, _SPARE)
