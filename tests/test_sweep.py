"""Sweeps: checked whole, run on real workers, nothing lost, everything in one table."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import dask
import nbformat
import pandas as pd
import pytest
from distributed import Client, LocalCluster

from rag_reliability import cli
from rag_reliability.files import cache_root
from rag_reliability.records import InputError
from rag_reliability.sweep.cluster import THREADS, connected, local_workers, slurm, slurm_options
from rag_reliability.sweep.main import _listener, run_sweeps
from rag_reliability.sweep.schedule import LOST, execute_all, ordered
from rag_reliability.sweep.spec import read_sweep, read_sweeps
from rag_reliability.sweep.work import (
    TOKEN,
    Status,
    Task,
    package_digest,
    perform,
    read_status,
    write_status,
)

from .conftest import ROOT
from .fragile import begun, fragile, use_cache

BASE = """
config: configs/paper.yaml
notebooks: [rankings]
parameters: {n_resamples: 200}
grid:
  k: [3, 5]
  spread: [none, current]
"""


def written(tmp_path: Path, text: str, name: str = "sweep-small.yaml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


# ---- the file ------------------------------------------------------------------------------


def test_a_grid_is_the_product_of_its_values_and_runs_come_after(tmp_path):
    path = written(tmp_path, BASE + "runs: [{k: 7}, {k: 5, window: 15, arms: [plain]}]\n")
    sweep = read_sweep(path, ROOT)
    assert (sweep.name, sweep.varied) == ("small", ("k", "spread", "window", "arms"))
    shown = [[run.value(name) for name in sweep.varied] for run in sweep.runs]
    both = "plain,credibility_in_prompt"
    assert shown == [
        *([3, "none", "exact", both], [3, "current", "exact", both]),
        *([5, "none", "exact", both], [5, "current", "exact", both]),
        *([7, "current", "exact", both], [5, "current", 15, "plain"]),
    ]
    assert sweep.runs[-1].parameters == {"n_resamples": 200, "k": 5, "window": 15, "arms": "plain"}
    assert {run.config.n_resamples for run in sweep.runs} == {200}
    assert len({run.run for run in sweep.runs}) == 6


def test_a_run_keeps_its_folder_when_the_grid_grows(tmp_path):
    few = read_sweep(written(tmp_path, BASE), ROOT)
    more = read_sweep(written(tmp_path, BASE.replace("[3, 5]", "[1, 3, 5]")), ROOT)
    assert {run.run for run in few.runs} < {run.run for run in more.runs}


def test_names_that_are_cut_off_alike_keep_runs_apart(tmp_path):
    # Found by trying: of these two the first six digits of the hash are equal, c94069.
    text = """
config: configs/paper.yaml
notebooks: [rankings]
grid:
  arms: [[credibility_in_prompt, plain]]
  answer_systems: [[similarity, source_aware_3k, source_aware]]
  seed: [5452, 7075]
