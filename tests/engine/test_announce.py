import pytest

import gviz.engine as torch
from gviz.emit import Channel, listening
from gviz.events import GradFlowed, Named, NodeCreated, NodeFreed
from gviz.explain.value_computation import computation
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from tests.recording import events_of


def created(events):
    return [event for event in events if isinstance(event, NodeCreated)]


def test_a_graph_found_late_keeps_the_place_of_an_argument_nobody_knows():
    x = torch.tensor(3.0, requires_grad=True)
    y = torch.tensor(6.0) / x
    events = events_of(y.backward)
    _, late = created(events)
    assert late.inputs == ((0, 0), (1, 0))
    assert [event.slot for event in events if isinstance(event, GradFlowed)] == [1]


def test_an_argument_nobody_knows_is_explained_as_one():
    x = torch.tensor(3.0, requires_grad=True)
    y = torch.tensor(6.0) / x
    timeline = Timeline(MemoryLog(events_of(y.backward)))
    assert computation(timeline, 2).text == "? / 3 (#1)"


def test_what_the_program_had_before_has_the_name_it_has_there():
    w, batch = torch.tensor(3.0, requires_grad=True), {"x": [torch.tensor(2.0)]}
    scale = torch.nn.Parameter(torch.tensor(1.0))
    w.grad = torch.tensor(1.0)
    x = batch["x"]

    def program():
        loss = w * x[0] * scale * 2
        loss.backward()
        return w.grad + 1

    events = events_of(program)
    names = {event.node: event.name for event in events if isinstance(event, Named)}
    assert [names.get(event.node, "") for event in created(events)] == ["w", "x[0]", *[""] * 8]


def test_a_parameter_that_a_variable_of_the_module_holds_has_its_name(monkeypatch):
    monkeypatch.setitem(globals(), "gain", torch.nn.Parameter(torch.tensor(1.0)))
    events = events_of(lambda: gain * 2)  # noqa: F821
    assert [event.name for event in events if isinstance(event, Named)] == ["gain"]


def test_only_a_view_that_does_not_fill_its_memory_says_how_it_lies_there():
    x = torch.tensor([[3.0, -7.0, 4.0], [4.0, 2.0, -2.0]])
    events = events_of(lambda: (x.detach(), x.max(1), x.t()))
    places = {output.strides for event in created(events)[:-1] for output in event.outputs}
    assert places == {None}
    assert [output.strides for output in created(events)[-1].outputs] == [(1, 3)]


def test_what_failed_while_it_was_announced_was_never_there():
    def program():
        x = torch.tensor(1.0, requires_grad=True)

        def deeper(y):
            return deeper(y + 1)

        for _ in range(3):
            with pytest.raises(RecursionError):
                deeper(x)
        (x * 2).backward()

    events = events_of(program)
    made = {event.node for event in events if isinstance(event, NodeCreated)}
    assert {event.node for event in events if isinstance(event, NodeFreed)} <= made


def test_an_interrupted_announcement_is_made_again(monkeypatch):
    """An exception of a signal handler may come up anywhere: here, where a node's values are taken."""
    events = []
    channel = Channel(events.append)
    value, failing = channel.value, [True]

    def interrupted(array):
        if failing and array.shape == (3,):
            failing.clear()
            raise KeyboardInterrupt
        return value(array)

    monkeypatch.setattr(channel, "value", interrupted)
    with listening(channel):
        x = torch.ones(2)
        with pytest.raises(KeyboardInterrupt):
            torch.ones(3)
        y = torch.zeros(3)
        x.sum(), y.sum()
    made = [event.node for event in events if isinstance(event, NodeCreated)]
    used = {node for event in events if isinstance(event, NodeCreated) for node, _ in event.inputs}
    assert used <= set(made)
    assert {event.node for event in events if isinstance(event, NodeFreed)} <= set(made)


def test_a_parameter_is_written_through_the_tensor_it_was_made_from():
    def program():
        data = torch.tensor([1.0, 2.0])
        weight = torch.nn.Parameter(data)
        data.mul_(3)
        return weight.sum()

    events = events_of(program)
    weight = next(event.node for event in created(events) if event.kind == "parameter")
    timeline = Timeline(MemoryLog(events))
    assert computation(timeline, created(events)[-1].node).text == "sum of [3 6] (weight) = 9"
    assert timeline.at(len(timeline)).state(weight).outputs[0].value.array().tolist() == [3.0, 6.0]
