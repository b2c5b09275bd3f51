"""The private names of PyTorch that gviz uses, each looked for once; without it, something less is said instead.

What is put in the place of PyTorch's own functions is looked for where that is done (`attachment`), by `replace`.
`SINCE` has the names that older releases lack; the others are in every release from 2.4 on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, nullcontext
from typing import Any

import torch

SINCE = {
    "_C._functions.AccumulateGrad._input_metadata": (2, 6),
    "_C._autograd.SavedTensor.data": (2, 9),
}
"""The first release that has a name, of those that some supported release lacks."""

missing: dict[str, str] = {}
"""What will be missing from a recording, by the name that was not found.

What an older release lacks (`SINCE`) is said where a program makes it matter, all else when a recording begins.
"""


def _look(name: str, otherwise: Any, loss: str) -> Any:
    """What ``torch.NAME`` is, or what takes its place at the loss of something."""
    found: Any = torch
    for part in name.split("."):
        if not hasattr(found, part):
            missing[name] = loss
            return otherwise
        found = getattr(found, part)
    return found


def _attribute(name: str, otherwise: Any, loss: str) -> Callable[[torch.Tensor], Any]:
    """Reads a private attribute of tensors."""
    found = _look(f"Tensor.{name}", None, loss)
    return (lambda tensor: otherwise) if found is None else found.__get__


def _no_modes(*_: Any) -> int:
    return 0


def _nothing(*_: Any) -> None:
    """No mode, no state."""


_TRACED = "the difference between computing and making a graph, which will hold what gviz reads"
_REGIONS = "compiled regions, which will run as written"

without_overrides: Any = _look("_C.DisableTorchFunction", nullcontext, "operations")
"""A context in which what gviz itself computes is seen by no mode, not even its own."""
can_hide = without_overrides is not nullcontext
without_modes: Any = _look("_C._DisableTorchDispatch", nullcontext, "secrecy: dispatch modes will see gviz's reads")
"""A context in which the program's own dispatch modes do not see what gviz reads."""

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
"""By the number of its object, what operation a Python function is in ``torch.jit.script``."""

task_number = _look("_C._current_graph_task_id", lambda: -1, "the pass of a step on a device's thread, if several run")
schemas_of = _look("_C._jit_get_schemas_for_operator", lambda name: [], "the names of some arguments")
is_wrapped = _look("_C._functorch.is_functorch_wrapped_tensor", lambda tensor: False, "transforms")
"""Whether a tensor belongs to a `torch.func` transform, which gives it no numbers of its own."""
stream_number: Callable[[int], int] = getattr(
    torch._C, "_cuda_getCurrentRawStream", lambda device: torch.cuda.current_stream(device).cuda_stream
)
"""The address of a CUDA device's current stream. Builds without CUDA lack the name, and lose nothing."""
is_batch = _look("_C._functorch.is_legacy_batchedtensor", lambda tensor: False, "batches of gradients")
"""Whether a tensor is one of many gradients that a pass computes at once (``is_grads_batched``), and cannot be read."""

version = _attribute("_version", 0, "writes in place")
base_of = _attribute("_base", None, "the bases of views")
has_symbols = _attribute("_has_symbolic_sizes_strides", True, "nothing but some time")
"""Whether some size of a tensor is a symbol, as while PyTorch compiles."""
_metadata = _look("_C._functions.AccumulateGrad._input_metadata", None, "shapes of what is computed within a call")
knows_outputs = _metadata is not None
"""Whether a graph node says how many outputs it was made for, and their shapes."""


def outputs_of(node: Any) -> Sequence[Any]:
    """What a graph node says of its outputs; nothing where it does not."""
    return node._input_metadata if knows_outputs else ()


_saved_data = _look("_C._autograd.SavedTensor.data", None, "some inputs of what was computed unseen")
has_to_unpack = _saved_data is None
"""Whether reading a saved tensor always runs its unpack hook: before PyTorch 2.9 there is no other way."""
_next_node = _look("_C._autograd._get_sequence_nr", None, "nothing") if has_to_unpack else None


class _Call(threading.local):
    """The sequence number of the first node that a thread's current call can make, if `has_to_unpack`."""

    first_node = 1 << 64


_call = _Call()


def begin_call() -> None:
    """The nodes that this thread makes from now on may be unpacked: see `saved`."""
    _call.first_node = 1 << 64 if _next_node is None else _next_node()


def end_call() -> None:
    """The nodes of the call have been read. Hooks that are gone by now may have packed any older node."""
    _call.first_node = 1 << 64


def cannot_unpack(node: Any) -> bool:
    """Whether the saved tensors of a graph node must not be read, because it is older than the current call."""
    return has_to_unpack and node._sequence_nr() < _call.first_node


def saved(node: Any, name: str) -> torch.Tensor | None:
    """The tensor that a graph node keeps under a name, as it lies there: where hooks have packed it there is none.

    Before PyTorch 2.9 a saved tensor does not show whether hooks packed it. So only nodes of the current call are read,
    and only while the thread has no hooks.
    """
    kept: Any = getattr(node, f"_raw_saved_{name}", None)
    if isinstance(kept, (tuple, list, type(None))):
        return None
    if has_to_unpack:
        if cannot_unpack(node) or _packs():
            return None
        tensor = _unpacked(node, name)
    else:
        tensor = None if kept.unpack_hook is not None else kept.data
    return tensor if isinstance(tensor, torch.Tensor) else None


def _unpacked(node: Any, name: str) -> Any:
    try:
        return getattr(node, f"_saved_{name}")
    except RuntimeError:  # it was released, or written to since
        return None


def _packs() -> bool:
    """Whether hooks pack what this thread saves. PyTorch shows it only by refusing to disable hooks that exist."""
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
    """Whether a pass has let go of what a graph node kept under these names; no hook that packed it is run.

    Before PyTorch 2.9 this cannot be known, and is False.
    """
    if has_to_unpack:
        return False
    try:
        for name in names:
            own = name.removeprefix("saved_")  # a custom function keeps all under ``saved_tensors``
            kept: Any = getattr(node, f"_raw_saved_{own}", None)
            if getattr(kept, "data", kept) is None and getattr(kept, "unpack_hook", None) is None:
                getattr(node, f"_saved_{own}", None)  # None where nothing was ever kept
    except RuntimeError:
        return True
    return False


is_view: Callable[[torch.Tensor], bool] = _look("Tensor._is_view", lambda tensor: False, "views")


def is_bookkeeping(function: type) -> bool:
    """Whether a custom function only keeps the inputs of a checkpoint, and no backward pass goes through it.

    PyTorch before 2.12 has such a function, and so have packages that copied its checkpoints.
    """
    return function.__name__ == "_NoopSaveInputs"


def replace(home: Any, name: str, value: Any, leaving: ExitStack) -> None:
    """Put something in the place of what a module or class holds, until the recording ends.

    Where that is an operation to ``torch.jit.script``, so is what takes its place.
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
