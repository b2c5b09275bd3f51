"""Observes the program's calls through a function mode, which PyTorch consults before every operation of its thread.

What a call created is read from its result afterwards; only a few functions need more.

A program may have replaced PyTorch's functions by its own, as profilers that count calls do. PyTorch looks up the
called function by name and passes it to the mode. It therefore passes the replacement, which is already running and
would run twice. `original_of` finds the original function."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import BuiltinFunctionType, FrameType, FunctionType, MethodDescriptorType, MethodWrapperType
from typing import Any
from weakref import WeakKeyDictionary

import torch
from msgspec.structs import replace
from torch.overrides import TorchFunctionMode, handle_torch_function

from gviz.adapters.pytorch import attribute_writes, in_place_writes, operation_catalog, private_api
from gviz.adapters.pytorch.autograd_graph import edge_of, enter, inner_first, visit, widths
from gviz.adapters.pytorch.call_arguments import call_of, named_arguments, tensors_in
from gviz.adapters.pytorch.cuda_graphs import note_results
from gviz.adapters.pytorch.node_creation import (
    NO_CALL,
    InputValues,
    OperationCall,
    emit_returned,
    switched_off,
    untracked,
)
from gviz.adapters.pytorch.private_api import begin_call, end_call, has_to_unpack, innermost_mode, without_overrides
from gviz.adapters.pytorch.recording_state import Session, clock
from gviz.adapters.pytorch.tensor_properties import grad_fn_of, is_cut_off, is_same_memory, version_of
from gviz.source.call_stack import is_hidden

_Special = Callable[[Session, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
_FOLDER = torch.__path__[0]
_SILENT = tuple(
    f"{_FOLDER}/{part}"
    for part in (
        "utils/data", "optim", "nn/init.py", "nn/modules", "nn/parameter.py", "distributed", "_tensor_str.py",
        "serialization.py", "_utils.py", "storage.py", "multiprocessing", "amp",
        "autograd/__init__.py", "autograd/function.py", "autograd/gradcheck.py", "autograd/graph.py",
        "autograd/forward_ad.py", "autograd/profiler.py", "cuda/graphs.py",
    )
)  # fmt: skip
"""Parts of PyTorch whose own untracked operations are not recorded as steps of the program."""

_OPERATORS = {f"{_FOLDER}/_tensor.py", f"{_FOLDER}/overrides.py"}
"""Files in which operators are written in Python and consult a mode."""

_OPTIMIZERS, _MODULES = f"{_FOLDER}/optim", f"{_FOLDER}/nn/modules"
_silent_files: dict[str, str] = {}
_NO_KEYWORDS: dict[str, Any] = {}


class CallListener(TorchFunctionMode):
    """Announces what the calls of a thread create, as long as its recording is in progress."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        session = self._session
        try:
            plan = _plans.get(function)
        except TypeError:  # the program's replacement cannot be hashed
            plan = None
        if plan is None:
            function = original_of(function, sys._getframe(1))
            plan = (_plans.get(function) or _plan(function)) if isinstance(function, Hashable) else _pass_on
        if plan is _pass_on:
            return function(*args, **kwargs) if kwargs else function(*args)
        caller = sys._getframe(1)
        if (
            session.thread.steps_unseen
            and plan in _UNSEEN_IN_STEPS
            and _silent_files.get(caller.f_code.co_filename) == "optimizer"
        ) or not session.is_listening:
            return function(*args, **kwargs) if kwargs else function(*args)
        first = args[0] if args else next(iter(kwargs.values())) if kwargs else None
        if plan is not _observe:
            if plan is _observe_arguments:
                _enter_written(session, function, args, kwargs or _NO_KEYWORDS, caller)
            elif plan is not _observe_update:
                return plan(session, function, args, kwargs or _NO_KEYWORDS)
            elif isinstance(first, torch.Tensor) and not _is_silent(caller):
                with without_overrides():
                    in_place_writes.enter_before(session, first)
        with without_overrides():
            before = version_of(first) if isinstance(first, torch.Tensor) else 0
        if has_to_unpack:
            begin_call()
        try:
            result = function(*args, **kwargs) if kwargs else function(*args)
            began = clock()
            with without_overrides():
                self._look_at(result, first, before, function, args, kwargs or _NO_KEYWORDS, caller)
        finally:  # also after a call that failed: hooks may then pack what is computed next
            if has_to_unpack:
                end_call()
        session.spent += clock() - began
        return result

    def _look_at(
        self, result: Any, first: Any, before: int, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
        caller: Any,
    ) -> None:  # fmt: skip
        """Announce the results of a call, and its write to its first argument."""
        session = self._session
        if function in _COPYING and (kwargs.get("non_blocking") or any(it is True for it in args)):
            session.value.note_copy(args[1] if function is torch.Tensor.copy_ else first, result)
        if isinstance(result, torch.Tensor):
            if result is not first:
                observe(session, function, args, kwargs, (result,), _is_silent(caller), caller=caller)
                return
        elif isinstance(result, (tuple, list)):
            outputs = tuple(tensors_in(result))
            if outputs:
                observe(session, function, args, kwargs, outputs, _is_silent(caller), caller=caller)
                emit_returned(session, result, operation_catalog.called(function))
        if isinstance(first, torch.Tensor) and (
            version_of(first) != before or _writes_uncounted(function, kwargs, first)
        ):
            silent = _is_silent(caller)
            if silent == "optimizer" and session.thread.is_updating(first):
                return
            if silent == "module" and function is torch.Tensor.copy_ and is_same_memory(first, args[1]):
                silent = ""  # load_state_dict() of the module's own memory
            if silent and not session.captures.is_noting and session.marks.is_new(first):
                return  # the state of an optimizer: nothing of it is recorded
            in_place_writes.wrote(session, first, call_of(function, args, kwargs, in_place=True), silent=silent)


