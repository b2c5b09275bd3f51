"""How a picture is shaped: what is straight, and which frames are worth their room."""

import json
from dataclasses import replace

from recording import timeline_of

import gviz.engine as torch
from gviz.render.boxes.graph_options import Options
from gviz.render.boxes.graph_structure import structure
from gviz.render.graphviz.dot import Manner, digraph
from gviz.render.graphviz.module_frames import settled
from gviz.render.graphviz.process import draw
from gviz.render.picture_request import ExportOptions
from gviz.render.scene import scene


def centres(scene):
    laid_out = json.loads(draw(digraph(scene, Manner(direction="TB")).source, "json"))
    return {box["name"]: tuple(map(float, box["pos"].split(","))) for box in laid_out["objects"] if "pos" in box}


def unrolled(steps):
    """A loop through a layer, of which each call has a frame of its own."""

    def program():
        layer = torch.nn.Linear(2, 1)
        h = torch.zeros(1, 1)
        for _ in range(steps):
            h = layer(torch.cat([torch.ones(1, 1), h], dim=1))
        h.sum().backward()

    timeline = timeline_of(program)
    shape = structure(timeline, timeline.iterations[0], Options(clusters=True))
    return scene(shape, timeline, timeline.at(len(timeline)))


def test_a_loop_is_drawn_straight():
    drawn = replace(unrolled(8), boxes=tuple(replace(box, enclosing_modules=()) for box in unrolled(8).boxes))
    found = centres(drawn)
    chain = [found[box.key][0] for box in drawn.boxes if box.op in ("cat", "linear")][1:]
    assert len(chain) > 10
    assert max(chain) - min(chain) < 10


def test_frames_that_make_a_staircase_are_left_out():
    options = ExportOptions()
    framed = unrolled(2)
    assert settled(framed, options, "gviz") == framed
    stairs = unrolled(8)
    assert any(box.enclosing_modules for box in stairs.boxes)
    assert not any(box.enclosing_modules for box in settled(stairs, options, "gviz").boxes)


def test_what_a_parameter_was_made_from_is_no_part_of_the_picture():
    def program():
        plain = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
        computed = torch.nn.Parameter(torch.zeros(2) + 0.5)
        data = torch.tensor([3.0, 4.0])
        (plain * data + computed).sum().backward()

    timeline = timeline_of(program)
    kinds = {
        content: [
            timeline.info(place.node).created.kind
            for place in structure(timeline, timeline.iterations[0], Options(content=content)).places
        ]
        for content in ("program", "all")
    }
    assert kinds["program"] == ["parameter", "parameter", "constant", "op", "op", "op"]
    assert len(kinds["all"]) == 10
