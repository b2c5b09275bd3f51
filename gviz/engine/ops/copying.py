"""Copies, memory layouts and dtype conversions: ``clone``, ``copy_``, ``contiguous``, ``fill_``, ``to``, ``type``."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz import emit
from gviz.engine import dtypes, instrumentation, legacy_constructors, messages, operation_watchers
from gviz.engine.arguments import combination, typename
from gviz.engine.array_storage import address_of
from gviz.engine.broadcasting import broadcast_error
from gviz.engine.devices import check as check_device
from gviz.engine.devices import device as Device
from gviz.engine.dtypes import dtype as DType
from gviz.engine.functions_and_methods import Number, attribute, derive, front, operand
from gviz.engine.memory_format import (
    checked_format,
    contiguous_format,
    copied,
    is_in,
    preserve_format,
    strides_of,
    suggested,
)
from gviz.engine.memory_format import memory_format as MemoryFormat
from gviz.engine.memory_format import named as named_format
from gviz.engine.modes import thread
from gviz.engine.number_conversion import fitting
from gviz.engine.op import Example, Op, Rule, apply, zero_gradient
from gviz.engine.ops._examples import normal
from gviz.engine.tensor import Tensor, callbacks
from gviz.engine.views import apply_in_place
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Copies, writes, and detaching: operations on memory rather than on numbers.


clone: Op = Op(
    "clone(self)",
    grad_fn="CloneBackward0",
    formula="a copy of self",
    forward=lambda self: np.array(self) if self.size and self.flags.c_contiguous else copied(self),
    rules=(Rule("self", "g", lambda g: g),),
    examples=lambda: [Example((normal(2, 3),), {})],
)
clone_in_order: Op = Op(
    "clone(self)",
    grad_fn="CloneBackward0",
    formula="a copy of self in C order",
    forward=lambda self: np.array(self, order="C"),
    rules=(Rule("self", "g", lambda g: g),),
    public=False,
    examples=lambda: [Example((normal(2, 3),), {})],
)
clone_in_format: Op = Op(
    "clone(self, *, memory_format)",
    grad_fn="CloneBackward0",
    formula="a copy of self in the order memory_format",
    forward=lambda self, memory_format: copied(self, named_format(memory_format)),
    rules=(Rule("self", "g", lambda g: g),),
    public=False,
    examples=lambda: [Example((normal(1, 2, 2, 2),), {"memory_format": "channels_last"})],
)
detach: Op = Op(
    "detach(self)",
    grad_fn="",
    formula="self, outside the graph",
    forward=lambda self: self.view(),
    memory="alias",
    untracked="detach",
)
data: Op = Op(
    "data(self)",
    grad_fn="",
    formula="the data of self",
    forward=lambda self: self.view(),
    memory="data",
    untracked="data",
    public=False,
)
copy: Op = Op(
    "copy(self, src)",
    grad_fn="CopyBackwards",
    formula="src",
    forward=lambda self, src: _copied(self, src),
    write_block=np.copyto,
    rules=(Rule("self", "0", zero_gradient), Rule("src", "g", lambda g: g)),
    public=False,
    examples=lambda: [Example((normal(2, 3), normal(3)), {})],
)
fill: Op = Op(
    "fill(self, *, value)",
    grad_fn="FillBackward2",
    formula="value in every element",
    forward=lambda self, value: np.full(self.shape, value, self.dtype),
    write_block=lambda self, value: self.fill(value),
    rules=(Rule("self", "0", zero_gradient),),
    public=False,
    overlap="free",
    examples=lambda: [Example((normal(2, 3),), {"value": 2.0})],
)
fill_tensor: Op = Op(
    "fill(self, value)",
    grad_fn="FillBackward3",
    formula="value in every element",
    forward=lambda self, value: np.full(self.shape, value, self.dtype),
    rules=(Rule("self", "0", zero_gradient), Rule("value", "g, summed", lambda g: g)),  # the engine sums
    public=False,
    overlap="once",
    examples=lambda: [Example((normal(2, 3), normal()), {})],
)
zero: Op = Op(
    "zero(self)",
    grad_fn="ZeroBackward0",
    formula="0 in every element",
    forward=np.zeros_like,
    write_block=lambda self: self.fill(0),
    rules=(Rule("self", "0", zero_gradient),),
    public=False,
    overlap="free",
    examples=lambda: [Example((normal(2, 3),), {})],
)


def _copied(self: Array, src: Array) -> Array:
    try:
        shape = np.broadcast_shapes(self.shape, src.shape)
    except ValueError:
        raise RuntimeError(broadcast_error(self.shape, src.shape)) from None
    return np.broadcast_to(src, shape).astype(self.dtype)


derive(detach)


@front("clone")
def clone_front(input: Tensor, *, memory_format: MemoryFormat | None = preserve_format) -> Tensor:
    """A copy in the memory order of `input`, or of `memory_format`."""
    order = preserve_format if memory_format is None else checked_format("clone", memory_format)
    return _cloned(input, order)


def _cloned(self: Tensor, order: MemoryFormat) -> Tensor:
    if order is preserve_format or order is contiguous_format:
        copy: Tensor = apply(clone if order is preserve_format else clone_in_order, (self,))
    else:
        copy = apply(clone_in_format, (self,), {"memory_format": order.name})
    return copy


def _copy_into(target: Tensor, source: Tensor) -> Tensor:
    return apply_in_place(copy, (target, source), {}, rule="free")


callbacks.copy_into = _copy_into


@front("copy_", function=False)
def copy_(self: Tensor, src: Tensor | Number) -> Tensor:
    """Copies the elements of `src` to this tensor; elements in the same memory stay as they are."""
    src = operand(copy, src, self)
    return apply_in_place(copy, (self, src), {}, rule="free" if _lie_together(self._array, src._array) else None)


def _lie_together(one: Array, other: Array) -> bool:
    same_form = one.dtype == other.dtype and one.shape == other.shape and one.strides == other.strides
    return same_form and address_of(one) == address_of(other)


@front("fill_", function=False)
def fill_(self: Tensor, value: Tensor | Number) -> Tensor:
    """Writes `value` to every element."""
    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions."
            )
        return apply_in_place(fill_tensor, (self, value), {})
    return apply_in_place(fill, (self,), {"value": fitting(value, self.dtype)})


@front("zero_", function=False)
def zero_(self: Tensor) -> Tensor:
    """Writes 0 to every element."""
    return apply_in_place(zero, (self,), {})


@front("detach_", function=False)
def detach_(self: Tensor) -> Tensor:
    """Detaches in place.

    Raises RuntimeError for a view, whose base would stay attached; no effect in ``inference_mode`` or on its tensors.
    """
    if thread.inference or self.is_inference():
        return self  # PyTorch's autograd, which implements it, is bypassed there
    if self._base is not None:
        raise RuntimeError(messages.DETACH_VIEW)
    if operation_watchers.watchers and (recorder := operation_watchers.recorder()) is not None:
        recorder.switched(self, "detach_()")
    self._grad_fn, self._output_nr = None, 0
    self.requires_grad_(False)
    return self


@front("contiguous", function=False)
def contiguous(self: Tensor, *, memory_format: MemoryFormat = contiguous_format) -> Tensor:
    """Returns this tensor if its memory is in C order, or in `memory_format`; else a copy that is."""
    order = checked_format("contiguous", memory_format)
    if is_in(self._array, order):
        return self
    if order is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    return _cloned(self, order)


@front("is_contiguous", function=False)
def is_contiguous(self: Tensor, *, memory_format: MemoryFormat = contiguous_format) -> bool:
    """Whether the memory is in C order, or in `memory_format`."""
    return is_in(self._array, checked_format("is_contiguous", memory_format))


@front("dim_order", function=False)
def dim_order(self: Tensor) -> tuple[int, ...]:
    """The dimensions from the longest stride to the shortest."""
    strides = strides_of(self._array)
    return tuple(sorted(range(self.ndim), key=lambda dim: -strides[dim]))


@front("is_inference", method=False)
def is_inference(input: Tensor) -> bool:
    """Whether `input` was made in ``inference_mode``."""
    return input.is_inference()


@front("_is_view", function=False)
def is_view(self: Tensor) -> bool:
    """Whether it is a view that autograd tracks with its base."""
    return self._base is not None


@front("stride", function=False)
def stride(self: Tensor, dim: int | None = None) -> Any:
    """The strides in elements, per dimension or along one."""
    strides = strides_of(self._array)
    if dim is None:
        return strides
    if not -len(strides) <= dim < len(strides):
        bounds = f"[{-len(strides)}, {len(strides) - 1}]"
        raise IndexError(f"Dimension out of range (expected to be in range of {bounds}, but got {dim})")
    return strides[dim]


def _get_data(self: Tensor) -> Tensor:
    """Return the same memory without a grad_fn, with its own version counter: autograd does not see writes to it."""
    result: Tensor = apply(data, (self,))
    return result


def _set_data(self: Tensor, value: Tensor) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {typename(value)}")
    if self.requires_grad and value._array.dtype.kind != "f":
        raise RuntimeError(messages.DATA_DTYPE)
    channel = emit.channel
    if channel is not None:
        instrumentation.edges(channel, (self, value))
    if operation_watchers.watchers and (recorder := operation_watchers.recorder()) is not None:
        recorder.switched(self, "assigning to .data")
    if value.dtype is not self.dtype:
        self._accumulator = None  # the graphs of before keep theirs, which converts gradients to the dtype of then
    self._array = value._array
    if channel is not None:
        instrumentation.moved(channel, self, value)


def _delete_data(self: Tensor) -> None:
    raise RuntimeError(messages.DATA_DELETED)


attribute("data", _get_data, _set_data, _delete_data)


# ----------------------------------------------------------------------------------------------------------------------
# Conversions to another dtype: ``to``, ``type``, ``float()`` and similar methods.


to_copy: Op = Op(
    "to(self, *, dtype)",
    grad_fn="ToCopyBackward0",
    formula="self as dtype",
    forward=lambda self, dtype: copied(self, dtype=dtypes.named(dtype).numpy),
    rules=(Rule("self", "g", lambda g: g),),  # the engine converts a gradient to its input's dtype
    public=False,
    examples=lambda: [Example((normal(2, 3),), {"dtype": "float64"})],
)
to_copy_in_format: Op = Op(
    "to(self, *, dtype, memory_format)",
    grad_fn="ToCopyBackward0",
    formula="self as dtype in the order memory_format",
    forward=lambda self, dtype, memory_format: copied(self, named_format(memory_format), dtypes.named(dtype).numpy),
    rules=(Rule("self", "g", lambda g: g),),
    public=False,
    examples=lambda: [Example((normal(1, 2, 2, 2),), {"dtype": "float64", "memory_format": "channels_last"})],
)
to_whole: Op = Op("to(self, *, dtype)", grad_fn="", formula="self as dtype", forward=to_copy.forward, public=False)

_REST = "bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None"
_CALLS = (
    f"torch.device device = None, torch.dtype dtype = None, {_REST}",
    f"torch.dtype dtype, {_REST}",
    f"Tensor tensor, {_REST}",
)
_FLAGS = ("non_blocking", "copy")


@front("to", function=False)
def to(self: Tensor, *args: Any, **options: Any) -> Tensor:
    """This tensor in another dtype, which may be that of another tensor; itself if nothing changes and `copy` is False.

    The only device is the CPU.
    """
    arguments = _named(args, options)
    kind = arguments.get("dtype")
    target = self.dtype if kind is None else dtypes.from_argument(kind)
    if target is None:
        raise TypeError(f"to(): argument 'dtype' must be torch.dtype, not {typename(kind)}")
    check_device(arguments.get("device"), "to")
    return _converted(self, target, arguments.get("memory_format"), bool(arguments.get("copy")))


def _converted(self: Tensor, kind: DType, order: MemoryFormat | None, copy: bool) -> Tensor:
    """Return this tensor, or a copy if dtype or memory order change or `copy` is True."""
    order = order or preserve_format
    as_it_lies = order is preserve_format or suggested(self._array) is order
    return self if as_it_lies and kind is self.dtype and not copy else cast(self, kind, order)


def cast(self: Tensor, kind: DType, order: MemoryFormat = preserve_format) -> Tensor:
    """A copy of a tensor in dtype `kind`, recorded unless that dtype has no gradients."""
    assert kind.numpy  # raises for a dtype that is only a name
    if order is not preserve_format:
        attrs = {"dtype": kind.name, "memory_format": order.name}
        arranged: Tensor = apply(to_copy_in_format, (self,), attrs)
        return arranged
    result: Tensor = apply(to_copy if kind.is_floating_point else to_whole, (self,), {"dtype": kind.name})
    return result


def _named(args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `to` by name: it accepts a device and a dtype, a dtype only, or another tensor."""
    first = args[0] if args else options.get("tensor")
    if isinstance(first, Tensor):
        rest = {name: value for name, value in options.items() if name != "tensor"}
        return {"dtype": first.dtype} | _flags(args[1:] if args else (), rest, args)
    if dtypes.from_argument(first) is not None:
        return {"dtype": first} | _flags(args[1:], options, args)
    if isinstance(first, (bool, float)):  # PyTorch uses a number's type
        return {"dtype": type(first)} | _flags(args[1:], options, args)
    if first is not None and not isinstance(first, (str, int, Device)):
        raise combination("to", args, options, *_CALLS)
    places = dict(zip(("device", "dtype"), args, strict=False))
    return places | _flags(args[2:], options, args)


