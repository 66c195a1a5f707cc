"""What the explorer shows, as HTML strings: a bench and a state in, nothing of widgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from rag_reliability.experiment.bench import Bench
from rag_reliability.experiment.displays import (
    ShownAnswer,
    answers_html,
    passages_table,
    ranking_html,
    tier_label,
    tier_mark,
)
from rag_reliability.explorer.state import Row, State, as_edited, top
from rag_reliability.records import Document


def rule_label(rule: str) -> str:
    """A rule's name in words."""
    return rule.replace("_", " ")


def slider_label(source_type: str) -> str:
    """Shape and name of a source type, for beside its slider."""
    return f"{tier_mark(source_type).glyph} {tier_label(source_type)}"


def ranking_panel(bench: Bench, state: State, rows: list[Row]) -> str:
    """Facts, ranking with each document's trace, and the rank flow."""
    window = "no window" if state.window is None else f"window {max(state.window, state.k)}"
    return ranking_html(
        rows,
        state.k,
        rule=rule_label(state.rule),
        caption=f"{bench.query} (top {state.k}, {rule_label(state.rule)}, {window})",
        facts=facts(rows, state.k),
        styled=False,
    )


def facts(rows: list[Row], k: int) -> list[tuple[str, str]]:
    """What the top k holds, by similarity → by the rule."""
    before = [row for row in rows if row["in_top_before"]]
    after = [row for row in rows if row["in_top_after"]]
    entered = [row["docno"] for row in after if not row["in_top_before"]]
    left = [row["docno"] for row in before if not row["in_top_after"]]

    def both(name: str) -> str:
        return f"{sum(bool(r[name]) for r in before)} → {sum(bool(r[name]) for r in after)}"

    told = [(f"adversarial in the top {k}", both("adversarial"))]
    if any(row["label"] is not None for row in rows):
        told.append(("relevant", both("label")))
    told.append(("checked", both("verified")))
    told.append(("entered", ", ".join(entered) or "none"))
    told.append(("left", ", ".join(left) or "none"))
    return told


def edits_line(state: State, added: Sequence[Document]) -> str:
    """What differs from the corpus, in words."""
    told = [f"{d} declares {tier_label(t).lower()}" for d, t in sorted(state.types.items())]
    told += [
        f"{d} {'counts as checked' if v else 'counts as not checked'}"
        for d, v in sorted(state.verified.items())
    ]
    told += [f"{d} removed" for d in sorted(state.removed)]
    told += [f"{d.docno} added" for d in added]
    return "What if: " + "; ".join(told) if told else "The corpus as it is."


def shown_documents(
    bench: Bench, state: State, rows: list[Row]
) -> tuple[list[Document], list[Document]]:
    """The documents that a model would be shown: by similarity, and by the rule."""
    known = {d.docno: as_edited(state, d) for d in bench.documents}
    before, after = (top(rows, by, state.k) for by in ("rank_sim", "rank_score"))
    return [known[d] for d in before], [known[d] for d in after]


def answers_panel(
    query: str,
    names: Sequence[str],
    shown: Sequence[Sequence[Document]],
    sentences: Sequence[pd.DataFrame],
    edits: Mapping[str, str],
) -> str:
    """Both answers side by side; edits: what was edited, by docno."""
    answers = []
    for name, documents, said in zip(names, shown, sentences, strict=True):
        passages = passages_table(list(documents))
        passages["edited"] = [edits.get(d, "") for d in passages["docno"]]
        answers.append(ShownAnswer(name, said, passages))
    same = [d.docno for d in shown[0]] == [d.docno for d in shown[-1]]
    note = "Both rankings show the same passages in the same order, so the answer is one." * same
    return answers_html(answers, query=query, note=note, styled=False)