"""
    first, second = (run.run for run in read_sweep(written(tmp_path, text), ROOT).runs)
    assert first != second and first[:-6] == second[:-6] and first[:-6].endswith("_c94069")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (BASE.replace("  k: [3, 5]", "  kk: [3, 5]"), r"grid\.kk: unknown parameter; known: .* k,"),
        (BASE + "grids: {}\n", r"unknown field 'grids'; known: config, notebooks"),
        (BASE.replace("[3, 5]", "[3, 0]"), r"grid: k = 0, spread = none: parameter 'k' = 0"),
        (BASE.replace("[3, 5]", "[3, 3]"), r"grid\.k: 3 is there twice"),
        (BASE.replace("[3, 5]", "[3, null]"), r"grid\.k: None is neither a scalar nor"),
        (BASE.replace("[3, 5]", "[]"), r"grid\.k: no values"),
        (BASE.replace("[3, 5]", "3"), r"grid\.k: Input should be a valid list"),
        (BASE.replace("n_resamples: 200", "k: 5"), r"grid\.k: also in parameters"),
        (BASE + "runs: [{k: 5}]\n", r"runs\[0\]: the same run as small_k-5_spread-current"),
        (BASE + "runs: [{k: 50, window: 9}]\n", r"runs\[0\].*window = 9 is smaller than k = 50"),
        (BASE + "  k: [7]\n", r"'k' is there twice.*line 8"),
        (BASE.replace("[rankings]", "[ranking]"), r"notebooks: unknown 'ranking'; known: 01_corp"),
        (BASE.replace("paper.yaml", "none.yaml"), r"config: no such file: configs/none\.yaml"),
        ("config: configs/paper.yaml\n", r"no runs: give grid or runs"),
        ("grid: {k: [3]}\n", r"config: Field required"),
        ("- 1\n", r"expected a mapping"),
        ("a: [", r"cannot be read as YAML"),
    ],
)
def test_a_bad_file_is_refused_in_one_line_that_names_it(tmp_path, text, says):
    with pytest.raises(InputError, match=says) as caught:
        read_sweep(written(tmp_path, text), ROOT)
    assert "sweep-small.yaml: " in str(caught.value) and "\n" not in str(caught.value)


def test_two_sweeps_of_one_name_are_refused(tmp_path):
    (tmp_path / "b").mkdir()
    paths = [written(tmp_path, BASE), written(tmp_path / "b", BASE, "small.yaml")]
    with pytest.raises(InputError, match=r"small\.yaml: a sweep of this name came from"):
        read_sweeps(paths, ROOT)


def test_the_sweeps_that_come_with_the_project_are_whole():
    sweeps = {s.name: s for s in read_sweeps(sorted(ROOT.glob("configs/sweep-*.yaml")), ROOT)}
    assert len(sweeps["priors"].runs) == 4 * 3 * 3
    assert {run.notebooks for run in sweeps["priors"].runs} == {("rankings",)}
    assert len(sweeps["generation"].runs) == 4


def test_what_no_run_should_start_for_is_refused_before_any_does(tmp_path):
    path = written(tmp_path, BASE.replace("current]", "steep]"))
    out = tmp_path / "out"
    with pytest.raises(InputError, match=r"sweep-small\.yaml: small_k-3_spread-steep.*'steep'"):
        run_sweeps([path], str(out))
    assert not out.exists()


# ---- the order -----------------------------------------------------------------------------


def test_sharers_follow_the_one_they_share_with(tmp_path):
    text = """
config: configs/paper.yaml
grid:
  corpus: [corpus/health120, corpus/other]
  k: [3, 5]
  arms: [[plain], [credibility_in_prompt]]
