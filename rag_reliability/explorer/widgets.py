"""The explorer's widgets and what they set off; what is shown is made in ``render``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import Any

import ipywidgets as w

from rag_reliability.experiment.bench import QUICK_RULES, READING_RULES, Bench
from rag_reliability.experiment.displays import note_html, style_html
from rag_reliability.experiment.exploring import DEPTH, Session
from rag_reliability.experiment.study import Study
from rag_reliability.explorer import render, state
from rag_reliability.explorer.controls import Controls
from rag_reliability.records import Document, InputError

LISTED = 30
"""Documents that can be edited: the most similar this many."""


def explore(study: Study) -> w.Widget:
    """The explorer, for a notebook cell: ends a cell with it and it is shown."""
    return Explorer(Session(study)).box


def _told(handler: Callable[..., None]) -> Callable[..., None]:
    """A handler whose refusals are shown, not raised: nobody sees a traceback from a button."""

    @wraps(handler)
    def run(self: Explorer, *event: Any) -> None:
        try:
            handler(self, *event)
        except InputError as error:
            self.say(str(error), alert=True)

    return run


class Explorer:
    """Holds the question at hand and the state, and redraws when a control changes."""

    def __init__(self, session: Session) -> None:
        self.session, study = session, session.study
        config = study.config
        extra = sorted({d.source_type for d in study.corpus.documents} - set(study.table))
        table = {**study.table, **{kind: config.unknown_prior or 1.0 for kind in extra}}
        windows = sorted({5, 10, config.k * config.expansion, 20, 30, 45, DEPTH})
        topics = [(f"{t.qid}: {t.query}"[:110], t.qid) for t in study.corpus.topics]
        spreads = list(study.priors.spreads)
        self.controls = Controls(topics, table, spreads, QUICK_RULES, windows, config.k)
        self.controls.spread.value = config.spread
        if config.window in windows:
            self.controls.window.value = str(config.window)
        self.state = state.State(table, config.k, self._window())
        self.original: Bench | None = None
        self.bench: Bench | None = None
        self.rows: list[state.Row] = []
        self.added: tuple[Document, ...] = ()
        self._quiet = False
        self.edits, self.status, self.view, self.answers = (w.HTML() for _ in range(4))
        self.box = w.VBox(
            [w.HTML(style_html()), self.controls.box, self.edits, self.status, self.view,
             self.answers]
        )  # fmt: skip
        self.box.add_class("rr-explorer")
        self._wire()
        if topics:
            self._topic_chosen()
        else:
            self.say("This corpus has no topics: type a question and press Ask.")

    def say(self, text: str, *, alert: bool = False) -> None:
        """Show a line of status; an empty one clears it."""
        self.status.value = note_html(text, alert=alert) if text else ""

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
        for button, handler in (
            (c.spoof, self._spoof), (c.flip, self._flip), (c.remove, self._remove),
            (c.reset, self._reset), (c.inject, self._inject),
        ):  # fmt: skip
            button.on_click(handler)

    # ---- questions ---------------------------------------------------------------------------

    @_told
    def _topic_chosen(self, *_: Any) -> None:
        if self.controls.topic.value:
            self._opened(self.session.bench(qid=self.controls.topic.value))

    @_told
    def _asked(self, *_: Any) -> None:
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
        self._redraw()

    # ---- settings ----------------------------------------------------------------------------

    def _window(self) -> int | None:
        value = self.controls.window.value
        return int(value) if value.isdigit() else None

    @_told
    def _settings_changed(self, *_: Any) -> None:
        if self._quiet:
            return
        c = self.controls
        table = {kind: round(slider.value, 2) for kind, slider in c.priors.items()}
        now = replace(
            self.state, table=table, k=c.k.value, window=self._window(), rule=c.rule.value
        )
        if now.table != self.state.table:
            self._name_spread(table)
        self.state = now
        self._redraw()

    def _name_spread(self, table: dict[str, float]) -> None:
        spreads = self.session.study.priors.spreads
        named = [n for n, known in spreads.items() if known.items() <= table.items()]
        with self._silently():
            self.controls.spread.value = named[0] if named else "as set below"

    @_told
    def _spread_chosen(self, *_: Any) -> None:
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

    @_told
    def _read(self, *_: Any) -> None:
        with self._busy(self.controls.read, "Reading passages with the model …"):
            self.bench = self.session.ready_for(self._open_bench(), READING_RULES[0])
            self._offer_rules((*QUICK_RULES, *READING_RULES))
            self.controls.rule.value = READING_RULES[0]

    # ---- what if -----------------------------------------------------------------------------

    def _chosen(self) -> Document:
        docno = self.controls.document.value
        for document in self._open_bench().documents:
            if document.docno == docno:
                return document
        raise InputError("choose a document first")

    @_told
    def _spoof(self, *_: Any) -> None:
        self.state = state.spoofed(self.state, self._chosen(), self.controls.as_type.value)
        self._redraw()

    @_told
    def _flip(self, *_: Any) -> None:
        self.state = state.flipped(self.state, self._chosen())
        self._redraw()

    @_told
    def _remove(self, *_: Any) -> None:
        self.state = state.without(self.state, self._chosen().docno)
        self._redraw()

    @_told
    def _reset(self, *_: Any) -> None:
        self.bench, self.added, self.state = self.original, (), state.reset(self.state)
        self._redraw()

    @_told
    def _inject(self, *_: Any) -> None:
        c, bench = self.controls, self._open_bench()
        mine = state.own_document(
            bench, c.title.value, c.text.value, c.text_type.value, c.text_verified.value
        )
        self.bench = self.session.extended(bench, mine)
        self.added = (*self.added, mine)
        self._redraw()

    # ---- showing -----------------------------------------------------------------------------

    def _open_bench(self) -> Bench:
        if self.bench is None:
            raise InputError("choose a topic or ask a question first")
        return self.bench

    def _redraw(self) -> None:
        if self.bench is None:
            return
        self.bench = self.session.ready_for(self.bench, self.state.rule)
        self.rows = state.ranking(self.bench, self.state, self.session.prior)
        self.view.value = render.ranking_panel(self.bench, self.state, self.rows)
        self.edits.value = note_html(render.edits_line(self.state, self.added))
        self._offer_documents()

    def _offer_documents(self) -> None:
        """Documents to edit, in similarity's order, so that the list keeps still under a slider."""
        near = [r for r in self.rows if r["rank_sim"] <= LISTED or r["in_top_after"]]
        near.sort(key=lambda row: row["rank_sim"])
        options = [(f"{row['docno']} · {row['title'][:70]}", row["docno"]) for row in near]
        chooser = self.controls.document
        if options != list(chooser.options):
            known, before = {docno for _, docno in options}, chooser.value
            chooser.options = options
            chooser.value = before if before in known else next(iter(options))[1]

    @contextmanager
    def _busy(self, button: w.Button, text: str) -> Iterator[None]:
        self.say(text)
        button.disabled = True
        try:
            yield
            self.say("")
        finally:
            button.disabled = False

    @_told
    def _generate(self, *_: Any) -> None:
        bench, rows = self._open_bench(), self.rows
        with self._busy(self.controls.generate, "Generating both answers …"):
            shown = render.shown_documents(bench, self.state, rows)
            texts = self.session.answers(bench.query, shown)
            said = [self.session.support(t, d) for t, d in zip(texts, shown, strict=True)]
            edits = {row["docno"]: row["edited"] for row in rows}
            names = ["Similarity only", render.rule_label(self.state.rule).capitalize()]
            self.answers.value = render.answers_panel(bench.query, names, shown, said, edits)
