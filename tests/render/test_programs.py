"""Pictures of real programs: what the engine said, drawn."""

import pytest
from recording import timeline_of
from render import golden

import gviz.engine as torch
from gviz.render.boxes.graph_options import Options
from gviz.render.graphviz.dot import dot
from gviz.render.picture_request import last_moment, moment_scene


def product_and_sine():
    x = torch.tensor(4.0, requires_grad=True)
    y = torch.tensor(3.0, requires_grad=True)
    z = x * x + torch.sin(2 * y)
    z.backward()
    return x, y, z


def written_through_a_view():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    s = x * 2
    row = s[1:]
    row.mul_(3)
    total = s.sum()
    total.backward()
    return x, s, row, total


def cut():
    a = torch.tensor(2.0, requires_grad=True)
    with torch.no_grad():
        b = a * 3
    c = (a * a).detach()
    d = a.clone() * c
    d.backward()
    return a, b, c, d


PROGRAMS = [product_and_sine, written_through_a_view, cut]


def end_of(program):
    timeline = timeline_of(program)
    return moment_scene(timeline, last_moment(timeline), Options())


@pytest.mark.parametrize("program", PROGRAMS)
def test_golden_program(program):
    golden.check(f"{program.__name__}.dot", dot(end_of(program)))


def test_the_first_lesson_shows_both_gradients():
    drawn = end_of(product_and_sine)
    grads = {box.title: [row.text for row in box.rows if row.label == ".grad"] for box in drawn.boxes}
    assert grads["x leaf #1"] == ["8"]
    assert grads["y leaf #2"] == ["1.92"]
    assert [edge.label for edge in drawn.edges if edge.kind == "gradient" and edge.target == "n1"] == ["+= 4", "+= 4"]


def test_a_write_through_a_view_is_told_everywhere():
    drawn = end_of(written_through_a_view)
    told = {box.title.split(" = ")[-1].split()[0]: box for box in drawn.boxes}
    assert "inplace" in told["mul_"].states
    assert told["mul"].rows[0].label == "value v1"
    assert told["mul"].rows[0].text == "[2 12 18]"
    assert "view" in told["slice"].states


def test_cut_ways_have_no_gradient():
    drawn = end_of(cut)
    cuts = [edge.source for edge in drawn.edges if "cut" in edge.states]
    assert "n1" in cuts
    assert {row.text for box in drawn.boxes for row in box.rows if not row.label} == {
        "not tracked: no_grad",
        "not tracked: detach",
    }
