"""The stage store: whole or absent, reused only on this machine's own evidence."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rag_reliability import artefacts, cache
from rag_reliability.artefacts import (
    Store,
    atomic_write_bytes,
    atomic_write_text,
    cache_root,
    run_lock,
    sha256_file,
    sha256_tree,
    stage_key,
)
from rag_reliability.cli import main
from rag_reliability.files import locked
from rag_reliability.records import InputError

META = {"inputs": {"k": 5}}
OUTPUTS = ("runs/a.trec", "index")


class Builder:
    """A real stage that counts how often it was asked to compute."""

    def __init__(self, text: str = "one") -> None:
        self.text, self.calls = text, 0

    def __call__(self, folder: Path) -> None:
        self.calls += 1
        (folder / "runs").mkdir()
        (folder / "runs" / "a.trec").write_text(self.text)
        (folder / "index" / "deep").mkdir(parents=True)
        (folder / "index" / "deep" / "vectors.bin").write_bytes(self.text.encode() * 3)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def store(tmp_path: Path, said: list[str]) -> Store:
    return Store(tmp_path / "run", tmp_path / "cache", say=said.append, wait=0.3)


def key_of(**inputs: object) -> str:
    return stage_key("index", inputs)


def run(store: Store, build: Builder, key: str = "k" * 64) -> str:
    return store.stage("index", key, OUTPUTS, build, META).status


def leftovers(folder: Path) -> list[str]:
    names = [p.relative_to(folder).as_posix() for p in folder.rglob("*")]
    return [n for n in names if n.endswith((".tmp", ".scratch")) or "/." in f"/{n}"]


def contents(folder: Path) -> dict[str, bytes]:
    files = (p for p in folder.rglob("*") if p.is_file() and p.suffix != ".lock")
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in files}


# ---- keys ----------------------------------------------------------------------------------


def test_key_depends_on_every_input_and_on_no_order():
    assert key_of(a=1, b=[1, 2]) == key_of(b=[1, 2], a=1)
    keys = {key_of(a=1), key_of(a=2), key_of(a="1"), key_of(b=1), stage_key("rank", {"a": 1})}
    assert len(keys) == 5


def test_key_depends_on_code_content_and_name_but_not_on_place(tmp_path):
    first, moved, renamed = tmp_path / "x.py", tmp_path / "clone" / "x.py", tmp_path / "y.py"
    moved.parent.mkdir()
    for path in (first, moved, renamed):
        path.write_text("a = 1\n")
    key = stage_key("s", {}, [first])
    assert stage_key("s", {}, [moved]) == key
    assert stage_key("s", {}, [renamed]) != key
    moved.write_text("a = 2\n")
    assert stage_key("s", {}, [moved]) != key
    assert stage_key("s", {}, [first, renamed]) == stage_key("s", {}, [renamed, first])


@pytest.mark.parametrize("value", [float("nan"), Path("x"), {1, 2}])
def test_key_refuses_what_json_cannot_hold(value):
    with pytest.raises((TypeError, ValueError)):
        key_of(a=value)


def test_tree_hash_sees_names_contents_and_nothing_else(tmp_path):
    (tmp_path / "a" / "sub").mkdir(parents=True)
    (tmp_path / "a" / "sub" / "f").write_text("1")
    before = sha256_tree(tmp_path / "a")
    os.utime(tmp_path / "a" / "sub" / "f", (0, 0))
    assert sha256_tree(tmp_path / "a") == before
    (tmp_path / "a" / "sub" / "f").rename(tmp_path / "a" / "sub" / "g")
    assert sha256_tree(tmp_path / "a") != before
    assert sha256_tree(tmp_path / "a" / "sub" / "g") == sha256_file(tmp_path / "a/sub/g")


# ---- building and reusing ------------------------------------------------------------------


def test_built_then_reused_says_so_and_touches_nothing(store, said):
    build = Builder()
    assert run(store, build) == "built"
    files = {p: (p.stat().st_mtime_ns, p.stat().st_ino) for p in store.run_dir.rglob("*.*")}
    result = store.stage("index", "k" * 64, OUTPUTS, build, META)
    assert (result.status, build.calls) == ("reused", 1)
    assert said[-1] == "index: reused (unchanged)"
    for path, stamp in files.items():
        assert (path.stat().st_mtime_ns, path.stat().st_ino) == stamp
    assert result.sha256["runs/a.trec"] == sha256_file(store.run_dir / "runs/a.trec")
    assert result.sha256["index"] == sha256_tree(store.run_dir / "index")


def test_another_key_builds_again_and_going_back_restores(store, said):
    one, two = Builder("one"), Builder("two")
    run(store, one, key_of(k=5))
    assert run(store, two, key_of(k=10)) == "built"
    assert (store.run_dir / "runs/a.trec").read_text() == "two"
    assert run(store, one, key_of(k=5)) == "restored"
    assert (store.run_dir / "runs/a.trec").read_text() == "one"
    assert said[-1].startswith("index: restored from the cache")
    assert (one.calls, two.calls) == (1, 1)


@pytest.mark.parametrize("damage", ["delete", "change", "sidecar"])
def test_run_folder_that_lost_something_is_restored(store, damage):
    build = Builder()
    run(store, build)
    before = contents(store.run_dir)
    if damage == "delete":
        (store.run_dir / "runs/a.trec").unlink()
    elif damage == "change":
        (store.run_dir / "index/deep/vectors.bin").write_bytes(b"else")
    else:
        (store.run_dir / "stages/index.json").write_text("{")
    assert run(store, build) == "restored"
    assert build.calls == 1 and contents(store.run_dir) == before


def test_results_that_came_with_the_repository_are_no_evidence(tmp_path, store):
    build = Builder()
    run(store, build)
    assert (
        Store(store.run_dir, tmp_path / "fresh home")
        .stage("index", "k" * 64, OUTPUTS, build, META)
        .status
        == "built"
    )
    assert build.calls == 2


def test_a_second_run_folder_gets_the_cached_copy(tmp_path, store):
    build = Builder()
    run(store, build)
    other = Store(tmp_path / "other", tmp_path / "cache")
    assert run(other, build) == "restored" and build.calls == 1
    assert contents(tmp_path / "other") == contents(store.run_dir)


@pytest.mark.parametrize("damage", ["files", "missing", "record", "other key"])
def test_a_corrupt_cache_entry_is_discarded_and_rebuilt(store, damage):
    build = Builder()
    run(store, build)
    (entry,) = store.cache.glob("index-*")
    if damage == "files":
        (entry / "files/runs/a.trec").write_text("poisoned")
    elif damage == "missing":
        (entry / "files/index/deep/vectors.bin").unlink()
    elif damage == "record":
        (entry / "stage.json").write_bytes(b"\xff{")
    else:
        record = json.loads((entry / "stage.json").read_text())
        (entry / "stage.json").write_text(json.dumps(record | {"key": "z"}))
    assert run(store, build) == "built" and build.calls == 2
    assert (entry / "files/runs/a.trec").read_text() == "one"
    assert run(store, build) == "reused"


def test_fresh_computes_anew_but_only_once(tmp_path, store):
    build = Builder()
    run(store, build)
    fresh = Store(store.run_dir, tmp_path / "cache", fresh=True, say=lambda line: None)
    assert run(fresh, build) == "built"
    assert run(fresh, build) == "reused"
    assert build.calls == 2


def test_forget_and_clear_cache(store):
    build = Builder()
    run(store, build)
    store.forget("index", "k" * 64)
    assert run(store, build) == "built"
    store.clear_cache()
    assert run(store, build) == "built" and build.calls == 3


def test_holds_compares_key_and_files(store):
    run(store, Builder(), key_of(k=5))
    assert store.holds("index", key_of(k=5))
    assert not store.holds("index", key_of(k=6)) and not store.holds("rank", key_of(k=5))
    (store.run_dir / "runs/a.trec").write_text("x")
    assert not store.holds("index", key_of(k=5))


def test_stages_may_nest(store):
    inner = Builder()

    def outer(folder: Path) -> None:
        run(store, inner)
        (folder / "rank.csv").write_text((store.run_dir / "runs/a.trec").read_text())

    assert store.stage("rank", "r" * 64, ["rank.csv"], outer).status == "built"
    assert (store.run_dir / "rank.csv").read_text() == "one" and inner.calls == 1


# ---- records -------------------------------------------------------------------------------


def test_record_says_what_the_stage_was_made_from(store):
    run(store, Builder())
    record = store.sidecar("index")
    assert record == json.loads((store.run_dir / "stages/index.json").read_text())
    assert (record["name"], record["key"], record["inputs"]) == ("index", "k" * 64, {"k": 5})
    assert record["outputs"]["index"] == sha256_tree(store.run_dir / "index")
    assert {"seconds", "created", "python", "git_commit"} < record.keys()


def test_equal_runs_differ_only_in_time(tmp_path):
    records = []
    for name in ("a", "b"):
        store = Store(tmp_path / name, tmp_path / f"cache-{name}", say=lambda line: None)
        run(store, Builder())
        record = store.sidecar("index")
        records.append({k: v for k, v in record.items() if k not in ("seconds", "created")})
    assert records[0] == records[1]
    assert str(tmp_path) not in json.dumps(records)


def test_missing_record_is_one_line(store):
    with pytest.raises(InputError, match="run the stage 'index' first"):
        store.sidecar("index")


def test_git_commit_is_the_checkouts_own(monkeypatch, tmp_path):
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True
    )
    artefacts.git_commit.cache_clear()
    assert artefacts.git_commit() in (None, done.stdout.strip())
    # Outside git, or without git, there is no commit and no error.
    monkeypatch.setattr(artefacts, "__file__", str(tmp_path / "artefacts.py"))
    artefacts.git_commit.cache_clear()
    assert artefacts.git_commit() is None
    monkeypatch.undo()
    artefacts.git_commit.cache_clear()


# ---- failures ------------------------------------------------------------------------------


def test_a_build_that_crashes_leaves_the_earlier_result_and_no_debris(store):
    run(store, Builder())
    before = contents(store.run_dir)

    def crash(folder: Path) -> None:
        (folder / "runs").mkdir()
        (folder / "runs" / "a.trec").write_text("half")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.stage("index", key_of(k=99), OUTPUTS, crash)
    assert contents(store.run_dir) == before
    assert not leftovers(store.run_dir) and not leftovers(store.cache)
    assert len(list(store.cache.glob("index-*"))) == 1


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_build_leaves_nothing(store, interrupt):
    def stop(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise interrupt

    with pytest.raises(interrupt):
        store.stage("index", "k", OUTPUTS, stop)
    assert contents(store.run_dir) == {} and not leftovers(store.cache)


def _die(run_dir: Path, cache: Path) -> None:
    def build(folder: Path) -> None:
        (folder / "half").write_text("half")
        os._exit(9)

    Store(run_dir, cache).stage("index", "k" * 64, OUTPUTS, build)


def test_a_killed_build_is_swept_up_by_the_next(store, tmp_path):
    child = multiprocessing.get_context("spawn").Process(
        target=_die, args=(store.run_dir, tmp_path / "cache")
    )
    child.start()
    child.join(60)
    assert child.exitcode == 9 and leftovers(store.cache)
    assert run(store, Builder()) == "built"
    assert not leftovers(store.cache) and not leftovers(store.run_dir)


def test_a_stage_must_write_what_it_declares_and_nothing_else(store):
    def extra(folder: Path) -> None:
        Builder()(folder)
        (folder / "secret.txt").write_text("x")

    with pytest.raises(RuntimeError, match=r"wrote secret\.txt"):
        store.stage("index", "k", OUTPUTS, extra)
    with pytest.raises(RuntimeError, match=r"did not write runs/a\.trec, index"):
        store.stage("index", "k", OUTPUTS, lambda folder: None)
    assert contents(store.run_dir) == {}


@pytest.mark.parametrize("output", ["../x", "/etc/x", "", "stages", "stages/index.json"])
def test_outputs_stay_inside_the_run_folder(store, output):
    with pytest.raises(ValueError, match="inside the run's folder"):
        store.stage("index", "k", [output], Builder())


@pytest.mark.parametrize("name", ["", "../x", "a b", "a/b"])
def test_stage_names_are_file_names(store, name):
    with pytest.raises(ValueError, match="expected letters"):
        store.stage(name, "k", ["x"], Builder())


def test_an_output_may_turn_from_file_to_folder_and_back(store):
    def file(folder: Path) -> None:
        (folder / "x").write_text("file")

    def tree(folder: Path) -> None:
        (folder / "x").mkdir()
        (folder / "x" / "y").write_text("tree")

    for build, key in ((file, "f"), (tree, "t"), (file, "f"), (tree, "t")):
        store.stage("s", key * 64, ["x"], build)
        assert (store.run_dir / "x").is_dir() == (build is tree)
    assert not leftovers(store.run_dir)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux only")
def test_a_full_disk_is_one_line_with_the_path(store):
    def build(folder: Path) -> None:
        with Path("/dev/full").open("w") as full:
            full.write("x" * 100_000)

    with pytest.raises(InputError, match=r"cache.*cannot write: No space left on device") as caught:
        store.stage("index", "k", OUTPUTS, build)
    assert "\n" not in str(caught.value) and not leftovers(store.cache)


_LIMITED = """
import resource, signal, sys
from rag_reliability.artefacts import atomic_write_bytes
from rag_reliability.records import InputError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    atomic_write_bytes(sys.argv[1], b"x" * 5000)
except InputError as error:
    print(error)
