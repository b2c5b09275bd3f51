"""What each form says, read back by something that is not gviz."""

import json
import re
from io import BytesIO
from xml.etree import ElementTree

import numpy as np
import pytest
from recording import events_of, timeline_of
from render.logs import LOGS, Script, odd_ops, recurrent, two_shares
from render.pictures import groups

import gviz.engine as torch
from gviz import events as e
from gviz.errors import GvizError
from gviz.render.boxes.graph_options import Options
from gviz.render.boxes.tensor_pictures import DARKEST, NOT_A_NUMBER, grid, grid_shape, heat, histogram
from gviz.render.file_formats import exporter_for
from gviz.render.forms import animation, gif, mermaid, picture_json, svg
from gviz.render.forms.series import frames, pass_moments
from gviz.render.legend import painted
from gviz.render.picture_request import ExportOptions, Part, drawing, moment_scene
from gviz.render.theme import LIGHT
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from gviz.values.value import capture

SVG = "{http://www.w3.org/2000/svg}"


def scene_of(script, **options):
    timeline = script.timeline
    return moment_scene(timeline, len(timeline), Options(**options))


def export(module, script, n=None, **options):
    timeline = script.timeline
    return module.render(timeline, len(timeline) if n is None else n, ExportOptions(**options))


@pytest.mark.parametrize("log", LOGS)
def test_json_says_what_the_scene_says_and_its_numbers_exactly(log):
    script = LOGS[log]()
    drawn, found = scene_of(script, marks=True), json.loads(export(picture_json, script))
    assert found["schema"] == 1
    assert [(node["id"], node["title"], node["status"]) for node in found["nodes"]] == [
        (box.key, box.title, box.status) for box in drawn.boxes
    ]
    assert [(edge["source"], edge["target"], edge["kind"]) for edge in found["edges"]] == [
        (edge.source, edge.target, edge.kind) for edge in drawn.edges
    ]


def test_json_holds_the_elements_and_counts_of_gradients():
    found = {node["id"]: node for node in json.loads(export(picture_json, two_shares()))["nodes"]}
    (output,) = found["n1"]["outputs"]
    assert output["value"]["elements"] == 3
    assert (output["incoming"]["elements"], output["arrived"], output["expected"]) == (-14, 2, 2)
    broken = {node["id"]: node for node in json.loads(export(picture_json, LOGS["broken"]()))["nodes"]}
    assert broken["n2"]["outputs"][0]["value"]["elements"][:3] == ["nan", pytest.approx(0.6931), "-inf"]
    assert broken["n2"]["outputs"][0]["value"]["statistics"]["nan"] == 1


ARROW = re.compile(r"^  (b\d+) (-->|==>|-\.->)(?:\|\"(.*?)\"\|)? (b\d+)$", re.M)


@pytest.mark.parametrize("log", LOGS)
def test_mermaid_has_every_box_and_every_line(log):
    script = LOGS[log]()
    drawn, text = scene_of(script), export(mermaid, script)
    boxes = re.findall(r'^  (b\d+)[\[({>]+/?"(.*)"/?[\])}]+:::\w+$', text, re.M)
    assert len(boxes) == len(drawn.boxes)
    keys = {name: box.key for (name, _), box in zip(boxes, drawn.boxes, strict=True)}
    lines = [(keys[source], keys[target]) for source, _, _, target in ARROW.findall(text)]
    assert lines == [(x.source, x.target) for x in drawn.edges if x.kind != "gradient" or "flowed" in x.states]
    for (_, label), box in zip(boxes, drawn.boxes, strict=True):
        shown = re.sub(r"#(\d+);", lambda code: chr(int(code[1])), label)
        assert shown.startswith(box.title)


def test_mermaid_shows_a_hostile_name_as_text():
    text = export(mermaid, two_shares('"]<script>alert(1)</script>%%{init}'))
    assert "<script" not in text
    assert "{init" not in text


