"""The SVG in fewer bytes draws what Graphviz draws."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from render.logs import LOGS
from render.measured import knots
from render.pictures import groups, words

from gviz.render.boxes.graph_structure import structure
from gviz.render.graphviz.dot import digraph
from gviz.render.graphviz.process import draw
from gviz.render.graphviz.svg_output import slim
from gviz.render.scene import scene
from gviz.render.theme import LIGHT

PLACES = st.integers(-(10**6), 10**6).map(lambda number: number / 100)
KNOTS = st.tuples(PLACES, PLACES)
PARTS = st.one_of(st.tuples(KNOTS, KNOTS, KNOTS), st.tuples(st.none(), st.none(), KNOTS))
"""Parts of a curve: bent, and straight ones, whose control points are their ends."""


@given(KNOTS, st.lists(PARTS, min_size=1, max_size=8))
def test_a_curve_goes_where_it_went(start, parts):
    points = [start]
    for near, far, end in parts:
        points += [near or points[-1], far or end, end]
    text = " ".join(f"{x},{y}" for x, y in points[1:])
    short = slim(f'<path d="M{start[0]},{start[1]}C{text}"/>', LIGHT.form)
    found = knots(re.search('d="([^"]*)"', short)[1])
    ends = [points[0], *points[3::3]]
    assert found[0] == pytest.approx(points[0], abs=0.051)
    assert found[-1] == pytest.approx(ends[-1], abs=0.051)
    for end in ends:
        assert any(knot == pytest.approx(end, abs=0.051) for knot in found)


@pytest.mark.parametrize("log", LOGS)
def test_no_word_and_no_id_is_lost(log):
    timeline = LOGS[log]().timeline
    drawn = scene(structure(timeline, timeline.iteration_at(len(timeline))), timeline, timeline.at(len(timeline)))
    svg = draw(digraph(drawn).source, "svg").decode("utf-8")
    short = slim(svg, LIGHT.form)
    assert len(short) < 0.8 * len(svg)
    for kind in ("node", "edge"):
        before, after = groups(svg, kind), groups(short, kind)
        assert after.keys() == before.keys()
        assert [[*filter(None, words(group))] for group in after.values()] == [
            [*filter(None, words(group))] for group in before.values()
        ]
