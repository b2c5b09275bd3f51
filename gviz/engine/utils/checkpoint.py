"""``torch.utils.checkpoint``: save less in forward, compute it again in backward."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from gviz.engine.autograd.function import Function
from gviz.engine.autograd.grad import backward
from gviz.engine.autograd.graph import saved_tensors_hooks
from gviz.engine.graph_pass import running
from gviz.engine.missing import lookup_in
from gviz.engine.modes import enable_grad, no_grad, thread
from gviz.engine.random import fork_rng, get_rng_state, set_rng_state
from gviz.engine.tensor import Tensor
from gviz.engine.utils import messages
from gviz.engine.utils.recomputation import CheckpointError as CheckpointError
from gviz.engine.utils.recomputation import Form, Frame, default_form
from gviz.engine.utils.recomputation import set_checkpoint_early_stop as set_checkpoint_early_stop

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]

_FORMS: dict[str, Form | None] = {"default": default_form, "none": None}


def noop_context_fn() -> Contexts:
    """The contexts of forward and of recomputation, which do nothing."""
    return nullcontext(), nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Run `function` without keeping what its backward needs; backward runs it again for that.

    With `use_reentrant` the whole is one node, whose backward is a pass of its own; without it every operation has its
    node, and what they saved is computed again when the first of them needs it. `debug` is taken and changes nothing.
    """
    if use_reentrant is None:
        warnings.warn(messages.REENTRANT_NOT_GIVEN, stacklevel=2)
        use_reentrant = True
    if not use_reentrant:
        again = _Again(function, kwargs, context_fn, preserve_rng_state)
        return _without_reentrant(again, args, determinism_check, early_stop)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug:
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    return CheckpointFunction.apply(function, preserve_rng_state, *args)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run `functions` one after the other in `segments` parts, each but the last a checkpoint."""
    if use_reentrant is None:
        warnings.warn(messages.SEQUENTIAL_REENTRANT_NOT_GIVEN, stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size, end = len(steps) // segments, 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        part = _one_after_the_other(steps[start:end])
        input = checkpoint(part, input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return _one_after_the_other(steps[end:])(input)


def _one_after_the_other(steps: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def run(input: Any) -> Any:
        for step in steps:
            input = step(input)
        return input

    return run


class CheckpointFunction(Function):
    """The reentrant way: forward keeps the inputs only, backward runs the function again and then a pass through it."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.random_state = get_rng_state() if preserve_rng_state else None
        ctx.others = [None if isinstance(arg, Tensor) else arg for arg in args]
        ctx.tensor_places = [place for place, arg in enumerate(args) if isinstance(arg, Tensor)]
        ctx.save_for_backward(*[arg for arg in args if isinstance(arg, Tensor)])
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if running.innermost is not None and running.innermost.wanted is not None:
            raise RuntimeError(messages.CHECKPOINT_IN_LIMITED_PASS)
        args = list(ctx.others)
        for place, tensor in zip(ctx.tensor_places, ctx.saved_tensors, strict=True):
            args[place] = tensor
        inputs = detach_variable(tuple(args))
        with fork_rng(enabled=ctx.random_state is not None), enable_grad():
            if ctx.random_state is not None:
                set_rng_state(ctx.random_state)
            outputs = ctx.run_function(*inputs)
        listed = (outputs,) if isinstance(outputs, Tensor) else outputs
        pairs = [(o, g) for o, g in zip(listed, grads, strict=True) if isinstance(o, Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([output for output, _ in pairs], [grad for _, grad in pairs])
        return (None, None, *[x.grad if isinstance(x, Tensor) else None for x in inputs])


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tensors among the inputs as leaves of their own, which require grad where the originals do."""
    if not isinstance(inputs, tuple):
        raise RuntimeError("Only tuple of tensors is supported. Got Unsupported input type: ", type(inputs).__name__)
    return tuple([x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs])


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if nothing can get a gradient."""
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


class _Again:
    """What runs a checkpointed function once more as it ran first: its keyword arguments, contexts, random numbers."""

    def __init__(
        self, function: Callable[..., Any], kwargs: dict[str, Any], context_fn: Callable[[], Contexts], preserve: bool
    ) -> None:
        self.function, self.kwargs = function, kwargs
        self.forward_context, self._recompute_context = context_fn()
        self._random_state = get_rng_state() if preserve else None

    def __call__(self, *args: Any) -> None:
        with fork_rng(enabled=self._random_state is not None), self._recompute_context:
            if self._random_state is not None:
                set_rng_state(self._random_state)
            self.function(*args, **self.kwargs)


def _without_reentrant(again: _Again, args: tuple[Any, ...], determinism_check: str, early_stop: bool) -> Any:
    if determinism_check not in _FORMS:
        raise ValueError(f"determinism_check should be one of {list(_FORMS)}, but got {determinism_check}")
    if not thread.grad_enabled:
        return again.function(*args, **again.kwargs)
    frame = Frame(again, args, _FORMS[determinism_check], early_stop)
    with saved_tensors_hooks(frame.hold, frame.give), again.forward_context:
        result = again.function(*args, **again.kwargs)
    frame.is_complete = True
    return result


__getattr__ = lookup_in(__name__)
