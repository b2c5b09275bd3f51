"""Tensors that lie in one memory: after every write each has the value that it has in the program."""

import pytest

from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from tests.adapters.recorded import events_of

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
SIZES = (4, 400)  # both parts within what is kept of a value, and beyond it


def stepped(optimizer, **options):
    def program(size):
        flat = torch.linspace(-1, 1, 2 * size)
        parts = [torch.nn.Parameter(flat[:size]), torch.nn.Parameter(flat[size:])]
        steps = optimizer(parts, lr=0.1, **options)
        for _ in range(2):
            steps.zero_grad()
            (parts[0] * parts[1]).sum().backward()
            steps.step()
        return [flat, *parts]

    program.__name__ = f"{optimizer.__name__} {options}"
    return program


def nobody_has_the_whole(size):
    parts = stepped(torch.optim.SGD)(size)[1:]
    with torch.no_grad():
        parts[0].mul_(3)
    return parts


def written_as_a_whole(size):
    flat = torch.linspace(-1, 1, 2 * size)
    a, b = flat[:size], flat[size:]
    c = a * b
    flat.mul_(2)
    a.add_(1)
    return [flat, a, b, c]


def written_by_a_list(size):
    flat = torch.linspace(-1, 1, 2 * size)
    a, b = flat[:size].requires_grad_(), flat[size:].requires_grad_()
    _ = a * b
    with torch.no_grad():
        torch._foreach_add_([a, b], 1.0)
        torch._foreach_mul_([b], 2.0)
    return [flat, a, b]


def vector_to_parameters(size):
    model = torch.nn.Linear(size, 2)
    vector = torch.nn.utils.parameters_to_vector(model.parameters()).detach() * 2
    torch.nn.utils.vector_to_parameters(vector, model.parameters())
    steps = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(1, size)).sum().backward()
    steps.step()
    return [vector, model.weight, model.bias]


def flat_parameter(size):
    """As fully sharded training has it: the optimizer steps one vector, of which the model's tensors are views."""
    flat = torch.nn.Parameter(torch.linspace(-1, 1, 2 * size))
    a, b = (part.detach() for part in flat.split(size))
    _ = a + 1, b + 1
    steps = torch.optim.SGD([flat], lr=0.1)
    flat.grad = torch.ones_like(flat)
    steps.step()
    return [flat, a, b]


def tied(size):
    a, b = torch.nn.Linear(2, size, bias=False), torch.nn.Linear(2, size, bias=False)
    b.weight = a.weight
    steps = torch.optim.SGD([a.weight], lr=0.1)
    (a(torch.ones(1, 2)) * b(torch.ones(1, 2))).sum().backward()
    steps.step()
    return [a.weight]


def in_another_form(size):
    x = torch.linspace(-1, 1, 4 * size).reshape(4, size)
    turned, part, cut = x.t(), x[:, 1:3], x[1:]
    _ = turned + 1, cut + 1
    x.mul_(2)
    part.add_(1)
    return [x, turned, part, cut]


def as_other_numbers(size):
    z = torch.complex(torch.linspace(-1, 1, size), torch.ones(size))
    pairs = torch.view_as_real(z)
    bits = pairs.view(torch.int32)
    _ = pairs + 1, bits + 1
    z.mul_(2)
    pairs.add_(1)
    return [z, pairs, bits]


def half(size):
    x = torch.linspace(-1, 1, 2 * size).bfloat16()
    part = x[:size]
    x.mul_(2)
    return [x, part]


def lstm_weights(size):
    """As cuDNN has them: all weights of the layer are parts of one vector."""
    lstm = torch.nn.LSTM(2, size // 4)
    flat = torch.cat([weight.detach().reshape(-1) for weight in lstm.parameters()])
    start = 0
    for weight in lstm.parameters():
        weight.data = flat[start : start + weight.numel()].view_as(weight)
        start += weight.numel()
    steps = torch.optim.Adam(lstm.parameters())
    for _ in range(2):
        lstm(torch.ones(3, 1, 2))[0].sum().backward()
        steps.step()
    return list(lstm.parameters())


PROGRAMS = (
    stepped(torch.optim.SGD), stepped(torch.optim.SGD, foreach=True), stepped(torch.optim.SGD, momentum=0.9),
    stepped(torch.optim.Adam, foreach=False), stepped(torch.optim.AdamW), nobody_has_the_whole, written_as_a_whole,
    written_by_a_list, vector_to_parameters, flat_parameter, tied, in_another_form, as_other_numbers, half,
    lstm_weights,
)  # fmt: skip


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_each_has_its_value_after_every_write(program, size):
    from gviz import emit
    from gviz.adapters.pytorch.attachment import Attachment
    from gviz.adapters.pytorch.value_capture import Capture

    log = []
    channel = emit.Channel(log.append)
    with emit.listening(channel), Attachment(channel) as attached:
        tensors = program(size)
        nodes = [attached.node_of(tensor) for tensor in tensors]
        capture = Capture(channel, lambda kind: None)
        wanted = [capture(tensor) for tensor in tensors]
    timeline = Timeline(MemoryLog(log))
    for node, value in zip(nodes, wanted, strict=True):
        held = timeline.memory_value(node, 0, len(timeline))
        assert held is not None
        assert (held.dtype, held.shape) == (value.dtype, value.shape)
        assert held.statistics() == pytest.approx(value.statistics(), nan_ok=True), timeline.info(node)


def test_the_event_of_a_step_is_about_each_parameter_once():
    from gviz.events import DataSet, OptimizerStepped

    log = events_of(lambda: stepped(torch.optim.SGD)(400))
    said = [event.node for event in log if isinstance(event, DataSet)]
    (first, second) = [event.parameters for event in log if isinstance(event, OptimizerStepped)]
    assert sorted(said) == sorted([*first, *second])


def test_what_does_not_lie_where_was_written_is_not_said():
    from gviz.events import DataSet

    def program():
        flat = torch.linspace(-1, 1, 800)
        parts = [torch.nn.Parameter(part) for part in flat.split(100)]
        with torch.no_grad():
            for part in parts:
                part.mul_(2)
            for _ in range(5):
                parts[3].mul_(2)
        return parts

    log = events_of(program)
    assert len([event for event in log if isinstance(event, DataSet)]) < 30
