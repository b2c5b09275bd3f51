"""A static graph as events, and a recording as a static graph that can be run again."""

import numpy as np
import pytest
from recording import events_of

import gviz.engine as torch
from gviz.digraph import make_dot
from gviz.engine import jit
from gviz.trace.log import MemoryLog
from gviz.trace.timeline import Timeline


def program():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.LayerNorm(4), torch.nn.Linear(4, 2))
    x = torch.randn(5, 3, requires_grad=True)
    h = model(x)
    h = torch.where(h > 0, h * 2, 1 / (h - 5))
    h = torch.cat([h, h[:, :1].exp()], 1).max(1).values
    h.mul_(3).add_(1)
    return h.double().sum(), h, model, x


def test_a_recording_runs_again():
    log = events_of(program, limit=1 << 20)
    timeline = Timeline(MemoryLog(log))
    graph, places = jit.graph_of(log)
    values = {}
    jit.interpret(graph, [], lambda number, made: values.update({number: [np.array(t._array) for t in made]}))
    for node, number in places.items():
        for value, output in zip(values[number], timeline.at(timeline.born(node)).state(node).outputs, strict=True):
            assert np.array_equal(value, output.value.array())


def test_one_node_runs_again_on_other_operands():
    graph, _ = jit.graph_of(events_of(lambda: torch.tensor([1.0, 2.0]) * 3))
    (node,) = [node for _, node in graph.operations()]
    assert jit.run_node(node, [torch.tensor([5.0]), torch.tensor(3.0)])[0].tolist() == [15]


def test_what_cannot_be_run_is_named():
    def write_through_a_view():
        x = torch.ones(3, requires_grad=True) * 1
        x[0].mul_(2)
        return x

    with pytest.raises(ValueError, match=r"node #\d+ cannot be run again: the engine cannot run mul_ \(CopySlices\)"):
        jit.graph_of(events_of(write_through_a_view))
    with pytest.raises(ValueError, match="node #1 cannot be run again: its value was not kept"):
        jit.graph_of(events_of(lambda: torch.ones(1000) * 2, limit=8))


def test_a_graph_as_events_says_the_same():
    def f(x):
        y = torch.sin(x) * 2
        return y.max(0).values + y.add_(1)

    traced = jit.trace(f, torch.ones(2, 2))
    timeline = Timeline(MemoryLog(jit.events_of(traced.graph)))
    infos = [timeline.info(node) for node in timeline.nodes]
    assert [info.op.name for info in infos] == ["tensor", "sin", "tensor", "mul", "max", "tensor", "add_", "add"]
    assert infos[0].name == "x"
    assert timeline.at(len(timeline)).state(2).outputs[0].value is None


def test_it_is_drawn():
    traced = jit.trace(torch.nn.Linear(3, 2), torch.ones(1, 3))
    for drawable in (traced, traced.graph):
        source = make_dot(drawable).source
        assert "addmm" in source.lower()
        assert "weight" in source
