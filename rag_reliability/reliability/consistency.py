"""Rules that weigh a passage by whether it says what the verified passages say.

Like every rule, they take candidates in order of similarity and give scores of the same shape.
They look past the rank window (``RobustSettings.reading``): where it is full of lies, honest
passages stand below it.
"""

from __future__ import annotations

import numpy as np

from rag_reliability.reliability.evidence import Evidence, RobustSettings
from rag_reliability.reliability.rerank import source_aware as weighed
from rag_reliability.reliability.stance import reference_trust, stance_weights
from rag_reliability.reliability.verification import verified_floor

CONTRADICTED = 0.01
"""Weight of an unverified passage that contradicts a verified one word by word."""


def stance_consistent(evidence: Evidence, settings: RobustSettings) -> np.ndarray:
    """max(sim, 0) · w, w = ``stance_weights``: similarity among those that agree.

    An unverified passage in conflict with a verified one, near-verbatim (``copies.conflicts``), is
    weighed down whatever the question. Where a topic has no reference, because it is no yes/no
    question or too few verified passages were read, it gets ``verified_floor`` instead.
    """
    return _weighed(evidence, settings, weighed(evidence.sims, np.ones(evidence.sims.shape)))


def stance_verified(evidence: Evidence, settings: RobustSettings) -> np.ndarray:
    """``verified_floor`` · w: among passages that agree, verified ones come first."""
    return _weighed(evidence, settings, verified_floor(evidence, settings))


def _weighed(evidence: Evidence, settings: RobustSettings, base: np.ndarray) -> np.ndarray:
    assert evidence.stance is not None and evidence.conflicts is not None  # NEEDS are checked
    trust = reference_trust(evidence.prior, evidence.verified & evidence.valid, evidence.source)
    stance = np.where(evidence.valid, evidence.stance, np.nan)
    weights, known = stance_weights(stance, trust, settings.stance)
    checked = (evidence.verified & evidence.valid)[:, None, :]
    against = (evidence.conflicts & checked).any(axis=2) & ~evidence.verified
    weights = np.where(against, np.minimum(weights, CONTRADICTED), weights)
    without = verified_floor(evidence, settings) * np.where(against, CONTRADICTED, 1.0)
    if settings.window is not None:  # no reading, no leave to look past the window
        without[:, settings.window :] = -np.inf
    return np.where(known[:, None], base * weights, without)
