"""Whatever a program may say, every moment of it can be drawn, and the drawing says what the scene says."""

from histories import histories
from hypothesis import given, settings
from hypothesis import strategies as st
from render.pictures import boxes_and_lines

from gviz import events as e
from gviz.render.boxes.graph_options import Options
from gviz.render.boxes.graph_structure import structure
from gviz.render.forms.text import text
from gviz.render.graphviz.dot import dot
from gviz.render.scene import scene
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline


@settings(max_examples=40, deadline=None)
@given(histories, st.integers(0, 12), st.booleans())
def test_every_moment_of_any_history_is_drawn(log, split_above, optimizer):
    timeline = Timeline(MemoryLog(log))
    for iteration in timeline.iterations:
        shape = structure(timeline, iteration, Options(split_above, optimizer))
        for n in range(iteration.start - 1, iteration.end + 1):
            drawn = scene(shape, timeline, timeline.at(n), tooltips=True)
            for box in drawn.boxes:
                assert 1 + len(box.rows) <= box.height
                assert all(len(f"{row.label} {row.text}".strip()) <= box.width for row in box.rows)
            assert text(drawn)
        boxes, lines = boxes_and_lines(dot(drawn))
        assert boxes == {box.key for box in drawn.boxes}
        assert lines == sorted((edge.source, edge.target) for edge in drawn.edges)


@settings(max_examples=60, deadline=None)
@given(histories)
def test_every_gradient_that_flowed_has_a_line(log):
    timeline = Timeline(MemoryLog(log))
    for n in range(1, len(timeline) + 1):
        event = timeline.event(n)
        if isinstance(event, e.GradFlowed):
            drawn = scene(structure(timeline, timeline.iteration_at(n)), timeline, timeline.at(n))
            now = [edge for edge in drawn.edges if "now" in edge.states]
            nodes = {box.node for box in drawn.boxes}
            drawable = {event.node, event.source} <= nodes
            # A pass that was asked for other nodes does not cover this one, whatever an odd log says; the one within
            # whose rule it runs may.
            covered = timeline.at(n).state(event.node).pass_nr == event.pass_nr
            assert drawable * covered <= len(now) <= drawable, (event, drawn.edges)
