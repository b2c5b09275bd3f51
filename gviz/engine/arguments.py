"""The arguments of factories: sizes, numbers and options, checked with PyTorch's error texts."""

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
from gviz.engine.memory_format import check as check_layout
from gviz.engine.memory_format import checked_format
from gviz.engine.memory_format import layout as Layout
from gviz.engine.memory_format import memory_format as MemoryFormat
from gviz.engine.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])


class Options(TypedDict, total=False):
    """The keyword arguments that every factory accepts."""

    dtype: DType | None
    layout: Layout | None
    device: Device | str | None
    pin_memory: bool | None
    requires_grad: bool | None
    memory_format: MemoryFormat | None
    out: Tensor | None


_MISSING = re.compile(r"(\w+)\(\) missing \d+ required positional arguments?: ")
_ACCEPTED = (
    "*, Tensor out = None, torch.dtype dtype = None, torch.layout layout = None, torch.device device = None, "
    "bool pin_memory = False, bool requires_grad = False"
)


def worded(function: F) -> F:
    """Gives the error for a missing argument PyTorch's text."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise  # raised inside the function, not by calling it
            text = str(error).rpartition(".")[2]
            missing = _MISSING.match(text)
            raise (
                missing_arguments(missing[1], re.findall(r"'(\w+)'", text)) if missing else TypeError(text)
            ) from None

    return wrapper  # type: ignore[return-value]  # the same signature


def missing_arguments(function: str, names: Sequence[str]) -> TypeError:
    """The error for missing arguments."""
    plural = "s" if len(names) == 1 else ""  # as in PyTorch
    listed = ", ".join([f'"{name}"' for name in names])
    return TypeError(f"{function}() missing {len(names)} required positional argument{plural}: {listed}")


def checked(function: str, options: Options, *, refused: Sequence[str] = ()) -> Options:
    """Returns the options after checking each. Raises TypeError for a wrong or unknown one."""
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
    """The ``dtype`` option, or the default."""
    argument = options.get("dtype")
    if argument is None:
        return default or dtypes.get_default_dtype()
    kind = dtypes.from_argument(argument)
    if kind is None:
        raise TypeError(f"{function}(): argument 'dtype' must be torch.dtype, not {typename(argument)}")
    return kind


def sizes(function: str, args: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape passed as separate arguments or as one sequence."""
    if not args:
        raise missing_arguments(function, ["size"])
    if isinstance(args[0], (tuple, list)):
        if len(args) > 1:
            raise TypeError(f"{function}() takes 1 positional argument but {len(args)} were given")
        return size(function, args[0])
    if _size(args[0]) is None:
        kind = typename(args[0])
        raise TypeError(f"{function}(): argument 'size' (position 1) must be tuple of ints, not {kind}")
    return size(function, args)


def size(function: str, value: Any, where: str = " (position 1)") -> tuple[int, ...]:
    """The shape passed as one sequence."""
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"{function}(): argument 'size'{where} must be tuple of ints, not {typename(value)}")
    shape = tuple([_size(n) if i == 0 or not isinstance(n, bool) else int(n) for i, n in enumerate(value)])
    if None in shape:
        place = shape.index(None)
        kind = typename(value[place])
        what = f"{function}(): argument 'size'"
        if place:
            raise TypeError(
                f"{what} failed to unpack the object at pos {place + 1} with error "
                f'"type must be tuple of ints,but got {kind}"'
            )
        raise TypeError(f"{what}{where} must be tuple of ints, but found element of type {kind} at pos 0")
    return possible(shape, function)  # type: ignore[arg-type]  # no None is left


def possible(shape: tuple[int, ...], function: str = "empty") -> tuple[int, ...]:
    """Returns `shape`; raises RuntimeError, with the text of `function`, for a negative size."""
    negative = next((n for n in shape if n < 0), None)
    if negative is not None:
        if function == "zeros":
            raise RuntimeError("zeros: Dimension size must be non-negative.")
        raise RuntimeError(f"Trying to create tensor with negative dimension {negative}: {list(shape)}")
    return shape


def _size(value: object) -> int | None:
    """Return an integer, also from a 0-dimensional tensor or array; None for anything else."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    try:
        return as_index(value)
    except TypeError:
        return None


def number(function: str, value: Any, name: str, position: int) -> Any:
    """`value` as a Python number. Raises TypeError for what PyTorch does not accept as one."""
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
    """`value` as an integer. Raises TypeError for what PyTorch does not accept as one."""
    whole = _size(value)
    if whole is None:
        raise TypeError(f"{function}(): argument '{name}' (position {position}) must be int, not {typename(value)}")
    return whole


def whole_numbers(function: str, name: str, value: Any, position: int) -> tuple[int, ...]:
    """Integers passed separately as a tuple, or as one sequence in it. Raises TypeError for anything else."""
    nested = isinstance(value, tuple) and len(value) == 1 and isinstance(value[0], (tuple, list))
    numbers = value[0] if nested else value
    what = f"{function}(): argument '{name}' (position {position}) must be tuple of ints"
    if not isinstance(numbers, (tuple, list)):
        raise TypeError(f"{what}, not {typename(numbers)}")
    integers = [_size(number) for number in numbers]
    if None in integers:
        place = integers.index(None)
        kind = typename(numbers[place])
        alone = numbers is value and len(numbers) == 1
        raise TypeError(f"{what}, not {kind}" if alone else f"{what}, but found element of type {kind} at pos {place}")
    return tuple(integers)  # type: ignore[arg-type]  # no None is left


def combination(function: str, args: tuple[Any, ...], named: dict[str, Any], *calls: str) -> TypeError:
    """The error for arguments that match none of a function's signatures."""
    got = [typename(value) for value in args] + [f"{name}={typename(value)}" for name, value in named.items()]
    listed = "".join(f" * ({call})\n" for call in calls).replace("OPTIONS", _ACCEPTED)
    what = f"received an invalid combination of arguments - got ({', '.join(got)}), but expected one of:"
    return TypeError(f"{function}() {what}\n{listed}")


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
