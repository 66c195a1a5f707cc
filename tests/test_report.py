"""The report: its sentences follow the numbers, its page stands alone and escapes everything."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from rag_reliability.reporting import conclusion, wording
from rag_reliability.reporting.captions import CAPTIONS
from rag_reliability.reporting.figures import FIGURES
from rag_reliability.reporting.report import (
    ReportContext,
    answer_sentences,
    losses,
    render_report,
    suppressed,
)
from rag_reliability.reporting.save import save_figure
from rag_reliability.reporting.sources import SOURCES, source_links
from rag_reliability.reporting.wording import verdict

HOSTILE = '<script>alert("x")</script><img src=x onerror=alert(1)>'
NAN = float("nan")


@pytest.mark.parametrize(
    ("numbers", "higher", "start"),
    [
        ((0.24, 0.1, 0.38, 0.004), True, "better by 0.240 (change 0.240"),
        ((-0.24, -0.38, -0.1, 0.004), False, "better by 0.240 (change −0.240"),
        ((-0.24, -0.38, -0.1, 0.004), True, "worse by 0.240 (change −0.240"),
        ((0.24, 0.1, 0.38, 0.004), False, "worse by 0.240 (change 0.240"),
        (
            (0.1, -0.1, 0.3, 0.4),
            True,
            "better by 0.100 on average, which chance alone could explain",
        ),
        (
            (-0.1, -0.3, 0.1, 0.4),
            True,
            "worse by 0.100 on average, which chance alone could explain",
        ),
        ((0.1, 0.01, 0.2, 0.08), True, "better by 0.100, on uncertain evidence"),
        ((0.1, -0.01, 0.2, 0.04), True, "better by 0.100, on uncertain evidence"),
        ((0.1, NAN, NAN, NAN), True, "better by 0.100, untested (change 0.100)"),
        ((0.0, -0.1, 0.1, 1.0), True, "unchanged on average (change 0.000"),
        ((NAN, NAN, NAN, NAN), True, "not measured in this run"),
    ],
)
def test_verdict_follows_sign_interval_and_p(
    numbers: tuple[float, float, float, float], higher: bool, start: str
) -> None:
    assert verdict(*numbers, higher).startswith(start)


def test_verdict_quotes_its_evidence() -> None:
    text = verdict(0.24, 0.1, 0.38, 0.00001, True)
    assert text.endswith("(change 0.240, 95 % interval 0.100 to 0.380, p < 0.001)")


@given(st.floats(-1, 1), st.floats(0, 0.5), st.floats(0, 1), st.booleans())
def test_verdict_never_claims_against_the_numbers(
    d: float, half: float, p: float, up: bool
) -> None:
    text = verdict(d, d - half, d + half, p, up)
    assert ("better" in text) == (abs(d) >= 5e-4 and (d > 0) == up)
    assert ("worse" in text) == (abs(d) >= 5e-4 and (d > 0) != up)
    plain = re.match(r"(better|worse) by [0-9.]+ \(", text) is not None
    assert plain == (abs(d) >= 5e-4 and p < 0.05 and (d - half > 0 or d + half < 0))


def _threats(mine: float, other: float) -> pd.DataFrame:
    rows = [(1.0, "source_aware", mine), (1.0, "similarity", other), (0.0, "source_aware", 0.0)]
    frame = pd.DataFrame(rows, columns=["rate", "system", "mean"])
    return frame.assign(metric="adv_share@5", low=0.0, high=1.0)


@pytest.mark.parametrize(
    ("mine", "other", "end"),
    [(0.3, 0.2, "works for the adversary"), (0.1, 0.2, "remains"), (0.2, 0.2, "is gone")],
)
def test_spoofing_says_what_is_left(mine: float, other: float, end: str) -> None:
    text = wording.spoofing(_threats(mine, other), "source_aware", "similarity", "adv_share@5")
    assert text.endswith(end) and text.startswith("when 100 %")


def test_contrast_uses_holm_p_where_there_is_one() -> None:
    row = {"system": "s", "metric": "precision@5", "diff": 0.2, "low": 0.1, "high": 0.3, "p": 0.01}
    frame = pd.DataFrame([row | {"p_holm": 0.2}])
    assert "p = 0.200" in wording.contrast(frame, "s", "precision@5")
    frame["p_holm"] = np.nan
    assert "p = 0.010" in wording.contrast(frame, "s", "precision@5")
    assert wording.contrast(frame, "other", "precision@5") == wording.NOT_MEASURED


def _trace() -> pd.DataFrame:
    rows = [
        ("h001", "user_generated", 0.9, 0.4, 1, 7, True, False, 2, False),
        ("h002", "government", 0.8, 0.9, 2, 1, True, True, 1, False),
        ("h003", "peer_reviewed", 0.7, 0.95, 6, 2, False, True, 0, False),
        ("h004", "ai_generated", 0.85, 0.3, 3, 9, True, False, 0, True),
    ]
    columns = (
        "docno source_type sim prior rank_sim rank_score in_top_before in_top_after label "
        "adversarial"
    )
    frame = pd.DataFrame(rows, columns=columns.split())
    low = frame["source_type"].isin({"user_generated", "ai_generated"})
    return frame.assign(qid="q006", score=frame["sim"] * frame["prior"], why="", low_tier=low)


def test_why_lost_names_what_left_and_what_entered() -> None:
    why = wording.why_lost(_trace())
    assert [r["docno"] for r in why["left"]] == ["h001", "h004"]
    assert [r["docno"] for r in why["entered"]] == ["h003"]
    assert why["sentence"] == (
        "2 out, 1 in: 1 of those that left and 0 of those that entered are relevant; adversarial: "
        "1 left, 0 entered. Their mean prior is 0.35 and 0.95."
    )
    assert "No trace" in wording.why_lost(pd.DataFrame())["sentence"]


def _context(tmp_path: Path | None = None, **changes: object) -> ReportContext:
    contrasts = pd.DataFrame(
        [
            ("source_aware", None, "precision@5", 0.2, 0.1, 0.3, 0.01, 0.02),
            ("source_aware", None, "adv_share@5", 0.1, 0.05, 0.2, 0.01, 0.02),
            ("source_aware", "plain", "harm", -0.1, -0.3, 0.1, 0.3, 0.4),
        ],
        columns=["system", "arm", "metric", "diff", "low", "high", "p", "p_holm"],
    )
    summary = pd.DataFrame(
        [("source_aware", "precision@5", 0.7), ("source_aware", "suppressed_true@5", 0.25)],
        columns=["system", "metric", "mean"],
    ).assign(low=0.1, high=0.9, p_holm=0.02)
    study = pd.DataFrame(
        [("precision@5", "baseline", 0.48, 0.5, 0.3, 0.7)],
        columns=["metric", "arm", "study", "ours", "low", "high"],
    )
    rows = [
        (s, q, m, v)
        for s, q, m, v in (
            ("similarity", "q006", "precision@5", 0.6),
            ("source_aware", "q006", "precision@5", 0.4),
            ("similarity", "q006", "adv_share@5", 0.2),
            ("source_aware", "q006", "adv_share@5", 0.0),
        )
    ]
    fields: dict[str, object] = {
        "run": "test",
        "summary": summary,
        "contrasts": contrasts,
        "study": study,
        "per_topic": pd.DataFrame(rows, columns=["system", "qid", "metric", "value"]),
        "traces": _trace(),
        "threats": _threats(0.3, 0.2),
        "topics": {"q006": HOSTILE},
        "titles": {f"h00{i}": HOSTILE for i in range(1, 5)},
        "examples": [{"qid": "q006", "system": "similarity", "arm": "plain", "text": HOSTILE}],
        "values": {"precision": 0.123456789, "none": None},
        "provenance": {"git commit": "abc123"},
        "stages": pd.DataFrame([("index", 1.25, True)], columns=["stage", "seconds", "reused"]),
    }
    return ReportContext(**(fields | changes))  # type: ignore[arg-type]


def test_three_sentences_say_good_and_bad_alike() -> None:
    first, second, third = answer_sentences(_context())
    assert "P@5 is better by 0.200 (" in first
    assert "adversarial share of the top 5 is worse by 0.100 (" in first
    assert "correctness is not measured in this run" in second
    assert "harm is better by 0.100 on average, which chance alone could explain" in second
    assert "25 % of the relevant low-tier documents" in third
    assert "works for the adversary" in third


def test_losses_and_suppressed_documents() -> None:
    (loss,) = losses(_context())
    assert (loss["qid"], loss["changes"]) == ("q006", ["P@5 0.60 → 0.40"])
    assert [row["docno"] for row in suppressed(_context())] == ["h001"]
    # A compressed spread gives every type a high prior; what is low-tier does not change with it.
    compressed = replace(_context(), traces=_trace().assign(prior=0.8))
    assert [row["docno"] for row in suppressed(compressed)] == ["h001"]
    assert losses(_context(system="absent")) == []


class _Page(HTMLParser):
    """Collects what the tests ask about: tags with their attributes, and ids."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]


