"""What notebook 10 shows of a real corpus: tables and a figure from the bed's saved metrics."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from rag_reliability.experiment.drawing import at_k
from rag_reliability.experiment.ranking import SYSTEMS, low_tier
from rag_reliability.experiment.real_answers import ANSWERED, STANCE, real_answers
from rag_reliability.experiment.real_answers import METRICS as ANSWER_METRICS
from rag_reliability.experiment.real_data import BY_HOST, COSTS, METRICS, answered_topics
from rag_reliability.experiment.report_parts import saved
from rag_reliability.experiment.results import ANSWERS
from rag_reliability.experiment.scoring import BASELINE
from rag_reliability.experiment.study import Study
from rag_reliability.experiment.threats import judged_topics, rules_without_model
from rag_reliability.experiment.views import comparison, topic_of
from rag_reliability.reliability.robust import RULES
from rag_reliability.reporting import tables
from rag_reliability.reporting.figures import FIGURES
from rag_reliability.reporting.style import SYSTEMS as NAMED
from rag_reliability.reporting.style import system_label
from rag_reliability.reporting.threat_marks import rule_label

RANKING = ("precision", "ndcg", "mrr", "recall", "adv_share", "low_tier_share", "suppressed_true")


def facts(bed: Study) -> pd.DataFrame:
    """What the corpus has, and so what can be measured on it: columns what, n."""
    corpus, low = bed.corpus, low_tier(bed)
    judged = judged_topics(bed)
    labels = [(q, d, label) for q in judged for d, label in corpus.qrels[q].items()]
    relevant = [(q, d) for q, d, label in labels if label > 0]
    topics = [t for t in corpus.topics if t.qid in judged]
    counts = {
        "documents": len(corpus.documents),
        "adversarial documents": int(corpus.adversarial.sum()),
        "documents marked verified": sum(d.verified for d in corpus.documents),
        "judged topics": len(judged),
        "of these with a relevant document": len({q for q, _ in relevant}),
        "of these with a known stance": sum(t.stance is not None for t in topics),
        "of these with pairs of claims": sum(bool(t.claims) for t in topics),
        "judgements": len(labels),
        "relevant": len(relevant),
        "relevant and of a low tier": sum(d in low for _, d in relevant),
    }
    return pd.DataFrame(list(counts.items()), columns=["what", "n"])


def ranking_frame(bed: Study, n: int | None = None) -> pd.DataFrame:
    """Rows of the ranking metrics: of all judged topics, or every rule's on the ``n`` answered."""
    frame = saved(bed, METRICS).astype({"qid": str})
    frame = frame[frame["metric"].isin(at_k(bed, RANKING))]
    if n is not None:
        return frame[frame["qid"].isin(answered_topics(bed, n))]
    everywhere = {*SYSTEMS, BY_HOST, *rules_without_model()}
    return frame[frame["system"].isin(everywhere)]


def ranking_table(bed: Study, n: int | None = None) -> pd.DataFrame:
    """System by metric, with intervals and the mark of Holm's p against similarity alone."""
    compared = comparison(bed, ranking_frame(bed, n))
    return _named(tables.main_table(_untested(compared), at_k(bed, RANKING)))


def difference_table(bed: Study, n: int | None = None) -> pd.DataFrame:
    """Paired differences from similarity alone in P@k, adversarial share, suppressed true."""
    frame = ranking_frame(bed, n)
    wanted = at_k(bed, ("precision", "adv_share", "suppressed_true"))
    return _differences(comparison(bed, frame[frame["metric"].isin(wanted)]))


def topics_figure(bed: Study, n: int) -> Figure:
    """The answered topics one by one, under the systems whose passages were answered from."""
    frame, names = ranking_frame(bed, n), at_k(bed, ("precision", "adv_share"))
    return FIGURES["per_topic"](frame, names=names, systems=ANSWERED)


def cost_view(bed: Study) -> pd.DataFrame:
    """Model calls and seconds of each rule, those without any left out."""
    costs = saved(bed, COSTS)
    costs = costs[costs["calls"] > 0].assign(rule=lambda t: t["rule"].map(rule_label))
    return costs.reset_index(drop=True)


def answers_table(bed: Study) -> pd.DataFrame:
    """System by answer metric; what has no value on this corpus has no column."""
    compared = _untested(comparison(bed, saved(bed, ANSWER_METRICS)))
    table = tables.answers_table(compared, ANSWERS)
    return _named(table).drop(columns="Prompt")


def answer_differences(bed: Study) -> pd.DataFrame:
    """Paired differences of the answers from those by similarity alone."""
    frame = saved(bed, ANSWER_METRICS)
    wanted = ("grounding", "trusted_grounding", "citation_precision", "adversarial_uptake")
    compared = comparison(bed, frame[frame["metric"].isin(wanted)])
    return _differences(compared).drop(columns="Prompt")


def answer_texts(bed: Study, qid: str) -> pd.DataFrame:
    """What was answered to one topic: columns system, answer, passages, adversarial (how many)."""
    corpus = bed.corpus
    rows = [
        (
            _label(a.system),
            a.text,
            " ".join(a.docnos),
            sum(bool(corpus.adversarial[corpus.docid[d]]) for d in a.docnos),
        )
        for a in real_answers(bed)
        if a.qid == topic_of(bed, qid).qid
    ]
    return pd.DataFrame(rows, columns=["system", "answer", "passages", "adversarial"])


def stance_view(bed: Study) -> pd.DataFrame:
    """Stance error and shift by system; no rows where no answered topic has a stance."""
    frame = saved(bed, STANCE)
    shown = frame[frame["metric"].isin(["stance_error", "stance_shift"])]
    if shown.empty:
        return pd.DataFrame(columns=["System", "Stance error", "Shift toward the truth"])
    return _named(tables.main_table(_untested(comparison(bed, shown))))


def undefined(bed: Study, n: int) -> pd.DataFrame:
    """Measures of the study that have no value on this corpus, and why: columns measure, why."""
    chosen = set(answered_topics(bed, n))
    topics = [t for t in bed.corpus.topics if t.qid in chosen]
    found = {
        ("correctness, harm", "the answered topics have no pairs of claims"): any(
            t.claims for t in topics
        ),
        ("stance error, shift toward the truth", "the answered topics have no known stance"): any(
            t.stance for t in topics
        ),
        ("adversarial share, uptake", "no document is marked adversarial: they are always 0"): bool(
            bed.corpus.adversarial.any()
        ),
    }
    rows = [pair for pair, there in found.items() if not there]
    return pd.DataFrame(rows, columns=["measure", "why"])


def _label(system: str) -> str:
    return NAMED.get(system) or ("Verified by host" if system == BY_HOST else rule_label(system))


def _named(table: pd.DataFrame) -> pd.DataFrame:
    """Rules by their readable names: the table knows the study's systems only."""
    known = {system_label(rule): _label(rule) for rule in (*RULES, BY_HOST)}
    return table.assign(System=[known.get(name, name) for name in table["System"]])


def _untested(frame: pd.DataFrame) -> pd.DataFrame:
    baseline = frame["system"] == BASELINE
    return frame.assign(p_holm=frame["p_holm"].mask(baseline))


def _differences(compared: pd.DataFrame) -> pd.DataFrame:
    rest = compared[compared["system"] != BASELINE].drop(columns=["low", "high"])
    renamed = rest.rename(columns={"diff_low": "low", "diff_high": "high"})
    return _named(tables.significance_table(renamed))
