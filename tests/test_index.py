from __future__ import annotations

import json

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_reliability.records import InputError
from rag_reliability.reliability.rerank import rerank
from rag_reliability.retrieval.index import PartitionedIndex

TYPES = np.array(["ai_generated", "blog", "government", "peer_reviewed"])


def unit(n, dim=8, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(n, dim))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def some_labels(n, seed=0):
    return np.random.default_rng(seed).choice(TYPES, size=n)


def brute_sims(queries, docs):
    return queries.astype(np.float64) @ docs.astype(np.float64).T


def test_each_partition_gives_its_own_nearest():
    docs, labels, queries = unit(60), some_labels(60), unit(4, seed=1)
    pool = PartitionedIndex.build(docs, labels).search(queries, 3)
    sims = brute_sims(queries, docs)
    assert pool.docids.shape == (4, 12)
    for t in range(4):
        expected = set()
        for label in TYPES:
            own = np.flatnonzero(labels == label)
            expected |= set(own[np.argsort(-sims[t, own])[:3]].tolist())
        assert set(pool.docids[t].tolist()) == expected
        np.testing.assert_allclose(pool.sims[t], sims[t, pool.docids[t]], atol=1e-12)
        assert (np.diff(pool.sims[t]) <= 0).all()


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    priors=st.lists(st.integers(1, 64), min_size=4, max_size=4),
    k=st.integers(1, 6),
    window=st.one_of(st.none(), st.integers(6, 20)),
    repeats=st.booleans(),
)
def test_pool_is_exact_for_any_prior_table(seed, priors, k, window, repeats):
    """Top k from the pool equals ranking every document, ties by docno and window included."""
    rng = np.random.default_rng(seed)
    docs = unit(40, seed=seed)
    if repeats:  # many exact duplicates: ties at every partition's cut
        docs = docs[rng.integers(0, 12, size=40)]
    labels, queries = some_labels(40, seed), unit(3, seed=seed + 1)
    docnos = rng.permutation([f"d{i:02d}" for i in range(40)])
    table = dict(zip(TYPES, priors, strict=True))
    prior = np.array([table[label] / 64 for label in labels])
    index = PartitionedIndex.build(docs, labels)
    qids = ["a", "b", "c"]
    pool = index.search(queries, max(k, window or 0))
    everything = index.search(queries, len(docs))
    assert (everything.docids >= 0).all() and everything.docids.shape == (3, 40)
    got = rerank(pool, prior, qids, docnos, k, window=window)
    want = rerank(everything, prior, qids, docnos, k, window=window)
    np.testing.assert_array_equal(got.docids, want.docids)
    np.testing.assert_array_equal(got.scores, want.scores)
    assert index.is_exact_for(prior)


def test_brute_force_over_all_documents_agrees():
    """The same claim without the index on the other side."""
    docs, labels, queries = unit(300, 16), some_labels(300), unit(20, 16, seed=5)
    prior = np.array([0.3, 0.5, 0.9, 0.95])[np.searchsorted(TYPES, labels)]
    docnos = [f"d{i:03d}" for i in range(300)]
    pool = PartitionedIndex.build(docs, labels).search(queries, 5)
    got = rerank(pool, prior, [str(i) for i in range(20)], docnos, 5)
    scores = np.maximum(brute_sims(queries, docs), 0) * prior
    np.testing.assert_array_equal(got.docids, np.argsort(-scores, axis=1)[:, :5])


def test_ties_with_a_partitions_last_are_kept():
    docs = np.repeat(unit(2), 30, axis=0)
    pool = PartitionedIndex.build(docs, ["blog"] * 60).search(docs[:1], 2)
    assert sorted(pool.docids[0].tolist()) == list(range(30))


def test_similarities_do_not_depend_on_the_number_of_topics():
    docs, queries = unit(500, 64), unit(50, 64, seed=2)
    index = PartitionedIndex.build(docs, some_labels(500))
    together = index.search(queries, 4)
    for t in (0, 17, 49):
        alone = index.search(queries[t : t + 1], 4)
        np.testing.assert_array_equal(alone.docids[0], together.docids[t])
        np.testing.assert_array_equal(alone.sims[0], together.sims[t])


def test_rows_are_padded_where_partitions_tie_differently():
    base = unit(3, seed=3)
    docs = np.concatenate([np.repeat(base[:1], 5, axis=0), base[1:]])
    pool = PartitionedIndex.build(docs, ["blog"] * 7).search(base[:2], 1)
    assert pool.docids.shape == (2, 5)
    assert (pool.docids[1, 1:] == -1).all() and np.isneginf(pool.sims[1, 1:]).all()


