"""Rules that weigh similarity by declared priors, and by whether the label was checked.

Every rule here takes candidates in order of similarity and gives scores of the same shape, -inf
for those it leaves out (``robust.py`` arranges and sorts).

When no rule of the form max(sim, 0) · λ_eff can do harm. *If, in a topic, every adversarial
document's λ_eff is at most every honest document's, its top k holds at most as many adversarial
documents as similarity's.* Proof: an honest document that similarity places above an adversarial
one then stays above it (score not smaller; ties go by similarity). Let the new top k hold a'
adversarial documents, similarity's a, and let x be the least similar of the a'. If x is in
similarity's top k, so are the other a' - 1, which are more similar, and a' <= a. If not,
similarity's top k holds k - a honest documents, all above x, and they stay above x; so the new top
k, which reaches down to x, holds these k - a, and a' <= a.

With no verified adversary the premise holds for ``verified_floor`` always; for ``verified_boost``
where every verified document has λ >= cap; for ``verified_min`` where every honest document has
λ_eff >= cap. Outside of that both can lose to similarity: a verified honest document with λ .3
falls behind an unverified adversary at cap .5.
"""

from __future__ import annotations

import numpy as np

from rag_reliability.reliability.evidence import Evidence, RobustSettings
from rag_reliability.reliability.rerank import source_aware as weighed


def similarity(evidence: Evidence, settings: RobustSettings) -> np.ndarray:
    """The similarity itself; nothing else is looked at."""
    return np.array(evidence.sims, dtype=np.float64)


def source_aware(evidence: Evidence, settings: RobustSettings) -> np.ndarray:
    """max(sim, 0) · λ of the declared type."""
    return weighed(evidence.sims, evidence.prior)


def verified_boost(evidence: Evidence, settings: RobustSettings) -> np.ndarray:
    """max(sim, 0) · λ_eff, λ_eff = λ if verified, else cap: unverified labels count for nothing."""
    return weighed(evidence.sims, boosted(evidence, settings))


def verified_floor(evidence: Evidence, settings: RobustSettings) -> np.ndarray:
    """max(sim, 0) · λ_eff, λ_eff = max(λ, cap) if verified, else cap: checking never costs.

    The variant of ``verified_boost`` that never shows more unverified adversarial documents than
    similarity alone, whatever the table (see the top of this module).
    """
    raised = np.maximum(boosted(evidence, settings), settings.cap)
    return weighed(evidence.sims, raised)


def verified_min(evidence: Evidence, settings: RobustSettings) -> np.ndarray:
    """max(sim, 0) · λ_eff, λ_eff = λ if verified, else min(λ, cap): own low labels are believed."""
    lowered = np.minimum(evidence.prior, settings.cap)
    return weighed(evidence.sims, np.where(evidence.verified, evidence.prior, lowered))


def uncertain_labels(evidence: Evidence, settings: RobustSettings) -> np.ndarray:
    """max(sim, 0) · λ_eff, λ_eff = λ if verified, else (1 - p) λ + p λ_lowest.

    p: ``label_error``; λ_lowest: ``lowest``, the least λ of the table.
    """
    p = settings.label_error
    averaged = (1 - p) * evidence.prior + p * settings.lowest
    return weighed(evidence.sims, np.where(evidence.verified, evidence.prior, averaged))


def collapse(evidence: Evidence, settings: RobustSettings) -> np.ndarray:
    """``source_aware`` without near copies that are less trusted than the best of their group.

    Trust: λ of the declared type, then verified before unverified. Equally trusted copies stay.
    """
    dropped = _outranked(evidence, evidence.prior, evidence.verified)
    return np.where(dropped, -np.inf, source_aware(evidence, settings))


def verified_collapse(evidence: Evidence, settings: RobustSettings) -> np.ndarray:
    """``verified_boost`` without near copies that are less trusted than the best of their group.

    Trust: verified before unverified, then λ_eff; so an unverified label decides nothing. An
    unverified near copy of a verified document in the window is left out.
    """
    dropped = _outranked(evidence, evidence.verified, boosted(evidence, settings))
    return np.where(dropped, -np.inf, verified_boost(evidence, settings))


def boosted(evidence: Evidence, settings: RobustSettings) -> np.ndarray:
    """λ_eff of ``verified_boost``, float64 (n_topics, m)."""
    return np.where(evidence.verified, evidence.prior, settings.cap)


def _outranked(evidence: Evidence, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Whether a near copy of greater (first, second) stands among the topic's candidates."""
    copies, valid = evidence.copies, evidence.valid
    assert copies is not None  # rank_robust has checked NEEDS
    beaten = np.zeros(copies.shape, dtype=bool)
    for j in range(copies.shape[1]):  # by column: an (n, m, m) array would be 20 times the memory
        one = slice(j, j + 1)
        greater = (first[:, one] > first) | ((first[:, one] == first) & (second[:, one] > second))
        beaten |= greater & (copies[:, one] == copies) & valid[:, one]
    return beaten
