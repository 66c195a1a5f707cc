"""What a local language model says of claims, by a passage and by itself, kept in a small database.

Several wordings are read at once: all prompts of a claim and a passage form a tree of tokens, in
which what they have in common is read once. The likelihood of the claim's own tokens comes with it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rag_reliability.generation.models import Generator
from rag_reliability.generation.prompt import one_line, prompt_ids
from rag_reliability.generation.stance import yes_no_spellings

ENDINGS = ("Answer Yes or No.", "Answer No or Yes.")
"""Both are read and averaged: small models lean to the word named last."""
SYSTEM = "You check claims. You answer with Yes or No."
QUESTIONS = {
    "true": "According to the passage, is this claim true?",
    "supports": "Does the passage support this claim?",
    "inferred": "Can everything that this claim says be inferred from the passage?",
    "contradicts": "Does the passage contradict this claim?",
}
"""Asked after passage and claim; without a passage the first alone, without its first words."""
PACK_TOKENS = 1024
VERSION = "1"
"""Raise when a prompt changes: saved readings are known by it."""


@dataclass(frozen=True)
class Tree:
    """Prompts that share beginnings: tokens, their parents (−1 for none), each prompt's path."""

    ids: list[int]
    parents: list[int]
    paths: list[list[int]]


def tree_of(prompts: Sequence[Sequence[int]]) -> Tree:
    """The prefix tree of some prompts (token ids); every parent stands before its children."""
    places: dict[tuple[int, int], int] = {}
    ids: list[int] = []
    parents: list[int] = []
    paths = []
    for prompt in prompts:
        at, path = -1, []
        for token in prompt:
            if (at, token) not in places:
                places[at, token] = len(ids)
                ids.append(token)
                parents.append(at)
            at = places[at, token]
            path.append(at)
        paths.append(path)
    return Tree(ids, parents, paths)


def laid_out(tree: Tree) -> tuple[np.ndarray, np.ndarray]:
    """Positions (n,) of a tree's tokens and who sees whom (n, n): each its own way back."""
    positions = np.zeros(len(tree.ids), dtype=np.int64)
    sees = np.eye(len(tree.ids), dtype=bool)
    for node, parent in enumerate(tree.parents):
        if parent >= 0:
            positions[node] = positions[parent] + 1
            sees[node] |= sees[parent]
    return positions, sees


@dataclass(frozen=True)
class Asked:
    """Prompts of one claim and passage by name, and where its tokens stand in the first of them."""

    pair: tuple[str, str]
    prompts: dict[str, list[int]]
    claim: tuple[int, int]


def asked(generator: Generator, pair: tuple[str, str], questions: Sequence[str]) -> Asked:
    """All wordings, in both orders of yes and no."""
    said, passage = one_line(pair[0]), one_line(pair[1])
    opening = f"Passage: {passage}\n\nClaim:" if passage else "Claim:"
    put = {q: QUESTIONS[q] for q in questions} if passage else {"true": "Is this claim true?"}

    def ids(user: str) -> list[int]:
        chat = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": user}]
        return prompt_ids(generator, chat)

    prompts = {
        f"{name}/{n}": ids(f"{opening} {said}\n\n{question} {ending}")
        for name, question in put.items()
        for n, ending in enumerate(ENDINGS)
    }
    first = next(iter(prompts.values()))
    span = _common(first, ids(opening)), _common(first, ids(f"{opening} {said}"))
    return Asked(pair, prompts, span)


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    """Length of the common beginning."""
    pairs = zip(left, right, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right)))


def read(
    generator: Generator, pairs: Sequence[tuple[str, str]], questions: Sequence[str]
) -> Iterator[tuple[tuple[str, str], dict[str, float]]]:
    """Each (claim, passage) with the log-odds of yes by wording and the claim's ``likelihood``.

    Likelihood: mean log-probability of the claim's tokens after "Passage: … Claim:". Pairs with
    the same passage are read together.
    """
    import torch

    yes, no = yes_no_spellings(generator)
    model: Any = generator.model
    head = model.get_output_embeddings()
    words = head.weight[[*yes, *no]].float()
    ordered = sorted(pairs, key=lambda pair: (pair[1], pair[0]))
    for batch, tree in _batches([asked(generator, pair, questions) for pair in ordered]):
        positions, sees = laid_out(tree)
        paths = iter(tree.paths)
        with torch.inference_mode():
            hidden = model.base_model(
                input_ids=torch.tensor(tree.ids)[None],
                position_ids=torch.from_numpy(positions)[None],
                attention_mask=torch.from_numpy(sees)[None, None],
                use_cache=False,
            ).last_hidden_state[0]
            for one in batch:
                own = [next(paths) for _ in one.prompts]
                # bfloat16 logits are coarse; the few words asked for are read in float32
                logits = hidden[[path[-1] for path in own]].float() @ words.T
                odds = logits[:, : len(yes)].logsumexp(1) - logits[:, len(yes) :].logsumexp(1)
                low, high = one.claim
                at = [own[0][place] for place in range(low - 1, high)]
                logp = head(hidden[at[:-1]]).float().log_softmax(1)
                said = torch.tensor([tree.ids[node] for node in at[1:]])
                mean = logp[torch.arange(len(said)), said].mean()
                found = dict(zip(one.prompts, odds.tolist(), strict=True))
                yield one.pair, found | {"likelihood": float(mean)}


def _batches(items: Sequence[Asked]) -> Iterator[tuple[list[Asked], Tree]]:
    """Consecutive items whose tree has at most ``PACK_TOKENS`` tokens, one item at the least."""
    batch: list[Asked] = []
    tree = tree_of([])
    for item in items:
        grown = tree_of([p for one in (*batch, item) for p in one.prompts.values()])
        if batch and len(grown.ids) > PACK_TOKENS:
            yield batch, tree
            batch, grown = [], tree_of(list(item.prompts.values()))
        batch, tree = [*batch, item], grown
    if batch:
        yield batch, tree


class Readings:
    """Readings by model, claim and passage, in a file that a broken run goes on from."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(path)
        self._db.execute("create table if not exists r (k text primary key, v text)")

    def known(self, model: str, pair: tuple[str, str], questions: Sequence[str]) -> dict | None:
        """What was read, or None."""
        row = self._db.execute("select v from r where k = ?", (_key(model, pair, questions),))
        found = row.fetchone()
        return None if found is None else json.loads(found[0])

    def keep(self, model: str, pair: tuple[str, str], questions: Sequence[str], v: dict) -> None:
        """Write at once."""
        self._db.execute(
            "insert or replace into r values (?, ?)", (_key(model, pair, questions), json.dumps(v))
        )
        self._db.commit()


def _key(model: str, pair: tuple[str, str], questions: Sequence[str]) -> str:
    return json.dumps([VERSION, model, [QUESTIONS[q] for q in questions], *pair])
