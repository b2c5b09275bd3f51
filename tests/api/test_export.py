"""`gviz.export`: one file or many, whole or not at all, and a clear word for what cannot be."""

import json
import os
import re
import subprocess
import sys

import pytest
from cli.programs import gviz as gviz_command
from cli.programs import gviz_here
from render.logs import two_shares

import gviz
import gviz.engine as torch
from gviz.errors import GvizError
from gviz.render.file_formats import exporter_for
from gviz.render.forms import series


@pytest.fixture
def timeline():
    return two_shares().timeline


def test_a_file_for_each_moment_in_a_folder_that_is_made(timeline, tmp_path):
    written = gviz.export(timeline, f"{tmp_path}/frames/")
    assert [path.name for path in written] == sorted(path.name for path in (tmp_path / "frames").iterdir())
    assert written[0].name == "001.svg"
    assert len(written) == len(series.pass_moments(timeline, len(timeline)))


def test_numbers_stand_where_the_name_asks_for_them(timeline, tmp_path):
    written = gviz.export(timeline, tmp_path / "step%02d.dot", moments="3..5")
    assert [path.name for path in written] == ["step01.dot", "step02.dot", "step03.dot"]
    assert "event 4/29" in written[1].read_text()


@pytest.mark.parametrize("name", ["50%done.dot", "100%.dot"])
def test_a_percent_sign_in_a_name_asks_for_no_number(name, timeline, tmp_path):
    assert gviz.export(timeline, tmp_path / name) == [tmp_path / name]


@pytest.mark.parametrize("name", ["100%d.dot", "step%d_of_3.dot", "%03dpx.dot"])
def test_a_number_may_stand_between_other_signs(name, timeline, tmp_path):
    written = gviz.export(timeline, tmp_path / name, moments="3..4")
    assert [path.name for path in written] == [name % 1, name % 2]


def test_a_tensor_is_drawn_with_the_names_it_is_given(tmp_path):
    x = torch.tensor(3.0, requires_grad=True)
    (path,) = gviz.export(x * x, tmp_path / "graph.svg", params={"speed": x})
    assert "speed leaf" in path.read_text()


class Twice(torch.nn.Module):
    """A module with a module, called twice."""

    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.fc(torch.tanh(self.fc(x)))


@pytest.fixture(scope="module")
def two_iterations(tmp_path_factory):
    """A module that is called in two iterations."""
    trace = tmp_path_factory.mktemp("twice") / "twice.gviz"
    with gviz.record(trace):
        net, x = Twice(), torch.ones(1, 2)
        for _ in range(2):
            net(x).sum().backward()
    return trace


def boxes_of(trace, tmp_path, **options):
    (path,) = gviz.export(trace, tmp_path / "part.json", force=True, **options)
    return [box["title"].split(" #")[0] for box in json.loads(path.read_text())["nodes"]]


def test_a_module_is_drawn_alone_with_what_comes_into_it(two_iterations, tmp_path):
    everything = boxes_of(two_iterations, tmp_path)
    alone = boxes_of(two_iterations, tmp_path, only=["fc"])
    assert "tanh" in alone
    assert sorted({*everything} - {*alone}) == ["sum"]


@pytest.mark.parametrize("name", ["Twice.fc", "fc", "fc*"])
def test_a_node_that_names_a_module_means_all_of_the_module(two_iterations, tmp_path, name):
    assert boxes_of(two_iterations, tmp_path, node=name) == boxes_of(two_iterations, tmp_path, only=["fc"])


@pytest.mark.parametrize(("name", "beside"), [("Twice.fc", "sum"), ("op:tanh", "tanh")])
def test_a_node_is_looked_for_in_the_iteration_that_is_drawn(two_iterations, tmp_path, name, beside):
    assert beside in boxes_of(two_iterations, tmp_path, node=name, radius=1)


def test_a_node_of_another_iteration_is_told_from_one_of_this(two_iterations, tmp_path):
    with pytest.raises(GvizError, match="not in the graph") as caught:
        boxes_of(two_iterations, tmp_path, node="#5", radius=1)
    assert "the moment #5 draws that" in caught.value.hint


def test_a_pass_moves_from_where_it_begins(two_iterations, tmp_path):
    written = gviz.export(two_iterations, tmp_path / "a%03d.json", moments="backward")
    again = gviz.export(two_iterations, tmp_path / "b%03d.json", moments="backward..bwd")
    seen = [json.loads(path.read_text())["event"] for path in written]
    (*_, last) = (phase for phase in gviz.load(two_iterations).phases if phase.kind == "backward")
    assert (seen[0], seen[-1], len(seen)) == (last.start, last.end, len(again))


