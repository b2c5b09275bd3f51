"""Tensors that have no plain shape or no numbers: the program runs as it does alone, and the trace can be read."""

import pytest

from gviz.events import NodeCreated
from gviz.trace.codec import KIND_NUMBERS, decode, encode
from tests.adapters.recorded import events_of, of_kind, operations

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def nested(**options):
    made = torch.nested.nested_tensor([torch.ones(2, 2), torch.ones(3, 2)], requires_grad=True, **options)
    return made * 2


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("layout", ["strided", "jagged"])
def test_nested_tensors_are_shown_without_values(layout):
    log = events_of(lambda: nested(layout=getattr(torch, layout)))
    assert "MulBackward0" in operations(log)
    values = [output.value for event in of_kind(log, NodeCreated) for output in event.outputs if output.value]
    assert (2,) in [value.shape for value in values]
    assert all(value.data is None for value in values if (value.dtype, value.shape) == ("float32", (2,)))
    for event in log:  # what is written can be read
        assert decode(KIND_NUMBERS[type(event)], encode(event)) == event


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_backward_pass_through_nested_tensors():
    events_of(lambda: torch.nested.to_padded_tensor(nested(), 0.0).sum().backward())


def test_memory_that_was_given_back_is_not_read():
    def program():
        held = torch.ones(5, requires_grad=True)
        with torch.no_grad():
            shown = held * 2
            shown.untyped_storage().resize_(0)
            return shown.detach()

    events_of(program)
