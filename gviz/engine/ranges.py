"""Numbers in a row: ``arange``, ``range``, ``linspace``, ``logspace``, ``eye``."""

from __future__ import annotations

from math import ceil, isfinite
from typing import Any, Unpack

import numpy as np

from gviz.engine import dtypes
from gviz.engine.arguments import Options, checked, combination, integer, kind_of, number, typename, worded
from gviz.engine.dtypes import dtype as DType
from gviz.engine.from_data import made
from gviz.engine.modes import thread
from gviz.engine.tensor import Tensor
from gviz.values import Array

__all__ = ["arange", "eye", "linspace", "logspace", "range"]

_ARANGE = (
    "Number end, OPTIONS",
    "Number start, Number end, *, torch.dtype dtype = None, torch.layout layout = None, torch.device device = None, "
    "bool pin_memory = False, bool requires_grad = False",
    "Number start, Number end, Number step = 1, OPTIONS",
)
_LINSPACE = tuple(
    f"{start} start, {end} end, int steps, OPTIONS" for end in ("Tensor", "Number") for start in ("Tensor", "Number")
)
_EYE = ("int n, OPTIONS", "int n, int m, OPTIONS")


def arange(*bounds: Any, **options: Any) -> Tensor:
    """``arange([start=0,] end, step=1)``: numbers from `start` up to but without `end`, `step` apart."""
    start, end, step = _bounds(bounds, options)
    kind = kind_of("arange", checked("arange", options), _default_kind(start, end, step))  # type: ignore[arg-type]
    if kind is dtypes.bool_:
        raise NotImplementedError("\"arange_cpu\" not implemented for 'Bool'")
    whole = all(isinstance(bound, int) for bound in (start, end, step))
    if whole and max(abs(start), abs(end), abs(step)) >= 2**63:
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    if kind is dtypes.int64 and not whole:
        _check_range(start, end, step)
        start, end, step = int(start), int(end), int(step)
        if not step:
            raise ValueError("step must be nonzero")
    _check_range(start, end, step)
    return made("arange", _steps(start, step, _count(start, end, step), kind), options)  # type: ignore[arg-type]


def _bounds(bounds: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, Any, Any]:
    """`arange`'s arguments, by position or name."""
    names = ("end",) if len(bounds) == 1 and "end" not in options else ("start", "end", "step")
    given = dict(zip(names, bounds, strict=False))
    given |= {name: options.pop(name) for name in ("start", "end", "step") if name in options}
    unfit = [name for name, value in given.items() if not _is_number(value)]
    if unfit == ["end"] == list(given):
        kind = typename(given["end"])
        raise TypeError(f"arange(): argument 'end' (position 1) must be Number, not {kind}")
    if unfit or len(bounds) > 3 or "end" not in given or ("step" in given and "start" not in given):
        named = {name: value for name, value in given.items() if name not in names[: len(bounds)]}
        raise combination("arange", bounds, named, *_ARANGE)
    values = {name: number("arange", value, name, 1) for name, value in given.items()}
    return values.get("start", 0), values["end"], values.get("step", 1)


def _is_number(value: object) -> bool:
    if isinstance(value, Tensor):
        return not value.ndim and not value.requires_grad
    return isinstance(value, (bool, int, float, complex, np.number, np.bool_))


def _default_kind(*bounds: object) -> DType:
    return dtypes.int64 if all(isinstance(bound, int) for bound in bounds) else dtypes.get_default_dtype()


def _check_range(start: Any, end: Any, step: Any) -> None:
    if not step:
        raise RuntimeError("step must be nonzero")
    if not (isfinite(start) and isfinite(end)):
        raise RuntimeError(f"unsupported range: {_plain(start)} -> {_plain(end)}")
    if (end - start) * (1 if step > 0 else -1) < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")


def _plain(value: Any) -> str:
    """A number as C++ writes it."""
    return format(float(value), "g")


