"""The tensor: an array, its place in the graph, its gradient.

This file has only what every operation uses. `Conversions` reads a tensor as Python or NumPy does; the methods derived
from operations come from `Methods`, which `functions_and_methods` fills from the declarations.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from inspect import getattr_static
from typing import Any, ClassVar, NoReturn

import numpy as np

from gviz import emit
from gviz.emit import Channel, Seen
from gviz.engine import anomaly_detection, dtypes, messages, modes, operation_watchers
from gviz.engine.array_storage import InMemory, copy_with_owner
from gviz.engine.devices import CPU, warn_that_cuda_is_the_cpu
from gviz.engine.devices import check as check_device
from gviz.engine.devices import device as Device
from gviz.engine.dtypes import dtype as DType
from gviz.engine.memory_format import layout as Layout
from gviz.engine.memory_format import strided
from gviz.engine.methods import Methods
from gviz.engine.modes import thread
from gviz.engine.node import LAST_SEQUENCE_NR, Edge, Grad, Hook, HooksById, Node, RemovableHandle
from gviz.engine.printing import tensor_text
from gviz.engine.size import Size
from gviz.engine.unsupported_names import MissingAttribute
from gviz.rich_representation import Displayed
from gviz.source.call_stack import forwards, warn
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Functions that tensors call in files that are built on this one.


class Callbacks:
    """Functions that tensors need. The file that defines each one sets it here when imported.

    All files import in one direction, and this one comes before those. In the same way
    `functions_and_methods` adds the methods made from operations to `Methods`.
    """

    empty_of: Callable[[type[Tensor], tuple[Any, ...], dict[str, Any]], Tensor]
    """Set by `legacy_constructors`: creates the result of ``torch.Tensor(...)``."""
    from_numpy: Callable[[Array], Tensor]
    """Set by `creation`: makes a tensor that shares memory with an array."""
    refresh: Callable[[Tensor], None]
    """Set by `views`: updates a stale view's ``grad_fn`` from its base."""
    copy_into: Callable[[Tensor, Tensor], Tensor]
    """Set by `ops.copying`: copies the elements of the second tensor to the first, which has the same shape."""
    seen: Callable[[Channel, Tensor], Seen]
    """Set by `instrumentation`: returns the announcement of a tensor, made now if there is none."""
    grad_set: Callable[[Channel, Tensor, str, int], None]
    """Set by `instrumentation`: emits how a ``.grad`` changed outside a pass, with the number of the call stack."""
    requires_grad_set: Callable[[Channel, Tensor], None]
    """Set by `instrumentation`: emits a change of ``requires_grad``."""


callbacks: Callbacks = Callbacks()

# ----------------------------------------------------------------------------------------------------------------------
# The ``.grad`` of a tensor: which gradients may be assigned, and PyTorch's warning for non-leaves.


def refuse_unfit(of: Tensor, grad: Tensor) -> None:
    """Raises RuntimeError for a gradient that is the tensor itself, or has another dtype or shape."""
    if grad is of:
        raise RuntimeError(messages.GRAD_SELF)
    if grad._array.dtype != of._array.dtype:
        raise RuntimeError(messages.GRAD_DTYPE.format(grad=grad.dtype.cpp_name, own=of.dtype.tensor_type))
    if grad._array.shape != of._array.shape:
        raise RuntimeError(messages.GRAD_SIZE.format(grad=list(grad.shape), own=list(of.shape)))


def read(tensor: Tensor) -> Tensor | None:
    """A tensor's ``.grad``; warns for a non-leaf, which no pass sets."""
    if tensor._grad is None and tensor._grad_fn is not None and not tensor.retains_grad:
        warn(messages.GRAD_OF_NON_LEAF, UserWarning)
    return tensor._grad


# ----------------------------------------------------------------------------------------------------------------------
# Shape, dtype and memory of a tensor: on the CPU, strided.


