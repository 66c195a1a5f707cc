"""Which attacked passages the stance rule takes for agreeing with the verified ones.

    rag-reliability attack --data corpus/health120 --threats instructions,hedged,mimicking --out BED
    python benchmarks/attacked_reader.py --data BED [--generator NAME]

Prints, for each kind of passage among those that are read, the share with weight w >= .5, under
the corpus's own labels. An adversarial passage counts in the topic that it is most similar to or
was made for, a true one in the topics that it is relevant to.
"""

from __future__ import annotations

import argparse
import tempfile

import numpy as np
import pandas as pd

from rag_reliability.experiment.ranking import low_tier
from rag_reliability.experiment.study import Study, open_study
from rag_reliability.experiment.threat_evidence import gather
from rag_reliability.experiment.threats import (
    ThreatPlan,
    depth_of,
    judged_topics,
    read_depth,
    settings_of,
)
from rag_reliability.reliability.stance import reference_trust, stance_weights

RULE = "stance_consistent"
MARKS = {"instructed": "with an instruction", "hedged": "hedged", "mimic": "mimicry"}


def weights_of(study: Study) -> pd.DataFrame:
    """Each candidate's weight: columns qid, docno, sim, weight; only those that were read."""
    plan = ThreatPlan(rules=(RULE,))
    settings, qids = settings_of(study, plan), judged_topics(study)
    read = read_depth(plan, settings)
    found = gather(study, qids, plan.rules, window=read, depth=depth_of(plan, settings)).evidence
    trust = reference_trust(found.prior, found.verified & found.valid, found.source)
    stance = np.where(found.valid, found.stance, np.nan)
    weights, _ = stance_weights(stance, trust, settings.stance)
    topic, place = np.nonzero(np.isfinite(stance))
    return pd.DataFrame(
        {
            "qid": np.array(qids)[topic],
            "docno": study.corpus.docnos[found.docids[topic, place]],
            "sim": found.sims[topic, place],
            "weight": weights[topic, place],
        }
    )


def kinds(study: Study, frame: pd.DataFrame) -> pd.Series:
    """Kind of each candidate, None where it does not count in this topic."""
    low, corpus = low_tier(study), study.corpus
    best = frame.sort_values("sim", ascending=False).drop_duplicates("docno")
    home = dict(zip(best["docno"], best["qid"], strict=True))

    def kind(qid: str, docno: str) -> str | None:
        if corpus.documents[corpus.docid[docno]].adversarial:
            made_for, _, mark = docno.partition("~")
            if not mark:
                return "plain lie" if home[docno] == qid else None
            name = next(said for start, said in MARKS.items() if mark.startswith(start))
            return name if made_for == qid else None
        if corpus.qrels.get(qid, {}).get(docno, 0) > 0:
            return "true low-tier" if docno in low else "true high-tier"
        return None

    return pd.Series([kind(q, d) for q, d in zip(frame["qid"], frame["docno"], strict=True)])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--generator", default="qwen2.5-coder-1.5b-instruct")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as out:
        study = open_study({"corpus": args.data, "generator": args.generator, "out": out})
        frame = weights_of(study)
        frame["kind"] = kinds(study, frame)
    agrees = frame.dropna(subset="kind").assign(agrees=lambda f: f["weight"] >= 0.5)
    print(agrees.groupby("kind")["agrees"].agg(["mean", "sum", "size"]).round(2).to_string())


if __name__ == "__main__":
    main()
