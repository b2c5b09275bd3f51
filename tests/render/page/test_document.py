"""The file of a page: its size, what it holds and leaves out, and that it stands for itself."""

import json
import re
from base64 import b64decode, b64encode
from dataclasses import replace
from hashlib import sha256
from html import unescape
from importlib import import_module
from zlib import decompress

import pytest
from click.testing import CliRunner
from recording import timeline_of
from render.logs import Script, two_shares
from stories import iterations

import gviz
import gviz.engine as torch
from gviz.cli.commands.export import command
from gviz.errors import GvizError
from gviz.render.boxes.graph_options import Options
from gviz.render.boxes.graph_structure import structure
from gviz.render.file_formats import exporter_for
from gviz.render.page import geometry
from gviz.render.picture_request import ExportOptions, Part, moment_scene

CONTENTS = import_module("gviz.render.page.page_data")  # its function has the same name in the package


def page(timeline, n=None, notes=None):
    options = ExportOptions(note=(notes if notes is not None else []).append)
    return exporter_for("page.html").render(timeline, len(timeline) if n is None else n, options)


def held(text):
    """The data of a page."""
    packed = re.search(r'id="data">([^<]*)</script>', text).group(1)
    return json.loads(decompress(b64decode(packed)))


def layers(count, equal=False):
    """About three nodes and eleven events a layer, with tensors whose numbers nobody could guess.

    Unless they are `equal`, the functions are a sequence in which nothing comes three times in succession (Thue-Morse).
    """

    def program():
        torch.manual_seed(0)
        x = torch.randn(8, 16)
        while count * 3 > len(kept):
            w, b = torch.randn(16, 16, requires_grad=True), torch.zeros(16, requires_grad=True)
            activation = torch.sin if (len(kept) // 3).bit_count() % 2 and not equal else torch.tanh
            x = activation(x @ w + b)
            kept.extend((w, b, x))
        (x * x).mean().backward()

    kept = []
    return timeline_of(program)


def test_three_hundred_nodes_and_a_thousand_steps_are_150_kilobytes_at_most():
    timeline = layers(60)
    assert len(timeline.nodes) >= 300
    assert len(timeline) >= 1000
    assert len(page(timeline).encode()) <= 150_000


def test_equal_layers_are_one_box_that_opens_in_200_kilobytes_at_most():
    text = page(layers(60, equal=True))
    views = held(text)["graphs"][0]["views"]
    assert len(views) > 1
    assert len(text.encode()) <= 200_000


def test_only_the_style_and_the_script_it_was_made_with_are_obeyed():
    text = page(two_shares().timeline)
    policy = unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1))
    for element, directive in (("style", "style-src"), ('script type="module"', "script-src")):
        body = re.search(f"<{element}>(.*?)</{element.split()[0]}>", text, re.DOTALL).group(1)
        digest = b64encode(sha256(body.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert not re.search(r"(?:src|href)=[\"']?(?:https?:|//)", text)


def test_the_same_trace_is_the_same_page():
    assert page(two_shares().timeline) == page(two_shares().timeline)


def squares(count):
    """A chain of 2x2 matrices, which a small page shows as grids."""

    def program():
        x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        for _ in range(count):
            x = x * x
            kept.append(x)
        x.sum().backward()

    kept = []
    return timeline_of(program)


@pytest.mark.parametrize(("count", "tensors"), [(3, "grid"), (12, "line")])
def test_many_boxes_have_their_tensors_in_one_line_so_that_all_are_seen_at_once(count, tensors):
    timeline = squares(count)
    options = ExportOptions(drawing=Options(tensors=tensors, clusters=True))
    asked = exporter_for("page.html").render(timeline, len(timeline), options)
    [graph], [wanted] = (held(text)["graphs"] for text in (page(timeline), asked))
    assert graph["views"][0]["size"] == wanted["views"][0]["size"]


def test_a_page_holds_all_iterations_that_fit():
    data = held(page(iterations(3)))
    assert [graph["nr"] for graph in data["graphs"]] == [1, 2, 3]
    assert data["notes"] == []


def test_what_does_not_fit_is_left_out_around_the_moment_and_said(monkeypatch):
    timeline = iterations(5)
    size = len(timeline.nodes.of(timeline.iterations[2]))
    monkeypatch.setattr(CONTENTS, "NODES", 3 * size)
    notes = []
    data = held(page(timeline, timeline.iterations[2].start + 1, notes))
    assert [graph["nr"] for graph in data["graphs"]] == [2, 3, 4]
    low, high = timeline.iterations[1].start, timeline.iterations[3].end
    assert (data["low"], data["high"]) == (low, high)
    said = f"This page holds iterations 2 to 4 of 5, events {low} to {high} of {len(timeline)}"
    assert notes == data["notes"] == [f"{said}; exported at another moment, a page holds the rest."]


def test_a_page_of_a_stretch_holds_that_and_nothing_else():
    timeline = iterations(5)
    third = timeline.iterations[2]
    options = ExportOptions(moments=tuple(range(third.start + 2, third.end)))
    data = held(exporter_for("page.html").render(timeline, third.start + 2, options))
    assert [graph["nr"] for graph in data["graphs"]] == [3]
    assert (data["low"], data["high"], data["start"]) == (third.start + 2, third.end - 1, third.start + 2)
    said = f"This page holds iteration 3 of 5, events {third.start + 2} to {third.end - 1} of {len(timeline)}."
    assert data["notes"] == [said]
    across = ExportOptions(moments=tuple(range(third.start, third.end + 2)))
    data = held(exporter_for("page.html").render(timeline, third.end, across))
    assert [(graph["nr"], graph["high"]) for graph in data["graphs"]] == [(3, third.end), (4, third.end + 1)]


def test_a_page_of_the_moment_before_everything_counts_from_it():
    data = held(exporter_for("page.html").render(timeline := iterations(2), 0, ExportOptions(moments=(0,))))
    assert data["notes"] == [f"This page holds iteration 1 of 2, events 0 to 0 of {len(timeline)}."]


def test_each_graph_says_what_of_it_is_left_out(monkeypatch):
    monkeypatch.setattr("gviz.render.picture_request.FEW_NODES", 1)

    def program():
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        for at in range(3):
            batch = torch.arange(6.0) * at
            (w * batch[at : at + 2]).sum().backward()

    timeline, notes = timeline_of(program), []
    data = held(page(timeline, timeline.iterations[2].start, notes))
    said = [graph["notes"] for graph in data["graphs"]]
    assert len(said) == 3
    assert all("nodes are left out, as they have no gradient" in texts[0] for texts in said)
    assert notes == said[2]


def test_of_one_long_iteration_a_stretch_around_the_moment_is_held(monkeypatch):
    timeline = two_shares().timeline
    monkeypatch.setattr(CONTENTS, "EVENTS", 10)
    data = held(page(timeline, 15))
    assert (data["low"], data["high"]) == (10, 20)
    assert len(data["events"]["texts"]) == 11
    assert "events 10 to 20 of 29" in data["notes"][0]


@pytest.mark.parametrize("n", [-1, 30])
def test_a_moment_outside_the_trace_is_refused(n):
    with pytest.raises(GvizError, match="there is no event"):
        page(two_shares().timeline, n)


def test_the_command_writes_a_page(tmp_path):
    program = tmp_path / "square.py"
    program.write_text("import torch\nx = torch.tensor(3.0, requires_grad=True)\n(x * x).backward()\n")
    out = tmp_path / "square.html"
    done = CliRunner().invoke(command, ["--engine", "builtin", str(program), "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert held(out.read_text())["title"] == "square.py"


def test_modules_are_closed_on_a_page_as_in_a_picture():
    def program():
        net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
        net(torch.ones(1, 2)).sum().backward()
        return net

    timeline = timeline_of(program)
    options = ExportOptions(part=Part(depth=1))
    data = held(exporter_for("page.html").render(timeline, len(timeline), options))
    boxes = data["graphs"][0]["views"][0]["boxes"]
    assert [box[3] for box in boxes if box[2] == "module"] == ["[+] 0 Linear", "[+] 2 Linear"]
    inside = [box[10:] for box in boxes if box[2] == "module"]
    assert all(len(nodes) > 1 for nodes in inside)


def test_open_modules_have_frames_around_their_boxes():
    def program():
        from gviz.engine import nn

        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
        net(torch.ones(1, 2)).sum().backward()

    level = ExportOptions(part=Part(level="nodes"))
    timeline = timeline_of(program)
    graph = held(exporter_for("page.html").render(timeline, len(timeline), level))["graphs"][0]["views"][0]
    frames = {title: (x, y, x + width, y + height) for title, x, y, width, height, _ in graph["frames"]}
    assert {"0 Linear", "2 Linear"} < set(frames)
    boxes = {box[3].partition(" ")[0]: box[5:9] for box in graph["boxes"]}
    for name, title in (("0.weight", "0 Linear"), ("2.weight", "2 Linear")):
        x, y, width, height = boxes[name]
        left, top, right, bottom = frames[title]
        assert left < x < x + width < right
        assert top < y < y + height < bottom


def test_a_page_opens_at_the_first_event_unless_a_moment_is_asked_for(tmp_path):
    timeline = two_shares().timeline
    path = tmp_path / "page.html"
    for how, start in (({}, 1), ({"at": 9}, 9)):
        gviz.export(timeline, path, force=True, **how)
        assert held(path.read_text("utf-8"))["start"] == start


def test_a_page_is_named_like_its_pictures_whichever_system_recorded_it():
    script = Script(r"C:\Users\me\demo.py")
    script.op("sin", (script.leaf("x", 1.0),), 0.5)
    timeline = script.timeline
    title = moment_scene(timeline, len(timeline), Options()).title
    assert held(page(timeline, 1))["title"] == title == "demo.py"


def test_each_iteration_of_a_page_has_views_with_names_of_their_own():
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

        def forward(self, x):
            return x + self.b(torch.tanh(self.a(torch.relu(x * 2 - 1))))

    def stretched(x):
        return torch.tanh(torch.relu(x * 2 - 1)) * 3 + 1

    def program():
        torch.manual_seed(0)
        net = torch.nn.Sequential(*(Block() for _ in range(6)))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            x = torch.ones(2, 4)
            for _ in range(3):
                x = stretched(x)
            stretched(stretched(net(x))).sum().backward()
            optimizer.step()

    timeline = timeline_of(program)
    notes = []
    graphs = held(page(timeline, 1, notes))["graphs"]
    graphs = [graph for graph in graphs if len(graph["views"][0]["boxes"]) > 3]
    assert len(graphs) >= 3
    for graph in graphs:
        views = graph["views"]
        assert len(views) > 1
        assert len({(view["parent"], view["name"]) for view in views}) == len(views)
    assert any("Click a box" in note for note in [*notes, json.dumps(graphs)])


@pytest.mark.parametrize("most_open", [60, 3])
def test_views_are_not_tried_where_there_is_no_room_for_an_open_box(monkeypatch, most_open):
    views = import_module("gviz.render.page.opened_box_views")
    monkeypatch.setattr(views, "MOST_OPEN", most_open)
    tried = []
    monkeypatch.setattr(views, "structure", lambda *args: tried.append(1) or structure(*args))

    def program():
        x = torch.ones(3, requires_grad=True)
        y = x
        for _ in range(40):
            y = (y.sin() + y) * 0.5
        y.sum().backward()

    page(timeline_of(program))
    assert (len(tried) > 0) is (most_open == 60)


def test_a_box_for_whose_nodes_there_is_no_room_is_tried_once(monkeypatch):
    views = import_module("gviz.render.page.opened_box_views")
    tried = []

    def noted(timeline, iteration, options, group):
        tried.append(group.call.scope)
        return options_with_open(timeline, iteration, options, group)

    options_with_open = views.options_with_open
    monkeypatch.setattr(views, "options_with_open", noted)
    monkeypatch.setattr("gviz.render.page.page_data.MOST_NODES", 40)

    def program():
        layers = [
            torch.nn.Sequential(torch.nn.Linear(3 + n, 4 + n), torch.nn.Tanh(), torch.nn.Tanh()) for n in range(12)
        ]
        torch.nn.Sequential(*layers)(torch.ones(2, 3)).sum().backward()

    page(timeline_of(program))
    assert len(tried) > 8
    assert len(tried) == len(set(tried))


@pytest.mark.torch
def test_a_small_model_opens_with_its_modules_collapsed_as_in_a_picture_and_each_can_be_opened(tmp_path):
    real = pytest.importorskip("torch")
    nn = real.nn
    with gviz.record(tmp_path / "t.gviz"):
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        nn.functional.cross_entropy(net(real.randn(5, 4)), real.arange(5) % 3).backward()
    timeline = gviz.load(tmp_path / "t.gviz")
    notes = []
    data = held(page(timeline, notes=notes))
    first, *others = data["graphs"][0]["views"]
    shown = [box[3] for box in first["boxes"]]
    assert [title for title in shown if "Linear" in title or "ReLU" in title] == ["0 Linear", "1 ReLU", "2 Linear"]
    assert not [title for title in shown if "weight" in title]
    opens = [box[9] for box in first["boxes"] if "Linear" in box[3]]
    assert len({*opens} - {-1}) == 2
    assert all(any("weight" in box[3] for box in others[view - 1]["boxes"]) for view in opens)
    assert notes[0].endswith("Click a box or press o to open it; O closes it.")


def test_a_small_program_without_modules_has_a_box_for_each_node_on_its_page():
    first, *others = held(page(two_shares().timeline))["graphs"][0]["views"]
    assert not others
    assert not [box for box in first["boxes"] if box[2] == "module"]


@pytest.mark.parametrize("compact", [False, True])
def test_labels_of_lines_have_room_between_the_boxes_or_are_left_out(compact):
    def program():
        x = torch.ones(16, 32, requires_grad=True)
        y = x * torch.ones(2, 16, 32)
        z = torch.tanh(y).exp() + x
        z.sum().backward()

    timeline = timeline_of(program)
    drawn = replace(moment_scene(timeline, len(timeline), Options()), compact=compact)
    words = {number: [edge.label or edge.text] for number, edge in enumerate(drawn.edges)}
    (places,) = geometry.geometries([drawn], [words], ExportOptions(note=lambda _: None))
    labels = [(route.label, words[number][0]) for number, route in enumerate(places.routes) if route.label]
    assert bool(labels) is not compact
    for (x, y), text in labels:
        half = len(text) * geometry.LETTER / 2
        for spot in places.spots:
            beside = x + half <= spot.x or spot.x + spot.width <= x - half
            assert beside or y + 4 <= spot.y or spot.y + spot.height <= y - 4, text
