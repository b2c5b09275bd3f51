"""The panels of the debugger's screen: what each of them follows, and which are in front.

`compose_panels` creates all of them, always. `Panels` knows what the user chose (view, tab, zoom). From that and the
size of the terminal, `gviz.tui.panel_choice.visible_panels` computes which panels are visible.
"""

from __future__ import annotations

from collections.abc import Iterator

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from gviz.tui.keymaps import first
from gviz.tui.panel_choice import (
    LEAST_GRAPH_ROWS,
    PANELS,
    SIDE_PANELS,
    TAB_ROWS,
    TABS,
    PanelChoice,
    View,
    graph_area,
    has_event_row,
    next_view,
    opening_view,
    own_panels,
    panel_title,
    size_class,
    visible_panels,
    widget_of,
)
from gviz.tui.screens.session_screen import SessionScreen
from gviz.tui.widgets.graph_canvas import GraphCanvas, GraphOverview
from gviz.tui.widgets.list_panels import BreakList, ModuleTree, OutputPanel, StackList, WatchList
from gviz.tui.widgets.node_panel import NodePanel, SavedPanel
from gviz.tui.widgets.prompt import Prompt
from gviz.tui.widgets.source_panel import SourcePane
from gviz.tui.widgets.status_rows import EventRow, KeysRow, StatusRow, TimelineBar
from gviz.tui.widgets.tape_panel import Tape
from gviz.tui.widgets.text_panel import Lines

_SIZES = ("tiny", "single", "portrait", "narrow", "wide", "huge")


class Body(Horizontal):
    """Columns side by side, which cover it completely: Textual need not paint what is below them."""

    BLANK = True


class Column(Vertical):
    """Panels one above the other, which cover it completely."""

    BLANK = True


def compose_panels(screen: SessionScreen) -> ComposeResult:
    """Yield all panels, always; `visible_panels` decides which of them are visible."""
    timeline, glyphs, here = screen.timeline, screen.glyphs, type(screen)
    yield StatusRow(timeline, screen.session.title, glyphs).data_bind(
        here.moment, here.stop, here.time, here.branch_view
    )
    yield TimelineBar(timeline, glyphs).data_bind(here.moment, here.length)
    with Body(id="body"):
        with Column(id="main"):
            yield from _views(screen)
            yield from _tabs(screen)
        with Column(id="side"):
            yield from _side_panels(screen)
    yield Static(id="small", markup=False)
    yield EventRow(timeline, glyphs).data_bind(here.moment, here.length, here.branch_view)
    yield KeysRow(glyphs).data_bind(here.remark)
    yield Prompt()


def _views(screen: SessionScreen) -> Iterator[Widget]:
    """Yield graph and tape: one of them leads."""
    timeline, glyphs, stops, here = screen.timeline, screen.glyphs, screen.cursor.breakpoints, type(screen)
    graph = GraphCanvas(timeline, glyphs, stops, screen.session.folds)
    yield graph.data_bind(here.moment, here.selected, here.breaks, here.graph_filter, here.length, here.branch_view)
    yield graph.overview
    yield Tape(timeline, glyphs, stops).data_bind(
        here.moment, here.selected, here.breaks, here.length, here.branch_view
    )


def _tabs(screen: SessionScreen) -> Iterator[Widget]:
    """Yield the panels that share the area below, in the order of `TABS`."""
    timeline, session, glyphs, here = screen.timeline, screen.session, screen.glyphs, type(screen)
    source = SourcePane(timeline, glyphs, screen.cursor.breakpoints)
    yield source.data_bind(here.moment, here.selected, here.frame, here.paused_stack, here.breaks)
    watch = WatchList(session, panel_title("watch", "Watch"), id="watch")
    yield watch.data_bind(here.moment, here.watched, here.breaks)
    yield BreakList(session, panel_title("breaks", "Breaks"), id="breaks").data_bind(here.moment, here.breaks)
    yield OutputPanel(timeline, glyphs).data_bind(here.moment)
    stack = StackList(session, panel_title("stack", "Stack"), id="stack")
    yield stack.data_bind(here.moment, here.selected, here.frame, here.paused_stack)
    yield SavedPanel(timeline, panel_title("saved", "Saved"), glyphs).data_bind(
        here.moment, here.selected, here.branch_view
    )
    modules = ModuleTree(session, panel_title("modules", "Modules"), id="modules")
    yield modules.data_bind(here.moment, here.selected, here.graph_filter)


