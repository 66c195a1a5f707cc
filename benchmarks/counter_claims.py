"""Counter-claims made from supported claims by changing one word, one number or one negation.

A stand-in for sets of fact-checked counter-claims: the words come from the encoder's input table,
so some are near synonyms, and no scorer can tell all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rag_reliability.evaluation.alignment import clean, content_words

_AUXILIARY = "is|are|was|were|can|could|will|would|should|may|might|has|have|had|does|do|did"
_TURNS = (
    (re.compile(rf"\b({_AUXILIARY}) not\b", re.I), r"\1"),
    (re.compile(r"\bcannot\b", re.I), "can"),
    (re.compile(r"\b(is|are|was|were|could|would|should|has|have|had|does|do|did)n['’]t\b"), r"\1"),
    (re.compile(r"\b(can|could|will|would|should|may|might|is|are|was|were)\b", re.I), r"\1 not"),
)
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*(?![\w.]*\d)")
_WORD = re.compile(r"\b[a-zA-Z]{4,}\b")
_FACTORS = (0.5, 0.8, 1.2, 1.5, 2.0, 3.0)


def counter_claim(
    claim: str, near: Mapping[str, Sequence[str]], rng: np.random.Generator
) -> tuple[str, str] | None:
    """(counter-claim, what was changed: word, number or negation), or None if nothing can be."""
    text = clean(claim)
    ways = {"number": _number, "negation": _negation, "word": _word}
    for way in rng.permutation(["number", "negation", "word", "word"]):
        changed = ways[way](text, near, rng)
        if changed is not None:
            return changed, str(way)
    return None


def _number(text: str, near: Mapping[str, Sequence[str]], rng: np.random.Generator) -> str | None:
    found = list(_NUMBER.finditer(text))
    if not found:
        return None
    at = found[int(rng.integers(len(found)))]
    value = float(at[0].replace(",", ".") if at[0].count(",") == 1 else at[0].replace(",", ""))
    new = round(value * float(rng.choice(_FACTORS)))
    return text[: at.start()] + str(new if new != value else new + 1) + text[at.end() :]


def _negation(text: str, near: Mapping[str, Sequence[str]], rng: np.random.Generator) -> str | None:
    for pattern, turned in _TURNS:
        if pattern.search(text):
            return pattern.sub(turned, text, count=1)
    return None


def _word(text: str, near: Mapping[str, Sequence[str]], rng: np.random.Generator) -> str | None:
    found = [m for m in _WORD.finditer(text) if near.get(m[0].lower())]
    if not found:
        return None
    at = found[int(rng.integers(len(found)))]
    return text[: at.start()] + str(rng.choice(near[at[0].lower()])) + text[at.end() :]


def input_table(encoder: Any) -> np.ndarray:
    """Vectors of an encoder's vocabulary before any context, unit norm, (n_words, dim)."""
    # read by the library, the model stands inside a module of the library's
    model = getattr(encoder._transformer, "auto_model", encoder._transformer)
    table = model.get_input_embeddings().weight.detach().numpy()
    return table / np.linalg.norm(table, axis=1, keepdims=True)


def neighbours(encoder: Any, claims: Sequence[str]) -> dict[str, list[str]]:
    """For each content word of the claims, words 11 to 40 by nearness in the encoder's input table.

    The nearest ten are left out as likely synonyms or inflections, and so is any word that starts
    with the same four letters.
    """
    table = input_table(encoder)
    vocabulary = encoder._tokenizer.get_vocab()
    names = [w for w in sorted(vocabulary) if _WORD.fullmatch(w) and content_words(w)]
    rows = table[[vocabulary[w] for w in names]]
    place = {w: i for i, w in enumerate(names)}
    asked = sorted({w for c in claims for w in _WORD.findall(c.lower()) if w in place})
    order = np.argsort(-(rows[[place[w] for w in asked]] @ rows.T), axis=1, kind="stable")
    return {
        w: [names[j] for j in row[:70] if names[j][:4] != w[:4]][10:40]
        for w, row in zip(asked, order, strict=True)
    }
