"""Every number a text would quote, under a name: as JSON and as LaTeX macros."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from numbers import Integral, Real
from pathlib import Path

import numpy as np

from rag_reliability.reporting.save import write_whole
from rag_reliability.reporting.tables import ABSENT, latex_text

Value = float | int | str | bool | None
_DIGITS = ("Zero", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")
PREFIX = "val"
"""Every macro starts with it, so that none can shadow a command of LaTeX."""


def macro_name(name: str) -> str:
    """Letters-only macro name: ``precision@5_diff`` becomes ``valPrecisionFiveDiff``.

    Raises ValueError when nothing is left of the name.
    """
    words = re.findall(r"[A-Za-z]+|\d", name.replace("−", "minus"))
    spelled = "".join(_DIGITS[int(w)] if w.isdigit() else w[0].upper() + w[1:] for w in words)
    if not spelled:
        raise ValueError(f"value name {name!r} has neither letters nor digits")
    return PREFIX + spelled


def plain_value(value: object) -> Value:
    """The value as JSON has it: floats rounded to six significant digits, missing ones null."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        return float(f"{number:.6g}") + 0.0 if math.isfinite(number) else None
    raise ValueError(f"a value is a number, a text or nothing, not {type(value).__name__}")


def tex_value(value: Value) -> str:
    """The value for running text: three decimals, or a power of ten when smaller than that."""
    if value is None:
        return latex_text(ABSENT)
    if not isinstance(value, float):
        return latex_text(value)
    if 0 < abs(value) < 0.0005:
        digits, power = f"{value:.1e}".split("e")
        return rf"\ensuremath{{{digits}\times10^{{{int(power)}}}}}"
    text = f"{value:.3f}" if abs(value) < 1000 else f"{value:.0f}"
    return rf"\ensuremath{{{text}}}" if value < 0 else text


def write_values(values: Mapping[str, object], directory: str | Path) -> tuple[Path, Path]:
    """Write values.json (sorted) and values.tex (one macro each) into ``directory``; both paths.

    Raises ValueError when two names spell the same macro, before anything is written.
    """
    plain = {name: plain_value(values[name]) for name in sorted(values)}
    macros: dict[str, str] = {}
    for name in plain:
        if (macro := macro_name(name)) in macros:
            raise ValueError(f"values {macros[macro]!r} and {name!r} both spell \\{macro}")
        macros[macro] = name
    lines = [rf"\newcommand{{\{m}}}{{{tex_value(plain[n])}}}" for m, n in macros.items()]
    text = json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False)
    folder = Path(directory)
    return (
        write_whole(folder / "values.json", text + "\n"),
        write_whole(folder / "values.tex", "".join(line + "\n" for line in lines)),
    )
