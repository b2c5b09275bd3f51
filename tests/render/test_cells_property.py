"""What is drawn is what was given: the characters, read back, name the same edges."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from render import graphs
from render.reading import edges_of

from gviz.render.cells import Appearance, Canvas
from gviz.render.layout import layout, layout_rightward


@st.composite
def dags(draw):
    count = draw(st.integers(1, 14))
    edges = [
        (draw(st.integers(0, box - 1)), box, slot) for box in range(1, count) for slot in range(draw(st.integers(0, 3)))
    ]
    computed = {target for _, target, _ in edges}
    return ["op" if box in computed else "leaf" for box in range(count)], edges


def check(roles, edges, *, ascii, function=layout):
    drawn = graphs.laid_out(roles, edges, function)
    canvas = Canvas(drawn, Appearance(graphs.faces(roles)), ascii=ascii)
    seen = edges_of(canvas.text(), drawn.places, rightward=drawn.rightward)
    assert seen == sorted((source, target) for source, target, _ in edges)


@given(dags(), st.booleans(), st.sampled_from([layout, layout_rightward]))
@settings(max_examples=150, deadline=None)
def test_drawn_edges_are_the_given_edges(graph, ascii, function):
    check(*graph, ascii=ascii, function=function)


@pytest.mark.parametrize("ascii", [False, True], ids=["unicode", "ascii"])
@pytest.mark.parametrize(("count", "arguments"), [(30, 2), (40, 4), (80, 3)])
@pytest.mark.parametrize("seed", range(4))
def test_dense_random_graphs_read_back(count, arguments, seed, ascii):
    check(*graphs.random_graph(count, arguments, seed), ascii=ascii)


@pytest.mark.parametrize("ascii", [False, True], ids=["unicode", "ascii"])
@pytest.mark.parametrize("function", [layout, layout_rightward])
def test_dense_small_boxes_with_more_lines_than_room_read_back(ascii, function):
    roles, edges = graphs.random_graph(25, 24, seed=3)
    check(roles, edges, ascii=ascii, function=function)
