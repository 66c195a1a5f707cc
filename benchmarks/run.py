"""Every measurement of speed and memory, one after the other; JSON into ``benchmarks/results``.

    python benchmarks/run.py [--quick] [--only search_cost other_stores …] [--page]
    python benchmarks/run.py --only search_cost --more="--sizes 1000000"

``make bench`` sets up an environment of its own and runs this. Each script is a process of its own
and sets both sides of a ratio against each other in one run. ``--quick``: small sizes, to see that
all of it runs; its numbers mean little and go into ``results/quick``. Otherwise the tables of
docs/performance.md are written anew from whatever results are there; ``--page`` does that alone.

Let nothing else run. Where that cannot be, set OMP_NUM_THREADS=1 and read processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import page

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
OUT = "OUT"
"""Stands in a step's arguments for the JSON file that it writes, and SCRATCH for a folder."""
SCRATCH = "SCRATCH"
SLIDER = ("--json", OUT, "--out", SCRATCH)

FEW = ("--topics", "1", "--new-tokens", "16", "--one-by-one", "1", "--passages", "6")
STEPS = {
    "other_stores": (
        [OUT, "--sizes", "1000,10000,100000"],
        [OUT, "--sizes", "1000", "--seconds", "3", "--no-memory"],
    ),
    "search_cost": (
        [OUT, "--sizes", "1000,10000,100000,1000000"],
        [OUT, "--sizes", "1000", "--seconds", "3"],
    ),
    "encoding_cost": (["--out", OUT], ["--out", OUT, "--n", "24", "--rounds", "1"]),
    "generation_cost": (["--out", OUT], ["--out", OUT, *FEW]),
    "slider_response": ([*SLIDER], [*SLIDER, "--moves", "5"]),
    "sweep_scaling": (["--out", OUT, "--rounds", "2"], ["--out", OUT, "--small"]),
}
LIBRARIES = (
    *("faiss-cpu", "haystack-ai", "llama-index-core", "numpy"),
    *("sentence-transformers", "torch", "transformers"),
)
EXTENSIONS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16")


def machine() -> dict:
    """What the numbers depend on, without names of hosts or paths."""
    cpu = Path("/proc/cpuinfo")
    flags = set(cpu.read_text().split()) if cpu.exists() else set()
    return {
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "instruction_sets": [e for e in EXTENSIONS if e in flags],
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "omp_num_threads": os.environ.get("OMP_NUM_THREADS"),
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
    }


def record(name: str, arguments: list[str], folder: Path) -> None:
    """Run one script and keep what it measured, with load, time and peak memory of it all."""
    load, began = [os.getloadavg()[0]], time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "out.json")
        given = {OUT: str(out), SCRATCH: str(Path(scratch, "study"))}
        command = [str(HERE / f"{name}.py"), *(given.get(a, a) for a in arguments)]
        child = subprocess.Popen([sys.executable, *command], cwd=HERE.parent)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"{name}.py ended with {child.returncode}")
        result = json.loads(out.read_text())
    if name == "encoding_cost":
        result["chosen"].pop("machine")  # holds a digest of the host's name
    report = {
        "command": f"python benchmarks/{name}.py {' '.join(arguments)}",
        "machine": machine(),
        "load_average": [round(load[0], 1), round(os.getloadavg()[0], 1)],
        "seconds": round(time.perf_counter() - began, 1),
        "peak_resident_mib": used.ru_maxrss // 1024,
        "result": result,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(report, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, results not kept")
    parser.add_argument("--only", nargs="+", choices=STEPS, default=list(STEPS))
    parser.add_argument("--page", action="store_true", help="only write the page's tables anew")
    parser.add_argument("--more", default="", help="further arguments of the scripts")
    given = parser.parse_args()
    folder = RESULTS / "quick" if given.quick else RESULTS
    for name in () if given.page else given.only:
        print(f"== {name}", flush=True)
        record(name, [*STEPS[name][given.quick], *given.more.split()], folder)
        if not given.quick:
            page.write(RESULTS)
    if given.page:
        page.write(RESULTS)
    print(page.tables(folder))


if __name__ == "__main__":
    main()
