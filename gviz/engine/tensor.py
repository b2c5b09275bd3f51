"""The tensor: an array, its place in the graph, its gradient.

Only what every operation touches lives here. Reading a tensor as Python or numpy does is `Conversions`; the methods
that derive from operations come from `Methods`, which `surface` fills from the declarations.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from copy import deepcopy
from typing import Any, ClassVar

from gviz import emit
from gviz.emit import Seen
from gviz.engine import announce, assigned_grad, messages, modes, watching
from gviz.engine.conversions import Conversions
from gviz.engine.hooks import Hook, Registered, RemovableHandle
from gviz.engine.memory import InMemory, Storage, copy_with_owner
from gviz.engine.modes import thread
from gviz.engine.node import AccumulateGrad, Edge, Node
from gviz.engine.printing import tensor_text
from gviz.representation import Displayed
from gviz.site import warn
from gviz.values import Array

UNCOUNTED = -1
"""The version of an inference tensor, whatever is written to it."""


class Tensor(Conversions, Displayed):
    """An n-dimensional array that remembers, if asked to, how it was computed.

    `_counter` is the version counter, one list of one int shared by everything that shares the memory. A view has a
    `_base` (never itself a view), the version at which its `_grad_fn` is valid, and how it was made.
    """

    __module__ = "torch"
    __slots__ = (
        "__dict__",
        "__weakref__",
        "_array",
        "_base",
        "_counter",
        "_creation",
        "_grad",
        "_grad_fn",
        "_output_nr",
        "_requires_grad",
        "_seen",
        "_storage",
        "_view_version",
    )
    _array: Array
    _grad: Tensor | None
    _grad_fn: Node | None
    _output_nr: int
    _requires_grad: bool
    _counter: list[int]
    _base: Tensor | None
    _view_version: int
    _creation: str
    _seen: Seen | None
    _storage: Storage
    # Few tensors have these, so they are not slots: making a tensor must be cheap.
    _accumulator: weakref.ref[AccumulateGrad] | None = None
    _hooks: Registered | None = None  # of the present grad_fn, or of a leaf
    _accumulated_hooks: Registered | None = None
    _grad_of: weakref.ref[Tensor] | None = None
    _retained: bool = False
    _is_parameter: ClassVar[bool] = False
    _is_number: ClassVar[bool] = False
    _is_mask: ClassVar[bool] = False
    _is_placeholder: ClassVar[bool] = False
    __array_priority__ = 1000  # numpy leaves mixed expressions to us

    def __new__(cls, *data: Any, **options: Any) -> Tensor:
        """``torch.Tensor(data)`` or ``torch.Tensor(2, 3)``: a tensor of the default dtype with this data or size."""
        from gviz.engine.legacy import empty_of  # built on tensors

        return empty_of(cls, data, options)

    # What it is

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made it."""
        return self.grad_fn is None

    @property
    def grad_fn(self) -> Node | None:
        """The node of the operation that made it, or None for a leaf."""
        if self._base is not None:
            self._refresh()
        return self._grad_fn

    @property
    def output_nr(self) -> int:
        """Which output of its ``grad_fn`` it is."""
        return self._output_nr

    @property
    def _version(self) -> int:
        """How often its memory was written in place."""
        if self.is_inference():
            raise RuntimeError(messages.INFERENCE_VERSION)
        return self._counter[0]

    def is_inference(self) -> bool:
        """Whether it was made in ``inference_mode``: its writes are not counted, no recorded operation may save it."""
        return self._counter[0] == UNCOUNTED

    # What autograd does with it

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to it: a leaf that asked for one, or the result of a recorded operation."""
        base = self._base
        return self._requires_grad or (base is not None and base._requires_grad)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError("requires_grad must be a bool")
        if self.grad_fn is not None:
            raise RuntimeError(messages.FLAG_ON_NON_LEAF + ("" if value else messages.FLAG_OFF_HINT))
        self._set_requires_grad(value, messages.DTYPE_CANNOT_REQUIRE)

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad must be a bool")

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set ``requires_grad`` of a leaf in place. RuntimeError for a non-leaf or a dtype without gradients."""
        if not isinstance(requires_grad, bool):
            kind = type(requires_grad).__name__
            raise TypeError(f"requires_grad_(): argument 'requires_grad' (position 1) must be bool, not {kind}")
        if not requires_grad and self.grad_fn is not None:
            raise RuntimeError(messages.FLAG_ON_NON_LEAF + messages.FLAG_OFF_HINT)
        if self._grad_fn is None:  # asked for without a look at the base: that could raise, and must not here
            self._set_requires_grad(requires_grad, messages.METHOD_CANNOT_REQUIRE)
        return self

    def _set_requires_grad(self, value: bool, not_of_this_dtype: str) -> None:
        if value and self._array.dtype.kind != "f":
            raise RuntimeError(not_of_this_dtype)
        if value and self.is_inference() and not thread.inference:
            raise RuntimeError(messages.INFERENCE_FLAG)
        changed = self._requires_grad is not value
        self._requires_grad = value
        if changed and watching.watchers and (recorder := watching.recorder()) is not None:
            recorder.switched(self, "requires_grad_()")
        if changed and emit.channel is not None:
            announce.requires_grad_set(emit.channel, self)

    @property
    def grad(self) -> Tensor | None:
        """The gradient accumulated here by backward passes, or None."""
        return assigned_grad.read(self)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        channel = emit.channel
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(messages.GRAD_TYPE.format(name=type(value).__name__))
            assigned_grad.refuse_unfit(self, value)
            if channel is not None:
                announce.seen(channel, value)  # while it is known whose ``.grad`` it was before
        self._set_grad(value)
        if channel is not None:
            announce.grad_set(channel, self, "none" if value is None else "assigned", channel.stack())

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    def _set_grad(self, value: Tensor | None) -> None:
        self._grad = value
        if value is not None:
            value._grad_of = weakref.ref(self)
            if value._seen is not None:
                value._storage.add_owner(value._grad_of)

    def retain_grad(self) -> None:
        """Keep the gradient of a non-leaf in ``.grad`` too. RuntimeError if it does not require grad."""
        if not self.requires_grad:
            raise RuntimeError(messages.CANNOT_RETAIN)
        node = self.grad_fn
        if node is None or self._retained:
            return
        self._retained = True
        node.with_extras().retained[self._output_nr] = weakref.ref(self)

    @property
    def retains_grad(self) -> bool:
        """Whether `retain_grad` was called on this non-leaf."""
        return self._retained

    def register_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook` with the gradient of this tensor when it is complete; what it returns replaces the gradient."""
        if not self.requires_grad:
            raise RuntimeError(messages.CANNOT_HOOK)
        if self._hooks is None:
            node, output_nr = self._edge()
            self._hooks = node.with_extras().of_tensors.setdefault(output_nr, {})
        return RemovableHandle(self._hooks, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call ``hook(leaf)`` whenever a backward pass has added to the ``.grad`` of this leaf."""
        if not self.requires_grad:
            raise RuntimeError(messages.CANNOT_HOOK)
        if self.grad_fn is not None:
            raise RuntimeError(messages.HOOK_OF_NON_LEAF)
        if self._accumulated_hooks is None:
            self._accumulated_hooks = {}
        return RemovableHandle(self._accumulated_hooks, hook)

    @property
    def _backward_hooks(self) -> Registered | None:
        """The hooks by the numbers of their handles, None before the first."""
        return self._hooks

    @property
    def _post_accumulate_grad_hooks(self) -> Registered | None:
        return self._accumulated_hooks

    def _edge(self) -> Edge:
        """Where a gradient for this tensor goes: its ``grad_fn``, or a leaf's `AccumulateGrad`."""
        node = self._grad_fn if self._base is None else self.grad_fn
        if node is not None:
            return node, self._output_nr
        known = self._accumulator
        accumulator = None if known is None else known()
        if accumulator is None:
            accumulator = AccumulateGrad(self)
            if self._hooks is not None:
                accumulator.with_extras().of_tensors[0] = self._hooks  # it may have died, a leaf's hooks do not
            self._accumulator = weakref.ref(accumulator)
        return accumulator, 0

    # How it is copied within the engine

    def _alias(self) -> Tensor:
        """The same memory and version counter, without a place in the graph."""
        alias = new_tensor(self._array)
        alias._counter = self._counter
        if self._seen is not None:
            alias._seen, alias._storage = self._seen, self._storage
        return alias

    def _as_output_of(self, node: Node, output_nr: int) -> Tensor:
        """The same memory, as output `output_nr` of `node`."""
        alias = self._alias()
        alias._grad_fn, alias._output_nr, alias._requires_grad = node, output_nr, True
        return alias

    def _is_stale_view(self) -> bool:
        """Whether its base was written to, so that its ``grad_fn`` would be made anew."""
        base = self._base
        if base is None or (self._grad_fn is None and not base._requires_grad):
            return False
        return self._view_version != self._counter[0]

    def _refresh(self) -> None:
        """Bring a view's ``grad_fn`` up to date with what was written to its base since."""
        if self._is_stale_view():
            from gviz.engine.views import refresh  # the one place where a tensor needs the ops built on it

            refresh(self)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return tensor_text(self)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Pickled and copied as a leaf: memory, class, whether it requires grad, what the program set on it."""
        for hook in (self._hooks or {}).values():
            if not hasattr(hook, "__torch_unserializable__"):
                warn(messages.HOOK_NOT_SAVED.format(hook=hook))
        kind = None if type(self) is Tensor else type(self)
        return _restored, (InMemory(self._array), self.requires_grad, kind, self._own_attributes())

    def __deepcopy__(self, memo: dict[Any, Any]) -> Tensor:
        if id(self) in memo:
            known: Tensor = memo[id(self)]
            return known
        if self.grad_fn is not None:
            raise RuntimeError(messages.DEEPCOPY)
        kind = None if type(self) is Tensor else type(self)
        array = copy_with_owner(self._array, memo.setdefault("torch", {}))
        copy = memo[id(self)] = _restored(array, self._requires_grad, kind)
        if self._grad is not None:
            copy._set_grad(self._grad.__deepcopy__(memo))
        copy.__dict__.update(deepcopy(self._own_attributes(), memo))
        return copy

    def _own_attributes(self) -> dict[str, Any]:
        """What the program has set on this tensor, without the engine's own notes."""
        kind = type(self)
        return {name: value for name, value in self.__dict__.items() if not hasattr(kind, name)}


def new_tensor(array: Array, cls: type[Tensor] = Tensor, _new: Any = object.__new__) -> Tensor:
    """An untracked tensor around `array`, which it does not copy."""
    t: Tensor = _new(cls)
    t._array = array
    t._grad = t._grad_fn = t._base = t._seen = None
    t._requires_grad = False
    t._output_nr = 0
    t._counter = [0]
    if modes.marks_new:
        _mark_new(t)
    return t


def count_writes(tensor: Tensor, times: int) -> Tensor:
    """Add writes to a new tensor's version: PyTorch computes some results by writing to them."""
    if tensor._counter[0] != UNCOUNTED:
        tensor._counter[0] += times
    return tensor


def _mark_new(tensor: Tensor) -> None:
    if thread.inference:
        tensor._counter = [UNCOUNTED]
    if thread.born is not None:
        thread.born(tensor)


def _restored(
    array: Array | InMemory, requires_grad: bool, cls: type[Tensor] | None, attributes: dict[str, Any] | None = None
) -> Tensor:
    restored = new_tensor(array.array if isinstance(array, InMemory) else array, cls or Tensor)
    if attributes:
        restored.__dict__.update(attributes)
    restored._requires_grad = requires_grad
    restored._counter[0] = 1  # PyTorch makes it empty and then gives it its memory
    return restored
