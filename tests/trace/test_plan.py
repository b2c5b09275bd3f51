"""What is said to run next in a backward pass runs next."""

from importlib import import_module

import pytest

from gviz.events import BackwardFinished, GradAccumulated, StepStarted
from gviz.trace.backward_order import UpcomingNodes, planned
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from tests.adapters import recorded
from tests.recording import events_of


def diamond(torch):
    x, w = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0], requires_grad=True)
    y = x * w
    late = w.exp()
    return ((y.sin() + y * late) * x).sum().backward()


def parts(torch):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    first, second = x.unbind()
    (first * second + second).max(0).values.backward(retain_graph=True)
    (first * 2).sum().backward()


def engine_log(program):
    return events_of(lambda: program(import_module("gviz.engine")))


def torch_log(program):
    import torch

    return recorded.events_of(lambda: program(torch))


def engine_bare(program):
    return events_of(lambda: program(import_module("gviz.engine")), keep="none")


@pytest.mark.parametrize("program", [diamond, parts])
@pytest.mark.parametrize("log_of", [engine_log, engine_bare, pytest.param(torch_log, marks=pytest.mark.torch)])
def test_the_order_that_follows(program, log_of):
    timeline = Timeline(MemoryLog(log_of(program)))
    kinds = StepStarted, GradAccumulated, BackwardFinished
    happenings = [(seq, event) for seq, event in timeline.select(kinds)]
    tried = 0
    for n in range(1, len(timeline) + 1):
        moment = timeline.at(n)
        if not moment.pass_nr:
            assert planned(timeline, n, 100) == UpcomingNodes()
            continue
        coming = []
        for seq, event in happenings:
            if seq > n:
                if isinstance(event, BackwardFinished):
                    break
                coming.append(event.node)
        assert planned(timeline, n, 100) == UpcomingNodes(tuple(coming)), (n, moment.event)
        assert planned(timeline, n, 1) == UpcomingNodes(tuple(coming[:1]))
        tried += 1
    assert tried > 10


def engine_late(program):
    root = program(import_module("gviz.engine"))
    return events_of(root.backward)


def torch_late(program):
    root = program(import_module("torch"))
    return recorded.events_of(root.backward)


def built(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    late = x.exp()
    return (y.sin() + y * late).sum()


@pytest.mark.parametrize("log_of", [engine_late, pytest.param(torch_late, marks=pytest.mark.torch)])
def test_of_a_graph_found_late_the_order_is_told_as_far_as_it_is_known(log_of):
    timeline = Timeline(MemoryLog(log_of(built)))
    happenings = [(seq, event.node) for seq, event in timeline.select((StepStarted, GradAccumulated))]
    early = 0
    for n in range(1, len(timeline) + 1):
        if timeline.at(n).pass_nr:
            coming = planned(timeline, n, 100)
            truth = tuple(node for seq, node in happenings if seq > n)
            assert coming.nodes == (truth[: len(coming.nodes)] if coming.ends_early else truth), n
            early += coming.ends_early
    assert early
