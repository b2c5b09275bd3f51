"""``out=``: results of functions written into tensors that are there.

The function runs as ever, and what it gives is copied: a recording shows the operation and the write.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gviz import emit
from gviz.engine import announce, announce_memory, messages
from gviz.engine.apply import Overlap
from gviz.engine.dtypes import dtype as DType
from gviz.engine.modes import no_grad, thread
from gviz.engine.return_types import Results, results_type
from gviz.engine.tensor import Tensor
from gviz.engine.views import apply_in_place, check_overlap
from gviz.site import forwards, warn

WITH_OUT = frozenset((
    "abs", "absolute", "acos", "acosh", "add", "addbmm", "addcdiv", "addcmul", "addmm", "addmv", "addr", "all",
    "amax", "amin", "aminmax", "any", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh",
    "argmax", "argmin", "argsort", "asin", "asinh", "atan", "atan2", "atanh", "baddbmm", "bitwise_and",
    "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "bmm", "bucketize",
    "cat", "ceil", "chain_matmul", "cholesky", "clamp", "clamp_max", "clamp_min", "clip", "column_stack", "concat",
    "concatenate", "copysign", "cos", "cosh", "cross", "cummax", "cummin", "cumprod", "cumsum", "deg2rad", "diag",
    "diff", "digamma", "div", "divide", "dot", "dstack", "eq", "erf", "erfc", "erfinv", "exp", "exp2", "expm1",
    "fix", "float_power", "floor", "floor_divide", "fmax", "fmin", "fmod", "frac", "gather", "gcd", "ge", "ger",
    "greater", "greater_equal", "gt", "heaviside", "histc", "hstack", "hypot", "i0", "index_add", "index_select",
    "inner", "inverse", "isin", "isneginf", "isposinf", "kron", "kthvalue", "lcm", "ldexp", "le", "lerp", "less",
    "less_equal", "lgamma", "log", "log10", "log1p", "log2", "log_softmax", "logaddexp", "logaddexp2",
    "logcumsumexp", "logical_and", "logical_not", "logical_or", "logical_xor", "logit", "logsumexp", "lt",
    "masked_select", "matmul", "matrix_power", "max", "maximum", "mean", "median", "min", "minimum", "mm", "mode",
    "msort", "mul", "multinomial", "multiply", "mv", "nan_to_num", "nanmean", "nanmedian", "nanquantile", "nansum",
    "ne", "neg", "negative", "nextafter", "nonzero", "norm", "not_equal", "outer", "pow", "prod", "quantile",
    "rad2deg", "reciprocal", "remainder", "renorm", "round", "row_stack", "rsqrt", "scatter", "scatter_add",
    "searchsorted", "sgn", "sigmoid", "sign", "signbit", "sin", "sinc", "sinh", "softmax", "sort", "sqrt", "square",
    "stack", "std", "sub", "subtract", "sum", "take", "take_along_dim", "tan", "tanh", "tensordot", "topk", "tril",
    "triu", "true_divide", "trunc", "var", "vdot", "vstack", "where", "xlogy",
))  # fmt: skip
"""The functions of ``torch`` that take ``out``."""

_PAIRS = {
    "aminmax": 3, "cummax": 2, "cummin": 2, "kthvalue": 4, "max": 3, "median": 3, "min": 3, "mode": 3, "nanmedian": 3,
    "sort": 3, "topk": 5,
}  # fmt: skip
"""The functions of two results, with the place of ``out`` among the arguments in PyTorch's errors."""
_PAIRS_ALONG = frozenset(["max", "median", "min", "nanmedian"])
"""Those that have two only along a dimension."""
_CASTS_ALL = frozenset(["sum", "nansum", "prod", "cumsum", "cumprod"])
_JOINS = frozenset(["cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack", "row_stack", "column_stack"])
_EXACT = frozenset((
    "mm", "bmm", "mv", "matmul", "addmm", "addmv", "baddbmm", "outer", "ger", "inner", "tensordot", "argmax",
    "argmin", "argsort", "gather", "index_select", "take", "tril", "triu", "softmax", "log_softmax", "sort", "topk",
    "kthvalue", "max", "min", "median", "mode", "cummax", "cummin", "masked_select", "searchsorted", "bucketize",
    "nonzero", "scatter", "scatter_add",
))  # fmt: skip
_OVERLAP: dict[str, Overlap] = {
    **dict.fromkeys([*_JOINS, "gather", "index_select", "take", "scatter", "scatter_add", "index_add"], "apart"),
    **dict.fromkeys((
        "sum", "nansum", "mean", "nanmean", "amax", "amin", "prod", "std", "var", "logsumexp", "norm", "all", "any",
        "argmax", "argmin", "mm", "bmm", "matmul", "mv", "dot", "addmm", "addmv", "baddbmm", "tril", "triu", "softmax",
        "log_softmax",
    ), "free"),
    **dict.fromkeys(["quantile", "nanquantile"], "once"),
}  # fmt: skip
"""The rules by which PyTorch looks for places in memory that meet, see `views.check_overlap`."""
_ORDER = "bif"