def test_corpus_text_is_escaped_everywhere() -> None:
    html = render_report(_context())
    page = _Page(html)
    assert not page.all("script") and not page.all("img")
    assert html.count("&lt;script&gt;") >= 5
    assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)


def test_page_asks_for_nothing_and_is_well_made(tmp_path: Path) -> None:
    fig = Figure(figsize=(3.4, 2))
    fig.subplots()
    _, png = save_figure(fig, tmp_path / "threats")
    html = render_report(_context(figures={"threats": png}))
    assert html.startswith("<!doctype html>")
    page = _Page(html)
    (image,) = page.all("img")
    assert image["src"].startswith("data:image/png;base64,") and image["alt"]
    assert not page.all("link") and not page.all("iframe")
    assert not re.search(r"""(src|href)=["']?(https?:)?//|url\(|@import""", html)
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {str(a["href"]).removeprefix("#") for a in page.all("a")} <= set(ids)
    assert len(page.all("table")) == len(page.all("caption")) > 0
    assert len(page.all("h1")) == 1
    assert page.all("html")[0]["lang"] == "en-GB"


def test_page_of_an_empty_run_says_so_instead_of_failing() -> None:
    nothing = pd.DataFrame()
    empty = pd.DataFrame(columns=["system", "qid", "metric", "value"])
    html = render_report(
        ReportContext(
            run="empty", summary=nothing, contrasts=nothing, study=nothing, per_topic=empty
        )
    )
    assert html.count("Not measured in this run.") >= 7
    assert "No topic got worse" not in html


