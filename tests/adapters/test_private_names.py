"""Every private name of PyTorch that gviz uses may be gone: less is recorded then, and that is said."""

import importlib
import sys
from contextlib import nullcontext

import pytest

from gviz.events import StepStarted
from tests.adapters.recorded import events_of, of_kind, operations

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
    "_C._autograd.SavedTensor": "which inputs",
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
            importlib.import_module(f"{ROOM}.private")
        importlib.import_module(f"{ROOM}.attach")

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


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", AT_IMPORT)
def test_without_a_name_that_is_looked_for_at_import(name, without):
    without(name)
    with pytest.warns(UserWarning, match=AT_IMPORT[name]):
        log = events_of(program)
    assert operations(log)[-2:] == ["MulBackward0", "SumBackward0"]
    assert len(of_kind(log, StepStarted)) == 4


@pytest.mark.parametrize("name", AT_START)
def test_without_a_name_that_is_looked_for_at_the_start(name, monkeypatch):
    holder = torch
    *homes, last = name.split(".")
    for part in homes:
        holder = getattr(holder, part)
    monkeypatch.delattr(holder, last)
    with pytest.warns(UserWarning, match=AT_START[name]) if AT_START[name] else nullcontext():
        log = events_of(lambda: torch.ones(1, requires_grad=True) * 2)
    assert operations(log) == ["MulBackward0"]
