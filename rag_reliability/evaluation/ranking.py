"""How good the rankings are, by ranx, and what they expose the reader to."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence

import pandas as pd

from rag_reliability.records import Qrels

Run = Mapping[str, Sequence[str]]
"""``run[qid]``: docnos of one topic, best first, as deep as they are known."""

COMPAT_P = 0.95
"""Persistence of compatibility; the value of the TREC Health Misinformation tracks."""

_PAD = "\0none"  # ranx cannot hold a topic without documents; no docno can hold this character


def evaluate_ranking(run: Run, qrels: Qrels, *, k: int = 5, recall_k: int = 15) -> pd.DataFrame:
    r"""Per topic precision@k, ndcg@k, mrr and recall@recall_k, computed by ranx.

    A document is relevant when its label is at least 1. With r_i the label at rank i:

    - precision@k = (relevant documents among the top k) / k, also where fewer than k were returned;
    - ndcg@k = DCG@k / ideal DCG@k, DCG@k = Σ_{i≤k} r_i / log2(i + 1): the *linear* gain of
      trec_eval (Järvelin and Kekäläinen, TOIS 2002), not the exponential one of Burges et al.;
    - mrr = 1 / rank of the first relevant document of the whole run, 0 when there is none;
    - recall@n = (relevant documents among the top n) / (relevant documents of the topic).

    Args:
        run: must hold at least ``recall_k`` documents a topic for recall to mean what it says.
        qrels: judgements. Topics of either side are kept: one that the run lacks, or one without
            relevant documents, has value 0 throughout and is named in a warning.

    Returns: columns qid, metric, value; values in [0, 1].

    Raises: ValueError where a topic's ranking holds a document twice.
    """
    import ranx

    qids = _all_qids(run, qrels)
    _warn_of_empty(run, qrels, qids)
    ranx_qrels = ranx.Qrels({q: dict(qrels.get(q) or {_PAD: 0}) for q in qids})
    ranx_run = ranx.Run({q: _rank_scores(run.get(q) or (_PAD,)) for q in qids})
    names = [f"precision@{k}", f"ndcg@{k}", "mrr", f"recall@{recall_k}"]
    with warnings.catch_warnings():
        # numba remarks on ranx's own unsigned counts the first time it compiles them
        warnings.filterwarnings("ignore", message="unsafe cast")
        ranx.evaluate(ranx_qrels, ranx_run, names)
    return _tidy((q, name, ranx_run.scores[name][q]) for name in names for q in qids)


def exposure(
    run: Run,
    qrels: Qrels,
    adversarial: Mapping[str, Collection[str]] | Collection[str],
    low_tier: Collection[str],
    baseline_run: Run,
    *,
    k: int = 5,
    p: float = COMPAT_P,
) -> pd.DataFrame:
    """Per topic what the ranking shows of adversarial and of low-tier documents.

    With T the documents among the top k (fewer than k where fewer were returned):

    - adv_share@k = |T ∩ adversarial| / |T|; adv_hit@k = 1 if that is above 0;
    - low_tier_share@k = |T ∩ low_tier| / |T|;
    - suppressed_true@k = |B − T| / |B|, with B the relevant low-tier documents among the top k of
      ``baseline_run``: given *only for topics where B is not empty*. For the share over all topics
      pooled, divide the sum of suppressed_true_count@k (|B − T|) by that of
      suppressible_true_count@k (|B|), which every topic has;
    - compat_help, compat_harm, compat_diff: see ``compatibility``.

    Args:
        adversarial: docnos, or docnos by topic. Shares and hits count an adversarial document of
            any topic; the harmful ideal ranking is the topic's own where they are given by topic.
        low_tier: docnos of low-tier documents (prior of at most .5).

    Returns: columns qid, metric, value; topics of the run or the qrels, in the run's order.
    """
    qids = _all_qids(run, qrels)
    every = _adversarial_of_any_topic(adversarial)
    rows: list[tuple[str, str, float]] = []
    for qid in qids:
        top = list(run.get(qid, ()))[:k]
        adv = _share(top, every)
        rows += [(qid, f"adv_share@{k}", adv), (qid, f"adv_hit@{k}", float(adv > 0))]
        rows.append((qid, f"low_tier_share@{k}", _share(top, set(low_tier))))
        before = list(baseline_run.get(qid, ()))[:k]
        rows += _suppressed(qid, top, before, qrels.get(qid, {}), set(low_tier), k)
    harmful = {q: _harmful_labels(adversarial, q) for q in qids}
    return pd.concat([_tidy(rows), compatibility(run, qrels, harmful, p=p)], ignore_index=True)


def compatibility(run: Run, helpful: Qrels, harmful: Qrels, *, p: float = COMPAT_P) -> pd.DataFrame:
    """Per topic similarity of the ranking to the best and to the worst ranking, and the difference.

    compat = RBO(run, ideal; p) / RBO(ideal, ideal; p), rank-biased overlap with persistence p over
    the longer of the two (Clarke, Vtyurina and Smucker, TOIS 2021; ir-measures' ``Compat``). The
    helpful ideal holds the documents with a label above 0, by label; the harmful one the
    adversarial documents. compat_diff = compat_help − compat_harm. An empty ideal gives 0.

    Returns: columns qid, metric, value; help and harm in [0, 1], difference in [−1, 1].
    """
    qids = _all_qids(run, helpful)
    help_by, harm_by = (_compat(run, ideal, qids, p) for ideal in (helpful, harmful))
    rows: list[tuple[str, str, float]] = []
    for qid in qids:
        good, bad = help_by[qid], harm_by[qid]
        rows += [
            (qid, "compat_help", good),
            (qid, "compat_harm", bad),
            (qid, "compat_diff", good - bad),
        ]
    return _tidy(rows)


def _compat(run: Run, ideal: Qrels, qids: Sequence[str], p: float) -> dict[str, float]:
    import ir_measures

    wanted = {
        q: dict(ideal[q]) for q in qids if any(label > 0 for label in ideal.get(q, {}).values())
    }
    scored = {q: _rank_scores(run[q]) for q in wanted if run.get(q)}
    found = {
        m.query_id: m.value
        for m in ir_measures.iter_calc([ir_measures.Compat(p=p)], wanted, scored)
    }
    return {q: float(found.get(q, 0.0)) for q in qids}


def _suppressed(
    qid: str,
    top: list[str],
    before: list[str],
    labels: Mapping[str, int],
    low_tier: set[str],
    k: int,
) -> list[tuple[str, str, float]]:
    had = {d for d in before if d in low_tier and labels.get(d, 0) > 0}
    lost = had - set(top)
    rows = [
        (qid, f"suppressed_true_count@{k}", float(len(lost))),
        (qid, f"suppressible_true_count@{k}", float(len(had))),
    ]
    return [*rows, (qid, f"suppressed_true@{k}", len(lost) / len(had))] if had else rows


def _adversarial_of_any_topic(
    adversarial: Mapping[str, Collection[str]] | Collection[str],
) -> set[str]:
    if isinstance(adversarial, Mapping):
        return {d for docnos in adversarial.values() for d in docnos}
    return set(adversarial)


def _harmful_labels(
    adversarial: Mapping[str, Collection[str]] | Collection[str], qid: str
) -> dict[str, int]:
    own = adversarial.get(qid, ()) if isinstance(adversarial, Mapping) else adversarial
    return {docno: 1 for docno in sorted(own)}


def _share(top: Sequence[str], marked: set[str]) -> float:
    return sum(d in marked for d in top) / len(top) if top else 0.0


def _rank_scores(docnos: Sequence[str]) -> dict[str, float]:
    """Strictly decreasing scores: ranx breaks ties by insertion order, ir-measures by name."""
    scores = {docno: float(len(docnos) - rank) for rank, docno in enumerate(docnos)}
    if len(scores) != len(docnos):
        raise ValueError("a document stands twice in one topic's ranking")
    return scores


def _all_qids(run: Run, qrels: Qrels) -> list[str]:
    return list(dict.fromkeys([*run, *qrels]))


def _warn_of_empty(run: Run, qrels: Qrels, qids: Sequence[str]) -> None:
    unjudged = [q for q in qids if not any(label > 0 for label in qrels.get(q, {}).values())]
    unranked = [q for q in qids if not run.get(q)]
    for what, which in (("without relevant documents", unjudged), ("without a ranking", unranked)):
        if which:
            warnings.warn(f"topics {what}, counted as 0: {', '.join(which)}", stacklevel=3)


def _tidy(rows: Iterable[tuple[str, str, float]]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=["qid", "metric", "value"]).astype({"value": float})