def test_a_step_written_by_hand_is_not_drawn_but_a_measurement_of_the_weights_is(tmp_path):
    with gviz.record(tmp_path / "by_hand.gviz"):
        w = torch.ones(2, requires_grad=True)
        for _ in range(2):
            (w * 3).sum().backward()
            with torch.no_grad():
                w.sub_(0.5 * w.grad)
                w.grad.abs().min()
                w.abs().max()
    drawn = boxes_of(tmp_path / "by_hand.gviz", tmp_path)
    assert not any("sub" in title for title in drawn)
    assert [title for title in drawn if "mul" in title] == ["mul"]
    assert "max" in " ".join(drawn)
    assert "min" not in " ".join(drawn)


def test_a_picture_can_be_asked_for_in_another_size(timeline, tmp_path):
    from PIL import Image

    whole, half = (gviz.export(timeline, tmp_path / f"{scale}.png", scale=scale)[0] for scale in (1, 0.5))
    with Image.open(half) as small, Image.open(whole) as large:
        assert small.width == pytest.approx(large.width / 2, rel=0.02)
    normal, twice = (
        gviz.export(timeline, tmp_path / f"{scale}.svg", scale=scale)[0].read_text() for scale in (None, 2)
    )
    width, double = (float(re.search(r'width="([0-9.]+)pt"', text)[1]) for text in (normal, twice))
    assert double == pytest.approx(2 * width)
    assert "svg:root{max-width:max(100%," in normal


def test_an_option_that_changes_nothing_is_told(timeline, tmp_path):
    notes = []
    gviz.export(timeline, tmp_path / "x.txt", scale=2, style="cs231n", tensors="grid", note=notes.append)
    assert notes == [
        "the style cs231n has its own tensors: grid changes nothing",
        "txt has no size in pixels: the scale changes nothing",
    ]


@pytest.mark.parametrize("suffix", ["svg", "dot", "mmd", "txt", "json", "html"])
@pytest.mark.parametrize("style", ["mono", "cs231n"])
def test_a_style_that_changes_nothing_is_told(timeline, tmp_path, suffix, style):
    notes = []
    (plain,) = gviz.export(timeline, tmp_path / f"plain.{suffix}", labels="full", note=notes.append)
    assert notes == []
    (styled,) = gviz.export(timeline, tmp_path / f"styled.{suffix}", labels="full", style=style, note=notes.append)
    same = plain.read_bytes() == styled.read_bytes()
    told = f"the style {style} has nothing for {exporter_for(plain.name).name} and changes nothing"
    assert (notes == [told]) == (told in notes) == same


def test_a_heat_map_has_a_scale(tmp_path):
    x = torch.ones(8, 8, requires_grad=True)
    (path,) = gviz.export(x * 2, tmp_path / "heat.svg", tensors="heat")
    assert path.read_text().count("■") == 9
    (path,) = gviz.export(x * 2, tmp_path / "line.svg")
    assert "■" not in path.read_text()


