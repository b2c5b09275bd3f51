"""The private names of PyTorch that gviz uses, each looked for once; without it, something less is said instead.

What is put in the place of PyTorch's own functions is looked for where that is done (`parts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import torch

missing: dict[str, str] = {}
"""What will be missing from a recording, by the name that was not found."""


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
is_batch = _look("_C._functorch.is_legacy_batchedtensor", lambda tensor: False, "batches of gradients")
"""Whether a tensor is one of many gradients that a pass computes at once (``is_grads_batched``), and cannot be read."""

version = _attribute("_version", 0, "writes in place")
base_of = _attribute("_base", None, "the bases of views")
has_symbols = _attribute("_has_symbolic_sizes_strides", True, "nothing but some time")
"""Whether some size of a tensor is a symbol, as while PyTorch compiles."""
_saved_data = _look("_C._autograd.SavedTensor.data", None, "which inputs a call that makes several nodes uses where")


def saved(node: Any, name: str) -> torch.Tensor | None:
    """The tensor that a graph node keeps under a name, as it lies there: where hooks have packed it there is none."""
    kept: Any = getattr(node, f"_raw_saved_{name}", None)
    if _saved_data is None or isinstance(kept, (tuple, list, type(None))) or kept.unpack_hook is not None:
        return None
    tensor = kept.data
    return tensor if isinstance(tensor, torch.Tensor) else None


def is_released(node: Any, names: Iterable[str]) -> bool:
    """Whether a pass has let go of what a graph node kept under these names; no hook that packed it is run."""
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
