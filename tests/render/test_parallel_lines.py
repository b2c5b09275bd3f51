"""The lines between the same two boxes, as those of data and of its gradient, are clearly apart at any angle."""

import json
import re
from itertools import combinations, pairwise
from math import hypot

import pytest

import gviz
from gviz.render.graphviz import parallel_lines
from gviz.render.graphviz.figure_detail import picture_scene
from gviz.render.graphviz.figure_size import fit
from gviz.render.graphviz.module_frames import framed_graph
from gviz.render.graphviz.parallel_lines import APART, NEAR, Area, Line, moved_lines
from gviz.render.graphviz.process import draw
from gviz.render.graphviz.spline import Spline
from gviz.render.picture_request import ExportOptions, Part, last_moment
from gviz.trace import load


def between(tail, head, shift=(0, 0), **about):
    """A straight line with an arrow at its head, or at its tail if it `is_back`."""
    (x, y), (across, up) = ((spot[0] + shift[0], spot[1] + shift[1]) for spot in (tail, head))
    knots = [(x + (across - x) * part, y + (up - y) * part) for part in (0, 1 / 3, 2 / 3, 1)]
    part = 7 / hypot(across - x, up - y)
    arrow = (x + (across - x) * part, y + (up - y) * part), (across + (x - across) * part, up + (y - up) * part)
    if about.get("is_back"):
        return Line("a", "b", Spline([arrow[0], *knots[1:]], start=knots[0]), **about)
    return Line("a", "b", Spline([*knots[:3], arrow[1]], end=knots[3]), **about)


def points(line):
    return parallel_lines.trace(line)


def least(one, other):
    return min(
        parallel_lines._distance_from_piece(spot, *piece) for spot in points(one) for piece in pairwise(points(other))
    )


@pytest.mark.parametrize("across", [-400, -150, -60, 0, 60, 150, 400])
def test_lines_at_any_angle_are_clearly_apart_and_end_at_their_boxes(across):
    above, below = across / 4, across * 3 / 4
    boxes = {"a": Area(above - 50, 60, above + 50, 100), "b": Area(below - 50, -40, below + 50, 0)}
    data = between((above, 60), (below, 0), (-1, 0))
    gradient = between((above, 60), (below, 0), (1, 0), is_back=True)
    moved = moved_lines(boxes, [data, gradient])
    one, other = moved[0].spline, moved[1].spline
    assert least(one, other) == pytest.approx(APART, abs=1.5)
    assert one.end
    assert not one.start
    assert other.start
    assert not other.end
    for spot, key in ((one.end, "b"), (other.start, "a")):
        assert boxes[key].grown(0.5).contains(spot)
        assert not boxes[key].grown(-0.5).contains(spot)
    if across > 0:  # the gradient is at the left of the data, as seen from the box above
        assert other.start[0] > one.knots[0][0]


def test_lines_that_are_clearly_apart_stay_as_they_are():
    boxes = {"a": Area(-50, 60, 50, 100), "b": Area(-50, -40, 50, 0)}
    lines = [between((-5, 60), (-5, 0)), between((5, 60), (5, 0), is_back=True)]
    assert moved_lines(boxes, lines) == {}


THROUGH = between((-12, 200), (-12, 0), is_back=True)
AROUND = Line("a", "b", Spline([(15, 200), (60, 160), (60, 40), (15, 7)], end=(12, 0)), is_back=False)


@pytest.mark.parametrize("lines", [[AROUND, THROUGH], [THROUGH, AROUND]])
def test_a_line_follows_the_one_whose_way_crosses_no_box(lines):
    boxes = {"a": Area(-20, 200, 20, 240), "b": Area(-20, -40, 20, 0), "c": Area(-70, 80, -5, 120)}
    moved = moved_lines(boxes, lines)
    assert all(not boxes["c"].contains(spot) for line in moved.values() for spot in points(line.spline))
    assert least(moved[0].spline, moved[1].spline) > NEAR


@pytest.mark.parametrize("lines", [[AROUND, THROUGH], [THROUGH, AROUND]])
def test_a_line_follows_the_one_whose_way_crosses_no_line(lines):
    boxes = {"a": Area(-20, 200, 20, 240), "b": Area(-20, -40, 20, 0)}
    other = Line("e", "f", between((-60, 100), (20, 100)).spline)
    moved = moved_lines(boxes, [*lines, other])
    assert {*moved} == {0, 1}
    assert all(spot[0] > 20 for line in moved.values() for spot in points(line.spline) if 90 < spot[1] < 110)


def test_lines_stay_where_every_other_way_misses_a_box():
    boxes = {"a": Area(0, 0, 3, 3), "b": Area(100, 0, 103, 3)}
    lines = [between((3, 1.5), (100, 1.5)), between((3, 1.5), (100, 1.5), is_back=True)]
    assert moved_lines(boxes, lines) == {}


