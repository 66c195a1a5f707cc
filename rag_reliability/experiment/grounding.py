"""The command that scores a file of claims and passages, and the scorers it can be asked for."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_reliability import modelstore
from rag_reliability.artefacts import stage_key
from rag_reliability.datasets.lines import json_lines
from rag_reliability.evaluation.alignment import TextVectors
from rag_reliability.evaluation.constants import load_constants
from rag_reliability.evaluation.grounding import default_scorer
from rag_reliability.evaluation.judge import LogOddsScorer
from rag_reliability.evaluation.pairs import Pair, pair_of, score_pairs
from rag_reliability.evaluation.spans import SpanFinder, vector_span
from rag_reliability.evaluation.support import ABSTAINED, BANDS, Bands, PairScorer, Thresholds
from rag_reliability.experiment.answer_scoring import GROUNDING, SCORER_ENCODER
from rag_reliability.experiment.encoding import ENCODING
from rag_reliability.experiment.study import project_root, source_files
from rag_reliability.files import locked, sha256_file, write_errors
from rag_reliability.records import InputError

if TYPE_CHECKING:
    from rag_reliability.evaluation.nli import NliScorer

CHUNK_LINES, CHUNK_CHARACTERS = 256, 400_000
"""What is read, scored and written together: it bounds the memory whatever the file's length."""
_CODE = ("evaluation", "generation", *ENCODING, "experiment/grounding.py")
CAPACITY = 256 * 2**20
"""Bytes of passage vectors that are kept, since passages come again."""


@dataclass(frozen=True)
class PairsScorer:
    """A scorer of pairs with its bands and spans; ``about`` is what its scores depend on."""

    scorer: PairScorer
    bands: Bands
    find_span: SpanFinder
    about: Mapping[str, Any]


@dataclass(frozen=True)
class Summary:
    """What was written: pairs by band, the mean support and coverage of those scored."""

    out: Path
    bands: Mapping[str, int]
    mean: float

    def __str__(self) -> str:
        total = sum(self.bands.values())
        scored = total - self.bands[ABSTAINED]
        parts = ", ".join(f"{self.bands[b]:,} {b}" for b in (*BANDS, ABSTAINED))
        mean = f"; mean support {self.mean:.3f} of those scored" if scored else ""
        return f"{self.out}: {total:,} pairs: {parts}; coverage {scored / total:.1%}{mean}"


def load_pairs_scorer(
    judge: str | None = None, labels: Mapping[str, int] | None = None
) -> PairsScorer:
    """The default scorer, or a model as judge by catalogue name, path or hub id.

    A model whose config names a sequence classifier judges by NLI, any other as a causal language
    model by log-odds. Spans come from the default encoder in either case. labels: columns of the
    NLI model's labels, where its config does not name them.

    Raises: InputError for a model that is not here or that can judge nothing.
    """
    from rag_reliability.retrieval.encode import load_encoder

    constants = load_constants(project_root() / GROUNDING)
    model = None if judge is None else modelstore.resolve(judge)
    if labels and not (model and _classifies(model)):
        raise InputError("labels belong to a sequence classifier; give one as judge")
    files = modelstore.resolve(SCORER_ENCODER)
    vectors = TextVectors(load_encoder(files.path), capacity=CAPACITY)
    default = default_scorer(vectors, constants)
    about = {"constants": default.constants.model_dump(), "encoder": files.sha256}
    find = vector_span(vectors)
    if model is None:
        return PairsScorer(default, default.constants, find, about)
    about |= {"judge": model.sha256, "labels": dict(labels or {})}
    return PairsScorer(load_judge(model, labels), Thresholds(), find, about)


def load_judge(
    model: modelstore.ModelFiles, labels: Mapping[str, int] | None = None
) -> NliScorer | LogOddsScorer:
    """A model on this machine as scorer: by NLI if it is a sequence classifier, else by log-odds.

    Raises: InputError for a model that can judge nothing.
    """
    if _classifies(model):
        from rag_reliability.evaluation.nli import load_nli

        return load_nli(model.path, labels)
    from rag_reliability.generation.claims import claim_log_odds
    from rag_reliability.generation.models import load_generator

    generator = load_generator(model.path)
    return LogOddsScorer(lambda pairs: claim_log_odds(generator, pairs))


