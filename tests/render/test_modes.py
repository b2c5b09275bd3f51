"""The boxes of a batch norm and of a dropout show whether they are in train or eval mode."""

import pytest
from explain.programs import recorded_text

import gviz
from gviz.explain.display_names import mode_of
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
        text = (tmp_path / "picture.dot").read_text()
        titles[prepare] = {word for word in WORDS if word in text}
        mode = prepare[4:].removesuffix("()")
        panels = ["\n".join(plain_panel(timeline, len(timeline), node, 80)) for node in timeline.nodes]
        assert any(f"batch_norm ({mode})" in panel.split("\n")[0] for panel in panels)
        assert {mode_of(timeline.info(node)) for node in timeline.nodes} == {"", mode}
    # the built-in engine updates the running statistics in nodes of their own: the box of the module has several calls
    has_many = engine == "builtin" and level == "calls"
    assert titles == {"net.train()": {*WORDS[has_many:2]}, "net.eval()": {WORDS[2]}}


WORDS = ("batch_norm (train)", "dropout (train)", "batch_norm (eval)", "dropout (eval)")
