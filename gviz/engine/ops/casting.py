"""A tensor as another dtype: ``to``, ``type``, ``float()`` and its like."""

from __future__ import annotations

from typing import Any

from gviz.engine import dtypes, legacy
from gviz.engine.apply import apply
from gviz.engine.arguments import combination, typename
from gviz.engine.device import check as check_device
from gviz.engine.device import device as Device
from gviz.engine.dtypes import dtype as DType
from gviz.engine.layout import check as check_layout
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor

to_copy: Op = Op(
    "to(self, *, dtype)",
    grad_fn="ToCopyBackward0",
    formula="self as dtype",
    forward=lambda self, dtype: self.astype(dtypes.named(dtype).numpy),
    rules=(Rule("self", "g", lambda g: g),),  # the engine brings a gradient to its input's dtype
    public=False,
    examples=lambda: [Example((normal(2, 3),), {"dtype": "float64"})],
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
    check_layout(given.get("memory_format"))
    return self if wanted is self.dtype and not given.get("copy") else cast(self, wanted)


def cast(self: Tensor, kind: DType) -> Tensor:
    """A copy of a tensor as dtype `kind`, recorded unless that has no gradients."""
    assert kind.numpy  # refuses a dtype that is a name only
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
    if len(rest) > len(_FLAGS) or not options.keys() <= known:
        raise combination("to", args, options, *_CALLS)
    return dict(zip(_FLAGS, rest, strict=False)) | options


def _converter(name: str, kind: DType) -> Any:
    def convert(self: Tensor, *, memory_format: Any = None) -> Tensor:
        check_layout(memory_format)
        return self if kind is self.dtype else cast(self, kind)

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
def type_front(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Tensor | str:
    """The name of the tensor's type; with `dtype`, this tensor in that type."""
    if dtype is None:
        return f"torch.{self.dtype.tensor_type}Tensor"
    kind = dtype if isinstance(dtype, DType) else legacy.kind_named(dtype) if isinstance(dtype, str) else None
    if isinstance(dtype, legacy.tensortype):
        kind = dtype.dtype
    if kind is not None:
        return self.to(kind)
    if isinstance(dtype, (str, type)):
        raise ValueError(f"invalid type: '{dtype if isinstance(dtype, str) else dtype.__name__}'")
    raise TypeError("dtype must be a type, str, or dtype object")


@front("type_as", function=False)
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """This tensor as the dtype of another one."""
    if not isinstance(other, Tensor):
        raise TypeError(f"type_as(): argument 'other' (position 1) must be Tensor, not {typename(other)}")
    return self.to(other.dtype)
