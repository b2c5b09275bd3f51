"""``torch.autograd.Function``: operations whose forward and backward the program writes itself."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

from gviz import emit
from gviz.engine import announce_operation, messages, watching
from gviz.engine.announce_function import function_called, function_ran
from gviz.engine.apply import any_requires_grad, apply, edges_of, why_untracked
from gviz.engine.autograd.function_node import NO_TENSOR, FunctionCtx, FunctionNode
from gviz.engine.missing import lookup_in
from gviz.engine.modes import no_grad, thread
from gviz.engine.node import Grad, Node
from gviz.engine.ops.copying import detach
from gviz.engine.ops.shape import alias
from gviz.engine.tensor import Tensor
from gviz.engine.views import check_view, rebase
from gviz.events import OpSeen
from gviz.site import warn
from gviz.values import Value

__all__ = ["Function", "FunctionCtx", "once_differentiable"]

F = TypeVar("F", bound=Callable[..., Any])


class Function:
    """A differentiable operation of one's own: ``forward`` and ``backward`` as static methods, used by `apply`.

    ``forward(ctx, *args)`` computes on tensors without being recorded; or, without `ctx`, beside a ``setup_context(ctx,
    inputs, output)``. ``backward(ctx, *grads)``, also called ``vjp``, gives one gradient for each argument.
    """

    _node_class: ClassVar[type[FunctionNode]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        name = cls.__name__ + "Backward"
        members = {"__slots__": (), "function": cls, "ctx_class": type(name, (FunctionCtx,), {})}
        cls._node_class = type(name, (FunctionNode,), members)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        text = messages.FUNCTION_INSTANTIATED.format(kind=type(self))
        warn(text, DeprecationWarning)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(messages.LEGACY_FUNCTION)

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result; to be overridden."""
        raise NotImplementedError(messages.NO_FORWARD)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Prepare `ctx` for ``backward``, where ``forward`` does not take it."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of the arguments from those of the outputs; to be overridden."""
        raise NotImplementedError(messages.NO_BACKWARD)

    vjp = backward

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run ``forward`` and leave a node behind whose rule is ``backward``, if a gradient may be wanted."""
        if cls._has_setup():
            args, kwargs = _bound(cls.forward, args, kwargs), {}
        else:
            _check_names(cls.forward, args, kwargs)
        if watching.watchers and (recorder := watching.recorder()) is not None:
            recorder.called(cls.__name__)
        given = (*args, *kwargs.values())
        node = cls._node_class(given)
        tensors = [arg for arg in given if isinstance(arg, Tensor)]
        inputs = _Inputs(given, tensors, edges_of(tensors))
        if emit.channel is not None and thread.grad_enabled and any_requires_grad(tensors):
            inputs.values = function_called(emit.channel, node, tensors)
        returned = _run_forward(cls, node.ctx, args, kwargs)
        outputs = returned if isinstance(returned, tuple) else (returned,)
        finished = _finished(node, inputs, outputs)
        return tuple(finished) if isinstance(returned, tuple) else finished[0]

    @classmethod
    def _has_setup(cls) -> bool:
        """Whether ``forward`` leaves the context to ``setup_context``."""
        return cls.setup_context is not Function.setup_context

    @classmethod
    def _backward_of(cls) -> Callable[..., Any]:
        own_backward, own_vjp = cls.backward is not Function.backward, cls.vjp is not Function.vjp
        if own_backward and own_vjp:
            raise RuntimeError(messages.BACKWARD_AND_VJP)
        return cls.vjp if own_vjp else cls.backward


class _Inputs:
    """The arguments of one call: all of them, the tensors among them, where the gradients of these go, what they held.

    The `values` are kept of the first calls in a recording.
    """

    __slots__ = ("args", "edges", "tensors", "values")

    def __init__(self, args: tuple[Any, ...], tensors: list[Tensor], edges: Sequence[Any]) -> None:
        self.args, self.tensors, self.edges = args, tensors, edges
        self.values: tuple[Value | None, ...] = ()


def _bound(forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments with the defaults of ``forward``, by position."""
    bound = inspect.signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


def _check_names(forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """TypeError, in PyTorch's words, for a keyword argument that ``forward`` does not take, or has already."""
    taken = inspect.signature(forward).parameters if kwargs else {}
    given = list(taken)[: 1 + len(args)]
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values())
    for name in kwargs:
        if name in given:
            raise TypeError(f"forward() got multiple values for argument '{name}'")
        if name not in taken and not open_ended:
            raise TypeError(f"forward() got an unexpected keyword argument '{name}'")


