"""``torch.autograd.Function``: custom operations with their own forward and backward."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar
from weakref import ref

import numpy as np

from gviz import emit
from gviz.emit import Channel, Seen
from gviz.engine import instrumentation, messages, operation_watchers
from gviz.engine.backward import as_tensor, scalar_or_array
from gviz.engine.instrumentation import emit_operation, output, seen
from gviz.engine.modes import no_grad, thread
from gviz.engine.node import Grad, Metadata, Node, pack_saved_tensors, released_error
from gviz.engine.op import any_requires_grad, apply, edges_of, why_untracked
from gviz.engine.ops.copying import detach
from gviz.engine.ops.shape import alias
from gviz.engine.tensor import UNCOUNTED, Tensor, new_tensor
from gviz.engine.unsupported_names import lookup_in
from gviz.engine.views import check_view, rebase
from gviz.events import Edge, OpSeen, Output
from gviz.events.graph import HOOK_FUNCTION, HOOK_NAME
from gviz.source.call_stack import warn
from gviz.source.saved_tensor_names import saved_names
from gviz.values.value import Value

# ----------------------------------------------------------------------------------------------------------------------
# The events of a custom Function: one node, instead of the operations that ran inside it.


def function_called(channel: Channel, node: FunctionNode, tensors: Sequence[Tensor]) -> tuple[Value | None, ...]:
    """The input values of a custom Function before one of its first calls, if they are not kept anyway."""
    node.is_first = channel.is_first(node.function)
    return tuple([channel.whole(tensor._array) for tensor in tensors]) if node.is_first else ()


def function_ran(
    channel: Channel,
    node: FunctionNode,
    args: Sequence[Any],
    inputs: Sequence[Edge],
    outputs: Sequence[Tensor | None],
    untracked: str,
    given: tuple[Value | None, ...],
) -> None:
    """Emits that a custom Function ran on `args`. Its outputs belong to its node, whatever made them inside."""
    slots, attrs = node.arguments(args)
    key = type(node), slots, len(node.saved or ())
    number = channel.op(key, lambda number: node.describe_call(number, slots))
    described = [_output_of_function(channel, tensor, is_first=node.is_first) for tensor in outputs]
    mark = node.seen = Seen(channel.next_node())
    for tensor in outputs:
        if tensor is not None:
            tensor._seen = mark
    node.creation_stack = emit_operation(
        channel, mark, number, tuple(inputs), attrs, tuple(described), untracked, given
    )


def _output_of_function(channel: Channel, tensor: Tensor | None, *, is_first: bool) -> Output:
    if tensor is None:
        return Output(None, channel.next_storage())
    seen(channel, tensor)  # it has a storage afterwards
    origin = 0 if tensor._base is None else seen(channel, tensor._base).node
    return output(channel, tensor, origin, is_first=is_first)


# ----------------------------------------------------------------------------------------------------------------------
# The graph node of a custom `Function`: calls the class's own ``backward`` and checks what it returns.


NO_TENSOR: Metadata = ((), np.dtype(np.float32))
"""The metadata of an output that is not a tensor: no gradient ever arrives there."""


class FunctionCtx:
    """The `ctx` of ``forward`` and ``backward`` of a custom Function, which passes data from one to the other.

    Any attribute may be set. It belongs to its graph node, and some attributes are read from that node.
    """

    materialize_grads = True
    needs_input_grad: tuple[bool, ...]
    to_save: tuple[Any, ...] = ()
    dirty_tensors: tuple[Any, ...] = ()
    non_differentiable: tuple[Any, ...] = ()

    def __init__(self, node: FunctionNode) -> None:
        self._node = ref(node)

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Saves these tensors for ``backward``, which reads them as `saved_tensors`. Call it once, in ``forward``."""
        self.to_save = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Marks the inputs that ``forward`` writes to in place; they must be returned."""
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Marks outputs as having no gradient."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Sets whether ``backward`` receives zeros (else None) for outputs without an incoming gradient."""
        self.materialize_grads = value

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors passed to `save_for_backward`. Raises RuntimeError if they were released or modified."""
        node = self._node()
        return () if node is None else node.saved_tensors

    def __getattr__(self, name: str) -> Any:
        node = None if name.startswith("_") else self._node()
        if node is None or name not in _SHARED:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return getattr(node, name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


_SHARED = frozenset(["metadata", "name", "next_functions", "register_hook", "register_prehook"])
"""The attributes that `FunctionCtx` reads from its node: both are views of the same state."""


class FunctionNode(Node):
    """The graph node of a custom Function call. There is one subclass for each Function.

    `takes_tensor` records of each argument whether it was a tensor. `results` has the metadata of each output, or None
    if it is not a tensor. `outputs_among_saved` maps positions among the saved tensors to the numbers of the outputs
    there. `is_first` is True for one of the first calls, whose values a recording keeps whole.
    """

    __slots__ = ("ctx", "is_first", "is_freed", "outputs_among_saved", "results", "takes_tensor")
    function: ClassVar[type[Function]]
    ctx_class: ClassVar[type[FunctionCtx]]
    ctx: FunctionCtx
    is_first: bool  # type: ignore[misc]  # a constant in other nodes
    is_freed: bool
    takes_tensor: tuple[bool, ...]
    results: Sequence[Metadata | None]
    outputs_among_saved: dict[int, int]

    def __init__(self, args: tuple[Any, ...]) -> None:
        super().__init__()
        self.is_first = self.is_freed = False
        self.takes_tensor = tuple([isinstance(arg, Tensor) for arg in args])
        self.results, self.outputs_among_saved = (), {}
        self.ctx = self.ctx_class(self)
        self.ctx.needs_input_grad = tuple([isinstance(arg, Tensor) and arg.requires_grad for arg in args])

    def __getattr__(self, name: str) -> Any:
        if name in _SHARED or name.startswith("__"):  # names that a plain node lacks too
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return getattr(self.ctx, name)

    def vjp(self, grads: Sequence[Grad | None], create_graph: bool) -> Sequence[Grad | None]:
        """Calls the class's own ``backward`` on tensors."""
        returned = self.function._backward_of()(self.ctx, *self._arguments(grads))
        parts = self._checked(returned if isinstance(returned, tuple) else (returned,))
        if create_graph:
            return parts
        return [None if part is None else scalar_or_array(part._array) for part in parts]

    def _arguments(self, grads: Sequence[Grad | None]) -> list[Tensor | None]:
        """Return the gradients of the outputs as ``backward`` receives them."""
        gradients: list[Tensor | None] = []
        for grad, form in zip(grads, self.results, strict=True):
            if grad is not None:
                gradients.append(as_tensor(grad))
            else:
                gradients.append(_zeros(form) if form is not None and self.ctx.materialize_grads else None)
        return gradients

    def _checked(self, returned: tuple[Any, ...]) -> list[Tensor | None]:
        """Return the gradients that ``backward`` returned for the tensor arguments.

        Raises RuntimeError if they do not match.
        """
        expected = len(self.takes_tensor)
        if not any(extra is not None for extra in returned[expected:]):
            returned = returned[:expected]
        if len(returned) != expected:
            counts = {"expected": expected, "got": len(returned)}
            raise RuntimeError(messages.GRADIENT_COUNT.format(name=self.name(), **counts))
        for position, (is_tensor, grad) in enumerate(zip(self.takes_tensor, returned, strict=True), 1):
            if grad is not None and not is_tensor:
                raise RuntimeError(messages.GRADIENT_OF_NO_TENSOR.format(name=self.name(), position=position))
            if grad is not None and not isinstance(grad, Tensor):
                raise RuntimeError(messages.GRADIENT_TYPE.format(name=type(grad).__name__))
        return [grad for is_tensor, grad in zip(self.takes_tensor, returned, strict=True) if is_tensor]

    def keep(self, outputs: Sequence[Any]) -> None:
        """Stores what ``forward`` saved. An output is saved without its grad_fn, which would be a cycle."""
        saved: list[Tensor | None] = []
        for position, tensor in enumerate(self.ctx.to_save):
            if tensor is not None and not isinstance(tensor, Tensor):
                name = type(tensor).__name__
                raise TypeError(messages.SAVED_TYPE.format(position=position, name=name))
            number = next((n for n, output in enumerate(outputs) if output is tensor), None)
            if tensor is not None and number is not None and tensor._grad_fn is self:
                self.outputs_among_saved[position] = number
                tensor = tensor._alias()
            saved.append(tensor)
        self.saved, self.versions = saved, [0 if t is None else t._counter[0] for t in saved]
        if UNCOUNTED in self.versions:
            raise RuntimeError(messages.INFERENCE_SAVED)
        if operation_watchers.watchers:
            pack_saved_tensors(self)

    @property
    def saved_outputs(self) -> dict[int, int]:
        return self.outputs_among_saved

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:  # type: ignore[override]  # here users read it
        """The saved tensors; a saved output has this node as its grad_fn."""
        if self.is_freed:
            raise released_error(self)
        return tuple([self.saved_tensor(position) for position in range(len(self.saved or ()))])

    def release(self) -> bool:
        """Releases the saved tensors. ``backward`` can then not read them again, even if there were none."""
        had = bool(self.saved)
        self.is_freed, self.saved, self.versions = True, (), ()
        return had

    def arguments(self, args: Sequence[Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
        """The names of the tensor arguments, and the other arguments by name; unknown objects as their type."""
        names = _parameters(self.function, len(args))
        slots = [name for name, is_tensor in zip(names, self.takes_tensor, strict=True) if is_tensor]
        others = zip(names, args, self.takes_tensor, strict=True)
        return tuple(slots), {name: _plain(arg) for name, arg, is_tensor in others if not is_tensor}

    def describe(self, number: int) -> OpSeen:
        """The Function as an operation, without the names of its arguments."""
        return self.describe_call(number, ("args...",))

    def describe_call(self, number: int, slots: tuple[str, ...]) -> OpSeen:
        """The Function as an operation on the tensors `slots`."""
        name = self.function.__name__
        if name == HOOK_FUNCTION:
            return OpSeen(number, HOOK_NAME, self.name(), slots, ("",) * len(slots), ())
        rules = tuple([f"{name}.backward(ctx, g)"] * len(slots))
        has_setup = self.function._has_setup()
        names = saved_names(self.function.setup_context if has_setup else self.function.forward, is_setup=has_setup)
        saved = () if not self.saved else names if len(names) == len(self.saved) else ("saved_tensors",)
        return OpSeen(number, name, self.name(), slots, rules, saved, f"{name}.forward(ctx, {', '.join(slots)})")


def _zeros(form: Metadata) -> Tensor:
    """Return zeros for a missing gradient; as in PyTorch their version is 1."""
    zeros = new_tensor(np.zeros(*form))
    zeros._counter[0] = 1
    return zeros


def _parameters(function: type[Function], count: int) -> list[str]:
    """Return the names of the first `count` arguments of ``forward``; those of ``*args`` are numbered."""
    parameters = list(inspect.signature(function.forward).parameters.values())
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if not function._has_setup():
        names = names[1:]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    return [*names, *(f"{rest}{i}" for i in range(count - len(names)))][:count]


def _plain(value: Any) -> Any:
    """Return an argument in the form of events. Other objects become their type: their repr may be long, or run user
    code.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return tuple([_plain(item) for item in value])
    return f"<{type(value).__name__}>"


__all__ = ["Function", "FunctionCtx", "once_differentiable"]

F = TypeVar("F", bound=Callable[..., Any])


class Function:
    """Base class for custom differentiable operations: define static ``forward`` and ``backward``, and call `apply`.

    ``forward(ctx, *args)`` computes on tensors without being recorded. If the class defines ``setup_context(ctx,
    inputs, output)``, ``forward`` takes no `ctx`. ``backward(ctx, *grads)``, or ``vjp``, returns one gradient for each
    argument.
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
        """Computes the result. Subclasses override it."""
        raise NotImplementedError(messages.NO_FORWARD)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Sets up `ctx` for ``backward``, if ``forward`` does not take it."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Returns the gradients of the arguments from those of the outputs. Subclasses override it."""
        raise NotImplementedError(messages.NO_BACKWARD)

    vjp = backward

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Runs ``forward``, and makes a node with ``backward`` as its rule if a gradient may be needed."""
        if cls._has_setup():
            args, kwargs = _bound(cls.forward, args, kwargs), {}
        else:
            _check_names(cls.forward, args, kwargs)
        if operation_watchers.watchers and (recorder := operation_watchers.recorder()) is not None:
            recorder.called(cls.__name__)
        arguments = (*args, *kwargs.values())
        node = cls._node_class(arguments)
        tensors = [arg for arg in arguments if isinstance(arg, Tensor)]
        inputs = _Inputs(arguments, tensors, edges_of(tensors))
        if emit.channel is not None and thread.grad_enabled and any_requires_grad(tensors):
            inputs.values = function_called(emit.channel, node, tensors)
        returned = _run_forward(cls, node.ctx, args, kwargs)
        outputs = returned if isinstance(returned, tuple) else (returned,)
        finished = _finished(node, inputs, outputs)
        return tuple(finished) if isinstance(returned, tuple) else finished[0]

    @classmethod
    def _has_setup(cls) -> bool:
        """Return whether the class defines ``setup_context``."""
        return cls.setup_context is not Function.setup_context

    @classmethod
    def _backward_of(cls) -> Callable[..., Any]:
        own_backward, own_vjp = cls.backward is not Function.backward, cls.vjp is not Function.vjp
        if own_backward and own_vjp:
            raise RuntimeError(messages.BACKWARD_AND_VJP)
        return cls.vjp if own_vjp else cls.backward


class _Inputs:
    """The arguments of one call: all of them, the tensors among them, their edges, and their values.

    The `values` are kept only for the first calls in a recording.
    """

    __slots__ = ("args", "edges", "tensors", "values")

    def __init__(self, args: tuple[Any, ...], tensors: list[Tensor], edges: Sequence[Any]) -> None:
        self.args, self.tensors, self.edges = args, tensors, edges
        self.values: tuple[Value | None, ...] = ()


def _bound(forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return the arguments with the defaults of ``forward``, by position."""
    bound = inspect.signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


def _check_names(forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise TypeError, with PyTorch's text, for a keyword argument that ``forward`` does not accept or has already."""
    taken = inspect.signature(forward).parameters if kwargs else {}
    positional = list(taken)[: 1 + len(args)]
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values())
    for name in kwargs:
        if name in positional:
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
    """Return the outputs as the caller receives them, attached to `node` if a gradient may be needed."""
    ctx, tensors = node.ctx, inputs.tensors
    _check_marks(ctx)
    for dirty in ctx.dirty_tensors:
        dirty._counter[0] += 1
    recorded = thread.grad_enabled and any_requires_grad(tensors)
    known = None if emit.channel is None else instrumentation.edges(emit.channel, tensors)
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
        output_tensors = [o if isinstance(o, Tensor) else None for o in finished]
        function_ran(emit.channel, node, inputs.args, known, output_tensors, untracked, inputs.values)
    return finished


def _check_marks(ctx: FunctionCtx) -> None:
    if not all(isinstance(dirty, Tensor) for dirty in ctx.dirty_tensors):
        raise RuntimeError(messages.DIRTY_TYPE)
    if not all(isinstance(constant, Tensor) for constant in ctx.non_differentiable):
        raise RuntimeError(messages.NON_DIFFERENTIABLE_TYPE)


def _output(node: FunctionNode, number: int, output: Tensor, tensors: Sequence[Tensor], recorded: bool) -> Tensor:
    """Return one output attached to the graph. An input that is returned unchanged becomes a view of itself."""
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
    """Make `node` the grad_fn of an input that was written to."""
    if output.requires_grad and output._grad_fn is None:
        raise RuntimeError(messages.LEAF_WRITTEN)
    check_view(output)
    if not is_input:
        warn(messages.DIRTY_NO_INPUT)
    if output._base is not None and len(node.outputs) > 1:
        raise RuntimeError(messages.DIRTY_VIEW_OF_SEVERAL)
    rebase(node, output, number)
    output._grad = None  # PyTorch resets it, as the tensor is now the result of another node
    if output._base is not None:
        output._view_version = -1  # its history is that of its base, which has just changed


def _view_of(tensor: Tensor) -> Tensor:
    with no_grad():
        result: Tensor = apply(alias, (tensor,))
    return result


def _forbid_writes(outputs: Sequence[Any]) -> None:
    for one in outputs:
        if isinstance(one, Tensor) and one._base is not None:
            one._creation = "multi"


def _among(tensor: Tensor, tensors: Sequence[Any]) -> bool:
    return any(tensor is other for other in tensors)


class Error(Node):
    """The node of gradients that cannot be differentiated again: its backward rule raises `text`."""

    __slots__ = ("text",)
    text: str

    @classmethod
    def name(cls) -> str:
        return "torch::autograd::Error"

    def vjp(self, grads: Sequence[Grad | None], create_graph: bool) -> Sequence[Grad | None]:
        raise RuntimeError(self.text)

    def describe(self, number: int) -> OpSeen:
        """The node as an operation that cannot be differentiated."""
        return OpSeen(number, "error", self.name(), ("tensors...",), (f"error: {self.text}",), ())


def once_differentiable(backward: F) -> F:
    """Decorator for a ``backward`` that is not differentiable: differentiating its results raises an error."""

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
