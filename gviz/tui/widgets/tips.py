"""What is shown where the mouse rests: everything exact about a node, plain text and never markup."""

from __future__ import annotations

from textual.content import Content

from gviz.explain.tracking import as_at
from gviz.render.scene import tooltip
from gviz.trace.gradients import in_its_iteration
from gviz.trace.moment import Moment
from gviz.trace.timeline import Timeline
from gviz.tui.glyphs import Glyphs


def node_tip(timeline: Timeline, moment: Moment | None, node: int, glyphs: Glyphs) -> Content | None:
    """The value, incoming gradient and ``.grad`` of a node at a moment with every digit; None where there is none."""
    if moment is None or node not in timeline.nodes:
        return None
    state = in_its_iteration(timeline, moment.n, moment.state(node))
    return Content(glyphs.text(tooltip(as_at(timeline.info(node), state), state)))
