"""Citation recall and precision as ALCE defines them (Gao et al., EMNLP 2023)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from rag_reliability.evaluation.support import SupportScorer

Entails = Callable[[int, tuple[int, ...]], bool]
"""``(sentence, passages)``: whether these passages, read together, support the sentence."""


def entailment(
    supports: np.ndarray,
    threshold: float,
    sentences: Sequence[str],
    passages: Sequence[str],
    scorer: SupportScorer,
) -> Entails:
    """Whether support reaches ``threshold``: one passage's is known, several are read as one text.

    Several stand one after the other in the order they were shown in, each ending a sentence, so
    that the order of citation marks changes nothing. Each set is scored once.

    Args:
        supports: of each sentence by each passage alone, (n_sentences, n_passages).
    """

    @cache
    def entails(sentence: int, chosen: tuple[int, ...]) -> bool:
        if len(chosen) == 1:
            return bool(supports[sentence, chosen[0]] >= threshold)
        text = "\n\n".join(_ended(passages[i]) for i in chosen)
        return bool(scorer.support([sentences[sentence]], [text])[0, 0] >= threshold)

    return entails


def _ended(text: str) -> str:
    stripped = text.rstrip()
    return stripped if stripped.endswith((".", "!", "?", "。", "؟")) else f"{stripped}."


def citation_recall(cited: Sequence[Sequence[int]], entails: Entails) -> float:
    """Share of sentences that their cited passages support together, in [0, 1].

    A sentence without citations counts as unsupported; 0 without sentences.

    Args:
        cited: per sentence the passages that it cites.
    """
    hits = [bool(c) and entails(n, _set(c)) for n, c in enumerate(cited)]
    return float(np.mean(hits)) if hits else 0.0


def citation_precision(cited: Sequence[Sequence[int]], entails: Entails) -> float:
    """Share of citations that their sentence needs or that support it alone, in [0, 1].

    A citation counts where its sentence is supported by all it cites together, unless it is
    irrelevant: it does not support the sentence alone, and the others do without it. 0 without
    citations.
    """
    counts = [
        entails(n, chosen) and _relevant(n, one, chosen, entails)
        for n, chosen in enumerate(map(_set, cited))
        for one in chosen
    ]
    return float(np.mean(counts)) if counts else 0.0


def _relevant(sentence: int, one: int, chosen: tuple[int, ...], entails: Entails) -> bool:
    rest = tuple(i for i in chosen if i != one)
    return not rest or entails(sentence, (one,)) or not entails(sentence, rest)


def _set(cited: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(set(cited)))
