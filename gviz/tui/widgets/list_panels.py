"""The panels that are lists with rows that act: watches, breakpoints, call stack, modules; and the output."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.reactive import reactive

from gviz.render.boxes.folding import ALL, Filter
from gviz.trace.timeline import Moment, Timeline
from gviz.tui.breakpoints import BreakpointEntry
from gviz.tui.drawing.module_tree import module_rows
from gviz.tui.drawing.program_output import output_lines
from gviz.tui.drawing.source import frame_rows
from gviz.tui.drawing.watches_and_breakpoints import NOTHING_SET, break_rows, watch_rows
from gviz.tui.glyphs import Glyphs
from gviz.tui.panel_choice import panel_title
from gviz.tui.session import Session
from gviz.tui.source_location import PausedStack, stack_of
from gviz.tui.styled_lines import Line, cut, line
from gviz.tui.widgets.panel_messages import RowActed
from gviz.tui.widgets.text_panel import Page

Key = tuple[str, int | str]
"""The key of a row: a watch, a breakpoint or a frame by number, or a module by path."""


class RowList(Page):
    """Rows, one of them chosen: Enter goes there, e edits, Delete removes, Space switches on and off."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "choose(-1)", show=False),
        Binding("down,j", "choose(1)", show=False),
        Binding("enter", "act('go')", show=False),
        Binding("e", "act('edit')", show=False),
        Binding("delete", "act('remove')", show=False),
        Binding("space", "act('switch')", show=False),
    ]
    moment: reactive[Moment | None] = reactive(None, repaint=False)
    selected: reactive[int] = reactive(0, repaint=False)
    chosen: reactive[int] = reactive(0, repaint=False)

    def __init__(self, session: Session, heading: str, *, id: str) -> None:
        super().__init__(id=id)
        self.session = session
        self.glyphs = session.glyphs
        self._heading = heading
        self._keys: list[Key | None] = []

    def on_mount(self) -> None:
        """Name the panel."""
        self.set_title(self._heading)

    def watch_moment(self) -> None:
        """Show the moment."""
        self.draw_soon()

    def watch_selected(self) -> None:
        """Show the selection."""
        self.draw_soon()

    def watch_chosen(self) -> None:
        """Show the chosen row, and no answer to an earlier key."""
        self.show_row(self.chosen)
        self._show_more()
        self.redraw()

    def rows(self, moment: Moment, width: int) -> list[tuple[Line, Key | None]]:
        """Return the rows at a moment, each with its key."""
        raise NotImplementedError

    def draw(self) -> None:
        """Build the rows of the moment."""
        if self.moment is None or not self.display or self.content_size.width <= 0:
            return
        width, height = self.content_size
        rows = self.rows(self.moment, width)
        if len(rows) > height:
            width -= self.styles.scrollbar_size_vertical
            rows = self.rows(self.moment, width)
        self._keys = [key for _, key in rows]
        self.show(cut(text, width, self.glyphs.cut) for text, _ in rows)
        self.chosen = max(0, min(self.chosen, len(rows) - 1))

    def row(self, y: int) -> Line:
        """Return row `y`; the chosen one in reverse while the panel has the focus."""
        text = super().row(y)
        if y == self.chosen and self.has_focus and y < len(self._keys) and self._keys[y] is not None:
            return tuple((part, "selected") for part, _ in text)
        return text

    def action_choose(self, steps: int) -> None:
        """Choose the next row that has a key."""
        selectable = [at for at, key in enumerate(self._keys) if key is not None]
        beyond = [at for at in selectable if (at - self.chosen) * steps > 0]
        if beyond:
            self.chosen = min(beyond) if steps > 0 else max(beyond)
        else:
            self.post_message(RowActed("", 0, "choose"))

    def choose_first(self, kind: str) -> None:
        """Choose the first row with a key of a kind, if there is one."""
        self.chosen = next((at for at, key in enumerate(self._keys) if key and key[0] == kind), self.chosen)

    def action_act(self, act: str) -> None:
        """Request an act of the screen on the chosen row."""
        key = self._keys[self.chosen] if self.chosen < len(self._keys) else None
        self.post_message(RowActed(*(key or ("", 0)), act))

    def on_click(self, event: events.Click) -> None:
        """Choose a row; a double click goes there."""
        offset = event.get_content_offset(self)
        at = offset.y + int(self.scroll_offset.y) if offset is not None else -1
        if 0 <= at < len(self._keys) and self._keys[at] is not None:
            self.chosen = at
            if event.chain == 2:
                self.action_act("go")

    def on_focus(self) -> None:
        """Show which row is chosen: the first that has a key."""
        if self._keys and (self.chosen >= len(self._keys) or self._keys[self.chosen] is None):
            self.chosen = next((at for at, key in enumerate(self._keys) if key is not None), self.chosen)
        self.redraw()

    def on_blur(self) -> None:
        """Hide the chosen row."""
        self.redraw()


