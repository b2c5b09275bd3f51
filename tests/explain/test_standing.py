"""What `requires_grad_()` makes a leaf is one in every view: name, lines, `.grad`."""

from recording import timeline_of
from tui.test_drawing import panel, tape_rows

import gviz.engine as torch
from gviz.render.boxes.graph_structure import Options, structure
from gviz.render.scene import caption, scene


def made_a_leaf():
    x = torch.tensor(3.0)
    x.requires_grad_()
    y = x * 2
    y.backward()
    return x, y


def cut_off_and_made_a_leaf():
    w = torch.tensor(3.0, requires_grad=True)
    h = (w * 2).detach()
    h.requires_grad_()
    y = h * 5
    y.backward()
    return w, h, y


def made_a_leaf_too_late():
    x, w = torch.tensor(3.0), torch.tensor(2.0, requires_grad=True)
    y = x * w
    x.requires_grad_()
    y.backward()
    return x, y


def drawn(timeline, n=None, **options):
    shape = structure(timeline, timeline.iterations[0], Options(**options))
    return scene(shape, timeline, timeline.at(len(timeline) if n is None else n), tooltips=True)


def test_a_constant_that_is_made_to_require_a_gradient_is_drawn_as_the_leaf_it_is():
    timeline = timeline_of(made_a_leaf)
    picture = drawn(timeline)
    x = picture.boxes[0]
    assert (x.role, x.title, x.tooltip.splitlines()[0]) == ("leaf", "x leaf #1", "x leaf #1")
    assert [f"{row.label} {row.text}" for row in x.rows] == ["value 3", "incoming 2", ".grad 2"]
    assert {edge.kind: edge.label for edge in picture.edges if "n1" in (edge.source, edge.target)} == {
        "forward": "",
        "gradient": "+= 2",
    }
    assert "x leaf #1" in caption(timeline, timeline.at(1))
    chip = next(box for box in drawn(timeline_of(used_twice), split_above=0).boxes if box.role == "chip")
    assert [row.label for row in chip.rows] == ["adds", "total"]


def used_twice():
    x = torch.tensor(3.0).requires_grad_()
    y = x * x
    y.backward()
    return x, y


def test_panels_show_the_grad_of_such_a_leaf():
    timeline = timeline_of(made_a_leaf)
    end = len(timeline)
    said = panel(timeline, end, 1, 40)
    assert "kind   leaf, requires grad" in said
    assert ".grad   2" in said
    assert "kind   constant, no grad" in panel(timeline, 1, 1, 40)
    assert "leaf" in tape_rows(timeline, end)[0]


def test_a_result_that_was_cut_off_and_made_a_leaf_has_a_grad():
    timeline = timeline_of(cut_off_and_made_a_leaf)
    picture = drawn(timeline)
    h = next(box for box in picture.boxes if box.title == "h leaf #4")
    assert [f"{row.label} {row.text}" for row in h.rows] == ["value 6", "incoming 5", ".grad 5"]
    into, out = (
        [edge for edge in picture.edges if h.key == end(edge)] for end in (lambda e: e.target, lambda e: e.source)
    )
    assert [edge.states for edge in into if edge.kind != "gradient"] == [("cut",)]
    assert [edge.states for edge in out if edge.kind == "forward"] == [()]
    assert ".grad   5" in panel(timeline, len(timeline), h.node, 40)


def test_what_was_used_before_it_became_a_leaf_gets_no_gradient_over_that_line():
    picture = drawn(timeline_of(made_a_leaf_too_late))
    assert [edge.states for edge in picture.edges if edge.source == "n1" and edge.kind == "forward"] == [("cut",)]
