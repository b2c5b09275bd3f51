"""The graph as a canvas that scrolls: it holds state, `render.cells` draws. Boxes never move while time does."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Offset, Region, Size
from textual.reactive import reactive
from textual.widget import Widget

from gviz.events import GradFlowed
from gviz.render.boxes.fold import ALL, Filter
from gviz.render.cells.moments import Moments
from gviz.render.layout import PlacedBox
from gviz.trace.moment import Moment
from gviz.trace.timeline import Timeline
from gviz.tui.arrangement import label_density, numbered
from gviz.tui.breakpoints import Breakpoints, Listed
from gviz.tui.folds import Folds
from gviz.tui.glyphs import Glyphs
from gviz.tui.messages import NodePointed, Pressed
from gviz.tui.widgets.drawings import Drawings
from gviz.tui.widgets.in_view import kept_in_view, scrolled_to
from gviz.tui.widgets.painted import AHEAD, Painted
from gviz.tui.widgets.tips import node_tip

if TYPE_CHECKING:
    from gviz.rerun.branch import BranchView


class GraphCanvas(Painted, can_focus=True):
    """The graph of the iteration that the moment lies in."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "screen.select('relative', 'input')", show=False),
        Binding("down", "screen.select('relative', 'user')", show=False),
        Binding("left", "beside(-1)", show=False),
        Binding("right", "beside(1)", show=False),
    ]
    FOCUS_ON_CLICK = False  # the screen gives the focus to a panel that is pressed
    moment: reactive[Moment | None] = reactive(None, repaint=False)
    selected: reactive[int] = reactive(0, repaint=False)
    breaks: reactive[tuple[Listed, ...]] = reactive((), repaint=False)
    length: reactive[int] = reactive(0, repaint=False)

    beside: reactive[BranchView | None] = reactive(None, repaint=False)
    wanted: reactive[Filter] = reactive(ALL, repaint=False)

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
        self._heading = ""
        self._awaited: int | None = None  # the box to bring into view when what has changed is drawn

    def on_mount(self) -> None:
        """Name the panel."""
        self._entitle("")

    def fits(self, width: int, height: int) -> bool:
        """Whether the whole graph of the moment could be seen in an area."""
        if self.moment is None or not self._timeline.iterations:
            return False
        shown = self._drawings.shown(self.moment.n, 0, label_density(width, height), width)
        parts = self._drawings.parts(shown)
        if len(parts) > 1 or len(parts.nodes) * 16 > width * height:
            return False  # no need to lay out what cannot fit
        layout = self._drawings.get(shown).canvas.layout
        return 0 < layout.width <= width and layout.height <= height

    def watch_moment(self, before: Moment | None, moment: Moment | None) -> None:
        """Show the moment, with the box it concerns in view, or else the one that is selected."""
        self._follow_soon((moment.actor or self.selected) if moment is not None else 0)

    def watch_selected(self, selected: int) -> None:
        """Mark the selection and bring it into view."""
        self._follow_soon(selected)

    def watch_wanted(self) -> None:
        """Modules were opened or closed, or another part is asked for."""
        self._follow_soon(self.selected)

    def watch_beside(self) -> None:
        """A number was changed, or is as it was."""
        self._follow_soon(0)

    def watch_breaks(self) -> None:
        """A breakpoint came or went."""
        self._follow_soon(0)

    def watch_length(self, length: int) -> None:
        """The recording has grown: lay out anew what has more boxes or lines now."""
        if length:
            self._follow_soon(0)

    def _follow_soon(self, node: int) -> None:
        """Draw with `node`, if there is one, in view. A step changes moment and selection: one drawing for both."""
        if self._awaited is None:
            self.call_next(self._follow)
        self._awaited = node or self._awaited or 0

    def _follow(self) -> None:
        node, self._awaited = self._awaited, None
        self._look_at(node or 0)

    def _look_at(self, node: int, *, anew: bool = False) -> None:
        """Draw the moment with a node in view, or in another picture (or `anew`) that has it not, the newest one.

        Another picture `anew` begins at its corner: held where a box of the old one stood, it might cut boxes.
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
        """The node of the picture that was made last by the moment, 0 in an empty one: where another picture opens."""
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
        """Scroll to the node's box unless it is wholly in view, so that much is seen with it.

        While a gradient comes over a line, its other end is kept in view where there is room for both.
        """
        place = self.place(node)
        if place is None or not self.size or self.drawing is None or self.moment is None:
            return
        event = self.moment.event
        target = event.node if isinstance(event, GradFlowed) and event.source == node else 0
        places = self.drawing.canvas.layout.places
        ends = [self._region(places[key]) for key in self.drawing.boxes(target)]
        linked = [self._region(places[key]) for key in self.drawing.canvas.layout.linked(place.key)]
        near = range(place.y - self.view.height, place.bottom + self.view.height)
        boxes = self.drawing.canvas.visible(near)[0]
        around = [self._region(each) for each in boxes]
        ahead = [self._region(each) for each in boxes if self.drawing.is_ahead(each.key, self.moment.n)]
        to = scrolled_to(self.view, self.virtual_size, self._region(place), ends, around, linked, ahead)
        if to is not None:
            self.scroll_to(x=to.x, y=to.y, animate=False, force=True, immediate=True)

    def _region(self, place: PlacedBox) -> Region:
        return Region(place.x + self.margin, place.y, place.width, place.height)

    def action_beside(self, steps: int) -> None:
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

    def rested_on(self, event: events.MouseMove) -> None:
        """Tell in full what the mouse rests on."""
        self.tooltip = node_tip(self._timeline, self.moment, self.pointed(event), self._glyphs)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Select the node of a box, or begin a drag, or both."""
        super().on_mouse_down(event)
        self.post_message(Pressed(self, self.pointed(event)))

    def on_click(self, event: events.Click) -> None:
        """A double click runs to the node of a box."""
        node = 0 if self.dragged or event.chain != 2 else self.pointed(event)
        if node:
            self.post_message(NodePointed(node, run=True))

    def _nothing(self) -> str:
        if self._timeline.growing:
            return " starting: nothing yet"
        return " nothing of this iteration is shown: a shows all" if self._timeline.nodes else " no nodes were recorded"

    def _renew(self) -> None:
        """Follow the moment and the selection, and redraw the rows that look different."""
        if self.moment is None or not self.size or not self._timeline.iterations:
            return
        room = self.outer_size - (2, 2)  # without the border; scroll bars come and go with what is drawn
        node = self.selected or self.moment.actor
        shown = self._drawings.shown(self.moment.n, node, label_density(*room), room.width)
        drawing = self._drawings.get(shown)
        self.said = "" if drawing.shape.places else self._nothing()
        if drawing is not self.drawing:
            held = kept_in_view(self.drawing, drawing, self.view)
            before = self.scroll_offset - Offset(self.margin, 0)
            self.drawing = drawing
            self._entitle(self._drawings.title(shown))
            size = self._extent(drawing)
            if size != self.virtual_size:
                self.set_reactive(Widget.virtual_size, size)  # a watched one makes Textual lay out the whole screen
                self._scroll_update(size)
            self._hold(held, before)
        self.dress()
        self.redraw()

    def _extent(self, drawing: Moments) -> Size:
        """How far can be scrolled: while a graph grows beyond the view, there is room below for the next boxes."""
        layout, view = drawing.canvas.layout, self.scrollable_content_region
        room = view.height // 2 if self._timeline.growing and layout.height > view.height else 0
        return Size(layout.width, layout.height + room)

    def _entitle(self, said: str) -> None:
        title = numbered("graph", f"Graph, {said}" if said else "Graph")
        if title != self._heading:  # setting a title draws the whole panel anew
            self.border_title = self._heading = title

    def _hold(self, held: tuple[PlacedBox, PlacedBox] | None, before: Offset) -> None:
        """Let a box stay where it was on the screen, although the boxes around it are laid out anew."""
        if held is not None:
            old, new = held
            across, down = before + Offset(new.x + self.margin - old.x, new.y - old.y)
            self.scroll_to(x=across, y=down, animate=False, force=True, immediate=True)

    def dress(self) -> None:
        """Compute how everything in view looks now, and a little around it."""
        if self.drawing is not None and self.moment is not None:
            top = int(self.scroll_offset.y)
            self.dressed = range(max(top - AHEAD, 0), top + self.size.height + AHEAD)
            stops = self._breakpoints.at_node if self._breakpoints.listed else None
            n, beside = self.moment.n, self.beside
            other = None if beside is None or not beside.covers(n) else partial(beside.states, n=n)
            self.drawing.show(self.moment, self.selected, self.dressed, stops, other)
