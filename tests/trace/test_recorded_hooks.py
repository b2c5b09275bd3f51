"""Recordings of programs with hooks of every kind: each moment of the timeline is what replay says."""

import pytest
from recording import events_of
from replay import replay

import gviz.engine as torch
from gviz import events as e
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline


def leaf(*numbers):
    return torch.tensor(numbers, requires_grad=True)


def hooks_of_every_kind():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = x * w
    y.register_hook(lambda g: g * 2)
    y.register_hook(write)
    y.retain_grad()
    y.grad_fn.register_prehook(lambda grads: (grads[0] + 1,))
    y.grad_fn.register_hook(lambda ins, outs: (ins[0] * 10, None))
    x.register_post_accumulate_grad_hook(halve)
    for _ in range(2):
        (y + w).sum().backward(retain_graph=True)
    a, b = y.unbind()
    a.register_hook(lambda g: None)
    (b * 2).backward()
    return x, w, y


def write(g):
    g.mul_(3)


def halve(leaf):
    leaf.grad.mul_(0.5)


def backward_within_backward():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)

    def inner(g):
        with torch.enable_grad():
            (w * g * x).sum().backward()

    y = x * 2
    y.register_hook(inner)
    (y * y).sum().backward()
    return x, w, y


def second_order():
    x = leaf(1.0, 2.0)
    y = x**3
    y.register_hook(lambda g: g.exp())
    y.grad_fn.register_hook(lambda ins, outs: (ins[0] * outs[0],))
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    g.sum().backward()
    return x, y, g


def packed():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach() * 2, lambda t: t / 2):
        y = x.exp() * w
        y[:1].sigmoid_()
    y.sum().backward()
    return x, w, y


def failing_in_anomaly_mode():
    x, w = leaf(0.0, 1.0), leaf(1.0, 1.0)
    with torch.autograd.set_detect_anomaly(True):
        y = x.sqrt() * 0
        loss = (y + w.exp()).sum()
        with pytest.warns(UserWarning, match="Error detected in SqrtBackward0"), pytest.raises(RuntimeError):
            loss.backward()
    return x, w, y, loss


@pytest.mark.parametrize(
    "program", [hooks_of_every_kind, backward_within_backward, second_order, packed, failing_in_anomaly_mode]
)
def test_every_moment_is_what_replay_says(program):
    log = MemoryLog(events_of(program))
    timeline = Timeline(log)
    for n in range(len(log) + 1):
        states, moment = replay(log, n), timeline.at(n)
        assert [moment.state(node) for node in timeline.nodes] == [states.get(node) for node in timeline.nodes], n


@pytest.mark.parametrize("program", [hooks_of_every_kind, backward_within_backward, packed])
def test_the_state_at_a_step_has_the_gradient_the_step_ran_with(program):
    log = MemoryLog(events_of(program))
    for n in range(1, len(log) + 1):
        event = log.event(n)
        if isinstance(event, e.StepStarted):
            outputs = replay(log, n)[event.node].outputs
            arrived = [None if o.incoming is None else o.incoming.array().tolist() for o in outputs]
            assert arrived == [None if g is None else g.array().tolist() for g in event.grads]