def _classifies(model: modelstore.ModelFiles) -> bool:
    try:
        config = json.loads((model.path / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return any("ForSequenceClassification" in a for a in config.get("architectures") or ())


def score_grounding(
    pairs: str | Path,
    out: str | Path,
    judge: str | None = None,
    *,
    labels: Mapping[str, int] | None = None,
    progress: bool = True,
) -> Summary:
    """Score every line of ``pairs`` into a line of ``out``, in order.

    The whole file is checked before a model is loaded. What has been scored is kept beside ``out``
    until it is complete: the same call goes on where an earlier one stopped, and ``out`` itself
    is never half a file.

    Raises: InputError naming file and line for a line that is not a pair, an id that comes twice,
    a file without pairs, or a place that cannot be written.
    """
    source, target = Path(pairs), Path(out)
    if target.resolve() == source.resolve():
        raise InputError(f"{out}: is the file of pairs itself; give another name")
    if target.is_dir():
        raise InputError(f"{out}: is a folder; expected the name of a file")
    total = _check(source)
    scorer = load_pairs_scorer(judge, labels)
    inputs = {"pairs": sha256_file(source), **scorer.about}
    key = stage_key("score-grounding", inputs, source_files(_CODE))
    message = f"another process is writing {target}; wait for it or give another name"
    with locked(target.with_name(f".{target.name}.lock"), 2.0, message), write_errors(target):
        part = target.with_name(f".{target.name}.{key[:16]}.part")
        _score_into(part, source, scorer, total, progress)
        summary = _summary(part, target)
        part.replace(target)
        for left in target.parent.glob(f".{target.name}.*.part"):
            left.unlink(missing_ok=True)
    target.with_name(f".{target.name}.lock").unlink(missing_ok=True)
    return summary


def read_pairs(path: Path) -> Iterator[Pair]:
    """Pairs of a JSON Lines file, one at a time. Raises InputError naming file and line."""
    for where, row in json_lines(path):
        yield pair_of(row, where)


def _check(path: Path) -> int:
    """Number of pairs, all of them good."""
    seen: dict[str | int, str] = {}
    for where, row in json_lines(path):
        pair = pair_of(row, where)
        if pair.id in seen:
            raise InputError(f"{where}: id {pair.id!r:.60} stands on {seen[pair.id]} already")
        seen[pair.id] = where
    if not seen:
        raise InputError(f"{path}: holds no pairs; expected lines of id, claim and passages")
    return len(seen)


def _score_into(part: Path, source: Path, scorer: PairsScorer, total: int, progress: bool) -> None:
    from tqdm import tqdm

    done = _whole_lines(part)
    with (
        part.open("a", encoding="utf-8", newline="\n") as file,
        tqdm(total=total, initial=done, unit="pair", desc="score", disable=not progress) as bar,
    ):
        for chunk in chunks(islice(read_pairs(source), done, None)):
            found = score_pairs(chunk, scorer.scorer, scorer.bands, scorer.find_span)
            file.writelines(json.dumps(s.row(), ensure_ascii=False) + "\n" for s in found)
            file.flush()
            bar.update(len(chunk))
        os.fsync(file.fileno())


def chunks(pairs: Iterator[Pair]) -> Iterator[list[Pair]]:
    """Consecutive pairs, at most ``CHUNK_LINES`` and about ``CHUNK_CHARACTERS`` together."""
    chunk: list[Pair] = []
    size = 0
    for pair in pairs:
        chunk.append(pair)
        size += len(pair.claim) + sum(map(len, pair.passages))
        if len(chunk) >= CHUNK_LINES or size >= CHUNK_CHARACTERS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _whole_lines(part: Path) -> int:
    """Complete lines that an earlier call left; an incomplete last one is cut off."""
    if not part.exists():
        part.parent.mkdir(parents=True, exist_ok=True)
        return 0
    count = end = 0
    with part.open("rb+") as file:
        for line in file:
            if line.endswith(b"\n"):
                count, end = count + 1, end + len(line)
        file.truncate(end)
    return count


def _summary(part: Path, target: Path) -> Summary:
    bands: Counter[str] = Counter({band: 0 for band in (*BANDS, ABSTAINED)})
    total = 0.0
    for _, row in json_lines(part):
        bands[row["band"]] += 1
        total += row["support"]
    scored = sum(bands.values()) - bands[ABSTAINED]
    return Summary(target, bands, total / scored if scored else 0.0)
