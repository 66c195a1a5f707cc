"""English words that ``rewording`` turns, as plain tables."""

from __future__ import annotations

_SUBORDINATORS = """who whom which that if when where whether because although though while unless
    whose what how as since before after until than"""
_REGULAR = """cause help work protect prevent improve shorten treat cure affect support show require
    lead spread contain reduce benefit damage suggest recommend"""
_PAST_FORMS = "showed:show found:find helped:help improved:improve prevented:prevent"
_PAIRS = """increase/decrease increases/decreases increased/decreased higher/lower raise/reduce
    raises/lowers raised/lowered more/less safe/dangerous effective/ineffective harmful/harmless
    beneficial/harmful better/worse before/after always/rarely common/rare most/few likely/unlikely
    longer/shorter stronger/weaker possible/impossible necessary/unnecessary improve/worsen
    improves/worsens improved/worsened effectively/ineffectively safely/dangerously"""
_ALIKE = """show:indicate shows:indicates showed:indicated many:numerous people:persons
    often:frequently also:additionally because:since need:require begin:start begins:starts
    large:big doctors:physicians important:essential illness:sickness especially:particularly
    whole:entire usually:generally help:aid helps:aids tell:inform"""
_STARTS = """a an the this that these those it they there some many most several in on for if when
    of with we our people patients"""

SUBORDINATORS = frozenset(_SUBORDINATORS.split())
"""Words that open a clause on the side."""

PAST = dict(pair.split(":") for pair in _PAST_FORMS.split())
"""Plain form of verbs in the past tense."""

VERBS = {f"{verb}s": verb for verb in _REGULAR.split()} | PAST
"""Plain form of verbs that take "does not" or "did not"."""

SYNONYMS = dict(pair.split(":") for pair in _ALIKE.split())
"""A word of about the same meaning."""

STARTS = frozenset(_STARTS.split())
"""Words that lose their capital inside a sentence."""

OPENINGS = (
    "In short,",
    "To put it plainly,",
    "As a matter of fact,",
    "To be clear,",
    "In other words,",
    "Again,",
    "Simply put,",
    "In practice,",
)
"""Phrases that change nothing in what follows."""


def _both_ways(pairs: list[list[str]]) -> dict[str, str]:
    forward, backward = {a: b for a, b in pairs}, {b: a for a, b in pairs}
    return backward | forward


OPPOSITES = _both_ways([pair.split("/") for pair in _PAIRS.split()])
"""An antonym; where a word has two, the one it is listed first with."""
