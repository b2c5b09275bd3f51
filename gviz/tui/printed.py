"""Panels of the debugger as plain text, for who prints one without opening the debugger."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.trace.timeline import Timeline
from gviz.tui.drawing import tape
from gviz.tui.drawing.node import Subject, node_lines
from gviz.tui.drawing.passes import iteration_rows
from gviz.tui.glyphs import glyphs, wants_ascii
from gviz.tui.lines import plain
from gviz.tui.tape_rows import rows_of


def tape_rows(timeline: Timeline, n: int, width: int) -> Iterator[str]:
    """Every node in order of creation, as it is at one moment."""
    moment, marks = timeline.at(n), glyphs(ascii=wants_ascii())
    columns = tape.columns_for(width, max(timeline.nodes, default=0), tape.title_width(timeline, timeline.nodes))
    yield plain(tape.heading(columns)).rstrip()
    for node, nr in rows_of(timeline):
        yield plain(tape.row(timeline, moment, tape.Entry(node, moment.state(node), nr), columns, marks)).rstrip()


def node_panel(timeline: Timeline, n: int, node: int, width: int) -> Iterator[str]:
    """The panel of a node in full."""
    subject = Subject(timeline, timeline.at(n), node, width, glyphs(ascii=wants_ascii()), full=True)
    return (plain(line).rstrip() for line in node_lines(subject))


def passes(timeline: Timeline) -> Iterator[str]:
    """Every iteration and what it consists of, a line each."""
    marks = glyphs(ascii=wants_ascii())
    return (marks.text(text) for one in timeline.iterations for text, _ in iteration_rows(timeline, one))