_COPYING = {torch.Tensor.to, torch.Tensor.copy_}
"""Functions that copy to the host without waiting for the device if asked to (``non_blocking``)."""


def _writes_uncounted(function: Any, kwargs: Mapping[str, Any], target: torch.Tensor) -> bool:
    """Return whether a call writes to an inference-mode tensor, which has no version counter."""
    if not target.is_inference():
        return False
    if kwargs.get("out") is target or kwargs.get("inplace") is True:
        return True
    name = operation_catalog.called(function)
    return name == "setitem" or (name.endswith("_") and not name.endswith("__"))


def observe(
    session: Session, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any],
    outputs: Sequence[torch.Tensor], silent: str, given: InputValues | None = None, caller: FrameType | None = None,
) -> None:  # fmt: skip
    """Announce the results of a call: new nodes, untracked results, and the memory given as ``out``.

    `caller` is the frame of the call, if it is known.
    """
    if session.captures.is_noting:
        note_results(session, args, kwargs, outputs)
    target = kwargs.get("out")
    if isinstance(target, torch.Tensor):
        in_place_writes.wrote(session, target, call_of(function, args, kwargs, in_place=True), silent=silent)
        return
    if silent == "import":
        return
    if silent == "module" and session.thread.scopes:
        silent = ""  # part of a forward that the program called
    by_node: dict[Any, dict[int, torch.Tensor]] = {}
    loose: list[torch.Tensor] = []
    for tensor in outputs:
        node = grad_fn_of(tensor)
        if node is not None:
            if session.marks.of_node(node) is None:
                by_node.setdefault(node, {})[tensor.output_nr] = tensor
        elif session.marks.of_tensor(tensor) is None:
            loose.append(tensor)
    if not by_node and (silent or not loose):
        if silent == "module" and function is torch.Tensor.detach:  # state_dict(): it has the module's own memory
            for tensor in loose:
                session.marks.bear(tensor, session.channel.stack(), version_of(tensor))
        return
    call = call_of(function, args, kwargs)
    if given is not None:
        call = replace(call, given=given)
    if call.name in _RENORMALIZING and dict(call.attrs).get("max_norm") is not None:
        in_place_writes.emit_changed(session, call.operands[1:2])
    if session.is_partial:  # anything not announced by now was made outside
        for operand in call.operands:
            if isinstance(operand, torch.Tensor):
                edge_of(session, operand)
    if not private_api.knows_outputs and len(by_node) > 1:
        call = replace(call, widths=widths(session, [*by_node]))
    stack = session.channel.stack(caller)
    if len(by_node) == 1:
        ((node, results),) = by_node.items()
        visit(session, node, results, call, stack)
    elif by_node:
        nodes = inner_first(session, by_node)
        for node in nodes:
            visit(session, node, by_node[node], call if node is nodes[-1] else replace(call, is_last=False), stack)
    if loose and not silent:
        _announce_loose(session, call, loose, stack)
    if (_WITH_STATISTICS.get(call.name), True) in call.attrs:
        in_place_writes.emit_changed(session, [it.operand for it in call.untracked if it.name.startswith("running_")])