def _run_forward(cls: type[Function], ctx: FunctionCtx, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    before, thread.grad_enabled = thread.grad_enabled, False
    try:
        if not cls._has_setup():
            return cls.forward(ctx, *args, **kwargs)
        output = cls.forward(*args)
        cls.setup_context(ctx, args, output)
        return output
    finally:
        thread.grad_enabled = before


def _finished(node: FunctionNode, inputs: _Inputs, outputs: tuple[Any, ...]) -> list[Any]:
    """The outputs as the caller gets them, coming from `node` if a gradient may be wanted."""
    ctx, tensors = node.ctx, inputs.tensors
    _check_marks(ctx)
    for dirty in ctx.dirty_tensors:
        dirty._counter[0] += 1
    recorded = thread.grad_enabled and any_requires_grad(tensors)
    known = None if emit.channel is None else announce_operation.edges(emit.channel, tensors)
    node.next_edges = inputs.edges if recorded else ()
    node.results = [(o._array.shape, o._array.dtype) if isinstance(o, Tensor) else None for o in outputs]
    node.outputs = tuple([form or NO_TENSOR for form in node.results])
    finished = [
        _output(node, number, output, tensors, recorded) if isinstance(output, Tensor) else output
        for number, output in enumerate(outputs)
    ]
    if sum(isinstance(o, Tensor) and o._grad_fn is node for o in finished) > 1:
        _forbid_writes(finished)
    if any(not _among(dirty, outputs) for dirty in ctx.dirty_tensors):
        raise RuntimeError(messages.DIRTY_NOT_RETURNED)
    if recorded:
        node.keep(finished)
    ctx.to_save = ctx.dirty_tensors = ctx.non_differentiable = ()
    if known is not None and emit.channel is not None:
        untracked = "" if recorded else why_untracked(tensors)
        made = [o if isinstance(o, Tensor) else None for o in finished]
        function_ran(emit.channel, node, inputs.args, known, made, untracked, inputs.values)
    return finished


def _check_marks(ctx: FunctionCtx) -> None:
    if not all(isinstance(dirty, Tensor) for dirty in ctx.dirty_tensors):
        raise RuntimeError(messages.DIRTY_TYPE)
    if not all(isinstance(constant, Tensor) for constant in ctx.non_differentiable):
        raise RuntimeError(messages.NON_DIFFERENTIABLE_TYPE)


def _output(node: FunctionNode, number: int, output: Tensor, tensors: Sequence[Tensor], recorded: bool) -> Tensor:
    """One output with its place in the graph. An input returned as it is becomes a view of itself."""
    is_input, is_dirty = _among(output, tensors), _among(output, node.ctx.dirty_tensors)
    has_gradient = recorded and output._array.dtype.kind == "f" and not _among(output, node.ctx.non_differentiable)
    if not has_gradient:
        output = _without_history(output, is_input=is_input, is_dirty=is_dirty)
    elif is_dirty:
        _rebase(node, number, output, is_input=is_input)
    else:
        if is_input:
            output = _view_of(output)
        output._grad_fn, output._output_nr, output._requires_grad = node, number, True
        if output._base is not None:
            output._view_version = output._counter[0]
    if output._base is not None and not (is_input and is_dirty):
        output._creation = "function"
    return output


def _without_history(output: Tensor, *, is_input: bool, is_dirty: bool) -> Tensor:
    if not output.requires_grad:
        return _view_of(output) if is_input and not is_dirty else output
    if is_input:
        result: Tensor = apply(detach, (output,))
        return result
    return output if output._base is not None else output.detach_()


def _rebase(node: FunctionNode, number: int, output: Tensor, *, is_input: bool) -> None:
    """Let a written input come from `node`."""
    if output.requires_grad and output._grad_fn is None:
        raise RuntimeError(messages.LEAF_WRITTEN)
    check_view(output)
    if not is_input:
        warn(messages.DIRTY_NO_INPUT)
    if output._base is not None and len(node.outputs) > 1:
        raise RuntimeError(messages.DIRTY_VIEW_OF_SEVERAL)
    rebase(node, output, number)
    if output._base is not None:
        output._view_version = -1  # its history is that of its base, which has just got another


def _view_of(tensor: Tensor) -> Tensor:
    with no_grad():
        result: Tensor = apply(alias, (tensor,))
    return result


def _forbid_writes(outputs: Sequence[Any]) -> None:
    for output in outputs:
        if isinstance(output, Tensor) and output._base is not None:
            output._creation = "multi"


def _among(tensor: Tensor, tensors: Sequence[Any]) -> bool:
    return any(tensor is other for other in tensors)


class Error(Node):
    """Stands behind gradients that cannot be differentiated again: raises `text` when it is asked to."""

    __slots__ = ("text",)
    text: str

    @classmethod
    def name(cls) -> str:
        return "torch::autograd::Error"

    def vjp(self, grads: Sequence[Grad | None], create_graph: bool) -> Sequence[Grad | None]:
        raise RuntimeError(self.text)

    def describe(self, number: int) -> OpSeen:
        """The node as an operation of what cannot be differentiated."""
        return OpSeen(number, "error", self.name(), ("tensors...",), (f"error: {self.text}",), ())

    @property
    def saved_outputs(self) -> dict[int, int]:
        return {}


def once_differentiable(backward: F) -> F:
    """Decorator of a ``backward`` whose results cannot be differentiated: doing so raises instead of being wrong."""

    @functools.wraps(backward)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            returned = backward(ctx, *grads)
        wants_graph = any(isinstance(g, Tensor) and g.requires_grad for g in grads)
        if not (thread.grad_enabled and wants_graph):
            return returned
        results = returned if isinstance(returned, tuple) else (returned,)
        refused = _refusing(results)
        return refused if len(refused) > 1 else refused[0]

    return wrapper  # type: ignore[return-value]  # a wrapper of the same signature


def _refusing(results: tuple[Any, ...]) -> tuple[Any, ...]:
    node = Error()
    node.text = messages.TWICE_DIFFERENTIATED
    leaves = [None if t is None else t.detach().requires_grad_() for t in results]
    node.next_edges = [None if t is None else t._edge() for t in leaves]
    node.outputs = tuple([NO_TENSOR if t is None else (t._array.shape, t._array.dtype) for t in leaves])
    return tuple([None if t is None else t._as_output_of(node, number) for number, t in enumerate(leaves)])


__getattr__ = lookup_in(__name__)
