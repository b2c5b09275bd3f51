"""The graph as a canvas that scrolls: it holds state, `render.cells` draws. Boxes never move while time does.

`GraphOverview` is the row below, which shows what part of the graph is in view.

`Panned` is dragged with the mouse or moved by keys. `Painted` paints the visible rows that have changed. `GraphCanvas`
follows the moment and the selection. `scroll_target` decides where the view goes: it tries the few offsets at which a
box begins or ends at an edge, and takes the one that shows the most. `common_box` finds a box that stays at its
position when boxes are laid out again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, ClassVar, get_args

from rich.cells import cell_len
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Offset, Region, Size
from textual.reactive import reactive
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from gviz.events import Failed, GradFlowed
from gviz.render.boxes.box_size import FAILED, Role
from gviz.render.boxes.folding import ALL, Filter
from gviz.render.cells.viewport import Moments
from gviz.render.layout import PlacedBox
from gviz.trace.timeline import Moment, Timeline
from gviz.tui.breakpoints import BreakpointEntry, Breakpoints
from gviz.tui.drawing.minimap import (
    MOST_NODES,
    Mark,
    Overview,
    cut_nodes,
    graph_cells,
    marked_nodes,
    overview_line,
    placed_marks,
    row_of,
)
from gviz.tui.glyphs import Glyphs
from gviz.tui.graph_view import Folds
from gviz.tui.panel_choice import LEAST_GRAPH_ROWS, label_density, panel_title
from gviz.tui.styled_lines import Line
from gviz.tui.widgets._graph_drawings import DATA_COLLAPSED, Drawings
from gviz.tui.widgets.node_panel import node_tip
from gviz.tui.widgets.panel_messages import NodePointed, OverviewPointed, Pressed
from gviz.tui.widgets.text_panel import AROUND_TITLE, Sized, Styled, StyledRow

if TYPE_CHECKING:
    from gviz.rerun.branch import BranchView


_SIDES = ("left", "right", "above", "below")


class Panned(Sized):
    """Moves its view; `dragged` distinguishes a click from the end of a drag."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("shift+left", "pan(-8, 0)", show=False),
        Binding("shift+right", "pan(8, 0)", show=False),
        Binding("shift+up", "pan(0, -4)", show=False),
        Binding("shift+down", "pan(0, 4)", show=False),
    ]
    ALLOW_SELECT = False
    dragged = False
    _drag_start: Offset | None = None
    _border_text = Content("")
    _hint = ""

    @property
    def view(self) -> Region:
        """The visible part of the canvas."""
        return Region(int(self.scroll_offset.x), int(self.scroll_offset.y), *self.scrollable_content_region.size)

    def hint(self, text: str) -> None:
        """Set the text of the lower border while everything is visible."""
        self._hint = text
        self.show_beyond()

    def sized(self) -> None:
        """Update the lower border: more or less is visible."""
        self.show_beyond()

    def show_beyond(self) -> None:
        """Show in the lower border on which sides there is more to see, and how to get there."""
        sides = list(_sides_beyond(self.view, self.virtual_size))
        where = "on all sides" if len(sides) == len(_SIDES) else ", ".join(sides)
        text = Content(self._hint)
        if sides:
            fits = len(where) <= self.outer_size.width - len("more : Shift+arrows") - AROUND_TITLE
            text = Content(f"more {where}: Shift+arrows" if fits else "more: Shift+arrows")
        if text != self._border_text:  # setting a title repaints the whole panel
            self.border_subtitle = self._border_text = text

    def _scroll_update(self, virtual_size: Size) -> None:
        """Update the lower border for a new size of view or canvas: their own events may come long after the frame."""
        super()._scroll_update(virtual_size)
        self.show_beyond()

    def watch_scroll_x(self, old_value: float, new_value: float) -> None:
        """Update the lower border: a side may have reached its end."""
        super().watch_scroll_x(old_value, new_value)
        self.show_beyond()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Update the lower border: a side may have reached its end."""
        super().watch_scroll_y(old_value, new_value)
        self.show_beyond()

    def action_pan(self, x: int, y: int) -> None:
        """Move the view."""
        self.scroll_relative(x, y, animate=False, force=True)

    def hovered(self, event: events.MouseMove) -> None:
        """React to a mouse movement without a pressed button."""

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin a drag, which pans."""
        self._drag_start, self.dragged = event.screen_offset, False
        self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Pan by the movement of the mouse while a button is down."""
        if self._drag_start is None:
            self.hovered(event)
        elif event.screen_offset != self._drag_start:
            step = self._drag_start - event.screen_offset
            self._drag_start, self.dragged = event.screen_offset, True
            self.action_pan(step.x, step.y)

    def on_mouse_up(self) -> None:
        """End the drag."""
        self._drag_start = None
        self.release_mouse()


def _sides_beyond(view: Region, whole: Size) -> Iterator[str]:
    beyond = (view.x > 0, view.right < whole.width, view.y > 0, view.bottom < whole.height)
    return compress(_SIDES, beyond)


STYLES = (
    "title", "value", "grad", "sum", "muted", "error", "current", "selected", "edge", "gradient", *get_args(Role),
)  # fmt: skip
FEW_NODES = 200
"""In a graph with at most this many nodes, the overview marks values at every step."""
_STANDSTILL = 0.15
"""Seconds without a step after which the overview marks the values of a larger graph."""

AHEAD = 8
"""How many rows around the visible ones are styled with them."""

KEPT_ROWS = 2000


class Painted(Styled, Panned):
    """Paints `drawing`, centred if it is narrower than the widget; without one, the text `empty_text`."""

    DEFAULT_CSS = """
    Painted {
        width: 1fr;
        height: 1fr;
        overflow: auto;
    }
    """
    drawing: Moments | None = None
    empty_text = ""

    def __init__(self, *, id: str, classes: str) -> None:
        super().__init__(id=id, classes=classes)
        self.styled_rows = range(0)
        self._rows: dict[int, Strip] = {}
        self._rows_left = 0

    def style_rows(self) -> None:
        """Compute the current look of everything in view."""
        raise NotImplementedError

    def forget_rows(self) -> None:
        """Forget all painted rows."""
        self._rows.clear()

    def forget_colours(self) -> None:
        """Redraw everything."""
        super().forget_colours()
        self.forget_rows()

    def render_line(self, y: int) -> Strip:
        """Return one visible row."""
        left, top = map(int, self.scroll_offset)
        width, row = self.size.width, y + top
        if left != self._rows_left or len(self._rows) > KEPT_ROWS:
            self._rows.clear()
            self._rows_left = left
        strip = self._rows.get(row)
        if strip is None or strip.cell_length != width:
            strip = self._rows[row] = self._painted(row, left, width)
        return strip

    def redraw(self) -> None:
        """Request a repaint of the visible rows that differ from what was painted last, of any drawing."""
        (left, top), (width, height) = map(int, self.scroll_offset), self.size
        fresh = {row: self._painted(row, left, width) for row in range(top, top + height)}
        for row, strip in fresh.items():
            if self._rows.get(row) != strip:
                self.refresh(Region(0, row - top, width, 1))
        self._rows, self._rows_left = fresh, left

    def pointed(self, event: events.MouseEvent) -> int:
        """Return the node whose box is under the mouse, or 0."""
        offset = event.get_content_offset(self)
        if offset is None or self.drawing is None:
            return 0
        x, y = offset + self.scroll_offset
        return self.drawing.node_at(int(x) - self.margin, int(y))

    @property
    def margin(self) -> int:
        """The blank columns left of a graph that is narrower than the panel."""
        return self._margin(self.size.width)

    def place(self, node: int) -> PlacedBox | None:
        """Return the place of a node's own box (or of its first chip, if the picture has only chips of it).

        Data that several results share is in the box of each, or is drawn once for each use: its place is the highest
        of these, where the graph begins. The first use in time may be far below, as that of the targets of a loss.
        """
        if self.drawing is None:
            return None
        places = self.drawing.canvas.layout.places
        is_data = node in self.drawing.nodes and self._is_data(node)
        keys = sorted(self.drawing.boxes(node), key=lambda key: (0 if is_data else len(str(key)), places[key].y))
        return places[keys[0]] if keys else None

    def _is_data(self, node: int) -> bool:
        """Return whether a node is a number or an array that no gradient reaches."""
        return False

    def _margin(self, width: int) -> int:
        return 0 if self.drawing is None else max((width - self.drawing.canvas.layout.width) // 2, 0)

    def _painted(self, row: int, left: int, width: int) -> Strip:
        """Return a row of the drawing from a column on; blank below the last row."""
        drawing = self.drawing
        if drawing is None or row >= drawing.canvas.layout.height:
            return self.cut_strip((("" if row else self.empty_text, "muted"),), 0, width)
        if row not in self.styled_rows:
            self.style_rows()
        margin = self._margin(width)
        line = drawing.canvas.line(row, left, width - margin)
        return self.cut_strip(((" " * margin, ""), *line) if margin else line, 0, width)

    def look(self, name: str) -> Style:
        """Return a style of drawings, whose names have a prefix of their own."""
        return self.app.get_component_styles(f"graph--{name}").partial_rich_style


class GraphOverview(StyledRow):
    """The row below a graph that is higher than its panel. A click selects what is marked there, or the nearest box."""

    overview: reactive[Overview] = reactive(Overview(0, range(0), {}))

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(id="overview")
        self.glyphs = glyphs
        self.display = False
        self._is_needed, self._has_graph = False, True

    def show_if(self, *, is_needed: bool | None = None, has_graph: bool | None = None) -> None:
        """Show the row if the graph is higher than its panel (`is_needed`) and on the screen.

        An argument of None changes nothing.
        """
        self._is_needed = self._is_needed if is_needed is None else is_needed
        self._has_graph = self._has_graph if has_graph is None else has_graph
        if self.display != (self._is_needed and self._has_graph):  # by hand: a class would act after the next frame
            self.display = not self.display

    def line(self, width: int) -> Line:
        """Return the row."""
        return overview_line(self.overview, width, self.glyphs)

    def on_click(self, event: events.Click) -> None:
        """Select the marked node, or ask the canvas to select a node there."""
        room, cell = graph_cells(self.overview, self.size.width, self.glyphs), event.x - 1
        marks = placed_marks(self.overview, room)
        if cell in marks:
            self.post_message(NodePointed(marks[cell][1].node))
        elif 0 <= cell < room:
            self.post_message(OverviewPointed(row_of(cell, self.overview.height, room)))


class GraphCanvas(Painted, can_focus=True):
    """The graph of the moment's iteration."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "screen.select('relative', 'input')", show=False),
        Binding("down", "screen.select('relative', 'user')", show=False),
        Binding("left", "select_sideways(-1)", show=False),
        Binding("right", "select_sideways(1)", show=False),
    ]
    FOCUS_ON_CLICK = False  # the screen focuses a panel that is pressed
    moment: reactive[Moment | None] = reactive(None, repaint=False)
    selected: reactive[int] = reactive(0, repaint=False)
    breaks: reactive[tuple[BreakpointEntry, ...]] = reactive((), repaint=False)
    length: reactive[int] = reactive(0, repaint=False)

    branch_view: reactive[BranchView | None] = reactive(None, repaint=False)
    graph_filter: reactive[Filter] = reactive(ALL, repaint=False)

    def __init__(
        self,
        timeline: Timeline,
        glyphs: Glyphs,
        breakpoints: Breakpoints | None = None,
        folds: Folds | None = None,
    ) -> None:
        super().__init__(id="graph", classes="-panel")
        self._timeline = timeline
        self._glyphs = glyphs
        self._breakpoints = breakpoints or Breakpoints(timeline)
        self._drawings = Drawings(timeline, folds or Folds(timeline), glyphs)
        self.overview = GraphOverview(glyphs)
        self._cuts: tuple[Moments | None, frozenset[int]] = None, frozenset()
        self._marked: tuple[Moments | None, int, Mapping[str, Sequence[int]]] = None, -1, {}
        self._marking: Timer | None = None
        self._heading = ""
        self._expand_key = self._level_key = ""
        self._entitled: tuple[str, Sequence[str]] = "", ()
        self._awaited: int | None = None  # the box to bring into view at the next drawing

    def on_mount(self) -> None:
        """Name the panel."""
        self._entitle("")

    def show_keys(self, expand: str, level: str) -> None:
        """Set the keys that expand a box and change the level; the title of an automatic view shows them."""
        if (expand, level) != (self._expand_key, self._level_key):
            self._expand_key, self._level_key = expand, level
            self._entitle(*self._entitled)

    def _is_data(self, node: int) -> bool:
        """Return whether a node is a number or an array that no gradient reaches."""
        created = self._timeline.info(node).created
        return created.kind == "constant" and not created.requires_grad

    def fits(self, width: int, height: int) -> bool:
        """Return whether the whole graph of the moment fits into an area."""
        if self.moment is None or not self._timeline.iterations:
            return False
        shown = self._drawings.shown(self.moment.n, 0, label_density(width, height), width)
        parts = self._drawings.parts(shown)
        if len(parts) > 1 or len(parts.nodes) * 16 > width * height:
            return False  # no need to lay out what cannot fit
        layout = self._drawings.get(shown).canvas.layout
        return 0 < layout.width <= width and layout.height <= height

    def watch_moment(self, before: Moment | None, moment: Moment | None) -> None:
        """Show the moment, with the box of its event in view, or else the selected one."""
        self._follow_soon((moment.actor or self.selected) if moment is not None else 0)

    def watch_selected(self, selected: int) -> None:
        """Mark the selection and bring it into view."""
        self._follow_soon(selected)

    def watch_graph_filter(self) -> None:
        """Draw the graph with other modules collapsed, or another part of it."""
        self._follow_soon(self.selected)

    def watch_branch_view(self) -> None:
        """Draw the graph with the changed numbers, or without them, and with the selected box still in view."""
        self._follow_soon(self.selected)

    def watch_breaks(self) -> None:
        """Draw the graph with the changed breakpoints."""
        self._follow_soon(0)

    def watch_length(self, length: int) -> None:
        """Lay out the graph again if the recording has grown: it may have more boxes or lines."""
        if length:
            self._follow_soon(0)

    def _follow_soon(self, node: int) -> None:
        """Draw soon, with `node`, if there is one, in view.

        A step changes moment and selection: one drawing for both.
        """
        if self._awaited is None:
            self.call_next(self._follow)
        self._awaited = node or self._awaited or 0

    def _follow(self) -> None:
        node, self._awaited = self._awaited, None
        self._look_at(node or 0)

    def _look_at(self, node: int, *, anew: bool = False) -> None:
        """Draw the moment with a node in view, or else, in another picture (or `anew`), its newest node.

        Another picture `anew` begins at its corner: if it kept the position of an old box, it might cut boxes.
        """
        before = self.drawing
        self._renew()
        if anew and self.drawing is not before:
            self.scroll_to(x=0, y=0, animate=False, force=True, immediate=True)
        if node and self.place(node) is not None:
            self.bring_into_view(node)
        elif anew or self.drawing is not before:
            self.bring_into_view(self._newest())

    def _newest(self) -> int:
        """Return the newest node of the picture at the moment, 0 in an empty one: another picture opens there."""
        n = self.moment.n if self.moment is not None else 0
        shown = self.drawing.shape.places if self.drawing is not None else ()
        return max((place.node for place in shown if self._timeline.info(place.node).born <= n), default=0)

    def sized(self) -> None:
        """Show the moment in the new size, or what was missed while the panel was hidden."""
        super().sized()
        self.forget_rows()
        if self.moment is not None:
            self._look_at(self.selected or self.moment.actor, anew=True)

    def bring_into_view(self, node: int) -> None:
        """Scroll to the node's box unless all of it is visible, so that much else is visible, too.

        While a gradient flows over a line, the other end of the line is kept in view if there is room for both. So is
        the call at which the program failed.
        """
        place = self.place(node)
        if place is None or not self.size or self.drawing is None or self.moment is None:
            return
        event = self.moment.event
        target = event.node if isinstance(event, GradFlowed) and event.source == node else 0
        places = self.drawing.canvas.layout.places
        ends = [self._region(places[key]) for key in self.drawing.boxes(target)]
        if isinstance(event, Failed) and FAILED in places:
            ends.append(self._region(places[FAILED]))
        linked = [self._region(places[key]) for key in self.drawing.canvas.layout.linked(place.key)]
        near = range(place.y - self.view.height, place.bottom + self.view.height)
        boxes = self.drawing.canvas.visible(near)[0]
        around = [self._region(each) for each in boxes]
        ahead = [self._region(each) for each in boxes if self.drawing.is_ahead(each.key, self.moment.n)]
        to = scroll_target(self.view, self.virtual_size, self._region(place), ends, around, linked, ahead)
        if to is not None:
            self.scroll_to(x=to.x, y=to.y, animate=False, force=True, immediate=True)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Show the new view in the overview, too."""
        super().watch_scroll_y(old_value, new_value)
        self._show_overview()

    def _show_overview(self) -> None:
        """Show the overview, with its marks, if the graph is higher than its panel would be without it."""
        if self.drawing is None or self.moment is None or not self.size:
            return
        height = self.drawing.canvas.layout.height
        room = self.outer_size.height - 2 + self.overview.region.height
        is_needed = height > room >= LEAST_GRAPH_ROWS
        self.overview.show_if(is_needed=is_needed)
        if not is_needed:
            return
        self._mark_values(self.drawing, self.moment)
        known = self._marked[2] if self._marked[0] is self.drawing else {}
        now = self.moment.actor if self.moment.actor != self.selected else 0
        nodes = {"selected": [self.selected], "now": [now], **known}
        marks = {name: tuple(self._marks_of(here)) for name, here in nodes.items()}
        self.overview.overview = Overview(height, range(self.view.y, self.view.bottom), marks)

    def _mark_values(self, drawing: Moments, moment: Moment) -> None:
        """Look for the values to mark: at once in a small graph, else when time no longer moves."""
        if self._marked[:2] == (drawing, moment.n):
            return
        if self._marking is not None:
            self._marking.stop()
        if len(drawing.nodes) <= FEW_NODES:
            self._look_for_values(drawing, moment)
        elif len(drawing.nodes) <= MOST_NODES:
            self._marking = self.set_timer(_STANDSTILL, partial(self._mark_later, drawing, moment))

    def _mark_later(self, drawing: Moments, moment: Moment) -> None:
        self._look_for_values(drawing, moment)
        self._show_overview()

    def _look_for_values(self, drawing: Moments, moment: Moment) -> None:
        if self._cuts[0] is not drawing:
            self._cuts = drawing, cut_nodes(self._timeline, drawing.nodes)
        self._marked = drawing, moment.n, marked_nodes(self._timeline, moment, drawing.nodes, self._cuts[1])

    def _marks_of(self, nodes: Iterable[int]) -> Iterator[Mark]:
        """Yield a mark at the middle row of the box of each node that has one."""
        for node in nodes:
            place = self.place(node) if node else None
            if place is not None:
                yield Mark(_middle(place), node)

    def select_near(self, row: int) -> None:
        """Select the node whose box is nearest to a row of the graph."""
        places = self.drawing.canvas.layout.places.values() if self.drawing is not None else ()
        nearest = min(places, key=lambda place: abs(_middle(place) - row), default=None)
        if self.drawing is not None and nearest is not None:
            self.post_message(NodePointed(self.drawing.node_at(nearest.x, nearest.y)))

    def _region(self, place: PlacedBox) -> Region:
        return Region(place.x + self.margin, place.y, place.width, place.height)

    def action_select_sideways(self, steps: int) -> None:
        """Select the next box to the left or right."""
        here = self.place(self.selected)
        if here is None or self.drawing is None:
            return
        row = range(here.y, here.bottom)
        others, _ = self.drawing.canvas.visible(row)
        side = [p for p in others if (p.x - here.x) * steps > 0 and p.y < here.bottom and p.bottom > here.y]
        if side:
            nearest = min(side, key=lambda place: abs(place.x - here.x))
            self.post_message(NodePointed(self.drawing.node_at(nearest.x, nearest.y)))

    def hovered(self, event: events.MouseMove) -> None:
        """Show the node under the mouse in full."""
        self.tooltip = node_tip(self._timeline, self.moment, self.pointed(event), self._glyphs, self.branch_view)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Select the node of a box; the handler of the base class, which Textual calls, too, begins a drag."""
        self.post_message(Pressed(self, self.pointed(event)))

    def on_click(self, event: events.Click) -> None:
        """Run to the node of a box at a double click."""
        node = 0 if self.dragged or event.chain != 2 else self.pointed(event)
        if node:
            self.post_message(NodePointed(node, run=True))

    def _nothing(self) -> str:
        if self._timeline.growing:
            return " Starting: no tensors yet"
        return " No node of this iteration is shown. a: show all" if self._timeline.nodes else " no nodes were recorded"

    def _renew(self) -> None:
        """Follow the moment and the selection, and redraw the rows that have changed."""
        if self.moment is None or not self.size or not self._timeline.iterations:
            return
        room = self.outer_size - (2, 2)  # without the border; scroll bars come and go with what is drawn
        node = self.selected or self.moment.actor
        n, branch_view = self.moment.n, self.branch_view
        compared = branch_view is not None and branch_view.covers(n)
        shown = self._drawings.shown(n, node, label_density(*room), room.width, compared=compared)
        drawing = self._drawings.get(shown)
        self.empty_text = "" if drawing.shape.places else self._nothing()
        if drawing is not self.drawing:
            kept = common_box(self.drawing, drawing, self.view, self.selected)
            before = self.scroll_offset - Offset(self.margin, 0)
            self.drawing = drawing
            self._entitle(self._drawings.title(shown), self._drawings.collapsed_text(shown))
            size = self._extent(drawing)
            if size != self.virtual_size:
                self.set_reactive(Widget.virtual_size, size)  # setting it makes Textual lay out the whole screen
                self._scroll_update(size)
            self._keep_in_place(kept, before)
        self.style_rows()
        self.redraw()
        self._show_overview()

    def _extent(self, drawing: Moments) -> Size:
        """Return the size of the scrolled area; while a graph grows beyond the view, with room for the next boxes."""
        layout, view = drawing.canvas.layout, self.scrollable_content_region
        room = view.height // 2 if self._timeline.growing and layout.height > view.height else 0
        return Size(layout.width, layout.height + room)

    def _entitle(self, shown_part: str, collapsed: Sequence[str] = ()) -> None:
        """Set the title: the shown part, and what was collapsed automatically, in as many words as have room."""
        self._entitled = shown_part, collapsed
        name = f"Graph, {shown_part}" if shown_part else "Graph"
        keys = {self._expand_key: "expand", self._level_key: "level"}
        more = " · ".join(f"{key}: {act}" for key, act in keys.items() if key)
        texts = [f"{text}. {more}" if more else text for text in collapsed]
        texts += [f"{text}, {self._level_key}: more" for text in collapsed[-1:] if self._level_key]
        titles = [panel_title("graph", ": ".join((name, text))) for text in (*texts, *collapsed[-1:])]
        if not titles and DATA_COLLAPSED in shown_part and self._expand_key:
            titles.append(panel_title("graph", f"{name}. {self._expand_key}: expand"))
        titles = titles or [panel_title("graph", name)]
        room = self.outer_size.width - AROUND_TITLE
        title = next((one for one in titles if cell_len(one) <= room), titles[-1])
        if title != self._heading:  # setting a title repaints the whole panel
            self.border_title = self._heading = title

    def _keep_in_place(self, kept: tuple[PlacedBox, PlacedBox] | None, before: Offset) -> None:
        """Keep a box at its position on the screen while the boxes around it are laid out again."""
        if kept is not None:
            old, new = kept
            across, down = before + Offset(new.x + self.margin - old.x, new.y - old.y)
            self.scroll_to(x=across, y=down, animate=False, force=True, immediate=True)

    def style_rows(self) -> None:
        """Compute the current look of everything in view, and of some rows around it."""
        if self.drawing is not None and self.moment is not None:
            top = int(self.scroll_offset.y)
            self.styled_rows = range(max(top - AHEAD, 0), top + self.size.height + AHEAD)
            stops = self._breakpoints.at_node if self._breakpoints.listed else None
            n, branch_view = self.moment.n, self.branch_view
            other = None if branch_view is None or not branch_view.covers(n) else partial(branch_view.states, n=n)
            self.drawing.show(self.moment, self.selected, self.styled_rows, stops, other)