def taking_out(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, offered under `name`, with the keyword ``out``."""

    @forwards
    @functools.wraps(function)
    def wrapper(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if out is None:
            return function(*args, **kwargs)
        outs = _checked(name, out) if _is_single(name, args, kwargs) else _checked_pair(name, out)
        inputs = list(_tensors([*args, *kwargs.values()]))
        _refuse_gradients(name, [*inputs, *outs])
        with no_grad():
            result = function(*args, **kwargs)
            results = result if isinstance(result, tuple) else (result,)
            for target, made in zip(outs, results, strict=True):
                _write(name, target, made, inputs)
        return _as_returned(name, result, outs)

    plain = inspect.signature(function)
    keyword = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Any")
    wrapper.__signature__ = _with_keyword(plain, keyword)  # type: ignore[attr-defined]  # every function may have one
    return wrapper


def _with_keyword(signature: inspect.Signature, keyword: inspect.Parameter) -> inspect.Signature:
    parameters = list(signature.parameters.values())
    at = next((i for i, p in enumerate(parameters) if p.kind is p.VAR_KEYWORD), len(parameters))
    return signature.replace(parameters=[*parameters[:at], keyword, *parameters[at:]])


def _is_single(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    if name not in _PAIRS_ALONG:
        return name not in _PAIRS
    along = "dim" in kwargs or "axis" in kwargs or (len(args) > 1 and not isinstance(args[1], Tensor))
    return not along


def _checked(name: str, out: Any) -> tuple[Tensor, ...]:
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    return (out,)


def _checked_pair(name: str, out: Any) -> tuple[Tensor, ...]:
    if not isinstance(out, (tuple, list)):
        raise TypeError(f"{name}(): argument 'out' must be tuple of Tensors, not {type(out).__name__}")
    for position, target in enumerate(out):
        if not isinstance(target, Tensor):
            kind = type(target).__name__
            raise TypeError(f"expected Tensor as element {position} in argument {_PAIRS[name]}, but got {kind}")
    if len(out) != 2:
        raise TypeError(f"expected tuple of 2 elements but got {len(out)}")
    return tuple(out)


def _tensors(values: Sequence[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _tensors(value)


def _refuse_gradients(name: str, tensors: Sequence[Tensor]) -> None:
    if thread.grad_enabled and any(t.requires_grad for t in tensors):
        raise RuntimeError(messages.OUT_WITH_GRADIENT.format(name=name))


def _write(name: str, target: Tensor, made: Tensor, inputs: Sequence[Tensor]) -> None:
    """Copy a result into a tensor of the same shape, or of one that has to be changed."""
    from gviz.engine.ops.copying import copy  # built on this surface

    _check_cast(name, made.dtype, target.dtype)
    if target.shape != made.shape:
        _resize(target, made.shape)
    apart, others = (inputs[:1], inputs[1:]) if name == "gather" else (inputs, [])  # its index is read as elements
    check_overlap(target, apart, _OVERLAP.get(name, "elementwise"))
    check_overlap(target, others, "elementwise")
    apply_in_place(copy, (target, made), {}, rule="free")


def _check_cast(name: str, made: DType, wanted: DType) -> None:
    if made is wanted or name in _CASTS_ALL:
        return
    if name in _EXACT:
        names = {"made": _c_name(made), "wanted": _c_name(wanted)}
        raise RuntimeError(messages.OUT_DTYPE.format(**names))
    if name == "where":
        raise RuntimeError(f"Expected out type to be {made.tensor_type} but got {wanted.tensor_type}")
    if name in ("clamp", "clip"):
        raise RuntimeError(f"Found dtype {wanted.tensor_type} but expected {made.tensor_type}")
    if _rank(made) <= _rank(wanted):
        return
    if name in _JOINS:
        raise TypeError(f"torch.cat(): input types can't be cast to the desired output type {wanted.tensor_type}")
    raise RuntimeError(messages.RESULT_CAST.format(source=made.tensor_type, target=wanted.tensor_type))


def _c_name(kind: DType) -> str:
    return kind.cpp_name


def _rank(kind: DType) -> int:
    return _ORDER.index(kind.numpy.kind.replace("u", "i"))


def _resize(target: Tensor, shape: tuple[int, ...]) -> None:
    """Give `target` memory of another shape; whatever shared the old one keeps that."""
    if target.numel():
        before, wanted = list(target.shape), list(shape)
        warn(messages.OUT_RESIZED.format(before=before, wanted=wanted))
    channel = emit.channel
    if channel is not None:
        announce.seen(channel, target)
    target._array = np.zeros(shape, target._array.dtype)
    if channel is not None:
        announce_memory.moved(channel, target)


def _as_returned(name: str, result: Any, outs: tuple[Tensor, ...]) -> Any:
    if isinstance(result, Results):
        return results_type(f"{name}_out", type(result).names)(outs)
    return outs if isinstance(result, tuple) else outs[0]