def _flags(rest: tuple[Any, ...], options: dict[str, Any], args: tuple[Any, ...]) -> dict[str, Any]:
    known = {"device", "dtype", "memory_format", *_FLAGS}
    order = options.get("memory_format")
    unfit = order is not None and not isinstance(order, MemoryFormat)
    if unfit or len(rest) > len(_FLAGS) or not options.keys() <= known:
        raise combination("to", args, options, *_CALLS)
    return dict(zip(_FLAGS, rest, strict=False)) | options


def _converter(name: str, kind: DType) -> Any:
    def convert(self: Tensor, *, memory_format: Any = None) -> Tensor:
        order = None if memory_format is None else checked_format(name, memory_format)
        return _converted(self, kind, order, False)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"This tensor as {kind.name}."
    return convert


_CONVERTERS = {
    **{"float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16},
    **{"int": dtypes.int32, "long": dtypes.int64, "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8},
    **{"bool": dtypes.bool_, "cfloat": dtypes.complex64, "cdouble": dtypes.complex128, "chalf": dtypes.complex32},
}
for name, target in _CONVERTERS.items():
    front(name, function=False)(_converter(name, target))


@front("type", function=False)
def type_front(
    self: Tensor, dtype: Any = None, non_blocking: bool = False, *, memory_format: MemoryFormat = preserve_format
) -> Tensor | str:
    """The name of the tensor's type; with `dtype`, this tensor converted to that type."""
    if dtype is None:
        return f"torch.{self.dtype.tensor_type}Tensor"
    kind = (
        dtype if isinstance(dtype, DType) else legacy_constructors.kind_named(dtype) if isinstance(dtype, str) else None
    )
    if isinstance(dtype, legacy_constructors.tensortype):
        kind = dtype.dtype
    if kind is not None:
        return _converted(self, kind, checked_format("type", memory_format), False)
    if isinstance(dtype, (str, type)):
        raise ValueError(f"invalid type: '{dtype if isinstance(dtype, str) else dtype.__name__}'")
    raise TypeError("dtype must be a type, str, or dtype object")


@front("type_as", function=False)
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """This tensor in the dtype of another one."""
    if not isinstance(other, Tensor):
        raise TypeError(f"type_as(): argument 'other' (position 1) must be Tensor, not {typename(other)}")
    return self.to(other.dtype)
