"""Breakpoints at modules: where a call of one begins, and where a backward pass comes to it."""

import msgspec
import pytest
from driving import transcript
from recording import events_of

import gviz.engine as torch
from gviz import events as e
from gviz.query_syntax.stop_condition import stop
from gviz.trace import breakpoint_hits
from gviz.trace.breakpoint_hits import Hits
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline

nn = torch.nn
ROUNDS = 3


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2))
        self.blocks = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])

    def forward(self, x):
        x = self.encoder(x + torch.zeros(2))
        for block in self.blocks:
            x = block(x * 2)
        return x


def trains():
    model = Net()
    for _ in range(ROUNDS):
        model(torch.ones(1, 2)).sum().backward()


@pytest.fixture(scope="module")
def timeline():
    return Timeline(MemoryLog(events_of(trains)))


def hits(timeline, text):
    return [hit.n for hit in Hits(timeline, stop(text)).after(0)]


def kinds(timeline, moments):
    return [type(timeline.event(n)) for n in moments]


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("Net", 1),
        ("model", 1),
        ("Net.encoder", 1),
        ("model.encoder", 1),
        ("encoder", 1),
        ("encoder.0", 1),
        ("model.encoder[2]", 1),
        ("blocks", 2),  # a list of modules, which is not called itself
        ("model.blocks.1", 1),
        ("blocks.?", 2),
        ("model.encoder.*", 3),
        ("block", 0),  # what the model's own forward calls so is a part of it
        ("coder", 0),
        ("encoder.3", 0),
    ],
)
def test_a_module_is_stopped_at_once_a_call_and_once_a_pass(timeline, text, calls):
    found = hits(timeline, f"on forward {text}")
    assert kinds(timeline, found) == [e.NodeCreated] * calls * ROUNDS
    passed = hits(timeline, f"on backward {text}")
    assert kinds(timeline, passed) == [e.StepStarted] * calls * ROUNDS
    assert hits(timeline, text) == sorted(found + passed)


def test_it_stops_where_the_module_begins_and_where_its_gradient_arrives(timeline):
    first, last = hits(timeline, "model.encoder")[:2]
    node = timeline.event(first).node
    entered = next(n for n, event in timeline.select((e.ScopeEntered,)) if event.name == "Net.encoder.0")
    assert entered < first < timeline.nodes.born(node + 1)
    steps = [n for n, event in timeline.select((e.StepStarted,)) if "encoder" in timeline.info(event.node).scope]
    assert last == steps[0]


def test_a_condition_asks_all_that_a_module_makes(timeline):
    made = [node for node in timeline.nodes if timeline.info(node).scope.startswith("Net.encoder.")]
    assert len(hits(timeline, "encoder if event == 'forward'")) == len(made) > ROUNDS * 3


@pytest.mark.parametrize("text", ["model", "encoder", "blocks", "blocks.?", "on backward encoder.0"])
def test_stretches_and_the_direction_make_no_difference(timeline, text, monkeypatch):
    whole = hits(timeline, text)
    monkeypatch.setattr(breakpoint_hits, "STRETCH", 7)
    assert hits(timeline, text) == whole != []
    assert [hit.n for hit in Hits(timeline, stop(text)).before(len(timeline) + 1)] == whole[::-1]


def test_a_recording_that_grows_has_the_same_ones():
    events, log, found = events_of(trains), MemoryLog([]), {}
    timeline = Timeline(log)
    timeline.growing = True
    breakpoints = {text: Hits(timeline, stop(text)) for text in ("encoder", "model.blocks.1", "blocks")}
    for start in range(0, len(events), 5):
        for event in events[start : start + 5]:
            log.append(event)
        timeline.refresh()
        found |= {text: [hit.n for hit in own.after(0)] for text, own in breakpoints.items()}
    assert found == {text: hits(timeline, text) for text in breakpoints}


def test_models_of_one_class_are_told_by_what_is_called():
    def program():
        make, judge = nn.Sequential(nn.Linear(2, 2), nn.Tanh()), nn.Sequential(nn.Linear(2, 1), nn.Tanh())
        for _ in range(ROUNDS):
            fake = make(torch.ones(1, 2))
            judge(fake).sum().backward()

    timeline = Timeline(MemoryLog(events_of(program)))
    made, judged = hits(timeline, "on forward make.0"), hits(timeline, "on forward judge.0")
    assert len(made) == len(judged) == ROUNDS
    assert all(one < other for one, other in zip(made, judged, strict=True))


def test_a_function_is_no_module_that_is_called_so():
    def encode(layer, x):
        return layer(x)

    def program():
        encode(nn.Linear(2, 1), torch.ones(1, 2)).sum().backward()

    timeline = Timeline(MemoryLog(events_of(program)))
    assert hits(timeline, "encode") == []
    assert len(hits(timeline, "layer")) == 2


def test_modules_are_known_by_their_paths_where_no_line_of_the_program_is():
    events = [
        msgspec.structs.replace(event, stack=0) if isinstance(event, e.NodeCreated) else event
        for event in events_of(trains)
    ]
    timeline = Timeline(MemoryLog(events))
    assert len(hits(timeline, "on forward encoder.0")) == ROUNDS
    assert hits(timeline, "on forward model.encoder") == []  # which variable holds it nobody can tell


def test_only_the_node_that_a_call_begins_with_is_marked(timeline):
    whole = Hits(timeline, stop("encoder"))
    assert [node for node in timeline.nodes if whole.matches(node)] == [
        timeline.event(n).node for n in hits(timeline, "on forward encoder")
    ]


def test_the_third_pass_through_a_layer_is_two_commands_away(timeline):
    said = transcript(timeline, "break on backward encoder.0", "ignore 1 2", "continue", "where", at=1)
    third = hits(timeline, "on backward encoder.0")[2]
    assert f"event {third}" in said
