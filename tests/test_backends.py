"""Milvus gives the pools of the flat index; a study takes either, and sweeps tables over them."""

from __future__ import annotations

import sys
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

from rag_reliability.config import load_config
from rag_reliability.experiment import encoding
from rag_reliability.experiment import ranking as ranking_stages
from rag_reliability.experiment.backends import index_settings
from rag_reliability.experiment.exploring import Session
from rag_reliability.experiment.interactive import find
from rag_reliability.experiment.ranking import (
    System,
    index_stage,
    load_candidates,
    ranked,
    similarity_system,
    type_prior,
)
from rag_reliability.experiment.scoring import run_of, score_run
from rag_reliability.experiment.study import open_study
from rag_reliability.experiment.table_sweeps import sweep_tables, table_rankings
from rag_reliability.records import InputError
from rag_reliability.reliability.priors import temper
from rag_reliability.retrieval import milvus, milvus_server
from rag_reliability.retrieval.encode import SentenceTransformerEncoder
from rag_reliability.retrieval.index import PartitionedIndex

from .conftest import ROOT

LABELS = ("blog", "gov'ernment", 'pe"er\\', "é")


@pytest.fixture(scope="module")
def lite(tmp_path_factory):
    """A file of Milvus Lite, for all collections of this module."""
    pytest.importorskip("pymilvus", reason="the extra milvus is not installed")
    pytest.importorskip("milvus_lite", reason="the extra milvus is not installed")
    return str(tmp_path_factory.mktemp("milvus") / "docs.db")


