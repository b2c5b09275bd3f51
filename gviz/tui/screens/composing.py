"""Every panel and row of the debugger's screen, and what of the screen each of them follows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Static

from gviz.tui.arrangement import numbered
from gviz.tui.widgets.graph_canvas import GraphCanvas
from gviz.tui.widgets.lists import BreakList, ModuleTree, OutputPanel, StackList, WatchList
from gviz.tui.widgets.node import NodePanel, SavedPanel
from gviz.tui.widgets.prompt import Prompt
from gviz.tui.widgets.source import SourcePane
from gviz.tui.widgets.status import HappeningRow, KeysRow, StatusRow, TimelineBar
from gviz.tui.widgets.tape import Tape

if TYPE_CHECKING:
    from gviz.tui.screens.debugger import DebuggerScreen


class Body(Horizontal):
    """Columns side by side, which cover it: Textual need not paint what is below them."""

    BLANK = True


class Column(Vertical):
    """Panels one above the other, which cover it."""

    BLANK = True


def composed(screen: DebuggerScreen) -> ComposeResult:
    """All panels, always; which of them are seen is `arranged`."""
    timeline, glyphs, here = screen.timeline, screen.glyphs, type(screen)
    yield StatusRow(timeline, screen.session.title, glyphs).data_bind(here.moment, here.stop, here.time, here.beside)
    yield TimelineBar(timeline, glyphs).data_bind(here.moment, here.length)
    left = ModuleTree(screen.session, "Modules", id="side-modules")
    with Body(id="body"):
        yield left.data_bind(here.moment, here.selected, here.wanted)
        with Column(id="main"):
            yield from _views(screen)
            yield from _tabs(screen)
        with Column(id="side"):
            yield from _beside(screen)
    yield Static(id="small", markup=False)
    yield HappeningRow(timeline, glyphs).data_bind(here.moment, here.length)
    yield KeysRow(glyphs).data_bind(here.remark)
    yield Prompt()


def _views(screen: DebuggerScreen) -> Iterator[Widget]:
    """Graph and tape: one of them leads."""
    timeline, glyphs, stops, here = screen.timeline, screen.glyphs, screen.cursor.breakpoints, type(screen)
    yield GraphCanvas(timeline, glyphs, stops, screen.session.folds).data_bind(
        here.moment, here.selected, here.breaks, here.wanted, here.length, here.beside
    )
    yield Tape(timeline, glyphs, stops).data_bind(here.moment, here.selected, here.breaks, here.length, here.beside)


def _tabs(screen: DebuggerScreen) -> Iterator[Widget]:
    """The panels that share the place below, in the order of `TABS`."""
    timeline, session, glyphs, here = screen.timeline, screen.session, screen.glyphs, type(screen)
    source = SourcePane(timeline, glyphs, screen.cursor.breakpoints)
    yield source.data_bind(here.moment, here.selected, here.frame, here.stood, here.breaks)
    watch = WatchList(session, numbered("watch", "Watch"), id="watch")
    yield watch.data_bind(here.moment, here.watched, here.breaks)
    yield BreakList(session, numbered("breaks", "Breaks"), id="breaks").data_bind(here.moment, here.breaks)
    yield OutputPanel(timeline, glyphs).data_bind(here.moment)
    stack = StackList(session, numbered("stack", "Stack"), id="stack")
    yield stack.data_bind(here.moment, here.selected, here.frame, here.stood)
    yield SavedPanel(timeline, numbered("saved", "Saved"), glyphs).data_bind(here.moment, here.selected)
    modules = ModuleTree(session, numbered("modules", "Modules"), id="modules")
    yield modules.data_bind(here.moment, here.selected, here.wanted)


def _beside(screen: DebuggerScreen) -> Iterator[Widget]:
    """The node, and what has a place of its own on a large screen."""
    timeline, glyphs, here = screen.timeline, screen.glyphs, type(screen)
    node = NodePanel(timeline, glyphs, screen.cursor.asker)
    yield node.data_bind(here.moment, here.selected, here.full, here.watched, here.beside)
    heading = f"{numbered('watch', 'Watch')}, {numbered('breaks', 'Breaks')}"
    watch = WatchList(screen.session, heading, id="side-watch", stops=True)
    yield watch.data_bind(here.moment, here.watched, here.breaks)
    yield OutputPanel(timeline, glyphs, id="side-output").data_bind(here.moment)
