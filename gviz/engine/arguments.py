"""What factories are called with: sizes, numbers and options, checked in PyTorch's words."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from operator import index as as_index
from typing import Any, TypedDict, TypeVar

import numpy as np

from gviz.engine import dtypes
from gviz.engine.devices import check as check_device
from gviz.engine.devices import device as Device
from gviz.engine.dtypes import dtype as DType
from gviz.engine.layout import check as check_layout
from gviz.engine.layout import checked_format
from gviz.engine.layout import layout as Layout
from gviz.engine.layout import memory_format as MemoryFormat
from gviz.engine.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])


class Options(TypedDict, total=False):
    """The keyword arguments every factory takes."""

    dtype: DType | None
    layout: Layout | None
    device: Device | str | None
    pin_memory: bool | None
    requires_grad: bool | None
    memory_format: MemoryFormat | None
    out: Tensor | None


_MISSING = re.compile(r"missing \d+ required positional arguments?: '(\w+)'.*")
_ACCEPTED = (
    "*, Tensor out = None, torch.dtype dtype = None, torch.layout layout = None, torch.device device = None, "
    "bool pin_memory = False, bool requires_grad = False"
)
_C_NAMES = {"uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t"}
_C_NAMES |= {"float16": "c10::Half", "float32": "float"}


def worded(function: F) -> F:
    """Say of a missing argument what PyTorch says."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise  # from within the function, not from calling it
            text = str(error).rpartition(".")[2]
            raise TypeError(_MISSING.sub(r'missing 1 required positional arguments: "\1"', text)) from None

    return wrapper  # type: ignore[return-value]  # the same signature


def checked(function: str, options: Options, *, refused: Sequence[str] = ()) -> Options:
    """The options, after a look at each. TypeError for a wrong or unknown one."""
    for name, value in options.items():
        if name not in Options.__annotations__ or name in refused:
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")
        if name in ("requires_grad", "pin_memory") and not isinstance(value, bool):
            raise TypeError(f"{function}(): argument '{name}' must be bool, not {typename(value)}")
    if options.get("device") is not None:
        check_device(options["device"], function)
    check_layout(function, options.get("layout"))
    if options.get("memory_format") is not None:
        checked_format(function, options["memory_format"])
    if options.get("pin_memory"):
        raise RuntimeError(
            "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on "
            "this system."
        )
    return options


def kind_of(function: str, options: Options, default: DType | None = None) -> DType:
    """The ``dtype=`` that was asked for, or the default."""
    wanted = options.get("dtype")
    if wanted is None:
        return default or dtypes.get_default_dtype()
    found = dtypes.given(wanted)
    if found is None:
        raise TypeError(f"{function}(): argument 'dtype' must be torch.dtype, not {typename(wanted)}")
    return found