def test_a_gif_has_a_picture_for_each_moment_all_of_one_size():
    image = pytest.importorskip("PIL.Image")
    script = two_shares()
    moving = image.open(BytesIO(export(gif, script)))
    assert moving.n_frames == len(pass_moments(script.timeline, len(script.timeline)))
    assert max(moving.size) <= 1500


def test_a_box_that_fails_has_the_room_in_a_series_that_it_has_alone():
    timeline = failing()
    n = len(timeline)
    alone = svg.render(timeline, n, ExportOptions())
    (*_, last) = frames(timeline, pass_moments(timeline, n), ExportOptions(), "svg")
    assert eight_corners(last.decode()) == pytest.approx(eight_corners(alone), abs=2)


def eight_corners(picture):
    """How wide the octagon of a picture is."""
    outlines = (line.split() for line in re.findall(r'points="([^"]*)"', picture))
    (across,) = {
        max(xs) - min(xs) for line in outlines if len(line) == 9 for xs in [[float(at.split(",")[0]) for at in line]]
    }
    return across


def failing():
    def program():
        with pytest.raises(ValueError, match="no"):
            (Refusing.apply(torch.tensor(1.0, requires_grad=True)) * 2).backward()

    return timeline_of(program)


def test_the_legend_of_a_gif_is_a_small_part_of_it():
    image = pytest.importorskip("PIL.Image")

    def high(**options):
        return image.open(BytesIO(export(gif, recurrent(5), **options))).height

    assert high(legend=False) > 0.8 * high()


@pytest.mark.parametrize(("steps", "lines"), [(6, 1), (0, 2)])
def test_a_series_has_the_line_of_the_program_next_to_its_title_if_there_is_room(steps, lines):
    def chain():
        x = torch.tensor(2.0, requires_grad=True)
        for _ in range(steps):
            x = x * 3

    timeline = timeline_of(chain)
    options = ExportOptions(legend=False, direction="LR")
    (picture,) = frames(timeline, (len(timeline),), options, "svg")
    texts = [(one.get("y"), one.text) for one in ElementTree.fromstring(picture).iter(f"{SVG}text")]
    title, code = ([y for y, text in texts if part in text] for part in ("event ", "test_forms.py:"))
    assert len(title) == 1
    assert code
    assert len({*code, *title}) == lines
    assert sum("test_forms.py:" in text for _, text in texts) == lines  # next to each other, the place is there once


def test_the_last_picture_of_a_gif_has_each_of_its_colours():
    def program():
        y = torch.tensor(2.0, requires_grad=True)
        for _ in range(5):
            y = y.sin()
        with pytest.raises(ValueError, match="no"):
            (Refusing.apply(torch.tensor(1.0, requires_grad=True)) + y).backward()

    timeline = timeline_of(program)
    moving = pytest.importorskip("PIL.Image").open(BytesIO(gif.render(timeline, len(timeline), ExportOptions())))
    assert moving.n_frames > gif.SAMPLES
    moving.seek(moving.n_frames - 1)
    found = {colour for _, colour in moving.convert("RGB").getcolors(1 << 24)}
    drawn = {painted(box) for box in moment_scene(timeline, len(timeline), Options()).boxes}
    assert {"leaf", "op", "error"} <= drawn
    fills = {name: LIGHT.paints[name].fill for name in drawn}
    assert {name for name, fill in fills.items() if tuple(bytes.fromhex(fill[1:])) not in found} == set()