def _middle(place: PlacedBox) -> int:
    """Return the middle row of a box."""
    return place.y + place.height // 2


Span = tuple[int, int]

NAMED = 12
"""How many columns of a box make it recognisable."""


def scroll_target(
    view: Region,
    canvas: Size,
    box: Region,
    others: Iterable[Region] = (),
    around: Sequence[Region] = (),
    linked: Collection[Region] = (),
    ahead: Collection[Region] = (),
) -> Offset | None:
    """Return where to scroll so that all of a box is visible; None if it is.

    The nearest of the `others` (the other end of a line) is kept in view with it if there is room for both. A view that
    moves shows as much as possible of the boxes `around`: preferably whole ones, first those `linked` to the box, last
    those that are still `ahead`. The name of a cut box, at the left of its first row, should be visible.
    """
    needed = _joined(box, others, view)
    if view.contains_region(needed):
        return None
    reach = needed.grow((view.height, view.width, view.height, view.width))
    around = [each for each in around if reach.overlaps(each)]
    xs = _offsets((view.x, view.width), (needed.x, needed.right), [(each.x, each.right) for each in around])
    ys = _offsets((view.y, view.height), (needed.y, needed.bottom), [(each.y, each.bottom) for each in around])
    most = Offset(max(canvas.width - view.width, 0), max(canvas.height - view.height, 0))
    seen = [
        Region(x, y, view.width, view.height)
        for x in {max(min(x, most.x), 0): None for x in xs}
        for y in {max(min(y, most.y), 0): None for y in ys}
    ]
    joined = [(each, 1 if each in ahead else 3 if each in linked else 2) for each in around]
    return max(seen, key=lambda each: (_shown(each, joined), -_jump(view, each, needed))).offset


