"""The grounding check: what the scorer is worth on labelled pairs, and what a difference means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from rag_reliability.evaluation.alignment import clean
from rag_reliability.evaluation.controls import one_sided_scores, smallest_difference, swapped
from rag_reliability.evaluation.meta import agreement, auroc_statistic
from rag_reliability.evaluation.pairs import Pair, PairScore, score_pairs
from rag_reliability.evaluation.resampling import clustered
from rag_reliability.experiment.answer_scoring import GROUNDING, SCORER_ENCODER, Scorer, load_scorer
from rag_reliability.experiment.answering import read_answers
from rag_reliability.experiment.encoding import ENCODERS, ENCODING
from rag_reliability.experiment.grounding import chunks
from rag_reliability.experiment.labelled import PUBLIC, labelled_pairs, sample, unlabelled
from rag_reliability.experiment.study import Study
from rag_reliability.files import sha256_file
from rag_reliability.records import Answer
from rag_reliability.text import parse_citations, sentences, strip_citations

MEASURES, CURVES = "grounding/measures.csv", "grounding/curves.csv"
MEASURED = ["set", "measure", "value", "low", "high", "n"]
CURVE = ["set", "curve", "x", "y", "low", "high", "n"]
Sets = Mapping[str, Sequence[Pair]]


def grounding_check_stage(study: Study) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Measure the scorer: ``grounding/measures.csv`` and ``grounding/curves.csv``; returns both.

    On ``config.labelled_pairs`` if given, on the public sets where the folder of shared data is
    there, and without labels on the study's own answers with their passages swapped.
    """

    def build(folder: Path) -> None:
        scorer = load_scorer(study)
        measures, curves = [], []
        config, n = study.config, sentences_per_system(study)
        for name, pairs in all_sets(study).items():
            found, drawn = check(
                pairs,
                scorer,
                n,
                one_sided=name in labelled_files(study),  # swaps are balanced on either side
                n_resamples=min(config.n_resamples, 2_000),
                seed=config.seed,
            )
            measures.append(found.assign(set=name))
            curves.append(drawn.assign(set=name))
        (folder / "grounding").mkdir(parents=True)
        _save(measures, MEASURED, folder / MEASURES)
        _save(curves, CURVE, folder / CURVES)

    files = labelled_files(study)
    study.stage(
        "grounding-check",
        inputs={
            "answers": study.store.sidecar("answers")["outputs"],
            "corpus": study.corpus_digest,
            "encoder": study.model_sha(SCORER_ENCODER),
            "constants": sha256_file(study.path(GROUNDING)),
            "labelled": {name: sha256_file(path) for name, path in files.items()},
            "pairs": study.config.check_pairs,
            "resamples": study.config.n_resamples,
            "seed": study.config.seed,
        },
        code=(
            "evaluation",
            *ENCODING,
            "experiment/grounding_check.py",
            "experiment/labelled.py",
        ),
        libraries=(*ENCODERS, "sentencex"),
        outputs=(MEASURES, CURVES),
        build=build,
    )
    return pd.read_csv(study.run_dir / MEASURES), pd.read_csv(study.run_dir / CURVES)


def labelled_files(study: Study) -> dict[str, Path]:
    """Files of labelled pairs that are here, by the name of their set."""
    shared = study.root.parent / "shared" / "data"
    found = {name: shared / file for name, (file, _) in PUBLIC.items()}
    here = {name: path for name, path in found.items() if path.is_file()}
    if study.config.labelled_pairs:
        here["labelled"] = study.path(study.config.labelled_pairs)
    return here


def all_sets(study: Study) -> dict[str, list[Pair]]:
    """Every set to measure on, at most about ``config.check_pairs`` pairs of each."""
    config = study.config
    found: dict[str, list[Pair]] = {}
    for name, path in labelled_files(study).items():
        read = PUBLIC[name][1] if name in PUBLIC else labelled_pairs
        found[name] = sample(read(path), config.check_pairs, config.seed)
    for name in ("expertqa", "labelled"):  # in HealthVer other evidence often supports as well
        if name in found:
            found[f"{name}_swapped"] = swapped(found[name], within=True, seed=config.seed)
    own = _own_pairs(study, read_answers(study.run_dir / "answers" / "answers.jsonl"))
    found["answers_swapped"] = swapped(own, within=True, seed=config.seed)
    found["answers_other_topic"] = swapped(own, within=False, seed=config.seed)
    return {name: pairs for name, pairs in found.items() if _can_be_measured(pairs)}


