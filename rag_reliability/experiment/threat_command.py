"""The commands ``threats``, ``testbed`` and ``attack``: from words to a run or a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_reliability import modelstore
from rag_reliability.datasets.draws import Draw
from rag_reliability.datasets.testbeds import TESTBEDS
from rag_reliability.datasets.write import write_beir
from rag_reliability.experiment.study import open_study
from rag_reliability.experiment.threat_answers import threat_answers_stage
from rag_reliability.experiment.threat_results import (
    answers_text,
    threat_results_stage,
    threat_text,
)
from rag_reliability.experiment.threats import (
    ThreatPlan,
    judged_topics,
    need_adversaries,
    rules_without_model,
    settings_of,
    threats_stage,
)
from rag_reliability.records import InputError
from rag_reliability.reliability.rewording import contradict
from rag_reliability.reliability.threat_base import rng_of
from rag_reliability.reliability.threats import THREATS, combine


@dataclass(frozen=True)
class ThreatWords:
    """The command's arguments as given: lists still one comma-separated text."""

    rules: str | None
    spoof: str
    leak: str
    seeds: int
    window: int | None
    answers: bool = False


def plan_of(words: ThreatWords) -> ThreatPlan:
    """The plan that the words mean; without rules, all that need no language model.

    Raises InputError naming the option and what is wrong with it.
    """
    rules = rules_without_model() if words.rules is None else _names(words.rules)
    return ThreatPlan(
        rules=rules,
        spoof=_numbers("spoof", words.spoof),
        leak=_numbers("leak", words.leak),
        seeds=words.seeds,
        window=words.window,
    )


def run_threats(parameters: Mapping[str, Any], words: ThreatWords) -> str:
    """Run the sweep on a corpus folder; returns its tables as text.

    Everything that can be refused is refused before anything is encoded.
    """
    plan = plan_of(words)
    study = open_study(parameters)
    settings_of(study, plan)
    judged_topics(study)
    need_adversaries(study)
    if set(plan.rules) - set(rules_without_model()):
        modelstore.resolve(study.config.stance_model or study.config.generator)
    threats_stage(study, plan)
    folder = threat_results_stage(study)
    text = threat_text(study)
    if words.answers:
        threat_answers_stage(study, plan)
        text += f"\n\n{answers_text(study)}"
    return f"{text}\n\ndone: {folder / 'metrics' / 'threats.csv'}"


def _names(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _numbers(option: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(word) for word in _names(text))
    except ValueError:
        raise InputError(f"--{option} {text}: expected numbers like 0,0.1,1") from None


def write_attacked(parameters: Mapping[str, Any], threats: str, out: Path, *, seed: int) -> str:
    """A corpus after threats, as a BEIR folder; ``threats`` reads like ``flooding,hedged=0.5``.

    Raises InputError for an unknown threat or a rate outside [0, 1].
    """
    steps = [_step(word) for word in _names(threats)]
    if not steps:
        raise InputError(f"--threats is empty; expected some of {', '.join(THREATS)}")
    _check_seed(seed)
    if (out / "corpus.jsonl").exists():
        raise InputError(f"{out}: holds a corpus already; choose a folder that does not")
    study = open_study({**parameters, "out": str(out)})
    before, after = study.corpus, combine(study.corpus, steps, seed=seed)
    added = len(after.documents) - len(before.documents)
    changed = sum(a != b for a, b in zip(before.documents, after.documents, strict=False))
    write_beir(after, out)
    return f"{out}: {len(after.documents)} documents, {added} added and {changed} changed"


def _step(word: str) -> tuple[str, float]:
    name, given, rate = (part.strip() for part in word.partition("="))
    try:
        return name, float(rate) if given else 1.0
    except ValueError:
        raise InputError(f"--threats {word}: expected NAME or NAME=RATE") from None


def _check_seed(seed: int) -> None:
    if seed < 0:
        raise InputError(f"--seed {seed}; expected a whole number >= 0")


def write_testbed(name: str, shared: Path, out: Path, *, seed: int, verifiable: float = 0.8) -> str:
    """Build a testbed from the public sets under ``shared`` and write it as a BEIR folder.

    verifiable: share of true high-tier documents whose source can be checked.

    Raises InputError naming the known testbeds, or what is missing under ``shared``.
    """
    if name not in TESTBEDS:
        raise InputError(f"unknown testbed {name!r}; known: {', '.join(TESTBEDS)}")
    _check_seed(seed)
    if not shared.is_dir():
        raise InputError(f"{shared}: expected the folder of the public sets")

    def flip(text: str) -> str | None:
        return contradict(text, rng_of(seed, text))

    corpus = TESTBEDS[name](shared, Draw(seed=seed, flip=flip, verifiable=verifiable))
    write_beir(corpus, out)
    return (
        f"{out}: {len(corpus.documents)} documents ({int(corpus.adversarial.sum())} adversarial), "
        f"{len(corpus.topics)} topics"
    )
