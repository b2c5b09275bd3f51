"""What is between a pass and the next forward: a look at what came of it, an optimizer, or what comes after that."""

import pytest
from recording import timeline_of

import gviz.engine as torch
from gviz.events import GradSet, NodeCreated, OptimizerStarted


def weight():
    return torch.tensor([2.0, 3.0], requires_grad=True)


def phases(timeline):
    """The kinds of the phases of each iteration."""
    found = [[] for _ in timeline.iterations]
    for phase in timeline.phases:
        found[timeline.iteration_at(phase.start).index].append(phase.kind)
    return found


def first(timeline, kind):
    """The event with which the first phase of a kind begins."""
    return next(timeline.event(phase.start) for phase in timeline.phases if phase.kind == kind)


def counts_its_loss():
    w, total = weight(), torch.zeros(1)
    optimizer = torch.optim.Adam([w], lr=0.1)
    for _ in range(2):
        loss = ((w - 4.0) ** 2).sum()
        loss.backward()
        total += loss.detach()
        optimizer.step()
        optimizer.zero_grad()


def counts_its_loss_in_the_end():
    w, total = weight(), torch.zeros(1)
    optimizer = torch.optim.Adam([w], lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        loss = ((w - 4.0) ** 2).sum()
        loss.backward()
        optimizer.step()
        total += loss.detach()


def clips_its_gradients():
    w = weight()
    optimizer = torch.optim.SGD([w], lr=0.1)
    for _ in range(2):
        loss = ((w - 4.0) ** 2).sum()
        loss.backward()
        loss.detach() * 2.0
        torch.nn.utils.clip_grad_norm_([w], 1.0)
        optimizer.step()


def steps_by_hand():
    w = weight()
    for _ in range(2):
        loss = ((w - 4.0) ** 2).sum()
        loss.backward()
        loss.detach() * 2.0
        with torch.no_grad():
            w -= w.grad * 0.1
        w.grad = None


def steps_by_hand_with_a_gradient_that_stays():
    w = weight()
    for _ in range(2):
        ((w - 4.0) ** 2).sum().backward()
        w.detach() * 2.0
        with torch.no_grad():
            w -= w.grad * 0.1
            w.grad.zero_()


def shrinks_its_weights():
    w = weight()
    for _ in range(2):
        ((w - 4.0) ** 2).sum().backward()
        with torch.no_grad():
            w *= 0.9


def looks_at_its_gradient():
    w = weight()
    for _ in range(2):
        ((w - 4.0) ** 2).sum().backward()
        w.grad.abs().max()
        w.grad = None


def asks_for_its_gradient():
    w = weight()
    for _ in range(2):
        (g,) = torch.autograd.grad(((w - 4.0) ** 2).sum(), w)
        g.abs()


def steps_with_a_closure():
    w = weight()
    optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)

    def closure():
        optimizer.zero_grad()
        loss = ((w - 4.0) ** 2).sum()
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(closure)


def steps_with_a_closure_and_new_data():
    w = weight()
    optimizer = torch.optim.SGD([w], lr=0.1)
    for _ in range(2):
        x = torch.rand(2)

        def closure(x=x):
            optimizer.zero_grad()
            loss = (w * x).sum()
            loss.backward()
            return loss

        optimizer.step(closure)


def evaluates():
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.rand(3, 2)).sum().backward()
    optimizer.step()
    with torch.no_grad():
        for _ in range(2):
            x = torch.rand(3, 2)
            model(x).sum()


UPDATED, LOOKED = ["forward", "backward", "optimizer"], ["forward", "backward", "after backward"]


@pytest.mark.parametrize(
    ("program", "turn"),
    [
        (counts_its_loss, [*LOOKED, "optimizer"]),
        (counts_its_loss_in_the_end, [*UPDATED, "after optimizer"]),
        (clips_its_gradients, [*LOOKED, "optimizer"]),
        (steps_by_hand, [*LOOKED, "optimizer"]),
        (steps_by_hand_with_a_gradient_that_stays, [*LOOKED, "optimizer"]),
        (shrinks_its_weights, [*LOOKED, "optimizer"]),
        (looks_at_its_gradient, LOOKED),
        (asks_for_its_gradient, LOOKED),
        (steps_with_a_closure, UPDATED),
        (steps_with_a_closure_and_new_data, UPDATED),
    ],
)
def test_an_optimizer_is_what_changes_weights(program, turn):
    assert phases(timeline_of(program)) == [turn, turn]


@pytest.mark.parametrize("program", [clips_its_gradients, steps_by_hand])
def test_it_begins_with_the_first_use_of_a_gradient(program):
    event = first(timeline_of(program), "optimizer")
    assert isinstance(event, NodeCreated)
    assert "grad_of" in dict(event.attrs)


def test_it_begins_with_the_step_where_no_gradient_was_used_before():
    assert isinstance(first(timeline_of(counts_its_loss), "optimizer"), OptimizerStarted)


@pytest.mark.parametrize("program", [steps_with_a_closure, steps_with_a_closure_and_new_data])
def test_the_step_that_calls_a_closure_is_of_the_closures_forward(program):
    timeline = timeline_of(program)
    for n, _ in timeline.select([OptimizerStarted]):
        passes = timeline.pass_ends(timeline.iteration_at(n))
        assert timeline.phase_at(n).kind == "forward"
        assert n < passes[0]


def test_what_a_model_is_given_that_is_evaluated_is_of_its_forward():
    timeline = timeline_of(evaluates)
    assert phases(timeline) == [[*UPDATED, "forward"]]
    data = timeline.event(timeline.phases[-1].start)
    assert (data.kind, timeline.nodes.name(data.node)) == ("constant", "x")


def test_a_gradient_that_is_cleared_after_a_step_is_of_that_step():
    timeline = timeline_of(counts_its_loss)
    assert {timeline.phase_at(n).kind for n, _ in timeline.select([GradSet])} == {"optimizer"}


def steps_with_a_momentum():
    w, v = weight(), torch.zeros(2)
    for _ in range(3):
        ((w - 4.0) ** 2).sum().backward()
        with torch.no_grad():
            v = v * 0.9 + w.grad
            w -= v * 0.1
        w.grad = None


def steps_with_a_momentum_in_place():
    w, v = weight(), torch.zeros(2)
    for nr in range(6):
        ((w - 4.0) ** 2).sum().backward()
        if nr % 2:
            v.mul_(0.9).add_(w.grad)
            w.data -= v * 0.1
            w.grad = None


@pytest.mark.parametrize("program", [steps_with_a_momentum, steps_with_a_momentum_in_place])
def test_it_begins_with_the_momentum_of_the_last_step(program):
    timeline = timeline_of(program)
    _, *begun = [timeline.event(phase.start) for phase in timeline.phases if phase.kind == "optimizer"]
    used = [timeline.info(event.inputs[0][0]) for event in begun]
    assert [info.name for info in used] == ["v", "v"]
