"""Fit the constants of the answer scorers on labelled public data and say how often they err.

Writes configs/grounding.yaml. Usage:

    python benchmarks/calibrate_grounding.py ENCODER_FOLDER [--data ../shared/data] [--out FILE]

Never reads corpus/. About four minutes on two cores.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import yaml
from labelled_sets import Pair, Stated, expertqa_pairs, read_answers, sample

from rag_reliability.evaluation.alignment import TextVectors, clean, content_recall
from rag_reliability.evaluation.contrast import pair_scores
from rag_reliability.evaluation.coverage import coverage_parts
from rag_reliability.evaluation.grounding import blend_parts
from rag_reliability.evaluation.stance import auroc, auroc_interval
from rag_reliability.records import Claim
from rag_reliability.retrieval.encode import load_encoder

Fit = Callable[[np.ndarray, np.ndarray, np.ndarray], dict[str, float]]
Apply = Callable[[np.ndarray, dict[str, float]], np.ndarray]

SEED = 20
MAX_CLAIMS = 500
ANSWERS_PER_SIDE = 8
TARGET_ERROR = 0.10
TEMPERATURE = 0.1
CUE_WEIGHTS = (0.0, 0.025, 0.05, 0.075, 0.1)
GAP_WEIGHT = 0.5
"""Chosen on half of the questions by benchmarks/grounding_scorers.py; .25 to .75 do as well."""


# --- support: ExpertQA ---------------------------------------------------------------------------


def parts_of(vectors: TextVectors, pairs: list[Pair]) -> np.ndarray:
    """Of each pair's best passage cosine, alignment and content recall, (n_pairs, 3)."""
    vectors.get(dict.fromkeys(clean(t) for p in pairs for t in (p.claim, *p.passages)))
    rows = []
    for pair in pairs:
        cosine, alignment = blend_parts(vectors, [pair.claim], pair.passages)
        recall = max(content_recall(pair.claim, p) for p in pair.passages)
        rows.append((cosine.max(), alignment.max(), recall))
    return np.array(rows)


def coverage_parts_of(vectors: TextVectors, pairs: list[Pair]) -> np.ndarray:
    """Content alignment and polarity gap of each pair's best passage, (n_pairs, 2)."""
    rows = []
    for pair in pairs:
        both = coverage_parts(vectors, [pair.claim] * len(pair.passages), pair.passages)
        rows.append(np.stack(both, axis=1))
    every = np.concatenate(rows)
    std = every[:, 0].std()
    best = [int(np.argmax(r[:, 0] / std - GAP_WEIGHT * r[:, 1])) for r in rows]
    return np.array([r[i] for r, i in zip(rows, best, strict=True)])


def coverage_fit(parts: np.ndarray, positive: np.ndarray, negative: np.ndarray) -> dict[str, float]:
    """Mean, deviation and balanced Platt constants from the rows marked."""
    from sklearn.linear_model import LogisticRegression

    used = positive | negative
    mean, std = parts[used, 0].mean(), parts[used, 0].std()
    z = (parts[:, 0] - mean) / std - GAP_WEIGHT * parts[:, 1]
    model = LogisticRegression(C=1e6, class_weight="balanced").fit(z[used, None], positive[used])
    return {
        "alignment_mean": float(mean),
        "alignment_std": float(std),
        "gap_weight": GAP_WEIGHT,
        "slope": float(model.coef_[0, 0]),
        "intercept": float(model.intercept_[0]),
    }


def coverage_apply(parts: np.ndarray, c: dict[str, float]) -> np.ndarray:
    """Calibrated support of each row."""
    z = (parts[:, 0] - c["alignment_mean"]) / c["alignment_std"] - c["gap_weight"] * parts[:, 1]
    return 1 / (1 + np.exp(-(c["slope"] * z + c["intercept"])))


