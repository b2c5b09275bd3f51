"""``torch.jit.trace``: records the operations of one run of a function as a graph that runs without the function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from gviz.engine import random
from gviz.engine.jit import notices
from gviz.engine.jit.graph_tracer import RecordedGraph, record
from gviz.engine.jit.nested_tensors import containers, flat
from gviz.engine.jit.trace_check import check
from gviz.engine.jit.traced_function import Traced, TracedFunction, TracedModule
from gviz.engine.nn.module import Module
from gviz.engine.tensor import Tensor


def trace(
    func: Callable[..., Any],
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Sequence[Any] | None = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    example_kwarg_inputs: dict[str, Any] | None = None,
) -> Traced:
    """Runs `func` on copies of `example_inputs` (a tensor, or a tuple of tensors) and records its operations.

    `example_kwarg_inputs` passes them by name; the traced function then takes them by position.

    Only operations are recorded: of an ``if`` only the branch that was taken. Converting a tensor to a number, and
    similar conversions, issue a `TracerWarning`. Random numbers are recorded, not drawn again. A module's trace shares
    its parameters. With `check_trace`, function and graph run again, on `example_inputs` and each of `check_inputs`,
    and a difference is reported with the first operation where it appears. Raises TypeError or RuntimeError for inputs
    or results that are not tensors.
    """
    if isinstance(func, (TracedFunction, TracedModule)):
        return func
    if not callable(func):
        raise TypeError(f"jit.trace() takes a function or a module, not {type(func).__name__}")
    if example_kwarg_inputs is not None:
        taking = func.forward if isinstance(func, Module) else func
        example_inputs = inspect.signature(taking).bind(**example_kwarg_inputs).args
    args = arguments(example_inputs)
    name, input_names = described(func, args)
    state = random.get_rng_state()
    recorded = record(
        func, args, name=name, input_names=input_names, parameter_names=parameter_names(func), warns=notices.warn
    )
    _refuse_unstable(recorded, strict)
    module_kind = type(func).__name__ if isinstance(func, Module) else ""
    function = TracedFunction(recorded.graph, recorded.takes, recorded.gives, module_kind=module_kind)
    if check_trace:
        check(func, [args, *map(arguments, check_inputs or ())], function, state, check_tolerance)
    return TracedModule(function, func) if isinstance(func, Module) else function


def arguments(value: Any) -> tuple[Any, ...]:
    """Example inputs as a tuple of arguments. Raises TypeError for none, or for anything without tensors."""
    args = value if isinstance(value, tuple) else (value,)
    try:
        tensors, _ = flat(args)
    except RuntimeError:
        raise TypeError(
            f"jit.trace() needs example inputs that are tensors, or tuples, lists or dicts of them; got {_kinds(args)}"
        ) from None
    if not tensors:
        raise TypeError("jit.trace() needs at least one tensor among the example inputs")
    return args


def described(func: Callable[..., Any], args: tuple[Any, ...]) -> tuple[str, list[str]]:
    """Names for a function, and for each tensor among its arguments."""
    name = type(func).__name__ if isinstance(func, Module) else getattr(func, "__name__", type(func).__name__)
    name = name if name.isidentifier() else "_lambda"
    try:
        takes = list(inspect.signature(func.forward if isinstance(func, Module) else func).parameters)
    except (TypeError, ValueError):
        takes = []
    names: list[str] = []
    for place, arg in enumerate(args):
        stem = takes[place] if place < len(takes) and takes[place] not in ("args", "kwargs") else f"input{place}"
        tensors, _ = flat(arg)
        names += [stem] if isinstance(arg, Tensor) else [f"{stem}_{number}" for number in range(len(tensors))]
    return name, names


def parameter_names(func: Callable[..., Any]) -> dict[int, str]:
    """The paths of a module's parameters and buffers, by id; for a method, those of its module."""
    module = func if isinstance(func, Module) else getattr(func, "__self__", None)
    named = [*module.named_parameters(), *module.named_buffers()] if isinstance(module, Module) else []
    return {id(tensor): path for path, tensor in named}


def _refuse_unstable(recorded: RecordedGraph, strict: bool) -> None:
    for kind in containers(recorded.result) if strict else ():
        text = notices.LIST_OUTPUT.format(kind=kind)
        if kind == "dict":
            raise RuntimeError(text)
        notices.warn(text)


def _kinds(args: tuple[Any, ...]) -> str:
    return ", ".join(type(arg).__name__ for arg in args) or "nothing"