def _can_be_measured(pairs: Sequence[Pair]) -> bool:
    return len({p.group for p in pairs}) > 1 and {p.label for p in pairs} == {True, False}


def _own_pairs(study: Study, answers: Sequence[Answer]) -> list[Pair]:
    """Each distinct sentence of the study's answers with the passages it cites."""
    corpus = study.corpus
    found: dict[tuple[str, str, tuple[str, ...]], Pair] = {}
    for answer in answers:
        shown = [corpus.documents[corpus.docid[d]].content for d in answer.docnos]
        for sentence in sentences(answer.text):
            cited = tuple(shown[n - 1] for n in parse_citations(sentence, len(shown)))
            said = strip_citations(sentence)
            if cited and said:
                key = (answer.qid, said, cited)
                found.setdefault(key, Pair(len(found), said, cited, None, answer.qid))
    return unlabelled(list(found.values()))


def check(
    pairs: Sequence[Pair],
    scorer: Scorer,
    n_sentences: int,
    *,
    one_sided: bool = True,
    n_resamples: int = 1_000,
    seed: int = 0,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Measures and curves of one set of labelled pairs, as ``meta.agreement`` gives them.

    Beside the scorer's: AUROC of content recall, and (``one_sided``) of guesses from claim or
    passage alone; the smallest difference that ``n_sentences`` a system can show, and 1,000.
    """
    scores = scored(pairs, scorer)
    truths = np.array([p.label for p in pairs], dtype=bool)
    groups = [p.group for p in pairs]
    support = np.array([s.support for s in scores])
    options = {"n_resamples": n_resamples, "seed": seed}
    measures, curves = agreement(support, truths, groups, scorer.constants, **options)
    rivals = {"content_recall": np.array([s.recall for s in scores])}
    if one_sided:
        best = [p.passages[s.best_passage or 0] for p, s in zip(pairs, scores, strict=True)]
        for name, texts in (("claim_only", [p.claim for p in pairs]), ("passage_only", best)):
            rivals[name] = one_sided_scores(_wholes(texts, scorer), truths, groups)
    rows = []
    for name, values in rivals.items():
        i = clustered(auroc_statistic(values, truths), groups, **options)
        rows.append((f"auroc.{name}", i.mean, i.low, i.high, len(pairs)))
    for suffix, n in (("", n_sentences), (".at_1000", 1_000)):
        own, people = smallest_difference(support, truths, n)
        rows.append((f"smallest_difference{suffix}", own, np.nan, np.nan, n))
        rows.append((f"smallest_difference.people{suffix}", people, np.nan, np.nan, n))
    more = pd.DataFrame(rows, columns=["measure", "value", "low", "high", "n"])
    return pd.concat([measures, more], ignore_index=True), curves


def scored(pairs: Sequence[Pair], scorer: Scorer) -> list[PairScore]:
    """Scores of pairs in bounded groups, with a bar."""
    from tqdm import tqdm

    found: list[PairScore] = []
    with tqdm(total=len(pairs), unit="pair", desc="grounding check") as bar:
        for chunk in chunks(iter(pairs)):
            found += score_pairs(chunk, scorer.support, scorer.constants, scorer.find_span)
            bar.update(len(chunk))
    return found


def sentences_per_system(study: Study) -> int:
    """Sentences that were scored for each system and arm with passages, on average."""
    frame = pd.read_csv(study.run_dir / "answers" / "sentences.csv", keep_default_na=False)
    counts = frame[frame["docno"] != ""].groupby(["system", "arm"]).size()
    return max(2, round(float(counts.mean()))) if len(counts) else 2


def _wholes(texts: Sequence[str], scorer: Scorer) -> np.ndarray:
    vectors = scorer.support.vectors
    return np.stack([vectors.get([clean(text)])[0].whole for text in texts])


def _save(frames: Sequence[pd.DataFrame], columns: list[str], path: Path) -> None:
    frame = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)
    frame.reindex(columns=columns).to_csv(path, index=False, float_format="%.6f")
