"""Why each candidate stands where it does, and what a prior is worth in similarity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from rag_reliability.records import Pool
from rag_reliability.reliability.rerank import Ranked, check_prior, rank_pool, tie_ranks

COLUMNS = (
    *("qid", "docno", "docid", "source_type", "sim", "prior", "score"),
    *("rank_sim", "rank_score", "in_top_before", "in_top_after", "why"),
)


def rank_trace(
    pool: Pool,
    prior: np.ndarray,
    qids: Sequence[str],
    docnos: Sequence[str] | np.ndarray,
    source_types: Sequence[str] | np.ndarray,
    k: int,
    *,
    rule: str = "source_aware",
    window: int | None = None,
) -> pd.DataFrame:
    """One row for each candidate of each topic, by ``rank_score``, with a sentence on its place.

    rank_sim, rank_score: from 1, among the pool's candidates; rank_sim is the rank in the whole
    corpus as far as the pool's depth. ``score`` is what the rule gives the document, also where
    the window keeps it from counting. Arguments as for ``rerank``.

    Raises: InputError for an unknown rule or λ outside (0, 1].
    """
    values = check_prior(prior, len(docnos), len(qids))
    ranked = rank_pool(pool, values, tie_ranks(docnos), rule, window)
    parts = [_topic(pool, ranked, t, k).assign(qid=str(qid)) for t, qid in enumerate(qids)]
    if not parts:
        return pd.DataFrame(columns=list(COLUMNS))
    for part in parts:
        part["why"] = _reasons(part, k, rule, window)
    frame = pd.concat(parts, ignore_index=True)
    frame["docno"] = np.asarray(docnos, dtype=str)[frame["docid"]]
    frame["source_type"] = np.asarray(source_types, dtype=str)[frame["docid"]]
    return frame[list(COLUMNS)]


def _topic(pool: Pool, ranked: Ranked, t: int, k: int) -> pd.DataFrame:
    order = np.argsort(ranked.rank_score[t])[: int(ranked.valid[t].sum())]
    before, after = ranked.rank_sim[t, order], ranked.rank_score[t, order]
    inside = ranked.inside[t, order]
    return pd.DataFrame(
        {
            "docid": pool.docids[t, order],
            "sim": pool.sims[t, order],
            "prior": ranked.prior[t, order],
            "score": ranked.scores[t, order],
            "rank_sim": before + 1,
            "rank_score": after + 1,
            "in_top_before": before < k,
            "in_top_after": (after < k) & inside,
            "inside": inside,
        }
    )


def _reasons(frame: pd.DataFrame, k: int, rule: str, window: int | None) -> list[str]:
    last = frame["score"][frame["in_top_after"]].min()
    kept = int(frame["in_top_after"].sum())
    reasons = []
    for row in frame.itertuples(index=False):
        if not row.inside:
            why = f"outside the window of {window}: rank {row.rank_sim} by similarity"
        elif row.in_top_after and row.in_top_before:
            why = f"kept: {_move(row)}"
        elif row.in_top_after:
            why = _entered(row, frame)
        elif row.in_top_before:
            why = _left(row, last, kept, rule)
        else:
            why = f"below the top {k}: {_move(row)}"
        reasons.append(why)
    return reasons


def _move(row: Any) -> str:
    before, after = row.rank_sim, row.rank_score
    return f"stays at rank {after}" if before == after else f"rank {before} → {after}"


def _entered(row: Any, frame: pd.DataFrame) -> str:
    passed = (frame["rank_sim"] < row.rank_sim) & (frame["rank_score"] > row.rank_score)
    n = int((passed & (frame["prior"] < row.prior)).sum())
    documents = "document" if n == 1 else "documents"
    return f"entered: λ {row.prior:.2f} lifts it past {n} {documents} with a lower prior"


def _left(row: Any, last: float, kept: int, rule: str) -> str:
    score, sim, prior = row.score, row.sim, row.prior
    if score == last:
        return f"left: tied with rank {kept} at {last:.3f}, later by docno"
    if rule != "source_aware":
        return f"left: score {score:.3f} against {last:.3f} at rank {kept}"
    return (
        f"left: at λ {prior:.2f} it needed similarity {last / prior:.3f} "
        f"to hold rank {kept}, has {sim:.3f}"
    )


def similarity_price(
    pool: Pool, table: Mapping[str, float], *, k: int = 5, depth: int = 15
) -> pd.DataFrame:
    """What each prior ratio buys in similarity, one row for each pair of types of unequal λ.

    Columns: higher, lower (types), ratio (λ_higher / λ_lower), median_sim (median over topics and
    their ``k`` most similar), needed_sim (similarity at which a ``lower`` document draws level with
    a ``higher`` one at median_sim: median_sim · ratio), pool_ratio (median over topics of best
    similarity over the ``depth``-th), decides (ratio > pool_ratio: within the usual pool the prior
    alone settles the order of the two types). Similarities that are not positive give pool_ratio
    infinity.
    """
    sims = -np.sort(-pool.sims, axis=1)
    top = sims[:, :k]
    median_sim = float(np.median(top[np.isfinite(top)])) if np.isfinite(top).any() else np.nan
    pool_ratio = _pool_ratio(sims[:, :depth])
    rows = [
        (high, low, table[high] / table[low])
        for high in table
        for low in table
        if table[high] > table[low]
    ]
    frame = pd.DataFrame(rows, columns=["higher", "lower", "ratio"])
    frame["median_sim"] = median_sim
    frame["needed_sim"] = frame["ratio"] * median_sim
    frame["pool_ratio"] = pool_ratio
    frame["decides"] = frame["ratio"] > pool_ratio
    return frame.sort_values("ratio", kind="stable", ignore_index=True)


def _pool_ratio(sims: np.ndarray) -> float:
    """Median over topics of best over worst; ``sims`` (n_topics, depth) falls along each row."""
    if not sims.size:
        return float("nan")
    worst = np.where(np.isfinite(sims), sims, np.inf).min(axis=1)
    ratio = np.where(worst > 0, sims[:, 0] / np.where(worst > 0, worst, 1.0), np.inf)
    return float(np.median(ratio))
