"""Legacy constructors: ``torch.Tensor(2, 3)``, ``torch.FloatTensor([1, 2])``, ``x.new(3)``, default tensor types."""

from __future__ import annotations

import copyreg
from collections.abc import Mapping
from typing import Any

import numpy as np

from gviz.engine import dtypes
from gviz.engine.arguments import combination, sizes, typename
from gviz.engine.creation import array_of, from_array, is_sequence, warn_of_read_only
from gviz.engine.devices import device as Device
from gviz.engine.dtypes import dtype as DType
from gviz.engine.functions_and_methods import front
from gviz.engine.size import Size
from gviz.engine.tensor import Tensor, callbacks, new_tensor

__all__ = ["set_default_tensor_type"]

_CALLS = (
    "*, torch.device device = None",
    "torch.Storage storage",
    "Tensor other",
    "tuple of ints size, *, torch.device device = None",
    "object data, *, torch.device device = None",
)
_OTHER_KIND = (
    "expected TensorOptions(dtype={own}, device=cpu, layout=Strided, requires_grad=false (default), "
    "pinned_memory=false (default), memory_format=(nullopt)) (got TensorOptions(dtype={got}, device=cpu, "
    "layout=Strided, requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt)))"
)


def construct(kind: DType, args: tuple[Any, ...], options: dict[str, Any], *, alike: bool = True) -> Tensor:
    """A tensor of dtype `kind`, from a sequence, or uninitialized with the given size.

    From another tensor it returns one that shares its memory; with `alike` that tensor may have any dtype.
    """
    args = args or tuple([options.pop(name) for name in ("data", "size", "other") if name in options][:1])
    where = options.pop("device", None)
    if options:
        raise combination("new", args, options, *_CALLS)
    if where is not None and (device := Device(where)).type != "cpu":
        raise RuntimeError(f"legacy constructor expects device type: cpu but device type: {device.type} was passed")
    if len(args) == 1 and isinstance(args[0], Tensor):
        return _sharing(args[0], kind, alike=alike)
    if len(args) == 1 and not _is_size(args[0]):
        data = _sequence(args[0])
        warn_of_read_only(data)
        return from_array(np.array(array_of(data, kind)), False)
    return from_array(np.zeros(sizes("new", args) if args else 0, kind.numpy), False)


def _is_size(value: object) -> bool:
    return isinstance(value, (int, np.integer, Size)) and not isinstance(value, bool)


def _sequence(value: Any) -> Any:
    if isinstance(value, (str, bytes, np.ndarray)):
        return value
    if isinstance(value, Mapping) or not is_sequence(value):
        raise TypeError(f"new(): data must be a sequence (got {typename(value)})")
    return value


def _sharing(other: Tensor, kind: DType, *, alike: bool) -> Tensor:
    if not alike and other.dtype is not kind:
        own, got = (d.cpp_name for d in (kind, other.dtype))
        raise TypeError(_OTHER_KIND.format(own=own, got=got))
    shared: Tensor = other.detach()
    return shared


@front("new", function=False)
def new(self: Tensor, *args: Any, **options: Any) -> Tensor:
    """Like ``torch.Tensor(...)``, in the dtype of this tensor."""
    return construct(self.dtype, args, options, alike=False)


class tensortype(type):  # PyTorch's own spelling
    """The type of ``torch.FloatTensor`` and similar names.

    They create and recognize tensors, but are not subclasses.
    """

    dtype: DType
    __module__ = "torch"

    def __call__(cls, *args: Any, **options: Any) -> Tensor:
        return construct(cls.dtype, args, options, alike=False)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Tensor) and value.dtype is cls.dtype


copyreg.pickle(tensortype, lambda cls: (_type_named, (cls.__name__,)))  # its module does not exist in the engine

TYPES = {
    f"{kind.tensor_type}Tensor": tensortype(f"{kind.tensor_type}Tensor", (), {"dtype": kind, "__module__": "torch"})
    for kind in dtypes.ALL
}
globals().update(TYPES)
__all__ += [*TYPES]


def _type_named(name: str) -> tensortype:
    return TYPES[name]


def set_default_tensor_type(t: type[Any] | str) -> None:
    """Sets the dtype of tensors made from Python floats, by the name of a tensor type."""
    default = kind_named(t) if isinstance(t, str) else getattr(t, "dtype", None)
    if default is None:
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    dtypes.set_default_dtype(default)


def kind_named(name: str) -> DType | None:
    """The dtype of a tensor type's name, such as ``torch.FloatTensor``; None if unknown."""
    if name == "torch.Tensor":
        return dtypes.get_default_dtype()
    tensor_type = TYPES.get(name.removeprefix("torch.")) if name.startswith("torch.") else None
    return None if tensor_type is None else tensor_type.dtype


def empty_of(cls: type[Tensor], args: tuple[Any, ...], options: dict[str, Any]) -> Tensor:
    """The result of ``torch.Tensor(...)``: a tensor in the default dtype."""
    result = construct(dtypes.get_default_dtype(), args, options)
    return result if cls is Tensor else new_tensor(result._array, cls)


callbacks.empty_of = empty_of
