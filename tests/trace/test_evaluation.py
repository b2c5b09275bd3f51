"""Programs in which nothing goes back: what is one turn of their loop."""

import pytest
from recording import events_of, iterations_known, timeline_of

import gviz
import gviz.engine as torch
from gviz.engine import nn
from gviz.explain.iteration_words import iteration_called
from gviz.trace import iterations
from gviz.trace.phases import PhaseTracker


def network():
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))


def measured(evaluate, *data):
    """A loss and how much is right, as a loop looks at them."""
    for x, y in data:
        out = evaluate(x)
        nn.CrossEntropyLoss()(out, y).item()
        _, chosen = out.max(1)
        (chosen == y).sum().item()


def batches(count):
    return ((torch.rand(4, 2), torch.tensor([0, 1, 1, 0])) for _ in range(count))


@torch.no_grad()
def evaluates():
    measured(network(), *batches(3))


@torch.no_grad()
def makes_its_batches():
    net = network()
    for x, y in batches(3):
        measured(net, (x * 2 - 1, y))


@torch.no_grad()
def has_parts():
    encoder, decoder = nn.Linear(2, 3), nn.Linear(3, 2)
    for x, _ in batches(3):
        decoder(encoder(x).relu())


@torch.no_grad()
def has_an_ensemble():
    members = [network() for _ in range(3)]
    for x, _ in batches(3):
        sum(member(x) for member in members)


@torch.no_grad()
def has_layers_in_a_list():
    layers = [nn.Linear(2, 2) for _ in range(3)]
    for x, _ in batches(3):
        for layer in layers:
            x = layer(x).tanh()


@torch.no_grad()
def calls_one_twice():
    net = network()
    for x, _ in batches(3):
        net(x) - net(x + 1)


class Scaled(nn.Module):
    def forward(self, x):
        return x * 0.5


@torch.no_grad()
def scales_each_sample():
    net, scaled = network(), Scaled()
    for _ in range(3):
        net(torch.stack([scaled(torch.rand(2)) for _ in range(4)]))


class Model(nn.Module):
    """Gives the odds of the next of five tokens, and what it has made of those so far."""

    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(5, 3), nn.Linear(3, 5)

    def forward(self, token, before=None):
        state = self.embedding(token)
        if before is not None:
            state = torch.cat([before, state])
        return self.head(state.mean(0)), state


@torch.no_grad()
def generates():
    model, token, state = Model(), torch.tensor([0]), None
    for _ in range(3):
        odds, state = model(token, state)
        token = odds.argmax().reshape(1)


@pytest.mark.parametrize(
    "program",
    [evaluates, makes_its_batches, has_parts, has_an_ensemble, has_layers_in_a_list, calls_one_twice,
     scales_each_sample, generates],
)  # fmt: skip
def test_each_batch_and_each_token_is_an_iteration(program):
    timeline = timeline_of(program)
    assert len(timeline.iterations) == 3
    assert iteration_called(timeline) == "iteration"
    assert [(phase.kind, phase.start) for phase in timeline.phases] == [
        ("forward", one.start) for one in timeline.iterations
    ]
    second, third = (operations(timeline, one) for one in timeline.iterations[1:])
    assert second == third


def operations(timeline, iteration):
    nodes = [node for node in timeline.nodes if timeline.info(node).iteration == iteration.index]
    return [timeline.info(node).op.name for node in nodes]


def test_an_iteration_begins_with_its_data_and_ends_with_what_is_measured():
    timeline = timeline_of(makes_its_batches)
    one = timeline.iterations[1]
    names = [timeline.info(node).title for node in timeline.nodes if timeline.info(node).iteration == one.index]
    assert (names[:2], names[-3:]) == (["x", "y"], ["_, chosen", "eq", "sum"])


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.given, self.own = nn.Linear(2, 3), nn.Linear(3, 3)

    def forward(self, x, state):
        return (self.given(x) + self.own(state)).tanh()


@torch.no_grad()
def unrolls_a_cell():
    cell, head = Cell(), nn.Linear(3, 1)
    for x, _ in batches(2):
        state = torch.zeros(3)
        for t in range(4):
            state = cell(x[t], state)
        head(state)


def test_of_a_long_turn_the_newest_results_are_remembered(monkeypatch):
    monkeypatch.setattr(iterations, "_MOST_REMEMBERED", 16)
    phase_tracker = PhaseTracker()
    for seq, event in enumerate(events_of(unrolls_a_cell), 1):
        phase_tracker.process(seq, event)
        assert len(phase_tracker.iterations._evaluation._kinds) <= 16
    assert len(phase_tracker.iterations.starts) == 1


@torch.no_grad()
def evaluates_once():
    x = network()(torch.rand(4, 2))
    x.softmax(1).max()


def keeps_the_graph():
    net = network()
    for x, _ in batches(3):
        net(x).sum().item()


@torch.no_grad()
def calls_no_module():
    w = torch.rand(2, 3).requires_grad_()
    for x, _ in batches(3):
        x @ w


@pytest.mark.parametrize("program", [unrolls_a_cell, evaluates_once, keeps_the_graph, calls_no_module])
def test_what_goes_on_with_the_last_call_is_one_graph(program):
    assert len(timeline_of(program).iterations) == 1


def trains_with(evaluate):
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        evaluate(net, epoch)
        for x, y in batches(2):
            loss = nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def validates(net, epoch):
    with torch.no_grad():
        measured(net, *batches(3))


def checks_first(net, epoch):
    if not epoch:
        validates(net, epoch)


@pytest.mark.parametrize("evaluate", [validates, checks_first])
def test_what_is_evaluated_beside_a_training_is_no_iteration(evaluate):
    timeline = timeline_of(lambda: trains_with(evaluate))
    assert [len(timeline.pass_ends(one)) for one in timeline.iterations] == [1, 1, 1, 1]


def test_turns_are_known_while_they_go_on_until_autograd_follows_something():
    assert iterations_known(evaluates) == [1, 2, 3]
    assert iterations_known(lambda: trains_with(checks_first)) == [1, 2, 3, 1, 2, 3, 4]


@pytest.mark.parametrize("program", [evaluates, makes_its_batches, has_an_ensemble, generates])
def test_a_flight_recorder_keeps_the_last_turns(tmp_path, program):
    with gviz.record(tmp_path / "last.gviz", last=2):
        program()
    kept, whole = gviz.load(tmp_path / "last.gviz"), timeline_of(program)
    assert kept.dropped.events
    assert len(kept.iterations) == 2
    last = [operations(timeline, timeline.iterations[-1]) for timeline in (kept, whole)]
    assert last[0] == last[1]