class Placement(Methods):
    """The part of `Tensor` that describes its shape, dtype and memory."""

    __slots__ = ()
    _array: Array
    is_cpu = property(lambda self: True)
    is_cuda = is_ipu = is_maia = is_meta = is_mkldnn = is_mps = is_mtia = is_nested = property(lambda self: False)
    is_quantized = is_sparse = is_sparse_csr = is_vulkan = is_xla = is_xpu = property(lambda self: False)
    name = property(lambda self: None, doc="Always None: tensors have no names of their own.")

    @property
    def shape(self) -> Size:
        """The size of each dimension."""
        if operation_watchers.watchers and (recorder := operation_watchers.recorder()) is not None:
            return recorder.shape(self)
        return tuple.__new__(Size, self._array.shape)

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return dtypes.of(self._array)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    @property
    def device(self) -> Device:
        """Always the CPU."""
        return CPU

    @property
    def layout(self) -> Layout:
        """Always ``torch.strided``."""
        return strided

    @property
    def itemsize(self) -> int:
        """The size of one element in bytes."""
        return self._array.itemsize

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self._array.nbytes

    def get_device(self) -> int:
        """The index of its GPU: always -1, for none."""
        return -1

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self._array.ctypes.data) if self._array.size else 0

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the memory is pinned for a GPU: always False."""
        return False

    def is_shared(self) -> bool:
        """Whether the memory is shared between processes: always False."""
        return False

    def cpu(self, memory_format: Any = None) -> Tensor:
        """Returns the tensor itself, or a copy in the memory order of `memory_format`."""
        return self.to("cpu", memory_format=memory_format)

    def cuda(self, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
        """Raises an error, unless ``cuda`` means the CPU: then returns the tensor itself."""
        check_device("cuda" if device is None else device, "cuda")
        warn_that_cuda_is_the_cpu()
        return self  # type: ignore[return-value]  # it is a `Tensor`


# ----------------------------------------------------------------------------------------------------------------------
# Conversions of a tensor to Python and NumPy: a number, a truth value, a list, an array.


class Conversions(Placement):
    """The part of `Tensor` that reads its elements."""

    __slots__ = ()
    _array: Array
    requires_grad: bool

    def __len__(self) -> int:
        if not self._array.ndim:
            raise TypeError("len() of a 0-d tensor")
        if operation_watchers.watchers:
            self._read("len")
        return len(self._array)

    def __bool__(self) -> bool:
        size = self._array.size
        if size != 1:
            count = "no values" if size == 0 else "more than one value"
            raise RuntimeError(messages.AMBIGUOUS_BOOL.format(count=count))
        if operation_watchers.watchers:
            self._read("boolean")
        return bool(self._array.reshape(())[()])

    def item(self) -> Any:
        """The only element as a Python number. Raises RuntimeError if there is not exactly one."""
        if self._array.size != 1:
            raise RuntimeError(messages.TO_SCALAR.format(size=self._array.size))
        if operation_watchers.watchers:
            self._read("number")
        return self._array.reshape(())[()].item()

    def __float__(self) -> float:
        return float(self._number("float"))

    def __int__(self) -> int:
        return int(self._number("integer"))

    def __complex__(self) -> complex:
        return complex(self._number("complex"))

    def _warn_of_tracked(self) -> None:
        """Issue PyTorch's warning that the number loses its history; PyTorch does not issue it under `no_grad`."""
        if self.requires_grad and thread.grad_enabled:
            messages.warn_once(messages.SCALAR_OF_TRACKED)

    def _number(self, how: str) -> Any:
        if self._array.size != 1:
            if how != "integer":
                self._warn_of_tracked()
            raise ValueError(messages.TO_NUMBER)
        if operation_watchers.watchers:
            self._read(how)
        if how != "integer":
            self._warn_of_tracked()
        return self._array.reshape(())[()].item()

    def _read(self, how: str) -> None:
        """Notify this thread's recorder that the program reads elements."""
        recorder = operation_watchers.recorder()
        if recorder is not None:
            recorder.read(self, how)

    def __index__(self) -> int:
        if self._array.dtype.kind not in "iub" or self._array.size != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self._number("index"))

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        if operation_watchers.watchers:
            self._read("list")
        return self._array.tolist()

    def numpy(self, *, force: bool = False) -> Array:
        """The array itself, sharing memory.

        Raises RuntimeError if the tensor requires grad and recording is enabled, unless `force` is True.
        """
        if not isinstance(force, bool):
            raise TypeError(f"numpy(): argument 'force' must be bool, not {type(force).__name__}")
        if thread.grad_enabled and not force and self.requires_grad:
            raise RuntimeError(messages.NUMPY_OF_TRACKED)
        if operation_watchers.watchers:
            self._read("array")
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self.numpy()
        return array.astype(dtype) if dtype is not None and array.dtype != dtype else array.copy() if copy else array

    def __dlpack__(self, **options: Any) -> Any:
        """Exports the memory to other libraries. Raises BufferError if the tensor requires grad."""
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        if operation_watchers.watchers:
            self._read("array")
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __array_wrap__(self, array: Array, context: Any = None, return_scalar: bool = False) -> Tensor:
        """The result of a NumPy function called with a tensor: a tensor; booleans become uint8."""
        return callbacks.from_numpy(array.astype("uint8") if array.dtype.kind == "b" else array)

    def __delitem__(self, key: Any) -> NoReturn:
        raise TypeError("Tensor does not support deleting items")

    def __contains__(self, element: object) -> bool:
        if not isinstance(element, (Conversions, bool, int, float)):
            raise RuntimeError(
                f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
            )
        if operation_watchers.watchers:
            self._read("number")
        return bool((self._array == (element._array if isinstance(element, Conversions) else element)).any())

    def __reversed__(self) -> Tensor:
        return self.flip(0) if self._array.ndim else self  # type: ignore[return-value]

    @forwards
    def __iter__(self) -> Iterator[Tensor]:
        if not self._array.ndim:
            raise TypeError("iteration over a 0-d tensor")
        if operation_watchers.watchers:
            self._read("iteration")
        return iter(self.unbind(0))

    def __dir__(self) -> list[str]:
        """Its attributes, without those of PyTorch's that the engine lacks."""
        return [
            name for name in super().__dir__() if not isinstance(getattr_static(self, name, None), MissingAttribute)
        ]

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self._array.ndim == 0 else object.__format__(self, spec)