def _side_panels(screen: SessionScreen) -> Iterator[Widget]:
    """Yield the node panel, and the panels with an area of their own on a large screen."""
    timeline, glyphs, here = screen.timeline, screen.glyphs, type(screen)
    node = NodePanel(timeline, glyphs, screen.cursor.asker)
    yield node.data_bind(here.moment, here.selected, here.full, here.watched, here.branch_view)
    tree = ModuleTree(screen.session, panel_title("modules", "Modules"), id="side-modules")
    yield tree.data_bind(here.moment, here.selected, here.graph_filter)
    heading = f"{panel_title('watch', 'Watch')}, {panel_title('breaks', 'Breaks')}"
    watch = WatchList(screen.session, heading, id="side-watch", stops=True)
    yield watch.data_bind(here.moment, here.watched, here.breaks)
    yield OutputPanel(timeline, glyphs, id="side-output").data_bind(here.moment)


class Panels:
    """View, tab and zoom of one screen. Until the user chooses a view, it is the one that suits the size."""

    def __init__(self, screen: SessionScreen) -> None:
        self._screen = screen
        self._chosen = False
        self._tab_chosen = False
        self._view: View = "tape"
        self._tab = "source"
        self._zoomed = ""
        self._leading = "tape"
        self._contents = True, True
        self.room = 0
        """The number of nodes for which the tape has room, even if there are fewer now."""

    @property
    def _modules(self) -> bool:
        """Whether the recording contains module calls."""
        return self._screen.timeline.contexts.call(1) is not None

    @property
    def _watches(self) -> bool:
        """Whether there are watches or breakpoints."""
        cursor = self._screen.cursor
        return bool(cursor.asker.watched) or bool(cursor.breakpoints.listed)

    @property
    def _prints(self) -> bool:
        """Whether the program has printed anything at any moment: panels keep their size while time moves."""
        return bool(self._screen.timeline.printed(len(self._screen.timeline)))

    @property
    def _graph_is_known(self) -> bool:
        """Whether the graph of the moment can be drawn at once."""
        timeline, session = self._screen.timeline, self._screen.session
        return not timeline.iterations or session.folds.ready(timeline.iteration_at(session.cursor.position))

    def fit(self) -> None:
        """Adapt to the size of the terminal."""
        if self._chosen:
            self.arrange()
            return
        (width, height), canvas = self._screen.room, self._screen.query_one(GraphCanvas)
        if self._graph_is_known:
            whole, above_tape = canvas.fits(*self._area("graph")), canvas.fits(*self._area("both"))
            self._view = opening_view(width, height, fits_alone=whole, fits_above_tape=above_tape)
        else:
            self._view = "tape"
        self._leading = "graph" if self._view == "graph" else "tape"
        self._tab_chosen = self._room_below()
        self.arrange()
        self.focus()

    def _area(self, view: View) -> tuple[int, int]:
        return graph_area(*self._screen.room, view, len(self._screen.timeline.nodes))

    def _room_below(self) -> bool:
        """Return whether the graph leaves room for a panel below: it fits as before, or much of it stays visible."""
        (width, height), canvas = self._area("graph"), self._screen.query_one(GraphCanvas)
        above = height - TAB_ROWS
        return canvas.fits(width, above) if canvas.fits(width, height) else above >= LEAST_GRAPH_ROWS

    def next_view(self) -> None:
        """Show the next view: graph, tape, both."""
        self._view = next_view(self._view)
        self._zoomed, self._tab_chosen, self._chosen = "", False, True
        self._leading = "graph" if self._view == "graph" else "tape"
        self.arrange()

    def bring(self, panel: str) -> None:
        """Bring a panel to the front and focus it."""
        self._chosen, self._leading = True, panel
        side_panels = own_panels(*self._screen.room, modules=self._modules, watches=self._watches)
        if panel in TABS and widget_of(panel, side_panels) == panel:
            self._tab, self._tab_chosen = panel, True
        if self._zoomed:
            self._zoomed = panel
        if panel in ("tape", "graph") and self._view != "both":
            self._view = "graph" if panel == "graph" else "tape"
        if panel == "graph":
            self._tab_chosen = self._tab_chosen and self._room_below()
        self.arrange()
        self.focus()

    def zoom(self) -> None:
        """Show only the focused panel, or all again."""
        focused = getattr(self._screen.focused, "id", None) or ""
        panel = self._leading if widget_of(self._leading, {focused}) == focused else focused.removeprefix("side-")
        panel = panel if panel in PANELS else self._leading
        self._zoomed, self._chosen = "" if self._zoomed else panel, True
        self.arrange()

    def unzoom(self) -> None:
        """Show all panels again."""
        self._zoomed = ""
        self.arrange()

    def focus(self) -> None:
        """Focus the leading panel, unless the prompt is open."""
        if self._screen.query_one(Prompt).display:
            return
        shown = {panel for panel in SIDE_PANELS if self._screen.query_one(f"#{panel}").display and not self._zoomed}
        widget = self._screen.query_one(f"#{widget_of(self._leading, shown)}")
        if widget.display:
            self._screen.set_focus(widget, scroll_visible=False)
        if isinstance(widget, WatchList):
            widget.choose_first("break" if self._leading == "breaks" else "watch")

    def classify(self, *, update: bool = True) -> None:
        """Pass the size to the style sheet; without `update` for widgets that are not mounted yet, and styled later."""
        now = size_class(*self._screen.room)
        classes = {f"-{name}": name == now for name in _SIZES} | {"-zoomed": bool(self._zoomed)}
        self._screen.update_classes(classes, update=update)

    def arrange(self) -> None:
        """Show the panels that fit the size and the user's choice, and hide the others."""
        screen, (width, height) = self._screen, self._screen.room
        self.classify()
        self._contents = self._watches, self._prints
        choice = PanelChoice(
            self._view, self._tab, self._tab_chosen, self._zoomed, self._leading, self._modules, self._watches
        )
        self._show(visible_panels(width, height, choice))
        if screen.focused is None or not screen.focused.display:
            self.focus()

    def _show(self, shown: frozenset[str]) -> None:
        screen = self._screen
        for panel in (*PANELS, *SIDE_PANELS, "small"):
            screen.query_one(f"#{panel}").display = panel in shown
        empty = {"side-watch": not self._watches, "side-output": not self._prints}
        for panel, is_empty in empty.items():
            screen.query_one(f"#{panel}").set_class(is_empty and not self._zoomed, "-line")
        screen.query_one(GraphOverview).show_if(has_graph="graph" in shown)
        screen.query_one("#main").display = not shown.isdisjoint({"graph", "tape", *TABS})
        screen.query_one("#side").display = not shown.isdisjoint({"node", *SIDE_PANELS})
        screen.query_one(NodePanel).watching = shown.isdisjoint({"watch", "side-watch"})
        self._name_tabs([tab for tab in TABS if widget_of(tab, shown) == tab])
        screen.query_one("#small", Static).update("terminal too small\nneed {}x{}, q quits".format(*screen.least))
        for row in screen.query("#status, #timeline, #body, #tutor"):
            row.display = "small" not in shown
        self.show_rows()
        rows, tape = max(len(screen.timeline.nodes), self.room) + 3, screen.query_one(Tape)
        tape.styles.max_height = rows if "graph" in shown else None
        view = first(screen.session.keys, "view.next")
        tape.subtitle(Content(f"{view}: graph" if view and "graph" not in shown else ""))
        source = first(screen.session.keys, f"view.{PANELS.index('source') + 1}")
        screen.query_one(GraphCanvas).show_keys(
            *(first(screen.session.keys, id) for id in ("graph.open", "graph.level"))
        )
        screen.query_one(GraphCanvas).hint(f"{source}: source" if source and shown.isdisjoint(TABS) else "")

    def follow_contents(self) -> None:
        """Change a panel that has become empty, or no longer is: watches, breakpoints or output."""
        now = self._watches, self._prints
        if now != self._contents:
            self.arrange()

    def show_rows(self) -> None:
        """Show the rows at the bottom: the prompt while it is open, else the keys."""
        screen, typing = self._screen, self._screen.query_one(Prompt).display
        screen.query_one(EventRow).display = has_event_row(*screen.room) and (screen.shows_keys or not typing)
        screen.query_one(KeysRow).display = screen.shows_keys and not typing and not screen.too_small

    def _name_tabs(self, tabs: list[str]) -> None:
        """Let the panels that share an area show each other's names in their titles."""
        for tab in TABS:
            panel = self._screen.query_one(f"#{tab}", Lines)
            if list(panel.tabs) != tabs:
                panel.tabs = tabs
                panel.entitle()
