"""What the passages do to the model's yes or no: the judge-free measure of harm."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from rag_reliability.records import InputError

_SIGN = {"yes": 1.0, "no": -1.0}


def auroc(scores: ArrayLike, truths: ArrayLike) -> float:
    """Share of (true, false) pairs in which the true one scores higher; a tie counts one half.

    AUROC = U / (n₁ n₀), the Mann–Whitney statistic (Hanley and McNeil, Radiology 1982).

    Args:
        scores: (n,), finite. truths: bool (n,).

    Returns: in [0, 1], .5 at chance.

    Raises: ValueError where one of the two classes has no member.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(truths, dtype=bool)
    if not y.any() or y.all():
        raise ValueError("AUROC needs members of both classes")
    ranks = stats.rankdata(x)
    n1 = int(y.sum())
    return float((ranks[y].sum() - n1 * (n1 + 1) / 2) / (n1 * (len(y) - n1)))


def auroc_interval(
    scores: ArrayLike,
    truths: ArrayLike,
    *,
    level: float = 0.95,
    n_resamples: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """Percentile bootstrap interval of ``auroc``, the two classes resampled each by itself."""
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(truths, dtype=bool)
    rng = np.random.default_rng(seed)
    ones, zeros = x[y], x[~y]
    one = rng.choice(ones, (n_resamples, ones.size))[:, :, None]
    zero = rng.choice(zeros, (n_resamples, zeros.size))[:, None, :]
    drawn = ((zero < one) + 0.5 * (zero == one)).mean(axis=(1, 2))
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def stance_metrics(
    log_odds: pd.DataFrame, no_passages: Mapping[str, float], stances: Mapping[str, str | None]
) -> pd.DataFrame:
    """Per topic the model's leaning, how the passages moved it, and whether it is wrong.

    With l = log P(yes) − log P(no) given the passages, l₀ the same given none, s = +1 where the
    true answer is yes and −1 where it is no, and m the median of l₀ over the topics:

    - log_odds = l;
    - stance_shift = s (l − l₀): above 0 where the passages move the model toward the truth;
    - stance_error = 1 where s (l − m) < 0, else 0, and ½ at exactly m. The median takes the model's
      own bias toward one word out, which the raw sign would report as error.

    Args:
        log_odds: columns system, qid, log_odds (and arm, kept): one row for each system and topic.
        no_passages: l₀ by topic.
        stances: true stance by topic, yes or no; topics with None have no true side and are left
            out.

    Returns: columns system (arm), qid, metric, value.

    Raises: InputError naming the topic for a stance other than yes or no, a topic without l₀ or
    without a stance entry, or log-odds that are not finite.
    """
    table = _checked(log_odds, no_passages, stances)
    sign = table.qid.map(lambda q: _SIGN[str(stances[q])])
    before = table.qid.map(no_passages).astype(float)
    judged = [q for q in stances if stances[q] is not None and q in no_passages]
    median = float(np.median([no_passages[q] for q in judged])) if judged else 0.0
    centred = sign * (table.log_odds - median)
    values = {
        "log_odds": table.log_odds,
        "stance_shift": sign * (table.log_odds - before),
        "stance_error": pd.Series(
            np.select([centred < 0, centred > 0], [1.0, 0.0], 0.5), table.index
        ),
    }
    keys = [c for c in ("system", "arm", "qid") if c in table.columns]
    parts = [table[keys].assign(metric=name, value=value) for name, value in values.items()]
    return pd.concat(parts, ignore_index=True)


def stance_summary(
    metrics: pd.DataFrame,
    stances: Mapping[str, str | None],
    *,
    n_resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Per system AUROC of the log-odds against the true stance, with its interval, and the means.

    Args:
        metrics: what ``stance_metrics`` returns.
        stances: true stance by topic.

    Returns: columns system (arm), auroc, low, high (95 % bootstrap over topics), stance_error,
    stance_shift (means), n_topics.

    Raises: InputError where the topics' true answers are all alike: nothing can be told apart then.
    """
    by = [c for c in ("system", "arm") if c in metrics.columns]
    rows = []
    for name, group in metrics.groupby(by, sort=False):
        wide = group.pivot(index="qid", columns="metric", values="value")
        truths = np.array([stances[str(q)] == "yes" for q in wide.index])
        if truths.all() or not truths.any():
            raise InputError("the stance probe needs topics of both true answers, yes and no")
        low, high = auroc_interval(wide.log_odds, truths, n_resamples=n_resamples, seed=seed)
        rows.append(
            dict(zip(by, name, strict=True))
            | {"auroc": auroc(wide.log_odds, truths), "low": low, "high": high}
            | {m: float(wide[m].mean()) for m in ("stance_error", "stance_shift")}
            | {"n_topics": len(wide)}
        )
    return pd.DataFrame(rows)


def _checked(
    log_odds: pd.DataFrame, no_passages: Mapping[str, float], stances: Mapping[str, str | None]
) -> pd.DataFrame:
    for qid in dict.fromkeys(log_odds.qid):
        if qid not in stances:
            raise InputError(f"topic {qid}: no stance is known")
        if stances[qid] not in (*_SIGN, None):
            raise InputError(f"topic {qid}: stance {stances[qid]!r}, expected yes or no")
        if stances[qid] is not None and not np.isfinite(no_passages.get(qid, np.nan)):
            raise InputError(f"topic {qid}: no log-odds without passages to compare with")
    table = log_odds[log_odds.qid.map(lambda q: stances[q] is not None)].reset_index(drop=True)
    bad = table.loc[~np.isfinite(table.log_odds), "qid"]
    if len(bad):
        raise InputError(f"topic {bad.iloc[0]}: log-odds are not finite")
    return table
