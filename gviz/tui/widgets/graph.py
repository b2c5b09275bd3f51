"""The graph as a canvas that scrolls: it holds state, `render.cells` draws. Boxes never move while time does."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Offset, Region, Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from gviz.render.cells.moments import Moments
from gviz.render.fold import ALL, Filter
from gviz.render.layout import PlacedBox
from gviz.trace.moment import Moment
from gviz.trace.timeline import Timeline
from gviz.tui.arrangement import numbered
from gviz.tui.breakpoints import Breakpoints
from gviz.tui.folds import Folds
from gviz.tui.glyphs import Glyphs
from gviz.tui.messages import NodePointed
from gviz.tui.widgets.drawings import Drawings, kept_in_view
from gviz.tui.widgets.tips import node_tip

if TYPE_CHECKING:
    from gviz.whatif.beside import Beside

STYLES = (
    "title", "value", "grad", "sum", "muted", "error", "current", "selected", "edge", "gradient",
    "leaf", "parameter", "chip", "constant", "op", "root",
)  # fmt: skip
AHEAD = 8
KEPT_STRIPS = 2000


class GraphCanvas(ScrollView, can_focus=True):
    """The graph of the iteration that the moment lies in."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "screen.relative('input')", show=False),
        Binding("down", "screen.relative('user')", show=False),
        Binding("left", "beside(-1)", show=False),
        Binding("right", "beside(1)", show=False),
        Binding("shift+left", "pan(-8, 0)", show=False),
        Binding("shift+right", "pan(8, 0)", show=False),
        Binding("shift+up", "pan(0, -4)", show=False),
        Binding("shift+down", "pan(0, 4)", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"graph--{style}" for style in STYLES}
    DEFAULT_CSS = """
    GraphCanvas {
        & .graph--title, & .graph--root { text-style: bold; }
        & .graph--value { color: $gviz-value; }
        & .graph--grad, & .graph--gradient { color: $gviz-grad; }
        & .graph--sum { color: $gviz-sum; text-style: bold; }
        & .graph--muted, & .graph--constant, & .graph--edge { color: $gviz-muted; }
        & .graph--error { color: $gviz-error; text-style: bold; }
        & .graph--current { color: $gviz-mark; text-style: bold; }
        & .graph--selected { text-style: bold reverse; }
        & .graph--leaf, & .graph--parameter, & .graph--chip { color: $gviz-brand; }
    }
    """
    ALLOW_SELECT = False
    moment: reactive[Moment | None] = reactive(None, repaint=False)
    selected: reactive[int] = reactive(0, repaint=False)
    breaks: reactive[int] = reactive(0, repaint=False)
    length: reactive[int] = reactive(0, repaint=False)

    beside: reactive[Beside | None] = reactive(None, repaint=False)
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
        self._drawing: Moments | None = None
        self._dressed = range(0)
        self._strips: dict[int, Strip] = {}
        self._strips_left = 0
        self._styles: dict[str, Style] = {}
        self._remark = ""
        self._dragged = False
        self._held: Offset | None = None
        self._awaited: int | None = None  # the box to bring into view when what has changed is drawn

    def on_mount(self) -> None:
        """Name the panel."""
        self.border_title = numbered("graph", "Graph")

    def fits(self, width: int, height: int) -> bool:
        """Whether the whole graph of the moment could be seen in an area."""
        if self.moment is None or not self._timeline.iterations:
            return False
        shown = self._drawings.shown(self.moment.n, 0)
        parts = self._drawings.parts(shown)
        if len(parts) > 1 or len(parts.nodes) * 16 > width * height:
            return False  # no need to lay out what cannot fit
        layout = self._drawings.get(shown).canvas.layout
        return 0 < layout.width <= width and layout.height <= height

    def watch_moment(self, before: Moment | None, moment: Moment | None) -> None:
        """Show the moment, with the box it concerns in view."""
        self._follow_soon(moment.actor if moment is not None else 0)

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
        """Draw the moment with a node in view, or in another picture (or `anew`) that has it not, the newest one."""
        before = self._drawing
        self._renew()
        if node and self._place(node) is not None:
            self.bring_into_view(node)
        elif anew or self._drawing is not before:
            self.bring_into_view(self._newest())

    def _newest(self) -> int:
        """The node of the picture that was made last by the moment, 0 in an empty one: where another picture opens."""
        n = self.moment.n if self.moment is not None else 0
        shown = self._drawing.shape.places if self._drawing is not None else ()
        return max((place.node for place in shown if self._timeline.info(place.node).born <= n), default=0)

    def on_resize(self) -> None:
        """A panel that comes on the screen has missed what happened while it was hidden."""
        self._strips.clear()
        if self.moment is not None:
            self._look_at(self.moment.actor or self.selected, anew=True)

    def notify_style_update(self) -> None:
        """Other colours: draw everything anew."""
        super().notify_style_update()
        self._styles.clear()
        self._strips.clear()

    def render_line(self, y: int) -> Strip:
        """One visible row."""
        left, top = self.scroll_offset
        width, row = self.size.width, y + int(top)
        if self._drawing is None or row >= self._drawing.canvas.layout.height:
            said = Strip([Segment(self._remark if y == 0 else "", self._style("muted"))])
            return said.adjust_cell_length(width, self._style(""))
        if row not in self._dressed:
            self._dress()
        if left != self._strips_left or len(self._strips) > KEPT_STRIPS:
            self._strips.clear()
            self._strips_left = int(left)
        strip = self._strips.get(row)
        if strip is None or strip.cell_length != width:
            strip = self._strips[row] = self._strip(self._drawing, row, int(left), width)
        return strip

    def bring_into_view(self, node: int) -> None:
        """Put the node's box into the middle, in a direction in which it is not wholly in view."""
        place = self._place(node)
        if place is None or not self.size:
            return
        region = Region(place.x + self._margin, place.y, place.width, place.height)
        x, y, width, height = self._view
        across = None if x <= region.x and region.right <= x + width else region.x - (width - region.width) // 2
        down = None if y <= region.y and region.bottom <= y + height else region.y - (height - region.height) // 2
        if across is not None or down is not None:
            self.scroll_to(x=across, y=down, animate=False, force=True, immediate=True)

    def action_pan(self, x: int, y: int) -> None:
        """Move the view."""
        self.scroll_relative(x, y, animate=False, force=True)

    def action_beside(self, steps: int) -> None:
        """Select the next box to the left or right."""
        here = self._place(self.selected)
        if here is None or self._drawing is None:
            return
        row = range(here.y, here.bottom)
        others, _ = self._drawing.canvas.visible(row)
        side = [p for p in others if (p.x - here.x) * steps > 0 and p.y < here.bottom and p.bottom > here.y]
        if side:
            nearest = min(side, key=lambda place: abs(place.x - here.x))
            self.post_message(NodePointed(self._drawing.node_at(nearest.x, nearest.y)))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """A drag pans."""
        self._held, self._dragged = event.screen_offset, False
        self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Pan by as much as the mouse has moved; without a button, tell in full what it rests on."""
        if self._held is None:
            self.tooltip = node_tip(self._timeline, self.moment, self._pointed(event), self._glyphs)
        if self._held is None or event.screen_offset == self._held:
            return
        step = self._held - event.screen_offset
        self._held, self._dragged = event.screen_offset, True
        self.action_pan(step.x, step.y)

    def on_mouse_up(self) -> None:
        """The drag is over."""
        self._held = None
        self.release_mouse()

    def on_click(self, event: events.Click) -> None:
        """Select the node of a box; a double click runs to it."""
        node = 0 if self._dragged else self._pointed(event)
        if node:
            self.post_message(NodePointed(node, run=event.chain == 2))

    def _pointed(self, event: events.MouseEvent) -> int:
        """The node whose box is under the mouse, or 0."""
        offset = event.get_content_offset(self)
        if offset is None or self._drawing is None:
            return 0
        x, y = offset + self.scroll_offset
        return self._drawing.node_at(int(x) - self._margin, int(y))

    @property
    def _margin(self) -> int:
        """The blank columns left of a graph that is narrower than the panel."""
        return 0 if self._drawing is None else max((self.size.width - self._drawing.canvas.layout.width) // 2, 0)

    @property
    def _view(self) -> Region:
        return Region(int(self.scroll_offset.x), int(self.scroll_offset.y), *self.scrollable_content_region.size)

    def _place(self, node: int) -> PlacedBox | None:
        """Where a node's own box stands (its first chip if the picture has only chips of it)."""
        if self._drawing is None:
            return None
        keys = sorted(self._drawing.boxes(node), key=lambda key: len(str(key)))
        return self._drawing.canvas.layout.places[keys[0]] if keys else None

    def _nothing(self) -> str:
        return " starting: nothing yet" if self._timeline.growing else " no nodes were recorded"

    def _renew(self) -> None:
        """Follow the moment and the selection, and redraw the rows that look different."""
        if self.moment is None or not self.size or not self._timeline.iterations:
            return
        shown = self._drawings.shown(self.moment.n, self.selected or self.moment.actor)
        drawing = self._drawings.get(shown)
        if drawing is not self._drawing:
            held = kept_in_view(self._drawing, drawing, self._view)
            before = self.scroll_offset - Offset(self._margin, 0)
            self._drawing, self._remark = drawing, "" if drawing.shape.places else self._nothing()
            said = self._drawings.title(shown)
            self.border_title = numbered("graph", f"Graph, {said}" if said else "Graph")
            size = Size(drawing.canvas.layout.width, drawing.canvas.layout.height)
            self.set_reactive(Widget.virtual_size, size)  # one that is watched makes Textual lay out the whole screen
            self._scroll_update(size)
            self._strips.clear()
            self._hold(held, before)
            self.refresh()
        self._dress()
        self._redraw(drawing)

    def _hold(self, held: tuple[PlacedBox, PlacedBox] | None, before: Offset) -> None:
        """Let a box stay where it was on the screen, although the boxes around it are laid out anew."""
        if held is not None:
            old, new = held
            across, down = before + Offset(new.x + self._margin - old.x, new.y - old.y)
            self.scroll_to(x=across, y=down, animate=False, force=True, immediate=True)

    def _redraw(self, drawing: Moments) -> None:
        """Ask for those visible rows to be painted that look different from what was painted last."""
        left, top = int(self.scroll_offset.x), int(self.scroll_offset.y)
        rows = range(top, min(top + self.size.height, drawing.canvas.layout.height))
        fresh = {row: self._strip(drawing, row, left, self.size.width) for row in rows}
        for row, strip in fresh.items():
            if self._strips.get(row) != strip:
                self.refresh(Region(0, row - top, self.size.width, 1))
        self._strips, self._strips_left = fresh, left

    def _dress(self) -> None:
        """Compute how everything in view looks now, and a little around it."""
        if self._drawing is not None and self.moment is not None:
            top = int(self.scroll_offset.y)
            self._dressed = range(max(top - AHEAD, 0), top + self.size.height + AHEAD)
            stops = self._breakpoints.at_node if self._breakpoints.listed else None
            n, beside = self.moment.n, self.beside
            other = None if beside is None or not beside.covers(n) else partial(beside.states, n=n)
            self._drawing.show(self.moment, self.selected, self._dressed, stops, other)

    def _strip(self, drawing: Moments, row: int, left: int, width: int) -> Strip:
        margin = self._margin
        line = drawing.canvas.line(row, left, width - margin)
        segments = [Segment(text, self._style(style)) for text, style in line]
        return Strip([Segment(" " * margin, self._style("")), *segments] if margin else segments, width)

    def _style(self, name: str) -> Style:
        style = self._styles.get(name)
        if style is None:
            component = self.get_component_rich_style(f"graph--{name}", partial=True) if name else Style.null()
            style = self._styles[name] = self.rich_style + component
        return style
