"""A graph of gradients (`create_graph`) is one graph with the one it comes from, and is marked as made by a pass."""

import pytest
from driving import app_of
from recording import timeline_of

import gviz.engine as torch
from gviz.render.boxes.graph_structure import structure
from gviz.render.cells.box import ASCII_HEAVY, HEAVY, border
from gviz.render.cells.viewport import face
from gviz.render.scene import scene


def penalty():
    """x cubed, its slope, and the gradient of twice the slope."""
    x = torch.tensor(3.0, requires_grad=True)
    (slope,) = torch.autograd.grad(x * x * x, x, create_graph=True)
    (slope * 2).backward()


def faces(timeline):
    drawn = scene(structure(timeline, timeline.iterations[0]), timeline, timeline.at(len(timeline)))
    return {box.node: face(box) for box in drawn.boxes}


def test_what_follows_a_pass_that_made_a_graph_belongs_to_its_iteration():
    timeline = timeline_of(penalty)
    assert len(timeline.iterations) == 1
    assert {phase.kind for phase in timeline.phases} == {"forward", "backward"}


def test_steps_that_take_gradients_of_gradients_are_iterations():
    def train():
        w = torch.tensor(3.0, requires_grad=True)
        for _ in range(3):
            (slope,) = torch.autograd.grad(w * w * w, w, create_graph=True)
            (slope * 2).backward()
            with torch.no_grad():
                w -= 0.01 * w.grad
            w.grad = None

    assert len(timeline_of(train).iterations) == 3


def test_an_update_ends_an_iteration_although_its_pass_made_a_graph():
    def train():
        w = torch.tensor(3.0, requires_grad=True)
        for _ in range(3):
            (w * w).backward(create_graph=True)
            with torch.no_grad():
                w -= 0.01 * w.grad
            w.grad = None

    assert len(timeline_of(train).iterations) == 3


@pytest.mark.parametrize(("ascii", "kind"), [(False, HEAVY), (True, ASCII_HEAVY)])
def test_boxes_that_a_pass_made_differ_by_word_line_and_colour(ascii, kind):
    timeline = timeline_of(penalty)
    made = {node for node in timeline.nodes if timeline.info(node).created.during[0]}
    assert made
    for node, shown in faces(timeline).items():
        said = any("made in pass 1" in text for row in shown.rows for text, _ in row)
        assert said == (node in made and timeline.info(node).created.kind == "op")
        assert ("backward" in shown.states) == (node in made)
        if not shown.states & {"freed", "current"}:
            assert (border(shown, ascii=ascii) == kind) == (node in made)


async def test_the_canvas_shows_them():
    timeline = timeline_of(penalty)
    app = app_of(timeline, at=timeline.phases[-1].start)
    async with app.run_test(size=(120, 60)) as pilot:
        await pilot.press("0", "z")
        await pilot.pause()
        text = "\n".join("".join(part.text for part in row) for row in app.screen._compositor.render_strips())
        assert "made in pass 1" in text
        assert "┏ mul #" in text
