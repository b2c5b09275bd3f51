"""The boxes of a batch norm and of a dropout show whether they are in train or eval mode."""

import pytest
from explain.programs import recorded_text

import gviz
from gviz.explain.display_names import mode_of
from gviz.render.boxes.graph_options import Options
from gviz.render.forms.text import text
from gviz.render.graphviz.dot import dot
from gviz.render.legend import legend
from gviz.render.picture_request import moment_scene
from gviz.tui.drawing.node_details import plain_panel

PROGRAM = """
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.3), torch.nn.Linear(4, 1))
x = torch.randn(6, 3)
{prepare}
loss = net(x).pow(2).mean()
loss.backward()
"""
ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("level", ["calls", "nodes"])
def test_a_box_has_the_mode_of_its_operation(level, engine, tmp_path):
    titles = {}
    for prepare in ("net.train()", "net.eval()"):
        timeline = recorded_text(PROGRAM.format(prepare=prepare), tmp_path, engine)
        gviz.export(tmp_path / f"{engine}.gviz", tmp_path / "picture.dot", level=level, labels="short", force=True)
        drawn = (tmp_path / "picture.dot").read_text()
        titles[prepare] = {word for word in WORDS if word in drawn}
        mode = prepare[4:].removesuffix("()")
        panels = ["\n".join(plain_panel(timeline, len(timeline), node, 80)) for node in timeline.nodes]
        assert any(f"batch_norm ({mode})" in panel.split("\n")[0] for panel in panels)
        assert {mode_of(timeline.info(node)) for node in timeline.nodes} == {"", mode}
    # the built-in engine updates the running statistics in nodes of their own: the box of the module has several calls
    has_many = engine == "builtin" and level == "calls"
    assert titles == {"net.train()": {*WORDS[has_many:2]}, "net.eval()": {WORDS[2]}}


WORDS = ("batch_norm (train)", "dropout (train)", "batch_norm (eval)", "dropout (eval)")


@pytest.mark.torch
@pytest.mark.parametrize("train", [True, False])
def test_batch_norm_writes_running_statistics_in_training_and_reads_them_in_evaluation(tmp_path, train):
    torch = pytest.importorskip("torch")
    with gviz.record(tmp_path / "t.gviz"):
        norm = torch.nn.BatchNorm1d(3)
        norm.train(train)
        norm.weight.requires_grad_(False)
        norm(torch.randn(6, 3, requires_grad=True)).sum().backward()
    timeline = gviz.load(tmp_path / "t.gviz")
    drawn = moment_scene(timeline, len(timeline), Options(clusters=True, marks=True))
    titles = {box.key: box.title for box in drawn.boxes}
    writes = {titles[edge.source].split(" ")[0] for edge in drawn.edges if edge.is_write}
    assert writes == ({"running_mean", "running_var"} if train else set())
    assert any(sign.startswith("arrow with writes: ") for sign in legend(drawn)) == train
    lines = [line for line in dot(drawn).splitlines() if "dir=back" in line and "edge-forward" in line]
    assert len(lines) == 2 * train
    assert all("writes (3,)<" in line and "edge-cut" not in line for line in lines)
    assert (" <- batch_norm (train) #" in text(drawn)) == train