class WatchList(RowList):
    """The watched expressions; in a panel of its own, also the breakpoints."""

    watched: reactive[tuple[str, ...]] = reactive((), repaint=False)
    breaks: reactive[tuple[BreakpointEntry, ...]] = reactive((), repaint=False)

    def __init__(self, session: Session, heading: str, *, id: str, stops: bool = False) -> None:
        super().__init__(session, heading, id=id)
        self._stops = stops
        self._at, self._last, self._before = -1, dict[str, str](), dict[str, str]()

    def watch_watched(self) -> None:
        """Show the changed watches."""
        self.draw_soon()

    def watch_breaks(self) -> None:
        """Show the changed breakpoints."""
        self.draw_soon()

    def rows(self, moment: Moment, width: int) -> list[tuple[Line, Key | None]]:
        """Return expressions and values, then the breakpoints if they belong here."""
        if self.has_class("-line"):
            return [(line((NOTHING_SET, "muted")), None)]
        watching = tuple(self.session.cursor.asker.watching(moment.n))
        if moment.n != self._at:
            self._before, self._at = self._last, moment.n
        self._last = dict(watching)
        rows = watch_rows(watching, self._before, width)
        lines: list[tuple[Line, Key | None]] = [(text, ("watch", number) if number else None) for text, number in rows]
        if self._stops:
            lines += [((), None), (line(("breakpoints", "muted")), None), *_stop_rows(self, moment, width)]
        return lines


class BreakList(RowList):
    """The breakpoints."""

    breaks: reactive[tuple[BreakpointEntry, ...]] = reactive((), repaint=False)

    def watch_breaks(self) -> None:
        """Show the changed breakpoints."""
        self.draw_soon()

    def rows(self, moment: Moment, width: int) -> list[tuple[Line, Key | None]]:
        """Return a row for each breakpoint."""
        return _stop_rows(self, moment, width)


class StackList(RowList):
    """The frames where the program is paused, or of the selected node; the source shows the marked one."""

    frame: reactive[int] = reactive(0, repaint=False)
    paused_stack: reactive[PausedStack | None] = reactive(None, repaint=False)

    def watch_paused_stack(self) -> None:
        """Show where the program is paused."""
        self.draw_soon()

    def watch_frame(self, frame: int) -> None:
        """Mark the shown frame."""
        self.chosen = frame
        self.draw_soon()

    def rows(self, moment: Moment, width: int) -> list[tuple[Line, Key | None]]:
        """Return a row for each frame."""
        frames = stack_of(self.session.timeline, self.selected, self.paused_stack)
        lines = frame_rows(frames, self.selected, self.frame, self.glyphs, width)
        return [(text, ("frame", depth) if depth >= 0 else None) for text, depth in lines]


class ModuleTree(RowList):
    """The modules of the iteration, with the length of their gradients at the moment."""

    graph_filter: reactive[Filter] = reactive(ALL, repaint=False)

    def watch_graph_filter(self) -> None:
        """Show which modules are collapsed."""
        self.draw_soon()

    def rows(self, moment: Moment, width: int) -> list[tuple[Line, Key | None]]:
        """Return a row for each module."""
        if not self.session.folds.ready(self.session.timeline.iteration_at(moment.n)):
            return [(line(("the graph is still being read", "muted")), None)]
        lines = module_rows(self.session.folds, moment, self.glyphs, width)
        return [(text, ("module", path) if path else None) for text, path in lines]


def _stop_rows(panel: RowList, moment: Moment, width: int) -> list[tuple[Line, Key | None]]:
    rows = break_rows(panel.session.cursor.breakpoints, moment.n, panel.glyphs, width)
    return [(text, ("break", number) if number else None) for text, number in rows]


class OutputPanel(Page):
    """stdout and stderr of the program up to the moment, with the end in view."""

    moment: reactive[Moment | None] = reactive(None, repaint=False)

    def __init__(self, timeline: Timeline, glyphs: Glyphs, *, id: str = "output") -> None:
        super().__init__(id=id)
        self._timeline = timeline
        self._printed = -1
        self.glyphs = glyphs

    def on_mount(self) -> None:
        """Name the panel."""
        self.set_title(panel_title("output", "Output"))

    def watch_moment(self, moment: Moment | None) -> None:
        """Draw if another amount was printed at this moment."""
        count = len(self._timeline.printed(moment.n)) if moment is not None else -1
        if count != self._printed:
            self._printed = count
            self.draw_soon()

    def draw(self) -> None:
        """Build the text of the moment."""
        moment = self.moment
        if moment is not None:
            self.show_fitted(lambda width: output_lines(self._timeline, moment.n, width))
            self.scroll_end(animate=False, immediate=True, force=True)
