"""A static graph as events."""

import gviz.engine as torch
from gviz.api.make_dot import make_dot
from gviz.engine import jit
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline


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
        assert "linear" in source
        assert "weight" in source
