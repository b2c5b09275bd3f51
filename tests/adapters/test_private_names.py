"""Every private name of PyTorch that gviz uses may be gone: less is recorded then, and that is said."""

import importlib
import sys

import pytest

from gviz.events import NOT_SEEN, NodeCreated, OpSeen, StepStarted, Warned
from tests.adapters.recorded import RELEASE, events_of, of_kind, operations

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

ROOM = "gviz.adapters.pytorch"
AT_IMPORT = {
    "_C.DisableTorchFunction": "operations",
    "_C._DisableTorchDispatch": "secrecy",
    "_C._get_tracing_state": "making a graph",
    "_C._len_torch_dispatch_stack": "making a graph",
    "_C._get_dispatch_mode": "making a graph",
    "_C._TorchDispatchModeKey": "making a graph",
    "overrides._get_current_function_mode": "an end of listening",
    "_C._len_torch_function_stack": "compiled regions",
    "_C._pop_torch_function_stack": "compiled regions",
    "_C._push_on_torch_function_stack": "compiled regions",
    "_C._current_graph_task_id": "device's thread",
    "_C._jit_get_schemas_for_operator": "names of some arguments",
    "_C._functorch.is_functorch_wrapped_tensor": "transforms",
    "_C._functorch.is_legacy_batchedtensor": "batches of gradients",
    "Tensor._version": "writes in place",
    "Tensor._base": "bases of views",
    "Tensor._is_view": "views",
    "Tensor._has_symbolic_sizes_strides": "some time",
}
AT_START = {
    "autograd.graph._engine_run_backward": "backward passes",
    "autograd._engine_run_backward": "backward passes",
    "nn.modules.module._has_any_global_hook": "",
}


class Without:
    """A namespace that lacks one name."""

    def __init__(self, whole, name):
        self._whole, self._parts = whole, name.split(".", 1)

    def __getattr__(self, name):
        first, *rest = self._parts
        if name == first and not rest:
            raise AttributeError(name)
        found = getattr(self._whole, name)
        return Without(found, rest[0]) if name == first else found


@pytest.fixture
def without():
    """Imports the adapter anew, as if PyTorch had not a name; PyTorch itself still has it."""
    before = forgotten()

    def import_it(name):
        with pytest.MonkeyPatch.context() as gone:
            gone.setitem(sys.modules, "torch", Without(torch, name))
            importlib.import_module(f"{ROOM}.private_api")
        importlib.import_module(f"{ROOM}.attachment")

    yield import_it
    while torch.overrides._get_current_function_mode_stack():  # one that could not be ended idles on
        torch.overrides._get_current_function_mode().__exit__(None, None, None)
    forgotten()
    sys.modules.update(before)


def forgotten():
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith(ROOM)}


def program():
    model = torch.nn.Linear(2, 2)
    loss = (model(torch.ones(1, 2)) * 2).sum()
    loss.backward()
    return loss


def lost(log):
    """What a recording says that it has not, with this version of PyTorch."""
    return [event for event in of_kind(log, Warned) if event.unseen == "version"]


@pytest.mark.parametrize("name", AT_IMPORT)
def test_without_a_name_that_is_looked_for_at_import(name, without):
    without(name)
    log = events_of(program)
    said, *_ = lost(log)  # older releases lack the shapes of what is within a call as well
    assert said.category == NOT_SEEN
    assert AT_IMPORT[name] in said.message
    assert name in said.message
    assert operations(log)[-2:] == ["MulBackward0", "SumBackward0"]
    assert len(of_kind(log, StepStarted)) == 4


@pytest.mark.parametrize("name", AT_START)
def test_without_a_name_that_is_looked_for_at_the_start(name, monkeypatch):
    holder = torch
    *homes, last = name.split(".")
    for part in homes:
        holder = getattr(holder, part)
    monkeypatch.delattr(holder, last, raising=False)  # older releases lack it anyway
    log = events_of(lambda: torch.ones(1, requires_grad=True) * 2)
    assert [AT_START[name] in said.message for said in lost(log)] == [True] * bool(AT_START[name])
    assert operations(log) == ["MulBackward0"]


def test_a_release_lacks_what_is_said_of_it():
    from gviz.adapters.pytorch import private_api

    assert set(private_api.missing) == {name for name, since in private_api.SINCE.items() if since > RELEASE}


def cells():
    x = torch.tensor([[1.0, 2.0]])
    return torch.nn.GRUCell(2, 3)(x), torch.nn.RNNCell(2, 3)(x), torch.nn.functional.linear(x, leaf(), leaf(3))


def leaf(*shape):
    return torch.ones(shape or (3, 2), requires_grad=True)


def described(log):
    """What was announced, as far as an older release can tell: operations, and their inputs by slot."""
    ops = {event.op: event for event in of_kind(log, OpSeen)}
    made = of_kind(log, NodeCreated)
    return [(ops[it.op].name, it.inputs, ops[it.op].slots[: len(it.inputs)], len(it.outputs)) for it in made]


@pytest.mark.parametrize("name", ["_C._autograd.SavedTensor", "_C._functions"])
def test_an_older_release_tells_the_same_structure(name, without):
    usual = described(events_of(cells))
    without(name)
    assert described(events_of(cells)) == usual


def test_what_hooks_have_packed_is_not_unpacked_where_nobody_can_tell(without):
    def program():
        x, unpacked = leaf(), []
        with torch.autograd.graph.saved_tensors_hooks(lambda it: it, unpacked.append):
            torch.nn.functional.linear(torch.ones(1, 2), x)
            torch.nn.functional.kl_div(x.log_softmax(1), torch.ones(3, 2), reduction="batchmean")
            with torch._C.DisableTorchFunction():
                late = x * x
        late * 2
        assert not unpacked
        with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
            torch.nn.functional.linear(torch.ones(1, 2), x)
            assert torch._C._autograd._saved_tensors_hooks_get_disabled_error_message() == "not here"
        assert torch._C._autograd._saved_tensors_hooks_get_disabled_error_message() is None

    without("_C._autograd.SavedTensor")
    events_of(program)


def test_nothing_is_unpacked_after_a_call_that_failed(without):
    def program():
        x, seed, unpacked = leaf(2), torch.ones(2), []
        with torch.autograd.graph.saved_tensors_hooks(lambda it: it, lambda it: unpacked.append(it) or it):
            with pytest.raises(RuntimeError):
                torch.ones(2) @ torch.ones(3)
            with torch._C.DisableTorchFunction():
                unseen = x * torch.ones(2)
        unseen.backward(seed)  # looks at the node while no call is made
        return len(unpacked)

    alone, counts = program(), []
    without("_C._autograd.SavedTensor")
    events_of(lambda: counts.append(program()))
    assert counts == [alone]


def unseen_halves(x):
    """Two outputs of a node that nobody has heard of being made, one after the other."""
    first, second = x
    return first * 2, second * 3


@pytest.mark.parametrize("program", [cells, lambda: unseen_halves(leaf(2, 3) * 1)])
def test_no_edge_leads_to_an_output_that_was_not_announced(program, without):
    without("_C._functions")
    outputs = {}
    for made in of_kind(events_of(program), NodeCreated):
        assert all(not node or output_nr < outputs[node] for node, output_nr in made.inputs)
        outputs[made.node] = len(made.outputs)


def test_shapes_that_an_older_release_does_not_tell_are_said_to_be_lacking_once(without):
    without("_C._functions")
    log = events_of(lambda: (cells(), cells()))
    (said,) = lost(log)
    assert "lacks shapes of what is computed within a call" in said.message
