"""The explorer's widgets and what they set off; what is shown is made in ``render``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import ipywidgets as w

from rag_reliability.experiment.bench import QUICK_RULES, READING_RULES, Bench
from rag_reliability.experiment.exploring import DEPTH, Session
from rag_reliability.experiment.study import Study
from rag_reliability.explorer import render, state, what_if
from rag_reliability.explorer.controls import NO_WINDOW, Controls
from rag_reliability.explorer.screen import Screen, told


def explore(study: Study) -> w.Widget:
    """The explorer, for a notebook cell: ends a cell with it and it is shown."""
    return Explorer(Session(study)).box


def _table(study: Study) -> dict[str, float]:
    """λ of every source type that the corpus has, too where the study's table lacks it."""
    extra = sorted({d.source_type for d in study.corpus.documents} - set(study.table))
    return {**study.table, **{kind: study.config.unknown_prior or 1.0 for kind in extra}}


def _controls(study: Study) -> Controls:
    """Controls that stand as the study's config says."""
    config, table = study.config, _table(study)
    windows = sorted({5, 10, config.k * config.expansion, 20, 30, 45, DEPTH})
    topics = [(f"{t.qid}: {t.query}"[:110], t.qid) for t in study.corpus.topics]
    spreads = list(study.priors.spreads)
    controls = Controls(topics, table, spreads, QUICK_RULES, windows, config.k)
    controls.spread.value = config.spread
    if config.window in windows:
        controls.window.value = str(config.window)
    return controls


def _window(controls: Controls) -> int | None:
    value = controls.window.value
    return None if value == NO_WINDOW else int(value)


class Explorer(Screen):
    """Answers the controls: what is asked, by which settings it is ranked, what is generated."""

    def __init__(self, session: Session) -> None:
        controls = _controls(session.study)
        now = state.State(_table(session.study), session.study.config.k, _window(controls))
        super().__init__(session, controls, now)
        self._quiet = False
        self._wire()
        if session.study.corpus.topics:
            self._topic_chosen()
        else:
            self.say("This corpus has no topics: type a question and press Ask.")

    def _wire(self) -> None:
        c = self.controls
        for control in (c.k, c.window, c.rule, *c.priors.values()):
            control.observe(self._settings_changed, "value")
        c.spread.observe(self._spread_chosen, "value")
        c.topic.observe(self._topic_chosen, "value")
        c.ask.on_click(self._asked)
        c.question.observe(self._asked, "value")
        c.read.on_click(self._read)
        c.generate.on_click(self._generate)
        what_if.wire(self)

    # ---- questions ---------------------------------------------------------------------------

    @told
    def _topic_chosen(self) -> None:
        if self.controls.topic.value:
            self._opened(self.session.bench(qid=self.controls.topic.value))

    @told
    def _asked(self) -> None:
        query = self.controls.question.value
        if self.bench is not None and self.bench.topic is None and self.bench.query == query:
            return  # Enter and the button both ask
        bench = self.session.bench(query=query)
        with self._silently():
            self.controls.topic.value = ""
        self._opened(bench)

    def _opened(self, bench: Bench) -> None:
        self.original = self.bench = bench
        self.added = ()
        self.state = state.reset(self.state)
        self.answers.value = ""
        self._offer_rules(QUICK_RULES)
        self.say("")
        self.redraw()

    # ---- settings ----------------------------------------------------------------------------

    @told
    def _settings_changed(self) -> None:
        if self._quiet:
            return
        c = self.controls
        table = {kind: round(slider.value, 2) for kind, slider in c.priors.items()}
        now = replace(self.state, table=table, k=c.k.value, window=_window(c), rule=c.rule.value)
        if now.table != self.state.table:
            self._name_spread(table)
        self.state = now
        self.redraw()

    def _name_spread(self, table: dict[str, float]) -> None:
        spreads = self.session.study.priors.spreads
        named = [n for n, known in spreads.items() if known.items() <= table.items()]
        with self._silently():
            self.controls.spread.value = named[0] if named else "as set below"

    @told
    def _spread_chosen(self) -> None:
        known = self.session.study.priors.spreads.get(self.controls.spread.value)
        if known is None or self._quiet:
            return
        with self._silently():
            for kind, value in known.items():
                self.controls.priors[kind].value = value
        self._settings_changed()

    def _offer_rules(self, rules: tuple[str, ...]) -> None:
        rule = self.state.rule if self.state.rule in rules else "source_aware"
        with self._silently():
            self.controls.rule.options = [(render.rule_label(r), r) for r in rules]
            self.controls.rule.value = rule
        self.state = replace(self.state, rule=rule)

    @contextmanager
    def _silently(self) -> Iterator[None]:
        """Set controls without redrawing."""
        before, self._quiet = self._quiet, True
        try:
            yield
        finally:
            self._quiet = before

    @told
    def _read(self) -> None:
        with self.busy(self.controls.read, "Reading passages with the model …"):
            self.bench = self.session.ready_for(self.open_bench(), READING_RULES[0])
            self._offer_rules((*QUICK_RULES, *READING_RULES))
            self.controls.rule.value = READING_RULES[0]

    @told
    def _generate(self) -> None:
        bench, rows = self.open_bench(), self.rows
        with self.busy(self.controls.generate, "Generating both answers …"):
            shown = render.shown_documents(bench, self.state, rows)
            texts = self.session.answers(bench.query, shown)
            said = [self.session.support(t, d) for t, d in zip(texts, shown, strict=True)]
            edits = {row["docno"]: row["edited"] for row in rows}
            names = ["Similarity only", render.rule_label(self.state.rule).capitalize()]
            self.answers.value = render.answers_panel(bench.query, names, shown, said, edits)