@pytest.fixture(scope="module")
def docs():
    """400 documents, many of them equal, of four types with names that need quoting."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(400, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[100:160] = vectors[100]
    labels = np.array(LABELS)[rng.integers(0, 4, size=400)]
    return np.array([f"d'{i}\"" for i in range(400)]), labels, vectors


def opened(lite, fingerprint, **how):
    given = {"dim": 16, "labels": LABELS, **how}
    return milvus.MilvusIndex.open(lite, "test", fingerprint=fingerprint, **given)


@pytest.fixture(scope="module")
def loaded(lite, docs):
    index = opened(lite, "loaded")
    assert index.load(*docs, shard=150) == 400
    return index


def equal(a, b):
    np.testing.assert_array_equal(a.docids, b.docids)
    np.testing.assert_array_equal(a.sims, b.sims)


@pytest.mark.parametrize("depth", [1, 7, 30, 400])
def test_milvus_gives_the_pool_of_the_flat_index(loaded, docs, depth, monkeypatch):
    """Ids and similarities to the last bit, ties and negative similarities among them."""
    _, labels, vectors = docs
    monkeypatch.setattr(milvus_server, "TOPICS", 3)
    monkeypatch.setattr(milvus_server, "BYTES", 16 * 4 * 50)
    queries = np.concatenate([vectors[100:101], -vectors[100:101], vectors[:5]])
    want = PartitionedIndex.build(vectors, labels).search(queries, depth)
    assert (want.sims[np.isfinite(want.sims)] < 0).any() == (depth == 400)
    equal(loaded.search(queries, depth), want)
    assert (loaded.n_docs, loaded.labels) == (400, tuple(sorted(LABELS)))


def test_loading_again_writes_nothing_and_another_process_finds_it(lite, loaded, docs):
    assert loaded.load(*docs, shard=150) == 0
    again = opened(lite, "loaded")
    assert again.name == loaded.name and again.n_docs == 400


def test_a_broken_load_goes_on_and_doubles_nothing(lite, docs, monkeypatch):
    docnos, labels, vectors = docs
    index, calls = opened(lite, "broken"), []
    write = index.collection.client.upsert

    def breaks(name, data):
        calls.append(len(data))
        if len(calls) == 3:
            write(name, data[:50])  # some of the shard arrives
            raise ConnectionError("cable")
        return write(name, data)

    monkeypatch.setattr(index.collection.client, "upsert", breaks)
    with pytest.raises(ConnectionError):
        index.load(*docs, shard=100)
    assert index.n_docs == 250
    monkeypatch.undo()
    assert index.load(*docs, shard=100) == 200  # the two whole shards are passed over
    want = PartitionedIndex.build(vectors, labels).search(vectors[:3], 5)
    equal(index.search(vectors[:3], 5), want)
    # Written again under another type: moved, not doubled.
    index.upsert(docnos[:50], np.arange(50), ["é"] * 50, vectors[:50])
    labels = np.concatenate([["é"] * 50, labels[50:]])
    assert index.n_docs == 400
    want = PartitionedIndex.build(vectors, labels).search(vectors[:3], 5)
    equal(index.search(vectors[:3], 5), want)


def test_other_vectors_never_share_a_collection(lite, loaded):
    names = {opened(lite, "loaded", dim=17).name, opened(lite, "x").name, loaded.name}
    assert len(names) == 3
    with pytest.raises(InputError, match="is empty: load it"):
        opened(lite, "x").search(np.eye(1, 16, dtype=np.float32), 1)


def one_line(error):
    assert "\n" not in str(error.value) and "Traceback" not in str(error.value)


def test_what_cannot_be_written_is_refused(loaded, docs):
    docnos, labels, vectors = (column[:2] for column in docs)
    for bad, match in (
        ((docnos, [0, 1], ["blog", "podcast"], vectors), "'podcast' is not one"),
        ((docnos, [0, 1], labels, vectors * 2), "row 0 has norm 2"),
        ((docnos, [0, 1], labels, vectors.astype(float)), "must be float32"),
        ((docnos, [0], labels, vectors), "need a docno, docid and label each"),
        ((docnos, [0, 1], labels, vectors[:, :8]), "16 dimensions"),
        ((["d" * 2000, "e"], [0, 1], labels, vectors), "Milvus at .*docno"),
    ):
        with pytest.raises(InputError, match=match) as error:
            loaded.upsert(*bad)
        one_line(error)
    with pytest.raises(ValueError, match="depth"):
        loaded.search(vectors, 0)
    assert loaded.n_docs == 400


def test_pools_deeper_than_the_server_gives_are_refused(loaded, docs, monkeypatch):
    monkeypatch.setattr(milvus, "MOST", 10)
    with pytest.raises(InputError, match=r"a pool of 24 documents of .*: Milvus gives 10"):
        loaded.search(docs[2][:1], 20)


@pytest.mark.parametrize(
    ("uri", "match"),
    [
        ("http://127.0.0.1:1", "Milvus at http://127.0.0.1:1: .*connect"),
        ("index", "expected http"),
    ],
)
def test_no_server_is_one_line(lite, uri, match):
    with pytest.raises(InputError, match=match) as error:
        opened(uri, "x", timeout=1)
    one_line(error)


def test_a_foreign_collection_is_refused_and_the_connection_closed(lite, monkeypatch):
    from pymilvus import MilvusClient

    own = opened(lite, "foreign")
    own.collection.client.drop_collection(own.name)
    own.collection.client.create_collection(own.name, dimension=16)
    closed, close = [], MilvusClient.close

    def closing(client):
        closed.append(client)
        close(client)

    monkeypatch.setattr(MilvusClient, "close", closing)
    with pytest.raises(InputError, match="is not ours"):
        opened(lite, "foreign")
    assert len(closed) == 1 and closed[0] is not own.collection.client


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    with pytest.raises(InputError, match=r"pip install 'rag-reliability\[milvus\]'"):
        opened("x.db", "x")


# ---- in a study ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def studies(three_topics, tmp_path_factory):
    """``studies(**parameters)``: the study of three topics, sharing one cache."""
    folder = tmp_path_factory.mktemp("studies")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        patch.setenv("RAG_RELIABILITY_CACHE", str(folder / "cache"))

        def study(out="a", **parameters):
            given = {"corpus": str(three_topics), "out": str(folder / out), **parameters}
            return open_study(given, say=lambda _: None)

        yield study


def test_a_study_searches_in_milvus(studies, lite, monkeypatch):
    here, there = studies(), studies("b", backend="milvus", milvus_uri=lite)
    a, b = load_candidates(here), load_candidates(there)
    equal(a.pool, b.pool)
    np.testing.assert_array_equal(a.doc_vecs, b.doc_vecs)
    query = "Does vitamin C prevent colds?"
    assert find(here, query, "source_aware") == find(there, query, "source_aware")
    explored = Session(here).bench(query=query).documents

    def unread(folder):
        raise AssertionError("the faiss index, which lies there as well, was searched")

    monkeypatch.setattr(PartitionedIndex, "load", unread)
    assert Session(there).bench(query=query).documents == explored


def test_another_kind_of_index_encodes_nothing_anew(studies, monkeypatch):
    flat = index_stage(studies())
    read, encode = [], SentenceTransformerEncoder.encode

    def counting(encoder, texts, **how):
        read.extend(texts)
        return encode(encoder, texts, **how)

    monkeypatch.setattr(SentenceTransformerEncoder, "encode", counting)
    study = studies("e", index_kind="ivf")
    ivf = index_stage(study)
    assert read == [topic.query for topic in study.corpus.topics]
    names = {path.relative_to(flat) for path in flat.rglob("*")}
    assert names == {path.relative_to(ivf) for path in ivf.rglob("*")}
    for name in ("doc_vecs.npy", "query_vecs.npy", "part-0.npy"):
        assert (ivf / name).read_bytes() == (flat / name).read_bytes()
    assert not list((study.store.cache / "vectors").glob("*.npy*"))  # nothing is left at work

    # Stopped when all is encoded, and nothing recorded yet.
    coarse, stopped = studies("f", encoder_dtype="bfloat16"), len(read)
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(encoding, "_link", lambda *_: 1 / 0)
        index_stage(coarse)
    assert len(read) - stopped == len(study.corpus.documents)
    index_stage(coarse)
    assert read[stopped + len(study.corpus.documents) :] == read[:stopped]


@pytest.mark.parametrize(
    ("given", "kind", "expected"),
    [
        ({}, "Flat", {"kind": "flat"}),
        ({"index_kind": "ivf", "index_nprobe": 3}, "Approximate", {"kind": "ivf", "nprobe": 3}),
        ({"index_kind": "hnsw", "index_m": 8}, "Approximate", {"kind": "hnsw", "m": 8}),
    ],
)
def test_the_config_names_the_kind_of_index(docs, given, kind, expected):
    how = index_settings(load_config(**given))
    index = PartitionedIndex.build(docs[2], docs[1], smallest=10, **how)
    assert {type(p.engine).__name__ for p in index._partitions} == {kind}
    assert expected.items() <= asdict(index.settings).items()


def test_milvus_without_an_address_is_refused(studies):
    with pytest.raises(InputError, match="needs milvus_uri"):
        load_candidates(studies("c", backend="milvus"))
    with pytest.raises(InputError, match="set MILVUS_TOKEN"):
        studies("d", milvus_uri="https://me:secret@cluster")


TABLES = [0.0, 0.5, 1.0, 4.0]


def test_tables_at_once_rank_as_each_alone(studies):
    study = studies()
    found = load_candidates(study)
    tables = [temper(study.table, gamma) for gamma in TABLES]
    for window in (None, 15):
        got = table_rankings(study, found, tables, 15, window)
        for table, ranking in zip(tables, got, strict=True):
            want = ranked(found, System(type_prior(study, table), window), 15)
            equal_rankings(ranking, want)


def equal_rankings(a, b):
    assert a.qids == b.qids
    np.testing.assert_array_equal(a.docids, b.docids)
    np.testing.assert_array_equal(a.scores, b.scores)


def test_metrics_of_tables_are_those_of_ranx(studies):
    study = studies()
    found = load_candidates(study)
    tables = {str(gamma): temper(study.table, gamma) for gamma in TABLES}
    got = sweep_tables(study, tables)
    before = run_of(ranked(found, similarity_system(study), 15), study.corpus.docnos)
    want = []
    for name, table in tables.items():
        run = run_of(ranked(found, System(type_prior(study, table), None), 15), study.corpus.docnos)
        frame = score_run(study, run, before, study.config.k)
        want.append(frame[frame["metric"].isin(set(got["metric"]))].assign(table=name))
    keys = ["table", "qid", "metric"]
    left, right = (f.set_index(keys)["value"].sort_index() for f in (got, pd.concat(want)))
    pd.testing.assert_series_equal(left, right, check_dtype=False)
    assert left.groupby("metric").nunique().max() > 1  # tables differ, so the test can fail
    numbered = sweep_tables(study, list(tables.values()), found=found)
    assert numbered["table"].tolist() == [i for _ in range(3) for i in range(4) for _ in range(3)]


def test_a_window_deeper_than_the_studys_pool_is_searched_as_deep(studies, monkeypatch):
    """A pool of one of each type takes other documents for the three most similar."""
    monkeypatch.setattr(ranking_stages, "RECALL_DEPTH", 1)
    study = studies(k=1, expansion=1)
    tables = [dict.fromkeys(study.table, 0.01) | {kind: 1.0} for kind in study.table]
    deep, shallow = load_candidates(study, 120), load_candidates(study)
    assert shallow.pool.docids.shape[1] == 6
    right, wrong = (
        [r.docids.tolist() for r in table_rankings(study, found, tables, 1, 3)]
        for found in (deep, shallow)
    )
    assert right != wrong
    pd.testing.assert_frame_equal(
        sweep_tables(study, tables, window=3), sweep_tables(study, tables, found=deep, window=3)
    )
    with pytest.raises(InputError, match="window = 3, but the candidates hold only 1 of 'ai_gene"):
        sweep_tables(study, tables, found=shallow, window=3)
    assert len(sweep_tables(study, tables, found=shallow, window=1)) == 6 * 3 * 3


def test_tables_that_lack_a_type_are_refused(studies):
    with pytest.raises(InputError, match="has no prior"):
        sweep_tables(studies(), [{"blog": 0.5}])
    with pytest.raises(InputError, match="no prior tables"):
        sweep_tables(studies(), [])