# ----------------------------------------------------------------------------------------------------------------------
# Memory that tensors share, as a recording identifies it.


class Storage:
    """Memory that tensors share: its number in the recording, and the tensors whose ``.grad`` is in it.

    Recorded outputs never change their storage. So tensors that came here later (``x.data = v``), or changed their
    shape here (``x.t_()``), are recorded one by one: they have `moved`.
    """

    __slots__ = ("_moved", "_owners", "number")

    def __init__(self, channel: Channel, owner: weakref.ref[Tensor] | None = None) -> None:
        self.number = channel.next_storage()
        self._owners: tuple[weakref.ref[Tensor], ...] = () if owner is None else (owner,)
        self._moved: tuple[weakref.ref[Tensor], ...] = ()

    def add_owner(self, owner: weakref.ref[Tensor]) -> None:
        """Notes that the ``.grad`` of `owner` is in this memory."""
        self._owners = (*[known for known in self._owners if known() is not None and known is not owner], owner)

    def owners(self) -> list[Tensor]:
        """The tensors whose ``.grad`` is in this memory now."""
        alive = [owner() for owner in self._owners]
        return [t for t in alive if t is not None and t._grad is not None and _lies_in(t._grad, self)]

    def move(self, tensor: Tensor) -> None:
        """Notes that `tensor` is now in this memory, unlike when it was announced."""
        others = [one for one in self.moved() if one is not tensor]
        self._moved = tuple(map(weakref.ref, (*others, tensor)))
        tensor._storage = self

    def moved(self, array: Array | None = None) -> list[Tensor]:
        """The tensors that have moved here; with `array`, only those that share memory with it."""
        alive = [tensor for known in self._moved if (tensor := known()) is not None and tensor._storage is self]
        return [t for t in alive if array is None or np.may_share_memory(t._array, array)]


def _lies_in(tensor: Tensor, storage: Storage) -> bool:
    return tensor._seen is not None and tensor._storage is storage


# ----------------------------------------------------------------------------------------------------------------------
# The tensor.


UNCOUNTED = -1
"""The version of an inference tensor, whose writes are not counted."""


