"""The graph node of a custom `Function`: calls the class's own ``backward`` and checks what it returns."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import ref

import numpy as np

from gviz.engine import messages, notes, watching
from gviz.engine.graph_pass import scalar_or_array
from gviz.engine.node import Grad, Metadata, Node
from gviz.engine.run_hooks import as_tensor
from gviz.engine.saved import pack
from gviz.engine.tensor import UNCOUNTED, Tensor, new_tensor
from gviz.events import OpSeen

if TYPE_CHECKING:
    from gviz.engine.autograd.function import Function

NO_TENSOR: Metadata = ((), np.dtype(np.float32))
"""Stands for an output that is no tensor: no gradient ever arrives there."""


class FunctionCtx:
    """What ``forward`` and ``backward`` of a custom Function are given, to pass things from one to the other.

    Any attribute may be set. It belongs to its graph node, which can also be asked for them.
    """

    materialize_grads = True
    needs_input_grad: tuple[bool, ...]
    to_save: tuple[Any, ...] = ()
    dirty_tensors: tuple[Any, ...] = ()
    non_differentiable: tuple[Any, ...] = ()

    def __init__(self, node: FunctionNode) -> None:
        self._node = ref(node)

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep these tensors for ``backward``, which reads them as `saved_tensors`; once, in ``forward``."""
        self.to_save = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs ``forward`` writes to; they must be returned."""
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which outputs have no gradient."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether ``backward`` gets zeros (else None) for outputs at which no gradient arrived."""
        self.materialize_grads = value

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors given to `save_for_backward`. RuntimeError if they were freed or modified since."""
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
"""What `FunctionCtx` has from its node, of which it is another face."""


class FunctionNode(Node):
    """What applying a custom Function leaves behind. There is one subclass for each Function.

    `takes_tensor` says of each argument whether it was a tensor, `results` of each output its form, None if it was no
    tensor. `outputs_among_saved` are the positions among the saved tensors that hold outputs, with their numbers.
    `is_first` says of one of the first calls that a recording keeps whole values of it.
    """

    __slots__ = ("ctx", "is_first", "is_freed", "outputs_among_saved", "results", "takes_tensor")
    function: ClassVar[type[Function]]
    ctx_class: ClassVar[type[FunctionCtx]]
    ctx: FunctionCtx
    is_first: bool  # type: ignore[misc]  # of other nodes it is a constant
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
        if name in _SHARED or name.startswith("__"):  # what even a plain node has not
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return getattr(self.ctx, name)

    def vjp(self, grads: Sequence[Grad | None], create_graph: bool) -> Sequence[Grad | None]:
        """The class's own ``backward``, on tensors."""
        returned = self.function._backward_of()(self.ctx, *self._given(grads))
        parts = self._checked(returned if isinstance(returned, tuple) else (returned,))
        if create_graph:
            return parts
        return [None if part is None else scalar_or_array(part._array) for part in parts]

    def _given(self, grads: Sequence[Grad | None]) -> list[Tensor | None]:
        """The gradients of the outputs as ``backward`` gets them."""
        given: list[Tensor | None] = []
        for grad, form in zip(grads, self.results, strict=True):
            if grad is not None:
                given.append(as_tensor(grad))
            else:
                given.append(_zeros(form) if form is not None and self.ctx.materialize_grads else None)
        return given

    def _checked(self, returned: tuple[Any, ...]) -> list[Tensor | None]:
        """What ``backward`` returned for the tensors among the arguments. RuntimeError if that does not fit them."""
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
        """Take over what ``forward`` saved. An output is kept without its history, which would be a cycle."""
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
        if watching.watchers:
            pack(self)

    @property
    def saved_outputs(self) -> dict[int, int]:
        return self.outputs_among_saved

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:  # type: ignore[override]  # here users read it
        """What was saved; a saved output leads back to this node."""
        if self.is_freed:
            raise notes.freed(self)
        return tuple([self.saved_tensor(position) for position in range(len(self.saved or ()))])

    def release(self) -> bool:
        """Free the saved tensors; the second time ``backward`` asks for them is an error even if there were none."""
        had = bool(self.saved)
        self.is_freed, self.saved, self.versions = True, (), ()
        return had

    def arguments(self, args: Sequence[Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
        """The names of the tensors among the arguments, and the other arguments by name; foreign objects as a word."""
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
        rules = tuple([f"{name}.backward(ctx, g)"] * len(slots))
        saved = ("saved_tensors",) if self.saved else ()
        return OpSeen(number, name, self.name(), slots, rules, saved, f"{name}.forward(ctx, {', '.join(slots)})")


def _zeros(form: Metadata) -> Tensor:
    """Zeros in place of a gradient; as in PyTorch they have been written once."""
    zeros = new_tensor(np.zeros(*form))
    zeros._counter[0] = 1
    return zeros


def _parameters(function: type[Function], count: int) -> list[str]:
    """The names of the first `count` arguments of a Function's ``forward``, those of ``*args`` numbered."""
    parameters = list(inspect.signature(function.forward).parameters.values())
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if not function._has_setup():
        names = names[1:]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    return [*names, *(f"{rest}{i}" for i in range(count - len(names)))][:count]


def _plain(value: Any) -> Any:
    """An argument as an event may hold it; of any other object, whose text may be long or its own code, the type."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return tuple([_plain(item) for item in value])
    return f"<{type(value).__name__}>"
