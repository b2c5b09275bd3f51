"""A tensor as another dtype: ``to``, ``type``, ``float()`` and its like."""

from __future__ import annotations

from typing import Any

from gviz.engine import dtypes, legacy
from gviz.engine.apply import apply
from gviz.engine.arguments import combination, typename
from gviz.engine.devices import check as check_device
from gviz.engine.devices import device as Device
from gviz.engine.dtypes import dtype as DType
from gviz.engine.layout import checked_format, copied, preserve_format, suggested
from gviz.engine.layout import memory_format as MemoryFormat
from gviz.engine.layout import named as named_format
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor

to_copy: Op = Op(
    "to(self, *, dtype)",
    grad_fn="ToCopyBackward0",
    formula="self as dtype",
    forward=lambda self, dtype: copied(self, dtype=dtypes.named(dtype).numpy),
    rules=(Rule("self", "g", lambda g: g),),  # the engine brings a gradient to its input's dtype
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
    """This tensor as another dtype, named or that of another tensor; itself if it has it already and `copy` is False.

    The only device is the CPU.
    """
    given = _named(args, options)
    kind = given.get("dtype")
    wanted = self.dtype if kind is None else dtypes.given(kind)
    if wanted is None:
        raise TypeError(f"to(): argument 'dtype' must be torch.dtype, not {typename(kind)}")
    check_device(given.get("device"), "to")
    return _converted(self, wanted, given.get("memory_format"), bool(given.get("copy")))


def _converted(self: Tensor, kind: DType, order: MemoryFormat | None, copy: bool) -> Tensor:
    """This tensor, or a copy if it has another dtype, lies otherwise in memory, or a `copy` is wanted."""
    order = order or preserve_format
    as_it_lies = order is preserve_format or suggested(self._array) is order
    return self if as_it_lies and kind is self.dtype and not copy else cast(self, kind, order)


def cast(self: Tensor, kind: DType, order: MemoryFormat = preserve_format) -> Tensor:
    """A copy of a tensor as dtype `kind`, recorded unless that has no gradients."""
    assert kind.numpy  # refuses a dtype that is a name only
    if order is not preserve_format:
        attrs = {"dtype": kind.name, "memory_format": order.name}
        arranged: Tensor = apply(to_copy_in_format, (self,), attrs)
        return arranged
    result: Tensor = apply(to_copy if kind.is_floating_point else to_whole, (self,), {"dtype": kind.name})
    return result


def _named(args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `to` by name: it takes a device and a dtype, a dtype alone, or another tensor."""
    first = args[0] if args else options.get("tensor")
    if isinstance(first, Tensor):
        rest = {name: value for name, value in options.items() if name != "tensor"}
        return {"dtype": first.dtype} | _flags(args[1:] if args else (), rest, args)
    if dtypes.given(first) is not None:
        return {"dtype": first} | _flags(args[1:], options, args)
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
    """The name of the tensor's type; with `dtype`, this tensor in that type."""
    if dtype is None:
        return f"torch.{self.dtype.tensor_type}Tensor"
    kind = dtype if isinstance(dtype, DType) else legacy.kind_named(dtype) if isinstance(dtype, str) else None
    if isinstance(dtype, legacy.tensortype):
        kind = dtype.dtype
    if kind is not None:
        return _converted(self, kind, checked_format("type", memory_format), False)
    if isinstance(dtype, (str, type)):
        raise ValueError(f"invalid type: '{dtype if isinstance(dtype, str) else dtype.__name__}'")
    raise TypeError("dtype must be a type, str, or dtype object")


@front("type_as", function=False)
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """This tensor as the dtype of another one."""
    if not isinstance(other, Tensor):
        raise TypeError(f"type_as(): argument 'other' (position 1) must be Tensor, not {typename(other)}")
    return self.to(other.dtype)
