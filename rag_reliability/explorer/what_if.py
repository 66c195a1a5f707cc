"""What the explorer's buttons do to documents: each sets the state and has it drawn."""

from __future__ import annotations

from functools import partial

from rag_reliability.explorer import state
from rag_reliability.explorer.screen import Screen, told
from rag_reliability.records import Document, InputError


def wire(screen: Screen) -> None:
    """Give the buttons of ``screen`` their handlers."""
    c = screen.controls
    for button, handler in (
        *((c.spoof, _spoof), (c.flip, _flip), (c.remove, _remove)),
        *((c.reset, _reset), (c.inject, _inject)),
    ):
        button.on_click(partial(handler, screen))


def _chosen(screen: Screen) -> Document:
    docno = screen.controls.document.value
    for document in screen.open_bench().documents:
        if document.docno == docno:
            return document
    raise InputError("choose a document first")


@told
def _spoof(screen: Screen) -> None:
    kind = screen.controls.as_type.value
    screen.state = state.spoofed(screen.state, _chosen(screen), kind)
    screen.redraw()


@told
def _flip(screen: Screen) -> None:
    screen.state = state.flipped(screen.state, _chosen(screen))
    screen.redraw()


@told
def _remove(screen: Screen) -> None:
    screen.state = state.without(screen.state, _chosen(screen).docno)
    screen.redraw()


@told
def _reset(screen: Screen) -> None:
    screen.bench, screen.added, screen.state = screen.original, (), state.reset(screen.state)
    screen.redraw()


@told
def _inject(screen: Screen) -> None:
    c, bench = screen.controls, screen.open_bench()
    mine = state.own_document(
        bench, c.title.value, c.text.value, c.text_type.value, c.text_verified.value
    )
    screen.bench = screen.session.extended(bench, mine)
    screen.added = (*screen.added, mine)
    screen.redraw()
