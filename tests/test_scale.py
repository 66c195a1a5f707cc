"""Encoding on Dask workers: one of them killed midway, the work taken up again."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time

import numpy as np
import pytest

from rag_reliability.experiment.shards import load_shards, plan, read_shard
from rag_reliability.modelstore import resolve
from rag_reliability.records import InputError
from rag_reliability.retrieval.encode import load_encoder
from rag_reliability.scale.encode import encode_corpus, on_workers

MODEL = "all-minilm-l6-v2"
ROWS = [
    {"docno": f"d{i:03d}", "title": f"Title {i}", "text": f"Of {i} people {i % 9} slept badly."}
    for i in range(200)
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    lines = [json.dumps(row) + "\n" for row in ROWS]
    lines.insert(50, "\n")  # a blank line holds no document
    (folder / "documents.jsonl").write_text("".join(lines))
    return folder


@pytest.fixture(scope="module")
def client():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            memory_limit=0,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def kill_one(client, out):
    """Kill a worker by signal as soon as one shard is whole."""
    pids = sorted(client.run(os.getpid).values())
    killed = []

    def wait_and_kill():
        while not list(out.glob("shard-*.json")):
            time.sleep(0.005)
        os.kill(pids[0], signal.SIGKILL)
        killed.append((pids[0], len(list(out.glob("shard-*.json")))))

    thread = threading.Thread(target=wait_and_kill, daemon=True)
    thread.start()
    return thread, killed


def test_shards_hold_the_corpus_though_a_worker_is_killed(client, corpus, tmp_path):
    out = tmp_path / "vectors"
    thread, killed = kill_one(client, out)
    options = {"encoder": MODEL, "dtype": "float32", "size": 10, "progress": False}
    assert encode_corpus(corpus, out, client, **options) == 200
    thread.join(timeout=10)
    ((pid, whole),) = killed
    assert whole < 20  # midway
    assert pid not in client.run(os.getpid).values()
    docnos = [docno for names, _ in load_shards(out) for docno in names]
    assert docnos == [row["docno"] for row in ROWS]
    vectors = np.concatenate([vectors for _, vectors in load_shards(out)])
    mine = load_encoder(resolve(MODEL).path).encode([f"{r['title']}\n{r['text']}" for r in ROWS])
    np.testing.assert_allclose(vectors, mine, atol=1e-6)
    assert not [p for p in out.iterdir() if ".tmp" in p.name]

    # a second run makes what is missing, and nothing else
    made = {p.name: p.stat().st_mtime_ns for p in out.glob("shard-*")}
    (out / "shard-000003.json").unlink()
    assert encode_corpus(corpus, out, client, **options) == 200
    again = {p.name for p in out.glob("shard-*") if p.stat().st_mtime_ns != made[p.name]}
    assert again == {"shard-000003.json", "shard-000003.npy"}


def test_a_damaged_or_unfinished_folder_is_not_loaded(client, corpus, tmp_path):
    with pytest.raises(InputError, match=r"manifest\.json: missing or damaged"):
        list(load_shards(tmp_path))
    with pytest.raises(InputError, match="holds neither documents"):
        encode_corpus(tmp_path, tmp_path / "out", client, encoder=MODEL, dtype="float32")


def test_shards_cover_the_file_line_by_line(corpus):
    shards = list(plan(corpus, 60))
    assert [s.rows for s in shards] == [60, 60, 60, 20]
    assert [s.line for s in shards] == [1, 62, 122, 182]  # the blank line counts as a line
    assert [d for s in shards for d in read_shard(s)[0]] == [row["docno"] for row in ROWS]
    assert sum(s.size for s in shards) == (corpus / "documents.jsonl").stat().st_size


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"_id": "b", "text": " "}', r"corpus\.jsonl:2: field 'text': expected text"),
        ('{"text": "x"}', r"corpus\.jsonl:2: field '_id': expected text"),
        ("[1]", r"corpus\.jsonl:2: field '_id'"),
        ("{", r"corpus\.jsonl:2: not JSON"),
    ],
)
def test_a_bad_document_is_named_by_file_and_line(tmp_path, line, message):
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "fine"}\n' + line + "\n")
    (shard,) = plan(tmp_path)
    with pytest.raises(InputError, match=message):
        read_shard(shard)


def test_a_file_that_changed_is_refused(tmp_path):
    file = tmp_path / "corpus.jsonl"
    file.write_text('{"_id": "a", "text": "fine"}\n')
    (shard,) = plan(tmp_path)
    file.write_text('{"_id": "a", "text": "mine"}\n')
    with pytest.raises(InputError, match="changed while it was being encoded"):
        read_shard(shard)


def test_few_tasks_are_under_way_and_each_result_comes_once(client):
    asked = []

    def calls():
        for i in range(40):
            asked.append(i)
            yield (i,)

    results = on_workers(client, abs, calls())
    first = next(results)
    assert len(asked) <= 8  # three for each of two workers, and one or two more
    assert sorted([first, *results]) == list(range(40))


def test_workers_that_join_later_get_their_share():
    from distributed import Client, LocalCluster

    asked = []

    def calls():
        for i in range(60):
            asked.append(i)
            yield (i,)

    options = {"processes": False, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(n_workers=1, **options) as cluster, Client(cluster) as client:
        results = on_workers(client, abs, calls())
        first = next(results)
        assert len(asked) == 3
        cluster.scale(4)
        client.wait_for_workers(4, timeout=60)
        second = next(results)
        assert len(asked) >= 11  # three for each of four, but for those that are done
        assert sorted([first, second, *results]) == list(range(60))


def test_old_and_new_shards_are_not_loaded_together(client, tmp_path):
    """A folder that was whole, and of which half is made anew from other lines."""
    file, out = tmp_path / "corpus.jsonl", tmp_path / "vectors"
    rows = [json.dumps({"_id": f"d{i}", "text": f"text {i}"}) + "\n" for i in range(4)]
    file.write_text("".join(rows))
    options = {"encoder": MODEL, "dtype": "float32", "size": 2, "progress": False}
    assert encode_corpus(tmp_path, out, client, **options) == 4
    assert len(list(load_shards(out))) == 2
    file.write_text("".join([*rows[:2], rows[2].replace("text 2", "other"), "{\n"]))
    with pytest.raises(InputError, match=r"corpus\.jsonl:4: not JSON"):
        encode_corpus(tmp_path, out, client, **options)
    with pytest.raises(InputError, match="encode it first"):
        list(load_shards(out))