"""
    runs = ordered(read_sweep(written(tmp_path, text), ROOT).runs)
    shown = [(r.value("corpus")[7], r.value("k"), r.value("arms")[0]) for r in runs]
    assert shown == [
        *(("h", 3, "p"), ("o", 3, "p")),  # one run of each index
        *(("h", 5, "p"), ("o", 5, "p")),  # then of each ranking that is left
        *(("h", 3, "c"), ("h", 5, "c"), ("o", 3, "c"), ("o", 5, "c")),
    ]


# ---- where it runs -------------------------------------------------------------------------


def test_slurm_is_asked_for_what_the_section_says():
    section = {
        **{"kind": "slurm", "jobs": 4, "queue": "long", "account": "health", "job_cpu": 8},
        **{"memory": "16GB", "walltime": "02:00:00", "interface": "lo"},
        "job_script_prologue": ["module load python"],
        "job_extra_directives": ["--constraint=avx512"],
    }
    jobs, options = slurm_options(section)
    with slurm(options) as cluster:
        lines = cluster.job_script().splitlines()
    assert jobs == 4
    for line in ("-p long", "-A health", "-n 1", "--cpus-per-task=8", "-t 02:00:00"):
        assert f"#SBATCH {line}" in lines
    assert {"#SBATCH --mem=15G", "#SBATCH --constraint=avx512"} <= set(lines)
    assert lines.index("module load python") == lines.index(f"export {THREADS[-1]}=8") + 1
    assert all(f"export {name}=8" in lines for name in THREADS)
    (command,) = (line for line in lines if "distributed.cli.dask_worker" in line)
    assert "--nthreads 1 " in command and "--nworkers" not in command


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ({"cores": 8, "memory": "1GB"}, r"cluster\.cores = 8: must equal processes = 1"),
        ({"memory": "1GB", "jobs": 0}, r"cluster\.jobs = 0"),
        ({}, r"cluster\.memory: missing"),
    ],
)
def test_a_bad_slurm_section_is_refused(section, says):
    with pytest.raises(InputError, match=says):
        slurm_options({"kind": "slurm", **section})


def test_an_argument_that_slurm_cluster_does_not_know_is_one_line():
    _, options = slurm_options({"kind": "slurm", "memory": "1GB", "colour": "red"})
    with pytest.raises(InputError, match=r"cluster: .*colour"):
        slurm(options)


@pytest.mark.parametrize(
    ("wanted", "section"),
    [
        *((0, {"kind": "local"}), (10_000, {"kind": "local"}), ("2", {"kind": "local"})),
        *((None, {"kind": "pbs"}), (None, {"kind": "local", "colour": 1})),
    ],
)
def test_local_workers_need_a_processor_each(wanted, section):
    with pytest.raises(InputError):
        local_workers(wanted, section)


def test_no_workers_are_not_the_default_number():
    with pytest.raises(InputError, match="workers = 0"), connected(0, None, None, print):
        pass


# ---- workers that die ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster():
    options = {"dashboard_address": None, "memory_limit": 0, "silence_logs": logging.CRITICAL}
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        LocalCluster(n_workers=2, threads_per_worker=1, **options) as made,
    ):
        yield made


def task(run: str, folder: Path, **parameters: object) -> Task:
    where = str(folder / "runs" / run)
    return Task(run, str(ROOT), where, where, "t", "p", "c.yaml", ("rankings",), parameters)


def test_a_killed_workers_run_is_done_again_or_reported_and_never_lost(tmp_path, cluster):
    tasks = [
        task("once", tmp_path, deaths=1),
        task("error", tmp_path, deaths=0, fails=True),
        task("always", tmp_path, deaths=99),
        task("last", tmp_path, deaths=0),
    ]
    heard: dict[str, Status] = {}
    with Client(cluster) as client:
        listen = lambda task, status: heard.update({task.run: status})  # noqa: E731
        execute_all(client, tasks, fragile, begun, listen)
    assert set(heard) == {"once", "error", "always", "last"}
    assert heard["once"].status == heard["last"].status == "done"
    assert heard["once"].attempts == 2 and heard["last"].attempts == 1
    assert (heard["error"].status, heard["error"].error) == ("failed", "ValueError: two lines")
    assert heard["always"].status == "failed"
    assert heard["always"].error == f"its worker died {begun(tasks[2])} times"
    assert 2 <= begun(tasks[2]) <= 3


def test_a_lost_cluster_fails_what_is_left_and_keeps_what_was_done(tmp_path):
    tasks = [task(name, tmp_path, deaths=0) for name in ("first", "second", "third")]
    heard: dict[str, Status] = {}
    with LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as made:

        def each(task: Task, status: Status) -> None:
            heard[task.run] = status
            if status.status == "done":
                made.close()

        with connected(None, made.scheduler_address, None, lambda line: None) as client:
            execute_all(client, tasks, fragile, begun, each)
    told = {run: (status.status, status.error) for run, status in heard.items()}
    assert told == {"first": ("done", ""), "second": ("failed", LOST), "third": ("failed", LOST)}


def test_what_a_worker_finished_while_its_cluster_went_counts_as_done(tmp_path):
    tasks = [task(name, tmp_path, deaths=0) for name in ("finished", "running", "waiting")]
    known = {t.run: Status(t.run, "missing", attempts=1) for t in tasks}
    for i, state in enumerate(("done", "running", "done")):
        # The last one's record is that of an earlier sweep: it was not begun since.
        record = Status(tasks[i].run, state, seconds=2.0, attempts=2 - (i == 2), host="node")
        write_status(Path(tasks[i].folder), record)
    listen = _listener(tmp_path, known, 3, lambda line: None)
    for one in tasks:
        listen(one, Status(one.run, "failed", LOST))
    assert known["finished"] == Status("finished", "done", "", 2.0, 2, "node")
    assert known["running"] == Status("running", "failed", LOST, 0.0, 2, "node")
    assert known["waiting"] == Status("waiting", "failed", LOST, 0.0, 1, "node")
    for one in tasks:
        assert read_status(Path(one.folder), one.run) == known[one.run]


def test_a_worker_that_sees_another_disk_or_package_is_refused(tmp_path):
    own = replace(task("r", tmp_path), token="t", package=package_digest())
    with pytest.raises(InputError, match=r"does not see .*on a disk that all workers share"):
        perform(own)
    (tmp_path / TOKEN).write_text("t")
    with pytest.raises(InputError, match="another version of this package"):
        perform(replace(own, package="p"))


# ---- the whole -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def swept(three_topics, tmp_path_factory, cluster):
    """A real sweep of two runs on two workers; returns its file, folder and what came of it."""
    place = tmp_path_factory.mktemp("sweep")
    text = f"""
