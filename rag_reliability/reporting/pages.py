"""What every HTML page shares: templates that escape, without a character that shows nothing."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from rag_reliability.reporting import tables
from rag_reliability.reporting.style import arm_label, metric_label, system_label, tier_label
from rag_reliability.text import plain


def _shown(value: Any) -> Any:
    """Text from a corpus without control and direction marks, which could hide or turn a line."""
    return plain(value) if type(value) is str else value


@cache
def environment() -> jinja2.Environment:
    """Templates of this package: autoescape on, an unknown name is an error."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters.update(
        system=system_label, arm=arm_label, tier=tier_label, metric=metric_label, num=tables.number
    )
    return made


def trusted(text: str) -> Markup:
    """Text of our own making (an image's data), never a corpus's: it is not escaped."""
    return Markup(text)