class Tensor(Conversions, Displayed):
    """An n-dimensional array that can record how it was computed.

    `_counter` is the version counter, a list of one int that everything in the same memory shares. A view has a `_base`
    (never itself a view), the version at which its `_grad_fn` is valid, and how it was made.
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
    _hooks: HooksById | None = None  # of the current grad_fn, or of a leaf
    _accumulated_hooks: HooksById | None = None
    _grad_of: weakref.ref[Tensor] | None = None
    _retained: bool = False
    _is_parameter: ClassVar[bool] = False
    _is_number: ClassVar[bool] = False
    _is_mask: ClassVar[bool] = False
    _is_placeholder: ClassVar[bool] = False
    __array_priority__ = 1000  # NumPy leaves mixed expressions to tensors

    def __new__(cls, *data: Any, **options: Any) -> Tensor:
        """``torch.Tensor(data)`` or ``torch.Tensor(2, 3)``: a tensor in the default dtype with this data or size."""
        return callbacks.empty_of(cls, data, options)

    # Properties

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
        """Its output number in its ``grad_fn``."""
        return self._output_nr

    @property
    def _version(self) -> int:
        """The number of in-place writes to its memory."""
        if self.is_inference():
            raise RuntimeError(messages.INFERENCE_VERSION)
        return self._counter[0]

    def is_inference(self) -> bool:
        """Whether it was made in ``inference_mode``: writes are not counted, and recorded operations cannot save it."""
        return self._counter[0] == UNCOUNTED

    # Autograd

    @property
    def requires_grad(self) -> bool:
        """Whether it gets gradients: a leaf with this flag, or the result of a recorded operation."""
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
        """Sets ``requires_grad`` of a leaf. Raises RuntimeError for a non-leaf or a dtype without gradients."""
        if not isinstance(requires_grad, bool):
            kind = type(requires_grad).__name__
            raise TypeError(f"requires_grad_(): argument 'requires_grad' (position 1) must be bool, not {kind}")
        if not requires_grad and self.grad_fn is not None:
            raise RuntimeError(messages.FLAG_ON_NON_LEAF + messages.FLAG_OFF_HINT)
        if self._grad_fn is None:  # not the property, which reads the base and could raise here
            self._set_requires_grad(requires_grad, messages.METHOD_CANNOT_REQUIRE)
        return self

    def _set_requires_grad(self, value: bool, not_of_this_dtype: str) -> None:
        if value and self._array.dtype.kind != "f":
            raise RuntimeError(not_of_this_dtype)
        if value and self.is_inference() and not thread.inference:
            raise RuntimeError(messages.INFERENCE_FLAG)
        changed = self._requires_grad is not value
        self._requires_grad = value
        if changed and operation_watchers.watchers and (recorder := operation_watchers.recorder()) is not None:
            recorder.switched(self, "requires_grad_()")
        if changed and emit.channel is not None:
            callbacks.requires_grad_set(emit.channel, self)

    @property
    def grad(self) -> Tensor | None:
        """The gradient accumulated here by backward passes, or None."""
        return read(self)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        channel = emit.channel
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(messages.GRAD_TYPE.format(name=type(value).__name__))
            refuse_unfit(self, value)
            if channel is not None:
                callbacks.seen(channel, value)  # while its previous owner is known
        self._set_grad(value)
        if channel is not None:
            callbacks.grad_set(channel, self, "none" if value is None else "assigned", channel.stack())

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
        """Keeps the gradient of a non-leaf in ``.grad``. Raises RuntimeError if it does not require grad."""
        if not self.requires_grad:
            raise RuntimeError(messages.CANNOT_RETAIN)
        node = self.grad_fn
        if node is None or self._retained:
            return
        self._retained = True
        node.with_extras().retaining_tensors[self._output_nr] = weakref.ref(self)

    @property
    def retains_grad(self) -> bool:
        """Whether `retain_grad` was called on this non-leaf."""
        return self._retained

    def register_hook(self, hook: Hook) -> RemovableHandle:
        """Calls `hook` with the complete gradient of this tensor; a value that it returns replaces the gradient."""
        if not self.requires_grad:
            raise RuntimeError(messages.CANNOT_HOOK)
        if self._hooks is None:
            node, output_nr = self._edge()
            self._hooks = node.with_extras().tensor_hooks.setdefault(output_nr, {})
        return RemovableHandle(self._hooks, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Calls ``hook(leaf)`` whenever a backward pass has added to the ``.grad`` of this leaf."""
        if not self.requires_grad:
            raise RuntimeError(messages.CANNOT_HOOK)
        if self.grad_fn is not None:
            raise RuntimeError(messages.HOOK_OF_NON_LEAF)
        if self._accumulated_hooks is None:
            self._accumulated_hooks = {}
        return RemovableHandle(self._accumulated_hooks, hook)

    @property
    def _backward_hooks(self) -> HooksById | None:
        """The hooks by the ids of their handles, None before the first."""
        return self._hooks

    @property
    def _post_accumulate_grad_hooks(self) -> HooksById | None:
        return self._accumulated_hooks

    def _edge(self) -> Edge:
        """Return the edge for a gradient of this tensor: to its ``grad_fn``, or to a leaf's `AccumulateGrad`."""
        node = self._grad_fn if self._base is None else self.grad_fn
        if node is not None:
            return node, self._output_nr
        known = self._accumulator
        accumulator = None if known is None else known()
        if accumulator is None:
            accumulator = AccumulateGrad(self)
            if self._hooks is not None:
                # the accumulator may have been freed, a leaf's hooks stay
                accumulator.with_extras().tensor_hooks[0] = self._hooks
            self._accumulator = weakref.ref(accumulator)
        return accumulator, 0

    # Copies within the engine

    def _alias(self) -> Tensor:
        """Return a tensor with the same memory and version counter, without a grad_fn."""
        alias = new_tensor(self._array)
        alias._counter = self._counter
        if self._seen is not None:
            alias._seen, alias._storage = self._seen, self._storage
        return alias

    def _as_output_of(self, node: Node, output_nr: int) -> Tensor:
        """Return a tensor with the same memory, as output `output_nr` of `node`."""
        alias = self._alias()
        alias._grad_fn, alias._output_nr, alias._requires_grad = node, output_nr, True
        return alias

    def _is_stale_view(self) -> bool:
        """Return whether its base was written to, so that its ``grad_fn`` must be made again."""
        base = self._base
        if base is None or (self._grad_fn is None and not base._requires_grad):
            return False
        return self._view_version != self._counter[0]

    def _refresh(self) -> None:
        """Update a view's ``grad_fn`` after writes to its base."""
        if self._is_stale_view():
            callbacks.refresh(self)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        head = "Parameter containing:\n" if self._is_parameter else ""
        return head + tensor_text(self._array, self.dtype, _origin(self))

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Pickles and copies it as a leaf: memory, class, requires_grad, and attributes that the program set."""
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
        copy = memo[id(self)] = _restored(array, self.requires_grad, kind)
        if self._grad is not None:
            copy._set_grad(self._grad.__deepcopy__(memo))
        copy.__dict__.update(deepcopy(self._own_attributes(), memo))
        return copy

    def _own_attributes(self) -> dict[str, Any]:
        """Return the attributes that the program set on this tensor, without the engine's own."""
        kind = type(self)
        return {name: value for name, value in self.__dict__.items() if not hasattr(kind, name)}