def blend_fit(parts: np.ndarray, positive: np.ndarray, negative: np.ndarray) -> dict[str, float]:
    """Means, deviations and balanced Platt constants from the rows marked."""
    from sklearn.linear_model import LogisticRegression

    used = positive | negative
    mean, std = parts[used, :2].mean(axis=0), parts[used, :2].std(axis=0)
    z = ((parts[:, :2] - mean) / std).mean(axis=1)
    model = LogisticRegression(C=1e6, class_weight="balanced").fit(z[used, None], positive[used])
    return {
        "cosine_mean": float(mean[0]),
        "cosine_std": float(std[0]),
        "alignment_mean": float(mean[1]),
        "alignment_std": float(std[1]),
        "slope": float(model.coef_[0, 0]),
        "intercept": float(model.intercept_[0]),
    }


def blend_apply(parts: np.ndarray, c: dict[str, float]) -> np.ndarray:
    """Calibrated support of each row."""
    z = (parts[:, 0] - c["cosine_mean"]) / c["cosine_std"]
    z = (z + (parts[:, 1] - c["alignment_mean"]) / c["alignment_std"]) / 2
    return 1 / (1 + np.exp(-(c["slope"] * z + c["intercept"])))


def bands_fit(support: np.ndarray, positive: np.ndarray, negative: np.ndarray) -> dict[str, float]:
    """Thresholds with ``TARGET_ERROR`` of swaps above the upper, of true ones below the lower."""
    upper = float(np.quantile(support[negative], 1 - TARGET_ERROR))
    lower = float(np.quantile(support[positive], TARGET_ERROR))
    return {"unsupported_below": min(lower, upper), "supported_from": max(lower, upper)}


def support_report(
    pairs: list[Pair], parts: np.ndarray, fit_to: Fit, apply: Apply
) -> tuple[dict, dict]:
    """(constants fitted on everything, measurement cross-fitted over five folds of questions)."""
    kind = np.array([p.kind for p in pairs])
    fold = np.array([p.question for p in pairs]) % 5
    complete, swap, partial = (kind == k for k in ("complete", "swap", "partial"))
    out, band = np.zeros(len(pairs)), np.empty(len(pairs), dtype=object)
    for i in range(5):
        fit, held = fold != i, fold == i
        constants = fit_to(parts, complete & fit, swap & fit)
        out[held] = apply(parts, constants)[held]
        within = bands_fit(apply(parts, constants), complete & fit, swap & fit)
        band[held] = np.select(
            [out[held] >= within["supported_from"], out[held] < within["unsupported_below"]],
            ["supported", "unsupported"],
            "unclear",
        )
    constants = fit_to(parts, complete, swap)
    constants |= bands_fit(apply(parts, constants), complete, swap)
    shares = {
        name: {b: _r(np.mean(band[mask] == b)) for b in ("supported", "unclear", "unsupported")}
        for name, mask in (("complete", complete), ("partial", partial), ("swap", swap))
    }
    measured = {
        "pairs": {k: int((kind == k).sum()) for k in ("complete", "partial", "swap")},
        "questions": len({p.question for p in pairs}),
        "auroc_complete_against_swap": _auroc(out, complete, swap),
        "auroc_complete_against_partial": _auroc(out, complete, partial),
        "expected_calibration_error_against_swap": _calibration_error(out, complete, swap),
        "share_of_each_kind_in_each_band": shares,
    }
    return constants, measured


# --- contrast: answers to TREC health topics -----------------------------------------------------