config: configs/paper.yaml
notebooks: [rankings]
parameters: {{corpus: {three_topics}, n_resamples: 200, folds: 3}}
grid: {{spread: [none, current]}}
"""
    path, out = written(place, text), place / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        cache = place / "cache"
        (cache_root() / "models").mkdir(parents=True, exist_ok=True)
        cache.mkdir()
        (cache / "models").symlink_to(cache_root() / "models")
        patch.setenv("RAG_RELIABILITY_CACHE", str(cache))
        with Client(cluster) as client:  # its workers were started before the cache was known
            client.wait_for_workers(2, timeout=60)
            client.run(use_cache, str(cache))
        statuses = run_sweeps([path], str(out), scheduler=cluster.scheduler_address)
        yield path, out, statuses


def test_every_value_is_in_one_tidy_table(swept):
    _, out, statuses = swept
    assert [s.status for s in statuses.values()] == ["done", "done"]
    values = pd.read_csv(out / "sweep.csv")
    columns = ["run", "sweep", "spread", "system", "qid", "metric", "value", "arm"]
    assert list(values.columns) == columns
    for run, spread in zip(statuses, ("none", "current"), strict=True):
        own = values[values["run"] == run]
        assert set(own["spread"]) == {spread}
        alone = pd.read_csv(out / "runs" / run / "metrics" / "retrieval.csv")
        given = own[list(alone.columns)].reset_index(drop=True)
        pd.testing.assert_frame_equal(given, alone)
    same = values[(values["spread"] == "none") & (values["metric"] == "mrr")].set_index("system")
    assert list(same.loc["similarity", "value"]) == list(same.loc["source_aware", "value"])
    runs = pd.read_csv(out / "runs.csv", keep_default_na=False)
    assert list(runs["spread"]) == ["none", "current"] and set(runs["status"]) == {"done"}
    assert all((out / folder / "log.txt").stat().st_size for folder in runs["folder"])
    assert pd.read_csv(out / "failures.csv").empty


def test_the_index_was_computed_once_and_shared(swept):
    _, out, _ = swept
    stages = pd.read_csv(out / "stages.csv")
    index = stages[stages["stage"] == "index"]
    assert len(index) == 2 and index["key"].nunique() == index["created"].nunique() == 1
    assert stages[stages["stage"] == "rank"]["key"].nunique() == 2
    logs = "".join(path.read_text() for path in out.glob("runs/*/log.txt"))
    assert logs.count("index: built") == 1


def test_the_comparison_is_executed_beside_the_tables(swept):
    _, out, _ = swept
    cells = nbformat.read(out / "sweep.ipynb", as_version=4).cells
    outputs = [o.get("data", {}) for cell in cells for o in cell.get("outputs", [])]
    assert sum("image/png" in data for data in outputs) == 1
    (reused,) = (d["text/plain"] for d in outputs if "saved" in d.get("text/plain", ""))
    assert reused.splitlines()[1].split()[1:4] == ["index", "2", "1"]


def test_again_only_what_failed_is_done(swept):
    path, out, statuses = swept
    said: list[str] = []
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*") if p.suffix in (".ipynb", ".txt")}
    assert run_sweeps([path], str(out), scheduler="tcp://127.0.0.1:1", say=said.append) == statuses
    assert said[0] == "2 runs, 2 of them done already"
    assert said[1].startswith("notebook-sweep: reused")
    assert {p: p.stat().st_mtime_ns for p in before} == before


def test_a_failure_is_kept_and_listed_and_tried_again(swept, cluster, capsys):
    path, out, statuses = swept
    first, second = statuses
    metrics = out / "runs" / first / "metrics"
    whole = (metrics / "retrieval.csv").read_bytes()
    # A file where the run needs a folder: the worker cannot write, whoever it runs as.
    (metrics / "retrieval.csv").unlink()
    metrics.rmdir()
    metrics.write_text("in the way")
    command = ["sweep", str(path), "--out", str(out), "--scheduler", cluster.scheduler_address]
    untouched = (out / "runs" / second / "log.txt").stat().st_mtime_ns
    assert cli.main(command) == 2
    assert f"1 of 2 runs failed, see {out}/failures.csv" in capsys.readouterr().err
    (failure,) = pd.read_csv(out / "failures.csv").to_dict("records")
    assert (failure["run"], failure["status"]) == (first, "failed")
    assert "cannot write" in failure["error"] and "\n" not in failure["error"]
    assert set(pd.read_csv(out / "sweep.csv")["run"]) == {second}
    metrics.unlink()
    assert cli.main(command) == 0
    assert "2 runs, 1 of them done already" in capsys.readouterr().out
    assert (metrics / "retrieval.csv").read_bytes() == whole
    record = json.loads((out / "runs" / first / "status.json").read_text())
    assert (record["status"], record["attempts"]) == ("done", 3)
    assert (out / "runs" / second / "log.txt").stat().st_mtime_ns == untouched
