from __future__ import annotations

import hashlib
import json

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_reliability import modelstore
from rag_reliability.records import InputError
from rag_reliability.reliability.rerank import rerank
from rag_reliability.retrieval import index as index_module
from rag_reliability.retrieval import index_files
from rag_reliability.retrieval.encode import load_encoder
from rag_reliability.retrieval.index import PartitionedIndex
from rag_reliability.text import sentences

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
    assert about["n_docs"] == 50 and about["dim"] == 8 and about["version"] == 2
    assert about["settings"]["kind"] == "flat"


@pytest.fixture
def saved(tmp_path):
    PartitionedIndex.build(unit(20), some_labels(20)).save(tmp_path)
    return tmp_path


def refuses(folder, match):
    with pytest.raises(InputError, match=match) as error:
        PartitionedIndex.load(folder)
    assert str(folder) in str(error.value) and "\n" not in str(error.value)


def test_a_changed_byte_is_noticed(saved):
    path = saved / "part-0.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))
    refuses(saved, "part-0.npy does not match its checksum")


def test_missing_parts_are_named(saved, tmp_path):
    (saved / "docids-1.npy").unlink()
    refuses(saved, "docids-1.npy is missing")
    refuses(tmp_path / "nowhere", "no index here")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("{", "not JSON"),
        ("[1]", "not an index"),
        ('{"format": "other"}', "not an index"),
        ('{"format": "rag_reliability.partitioned_index", "version": 9}', "version 9"),
        ('{"format": "rag_reliability.partitioned_index", "version": 1}', "version 1"),
        ('{"format": "rag_reliability.partitioned_index", "version": 2}', "corrupt"),
        (
            '{"format": "rag_reliability.partitioned_index", "version": 2, "dim": 8, '
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


def replace_vectors(saved, name, write):
    """Other vectors for the first partition, with a checksum that fits them."""
    write(saved / name)
    digest = hashlib.sha256((saved / name).read_bytes()).hexdigest()
    edit(saved, lambda about: about["partitions"][0]["vectors"].update(file=name, sha256=digest))


def test_another_kind_of_faiss_index_is_refused(saved):
    foreign = faiss.IndexFlatL2(8)
    foreign.add(unit(3))
    replace_vectors(saved, "x.faiss", lambda path: faiss.write_index(foreign, str(path)))
    refuses(saved, "x.faiss is not an inner-product index")


@pytest.mark.parametrize(
    ("array", "match"),
    [
        (unit(20).astype(np.float64), "rows of float32"),
        (unit(20)[0], "rows of float32"),
        (np.asfortranarray(unit(20)), "rows of float32"),
        (unit(20)[:1], "do not fit"),
        (unit(20, 9), "do not fit"),
    ],
    ids=["float64", "one-d", "column by column", "too few", "another dimension"],
)
def test_other_arrays_are_refused(saved, array, match):
    replace_vectors(saved, "x.npy", lambda path: np.save(path, array))
    refuses(saved, match)


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


# ---- one copy of the vectors, in memory or on disk ------------------------------------------


def equal_pools(a, b):
    np.testing.assert_array_equal(a.docids, b.docids)
    np.testing.assert_array_equal(a.sims, b.sims)


def test_vectors_on_disk_are_read_in_blocks_and_kept_there(tmp_path, monkeypatch):
    docs, labels, queries = unit(300), some_labels(300), unit(5, seed=1)
    np.save(tmp_path / "docs.npy", docs)
    monkeypatch.setattr(index_module, "BLOCK_ROWS", 64)
    monkeypatch.setattr(index_files, "_MAPPED", 1)
    mapped = np.load(tmp_path / "docs.npy", mmap_mode="r")
    index = PartitionedIndex.build(mapped, labels, folder=tmp_path / "index")
    index.save(tmp_path / "index")
    loaded = PartitionedIndex.load(tmp_path / "index")
    blocks = [p.engine.block for i in (index, loaded) for p in i._partitions]
    assert all(isinstance(block, np.memmap) for block in blocks)
    want = PartitionedIndex.build(docs, labels).search(queries, 7)
    equal_pools(index.search(queries, 7), want)
    equal_pools(loaded.search(queries, 7), want)
    loaded.save(tmp_path / "index")  # over the very files that it reads
    loaded.save(tmp_path / "copy")
    equal_pools(PartitionedIndex.load(tmp_path / "index").search(queries, 7), want)
    equal_pools(PartitionedIndex.load(tmp_path / "copy").search(queries, 7), want)


def test_an_index_that_is_read_stays_as_it_is_when_another_is_built_in_its_place(tmp_path):
    queries = unit(5, seed=1)
    first = PartitionedIndex.build(unit(50), some_labels(50), folder=tmp_path)
    first.save(tmp_path)
    before = first.search(queries, 5)
    second = PartitionedIndex.build(unit(50, seed=2), some_labels(50), folder=tmp_path)
    equal_pools(first.search(queries, 5), before)
    refuses(tmp_path, "no index here")  # not whole until it is saved
    second.save(tmp_path)
    want = second.search(queries, 5)
    equal_pools(PartitionedIndex.load(tmp_path).search(queries, 5), want)
    first.save(tmp_path)  # its files' names are the second's by now: their rows are not
    equal_pools(PartitionedIndex.load(tmp_path).search(queries, 5), before)
    equal_pools(second.search(queries, 5), want)


def test_a_bad_row_far_down_is_named(monkeypatch):
    docs = unit(100)
    docs[70] *= 2
    monkeypatch.setattr(index_module, "BLOCK_ROWS", 16)
    with pytest.raises(InputError, match="doc_vecs row 70 has norm 2"):
        PartitionedIndex.build(docs, ["a"] * 100)


# ---- clusters and graphs --------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    depth=st.integers(1, 45),
    repeats=st.booleans(),
    kind=st.sampled_from(["flat", "ivf"]),
)
def test_pools_equal_brute_force(seed, depth, repeats, kind):
    """Flat, and IVF that looks into all its clusters: negative similarities and ties included."""
    rng = np.random.default_rng(seed)
    docs = unit(40, 3, seed)
    if repeats:
        docs = docs[rng.integers(0, 8, size=40)]
    labels, queries = some_labels(40, seed), unit(3, 3, seed + 1)
    how = {"kind": kind, "nlist": 3, "nprobe": 3, "smallest": 5}
    pool = PartitionedIndex.build(docs, labels, **how).search(queries, depth)
    sims = np.einsum("qd,nd->qn", queries.astype(np.float64), docs.astype(np.float64))
    for t in range(3):
        own = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        want = [d[sims[t, d] >= -np.sort(-sims[t, d])[:depth][-1]] for d in own]
        want = np.concatenate(want)
        want = want[np.lexsort((want, -sims[t, want]))]
        got = pool.docids[t][pool.docids[t] >= 0]
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(pool.sims[t, : len(got)], sims[t, want])


