"""What a robust rule may look at, and how it is set."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rag_reliability.records import InputError
from rag_reliability.reliability.stance import StanceSettings

OPTIONAL = ("copies", "conflicts", "source", "stance", "lexical")


@dataclass(frozen=True, eq=False)
class Evidence:
    """Candidates of each topic and what is known of them; arrays (n_topics, m) unless said.

    docids: int64, -1 at padding. sims: float64, -inf at padding. prior: λ of the declared type, in
    (0, 1]; anything at padding. verified: whether the declared source has been checked.
    copies: int64, group of near copies; equal numbers are near copies of one text.
    conflicts: bool (n_topics, m, m), symmetric: the two texts contradict each other.
    source: int64, publisher; negative where unknown. stance: float64, reading of the passage
    towards the topic's question, NaN where it was not read. lexical: float64 >= 0, BM25 score.

    Raises: InputError naming a λ outside (0, 1] or a similarity that is NaN; ValueError for shapes.
    """

    docids: np.ndarray
    sims: np.ndarray
    prior: np.ndarray
    verified: np.ndarray
    copies: np.ndarray | None = None
    conflicts: np.ndarray | None = None
    source: np.ndarray | None = None
    stance: np.ndarray | None = None
    lexical: np.ndarray | None = None

    def __post_init__(self) -> None:
        self._check_shapes()
        valid = self.docids >= 0
        bad = valid & ~((self.prior > 0) & (self.prior <= 1))
        if bad.any():
            raise InputError(f"a prior is {self.prior[bad][0]}; expected 0 < λ <= 1")
        if np.isnan(self.sims[valid]).any():
            raise InputError("a similarity is NaN; expected numbers")

    def _check_shapes(self) -> None:
        shape = self.docids.shape
        if len(shape) != 2:
            raise ValueError(f"docids has shape {shape}; expected (n_topics, m)")
        for name in ("sims", "prior", "verified", *OPTIONAL):
            array = getattr(self, name)
            expected = (*shape, shape[1]) if name == "conflicts" else shape
            if array is not None and array.shape != expected:
                raise ValueError(f"{name} has shape {array.shape}; expected {expected}")

    @property
    def valid(self) -> np.ndarray:
        """False at padding, bool (n_topics, m)."""
        return self.docids >= 0

    def columns(self, order: np.ndarray, optional: tuple[str, ...] = OPTIONAL) -> Evidence:
        """The candidates at ``order`` (n_topics, w) of each topic, with these optional fields."""

        def taken(array: np.ndarray) -> np.ndarray:
            return np.take_along_axis(array, order, axis=1)

        fields: dict[str, np.ndarray | None] = {
            name: taken(getattr(self, name)) for name in ("docids", "sims", "prior", "verified")
        }
        for name in OPTIONAL:
            array = getattr(self, name) if name in optional else None
            if array is not None and name == "conflicts":
                rows = np.take_along_axis(array, order[:, :, None], axis=1)
                array = np.take_along_axis(rows, order[:, None, :], axis=2)
            elif array is not None:
                array = taken(array)
            fields[name] = array
        return Evidence(**fields)  # type: ignore[arg-type]  # the first four are never None


@dataclass(frozen=True)
class RobustSettings:
    """How the robust rules are set.

    k: documents shown. window: rank window (None: whole pool). cap: λ of unverified documents.
    low: λ below this is a low tier (hard filter, quota). quota: most of the top k from one
    publisher, and most from low tiers. label_error: probability that an unverified label is
    wrong. lowest: least λ of the prior table. meta_weight: weight of the prior in the metadata
    rankers. deeper: stances are read of this many times the window. stance: how stances weigh.
    """

    k: int = 5
    window: int | None = 15
    cap: float = 0.5
    low: float = 0.5
    quota: int = 2
    label_error: float = 0.2
    lowest: float = 0.3
    meta_weight: float = 0.5
    deeper: int = 2
    stance: StanceSettings = field(default_factory=StanceSettings)

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InputError(f"k = {self.k}; expected a whole number >= 1")
        if self.window is not None and self.window < self.k:
            raise InputError(f"window = {self.window}; expected at least k = {self.k}")
        for name in ("quota", "deeper"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} = {getattr(self, name)}; expected at least 1")
        for name in ("cap", "lowest"):
            if not 0 < getattr(self, name) <= 1:
                raise InputError(f"{name} = {getattr(self, name)}; expected 0 < {name} <= 1")
        for name in ("low", "label_error", "meta_weight"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} = {getattr(self, name)}; expected 0 <= {name} <= 1")

    @property
    def reading(self) -> int | None:
        """Rank window of the rules that read stances (None: the whole pool)."""
        return None if self.window is None else self.deeper * self.window