def sizes(function: str, args: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape given as separate arguments or as one sequence."""
    if not args:
        raise TypeError(f'{function}() missing 1 required positional arguments: "size"')
    if isinstance(args[0], (tuple, list)):
        if len(args) > 1:
            raise TypeError(f"{function}() takes 1 positional argument but {len(args)} were given")
        return size(function, args[0])
    if _size(args[0]) is None:
        kind = typename(args[0])
        raise TypeError(f"{function}(): argument 'size' (position 1) must be tuple of ints, not {kind}")
    return size(function, args)


def size(function: str, given: Any, where: str = " (position 1)") -> tuple[int, ...]:
    """A shape given as one sequence."""
    if not isinstance(given, (tuple, list)):
        raise TypeError(f"{function}(): argument 'size'{where} must be tuple of ints, not {typename(given)}")
    shape = tuple([_size(n) if i == 0 or not isinstance(n, bool) else int(n) for i, n in enumerate(given)])
    if None in shape:
        place = shape.index(None)
        kind = typename(given[place])
        what = f"{function}(): argument 'size'"
        if place:
            raise TypeError(
                f"{what} failed to unpack the object at pos {place + 1} with error "
                f'"type must be tuple of ints,but got {kind}"'
            )
        raise TypeError(f"{what}{where} must be tuple of ints, but found element of type {kind} at pos 0")
    return possible(shape, function)  # type: ignore[arg-type]  # no None is left


def possible(shape: tuple[int, ...], function: str = "empty") -> tuple[int, ...]:
    """`shape`, of which no size may be negative. RuntimeError, in the words of `function`, if one is."""
    negative = next((n for n in shape if n < 0), None)
    if negative is not None:
        if function == "zeros":
            raise RuntimeError("zeros: Dimension size must be non-negative.")
        raise RuntimeError(f"Trying to create tensor with negative dimension {negative}: {list(shape)}")
    return shape


def _size(value: object) -> int | None:
    """An integer, also as a 0-dimensional tensor or array; None for anything else."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    try:
        return as_index(value)
    except TypeError:
        return None


def number(function: str, value: Any, name: str, position: int) -> Any:
    """`value` as a Python number. TypeError for what PyTorch takes for none."""
    if isinstance(value, Tensor) and not value.ndim and not value.requires_grad:
        return value.item()
    if isinstance(value, (np.number, np.bool_)):
        return value.item()
    if isinstance(value, complex):
        assert dtypes.complex64.numpy  # refuses complex numbers by name
    if not isinstance(value, (bool, int, float)):
        raise TypeError(f"{function}(): argument '{name}' (position {position}) must be Number, not {typename(value)}")
    return value


def integer(function: str, value: Any, name: str, position: int) -> int:
    """`value` as an integer. TypeError for what PyTorch takes for none."""
    found = _size(value)
    if found is None:
        raise TypeError(f"{function}(): argument '{name}' (position {position}) must be int, not {typename(value)}")
    return found


def whole_numbers(function: str, name: str, given: Any, position: int) -> tuple[int, ...]:
    """Integers given one by one as a tuple, or as one sequence in it. TypeError for anything else."""
    nested = isinstance(given, tuple) and len(given) == 1 and isinstance(given[0], (tuple, list))
    numbers = given[0] if nested else given
    what = f"{function}(): argument '{name}' (position {position}) must be tuple of ints"
    if not isinstance(numbers, (tuple, list)):
        raise TypeError(f"{what}, not {typename(numbers)}")
    found = [_size(number) for number in numbers]
    if None in found:
        place = found.index(None)
        kind = typename(numbers[place])
        alone = numbers is given and len(numbers) == 1
        raise TypeError(f"{what}, not {kind}" if alone else f"{what}, but found element of type {kind} at pos {place}")
    return tuple(found)  # type: ignore[arg-type]  # no None is left


def fitting(value: Any, kind: DType) -> Any:
    """`value`, which must be within the range of a dtype, in the words of C++; below zero it wraps as it does there."""
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (bool, int, float)):
        raise TypeError(f"must be a number, not {typename(value)}")
    if kind.is_floating_point:
        limit = float(np.finfo(kind.numpy).max)
        overflows = abs(value) > limit and abs(value) != np.inf
    else:
        overflows = kind.name != "bool" and not in_range(value, kind)
    if overflows:
        raise RuntimeError(f"value cannot be converted to type {_C_NAMES.get(kind.name, kind.name)} without overflow")
    return int(value) % (1 << 8 * kind.itemsize) if kind.numpy.kind == "u" and value < 0 else value


def in_range(value: Any, kind: DType) -> bool:
    """Whether an integer dtype holds a number; negative ones wrap around in unsigned dtypes."""
    limits = np.iinfo(kind.numpy)
    low = -int(limits.max) if limits.min == 0 else int(limits.min)
    return bool(low <= value <= int(limits.max))


def combination(function: str, args: tuple[Any, ...], given: dict[str, Any], *calls: str) -> TypeError:
    """The error for arguments that fit none of a function's signatures."""
    got = [typename(value) for value in args] + [f"{name}={typename(value)}" for name, value in given.items()]
    listed = "".join(f" * ({call})\n" for call in calls).replace("OPTIONS", _ACCEPTED)
    told = f"received an invalid combination of arguments - got ({', '.join(got)}), but expected one of:"
    return TypeError(f"{function}() {told}\n{listed}")


def typename(value: object) -> str:
    """The type of a value as PyTorch's errors name it."""
    kind = type(value)
    if kind is DType:
        return "torch.dtype"
    return (
        f"{kind.__module__}.{kind.__name__}"
        if kind.__module__ in ("numpy", "decimal", "torch.return_types")
        else kind.__name__
    )