def _joined(box: Region, others: Iterable[Region], view: Region) -> Region:
    """Return the union of a box with the nearest of the others, in each direction that has room for both."""
    both = box.union(min(others, key=lambda other: _distance(box, other), default=box))
    x, width = (both.x, both.width) if both.width <= view.width else (box.x, box.width)
    y, height = (both.y, both.height) if both.height <= view.height else (box.y, box.height)
    return Region(x, y, width, height)


def _offsets(view: Span, needed: Span, around: Iterable[Span]) -> list[int]:
    """Return where a view may begin that shows what is needed: where it is now, around it, or at the edge of a box.

    If it is longer than the view, its beginning is shown.
    """
    (now, room), (first, end) = view, needed
    if end - room > first:
        return [first]
    wished = (now, (first + end - room) // 2, first, end - room, *(at for a, b in around for at in (a, b - room)))
    return [at for at in dict.fromkeys(wished) if end - room <= at <= first]


def _shown(view: Region, around: Iterable[tuple[Region, int]]) -> int:
    """Return how much of some weighted boxes a view shows; a box without its visible name counts negative."""
    shown = 0
    for box, weight in around:
        if view.contains_region(box):
            shown += weight
        elif box.x < view.right and box.right > view.x and box.y < view.bottom and box.bottom > view.y:
            named = box.x >= view.x and box.y >= view.y and view.right - box.x >= NAMED
            shown += 1 if named else -1
    return shown


def _jump(view: Region, other: Region, needed: Region) -> int:
    """Return how far another view is from this one sideways, and its middle from the middle of what is needed."""
    return abs(other.x - view.x) + abs(2 * (other.y - needed.y) + other.height - needed.height)


def _distance(box: Region, other: Region) -> int:
    return abs(box.y - other.y) + abs(box.x - other.x)


def common_box(now: Moments | None, other: Moments, view: Region, node: int = 0) -> tuple[PlacedBox, PlacedBox] | None:
    """Return the places of a box in two drawings of an iteration, or None: of the selected `node` if it is in view.

    Otherwise, it is the box nearest to the middle of the view.
    """
    if now is None or now.shape.iteration != other.shape.iteration:
        return None
    (x, y), places = view.center, other.canvas.layout.places
    boxes = [box for box in now.canvas.visible(range(view.y, view.bottom))[0] if box.key in places]
    if not boxes:
        return None
    selected = {*now.boxes(node)} if node else set()
    box = min(
        boxes,
        key=lambda box: (box.key not in selected, abs(box.y + box.height / 2 - y), abs(box.x + box.width / 2 - x)),
    )
    return box, places[box.key]