def _count(start: Any, end: Any, step: Any) -> int:
    if all(isinstance(bound, int) for bound in (start, end, step)):
        return int(max(0, -((start - end) // step)))
    ratio = (end - start) / step
    if not abs(ratio) < 2**63:
        raise RuntimeError("invalid size, possible overflow?")
    count: int = ceil(ratio)
    return count


def _steps(start: Any, step: Any, count: int, kind: DType) -> Array:
    """`count` numbers from `start`, `step` apart, computed in integers or float64 and then made a `kind`."""
    if not kind.is_floating_point:
        start, step = int(start), int(step)
    values = np.arange(count, dtype=np.float64 if kind.is_floating_point else np.int64) * step + start
    result: Array = thread.quietly(values.astype, kind.numpy)
    return result


@worded
def range(start: Any, end: Any, step: Any = 1, **options: Unpack[Options]) -> Tensor:
    """Numbers from `start` to `end`, both included; `arange` is the one to use."""
    first, last, by = (
        number("range", v, n, i) for i, (v, n) in enumerate(((start, "start"), (end, "end"), (step, "step")))
    )
    kind = kind_of("range", checked("range", options))
    _check_range(first, last, by)
    return made("range", _steps(first, by, int((last - first) / by) + 1, kind), options)


def linspace(*args: Any, **options: Any) -> Tensor:
    """``linspace(start, end, steps)``: `steps` numbers, evenly spaced, from `start` to `end`, both included."""
    return made("linspace", *_spaced("linspace", args, options))


def logspace(*args: Any, base: float = 10.0, **options: Any) -> Tensor:
    """``logspace(start, end, steps, base=10)``: `base` to the powers that `linspace` gives."""
    if len(args) == 4:
        *args, base = args  # type: ignore[assignment]  # by position
    exponents, rest = _spaced("logspace", tuple(args), options, exact=True)
    kind = kind_of("logspace", rest)
    powers = thread.quietly(np.power, np.asarray(base, exponents.dtype), exponents)
    return made("logspace", thread.quietly(powers.astype, kind.numpy), rest)


def _spaced(
    function: str, args: tuple[Any, ...], options: dict[str, Any], *, exact: bool = False
) -> tuple[Array, Options]:
    given = dict(zip(("start", "end", "steps"), args, strict=False))
    given |= {name: options.pop(name) for name in ("start", "end", "steps") if name in options}
    fits = len(given) == 3 == max(3, len(args)) and all(_is_number(v) or isinstance(v, Tensor) for v in given.values())
    if not fits or isinstance(given["steps"], bool) or not hasattr(given["steps"], "__index__"):
        raise combination(
            function,
            args,
            {n: v for n, v in given.items() if n not in ("start", "end", "steps")[: len(args)]},
            *_LINSPACE,
        )
    for name in ("start", "end"):
        if isinstance(given[name], Tensor) and given[name].ndim:
            raise RuntimeError(
                f"{function} only supports 0-dimensional start and end tensors, but got {name} with "
                f"{given[name].ndim} dimension(s)."
            )
    steps = integer(function, given["steps"], "steps", 3)
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    kind = kind_of(function, checked(function, options))  # type: ignore[arg-type]
    if kind is dtypes.bool_:
        raise NotImplementedError(f"\"{function}_cpu\" not implemented for 'Bool'")
    start, end = (number(function, given[name], name, i) for i, name in enumerate(("start", "end"), 1))
    inner = np.dtype(np.float64) if not kind.is_floating_point else kind.numpy
    values = thread.quietly(_even, start, end, steps, inner)
    return values if exact else thread.quietly(values.astype, kind.numpy), options  # type: ignore[return-value]


def _even(start: float, end: float, steps: int, kind: np.dtype[Any]) -> Array:
    """From both ends towards the middle, as PyTorch does it: the last number is `end` itself."""
    low, high = np.asarray(start, kind), np.asarray(end, kind)
    step = np.asarray((high - low) / np.asarray(max(steps - 1, 1), kind))
    half = steps // 2 if steps > 1 else 1
    wide = np.longdouble if kind == np.float64 else np.float64  # a product and a sum are rounded once
    up = low.astype(wide) + step.astype(wide) * np.arange(min(half, steps)).astype(wide)
    down = high.astype(wide) - step.astype(wide) * np.arange(steps - half - 1, -1, -1).astype(wide)
    result: Array = np.concatenate([up, down]).astype(kind)
    return result


def eye(*size: Any, **options: Any) -> Tensor:
    """``eye(n, m=n)``: ones on the diagonal, zeros elsewhere."""
    given = dict(zip(("n", "m"), size, strict=False)) | {k: options.pop(k) for k in ("n", "m") if k in options}
    if len(size) == 1 == len(given):
        integer("eye", size[0], "n", 1)
    if (
        "n" not in given
        or len(size) > 2
        or any(not hasattr(v, "__index__") or isinstance(v, bool) for v in given.values())
    ):
        raise combination("eye", size, {}, *_EYE)
    n = integer("eye", given["n"], "n", 1)
    m = integer("eye", given.get("m", n), "m", 2)
    for name, value in (("n", n), ("m", m)):
        if value < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {value}")
    kind = kind_of("eye", checked("eye", options))  # type: ignore[arg-type]
    return made("eye", np.eye(n, m, dtype=kind.numpy), options)  # type: ignore[arg-type]
