"""Displays as HTML: every text is escaped by the template engine, and loses its control characters.

Documents are hostile. No string is put together here: templates with autoescape alone make HTML, so
a title can neither open a tag nor, by a direction mark, turn its line around.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import pandas as pd
from markupsafe import Markup

from rag_reliability.reporting.style import (
    TIERS,
    arm_label,
    metric_label,
    system_label,
    tier_label,
    tier_look,
)
from rag_reliability.reporting.tables import number
from rag_reliability.text import plain

LONGEST_TITLE, LONGEST_TEXT = 160, 4000
_GLYPHS = dict(zip("os^DvPh<>p*x", "●■▲◆▼✚⬢◀▶⬟★✖", strict=True))


class TierMark(NamedTuple):
    """How a source type looks in text: a colour (Okabe-Ito) and a shape."""

    colour: str
    glyph: str
    marker: str


def tier_mark(name: str) -> TierMark:
    """The mark of a source type, the same as in the figures; an unknown type takes a spare one."""
    look = tier_look(name, 0 if name in TIERS else sum(map(ord, name)))
    return TierMark(look.colour, _GLYPHS[look.marker], look.marker)


def render(template: str, **context: Any) -> str:
    """A template of ``templates/display_*.html`` filled in; values that are not Markup are escaped.

    ``styled=False`` leaves out the style sheet, for pages that already hold it.
    """
    return _environment().get_template(f"display_{template}.html").render(**context)


def style_html() -> str:
    """The style sheet alone, for a page on which displays come and go without it."""
    return render("style")


def note_html(text: str, *, alert: bool = False, styled: bool = False) -> str:
    """One line of status, or of what went wrong; read aloud by screen readers when it appears."""
    return render("note", text=text, kind="alert" if alert else "note", styled=styled)


def cut(text: str, longest: int) -> str:
    """``text`` up to ``longest`` characters, marked where it was cut."""
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as dictionaries, titles and texts cut, missing labels as None."""
    rows: list[dict[Hashable, Any]] = frame.to_dict("records")
    return [_record(row) for row in rows]


def _record(row: Mapping[Hashable, Any]) -> dict[str, Any]:
    known = {str(name): value for name, value in row.items()}
    for name, longest in (("title", LONGEST_TITLE), ("text", LONGEST_TEXT)):
        if name in known:
            known[name] = cut(" ".join(str(known[name])[: 2 * longest].split()), longest)
    if "label" in known:
        known["label"] = None if pd.isna(known["label"]) else int(known["label"])
    return known


def _printable(value: Any) -> Any:
    return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _signed(value: float) -> str:
    text = number(value)
    return text if text[:1] in "−–" or float(value) == 0 else f"+{text}"


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        finalize=_printable,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        system=system_label, tier=tier_label, metric=metric_label, arm=arm_label, num=number,
        signed=_signed,
    )  # fmt: skip
    environment.globals["look"] = tier_mark
    return environment
