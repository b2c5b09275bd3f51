"""Tensors that have no plain shape or no numbers: the program runs as it does alone, and the trace can be read."""

import inspect
import sys
import tracemalloc
from itertools import permutations

import pytest

import gviz
from gviz.adapters.recording_scope import RecordingScope
from gviz.emit import Channel
from gviz.events import (
    BackwardFinished,
    DataSet,
    GradAccumulated,
    GradFlowed,
    Named,
    NodeCreated,
    OpSeen,
    StorageWritten,
)
from gviz.explain.value_computation import computation
from gviz.trace.codec import KIND_NUMBERS, decode, encode
from gviz.trace.event_log import MemoryLog
from gviz.trace.nan_and_inf import may_be_nonfinite
from gviz.trace.timeline import Timeline
from gviz.values.value import statistics
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
    log = events_of(lambda: torch.nested.to_padded_tensor(nested(), 0.0).sum().backward())
    assert [event.error for event in of_kind(log, BackwardFinished)] == [""]
    assert [event.part.data for event in of_kind(log, GradAccumulated)] == [None]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("wanted", [None, RecordingScope(phase="backward")])
def test_a_gradient_that_a_rule_passes_on_is_jagged(wanted):
    """Its lengths are symbols, of which PyTorch compares no two."""
    linear = torch.nn.Linear(2, 2)

    def program():
        parts = [torch.ones(2, 2, requires_grad=True), torch.ones(3, 2, requires_grad=True)]
        h = linear(torch.nested.as_nested_tensor(parts, layout=torch.jagged))
        (h * h + h).values().sum().backward()
        leaves.extend([*parts, *linear.parameters()])

    leaves = []
    log = events_of(program, wanted=wanted)
    assert [event.error for event in of_kind(log, BackwardFinished)] == [""]
    with_grad = [leaf for leaf in leaves if leaf.grad is not None]  # PyTorch 2.4 has none for a bias
    assert len(of_kind(log, GradAccumulated)) == len(with_grad) >= 3


def test_a_gradient_that_a_hook_is_given_has_the_shape_of_its_leaf():
    def program():
        bias, weight = (torch.ones(2, requires_grad=True) for _ in range(2))
        bias.register_hook(lambda grad: grad * 2)
        torch.addmm(bias, torch.ones(3, 2), weight.diag()).sum().backward()
        return bias

    log = events_of(program)
    kinds = {seen.op: seen.name for seen in of_kind(log, OpSeen)}
    (view,) = [made for made in of_kind(log, NodeCreated) if kinds[made.op] == "view"]
    assert computation(Timeline(MemoryLog(log)), view.node).text == "[[3 3]] as (2,) = [3 3]"


def test_memory_that_was_given_back_is_not_read():
    def program():
        held = torch.ones(5, requires_grad=True)
        with torch.no_grad():
            shown = held * 2
            shown.untyped_storage().resize_(0)
            return shown.detach()

    made = [output.value for event in of_kind(events_of(program), NodeCreated) for output in event.outputs]
    assert (made[-1].shape, made[-1].data) == ((5,), None)


@pytest.mark.parametrize("wanted", [None, RecordingScope(phase="backward"), RecordingScope(module="*Linear")])
def test_lazy_modules_get_their_names_when_they_have_shapes(wanted):
    def program():
        model = torch.nn.Sequential(torch.nn.LazyLinear(2), torch.nn.LazyBatchNorm1d())
        for _ in range(2):
            model(torch.ones(4, 3)).sum().backward()

    assert {"0.weight", "0.bias"} <= {event.name for event in of_kind(events_of(program, wanted), Named)}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.eye(3).to_sparse(),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
        lambda: torch.ones(3, dtype=torch.cfloat).conj(),
        lambda: torch.ones(3, device="meta"),
    ],
    ids=["sparse", "nested", "conj", "meta"],
)
def test_odd_tensors_are_written_to_and_given_other_memory(make):
    def program():
        x = make().detach().requires_grad_()
        y = x * 2
        with torch.no_grad():
            x.mul_(2)
            x.data.mul_(2)
            x.data = make().detach()
            x.mul_(2)
        x.grad = x.detach().clone()
        x.grad.data.mul_(2)
        x.grad.data = x.grad.data.clone()
        return x, y

    log = events_of(program)
    assert len(of_kind(log, StorageWritten)) == 4
    assert len(of_kind(log, DataSet)) >= 2


def test_what_is_left_to_the_listener_has_statistics_whatever_the_order_of_its_elements():
    from gviz.adapters.pytorch.value_capture import Capture

    weight = torch.arange(12.0).reshape(3, 4)
    capture = Capture(Channel(lambda event: None, limit=4, handed_over=1000), lambda what: None)
    value = capture(weight.t())
    assert value.shape == (4, 3)
    assert value.array() is None
    assert value.statistics() == statistics(weight.numpy())
    assert capture(weight).array().tolist() == weight.tolist()