def new_tensor(array: Array, cls: type[Tensor] = Tensor, _new: Any = object.__new__) -> Tensor:
    """An untracked tensor around `array`, which is not copied."""
    t: Tensor = _new(cls)
    t._array = array
    t._grad = t._grad_fn = t._base = t._seen = None
    t._requires_grad = False
    t._output_nr = 0
    t._counter = [0]
    if modes.marks_new:
        _mark_new(t)
    return t


def _origin(tensor: Tensor) -> list[str]:
    """Return the suffix of a printed tensor that shows its origin."""
    try:
        grad_fn = tensor.grad_fn
    except RuntimeError:  # a view that was cut off by a write to its base
        return ["grad_fn=<Invalid>"]
    if grad_fn is not None:
        return [f"grad_fn=<{type(grad_fn).__name__}>"]
    return ["requires_grad=True"] if tensor.requires_grad else []


def count_writes(tensor: Tensor, times: int) -> Tensor:
    """Adds to the version of a new tensor: PyTorch computes some results by in-place writes."""
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
    return count_writes(restored, 1)  # PyTorch makes it empty and then sets its memory


# ----------------------------------------------------------------------------------------------------------------------
# The node of a leaf.


class AccumulateGrad(Node):
    """The end of a graph at a leaf: adds the incoming gradient to the leaf's ``.grad``.

    There is one per leaf, held weakly by the leaf and strongly by the graphs that use it.
    """

    __slots__ = ("variable",)
    variable: Tensor

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable
        self.sequence_nr = LAST_SEQUENCE_NR
        self.extras = None
        if anomaly_detection.mode.enabled:
            anomaly_detection.remember(self)
        self.next_edges = self.saved = self.versions = ()
        self.attrs = {}
        self.outputs = ((variable._array.shape, variable._array.dtype),)

    @property
    def seen(self) -> Seen | None:  # type: ignore[override]  # a leaf and its accumulator are one node
        """The announcement of the leaf."""
        return self.variable._seen

    @classmethod
    def name(cls) -> str:
        """PyTorch's name, which differs from that of the class."""
        return "torch::autograd::AccumulateGrad"

    def vjp(self, grads: Sequence[Grad | None], create_graph: bool) -> Sequence[Grad | None]:
        raise AssertionError("a leaf accumulates; it has no rule")


# ----------------------------------------------------------------------------------------------------------------------
# A Python number as an operand.


class WrappedNumber(Tensor):
    """A Python number as an operand: a 0-dimensional constant, drawn smaller than a tensor of the program."""

    __slots__ = ()
    _is_number = True