def test_same_context_gives_the_same_page() -> None:
    assert render_report(_context()) == render_report(_context())


def test_missing_figure_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="gone"):
        render_report(_context(figures={"threats": tmp_path / "gone.png"}))


def test_every_figure_has_caption_and_alternative_text() -> None:
    assert set(CAPTIONS) == set(FIGURES)
    assert all(len(caption) > 20 and len(alt) > 20 for caption, alt in CAPTIONS.values())


def _swept(sweep: str, rows: list[tuple[object, bool, float, float]]) -> pd.DataFrame:
    """Swept values of P@k: (value, this run's own, difference, p); intervals follow the p."""
    frame = pd.DataFrame(rows, columns=["value", "here", "diff", "p"]).astype({"value": object})
    sure = frame["p"] < 0.05
    frame["low"] = np.where(sure & (frame["diff"] > 0), 0.01, -1.0)
    frame["high"] = np.where(sure & (frame["diff"] < 0), -0.01, 1.0)
    return frame.assign(sweep=sweep, metric="precision", n_topics=10)


def test_what_turns_is_found_at_the_values_where_it_turns() -> None:
    own = _swept("", [("", True, 0.2, 0.01)])
    spread = _swept(
        "spread",
        [
            *[(0.0, False, 0.0, 1.0), (0.5, False, 0.1, 0.2), (1.0, True, 0.2, 0.01)],
            *[(2.0, False, 0.1, 0.3), (3.0, False, -0.1, 0.4), (4.0, False, -0.3, 0.02)],
        ],
    )
    flat = _swept("k", [(1, False, 0.3, 0.02), (5, True, 0.2, 0.01)])
    window = _swept("window", [("5", False, 0.0, 1.0), ("exact", True, 0.2, 0.01)])
    (found,) = conclusion.turns(pd.concat([own, spread, flat, window]), 5)
    assert found["metric"] == "P@5" and found["found"].startswith("better by 0.200 (")
    sweeps = {sweep["name"]: sweep for sweep in found["sweeps"]}
    assert sweeps["Spread of the priors (γ 0 to 4)"]["changes"] == [
        ("the sign turns to worse at 3 and 4", "3: change −0.100, p = 0.400"),
        ("the difference vanishes at 0", "0: change 0.000, p = 1.000"),
        # At 4 the difference is significant again, but on the other side.
        ("significance is lost at 0, 0.5, 2 and 3", "0.5: change 0.100, p = 0.200"),
        ("it is significantly worse at 4", "4: change −0.300, p = 0.020"),
    ]
    assert sweeps["Documents kept (k 1 to 5)"]["changes"] == []
    assert sweeps["Documents kept (k 1 to 5)"]["otherwise"] == conclusion.NOTHING
    assert sweeps["Rank window (window 5 to exact)"]["changes"] == [
        ("the difference vanishes and with it its significance at 5", "5: change 0.000, p = 1.000")
    ]
    assert sweeps["Named spreads"]["otherwise"] == wording.NOT_MEASURED
    assert conclusion.tally([found]).startswith("In 2 of 3 sweeps of a metric some value tried")


def test_a_conclusion_that_nothing_turns_says_so() -> None:
    own, rates = _swept("", [("", True, 0.2, 0.01)]), [(0.0, True, 0.2, 0.01)]
    frame = pd.concat([own, _swept("spoofing", [*rates, (1.0, False, 0.1, 0.04)])])
    html = render_report(_context(sensitivity=frame))
    assert "Nothing in the ranges tried changes it, in none of 1 sweeps" in html
    assert "Spoofed adversarial documents (share 0 % to 100 %): nothing in the range" in html
    # A gain of significance is a change too.
    weak = pd.concat([_swept("", [("", True, 0.2, 0.2)]), _swept("k", [(3, False, 0.3, 0.01)])])
    (found,) = conclusion.turns(weak, 5)
    assert [text for s in found["sweeps"] for text, _ in s["changes"]] == [
        "it is significantly better at every value tried"
    ]


def test_every_table_and_figure_names_its_sources_and_links_only_what_is_there() -> None:
    assert {f"figure:{name}" for name in FIGURES} <= set(SOURCES)
    some = {"metrics/retrieval.csv", "notebooks/05_evaluate.ipynb", "stages/index.json"}
    assert source_links("main", some, up="../") == [
        ("05_evaluate", "../notebooks/05_evaluate.ipynb"),
        ("metrics/retrieval.csv", "../metrics/retrieval.csv"),
    ]
    html = render_report(_context(files=some, pages={"q006": "topics/q006.html"}))
    outward = {str(a["href"]) for a in _Page(html).all("a") if not str(a["href"]).startswith("#")}
    assert outward == some | {"topics/q006.html"}
