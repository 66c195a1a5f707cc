"""What the explorer holds and shows: the question at hand, its state, and four panels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, TypeVar

import ipywidgets as w

from rag_reliability.experiment.bench import Bench
from rag_reliability.experiment.displays import note_html, style_html
from rag_reliability.experiment.exploring import Session
from rag_reliability.explorer import render, state
from rag_reliability.explorer.controls import Controls
from rag_reliability.records import Document, InputError

LISTED = 30
"""Documents that can be edited: the most similar this many."""


class Screen:
    """Controls and panels of one session; ``redraw`` brings the panels up to the state."""

    def __init__(self, session: Session, controls: Controls, now: state.State) -> None:
        self.session, self.controls, self.state = session, controls, now
        self.original: Bench | None = None
        self.bench: Bench | None = None
        self.rows: list[state.Row] = []
        self.added: tuple[Document, ...] = ()
        self.edits, self.status, self.view, self.answers = (w.HTML() for _ in range(4))
        self.box = w.VBox(
            [w.HTML(style_html()), controls.box, self.edits, self.status, self.view, self.answers]
        )
        self.box.add_class("rr-explorer")

    def say(self, text: str, *, alert: bool = False) -> None:
        """Show a line of status; an empty one clears it."""
        self.status.value = note_html(text, alert=alert) if text else ""

    @contextmanager
    def busy(self, button: w.Button, text: str) -> Iterator[None]:
        """Show ``text`` while something takes long, its button at rest."""
        self.say(text)
        button.disabled = True
        try:
            yield
            self.say("")
        finally:
            button.disabled = False

    def open_bench(self) -> Bench:
        """The question at hand. Raises InputError where there is none."""
        if self.bench is None:
            raise InputError("choose a topic or ask a question first")
        return self.bench

    def redraw(self) -> None:
        """Rank anew and show it."""
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


_S = TypeVar("_S", bound=Screen)


def told(handler: Callable[[_S], None]) -> Callable[Concatenate[_S, ...], None]:
    """A handler whose refusals are shown, not raised: nobody sees a traceback from a button.

    What a widget says of the event is dropped: handlers look at the controls.
    """

    @wraps(handler)
    def run(screen: _S, *_: Any) -> None:
        try:
            handler(screen)
        except InputError as error:
            screen.say(str(error), alert=True)

    return run
