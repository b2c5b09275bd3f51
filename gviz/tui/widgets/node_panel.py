"""The panels about the selected node: its sections, what it saved for backward, and its tooltip."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from textual.content import Content
from textual.reactive import reactive

from gviz.explain.tracking import as_at
from gviz.render.boxes.box_content import tooltip
from gviz.trace.node_gradients import in_its_iteration
from gviz.trace.timeline import Moment, Timeline
from gviz.tui.cursor import Asker
from gviz.tui.drawing.node_details import Subject, differences, node_lines, what_if_title
from gviz.tui.drawing.saved_tensors import saved_lines
from gviz.tui.drawing.tensor_elements import node_tensors
from gviz.tui.drawing.watches_and_breakpoints import watch_lines
from gviz.tui.glyphs import Glyphs
from gviz.tui.panel_choice import panel_title
from gviz.tui.styled_lines import Line, line
from gviz.tui.widgets.text_panel import LinkedPage

if TYPE_CHECKING:
    from gviz.rerun.branch import BranchView


class NodePanel(LinkedPage):
    """The sections about the selected node at the moment."""

    moment: reactive[Moment | None] = reactive(None, repaint=False)
    selected: reactive[int] = reactive(0, repaint=False)
    full: reactive[bool] = reactive(False, repaint=False)
    branch_view: reactive[BranchView | None] = reactive(None, repaint=False)
    watched: reactive[tuple[str, ...]] = reactive((), repaint=False)
    watching: reactive[bool] = reactive(True, repaint=False)
    tensors = False

    def __init__(self, timeline: Timeline, glyphs: Glyphs, asker: Asker | None = None, *, id: str = "node") -> None:
        super().__init__(id=id)
        self._timeline = timeline
        self._asker = asker
        self.glyphs = glyphs

    def on_mount(self) -> None:
        """Name the panel."""
        self.set_title(panel_title("node", "Node"))
        self.all_of_it = ": Enter"

    def watch_moment(self) -> None:
        """Draw another moment."""
        self.draw_soon()

    def watch_selected(self) -> None:
        """Draw another node, from the top."""
        self.scroll_to(y=0, animate=False, immediate=True)
        self.draw_soon()

    def watch_full(self) -> None:
        """Draw numbers in full, or short."""
        self.draw_soon()

    def watch_branch_view(self) -> None:
        """Draw the changed numbers, or none."""
        self.draw_soon()

    def watch_watched(self) -> None:
        """Draw the changed watches."""
        self.draw_soon()

    def watch_watching(self) -> None:
        """Draw the watches, unless another panel shows them."""
        self.draw_soon()

    def draw(self) -> None:
        """Build the text of the moment, with the watches above it."""
        moment = self.moment
        if moment is not None:
            self.tooltip = node_tip(self._timeline, moment, self.selected, self.glyphs, self.branch_view)
            watching = () if self._asker is None or not self.watching else tuple(self._asker.watching(moment.n))
            self.show_fitted(lambda width: (*watch_lines(watching, width), *self._all_lines(moment, width)))

    def _all_lines(self, moment: Moment, width: int) -> Iterator[Line]:
        yield from node_lines(self._subject(moment, width))
        if self.tensors:
            yield from node_tensors(self._timeline, moment, self.selected, width, self.glyphs)

    def _subject(self, moment: Moment, width: int) -> Subject:
        glance = not self.tensors  # the permanent panel; a page about a node shows only the node
        return Subject(self._timeline, moment, self.selected, width, self.glyphs, self.full, self.branch_view, glance)


def node_tip(
    timeline: Timeline, moment: Moment | None, node: int, glyphs: Glyphs, branch_view: BranchView | None = None
) -> Content | None:
    """Return the value, incoming gradient and ``.grad`` of a node at a moment with every digit; None without a node.

    Below them are the numbers of a what-if.
    """
    if moment is None or node not in timeline.nodes:
        return None
    state = in_its_iteration(timeline, moment.n, moment.state(node))
    lines = [tooltip(as_at(timeline.info(node), state), state)]
    if others := differences(timeline, branch_view, node, moment.n):
        lines += [f"{what_if_title(branch_view, moment.n)}:", *others]
    return Content(glyphs.text("\n".join(lines)))


class SavedPanel(LinkedPage):
    """Saved tensors and versions of one node."""

    moment: reactive[Moment | None] = reactive(None, repaint=False)
    selected: reactive[int] = reactive(0, repaint=False)
    branch_view: reactive[BranchView | None] = reactive(None, repaint=False)

    def __init__(self, timeline: Timeline, heading: str, glyphs: Glyphs) -> None:
        super().__init__(id="saved")
        self._timeline = timeline
        self._heading = heading
        self.glyphs = glyphs

    def on_mount(self) -> None:
        """Name the panel."""
        self.set_title(self._heading)

    def watch_moment(self) -> None:
        """Show the moment."""
        self.draw_soon()

    def watch_selected(self) -> None:
        """Show the selection."""
        self.draw_soon()

    def watch_branch_view(self) -> None:
        """Say whose numbers are shown."""
        self.draw_soon()

    def draw(self) -> None:
        """Build the text of the moment."""
        moment = self.moment
        if moment is not None and self.display:
            words = what_if_title(self.branch_view, moment.n)
            recorded = [line(("recorded numbers:", "muted"))] if words else []
            self.show_fitted(lambda width: (*recorded, *saved_lines(self._timeline, moment, self.selected, width)))
