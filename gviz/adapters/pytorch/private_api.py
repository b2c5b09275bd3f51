"""The private names of PyTorch that gviz uses, each looked up once. Without one, the recording lacks something.

Replacements for PyTorch's own functions are installed with `replace`, and their names are looked up there
(`attachment`). `SINCE` has the names that older releases lack; the others are in every release from 2.4 on.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, nullcontext
from typing import Any

import torch

from gviz.source.saved_tensor_names import saved_names

SINCE = {
    "_C._functions.AccumulateGrad._input_metadata": (2, 6),
    "_C._autograd.SavedTensor.data": (2, 9),
}
"""The first release that has a name, for names that some supported release lacks."""

missing: dict[str, str] = {}
"""What a recording will lack, by the name that was not found.

What an older release lacks (`SINCE`) is reported when a program makes it matter, everything else when a recording
begins.
"""


def _look(name: str, otherwise: Any, loss: str) -> Any:
    """Return the object ``torch.NAME``, or `otherwise` if it does not exist; `loss` describes what is lost
    without it.
    """
    thing: Any = torch
    for part in name.split("."):
        if not hasattr(thing, part):
            missing[name] = loss
            return otherwise
        thing = getattr(thing, part)
    return thing


def _attribute(name: str, otherwise: Any, loss: str) -> Callable[[torch.Tensor], Any]:
    """Return a function that reads a private attribute of tensors."""
    descriptor = _look(f"Tensor.{name}", None, loss)
    return (lambda tensor: otherwise) if descriptor is None else descriptor.__get__


def _no_modes(*_: Any) -> int:
    return 0


def _nothing(*_: Any) -> None:
    """Return no mode and no state."""


_TRACED = "the difference between computing and making a graph, which will hold what gviz reads"
_REGIONS = "compiled regions, which will run as written"

without_overrides: Any = _look("_C.DisableTorchFunction", nullcontext, "operations")
"""A context in which gviz's own computation is not seen by any function mode, not even its own."""
can_hide = without_overrides is not nullcontext
without_modes: Any = _look("_C._DisableTorchDispatch", nullcontext, "secrecy: dispatch modes will see gviz's reads")
"""A context in which the program's dispatch modes do not see what gviz reads."""

tracing_state = _look("_C._get_tracing_state", _nothing, _TRACED)
count_dispatch_modes = _look("_C._len_torch_dispatch_stack", _no_modes, _TRACED)
dispatch_mode = _look("_C._get_dispatch_mode", _nothing, _TRACED)
dispatch_mode_keys = _look("_C._TorchDispatchModeKey.__members__", {}, _TRACED)

innermost_mode = _look("overrides._get_current_function_mode", _nothing, "an end of listening: it will idle on")
count_modes = _look("_C._len_torch_function_stack", None, _REGIONS)
pop_mode = _look("_C._pop_torch_function_stack", None, _REGIONS)
push_mode = _look("_C._push_on_torch_function_stack", None, _REGIONS)
can_move_modes = None not in (count_modes, pop_mode, push_mode)

in_scripts: dict[int, str] = _look("jit._builtins._get_builtin_table", dict, "scripts of what warns")()
"""The operation of a Python function in ``torch.jit.script``, by the function's id."""

_set_versions = _look("_C._autograd._unsafe_set_version_counter", None, "restored versions: they rise instead")


def set_version(tensor: torch.Tensor, version: int) -> None:
    """Set the version of a tensor that has the numbers of this version again."""
    if _set_versions is None:
        return
    try:
        _set_versions((tensor,), (version,))
    except TypeError:  # older releases take one tensor
        _set_versions(tensor, version)


task_number = _look("_C._current_graph_task_id", lambda: -1, "the pass of a step on a device's thread, if several run")
schemas_of = _look("_C._jit_get_schemas_for_operator", lambda name: [], "the names of some arguments")
is_wrapped = _look("_C._functorch.is_functorch_wrapped_tensor", lambda tensor: False, "transforms")
"""Whether a tensor belongs to a `torch.func` transform, and therefore has no numbers of its own."""
stream_number: Callable[[int], int] = getattr(
    torch._C, "_cuda_getCurrentRawStream", lambda device: torch.cuda.current_stream(device).cuda_stream
)
"""The address of a CUDA device's current stream. Builds without CUDA lack the name, and lose nothing."""
is_batch = _look("_C._functorch.is_legacy_batchedtensor", lambda tensor: False, "batches of gradients")
"""Whether a tensor is one of a batch of gradients (``is_grads_batched``), and cannot be read."""

version = _attribute("_version", 0, "writes in place")
base_of = _attribute("_base", None, "the bases of views")
has_symbols = _attribute("_has_symbolic_sizes_strides", True, "nothing but some time")
"""Whether some size of a tensor is symbolic, as while PyTorch compiles."""
_metadata = _look("_C._functions.AccumulateGrad._input_metadata", None, "shapes of what is computed within a call")
knows_outputs = _metadata is not None
"""Whether a graph node shows how many outputs it has, and their shapes."""


def outputs_of(node: Any) -> Sequence[Any]:
    """Return a graph node's metadata of its outputs; empty if the release does not show it."""
    return node._input_metadata if knows_outputs else ()


