"""What is made between a step and the next forward: with which iteration it goes."""

from itertools import pairwise

import pytest
from recording import events_of, timeline_of

import gviz.engine as torch
from gviz.trace.phases import PhaseTracker


def weight():
    return torch.tensor([2.0, 3.0], requires_grad=True)


def a_number_first():
    w = weight()
    optimizer = torch.optim.SGD([w], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = ((w - 4) ** 2).sum()
        loss.backward()
        optimizer.step()


def a_batch_first():
    data, w = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), weight()
    optimizer = torch.optim.SGD([w], lr=0.1)
    for i in range(3):
        x = data[i]
        y = data[i] * 2
        optimizer.zero_grad()
        loss = ((w * 1.5 * x - y) ** 2).sum()
        loss.backward()
        optimizer.step()


def an_update_by_hand():
    w = weight()
    for _ in range(3):
        loss = ((w - 4) ** 2).sum()
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
        w.grad = None


def measured_after_the_step():
    data, w = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), weight()
    optimizer = torch.optim.SGD([w], lr=0.1)
    for i in range(3):
        x = data[i]
        out = w * x
        out.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        right = out.detach() > 0
        right * 1.0


def measured_without_autograd():
    data, w = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), weight()
    optimizer = torch.optim.SGD([w], lr=0.1)
    for i in range(3):
        x = data[i]
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()
        with torch.no_grad():
            out = w * x
        best = out.max()
        best * 2


def a_step_apart():
    """Steps of the training loop, its data new each time, and what is done beside it."""
    w = weight()
    optimizer = torch.optim.SGD([w], lr=0.1)
    for _ in range(3):
        x = torch.rand(2)
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()
        yield w


def data_behind_the_loop():
    list(a_step_apart())
    print(torch.rand(3).max())


def evaluated_after_each_turn():
    for w in a_step_apart():
        for _ in range(2):
            batch = torch.rand(2)
            with torch.no_grad():
                (w * batch).sum().item()


def saved_after_each_turn():
    for w in a_step_apart():
        with torch.no_grad():
            w.copy_(torch.tensor(w.tolist()))


@pytest.mark.parametrize("program", [data_behind_the_loop, evaluated_after_each_turn, saved_after_each_turn])
def test_what_no_forward_follows_is_of_the_iteration_before(program):
    made, timeline = first_made(program)
    assert made[1:] == ["x", "x"]
    assert [len(timeline.pass_ends(one)) for one in timeline.iterations] == [1, 1, 1]


def first_made(program):
    timeline = timeline_of(program)
    return [
        next(timeline.info(node).title for node in timeline.nodes if timeline.info(node).born >= iteration.start)
        for iteration in timeline.iterations
    ], timeline


@pytest.mark.parametrize(
    ("program", "first"),
    [
        (a_number_first, "tensor"),
        (a_batch_first, "x"),
        (an_update_by_hand, "tensor"),
        (measured_after_the_step, "x"),
        (measured_without_autograd, "x"),
    ],
)
def test_an_iteration_begins_with_what_was_prepared_for_its_forward(program, first):
    made, timeline = first_made(program)
    assert made[1:] == [first, first]
    for iteration in timeline.iterations[1:]:
        phase = timeline.phase_at(iteration.start)
        assert (phase.kind, phase.start) == ("forward", iteration.start)


@pytest.mark.parametrize("program", [a_number_first, a_batch_first, an_update_by_hand, measured_after_the_step])
def test_phases_follow_one_another_without_overlap(program):
    rows = [row for row in _chapters(program).rows if row[2]]
    assert all(end < start for (_, _, end, _), (_, start, _, _) in pairwise(rows))
    assert all(start <= end for _, start, end, _ in rows)


def _chapters(program):
    phase_tracker = PhaseTracker()
    for seq, event in enumerate(events_of(program), 1):
        phase_tracker.process(seq, event)
    return phase_tracker
