"""Skip connections: their lines touch no box that they pass, and stay in the frame of both ends."""

import json

import pytest
from recording import timeline_of

import gviz.engine as builtin
from gviz.render.figure import FIGURE_NAMES, as_figure
from gviz.render.graphviz.coordinates import INCH
from gviz.render.graphviz.direction_and_spacing import ends, skipping
from gviz.render.graphviz.dot import digraph
from gviz.render.graphviz.figure_detail import picture_scene
from gviz.render.graphviz.parallel_lines import LANE
from gviz.render.graphviz.process import draw
from gviz.render.picture_request import ExportOptions, last_moment

PIECES = 24
"""The points of one piece of a curve that are looked at."""
TOUCH = 1.0
"""Points between a line and a box, or the frame that it must not leave."""


def residual_block(torch):
    """The block of a transformer, in operations."""
    w = torch.ones(4, 4, requires_grad=True)
    x = torch.ones(2, 4)
    x = x + torch.tanh(x @ w)
    out = x + (torch.relu((x @ w) * 0.5) @ w)
    loss = (out**2).mean()
    loss.backward()
    return loss


def u_net(torch):
    """Two connections over one another, with long names in between."""
    first, second, third = (torch.ones(4, 4, requires_grad=True) for _ in range(3))
    a = torch.relu(torch.ones(2, 4) @ first)
    b = torch.relu((a * 0.5) @ second)
    a_name_longer_than_the_others = torch.tanh((b * 0.25) @ third)
    c = torch.sigmoid(a_name_longer_than_the_others) * b
    another_long_name = torch.tanh(c * 0.5)
    loss = (another_long_name * a).sum()
    loss.backward()
    return loss


def with_modules(torch):
    """Frames: four blocks of a transformer with a stem and a head."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(8), nn.LayerNorm(8)
            self.mix = nn.Linear(8, 8)
            self.mlp = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

        def forward(self, x):
            x = x + self.mix(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    net = nn.Sequential(nn.Linear(8, 8), *(Block() for _ in range(4)), nn.Linear(8, 2))
    loss = net(torch.ones(3, 8)).pow(2).mean()
    loss.backward()
    return loss


def one_block(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(16), nn.LayerNorm(16)
            self.attn = nn.MultiheadAttention(16, 2, batch_first=True)
            self.mlp = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16))

        def forward(self, x):
            h = self.ln1(x)
            x = x + self.attn(h, h, h, need_weights=False)[0]
            out = x + self.mlp(self.ln2(x))
            return out

    loss = Block()(torch.randn(2, 6, 16)).pow(2).mean()
    loss.backward()
    return loss


def curve(pos):
    """Points of a Graphviz spline and of its arrows."""
    tips = [point(word[2:]) for word in pos.split() if word[0] in "se"]
    knots = [point(word) for word in pos.split() if word[0] not in "se"]
    for start in range(0, len(knots) - 3, 3):
        a, b, c, d = knots[start : start + 4]
        for step in range(PIECES + 1):
            t = step / PIECES
            weights = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
            yield tuple(sum(w * knot[axis] for w, knot in zip(weights, (a, b, c, d), strict=True)) for axis in (0, 1))
    yield from tips


def point(text):
    x, y = map(float, text.split(","))
    return x, y


def outside(area, spot):
    """How far a point is outside an area; negative inside."""
    left, low, right, high = area
    return max(left - spot[0], spot[0] - right, low - spot[1], spot[1] - high)


def faults(scene):
    """The lines that touch a box which is not at their end, and those that leave a frame in which both ends are."""
    drawing = json.loads(draw(digraph(scene).source, "json"))
    boxes, frames, inside = {}, {}, {}
    for each in drawing["objects"]:
        if "pos" in each:
            x, y = point(each["pos"])
            wide, high = (float(each[side]) * INCH / 2 for side in ("width", "height"))
            boxes[each["_gvid"]] = x - wide, y - high, x + wide, y + high
        elif each["name"].startswith("cluster_"):
            frames[each["name"]] = [*map(float, each["bb"].split(","))]
            inside[each["name"]] = {*each["nodes"]}
    for line in drawing["edges"]:
        if line.get("style") == "invis":
            continue
        own, spots = {line["tail"], line["head"]}, [*curve(line["pos"])]
        for key, area in boxes.items():
            if key not in own and min(outside(area, spot) for spot in spots) < TOUCH:
                yield line["id"], drawing["objects"][key]["name"]
        for name, area in frames.items():
            if own <= inside[name] and max(outside(area, spot) for spot in spots) > -TOUCH:
                yield line["id"], name


def check(timeline, figure):
    options = ExportOptions(figure=figure, note=lambda _: None)
    scene = picture_scene(timeline, last_moment(timeline), options)
    assert not [*faults(as_figure(scene) if figure else scene)]
    return scene


@pytest.mark.parametrize("figure", [None, *FIGURE_NAMES])
@pytest.mark.parametrize("program", [residual_block, u_net])
def test_a_skip_connection_touches_no_box_that_it_passes(program, figure):
    check(timeline_of(lambda: program(builtin)), figure)


@pytest.mark.torch
@pytest.mark.parametrize("figure", [None, *FIGURE_NAMES])
@pytest.mark.parametrize("program", [residual_block, u_net, one_block, with_modules])
def test_a_skip_connection_touches_no_box_and_stays_in_its_frame(tmp_path, program, figure):
    torch = pytest.importorskip("torch")
    import gviz
    from gviz.trace import load

    torch.manual_seed(0)
    with gviz.record(tmp_path / "t.gviz"):
        program(torch)
    check(load(tmp_path / "t.gviz"), figure)


def test_only_lines_over_several_levels_with_gradients_have_a_lane_of_their_own():
    timeline = timeline_of(lambda: residual_block(builtin))
    scene = picture_scene(timeline, last_moment(timeline), ExportOptions(figure="16:9", note=lambda _: None))
    titles = {box.key: box.title for box in scene.boxes}
    lanes = [[titles[key] for key in ends(scene.edges[number])] for number in skipping(scene)]
    assert [pair for pair in lanes if pair[0] != "w"] == [["x = add", "out = add"]]
    assert digraph(scene).source.count(LANE[1:-1]) == len(lanes)
