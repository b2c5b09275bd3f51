"""A program that failed: its picture shows the call that failed, with its inputs and the message."""

import pytest
from explain.programs import recorded_text

from gviz.cli.main import run_command
from gviz.explain.failed_call import failed_call
from gviz.explain.typed_question import answer
from gviz.query.nodes import NamedNodes
from gviz.render.boxes.graph_options import Options
from gviz.render.picture_request import moment_scene, moment_structure
from gviz.render.scene import scene
from gviz.trace import load

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]

LAYER = """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(9, 2))
x = torch.randn(5, 4)
loss = net(x).sum()
loss.backward()
"""
PRODUCT = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(3, 3))
    def forward(self, x):
        h = x.exp()
        y = h @ self.w
        return y
net = Net()
loss = net(torch.randn(2, 4)).sum()
loss.backward()
"""
LOOP = """
import torch
from torch import nn
emb, head = nn.Embedding(10, 4), nn.Linear(4, 2)
for step in range(3):
    ids = torch.arange(3) + 4 * step
    loss = head(emb(ids)).sum()
    loss.backward()
"""
ODD = """
import torch
x = torch.ones(3, requires_grad=True)
y = x.exp()
table = [][3]
"""


def failed_box(timeline, n=None, **options):
    drawn = moment_scene(timeline, len(timeline) if n is None else n, Options(**options))
    titles = {box.key: box.title for box in drawn.boxes}
    return drawn, [box for box in drawn.boxes if box.role == "failed"], titles


@pytest.mark.parametrize("engine", ENGINES)
def test_a_layer_that_failed_has_a_box_with_its_inputs_and_its_message(tmp_path, engine):
    timeline = recorded_text(LAYER, tmp_path, engine)
    drawn, (box,), titles = failed_box(timeline, clusters=True)
    assert (box.title, box.status) == ("2 Linear", "! failed")
    text = " ".join(row.text for row in box.rows)
    assert text == "RuntimeError: mat1 and mat2 shapes cannot be multiplied (5x8 and 9x2)"
    sources = {titles[edge.source].partition(" ")[0] for edge in drawn.edges if edge.target == box.key}
    assert sources >= {"relu", "2.bias"}
    assert len(sources) == 3
    assert not [edge for edge in drawn.edges if edge.target == box.key and "pending" in edge.states]
    assert [title for _, title in box.enclosing_modules] == ["Sequential"]
    assert not [box for box in drawn.boxes if box.role == "root"]  # no unused result: the failed call has used it


@pytest.mark.parametrize("engine", ENGINES)
def test_an_operation_of_the_program_that_failed_has_its_name(tmp_path, engine):
    timeline = recorded_text(PRODUCT, tmp_path, engine)
    drawn, (box,), titles = failed_box(timeline)
    assert box.title == "y = matmul"
    assert {titles[edge.source].partition(" ")[0] for edge in drawn.edges if edge.target == box.key} == {"h", "w"}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_failed_call_is_in_the_iteration_that_failed_and_waits_until_then(tmp_path, engine):
    timeline = recorded_text(LOOP, tmp_path, engine)
    assert failed_call(timeline, timeline.iterations[0]) is None
    drawn, (box,), _ = failed_box(timeline)
    assert box.title == "Embedding"
    last = timeline.iterations[-1]
    n = len(timeline) - 1
    before = scene(moment_structure(timeline, len(timeline), Options()), timeline, timeline.at(n))
    (waiting,) = (box for box in before.boxes if box.role == "failed")
    assert timeline.iteration_at(n).index == last.index
    assert (waiting.states, waiting.rows) == (("pending",), ())
    lines = [edge for edge in before.edges if edge.target == box.key]
    assert lines
    assert all("pending" in edge.states for edge in lines)
    assert len(drawn.boxes) == len(before.boxes)


def test_an_error_outside_of_any_call_has_a_box_of_its_own(tmp_path):
    _, (box,), _ = failed_box(recorded_text(ODD, tmp_path))
    assert box.title == "table = [][3]"
    assert [row.text for row in box.rows] == ["IndexError: list index out of range"]


def test_a_program_that_its_user_stopped_has_no_failed_call(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        recorded_text(ODD.replace("[][3]", "None; raise KeyboardInterrupt"), tmp_path)
    timeline = load(tmp_path / "builtin.gviz")
    assert timeline.errors
    assert not failed_box(timeline)[1]


@pytest.mark.parametrize("question", ["0.weight.grad", "loss", "step"])
def test_a_question_about_what_an_error_prevented_names_the_error(tmp_path, question):
    timeline = recorded_text(LAYER, tmp_path)
    finding = answer(NamedNodes(timeline), question, len(timeline))
    assert finding.text.startswith("the program ended with RuntimeError at program.py:6 before ")
    assert "gviz check" in finding.fix


def test_a_parameter_made_after_an_error_still_lacks_a_pass(tmp_path):
    timeline = recorded_text(LAYER, tmp_path)
    before = answer(NamedNodes(timeline), "0.weight.grad", len(timeline) - 1)
    assert before.text.startswith("no backward pass has run since")


def test_an_index_is_out_of_range_of_the_table_that_was_called(tmp_path, capsys):
    path = tmp_path / "loop.py"
    path.write_text(LOOP)
    run_command(["check", "--engine", "builtin", str(path)])
    assert "Embedding has rows 0 to 9, but ids (3,) contains the index 10" in capsys.readouterr().out