class Refusing(torch.autograd.Function):
    """Fails when gradients come back."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        raise ValueError("no")


def test_a_moving_svg_holds_every_contribution():
    root = ElementTree.fromstring(export(animation, two_shares()))
    said = {"".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"∂L/∂a += 3", "1 += 3", "-6 += -8", "∂L/∂w = 12"} <= said


def test_the_moments_of_a_moving_picture_can_be_chosen_and_are_never_too_many():
    script = two_shares()
    assert export(animation, script, moments=(3, 4)).count("event 3/29") == 1
    long = Script()
    node = long.leaf("x", 1.0)
    for _ in range(400):
        node = long.op("sin", (node,), 0.5)
    with pytest.raises(GvizError, match="too many for one moving picture") as caught:
        export(animation, long)
    assert caught.value.exit_code == 2
    assert "one pass (backward)" in caught.value.hint


def test_the_longest_suffix_decides():
    assert exporter_for("a.anim.svg").name == "animation"
    assert exporter_for("anim.svg").name == "svg"


def test_full_labels_say_how_a_gradient_came_to_be():
    boxes = {box.key: box for box in scene_of(two_shares(), density="full").boxes}
    rows = [f"{row.label} {row.text}" for row in boxes["n4"].rows]
    assert "to x g * a = 1 * -6 = -6" in rows
    assert "saved a (freed)" in rows
    assert "type () f32  4 B" in rows
    assert any(row.endswith("demo.py:4") for row in rows)


def test_least_labels_are_names():
    assert [(box.title, box.rows) for box in scene_of(two_shares(), density="min").boxes][:3] == [
        ("x", ()),
        ("w", ()),
        ("a = mul", ()),
    ]


@pytest.mark.parametrize("density", ["short", "full"])
@pytest.mark.parametrize("tensors", ["line", "grid", "heat", "histogram"])
def test_a_box_is_as_high_at_any_moment(density, tensors):
    script = odd_ops()
    timeline = script.timeline
    for n in range(1, len(timeline) + 1):
        for box in moment_scene(timeline, n, Options(density=density, tensors=tensors)).boxes:
            assert 1 + sum(row.lines for row in box.rows) <= box.height


def test_a_small_matrix_is_a_grid_of_its_numbers():
    assert grid_shape((2, 3)) == (2, 3)
    assert grid_shape((3,)) is grid_shape((7, 3)) is grid_shape((2, 2, 2)) is None
    assert grid(capture(np.arange(6.0).reshape(2, 3)), (2, 3)) == (("0", "1", "2"), ("3", "4", "5"))
    assert grid(None, (1, 2)) == (("·", "·"),)


def test_thumbnails_show_where_numbers_are_large_and_how_they_spread():
    shades = heat(np.array([[1.0, -1.0], [0.5, np.nan]]))
    assert shades == ((DARKEST, -DARKEST), (DARKEST // 2, NOT_A_NUMBER))
    large = heat(np.repeat([0.0, 8.0], 50).reshape(2, 50))
    assert [len(row) for row in large] == [16, 16]
    assert {*large[0]} == {0}
    assert {*large[1]} == {DARKEST}
    bars, text = histogram(np.array([0.0] * 8 + [1.0] * 4))
    first, *_, last = zip(*bars, strict=True)
    assert first == (DARKEST,) * 8
    assert last == (0,) * 4 + (DARKEST,) * 4
    assert (text[0], text[-1]) == ("█", "▄")


@pytest.mark.parametrize("tensors", ["heat", "histogram"])
def test_what_was_not_stored_has_no_thumbnail_and_says_so(tensors):
    timeline = timeline_of(stored_and_not)
    drawn = moment_scene(timeline, len(timeline), Options(tensors=tensors))
    small, large = ([row.text for row in box.rows if row.style == "muted"] for box in drawn.boxes[:2])
    assert "elements not stored" not in small
    assert "elements not stored" in large
    assert any(row.shades for row in drawn.boxes[0].rows)
    assert "elements not stored" in exporter_for("x.svg").render(
        timeline, len(timeline), ExportOptions(drawing=Options(tensors=tensors))
    )


def stored_and_not():
    small = torch.ones(2, 8, requires_grad=True)
    large = torch.ones(64, 64, requires_grad=True)
    return small.sum() + large.sum()


def test_only_what_a_node_was_made_of_is_drawn():
    script = two_shares()
    drawn = groups(export(svg, script, part=Part(node=3, ancestors=True)), "node")
    assert {name.rpartition("-")[2] for name in drawn} == {"n1", "n2", "n3"}
    with pytest.raises(GvizError, match="node #9 is not in the graph"):
        export(svg, script, part=Part(node=9, radius=1))
    with pytest.raises(GvizError, match="no module fits"):
        export(svg, script, part=Part(closed=("enc*",)))


def test_a_model_may_be_called_by_its_variable_where_capital_letters_are_the_difference(capfd):
    script = nested(4)
    parts = [Part(only=("Net.first",)), Part(only=("net.FIRST",)), Part()]
    right, other, whole = [groups(export(svg, script, part=part), "node").keys() for part in parts]
    assert right == other
    assert len(right) < len(whole)
    export(svg, script, part=Part(only=("net.FIRST",)))
    assert capfd.readouterr().err.count("no module is called net.FIRST: Net.first is drawn for it") == 1


def nested(calls=600):
    """A model of two blocks, each of so many operations."""
    script = Script()
    node = script.leaf("x", 1.0)
    for scope, name in ((1, "Net"), (2, "Net.first"), (3, "Net.second")):
        if name != "Net":
            script.say(e.ScopeEntered(scope, 1, name, "Block"))
        else:
            script.say(e.ScopeEntered(scope, 0, name, "Net"))
            continue
        for _ in range(calls):
            node = script.op("sin", (node,), 0.5)
            script.events[-1] = e.NodeCreated(
                *(getattr(script.events[-1], field) for field in e.NodeCreated.__struct_fields__[:9]), scope=scope
            )
        script.say(e.ScopeLeft(scope))
    return script


def test_a_large_graph_closes_its_modules_and_says_so():
    timeline, notes = nested().timeline, []
    options = ExportOptions(note=notes.append)
    drawn = moment_scene(timeline, len(timeline), drawing(timeline, len(timeline), options))
    assert {box.title for box in drawn.boxes} == {"x leaf #1", "[+] first Block", "[+] second Block"}
    assert notes == ["1,201 nodes: modules collapsed, 3 boxes left; --depth expands them"]
    opened = drawing(timeline, len(timeline), ExportOptions(part=Part(depth=9), note=notes.append))
    assert len(moment_scene(timeline, len(timeline), opened).boxes) == 1201


def test_of_a_large_graph_what_autograd_does_not_follow_is_left_out(monkeypatch):
    def program():
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        batch = torch.arange(6.0)[2:4]
        loss = (w * batch).sum()
        loss.backward()
        w.grad.mul_(0.5 / w.grad.norm())

    def titles(**part):
        options = ExportOptions(part=Part(**part), note=notes.append)
        scene = moment_scene(timeline, len(timeline), drawing(timeline, len(timeline), options))
        return {box.title for box in scene.boxes}

    timeline, notes = timeline_of(program), []
    every = titles()
    monkeypatch.setattr("gviz.render.picture_request.FEW_NODES", 3)
    passed = titles()
    assert passed == {"w leaf #1", "const #2", "batch = slice #3", "mul #4", "loss = sum #5"}
    left_out = f"{len(every) - 5} of {len(every)} nodes are left out, as they have no gradient"
    assert notes == [f"{left_out}; --node draws what is near one"]
    monkeypatch.setattr("gviz.render.boxes.collapse_choice.FEW_BOXES", 3)
    assert titles() == passed
    assert notes[-1] == "5 boxes, and no module to collapse; --node draws what is near one"
    assert titles(depth=1) == passed
    assert any("norm" in title for title in titles(node=timeline.nodes[-1], radius=3))


def test_of_a_large_graph_a_cut_and_the_moment_itself_are_drawn(monkeypatch):
    def program():
        e, w = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0], requires_grad=True)
        h = (e * e).detach() * 2
        torch.zeros(2).log()
        (w * h).sum().backward()

    monkeypatch.setattr("gviz.render.picture_request.FEW_NODES", 3)
    timeline = Timeline(MemoryLog(list(events_of(program))))
    drawn = {}
    for n in (len(timeline), timeline.error_index.first_bad()):
        options = ExportOptions(note=lambda _: None)
        scene = moment_scene(timeline, n, drawing(timeline, n, options))
        drawn[n] = {timeline.info(box.node).op.name for box in scene.boxes}
        assert drawn[n] >= {"mul", "detach", "sum"}
        assert any("n1" in (edge.source, edge.target) for edge in scene.edges)
    assert "log" in drawn[timeline.error_index.first_bad()]


def test_of_a_large_graph_that_autograd_does_not_follow_all_is_drawn(monkeypatch):
    monkeypatch.setattr("gviz.render.picture_request.FEW_NODES", 3)
    timeline = timeline_of(lambda: torch.ones(2).exp().log().sqrt().sum())
    drawn = moment_scene(timeline, len(timeline), drawing(timeline, len(timeline), ExportOptions(note=lambda _: None)))
    assert len(drawn.boxes) == len(timeline.nodes) == 5


def test_open_modules_have_frames_around_what_is_theirs():
    """The data are not."""
    timeline = nested(2).timeline
    picture = svg.render(timeline, len(timeline), ExportOptions())
    frames = groups(picture, "cluster")
    assert {name.rpartition("-")[2] for name in frames} == {"m1", "m2", "m3"}
    drawn = moment_scene(timeline, len(timeline), drawing(timeline, len(timeline), ExportOptions()))
    assert [box.title for box in drawn.boxes if not box.enclosing_modules] == ["x leaf #1"]


def test_a_buffer_stands_in_its_module_and_data_do_not():
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)
            self.scale = torch.tensor([2.0, 3.0])

        def forward(self, x):
            return self.linear(x) * self.scale * torch.tensor([1.0, 2.0])

    def program():
        model = Scaled()
        data = torch.ones(2, 2)
        loss = model(data).sum()
        loss.backward()

    timeline = Timeline(MemoryLog(list(events_of(program))))
    drawn = moment_scene(timeline, len(timeline), drawing(timeline, len(timeline), ExportOptions()))
    outside = {timeline.info(box.node).name for box in drawn.boxes if not box.enclosing_modules}
    assert outside == {"data", "loss"}
    assert {timeline.info(box.node).name for box in drawn.boxes} > {"self.scale", "linear.weight"}


def test_each_chip_of_a_closed_module_is_one():
    timeline = recurrent(20).timeline
    assert sum(box.role == "chip" for box in moment_scene(timeline, len(timeline), Options()).boxes) == 19


def test_a_rule_has_the_numbers_of_its_arguments():
    def program():
        x = torch.tensor(-1.5, requires_grad=True)
        x.pow(2).backward()

    timeline = timeline_of(program)
    drawn = moment_scene(timeline, len(timeline), Options(density="full"))
    rows = [f"{row.label} {row.text}" for box in drawn.boxes for row in box.rows]
    assert any("(-1.5)**(2 - 1) = -3" in row for row in rows)


def test_a_small_tensor_its_gradient_and_its_transpose_show_the_same_numbers():
    def program():
        w = torch.tensor([[0.12345, -0.23456], [0.00678, 1.98765], [0.5, -0.25]], requires_grad=True)
        (w.T * 1.0).sum().backward()

    timeline = timeline_of(program)
    drawn = moment_scene(timeline, len(timeline), Options())
    grids = {(box.key, row.label): row.grid for box in drawn.boxes for row in box.rows if row.grid}
    (leaf,) = (grid for (_, label), grid in grids.items() if label == "value" and len(grid) == 3)
    assert leaf == (("0.123", "-0.235"), ("0.00678", "1.99"), ("0.5", "-0.25"))
    assert tuple(zip(*leaf, strict=True)) in grids.values()
    assert {label for (key, label), grid in grids.items() if len(grid) == 3} == {"value", "incoming", ".grad"}
