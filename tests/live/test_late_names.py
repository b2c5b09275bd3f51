"""Names while the program runs: none is said that turns out to be wrong, and breakpoints by name miss nothing."""

import pytest
from recording import events_of

import gviz.engine as torch
from gviz import events as e
from gviz.engine import nn
from gviz.engine.nn import functional
from gviz.live.gate import Gate
from gviz.live.protocol import ResumeRequest
from gviz.query_syntax.stop_condition import stop
from gviz.trace.breakpoint_hits import Hits
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline


def by_library_calls():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    w = torch.ones(3, 2, requires_grad=True)
    for _ in range(2):
        h = functional.linear(x, w)
        masked = torch.where(h > 1.0, h, 0.0)
        loss = functional.mse_loss(masked, torch.zeros(2, 3))
        loss.backward()
        w.grad = None
    return loss


def by_modules():
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    x = torch.ones(4, 2)
    out = net(x)
    out.sum().backward()
    out = net(x)
    return out


def by_operators():
    x = torch.tensor(3.0, requires_grad=True)
    y = x * 2.0 + 1
    positive = y > 0
    x.data = x.data + 1
    y = (y * y).sum().exp()
    y += 1
    return positive, y


def by_turns():
    x = torch.ones(2, requires_grad=True)
    a, b = (t.exp() for t in (x, x))
    c, d = map(torch.sin, map(torch.cos, (a, b)))
    e, f = [t.tanh() for t in map(torch.exp, (c, d))]
    return {"sum": e + f, "parts": [a * b]}


PROGRAMS = [by_library_calls, by_modules, by_operators, by_turns]


def names(timeline):
    return {node: timeline.info(node).name for node in timeline.nodes}


def growing(events):
    log = MemoryLog()
    timeline = Timeline(log)
    timeline.growing = True
    for event in events:
        log.append(event)
        if timeline.refresh():
            yield timeline


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_name_is_taken_back_while_the_program_runs(program):
    events = events_of(program)
    last = names(Timeline(MemoryLog(events)))
    for timeline in growing(events):
        said = {node: name for node, name in names(timeline).items() if name}
        assert said.items() <= last.items(), len(timeline)


def test_what_one_operation_makes_has_its_name_at_once():
    events = events_of(by_operators)
    last = names(Timeline(MemoryLog(events)))
    at_once = [names(timeline) for timeline in growing(events)]
    assert [said[max(said)] for said in at_once] == [last[max(said)] for said in at_once]


def test_the_result_of_a_module_is_named_when_that_is_left():
    events = events_of(by_modules)
    whole = Timeline(MemoryLog(events))
    (result, *_) = (node for node, name in names(whole).items() if name == "out")
    named = next(len(timeline) for timeline in growing(events) if names(timeline).get(result))
    assert isinstance(whole.event(named), e.ScopeLeft)
    assert whole.contexts.scope_at(named)[0] == 0
    assert named > whole.info(result).born


class Debugger:
    """Says where a timeline that grows with the program finds the stops, as the one of a live debugger does."""

    def __init__(self, text):
        self.text, self.stops, self.passed = text, [], []
        self.log = MemoryLog()
        self.timeline = Timeline(self.log)
        self.timeline.growing = True
        self.hits = Hits(self.timeline, stop(text))
        self.gate = Gate(self.log.append, self.wait, self.request)

    @property
    def request(self):
        return ResumeRequest("continue", stops=(self.text,))

    def wait(self, why):
        self.timeline.refresh()
        self.look()
        return self.request

    def look(self):
        for hit in self.hits.after(self.stops[-1] if self.stops else 0):
            self.stops.append(hit.n)
            later = [event for _, event in self.timeline.select([e.NodeCreated], hit.n)]
            self.passed.append(len({event.stack for event in later} - {later[0].stack} if later else ()))

    def end(self):
        """The program has ended: every statement is over."""
        self.timeline.refresh()
        self.timeline.growing = False
        self.hits = Hits(self.timeline, stop(self.text))
        self.look()


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("text", ["h", "out", "loss", "y", "h if value.sum() > 1", "masked"])
def test_a_breakpoint_by_name_stops_where_it_does_in_the_recording(program, text):
    events = events_of(program)
    debugger = Debugger(text)
    for event in events:
        debugger.gate.receive(event)
    debugger.end()
    assert debugger.stops == [hit.n for hit in Hits(Timeline(MemoryLog(events)), stop(text)).after(0)]
    assert all(statements <= 1 for statements in debugger.passed), "the program is held before it has gone far"
