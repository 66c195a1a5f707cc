"""Support and contradiction by any model of natural language inference, loaded here alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_reliability.evaluation.alignment import clean
from rag_reliability.evaluation.refusals import has_word
from rag_reliability.evaluation.spans import parts
from rag_reliability.evaluation.support import all_pairs
from rag_reliability.records import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

LABEL_SETS = (("entailment", "neutral", "contradiction"), ("entailment", "not_entailment"))
"""The two schemes of labels that are understood; a model must have exactly one of them."""
_LONGEST = 512
_OVERLAP = 64


def label_map(names: Sequence[str], given: Mapping[str, int] | None = None) -> dict[str, int]:
    """Column of each label, from a model's own names or as ``given``.

    Letter case, blanks, - and _ in names do not count. Nothing is guessed: LABEL_0 means nothing.

    Raises: InputError where names are unknown, doubled or missing, or ``given`` contradicts them.
    """
    own = {_plain(name): column for column, name in enumerate(names)}
    known = {_plain(label): label for scheme in LABEL_SETS for label in scheme}
    stated = {known[name]: column for name, column in own.items() if name in known}
    said = stated if given is None else {str(k).strip(): v for k, v in given.items()}
    schemes = " or ".join(", ".join(scheme) for scheme in LABEL_SETS)
    what = f"labels {', '.join(map(repr, names))}"
    if not any(set(said) == set(scheme) for scheme in LABEL_SETS) or len(said) != len(names):
        asked = f" (given: {_listed(said)})" if given is not None else ""
        raise InputError(f"{what}{asked}: expected {schemes}, each once; name them by column")
    if sorted(said.values()) != list(range(len(names))):
        raise InputError(f"{what}: {_listed(said)} does not give each of the columns once")
    wrong = [label for label in said if label in stated and stated[label] != said[label]]
    if wrong:
        raise InputError(f"{what}: the model itself has {wrong[0]} in column {stated[wrong[0]]}")
    return dict(said)


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "", str(name)).lower()


def _listed(labels: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={column}" for name, column in labels.items())


class NliScorer:
    """P(entailment) of a claim by a passage as its support; P(contradiction) beside it.

    Passage is premise, claim is hypothesis. A passage longer than the model reads is cut into
    windows that overlap; each probability is the largest over them, so in a long passage both can
    be high. A claim that would fill more than half of a window is cut there.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        labels: Mapping[str, int],
        *,
        batch_size: int = 16,
    ) -> None:
        self._model: Any = model.eval()
        self._tokenizer: Any = tokenizer
        self.labels = dict(labels)
        self._batch_size = batch_size
        positions = getattr(model.config, "max_position_embeddings", None) or _LONGEST
        # two positions are reserved in RoBERTa's kin
        self._window = int(min(_LONGEST, tokenizer.model_max_length, max(positions - 2, 8)))

    def support(self, claims: Sequence[str], passages: Sequence[str]) -> np.ndarray:
        """Support in [0, 1], float64 (n_claims, n_passages); 0 where either side has no words."""
        return all_pairs(self, claims, passages)

    def pair_scores(self, claims: Sequence[str], passages: Sequence[str]) -> dict[str, np.ndarray]:
        """``support`` of each pair, and ``contradiction`` if the model has that label."""
        found = self.probabilities(claims, passages)
        more = {k: v for k, v in found.items() if k == "contradiction"}
        return {"support": found["entailment"], **more}

    def probabilities(
        self, claims: Sequence[str], passages: Sequence[str]
    ) -> dict[str, np.ndarray]:
        """Probability of each label for each pair, float64 (n_pairs,); 0 where one has no words.

        Rounded to 4 decimals so that batches and threads do not show.
        """
        owner, windows = self._windows(claims, passages)
        best = np.zeros((len(claims), len(self.labels)))
        for chosen, probabilities in self._batches(windows):
            np.maximum.at(best, owner[chosen], probabilities)
        return {name: np.round(best[:, column], 4) for name, column in self.labels.items()}

    def _windows(
        self, claims: Sequence[str], passages: Sequence[str]
    ) -> tuple[np.ndarray, list[dict[str, list[int]]]]:
        """Encoded windows and the pair each belongs to."""
        owner: list[int] = []
        windows: list[dict[str, list[int]]] = []
        for row, (claim, passage) in enumerate(zip(map(clean, claims), passages, strict=True)):
            hypothesis = self._cut(claim)
            for part in parts(passage) if has_word(claim) else ():
                if has_word(part):
                    made = self._encoded(part, hypothesis)
                    windows += made
                    owner += [row] * len(made)
        return np.array(owner, dtype=np.int64), windows

    def _cut(self, claim: str) -> str:
        read = self._tokenizer(
            claim,
            add_special_tokens=False,
            truncation=True,
            max_length=self._window // 2,
            return_offsets_mapping=True,
            split_special_tokens=True,
        )
        ends = [end for _, end in read["offset_mapping"]]
        return claim[: max(ends)] if ends else claim

    def _encoded(self, premise: str, hypothesis: str) -> list[dict[str, list[int]]]:
        read = self._tokenizer(
            premise,
            hypothesis,
            truncation="only_first",
            max_length=self._window,
            stride=min(_OVERLAP, self._window // 8),
            return_overflowing_tokens=True,
            split_special_tokens=True,
        )
        names = [n for n in self._tokenizer.model_input_names if n in read]
        return [{n: read[n][i] for n in names} for i in range(len(read["input_ids"]))]

    def _batches(
        self, windows: list[dict[str, list[int]]]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Probabilities, float64 (n_chosen, n_labels), windows of similar length together."""
        import torch

        order = np.argsort([-len(w["input_ids"]) for w in windows], kind="stable")
        for start in range(0, len(order), self._batch_size):
            chosen = order[start : start + self._batch_size]
            batch = self._tokenizer.pad([windows[i] for i in chosen], return_tensors="pt")
            with torch.inference_mode():
                logits = self._model(**batch.to(self._model.device)).logits
            yield chosen, logits.double().softmax(dim=-1).cpu().numpy()


def load_nli(
    path: str | Path, labels: Mapping[str, int] | None = None, *, batch_size: int = 16
) -> NliScorer:
    """The NLI model in folder ``path``, read from disk only.

    labels: column of each label, where the model's config does not name them.

    Raises: InputError where the folder holds no sequence classifier that can be loaded whole, or
    its labels are not those of NLI.
    """
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

    try:
        config = AutoConfig.from_pretrained(path, local_files_only=True)
        names = [str(config.id2label[i]) for i in range(config.num_labels)]
        columns = label_map(names, labels)
        tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True)
        loaded: Any = AutoModelForSequenceClassification.from_pretrained(
            path, local_files_only=True, dtype=torch.float32, output_loading_info=True
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except Exception as error:  # the libraries raise a dozen kinds for a broken folder
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{path}: cannot be loaded as an NLI model: {reason}") from error
    model, report = loaded
    if missing := sorted(report["missing_keys"]):
        raise InputError(f"{path}: {len(missing)} weights missing, such as {missing[0]}")
    if not tokenizer.is_fast:
        raise InputError(f"{path}: an NLI model needs a fast tokenizer (tokenizer.json)")
    model.to("cuda" if torch.cuda.is_available() else "cpu")
    return NliScorer(model, tokenizer, columns, batch_size=batch_size)
