import gviz.engine as torch
from gviz.events import GradFlowed, NodeCreated
from gviz.explain.arithmetic import computation
from gviz.trace.log import MemoryLog
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


def test_only_a_view_that_does_not_fill_its_memory_says_how_it_lies_there():
    x = torch.tensor([[3.0, -7.0, 4.0], [4.0, 2.0, -2.0]])
    events = events_of(lambda: (x.detach(), x.max(1), x.t()))
    places = {output.strides for event in created(events)[:-1] for output in event.outputs}
    assert places == {None}
    assert [output.strides for output in created(events)[-1].outputs] == [(1, 3)]