@pytest.mark.parametrize(
    ("dtype", "element"),
    [(torch.float32, 1), (torch.float32, torch.inf), (torch.bfloat16, 1), (torch.bfloat16, torch.inf)],
)
def test_a_listener_finds_what_is_not_finite_among_elements_in_an_order_of_their_own(dtype, element):
    x = torch.ones(30, 20).to(dtype)
    x[3, 4] = element
    log = events_of(lambda: x.t().clone(memory_format=torch.preserve_format), handed_over=1 << 15)
    made = [event for event in of_kind(log, NodeCreated) if event.outputs[0].value.shape == (20, 30)]
    assert made
    assert all(event.first_value.array() is None for event in made)
    assert [may_be_nonfinite(event) for event in made] == [element == torch.inf] * len(made)


def test_a_gradient_that_is_transposed_on_its_way_is_looked_at_once():
    layer = torch.nn.Linear(30, 20)
    flows = of_kind(events_of(lambda: layer(torch.randn(4, 30)).sum().backward(), handed_over=1 << 15), GradFlowed)
    parts = {flow.part.shape: flow.part for flow in flows}
    assert parts[20, 30].data is parts[30, 20].data


def test_a_gradient_whose_dimensions_change_places_is_looked_at_once():
    x = torch.randn(8, 9, 10, requires_grad=True)
    log = events_of(lambda: (x.permute(2, 0, 1) * torch.randn(10, 8, 9)).sum().backward(), handed_over=1 << 15)
    parts = {flow.part.shape: flow.part for flow in of_kind(log, GradFlowed)}
    assert parts[8, 9, 10].data is parts[10, 8, 9].data


def test_only_tensors_whose_elements_lie_without_gaps_are_dense():
    from gviz.adapters.pytorch.tensor_properties import is_dense

    whole = torch.zeros(2, 1, 3, 4)
    assert all(is_dense(whole.permute(order)) for order in permutations(range(4)))
    gaps = whole[..., :3], whole[:, :, ::2], torch.zeros(3, 1).expand(3, 2), torch.zeros(6).as_strided((3, 2), (1, 1))
    assert not any(is_dense(part.permute(*order)) for part in gaps for order in permutations(range(part.dim())))


def test_the_elements_of_a_large_tensor_are_not_copied_to_be_looked_at():
    from gviz.adapters.pytorch.value_capture import Capture

    capture, tensor = Capture(Channel(lambda event: None), lambda what: None), torch.randn(1 << 16)
    capture(tensor)  # what is made once
    tracemalloc.start()
    try:
        capture(tensor)
        assert tracemalloc.get_traced_memory()[1] < tensor.nbytes / 2
    finally:
        tracemalloc.stop()


def test_a_class_may_say_another_shape_than_its_elements_have():
    class Packed(torch.Tensor):
        shape, dtype = property(lambda self: torch.Size([300, 400, 500])), torch.float64

        def stride(self):
            return 1, 1, 1

    def program():
        packed = torch.arange(6.0).as_subclass(Packed).requires_grad_()
        torch.sum(packed * 2).as_subclass(torch.Tensor).backward()
        with torch.no_grad():
            packed.data = torch.ones(6).as_subclass(Packed)
            packed.add_(1)
        return packed, torch.exp(torch.ones(1000).as_subclass(Packed)), torch.exp(part)

    part = torch.ones(1000).as_subclass(Packed)[:6]
    log = events_of(program)
    made = [output.value for event in of_kind(log, NodeCreated) for output in event.outputs]
    made = [value for value in made if value is not None]  # PyTorch 2.4 says nothing of what lies within a call
    assert {value.shape for value in made if value.is_known} == {(6,), (), (1000,)}
    assert {value.dtype for value in made} == {"float32"}
    assert (("size", (6,)),) in [event.attrs for event in of_kind(log, NodeCreated)]
    assert [write.value.array().tolist() for write in of_kind(log, StorageWritten)] == [[2] * 6]
    assert [added.part.array().tolist() for added in of_kind(log, GradAccumulated)] == [[2] * 6]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_elements_that_share_memory_are_not_copied_to_be_looked_at(dtype):
    from gviz.adapters.pytorch.value_capture import Capture

    capture, held = Capture(Channel(lambda event: None), lambda what: None), torch.arange(1000, dtype=dtype)
    expanded, windows = held.expand(1 << 40, 1000), torch.ones(1 << 16, dtype=dtype).unfold(0, 1 << 7, 1)
    tracemalloc.start()
    try:
        assert capture(expanded).stats.zero == 1 << 40
        assert capture(windows).stats.mean == pytest.approx(1)
        assert tracemalloc.get_traced_memory()[1] < windows.nbytes / 4
    finally:
        tracemalloc.stop()


def test_the_end_of_the_stack_is_the_programs_own_error(tmp_path):
    def deeper(x):
        return deeper(x * 3)

    before, here = sys.getrecursionlimit(), len(inspect.stack(0))
    with gviz.record(tmp_path / "t.gviz"):
        x = torch.ones(3)
        try:
            for room in range(60, 90):  # each of what a recording calls is the last that finds no room
                sys.setrecursionlimit(here + room)
                with pytest.raises(RecursionError):
                    deeper(x)
        finally:
            sys.setrecursionlimit(before)
