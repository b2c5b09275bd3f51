"""What modules and boxes cost: the memory adds up to the peak, the time comes from timed iterations."""

from types import SimpleNamespace

import pytest
from recording import timeline_of

import gviz.engine as torch
from gviz.engine import nn
from gviz.errors import GvizError
from gviz.explain.module_costs import costs, why_no_costs
from gviz.explain.saved_memory import saved_memory
from gviz.trace.timed_iterations import TimedCall, TimedIteration
from gviz.trace.whole_iterations import RecordedIterations


def train():
    net = nn.Sequential(nn.Sequential(nn.Linear(4, 8), nn.Tanh()), nn.Linear(8, 8), nn.Sigmoid())
    (net(torch.ones(16, 4)) ** 2).mean().backward()


TRAINED = timeline_of(train)


def timed(*calls, total=1000):
    one = TimedIteration(7, "cpu", total, calls, 0, 0)
    recorded = RecordedIterations(9, 1, (), (), (), timed_iterations=(one,))
    timeline = SimpleNamespace(recorded_iterations=recorded, iteration_at=lambda n: SimpleNamespace(end=n))
    timeline.once = lambda question, about: question(timeline, about)
    return timeline


def test_the_memory_of_all_nodes_is_the_peak():
    found, account = costs(TRAINED, "memory", len(TRAINED)), saved_memory(TRAINED, len(TRAINED))
    assert found.total == account.peak[1] == sum(found.by_node.values()) > 0
    assert found.of_nodes(TRAINED.nodes) == found.total


def test_the_memory_of_a_module_includes_the_modules_inside():
    found = costs(TRAINED, "memory", len(TRAINED))
    inside = {path: amount for path, amount in found.by_module.items() if path.startswith("Sequential.0.")}
    assert found.by_module["Sequential.0"] == sum(inside.values()) == 16 * 8 * 4
    assert found.by_module["Sequential"] == 2 * 16 * 8 * 4
    assert found.text(found.by_module["Sequential.0"]) == "512 B"


def test_the_costs_of_an_iteration_are_computed_once_for_all_its_moments():
    assert costs(TRAINED, "memory", 5) is costs(TRAINED, "memory", len(TRAINED)) is not None


def test_memory_of_nodes_outside_of_modules_is_that_of_no_module():
    outside = timeline_of(lambda: torch.ones(2, requires_grad=True).exp().sum().backward())
    found = costs(outside, "memory", len(outside))
    assert found.total == 8
    assert not found.by_module


def test_the_time_of_a_module_is_that_of_all_its_calls_and_each_call_has_its_own():
    calls = (
        TimedCall("net", "Net", -1, 10, 20),
        TimedCall("net.cell", "Cell", 0, 1, 2),
        TimedCall("net.cell", "Cell", 0, 30, 40),
    )
    found = costs(timed(*calls), "time", 5)
    assert found.total == 1000
    assert found.by_module == {"net": 103, "net.cell": 73}
    assert [found.of_call("net.cell", number) for number in (1, 2, 3)] == [3, 70, 0]
    assert found.of_nodes([1, 2]) == 0
    assert found.text(2_500_000) == "2.5 ms"


def test_a_recording_without_times_says_why_and_what_records_them():
    assert costs(TRAINED, "time", len(TRAINED)) is None
    error = why_no_costs(TRAINED, "time", len(TRAINED))
    assert isinstance(error, GvizError)
    assert str(error) == "this recording has no times of modules"
    assert "gviz monitor SCRIPT" in error.why


def test_a_graph_that_saves_nothing_has_no_memory():
    plain = timeline_of(lambda: torch.ones(2) + 1)
    assert costs(plain, "memory", len(plain)) is None
    with pytest.raises(GvizError, match="no operation saves a tensor"):
        raise why_no_costs(plain, "memory", len(plain))
