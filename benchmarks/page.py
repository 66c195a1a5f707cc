"""The tables of docs/performance.md from the JSON in ``benchmarks/results``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
BEGIN, END = "<!-- tables: make bench -->", "<!-- end of tables -->"
Row = Iterable[object]


def write(results: Path) -> None:
    """Put the tables between the marks of the page; nothing else on it changes."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{tables(results)}\n\n{END}{after}", encoding="utf-8")


def tables(results: Path) -> str:
    """All tables, as Markdown; a measurement without results is left out, and named."""
    found = {p.stem: json.loads(p.read_text()) for p in sorted(results.glob("*.json"))}
    parts = [aims(found)]
    parts += [make(found[name]["result"]) for name, make in TABLES.items() if name in found]
    return "\n\n".join([*parts, runs(found)])


def table(head: Row, rows: Iterable[Row]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def number(value: float, unit: str = "") -> str:
    """Three figures."""
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return text + unit


# --- aims ----------------------------------------------------------------------------------------


def aims(found: dict) -> str:
    """Each aim beside what was measured; by the clock and by processor time where both are."""
    rows = []
    for what, step, aim, most, read in AIMS:
        if step not in found:
            rows.append((what, aim, "not measured", "", "–"))
            continue
        wall, cpu, where = read(found[step]["result"])
        shown = (number(wall), "–" if cpu is None else number(cpu))
        rows.append((f"{what} {where}", aim, *shown, verdict(wall, cpu, most)))
    head = ("what, against what", "aim", "by the clock", "processor time", "")
    return "### Against the aims\n\n" + table(head, rows)


def verdict(wall: float, cpu: float | None, most: float) -> str:
    """Whether both clocks are within the aim, one of them, or none."""

    def within(value: float) -> bool:
        return value <= most if most > 0 else value >= -most

    met = {within(wall), within(wall if cpu is None else cpu)}
    if len(met) == 2:
        return "met by the clock only" if within(wall) else "met by processor time only"
    return "met" if met == {True} else "**not met**"


def largest(result: dict, other: str = "") -> tuple[str, dict]:
    sizes = {
        n: r
        for n, r in result["sizes"].items()
        if not other or other in r["wall"].get("over_ours", ())
    }
    n = max(sizes, key=int)
    return f"({int(n):,} documents)", sizes[n]


def _store(other: str):
    def read(result: dict):
        where, r = largest(result, other)
        return r["wall"]["over_ours"][other], r["cpu"]["over_ours"][other], where

    return read


def _search(ratio: str):
    def read(result: dict):
        where, r = largest(result)
        return r["wall"][ratio], r["cpu"][ratio], where

    return read


def _memory(result: dict):
    where, r = largest(result)
    return r["memory"]["ratio_held"], None, where


def _encoding(kind: str | None):
    def read(result: dict):
        sides = result["same_work"]["sides"]
        name = kind or result["chosen"]["arithmetic"]
        ours, default = sides[name], sides["default"]
        cpu = default["cpu_seconds"] / ours["cpu_seconds"]
        return default["seconds"] / ours["seconds"], cpu, "" if kind else f"(it took {name})"

    return read


def _generation(*path: str):
    def read(result: dict):
        for key in path:
            result = result[key]
        return result, None, ""

    return read


# what, step, aim in words, at most (negative: at least), how to read (clock, processor, where)
AIMS = (
    ("Haystack over ours: retrieve + rerank", "other_stores", "≥ 50", -50, _store("haystack")),
    ("LlamaIndex over ours: the same", "other_stores", "≥ 50", -50, _store("llamaindex")),
    (
        *("exact search + rerank over plain faiss", "search_cost", "≤ 1.10", 1.10),
        _search("search_rerank_over_plain"),
    ),
    (
        *("the same over faiss with its switch tuned", "search_cost", "≤ 1.10", 1.10),
        _search("search_rerank_over_plain_tuned"),
    ),
    ("memory held over plain faiss", "search_cost", "≤ 1.05", 1.05, _memory),
    (
        *("1,000 prior tables × 100 topics over their search", "search_cost", "≤ .05", 0.05),
        _search("tables_over_search"),
    ),
    (
        *("sentence-transformers over ours, float32, same texts", "encoding_cost", "≥ 3", -3),
        _encoding("float32"),
    ),
    ("the same, `encoder_dtype: auto`", "encoding_cost", "≥ 3", -3, _encoding(None)),
    (
        *("one-by-one float32 generate over ours", "generation_cost", "≥ 10", -10),
        _generation("answers", "times_as_fast", "than_one_by_one_float32"),
    ),
    (
        *("plain batched generate over ours", "generation_cost", "≥ 1.3", -1.3),
        _generation("answers", "times_as_fast", "than_plain_batched"),
    ),
    (
        *("a plain loop over ours: readings of stance", "generation_cost", "≥ 2", -2),
        _generation("readings", "times_as_fast"),
    ),
    (
        *("a sweep of 8 runs: one worker over two", "sweep_scaling", "≥ 1.7", -1.7),
        _generation("ratio"),
    ),
)


# --- growth --------------------------------------------------------------------------------------


def stores(result: dict) -> str:
    rows = []
    for n, r in result["sizes"].items():
        wall, cpu, held = r["wall"], r["cpu"], r.get("memory_bytes", {})
        for side in cpu["median_ms"]:
            m = held.get(side)
            memory = [number(m[k] / 2**20) for k in ("held", "peak")] if m else ["–", "–"]
            ratios = [number(c["over_ours"][side]) for c in (wall, cpu)]
            rows.append((f"{int(n):,}", side, number(cpu["median_ms"][side]), *ratios, *memory))
    head = (
        "documents",
        "side",
        "processor ms a question",
        "over ours, clock",
        "over ours, processor",
    )
    head += "MiB held", "MiB at most"
    return "### Retrieve and rerank, one question at a time\n\n" + table(head, rows)


def search(result: dict) -> str:
    rows = []
    for n, r in result["sizes"].items():
        cpu, memory = r["cpu"], r["memory"]
        ms = [number(cpu["median_ms"][k]) for k in ("plain", "plain_tuned", "search_rerank")]
        ratios = ("search_rerank_over_plain", "search_rerank_over_plain_tuned")
        held = [number(memory[k]["held"] / 2**20) for k in ("plain_at_once", "partitioned")]
        peak = number(memory["ratio_peak"])
        shown = *(number(cpu[k]) for k in ratios), number(cpu["tables_over_search"])
        rows.append((f"{int(n):,}", *ms, *shown, *held, peak))
    head = "documents", "plain faiss, ms", "tuned, ms", "ours + rerank, ms", "over plain"
    head += "over tuned", "1,000 tables over search", "MiB plain", "MiB ours", "peak over plain"
    return "### 100 questions at once (processor time)\n\n" + table(head, rows)


def encoding(result: dict) -> str:
    rows = []
    for work in ("same_work", "whole_texts"):
        for side, s in result[work]["sides"].items():
            shown = (s.get(key, "–") for key in ("times_as_fast", "min_cosine_to_default"))
            rows.append((work.replace("_", " "), side, s["seconds"], s["cpu_seconds"], *shown))
    head = "texts", "side", "seconds", "processor seconds", "times as fast", "least cosine"
    return "### Encoding\n\n" + table(head, rows)


def sliders(result: list) -> str:
    rows = [[r[k] for k in ("candidates", "n", "rule", "wall_ms", "cpu_ms")] for r in result]
    head = "candidates", "n", "rule", "ms by the clock", "processor ms"
    title = "### The explorer, a moved slider (no ratio: nothing to compare with)"
    return f"{title}\n\n{table(head, rows)}"


TABLES = {
    "other_stores": stores,
    "search_cost": search,
    "encoding_cost": encoding,
    "slider_response": sliders,
}


def runs(found: dict) -> str:
    """Commands, load, time and peak memory of each measurement."""
    rows = []
    for report in found.values():
        threads = report["machine"]["omp_num_threads"] or "all"
        load = " → ".join(map(str, report["load_average"]))
        rest = (load, threads, report["seconds"] or "–", report["peak_resident_mib"] or "–")
        rows.append((f"`{report['command']}`", *rest))
    head = "command", "load", "threads", "seconds", "peak MiB"
    return "### What was run\n\n" + table(head, rows)