def contrast_report(
    claims: dict[str, Claim], answers: list[Stated], vectors: TextVectors
) -> tuple[dict, dict]:
    """(constants fitted on one half of the topics, measurement on the other half)."""
    topics = sorted({a.topic for a in answers})
    fit = np.array([topics.index(a.topic) % 2 == 0 for a in answers])
    yes = np.array([a.yes for a in answers])
    by_weight = {w: _all_scores(vectors, answers, claims, w) for w in CUE_WEIGHTS}
    # the worse of the two errors, for harm must not lean to either side
    wrong = {w: _worse_error(s[fit, 0] > 0, yes[fit]) for w, s in by_weight.items()}
    weight = min(CUE_WEIGHTS, key=lambda w: (wrong[w], w))
    contrast, related = by_weight[weight].T
    away = _elsewhere(topics, claims, answers, vectors)
    floor = float(np.quantile(away[fit], 0.95))
    band = float(np.quantile(np.abs(contrast[fit]), 0.2))
    constants = {"temperature": TEMPERATURE, "cue_weight": weight, "band": band, "floor": floor}
    held = ~fit
    decided = held & (np.abs(contrast) > band) & (related >= floor)
    own = np.array([a.topic for a in answers])
    short, short_related = _all_scores(vectors, answers, claims, weight, first=2).T
    brief = held & (np.abs(short) > band) & (short_related >= floor)
    measured = {
        "answers": {"fitted": int(fit.sum()), "held_out": int(held.sum())},
        "topics": {"fitted": len(topics[::2]), "held_out": len(topics[1::2])},
        "held_out_accuracy_where_decided": _by_topic((contrast > 0) == yes, own, decided),
        "held_out_share_decided": _by_topic(decided, own, held),
        "held_out_accuracy_without_bands": _by_topic((contrast > 0) == yes, own, held),
        "held_out_denials_taken_for_affirmations": _r(np.mean(contrast[decided & ~yes] > 0)),
        "held_out_affirmations_taken_for_denials": _r(np.mean(contrast[decided & yes] < 0)),
        "held_out_two_sentences_accuracy_where_decided": _by_topic((short > 0) == yes, own, brief),
        "held_out_two_sentences_share_decided": _by_topic(brief, own, held),
        "held_out_auroc": _auroc(contrast, held & yes, held & ~yes),
        "held_out_auroc_alignment_alone": _auroc(by_weight[0.0][:, 0], held & yes, held & ~yes),
        "held_out_answers_below_floor": _r(np.mean(related[held] < floor)),
        "held_out_other_topics_answers_at_or_above_floor": _r(np.mean(away[held] >= floor)),
    }
    return constants, measured


def _all_scores(
    vectors: TextVectors,
    answers: list[Stated],
    claims: dict[str, Claim],
    weight: float,
    first: int | None = None,
) -> np.ndarray:
    """Contrast and relatedness of each answer, or of its first sentences, (n_answers, 2)."""
    found = [
        pair_scores(
            vectors,
            a.sentences[:first],
            claims[a.topic],
            temperature=TEMPERATURE,
            cue_weight=weight,
        )
        for a in answers
    ]
    return np.array(found)


def _elsewhere(
    topics: list[str], claims: dict[str, Claim], answers: list[Stated], vectors: TextVectors
) -> np.ndarray:
    """Relatedness of each answer to the next topic's claims, which it does not speak of."""
    after = dict(zip(topics, topics[1:] + topics[:1], strict=True))
    others = {t: claims[after[t]] for t in topics}
    return _all_scores(vectors, answers, others, 0.0)[:, 1]


# --- figures -------------------------------------------------------------------------------------


def _worse_error(said_yes: np.ndarray, yes: np.ndarray) -> float:
    return float(max((~said_yes[yes]).mean(), said_yes[~yes].mean()))


def _by_topic(values: np.ndarray, topics: np.ndarray, mask: np.ndarray) -> dict[str, float]:
    """Mean where marked, with a 95 % interval from resampled topics."""
    rng = np.random.default_rng(SEED)
    groups = [values[mask & (topics == t)].astype(float) for t in np.unique(topics[mask])]
    drawn = [
        np.concatenate([groups[i] for i in rng.integers(len(groups), size=len(groups))]).mean()
        for _ in range(2000)
    ]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return {"value": _r(values[mask].mean()), "low": _r(low), "high": _r(high)}


