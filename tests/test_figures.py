"""Figures are checked by what they draw and by their bytes; the frames here are made up."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations, pairwise
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from rag_reliability.reporting.figures import FIGURES
from rag_reliability.reporting.figures_priors import spread_out
from rag_reliability.reporting.save import save_figure, write_whole
from rag_reliability.reporting.style import (
    DOUBLE,
    SINGLE,
    higher_is_better,
    in_order,
    metric_label,
    natural,
    styled,
    system_label,
)

SYSTEMS = ("similarity", "source_aware_3k", "source_aware")
PRIORS = {
    "peer_reviewed": 0.95,
    "government": 0.9,
    "established_news": 0.75,
    "blog": 0.5,
    "user_generated": 0.4,
    "ai_generated": 0.3,
}


def _estimates(**columns: list) -> pd.DataFrame:
    """All combinations of the columns, each with a mean of .5 and an interval of ±.1."""
    frame = pd.MultiIndex.from_product(columns.values(), names=list(columns)).to_frame(index=False)
    return frame.assign(mean=0.5, low=0.4, high=0.6)


def per_topic_frame() -> pd.DataFrame:
    rows = [
        (system, f"q{q:03d}", metric, (q % 5) / 5)
        for system in SYSTEMS
        for q in range(1, 11)
        for metric in ("precision@5", "adv_share@5")
    ]
    return pd.DataFrame(rows, columns=["system", "qid", "metric", "value"])


def study_frame() -> pd.DataFrame:
    frame = _estimates(metric=["precision@5", "mrr"], arm=["baseline", "source_aware"])
    return frame.rename(columns={"mean": "ours"}).assign(study=[0.48, 0.72, np.nan, 1.0])


def trace_frame(n: int = 24) -> pd.DataFrame:
    types = [list(PRIORS)[i % 6] for i in range(n)][::-1]
    frame = pd.DataFrame(
        {"qid": "q001", "docno": [f"h{i:03d}" for i in range(n)], "source_type": types}
    )
    frame["sim"] = np.linspace(0.8, 0.4, n)
    frame["prior"] = frame["source_type"].map(PRIORS)
    frame["score"] = frame["sim"] * frame["prior"]
    frame["rank_sim"] = np.arange(1, n + 1)
    frame["rank_score"] = frame["score"].rank(ascending=False, method="first").astype(int)
    frame["in_top_before"] = frame["rank_sim"] <= 5
    frame["in_top_after"] = frame["rank_score"] <= 5
    return frame.assign(
        label=[i % 3 for i in range(n)], adversarial=[i == 0 for i in range(n)], why=""
    )


def learned_frame() -> pd.DataFrame:
    frame = pd.MultiIndex.from_product(
        [["hand-set", "useful", "truthful", "agreement", "expertqa"], list(PRIORS), [-1, 0]],
        names=["source", "source_type", "fold"],
    ).to_frame(index=False)
    return frame.assign(prior=frame["source_type"].map(PRIORS), low=0.2, high=0.99)


def grounding_frame() -> pd.DataFrame:
    sets = ["expertqa", "healthver", "healthver_refuted", "expertqa_swapped", "answers_swapped"]
    frame = pd.MultiIndex.from_product(
        [sets, ["roc", "calibration", "risk"], [0.0, 0.5, 1.0]], names=["set", "curve", "x"]
    ).to_frame(index=False)
    return frame.assign(y=frame["x"] / 2, low=0.0, high=0.6, n=10)


def inputs() -> dict[str, tuple[pd.DataFrame, ...]]:
    two = ["precision@5", "adv_share@5"]
    systems = list(SYSTEMS)
    feedback = pd.MultiIndex.from_product(
        [range(3), range(6), list(PRIORS)], names=["fold", "step", "source_type"]
    ).to_frame(index=False)
    answers = _estimates(
        system=["no_passages", *systems],
        arm=["plain", "credibility_in_prompt"],
        metric=["grounding", "trusted_grounding", "adversarial_uptake", "correctness", "harm"],
    )
    stance = _estimates(system=["no_passages", *systems], metric=["stance_error"]).assign(arm=None)
    counts = pd.MultiIndex.from_product(
        [["q001", "q002"], list(PRIORS), [0, 1, 2]], names=["qid", "source_type", "label"]
    ).to_frame(index=False)
    rules = ["similarity", "source_aware", "verified_boost", "stance_consistent"]
    estimates = ("worst_adv", "worst_adv_all", "honest_adv", "worst_precision", "kept")
    ends = {f"{e}{end}": 0.1 * i for e in estimates for i, end in enumerate(("_low", "", "_high"))}
    regret = pd.DataFrame({"rule": rules}).assign(**ends)
    return {
        "per_topic": (per_topic_frame(),),
        "study_comparison": (study_frame(),),
        "spread_sensitivity": (
            _estimates(gamma=[0.0, 1.0, 2.0], metric=two, system=systems),
            _estimates(
                spread=["none", "compressed", "current", "aggressive"], metric=two, system=systems
            ),
        ),
        "k_window": (_estimates(k=[1, 5, 10], window=[5, 15, "exact"], metric=two),),
        "feedback": (feedback.assign(prior=feedback["source_type"].map(PRIORS)),),
        "smoothing": (
            _estimates(alpha=[i / 10 for i in range(11)], neighbours=[3, 5], metric=two),
        ),
        "learned_priors": (learned_frame(),),
        "rank_flow": (trace_frame(),),
        "iso_score": (trace_frame(),),
        "answers": (pd.concat([answers, stance]),),
        "grounding_check": (grounding_frame(),),
        "threats": (_estimates(rate=[0.0, 0.5, 1.0], system=systems, metric=two),),
        "threat_curves": (
            _estimates(
                rule=[*rules, "bm25"], spoof=[0.0, 0.5, 1.0], leak=[0.0, 0.2], metric=["adv_share"]
            ),
        ),
        "no_regret": (regret,),
        "corpus_overview": (counts.assign(n=2, adversarial=counts["label"] == 0),),
    }


def _draw(name: str) -> Figure:
    return FIGURES[name](*inputs()[name])


def _texts(fig: Figure) -> list[Text]:
    """Texts that are drawn: visible, not empty, and no label of a tick outside its axis."""
    unseen = set()
    for axis in fig.findobj(Axis):
        low, high = sorted(axis.get_view_interval())
        for tick in axis.get_major_ticks():
            if not low - 1e-9 <= tick.get_loc() <= high + 1e-9:
                unseen |= {tick.label1, tick.label2}
    found = [t for t in fig.findobj(Text) if t.get_visible() and t.get_text().strip()]
    return [t for t in found if t not in unseen and (t.axes is None or t.axes.get_visible())]


def test_every_figure_of_the_study_is_there() -> None:
    assert set(FIGURES) == set(inputs())


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_nothing_is_cut_off_or_printed_over_other_text(name: str) -> None:
    fig = _draw(name)
    assert fig.get_figwidth() in (SINGLE, DOUBLE)
    with styled():
        canvas = FigureCanvasAgg(fig)
        canvas.draw()
        renderer = canvas.get_renderer()
        boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in _texts(fig)]
    width, height = canvas.get_width_height()
    for text, box in boxes:
        assert box.x0 >= -1 and box.x1 <= width + 1, f"{text!r} runs off sideways"
        assert box.y0 >= -1 and box.y1 <= height + 1, f"{text!r} runs off above or below"
    for (one, a), (other, b) in combinations(boxes, 2):
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        down = min(a.y1, b.y1) - max(a.y0, b.y0)
        assert across <= 1 or down <= 2, f"{one!r} lies over {other!r}"


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_figures_leave_inputs_and_settings_alone(name: str) -> None:
    frames = inputs()[name]
    copies = [frame.copy() for frame in frames]
    before = dict(matplotlib.rcParams)
    FIGURES[name](*frames)
    assert dict(matplotlib.rcParams) == before
    for frame, copy in zip(frames, copies, strict=True):
        pd.testing.assert_frame_equal(frame, copy)


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_missing_column_is_named(name: str) -> None:
    first, *rest = inputs()[name]
    column = next(c for c in ("metric", "sim", "prior", "n", "kept") if c in first)
    with pytest.raises(ValueError, match=column):
        FIGURES[name](first.drop(columns=column), *rest)


def test_drawing_never_loads_pyplot() -> None:
    code = (
        "import sys; import rag_reliability.reporting.figures, rag_reliability.reporting.save;"
        "heavy = {'matplotlib.pyplot', 'torch', 'faiss', 'numba', 'ranx'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_same_numbers_give_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    folder = Path(__file__).parent
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from test_figures import _draw, save_figure;"
        "save_figure(_draw('corpus_overview'), f'{sys.argv[2]}/figure')"
    )
    for seed in ("1", "2"):
        out = str(tmp_path / seed)
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", code, str(folder), out], check=True, env=environment)
    for path in sorted((tmp_path / "1").iterdir()):
        assert path.read_bytes() == (tmp_path / "2" / path.name).read_bytes(), path.name


def test_pdf_has_no_date_and_truetype_fonts_and_png_no_software(tmp_path: Path) -> None:
    pdf, png = save_figure(_draw("study_comparison"), tmp_path / "deep" / "figure.v1")
    assert (pdf.name, png.name) == ("figure.v1.pdf", "figure.v1.png")
    data = pdf.read_bytes()
    assert b"CreationDate" not in data
    assert b"/FontFile2" in data and b"/Type3" not in data
    assert b"Software" not in png.read_bytes()
    assert int.from_bytes(png.read_bytes()[16:20], "big") == round(SINGLE * 200)
    assert sorted(p.name for p in pdf.parent.iterdir()) == ["figure.v1.pdf", "figure.v1.png"]


def test_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = write_whole(tmp_path / "a.txt", "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "\ud800")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_equal_values_of_a_topic_stand_apart() -> None:
    fig = _draw("per_topic")  # every system has the same value on every topic
    points = [
        (round(float(x), 6), round(float(y), 6))
        for line in fig.axes[0].lines
        if line.get_linestyle() == "None"
        for x, y in line.get_xydata()
    ]
    assert len(points) == 30 and len(set(points)) == 30


def test_interval_ends_are_drawn_as_given() -> None:
    frame = study_frame()
    frame.loc[0, ["ours", "low", "high"]] = [0.5, 0.25, 0.75]
    ends = [
        tuple(np.round(segment[:, 0], 6))
        for collection in FIGURES["study_comparison"](frame).axes[0].collections
        for segment in collection.get_segments()
    ]
    assert (0.25, 0.75) in ends


def test_iso_line_passes_through_the_last_document_kept() -> None:
    trace = trace_frame()
    last = trace.loc[trace["in_top_after"], "score"].min()
    thick = max(FIGURES["iso_score"](trace).axes[0].lines, key=lambda line: line.get_linewidth())
    np.testing.assert_allclose(np.prod(thick.get_xydata(), axis=1), last)


def test_rank_flow_bears_true_ranks_on_both_sides() -> None:
    trace = trace_frame()
    written = " ".join(t.get_text() for t in _texts(FIGURES["rank_flow"](trace, depth=5)))
    moved = trace[trace["in_top_after"] != trace["in_top_before"]]
    assert len(moved)
    for row in moved.itertuples():
        assert f"{row.docno}   {row.rank_sim}" in written
        assert f"{row.rank_score}   {row.docno}, label {row.label}" in written


def test_stacks_add_up_to_the_counts() -> None:
    frame = inputs()["corpus_overview"][0]
    bars = FIGURES["corpus_overview"](frame).axes[0].patches
    assert sum(bar.get_width() for bar in bars) == frame["n"].sum() == 72


def test_unknown_names_are_shown_as_they_are() -> None:
    frame = _estimates(rate=[0.0, 1.0], system=["similarity", "my_bm25"], metric=["precision@10"])
    fig = FIGURES["threats"](frame)
    assert "my bm25" in [t.get_text() for t in fig.legends[0].get_texts()]
    assert fig.axes[0].get_ylabel() == "P@10 ↑"


def test_labels_and_directions() -> None:
    assert metric_label("adv_share@5", arrow=True) == "Adversarial share@5 ↓"
    assert metric_label("precision") == "P@k"
    assert metric_label("my_metric@3") == "my metric@3"
    assert metric_label("suppressible_true_count@5") == "True documents suppressible@5"
    assert system_label("source_aware_3k") == "Source-aware (3k window)"
    assert higher_is_better("ndcg@5") and not higher_is_better("stance_error")
    assert in_order(["b", "source_aware", "similarity"], SYSTEMS) == [
        "similarity",
        "source_aware",
        "b",
    ]
    assert sorted(["q10", "q2", "q1"], key=natural) == ["q1", "q2", "q10"]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.01, 0.3))
def test_spread_out_keeps_order_gap_and_centre(values: list[float], gap: float) -> None:
    values = sorted(values)
    placed = spread_out(values, gap)
    assert all(b - a >= gap - 1e-9 for a, b in pairwise(placed))
    assert np.mean(placed) == pytest.approx(np.mean(values))


def test_spread_out_leaves_distant_values_alone() -> None:
    assert spread_out([0.1, 0.5, 0.9], 0.1) == [0.1, 0.5, 0.9]
    assert spread_out([0.5, 0.5], 0.2) == pytest.approx([0.4, 0.6])


def test_better_directions_agree_with_the_tests_of_significance() -> None:
    from rag_reliability.evaluation.significance import lower_is_better
    from rag_reliability.reporting.style import METRICS

    wrong = [m for m in METRICS if higher_is_better(m) == lower_is_better(m)]
    assert not wrong
