"""The tape as a list that scrolls: one row per output of a node, drawn on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.strip import Strip

from gviz.explain.iteration_words import iteration_called
from gviz.trace.graph_state import NodeState
from gviz.trace.timeline import Moment, Timeline
from gviz.tui.breakpoints import BreakpointEntry, Breakpoints
from gviz.tui.drawing.tape import Columns, Entry, TapeRows, columns_for, heading, row, shape_width, title_width
from gviz.tui.glyphs import Glyphs
from gviz.tui.panel_choice import panel_title
from gviz.tui.styled_lines import Line
from gviz.tui.widgets.node_panel import node_tip
from gviz.tui.widgets.panel_messages import NodePointed, Pressed
from gviz.tui.widgets.text_panel import Lines, View

MEASURED = 200
"""How many nodes determine the widths of the columns, by their titles and shapes."""

_NAMED_LATE = 16
"""How many of the last nodes may get their names only at the end of their statement."""

KEPT_ROWS = 2000

if TYPE_CHECKING:
    from gviz.rerun.branch import BranchView


class Tape(Lines):
    """All nodes of the recording; the heading stays, the rows scroll, and the title names their iterations."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "screen.select('neighbour', -1)", show=False),
        Binding("down", "screen.select('neighbour', 1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "screen.select('edge', 0)", show=False),
        Binding("end", "screen.select('edge', -1)", show=False),
    ]
    FOCUS_ON_CLICK = False  # the screen focuses a panel that is pressed
    moment: reactive[Moment | None] = reactive(None, repaint=False)
    selected: reactive[int] = reactive(0, repaint=False)
    breaks: reactive[tuple[BreakpointEntry, ...]] = reactive((), repaint=False)
    length: reactive[int] = reactive(0, repaint=False)
    branch_view: reactive[BranchView | None] = reactive(None, repaint=False)

    def __init__(self, timeline: Timeline, glyphs: Glyphs, breakpoints: Breakpoints) -> None:
        super().__init__(id="tape")
        self._timeline = timeline
        self._breakpoints = breakpoints
        self._states: dict[int, tuple[NodeState | None, NodeState | None]] = {}
        self._known: dict[tuple[int, int], tuple[object, Line]] = {}
        self._width = 0
        self._longest_title = self._longest_shape = self._measured = 0
        self._known_rows = TapeRows(timeline)
        self._measure()
        self.glyphs = glyphs

    @property
    def _rows(self) -> TapeRows:
        """The rows of what is recorded so far."""
        if self._known_rows.nodes is not self._timeline.nodes:
            self._known_rows = TapeRows(self._timeline)
        return self._known_rows

    def on_mount(self) -> None:
        """Name the panel and set its size."""
        self._name_iterations()
        self.set_count(len(self._rows) + 1)

    def _name_iterations(self) -> None:
        """Name the panel, with the iterations in which the visible nodes were made if the recording has several."""
        timeline, rows, name = self._timeline, self._rows, "Tape"
        if self.moment is not None and len(timeline.iterations) > 1 and len(rows) and self.size.height > 1:
            top = min(int(self.scroll_offset.y), len(rows) - 1)
            ends = self._node_at(top), self._node_at(min(top + self.size.height - 2, len(rows) - 1))
            first, last = (timeline.iterations[timeline.info(node).iteration].number for node in ends)
            word = iteration_called(timeline)
            name = f"Tape, {word} {first:,}" if first == last else f"Tape, {word}s {first:,} to {last:,}"
            now = timeline.iteration_at(self.moment.n).number  # later than that of a parameter, whose .grad changes now
            if not first <= now <= last:
                name = f"{name}; now {now:,}"
        self.set_title(panel_title("tape", name))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Name the iterations of the rows that are visible now."""
        super().watch_scroll_y(old_value, new_value)
        self._name_iterations()

    def draw(self) -> None:
        """Draw the rows, and name their iterations."""
        self._name_iterations()
        super().draw()

    def row(self, y: int) -> Line:
        """Return row `y`; the first one is covered by the heading."""
        nodes = self._timeline.nodes
        columns = columns_for(
            self._width, int(nodes[-1]) if len(nodes) else 0, self._longest_title, self._longest_shape
        )
        if y == 0 or self.moment is None:
            return heading(columns)
        at, output_nr = self._rows.at(y - 1)
        spans = self._spans(at, output_nr, columns, self.moment)
        return tuple((text, "selected") for text, _ in spans) if nodes[at] == self.selected else spans

    def _spans(self, at: int, output_nr: int, columns: Columns, moment: Moment) -> Line:
        """Return the row of an output of node number `at`, cached unless something that it shows has changed."""
        node = self._timeline.nodes[at]
        state, other = self._state(at)
        entry = Entry(node, state, output_nr, self._breakpoints.at_node(node), other)
        iteration = self._timeline.iteration_at(moment.n).index
        happens = moment if node in (moment.actor, moment.node) else None
        depends = columns, entry, iteration, moment.failed, happens
        known = self._known.get((node, output_nr))
        if known is None or known[0] != depends:
            spans = row(self._timeline, moment, entry, columns, self.glyphs)
            known = self._known[node, output_nr] = depends, spans
        return known[1]

    def paint(self, y: int, view: View) -> Strip:
        """Return a row; the first one is always the heading."""
        self._width = view.width
        if y == 0:
            return self.cut_strip(self.row(0), 0, view.width)
        return super().paint(y, view)

    def watch_moment(self) -> None:
        """Draw all rows: any of them may have changed."""
        self._states = {}
        if len(self._known) > KEPT_ROWS:
            self._known = {}
        self.draw_soon()

    def watch_branch_view(self) -> None:
        """Draw the changed numbers, or none."""
        self.watch_moment()

    def watch_selected(self) -> None:
        """Show the selection."""
        self._show_selected()
        self.draw_soon()

    def _show_selected(self) -> None:
        at = self._index(self.selected)
        if at is not None:
            self.show_row(self._rows.first_of(at) + 1, margin=2)

    def watch_breaks(self) -> None:
        """Show the changed breakpoints."""
        self.draw_soon()

    def watch_length(self, length: int) -> None:
        """Show the new rows: the recording has grown."""
        self._known = {}
        if length and self.display:  # a panel that is shown again counts its rows then
            self._measure()
            self._states = {}
            self.set_count(len(self._rows) + 1)
            self.watch_selected()

    def _measure(self) -> None:
        """Measure the widest title and shape: while the program runs, only of nodes that are new or just got a name."""
        begin = max(self._measured - _NAMED_LATE, 0) if self._timeline.growing else 0
        nodes = self._timeline.nodes[begin:MEASURED]
        title, shape = title_width(self._timeline, nodes), shape_width(self._timeline, nodes)
        self._longest_title = max(title, self._longest_title) if begin else title
        self._longest_shape = max(shape, self._longest_shape) if begin else shape
        self._measured = min(len(self._timeline.nodes), MEASURED)

    def sized(self) -> None:
        """Fit the rows to the new width and keep the selection in view."""
        self.set_count(len(self._rows) + 1)
        self._show_selected()
        super().sized()

    def action_page(self, pages: int) -> None:
        """Select a node one page away."""
        rows, at = self._rows, self._index(self.selected)
        if not len(rows):
            return
        target = rows.first_of(at or 0) + pages * max(self.size.height - 2, 1)
        self.post_message(NodePointed(self._node_at(max(0, min(target, len(rows) - 1)))))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Select the node of a row."""
        self.post_message(Pressed(self, self._pointed(event)))

    def on_click(self, event: events.Click) -> None:
        """Run to the node of a row at a double click."""
        node = self._pointed(event) if event.chain == 2 else 0
        if node:
            self.post_message(NodePointed(node, run=True))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Show the node under the mouse in full."""
        self.tooltip = node_tip(self._timeline, self.moment, self._pointed(event), self.glyphs, self.branch_view)

    def _pointed(self, event: events.MouseEvent) -> int:
        """Return the node under the mouse, 0 if there is none."""
        offset = event.get_content_offset(self)
        return self._node_at(offset.y + int(self.scroll_offset.y) - 1) if offset is not None and offset.y else 0

    def _state(self, at: int) -> tuple[NodeState | None, NodeState | None]:
        """Return the state of node number `at` of the tape, and its state in the branch.

        It reads the states of a whole screen at once, which is faster.
        """
        if at not in self._states and self.moment is not None:
            stretch = range(at, min(at + max(self.size.height, 1), len(self._timeline.nodes)))
            nodes = [int(self._timeline.nodes[i]) for i in stretch]
            n, branch_view = self.moment.n, self.branch_view
            others = (
                [None] * len(nodes)
                if branch_view is None or not branch_view.covers(n)
                else branch_view.states(nodes, n)
            )
            self._states |= zip(stretch, zip(self.moment.states(nodes), others, strict=True), strict=True)
        return self._states.get(at, (None, None))

    def _node_at(self, row: int) -> int:
        """Return the node of a row below the heading, 0 if there is none."""
        return self._timeline.nodes[self._rows.at(row)[0]] if 0 <= row < len(self._rows) else 0

    def _index(self, node: int) -> int | None:
        at = self._timeline.nodes.place_of(node)
        return at if at >= 0 else None