def test_a_label_moves_with_its_line():
    boxes = {"a": Area(0, 0, 50, 40), "b": Area(200, 0, 250, 40)}
    lines = [
        between((50, 20), (200, 20)),
        between((50, 20), (200, 20), label=(125.0, 30.0), has_text=True, is_back=True),
    ]
    label = moved_lines(boxes, lines)[1].label
    assert label == (pytest.approx(125, abs=8), pytest.approx(30 + APART / 2, abs=1))


def test_a_graph_too_large_to_be_read_keeps_its_lines(monkeypatch):
    monkeypatch.setattr(parallel_lines, "MOST_LINES", 1)
    boxes = {"a": Area(-50, 60, 50, 100), "b": Area(350, -40, 450, 0)}
    assert moved_lines(boxes, [between((0, 60), (400, 0)), between((1, 60), (401, 0), is_back=True)]) == {}


def test_all_formats_have_the_same_lines_and_the_size_of_boxes_with_two_borders():
    dot = """digraph { node [shape=box width=1.5]; a; b; c [peripheries=2]; a -> c [id=x]; a -> c [id=y dir=back]
    b -> c; {rank=same a b} a -> d -> c }"""
    layout = json.loads(draw(dot, "json"))
    svg = draw(dot, "svg").decode()
    x, y = (Spline.of(line["pos"]) for line in layout["edges"] if line.get("id") in ("x", "y"))
    assert least(x, y) > NEAR
    size = re.search(r'<svg width="(\d+)pt" height="(\d+)pt"', svg)
    _, _, wide, high = map(float, layout["bb"].split(","))
    assert int(size[1]) == pytest.approx(wide + 8, abs=1)
    assert int(size[2]) == pytest.approx(high + 8, abs=1)
    plain = json.loads(draw(dot.replace("a -> c [id=y dir=back]", ""), "json"))
    sizes = [
        {box["name"]: (box["width"], box["height"]) for box in one["objects"] if "pos" in box}
        for one in (layout, plain)
    ]
    assert sizes[0] == sizes[1]


# ----------------------------------------------------------------------------------------------------------------------
# Pictures of programs whose data flows diagonally.


def gan(torch):
    discriminator = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.LeakyReLU(0.2), torch.nn.Linear(16, 1))
    bce = torch.nn.functional.binary_cross_entropy_with_logits
    ones, zeros = torch.ones(8, 1), torch.zeros(8, 1)
    d_loss = bce(discriminator(torch.randn(8, 2)), ones) + bce(discriminator(torch.randn(8, 2)), zeros)
    d_loss.backward()


def variational(torch):
    nn = torch.nn
    encoder, mean, spread, decoder = nn.Linear(12, 16), nn.Linear(16, 2), nn.Linear(16, 2), nn.Linear(2, 12)
    x = torch.rand(8, 12)
    h = torch.relu(encoder(x))
    mu, logvar = mean(h), spread(h)
    z = mu + torch.exp(0.5 * logvar) * torch.randn(8, 2)
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum()
    loss = nn.functional.mse_loss(decoder(z), x) + kl
    loss.backward()


def embedded(torch):
    words, places, head = torch.nn.Embedding(50, 32), torch.nn.Embedding(16, 32), torch.nn.Linear(32, 50)
    x = words(torch.arange(16)) + places(torch.arange(16))
    head(x * x).square().mean().backward()


@pytest.mark.torch
@pytest.mark.parametrize("options", [{}, {"level": "nodes"}, {"direction": "LR"}, {"figure": "one-column"}], ids=str)
@pytest.mark.parametrize("program", [gan, variational, embedded])
def test_the_arrow_of_a_gradient_runs_beside_that_of_its_data(tmp_path, program, options):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    with gviz.record(tmp_path / "t.gviz"):
        program(torch)
    timeline = load(tmp_path / "t.gviz")
    part = Part(level=options.get("level", "auto"))
    words = {name: value for name, value in options.items() if name != "level"}
    wanted = ExportOptions(part=part, note=lambda _: None, **words)
    scene = picture_scene(timeline, last_moment(timeline), wanted)
    graph = fit(scene, wanted).graph if wanted.figure else framed_graph(scene, wanted)
    groups: dict[tuple[int, int], list[Spline]] = {}
    for line in json.loads(draw(graph.source, "json"))["edges"]:
        groups.setdefault((line["tail"], line["head"]), []).append(Spline.of(line["pos"]))
    pairs = [pair for lines in groups.values() for pair in combinations(lines, 2)]
    assert len(pairs) > 3
    assert all(least(one, other) > NEAR - 0.5 for one, other in pairs)