@pytest.mark.parametrize(
    ("name", "options", "said", "code"),
    [
        ("x.jpeg", {}, "unknown format of", 2),
        ("x.svg", {"at": 99}, "there is no event 99", 2),
        ("x.svg", {"at": "nobody"}, "there is no moment nobody", 2),
        ("x.svg", {"node": "nobody"}, "there is no nobody", 2),
        ("x.svg", {"ancestors": True}, "need a node", 2),
        ("x.svg", {"style": "pretty"}, "no style", 2),
        ("x.svg", {"theme": "blue"}, "no theme", 2),
        ("x.svg", {"labels": "long"}, "labels cannot be 'long'", 2),
        ("x.svg", {"modules": ["enc*"]}, "no module fits", 2),
        ("x.svg", {"only": ["enc*"]}, "no module fits", 2),
        ("x.svg", {"direction": "xx"}, "direction cannot be 'xx'", 2),
        ("x.svg", {"timeout": -1}, "timeout cannot be -1", 2),
        ("x.svg", {"scale": 0}, "scale cannot be 0", 2),
        ("x.svg", {"scale": float("nan")}, "scale cannot be nan", 2),
        ("x.svg", {"depth": -1}, "depth cannot be -1", 2),
        ("x.svg", {"radius": -2, "node": "loss"}, "radius cannot be -2", 2),
        ("x.svg", {"modules": "net.*"}, r"no module fits net\.\*(\n|$)", 2),
        ("x.svg", {"only": "net.*"}, r"no module fits net\.\*(\n|$)", 2),
        ("x.dot", {"moments": "1..3"}, "shows one moment", 2),
        ("x.html", {"moments": "1..3", "at": 5}, "event 5 is not one of the moments 1 to 3", 2),
        ("x.gif", {"moments": "12"}, "no range of moments", 2),
        ("x.gif", {"moments": "20..99"}, "there is no event 99", 2),
        ("x.gif", {"moments": "20..10"}, "event 20 comes after event 10", 2),
        ("x%d.gif", {}, "moves by itself", 2),
        ("no/x.svg", {}, "cannot write", 1),
        ("no/such/", {}, "cannot write", 1),
        ("there.svg", {}, "already exists", 1),
    ],
)
def test_what_cannot_be_is_said_in_a_line_and_nothing_is_written(timeline, tmp_path, name, options, said, code):
    (tmp_path / "there.svg").write_text("mine")
    with pytest.raises(GvizError, match=said) as caught:
        gviz.export(timeline, f"{tmp_path}/{name}", **options)
    assert caught.value.exit_code == code
    assert "--" not in caught.value.hint
    assert os.listdir(tmp_path) == ["there.svg"]
    assert (tmp_path / "there.svg").read_text() == "mine"


def test_a_recording_is_drawn_without_the_engine(tmp_path):
    with gviz.record(tmp_path / "a.gviz"):
        torch.tensor(2.0) * 3
    said = "import gviz, sys; gviz.export('a.gviz', 'a.dot'); print([m for m in sys.modules if 'gviz.engine' in m])"
    ended = subprocess.run([sys.executable, "-c", said], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
    assert "digraph" in (tmp_path / "a.dot").read_text()


def test_force_writes_over(timeline, tmp_path):
    (tmp_path / "there.svg").write_text("mine")
    gviz.export(timeline, tmp_path / "there.svg", force=True)
    assert "<svg" in (tmp_path / "there.svg").read_text()


def test_when_graphviz_fails_half_way_no_picture_of_a_series_is_there(timeline, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise GvizError("Graphviz cannot draw this graph")

    monkeypatch.setattr(series, "draw_all", fail)
    with pytest.raises(GvizError, match="cannot draw"):
        gviz.export(timeline, f"{tmp_path}/frames/")
    assert not list(tmp_path.iterdir())


def test_something_else_is_refused(tmp_path):
    with pytest.raises(GvizError, match=r"gviz cannot draw a builtins\.int"):
        gviz.export(3, tmp_path / "x.svg")


def test_standard_output_takes_a_picture(tmp_path):
    (tmp_path / "program.py").write_text(
        "import gviz.engine as torch\nx = torch.ones(2, requires_grad=True)\n(x * x).sum().backward()\n"
    )
    code, out, _ = gviz_command("record", "-o", "t.gviz", "program.py", cwd=tmp_path)
    assert code == 0
    code, out, err = gviz_command("export", "t.gviz", "-o", "-", "--format", "mermaid", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert out.startswith("flowchart LR\n")
    code, out, err = gviz_here("export", "t.gviz", "-o", "-", "--format", "jpeg", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert "mermaid" in err


def test_a_picture_without_a_legend_is_otherwise_the_same(tmp_path):
    with_one, without = tmp_path / "a.svg", tmp_path / "b.svg"
    gviz.export(two_shares().timeline, with_one)
    gviz.export(two_shares().timeline, without, legend=False)
    assert ">operation</text>" in with_one.read_text()
    assert ">operation</text>" not in without.read_text()
    assert with_one.read_text().count("<g id") == without.read_text().count("<g id")


@pytest.mark.parametrize("draw", ["export", "make_dot"])
@pytest.mark.parametrize("form", ["module", "pairs", "mapping"])
def test_params_may_be_the_model_its_named_parameters_or_a_mapping(form, draw, tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    params = {"module": model, "pairs": model.named_parameters(), "mapping": dict(model.named_parameters())}[form]
    loss = model(torch.randn(5, 3)).square().mean()
    if draw == "export":
        gviz.export(loss, tmp_path / "graph.txt", params=params)
        text = (tmp_path / "graph.txt").read_text(encoding="utf-8")
    else:
        text = gviz.make_dot(loss, params=params).source
    assert all(name in text for name, _ in model.named_parameters())