"""


def test_a_write_that_fails_halfway_keeps_the_old_file(tmp_path):
    target = tmp_path / "values.json"
    target.write_text("old")
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, str(target)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"{target}: cannot write")
    assert contents(tmp_path) == {"values.json": b"old"}


def test_atomic_write_makes_folders_and_keeps_line_ends(tmp_path):
    atomic_write_text(tmp_path / "a/b.txt", "é\r\n\u2028\n")
    assert (tmp_path / "a/b.txt").read_bytes() == "é\r\n\u2028\n".encode()
    atomic_write_bytes(tmp_path / "a/b.txt", b"new")
    assert contents(tmp_path) == {"a/b.txt": b"new"}
    plain = tmp_path / "plain"
    plain.touch()
    assert (tmp_path / "a/b.txt").stat().st_mode == plain.stat().st_mode


# ---- two at a time -------------------------------------------------------------------------


def _hold(run_dir: Path, ready: multiprocessing.Event, done: multiprocessing.Event) -> None:
    with run_lock(run_dir):
        ready.set()
        done.wait(60)


def test_a_second_writer_is_refused_until_the_first_is_done(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    ready, done = spawn.Event(), spawn.Event()
    first = spawn.Process(target=_hold, args=(tmp_path / "run", ready, done))
    first.start()
    assert ready.wait(60)
    with (
        pytest.raises(InputError, match=r"another run is writing to .*run"),
        run_lock(tmp_path / "run", timeout=0.1),
    ):
        pytest.fail("held by two")
    with run_lock(tmp_path / "another"):
        pass
    done.set()
    first.join(60)
    with run_lock(tmp_path / "run", timeout=1):
        pass


def test_the_lock_of_a_killed_run_does_not_outlive_it(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    ready, done = spawn.Event(), spawn.Event()
    first = spawn.Process(target=_hold, args=(tmp_path, ready, done))
    first.start()
    assert ready.wait(60)
    first.kill()
    first.join(60)
    with run_lock(tmp_path, timeout=1):
        pass


def test_two_stores_compute_a_stage_once(tmp_path):
    calls, said = [], []

    def build(folder: Path) -> None:
        calls.append(1)
        time.sleep(1.3)
        (folder / "x").write_text("x")

    def go(run_dir: str) -> None:
        Store(tmp_path / run_dir, tmp_path / "cache", say=said.append).stage("s", "k", ["x"], build)

    threads = [threading.Thread(target=go, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(calls) == 1
    assert (tmp_path / "a/x").read_text() == (tmp_path / "b/x").read_text() == "x"
    assert any("waiting for another run" in line for line in said)


def _compute(run_dir: Path, cache: Path, counter: Path, barrier: multiprocessing.Barrier) -> None:
    def build(folder: Path) -> None:
        with counter.open("a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(0.5)
        (folder / "x").write_text("x")

    barrier.wait(60)
    Store(run_dir, cache, say=lambda line: None).stage("s", "k", ["x"], build)


def test_two_processes_compute_a_shared_stage_once(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    counter, barrier = tmp_path / "counter", spawn.Barrier(2)
    both = [
        spawn.Process(target=_compute, args=(tmp_path / name, tmp_path / "cache", counter, barrier))
        for name in ("a", "b")
    ]
    for process in both:
        process.start()
    for process in both:
        process.join(60)
    assert [process.exitcode for process in both] == [0, 0]
    assert len(counter.read_text().splitlines()) == 1
    assert (tmp_path / "a/x").read_text() == (tmp_path / "b/x").read_text() == "x"


def test_the_cache_knows_what_was_computed_here_whatever_the_run_folder_holds(tmp_path, store):
    assert not store.knows("index", key_of(k=5))
    run(store, Builder(), key_of(k=5))
    assert store.knows("index", key_of(k=5)) and not store.knows("index", key_of(k=6))
    elsewhere = Store(store.run_dir, tmp_path / "another cache")
    assert elsewhere.holds("index", key_of(k=5)) and not elsewhere.knows("index", key_of(k=5))


def test_a_stage_that_another_keeps_too_long_is_refused(store):
    def build(folder: Path) -> None:
        with pytest.raises(InputError, match="another run is computing this stage"):
            Store(store.run_dir, store.cache.parent, wait=0.1).stage("s", "k", ["x"], build)
        (folder / "x").write_text("x")

    assert store.stage("s", "k", ["x"], build).status == "built"


# ---- making it smaller ---------------------------------------------------------------------

DAY = 86_400


def aged(store: Store, days: float, key: str = "k" * 64) -> Path:
    """The cached entry of a stage, last used so many days ago."""
    entry = store.cache / f"index-{key[:16]}"
    then = time.time() - days * DAY
    os.utime(entry, (then, then))
    return entry


def test_a_use_is_recorded_and_what_is_used_is_not_pruned(store, tmp_path):
    run(store, Builder())
    for used in (
        lambda: run(store, Builder()),  # reused
        lambda: run(Store(tmp_path / "other", tmp_path / "cache"), Builder()),  # restored
        lambda: store.knows("index", "k" * 64),
    ):
        entry = aged(store, 40)
        (found,) = cache.artefacts(tmp_path / "cache")
        assert (found.stage, found.size) == ("index", len("one" * 4) + record_size(entry))
        assert found.used == pytest.approx(40, abs=0.01)
        used()
        assert cache.artefacts(tmp_path / "cache")[0].used < 0.01
        assert cache.prune(30, tmp_path / "cache") == ([], 0) and entry.exists()


def record_size(entry: Path) -> int:
    return (entry / "stage.json").stat().st_size


def test_pruning_takes_what_is_old_enough_and_nothing_of_the_last_hour(store, tmp_path):
    keys = {days: key_of(days=days) for days in (40, 20, 0.05, 0.03)}
    for key in keys.values():
        run(store, Builder(), key)
    entries = {days: aged(store, days, key) for days, key in keys.items()}

    def left_after(days: float) -> list[float]:
        cache.prune(days, tmp_path / "cache")
        return [age for age, entry in entries.items() if entry.exists()]

    assert left_after(30) == [20, 0.05, 0.03]
    assert left_after(0) == [0.03]  # 43 minutes
    assert not leftovers(store.cache)
    assert run(store, Builder(), keys[40]) == "built"
    for days in (-1, float("nan")):
        with pytest.raises(InputError, match=r"--prune .* expected a number of days >= 0"):
            cache.prune(days, tmp_path / "cache")


def test_pruning_leaves_what_a_run_holds_and_sweeps_up_after_killed_ones(store, tmp_path):
    run(store, Builder())
    entry = aged(store, 40)
    for name in ("index-" + "k" * 16, "rank-" + "r" * 16):  # one being built, one left behind
        scratch = store.cache / f".{name}.0123abcd.scratch"
        scratch.mkdir()
        os.utime(scratch, (0, 0))
    with locked(store.cache / "locks" / f"{entry.name}.lock", 1.0, "held"):
        removed, held = cache.prune(30, tmp_path / "cache")
    assert [found.path.name for found in removed] == [f".rank-{'r' * 16}.0123abcd.scratch"]
    assert held == 2 and entry.exists()
    assert len(cache.prune(30, tmp_path / "cache")[0]) == 2 and not leftovers(store.cache)


def test_the_command_shows_and_prunes(store, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RAG_RELIABILITY_CACHE", str(tmp_path / "cache"))
    for key in ("k" * 64, key_of(k=7)):
        run(store, Builder("x" * 2_500_000), key)
    aged(store, 40)
    assert main(["cache"]) == 0
    cells = capsys.readouterr().out.splitlines()[2].split()
    assert cells == ["index", "2", "20.0", "MB", "10.0", "MB", "0", "0", "10.0", "MB"]
    assert main(["cache", "--prune", "30"]) == 0
    assert "removed: 1 artefacts, 10.0 MB; kept because in use: 0" in capsys.readouterr().out
    assert main(["cache", "--all"]) == 0
    assert "removed: 0 artefacts" in capsys.readouterr().out  # made within the hour


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0"),
        (1, "0.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (2 * 10**15, "2000.0 TB"),
    ],
)
def test_sizes_are_in_decimal_units(size, text):
    assert cache.size_text(size) == text


# ---- where the cache is --------------------------------------------------------------------


def test_cache_root_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("RAG_RELIABILITY_CACHE", str(tmp_path / "own"))
    assert cache_root() == tmp_path / "own"
    monkeypatch.delenv("RAG_RELIABILITY_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_root() == tmp_path / "xdg" / "rag-reliability"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_root() == tmp_path / ".cache" / "rag-reliability"


def test_a_cache_that_takes_no_files_is_one_line(tmp_path):
    (tmp_path / "cache").write_text("a file, not a folder")
    with pytest.raises(InputError, match=r"cache.*: cannot write: Not a directory"):
        run(Store(tmp_path / "run", tmp_path / "cache"), Builder())
    with pytest.raises(InputError, match="cannot write"), run_lock(tmp_path / "cache"):
        pytest.fail("locked a file")