_WITH_STATISTICS = {"batch_norm": "training", "instance_norm": "use_input_stats"}
"""Functions that write to the running statistics without bumping a version, and the condition for it."""

_RENORMALIZING = {"embedding", "embedding_bag"}
"""Functions that renormalize rows of their second argument in place before they use it."""


def _announce_loose(session: Session, call: OperationCall, outputs: Sequence[torch.Tensor], stack: int) -> None:
    """Announce results that autograd does not track."""
    tensors = [operand for operand in call.operands if isinstance(operand, torch.Tensor)]
    fresh = [tensor for tensor in outputs if not any(tensor is operand for operand in tensors)]
    if call.name in _WITHOUT_NUMBERS:
        for tensor in fresh:
            session.marks.bear(tensor, stack)
        return
    if not tensors or any(tensor.requires_grad and not is_cut_off(tensor) for tensor in fresh):
        for tensor in fresh:
            enter(session, tensor)
        return
    if fresh:
        mark = untracked(session, call, fresh, _why(call.name, tensors, fresh[0]), stack)
        for output_nr, tensor in enumerate(fresh):
            session.marks.remember(tensor, mark, output_nr)


_WITHOUT_NUMBERS = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"}
"""Functions that return uninitialized tensors, which are announced at their first use."""


def _why(name: str, inputs: Sequence[torch.Tensor], result: torch.Tensor) -> str:
    """Return why autograd does not track an operation."""
    if name in ("detach", "data"):
        return name
    if not any(tensor.requires_grad for tensor in inputs):
        return "inputs"
    if not torch.is_grad_enabled():
        return switched_off()
    return "dtype" if not (result.is_floating_point() or result.is_complex()) else "numbers"


def _is_silent(frame: Any) -> str:
    """Return which part of PyTorch the frame belongs to, if its untracked operations are not shown; empty otherwise."""
    path = frame.f_code.co_filename
    known = _silent_files.get(path)
    if known is None:
        known = "other" if path.startswith(_SILENT) else ""
        known = "optimizer" if path.startswith(_OPTIMIZERS) else "module" if path.startswith(_MODULES) else known
        _silent_files[path] = known = known or (_LOUD if path.startswith(_FOLDER) else "")
    return known if known is not _LOUD else "import" if _is_imported(frame) else ""


_LOUD = "loud"
"""Other files of PyTorch, whose operations count as the program's."""


def _is_imported(frame: Any) -> bool:
    """Return whether a PyTorch module is being imported.

    Some compute tables for themselves then, such as Dynamo, which an optimizer's first step imports."""
    while frame is not None and is_hidden(frame.f_code.co_filename):
        if frame.f_code.co_name == "<module>":
            return True
        frame = frame.f_back
    return False