_saved_data = _look("_C._autograd.SavedTensor.data", None, "some inputs of what was computed unseen")
has_to_unpack = _saved_data is None
"""Whether reading a saved tensor always runs its unpack hook: before PyTorch 2.9 there is no other way."""
_next_node = _look("_C._autograd._get_sequence_nr", None, "nothing") if has_to_unpack else None


class _Call(threading.local):
    """The sequence number of the first node that a thread's current call can create, if `has_to_unpack`."""

    first_node = 1 << 64


_call = _Call()


def begin_call() -> None:
    """Allow unpacking of the nodes that this thread creates from now on: see `saved`."""
    _call.first_node = 1 << 64 if _next_node is None else _next_node()


def end_call() -> None:
    """End the call. Hooks that no longer exist may have packed the saved tensors of any older node."""
    _call.first_node = 1 << 64


def cannot_unpack(node: Any) -> bool:
    """Return whether a graph node's saved tensors must not be read, because it is older than the current call."""
    return has_to_unpack and node._sequence_nr() < _call.first_node


def saved(node: Any, name: str) -> torch.Tensor | None:
    """Return the tensor that a graph node saved under a name; None if hooks have packed it.

    Before PyTorch 2.9 a saved tensor does not show whether hooks packed it. So only nodes of the current call are read,
    and only while the thread has no hooks.
    """
    saved_variable: Any = getattr(node, f"_raw_saved_{name}", None)
    if isinstance(saved_variable, (tuple, list, type(None))):
        return None
    if has_to_unpack:
        if cannot_unpack(node) or _packs():
            return None
        tensor = _unpacked(node, name)
    else:
        tensor = None if saved_variable.unpack_hook is not None else saved_variable.data
    return tensor if isinstance(tensor, torch.Tensor) else None


def _unpacked(node: Any, name: str) -> Any:
    try:
        return getattr(node, f"_saved_{name}")
    except RuntimeError:  # it was released, or modified since
        return None


def _packs() -> bool:
    """Return whether hooks pack what this thread saves. PyTorch shows it only by refusing to disable existing hooks."""
    autograd = torch._C._autograd
    before = autograd._saved_tensors_hooks_get_disabled_error_message()
    try:
        autograd._saved_tensors_hooks_disable(before or "asked by gviz")
    except RuntimeError:
        return True
    finally:
        if before is None:
            autograd._saved_tensors_hooks_enable()
    return False


def is_released(node: Any, names: Iterable[str]) -> bool:
    """Return whether a pass has released what a graph node saved under these names. Runs no hook that packed it.

    Always False before PyTorch 2.9, which does not show it.
    """
    if has_to_unpack:
        return False
    try:
        for name in names:
            own = name.removeprefix("saved_")  # a custom function saves all under ``saved_tensors``
            saved_variable: Any = getattr(node, f"_raw_saved_{own}", None)
            if (
                getattr(saved_variable, "data", saved_variable) is None
                and getattr(saved_variable, "unpack_hook", None) is None
            ):
                getattr(node, f"_saved_{own}", None)  # None if nothing was ever saved
    except RuntimeError:
        return True
    return False


def names_saved_by_function(node: Any) -> tuple[str, ...] | None:
    """Return the names of the tensors that a node of a custom function saved, from the source of its forward.

    The result is empty if it saved none, and None if the source does not name all of them.
    """
    try:
        saved: Any = getattr(node, "_raw_saved_tensors", None)
    except RuntimeError:  # a backward pass has released them
        return None
    if saved is None:
        return None
    if not saved:
        return ()
    function: Any = getattr(type(node), "_forward_cls", None)
    if function is None:
        return None
    has_setup = function.setup_context is not torch.autograd.Function.setup_context
    names = saved_names(function.setup_context if has_setup else function.forward, is_setup=has_setup)
    return names if len(names) == len(saved) else None


optimizer_hooks: Sequence[Any] = [
    getattr(sys.modules["torch.optim.optimizer"], f"_global_optimizer_{when}_hooks", ()) for when in ("pre", "post")
]
"""The hooks for the steps of all optimizers, gviz's own among them."""

is_view: Callable[[torch.Tensor], bool] = _look("Tensor._is_view", lambda tensor: False, "views")


def is_bookkeeping(function: type) -> bool:
    """Return whether a custom function only keeps the inputs of a checkpoint, so that no backward pass goes through it.

    PyTorch before 2.12 has such a function, and so have packages that copied its checkpoints.
    """
    return function.__name__ == "_NoopSaveInputs"


def replace(home: Any, name: str, value: Any, leaving: ExitStack) -> None:
    """Replace an attribute of a module or class until the recording ends.

    If the original is an operation to ``torch.jit.script``, the replacement is one too.
    """
    before = vars(home)[name]
    setattr(home, name, value)
    if id(before) in in_scripts:
        in_scripts[id(value)] = in_scripts[id(before)]
        leaving.callback(in_scripts.pop, id(value), None)

    def put_back() -> None:
        if vars(home).get(name) is value:
            setattr(home, name, before)

    leaving.callback(put_back)