def _auroc(scores: np.ndarray, ones: np.ndarray, zeros: np.ndarray) -> dict[str, float]:
    used = ones | zeros
    low, high = auroc_interval(scores[used], ones[used], seed=SEED)
    return {"value": _r(auroc(scores[used], ones[used])), "low": _r(low), "high": _r(high)}


def _calibration_error(support: np.ndarray, ones: np.ndarray, zeros: np.ndarray) -> float:
    """Mean gap between support and share supported over ten equal bins, classes weighted alike."""
    used = ones | zeros
    weight = np.where(ones, 0.5 / ones.sum(), 0.5 / zeros.sum())[used]
    place = np.minimum((support[used] * 10).astype(int), 9)
    gap = np.bincount(place, weight * (support[used] - ones[used]), minlength=10)
    return _r(np.abs(gap).sum())


def _r(value: float) -> float:
    return round(float(value), 3)


HEADER = """\
# Constants of the answer scorers and what they were measured to be worth.
# Written by benchmarks/calibrate_grounding.py; do not edit by hand. Encoder: {encoder}.
# Nothing here was fitted on, or looked at, the corpus that the study reports on.
#
# coverage: support of a claim by a passage (evaluation/coverage.py), fitted on ExpertQA dev like
#   blend. How it was chosen, and what else was tried: docs/grounding-scorers.md.
# blend: support as it was scored before (evaluation/blend.py), fitted on ExpertQA dev:
#   completely supported claims with their own evidence against the same claims with other evidence
#   of the same question (swap). Bands: a tenth of swaps above supported_from, a tenth of supported
#   claims below unsupported_below. The measurement is cross-fitted over questions. Partly
#   supported claims took no part in the fit.
# contrast: gold or false side of a claim pair (evaluation/contrast.py), fitted on half of the
#   topics of TREC health answers (affirmation against denial of the question) and measured on the
#   other half, intervals over topics. The rule's form and its temperature were chosen among some
#   170 variants with all topics in view, so its accuracy is a little flattering.
#   Floor: 5 % of answers to another topic reach it.
"""


def main() -> None:
    """Fit, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("encoder", type=Path)
    root = Path(__file__).parents[1]
    parser.add_argument("--data", type=Path, default=root.parent / "shared" / "data")
    parser.add_argument("--out", type=Path, default=root / "configs" / "grounding.yaml")
    args = parser.parse_args()
    rng = np.random.default_rng(SEED)
    encoder = load_encoder(args.encoder)
    vectors = TextVectors(encoder)
    claims, answers = read_answers(args.data / "trec-hm-answers", encoder, rng, ANSWERS_PER_SIDE)
    vectors.get(dict.fromkeys(clean(s) for a in answers for s in a.sentences))
    contrast, contrast_measured = contrast_report(claims, answers, vectors)
    pairs = sample(expertqa_pairs(args.data / "expertqa" / "dev.jsonl", rng), rng, MAX_CLAIMS)
    parts = parts_of(vectors, pairs)
    blend, blend_measured = support_report(pairs, parts, blend_fit, blend_apply)
    kind = np.array([p.kind for p in pairs])
    complete = kind == "complete"
    for other in ("swap", "partial"):
        recall = _auroc(parts[:, 2], complete, kind == other)
        blend_measured[f"content_recall_auroc_complete_against_{other}"] = recall
    coverage, coverage_measured = support_report(
        pairs, coverage_parts_of(vectors, pairs), coverage_fit, coverage_apply
    )
    body = {
        "coverage": {k: round(v, 4) for k, v in coverage.items()} | {"measured": coverage_measured},
        "blend": {k: round(v, 4) for k, v in blend.items()} | {"measured": blend_measured},
        "contrast": {k: round(v, 4) for k, v in contrast.items()} | {"measured": contrast_measured},
    }
    text = HEADER.format(encoder="sentence-transformers/all-MiniLM-L6-v2")
    args.out.write_text(text + yaml.safe_dump(body, sort_keys=False, width=100), encoding="utf-8")
    print(args.out.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
