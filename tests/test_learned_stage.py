"""Learned priors in a study: nothing that ranks a topic has seen its judgements."""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from rag_reliability.experiment import learned, learned_fits
from rag_reliability.experiment.ranking import Candidates, ranked
from rag_reliability.experiment.study import open_study
from rag_reliability.records import Pool
from rag_reliability.reliability.learning import topic_folds
from rag_reliability.reliability.priors import load_priors
from rag_reliability.reporting.figures_learning import learned_priors

from .conftest import ROOT


def words(texts, dim=64):
    """Texts as unit vectors of hashed word counts: a plain encoder that needs no model."""
    vectors = np.zeros((len(texts), dim), dtype=np.float32)
    for row, text in enumerate(texts):
        for word in text.lower().split():
            vectors[row, zlib.crc32(word.encode()) % dim] += 1
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    out = tmp_path_factory.mktemp("learned")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        yield open_study({"config_file": "configs/paper.yaml", "out": str(out), "n_resamples": 100})


@pytest.fixture(scope="module")
def found(study) -> Candidates:
    corpus = study.corpus
    doc_vecs = words([d.content for d in corpus.documents])
    query_vecs = words([t.query for t in corpus.topics])
    docids = np.tile(np.arange(len(corpus.documents)), (len(corpus.topics), 1))
    pool = Pool(docids, query_vecs.astype(np.float64) @ doc_vecs.T)
    return Candidates(corpus, corpus.source_types, doc_vecs, query_vecs, pool)


def all_rankings(study, found):
    judged = learned_fits.judged_pairs(found)
    return {
        (name, *about.values()): ranked(candidates, system, 10).docids
        for name, about, candidates, system in learned.ways(study, found, judged)
    }


def test_judged_pairs_by_hand(found):
    judged, corpus = learned_fits.judged_pairs(found), found.corpus
    assert len(judged.topic) == 121
    pair = {
        (corpus.topics[t].qid, corpus.docnos[d]): i
        for i, (t, d) in enumerate(zip(judged.topic, judged.docid, strict=True))
    }
    lie = pair["q002", "h002"]  # written to mislead
    confused = pair["q010", "h009"]  # honest, but asserts a false claim of the topic
    assert not judged.truthful[[lie, confused]].any() and not judged.useful[[lie, confused]].any()
    # One document is judged for two topics: no use to its own, some to the other.
    both = [pair["q010", "h027"], pair["q001", "h027"]]
    assert judged.useful[both].tolist() == [False, True]
    at = pair["q001", "h004"]
    expected = found.pool.sims[judged.topic[at], judged.docid[at]]
    assert judged.sim[at] == pytest.approx(expected, abs=1e-6)


def test_type_priors_of_one_topic_recounted(study, found):
    judged, known = learned_fits.judged_pairs(found), study.priors.known_types
    fold = learned_fits.folds_of(study, found)
    np.testing.assert_array_equal(fold, topic_folds(10, 5, 7))
    rows = learned_fits.learned_rows(found, judged, "useful", known, fold, "type")
    types = found.partition[judged.docid]
    for topic in (0, 7):
        other = fold[judged.topic] != fold[topic]
        for kind in known:
            own = judged.useful[other & (types == kind)]
            expected = (own.sum() + 0.5) / (len(own) + 1)
            np.testing.assert_allclose(rows[topic, found.partition == kind], expected)


def test_a_topics_own_judgements_never_change_its_own_ranking(study, found):
    before, corpus = all_rankings(study, found), found.corpus
    topic = 3
    qid = corpus.topics[topic].qid
    flipped = {docno: 2 - label for docno, label in corpus.qrels[qid].items()}
    changed = replace(found, corpus=replace(corpus, qrels={**corpus.qrels, qid: flipped}))
    after = all_rankings(study, changed)
    assert before.keys() == after.keys() and len(before) == 14
    moved = set()
    for way, rows in before.items():
        np.testing.assert_array_equal(rows[topic], after[way][topic], err_msg=str(way))
        if (rows != after[way]).any():
            moved.add(way[1:2])
    assert ("useful",) in moved  # its judgements do count for other topics


def test_hosts_not_met_elsewhere_have_their_types_prior(study, found):
    judged, known = learned_fits.judged_pairs(found), study.priors.known_types
    fold = np.arange(10)
    by_type, by_host = (
        learned_fits.learned_rows(found, judged, "truthful", known, fold, by)
        for by in ("type", "host")
    )
    for topic in range(10):
        met = set(found.corpus.sources[judged.docid[judged.topic != topic]])
        new = np.array([s not in met for s in found.corpus.sources])
        np.testing.assert_array_equal(by_host[topic, new], by_type[topic, new])
    assert (by_host != by_type).any()


def test_votes_are_the_sides_that_types_take(study, found):
    known = study.priors.known_types
    votes = learned_fits.type_votes(found.corpus, found.partition, known)
    assert votes.shape == (10, 6)
    # The first topic's only AI-generated text on its first claim is the adversarial one.
    claims = [
        mark
        for d in found.corpus.documents
        if d.source_type == "ai_generated"
        for mark in d.claims
        if mark.startswith("q001-c1:")
    ]
    assert claims == ["q001-c1:false"] and votes[0, known.index("ai_generated")] == -1


def test_estimates_and_figure(study, found):
    judged = learned_fits.judged_pairs(found)
    frame = learned.prior_estimates(study, found, judged)
    assert list(frame.columns) == ["source", "source_type", "prior", "low", "high", "n", "fold"]
    assert frame["prior"].between(0, 1, inclusive="neither").all()
    measured = frame.dropna(subset="low")
    assert ((measured["low"] <= measured["prior"]) & (measured["prior"] <= measured["high"])).all()
    useful = frame[(frame["source"] == "useful") & (frame["fold"] == learned.WHOLE)]
    assert useful["n"].sum() == 121
    folds = frame[(frame["source"] == "useful") & (frame["fold"] >= 0)]
    assert (
        folds.groupby("source_type")["n"].sum().eq(4 * useful.set_index("source_type")["n"]).all()
    )  # each pair is in four of five fits
    assert "ai_generated" not in set(frame[frame["source"] == "expertqa"]["source_type"])
    figure = learned_priors(frame)
    FigureCanvasAgg(figure).draw()
    labels = [t.get_text() for t in figure.legends[0].get_texts()]
    assert labels[0] == "Hand-set λ" and len(labels) == 5
    assert figure.axes[0].get_xticklabels()[0].get_text() == "Peer-reviewed"


def test_figure_of_unknown_sources_and_types():
    rows = [("mine", "pamphlet", 0.4, np.nan, np.nan, -1)]
    columns = ["source", "source_type", "prior", "low", "high", "fold"]
    figure = learned_priors(pd.DataFrame(rows, columns=columns))
    FigureCanvasAgg(figure).draw()
    assert figure.axes[0].get_xticklabels()[0].get_text() == "pamphlet"


def test_measured_spreads_fit_a_study():
    hand, measured = (
        load_priors(ROOT / "configs/priors.yaml"),
        load_priors(ROOT / learned_fits.EXPERTS),
    )
    assert measured.known_types == hand.known_types
    for spread in ("none", "current"):
        assert measured.table(spread) == hand.table(spread)
    for kind in measured.known_types:
        low, mean, high = (measured.table(f"expertqa{s}")[kind] for s in ("_low", "", "_high"))
        assert low <= mean <= high
        strict, lenient = (measured.table(f"expertqa_{s}")[kind] for s in ("strict", "lenient"))
        assert strict <= mean <= lenient
