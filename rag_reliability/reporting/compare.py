"""Two runs compared, as an object: table, figure, page, and something to see in a notebook."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from rag_reliability.reporting import wording
from rag_reliability.reporting.compare_figure import topic_differences
from rag_reliability.reporting.pages import environment, trusted
from rag_reliability.reporting.save import save_figure, write_whole
from rag_reliability.reporting.style import (
    arm_label,
    higher_is_better,
    in_order,
    metric_label,
    natural,
    styled,
    system_label,
)
from rag_reliability.reporting.tables import ABSENT, interval, number, p_text

TOPICS_SHOWN = 200
"""Rows of the page's table of topics; those that differ most, if there are more."""
PANELS = ("precision", "adv_share", "correctness", "harm", "stance_error")
_SIDES = {"win": "better", "loss": "worse"}
_FIRST = ("source_aware", "source_aware_3k", "similarity")


@dataclass(frozen=True)
class Comparison:
    """B minus A, paired by topic.

    tests: kind, system, arm, metric, mean_a, mean_b, diff, low, high (95 % of the difference), p,
    p_holm (over all rows), p_min, wins, ties, losses, n_topics. per_topic: kind, system, arm,
    metric, qid, a, b, delta, outcome. config: parameter, a, b. floor: the smallest adjusted p that
    so many topics and tests could give.
    """

    a: str
    b: str
    tests: pd.DataFrame
    per_topic: pd.DataFrame
    config: pd.DataFrame
    topics: tuple[str, ...]
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    floor: float = 0.0

    def __repr__(self) -> str:
        """The sentences and the table as plain text."""
        lines = [f"{self.b} minus {self.a}, {len(self.topics)} topics", *self.sentences()]
        lines += [*self.notes, self.table().to_string(index=False)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """What a notebook shows: the sentences and the table, all text escaped."""
        page = environment().get_template("compare_part.html")
        return page.render(c=self, sentences=self.sentences(), table=self.table())

    def sentences(self) -> list[str]:
        """What is significant after Holm's correction, in sentences made from the numbers."""
        tests = self.tests
        sure = [r for r in tests.to_dict("records") if r["p_holm"] < wording.ALPHA]
        found = [
            f"{_title(r)}: {self.b} is "
            + wording.verdict(
                r["diff"], r["low"], r["high"], r["p_holm"], higher_is_better(r["metric"])
            )
            + "."
            for r in sure
        ]
        if (tests["diff"].abs() < 1e-12).all() and (tests["p"] == 1).all():
            return ["No topic differs in anything compared."]
        return found or [self._nothing()]

    def _nothing(self) -> str:
        text = f"No difference is significant after Holm's correction over {len(self.tests)} tests."
        if self.floor >= wording.ALPHA:
            text += (
                f" With {len(self.topics)} topics no adjusted p could fall below "
                f"{number(self.floor, 3)}, however large the differences: ask of fewer systems "
                "or metrics."
            )
        return text

    def table(self) -> pd.DataFrame:
        """Every test as readable cells."""
        t = self.tests
        rows = t.to_dict("records")
        return pd.DataFrame(
            {
                "System": [system_label(s) for s in t["system"]],
                "Prompt": [arm_label(a) or ABSENT for a in t["arm"]],
                "Metric": [metric_label(m, arrow=True) for m in t["metric"]],
                self.a: [number(v, 3) for v in t["mean_a"]],
                f"{self.b} ": [number(v, 3) for v in t["mean_b"]],
                "Difference": [number(v, 3) for v in t["diff"]],
                "95 % interval": [interval(r["low"], r["high"], 3) for r in rows],
                "Topics": [str(n) for n in t["n_topics"]],
                "p": [p_text(v) for v in t["p"]],
                "p (Holm)": [p_text(v) for v in t["p_holm"]],
                "better / same / worse": [
                    f"{r['wins']} / {r['ties']} / {r['losses']}" for r in rows
                ],
            }
        )

    def shown(self) -> pd.DataFrame:
        """The rows of ``per_topic`` that figure and table of topics show: one system, one arm.

        The first of source-aware (exact, then 3k) and similarity that differs at all, else the one
        that differs most.
        """
        frame = self.per_topic
        sums = frame.assign(size=frame["delta"].abs()).groupby("system")["size"].sum()
        known = [s for s in _FIRST if sums.get(s, 0) > 0]
        system = known[0] if known else str(sums.sort_values(kind="stable").index[-1])
        own = frame[frame["system"] == system]
        arms = in_order((a for a in own["arm"] if a), ("plain",))
        own = own[own["arm"].isin(["", *arms[:1]])]
        metrics = list(dict.fromkeys(own["metric"]))
        wanted = [m for name in PANELS for m in metrics if m.partition("@")[0] == name]
        return own[own["metric"].isin((wanted or metrics)[:4])]

    def figure(self) -> Figure:
        """Each topic's value in A and in B, a panel for each of up to four metrics."""
        with styled():
            return topic_differences(self.shown(), self.a, self.b)

    def topic_table(self) -> pd.DataFrame:
        """``shown`` with a row for each topic; the ``TOPICS_SHOWN`` that differ most, if more."""
        frame = self.shown()
        size = frame.assign(size=frame["delta"].abs()).groupby("qid")["size"].sum()
        kept = size.sort_values(ascending=False, kind="stable").index[:TOPICS_SHOWN]
        qids = sorted(kept, key=natural)
        columns: dict[str, list[str]] = {"Topic": qids}
        for metric in dict.fromkeys(frame["metric"]):
            own = frame[frame["metric"] == metric].set_index("qid").reindex(qids)
            label = metric_label(metric, arrow=True)
            columns[f"{label}, {self.a}"] = [number(v) for v in own["a"]]
            columns[f"{label}, {self.b}"] = [number(v) for v in own["b"]]
            sides = own["outcome"].map(_SIDES).fillna("")
            ends = zip(own["delta"], sides, strict=True)
            columns[f"{label}, difference"] = [f"{number(v)} {side}".strip() for v, side in ends]
        return pd.DataFrame(columns)

    def write(self, out: str | Path) -> Path:
        """Write page, CSV files and figure into ``out``; returns the page's path."""
        out = Path(out)
        _, png = save_figure(self.figure(), out / "figures" / "topic_differences")
        for name, frame in (
            ("comparison", self.tests),
            ("per_topic", self.per_topic),
            ("config", self.config),
        ):
            text = frame.to_csv(index=False, lineterminator="\n", float_format="%.6g")
            write_whole(out / f"{name}.csv", text)
        return write_whole(out / "index.html", self.page(png.read_bytes()))

    def page(self, png: bytes) -> str:
        """The page as a string; ``png`` is the figure's."""
        data = base64.b64encode(png).decode("ascii")
        shown = self.shown()
        return (
            environment()
            .get_template("compare.html")
            .render(
                c=self,
                sentences=self.sentences(),
                table=self.table(),
                topics=self.topic_table(),
                system=shown["system"].iloc[0],
                image=trusted(f"data:image/png;base64,{data}"),
                width=round(int.from_bytes(png[16:20], "big") * 0.64),
            )
        )


def _title(row: dict[Any, Any]) -> str:
    parts = [system_label(row["system"]), arm_label(row["arm"]).lower() if row["arm"] else ""]
    return f"{metric_label(row['metric'])} of {', '.join(p for p in parts if p)}"