def recall(found, exact):
    return np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found, exact, strict=True)])


@pytest.fixture(scope="module")
def real(health120):
    """Vectors of the documents' sentences, every fifth, by the default encoder, and of topics."""
    encoder = load_encoder(modelstore.resolve("all-minilm-l6-v2").path)
    parts = [(d.source_type, s) for d in health120.documents for s in sentences(d.content)[::5]]
    vectors = encoder.encode([s for _, s in parts])
    return vectors, [kind for kind, _ in parts], encoder.encode([t.query for t in health120.topics])


@pytest.mark.parametrize(
    ("how", "least"),
    [
        ({"kind": "ivf", "nlist": 10, "nprobe": 4}, 0.85),
        ({"kind": "hnsw", "m": 16, "ef_search": 64}, 0.98),
    ],
    ids=["ivf", "hnsw"],
)
def test_recall_on_real_vectors(real, how, least, tmp_path):
    vectors, labels, queries = real
    exact = PartitionedIndex.build(vectors, labels).search(queries, 5)
    index = PartitionedIndex.build(vectors, labels, smallest=20, **how)
    assert not index.exact and index.labels == PartitionedIndex.build(vectors, labels).labels
    pool = index.search(queries, 5)
    assert least <= recall(pool.docids, exact.docids)
    shared = [np.isin(a, b) for a, b in zip(pool.docids, exact.docids, strict=True)]
    assert np.isin(pool.sims[0][shared[0]], exact.sims[0]).all()  # float64, from the same vectors
    index.save(tmp_path)
    equal_pools(PartitionedIndex.load(tmp_path).search(queries, 5), pool)


def test_all_clusters_are_exact_on_real_vectors(real):
    vectors, labels, queries = real
    exact = PartitionedIndex.build(vectors, labels)
    ivf = PartitionedIndex.build(vectors, labels, kind="ivf", nlist=8, nprobe=8, smallest=20)
    assert exact.exact and not ivf.exact
    for depth in (1, 5, len(vectors)):
        equal_pools(ivf.search(queries, depth), exact.search(queries, depth))


def test_small_partitions_stay_flat():
    docs, labels = unit(60), ["big"] * 50 + ["small"] * 10
    index = PartitionedIndex.build(docs, labels, kind="hnsw", smallest=20)
    assert [type(p.engine).__name__ for p in index._partitions] == ["Approximate", "Flat"]


@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
def test_approximate_parts_are_checked_when_loaded(kind, tmp_path):
    PartitionedIndex.build(unit(60), ["a"] * 60, kind=kind, smallest=1).save(tmp_path)
    other = {"ivf": "hnsw", "hnsw": "ivf"}[kind]
    edit(tmp_path, lambda about: about["settings"].update(kind=other))
    refuses(tmp_path, f"part-0.faiss is not an inner-product index of kind {other}")
    edit(tmp_path, lambda about: about["settings"].update(kind=kind, wings=2))
    refuses(tmp_path, "wings")


@pytest.mark.parametrize("how", [{"kind": "tree"}, {"nprobe": 0}, {"nlist": -1}, {"m": 1}])
def test_bad_settings_are_refused(how):
    with pytest.raises(InputError, match=str(next(iter(how.values())))):
        PartitionedIndex.build(unit(3), ["a"] * 3, **how)