def test_exactness_needs_one_prior_for_each_partition():
    index = PartitionedIndex.build(unit(4), ["a", "a", "b", "b"])
    assert index.is_exact_for(np.array([0.5, 0.5, 0.9, 0.9]))
    assert not index.is_exact_for(np.array([0.5, 0.6, 0.9, 0.9]))
    assert index.labels == ("a", "b") and index.n_docs == 4 and index.dim == 8


def test_saved_index_loads_and_searches_alike(tmp_path):
    docs, labels, queries = unit(50), some_labels(50), unit(5, seed=1)
    index = PartitionedIndex.build(docs, labels)
    index.save(tmp_path / "index")
    index.save(tmp_path / "index")  # over itself
    loaded = PartitionedIndex.load(tmp_path / "index")
    a, b = index.search(queries, 5), loaded.search(queries, 5)
    np.testing.assert_array_equal(a.docids, b.docids)
    np.testing.assert_array_equal(a.sims, b.sims)
    about = json.loads((tmp_path / "index" / "index.json").read_text())
    assert about["n_docs"] == 50 and about["dim"] == 8 and about["version"] == 1


@pytest.fixture
def saved(tmp_path):
    PartitionedIndex.build(unit(20), some_labels(20)).save(tmp_path)
    return tmp_path


def refuses(folder, match):
    with pytest.raises(InputError, match=match) as error:
        PartitionedIndex.load(folder)
    assert str(folder) in str(error.value) and "\n" not in str(error.value)


def test_a_changed_byte_is_noticed(saved):
    path = saved / "part-0.faiss"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))
    refuses(saved, "part-0.faiss does not match its checksum")


def test_missing_parts_are_named(saved, tmp_path):
    (saved / "part-1.npy").unlink()
    refuses(saved, "part-1.npy is missing")
    refuses(tmp_path / "nowhere", "no index here")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("{", "not JSON"),
        ("[1]", "not an index"),
        ('{"format": "other"}', "not an index"),
        ('{"format": "rag_reliability.partitioned_index", "version": 9}', "version 9"),
        ('{"format": "rag_reliability.partitioned_index", "version": 1}', "corrupt"),
        (
            '{"format": "rag_reliability.partitioned_index", "version": 1, "dim": 8, '
            '"n_docs": 0, "partitions": []}',
            "do not fit",
        ),
    ],
)
def test_foreign_or_broken_description_is_refused(saved, text, match):
    (saved / "index.json").write_text(text)
    refuses(saved, match)


def edit(saved, change):
    path = saved / "index.json"
    about = json.loads(path.read_text())
    change(about)
    path.write_text(json.dumps(about))


def test_description_that_does_not_fit_the_parts_is_refused(saved):
    edit(saved, lambda about: about["partitions"].pop())
    refuses(saved, "do not fit")


def test_names_outside_the_folder_are_not_read(saved):
    edit(saved, lambda about: about["partitions"][0]["docids"].update(file="../../etc/passwd"))
    refuses(saved, "passwd is missing")


def test_another_kind_of_faiss_index_is_refused(saved):
    import hashlib

    foreign = faiss.IndexFlatL2(8)
    foreign.add(unit(3))
    faiss.write_index(foreign, str(saved / "part-0.faiss"))
    digest = hashlib.sha256((saved / "part-0.faiss").read_bytes()).hexdigest()
    edit(saved, lambda about: about["partitions"][0]["vectors"].update(sha256=digest))
    refuses(saved, "not a flat inner-product")


@pytest.mark.parametrize(
    "vectors",
    [
        unit(3).astype(np.float64),
        unit(3)[0],
        unit(3) * np.float32(1.1),
        np.full((3, 8), np.nan, dtype=np.float32),
        np.zeros((3, 0), dtype=np.float32),
    ],
    ids=["float64", "one-d", "not unit", "nan", "no dims"],
)
def test_bad_vectors_are_refused(vectors):
    with pytest.raises(InputError):
        PartitionedIndex.build(vectors, ["a"] * 3)
    with pytest.raises(InputError):
        PartitionedIndex.build(unit(3), ["a"] * 3).search(vectors, 1)


def test_bad_sizes_are_refused():
    with pytest.raises(InputError):
        PartitionedIndex.build(unit(3), ["a"] * 2)
    with pytest.raises(InputError):
        PartitionedIndex.build(unit(0), [])
    index = PartitionedIndex.build(unit(3), ["a"] * 3)
    with pytest.raises(InputError, match="5 dimensions"):
        index.search(unit(1, 5), 1)
    with pytest.raises(ValueError, match="depth"):
        index.search(unit(1), 0)


def test_the_index_keeps_no_hold_on_the_callers_array():
    docs = unit(5)
    index = PartitionedIndex.build(docs, ["a"] * 5)
    before = index.search(unit(1, seed=9), 2)
    docs[:] = 0
    np.testing.assert_array_equal(index.search(unit(1, seed=9), 2).sims, before.sims)