def _foreach(session: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    silent = _is_silent(sys._getframe(2))
    if not silent:
        with without_overrides():
            for tensor in args[0]:
                in_place_writes.enter_before(session, tensor)
    result = function(*args, **kwargs)
    with without_overrides():
        for tensor in args[0]:
            if silent != "optimizer" or session.marks.owner_of(tensor) is not None:  # a ``.grad`` that is cleared
                in_place_writes.wrote(session, tensor, NO_CALL, silent=silent)
    return result


def _divided(session: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run ``1 / x`` as its two operations, so that both can be observed.

    PyTorch computes ``x.reciprocal() * 1`` inside, and afterwards only the product is visible. If another mode or a
    tensor subclass of the program is active, the division runs unchanged for it.
    """
    divisor, number = args
    steps: tuple[tuple[Any, tuple[Any, ...], Any], ...]
    if type(divisor) in _PLAIN and type(number) in _NUMBERS and innermost_mode() is None:
        inverse = divisor.reciprocal()
        result = inverse * number
        steps = (torch.Tensor.reciprocal, (divisor,), inverse), (torch.Tensor.mul, (inverse, number), result)
    else:
        result = function(*args, **kwargs)
        steps = ((function, args, result),)
    began, caller = clock(), sys._getframe(2)
    while caller.f_code.co_filename in _OPERATORS:
        caller = caller.f_back  # type: ignore[assignment]  # a program has called it
    silent = _is_silent(caller)
    with without_overrides():
        for step, arguments, output in steps:
            if isinstance(output, torch.Tensor):
                observe(session, step, arguments, {}, (output,), silent)
    session.spent += clock() - began
    return result


_PLAIN = (torch.Tensor, torch.nn.Parameter)
_NUMBERS = (int, float, bool, complex)


def _pass_on(session: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the plan for functions that return no tensors."""
    raise AssertionError("recognized before it is called")


def _observe(session: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the plan for all other functions: announce their results."""
    raise AssertionError("recognized before it is called")


def _observe_update(session: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the plan for functions that compute the new numbers of a tensor from its old ones: these are kept, too."""
    raise AssertionError("recognized before it is called")


def _observe_arguments(session: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the plan for functions that may update an argument whose name in the program does not show it."""
    raise AssertionError("recognized before it is called")


def _enter_written(
    session: Session, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], caller: FrameType
) -> None:
    """Announce the arguments that a call is about to update, with their numbers before it."""
    silent = _is_silent(caller)
    if silent and not (silent == "module" and session.thread.scopes):
        return
    given = named_arguments(function, args, kwargs)
    name = operation_catalog.called(function)
    targets = [given.get("input")] if given.get("inplace") is True else []
    if name in _RENORMALIZING and given.get("max_norm") is not None:
        targets.append(given.get("weight"))
    if given.get(_WITH_STATISTICS.get(name, "")) is True:
        targets += [given.get("running_mean"), given.get("running_var")]
    with without_overrides():
        for target in targets:
            if isinstance(target, torch.Tensor):
                in_place_writes.enter_before(session, target, even_parameters=True)


def _may_update_arguments(function: Any, name: str) -> bool:
    """Return whether a function may update an argument, and its name does not end in ``_``."""
    if name in _WITH_STATISTICS or name in _RENORMALIZING:
        return True
    code: Any = getattr(function, "__code__", None)
    return _is_of_pytorch(code) and "inplace" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _updates(name: str) -> bool:
    """Return whether a function changes its first argument in place, and does not only overwrite it."""
    return name in _IN_PLACE or (name.endswith("_") and not name.startswith("_") and name not in _OVERWRITING)


_IN_PLACE = {
    "__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__idiv__", "__ifloordiv__", "__imod__",
    "__ipow__", "__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__",
}  # fmt: skip
"""Operators that write in place."""

_OVERWRITING = {
    "bernoulli_", "cauchy_", "copy_", "exponential_", "fill_", "geometric_", "log_normal_", "normal_", "random_",
    "uniform_", "zero_",
}  # fmt: skip
_SPECIAL: dict[str, _Special] = {
    "__rdiv__": _divided,
    "detach_": attribute_writes.detach_,
    "register_hook": attribute_writes.register_hook,
    "register_post_accumulate_grad_hook": attribute_writes.register_hook,
    "requires_grad_": attribute_writes.set_requires_grad,
    "retain_grad": attribute_writes.retain_grad,
}
_VIEWS = {"data", "T", "mT", "H", "mH", "real", "imag"}
_TELLING = {
    "size", "dim", "numel", "stride", "item", "tolist", "numpy", "is_floating_point", "is_complex", "is_contiguous",
    "__len__", "__bool__", "__repr__", "__format__", "__float__", "__int__", "__index__", "__array__", "__hash__",
    "backward", "storage", "untyped_storage", "data_ptr", "storage_offset", "__deepcopy__", "__reduce_ex__",
    "get_device", "element_size", "is_nonzero", "equal", "allclose", "is_same_size", "__dir__", "ndimension",
    "result_type", "can_cast", "promote_types", "__iter__", "is_shared", "share_memory_", "pin_memory", "nelement",
    "__contains__",
}  # fmt: skip
_UNSEEN_IN_STEPS = {_observe, _observe_update, _observe_arguments, _foreach, attribute_writes.get_grad}
"""The plans of operations whose effects in a step of an optimizer are recorded at its end."""

_plans: dict[Any, _Special] = {}


def _plan(function: Any) -> _Special:
    """Return how to handle calls of a function; decided once per function."""
    name = getattr(function, "__name__", "")
    plan: _Special = _observe
    if name == "__get__":
        attribute = operation_catalog.called(function)
        plan = attribute_writes.get_grad if attribute == "grad" else _observe if attribute in _VIEWS else _pass_on
    elif name in ("__set__", "__delete__"):
        attribute = getattr(getattr(function, "__self__", None), "__name__", "")
        setters = {
            "grad": attribute_writes.set_grad,
            "requires_grad": attribute_writes.set_requires_grad,
            "data": in_place_writes.set_data,
        }
        plan = setters.get(attribute, _pass_on)
    elif "_foreach_" in name and name.endswith("_"):  # ``_amp_foreach_…_`` is what a `GradScaler` calls
        plan = _foreach
    elif name in _TELLING:
        plan = _pass_on
    else:
        of_arguments = _observe_arguments if _may_update_arguments(function, name) else _observe
        plan = _SPECIAL.get(name, _observe_update if _updates(name) else of_arguments)
    if len(_plans) >= operation_catalog.FUNCTIONS:
        _plans.clear()
    _plans[function] = plan
    return plan


_ASKS = handle_torch_function.__code__
_WRITTEN_IN_C = (BuiltinFunctionType, MethodDescriptorType, MethodWrapperType, type(object.__init__))
_C_METHODS = torch.Tensor.__base__
_replaced: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""The original functions by the program's replacements for them. An entry is freed with its replacement."""


def original_of(function: Any, caller: FrameType) -> Any:
    """Return the function that was called when the frame `caller` consults a mode; usually `function` itself."""
    if isinstance(function, _WRITTEN_IN_C) or _is_of_pytorch(getattr(function, "__code__", None)):
        return function
    try:
        original = _replaced.get(function)
    except TypeError:  # it cannot be hashed, or has no weak references
        return _look_for_original(function, caller)
    if original is None:
        original = _look_for_original(function, caller)
        if original is not function:
            _replaced[function] = original
    return original


def _look_for_original(function: Any, caller: FrameType) -> Any:
    if caller.f_code is not _ASKS:
        return _method_in_place_of(function)
    asker = caller.f_back.f_code if caller.f_back is not None else None
    return _function_with(asker, function) if _is_of_pytorch(asker) else function


def _is_of_pytorch(code: Any) -> bool:
    return getattr(code, "co_filename", "").startswith(_FOLDER)


def _method_in_place_of(function: Any) -> Any:
    """Find a method written in C. It has no frame, so it is looked up by the name that was replaced."""
    names = [name for name, value in vars(torch.Tensor).items() if value is function]
    return next((getattr(_C_METHODS, name) for name in names if hasattr(_C_METHODS, name)), function)


def _function_with(code: Any, otherwise: Any) -> Any:
    """Return the function whose code runs in a frame; the frame gives only the code."""
    referring = gc.get_referrers(code)
    return next((it for it in referring if isinstance(it, FunctionType) and it.__code__ is code), otherwise)
