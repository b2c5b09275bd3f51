"""The functions and methods that users call, derived from the declarations or written by hand as fronts.

A declared op defines ``torch.<name>`` and ``Tensor.<name>``, and with ``in_place`` also ``Tensor.<name>_``. Where
PyTorch's arguments are not simply the op's (``sum(dim=None)`` is two ops), a hand-written function has `@front`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from inspect import Parameter, Signature
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np

from gviz import emit
from gviz.engine import dtypes, instrumentation, messages, operation_watchers
from gviz.engine.argument_parser import parser_of, wanting_tensors
from gviz.engine.arguments import missing_arguments, typename
from gviz.engine.array_storage import resized
from gviz.engine.dtypes import dtype as DType
from gviz.engine.instrumentation import emitting_parts
from gviz.engine.memory_format import contiguous_format, strides_in
from gviz.engine.methods import Methods
from gviz.engine.modes import no_grad, thread
from gviz.engine.op import REQUIRED, Attrs, Op, Overlap, apply
from gviz.engine.return_types import Results, results_type
from gviz.engine.tensor import Tensor, WrappedNumber, callbacks, new_tensor
from gviz.engine.views import apply_in_place, check_overlap, check_writable
from gviz.source.call_stack import forwards, warn
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# ``out=``: writes results of functions into existing tensors.
#
# The function runs as usual, and its result is copied: a recording shows the operation and the write.


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
"""The functions of ``torch`` that accept ``out``."""

_PAIRS = {
    "aminmax": 3, "cummax": 2, "cummin": 2, "kthvalue": 4, "max": 3, "median": 3, "min": 3, "mode": 3, "nanmedian": 3,
    "sort": 3, "topk": 5,
}  # fmt: skip
"""The functions with two results, with the position of ``out`` in PyTorch's errors."""
_PAIRS_OF_DIM = frozenset(["max", "median", "min", "nanmedian"])
"""Functions that have two results only with a dimension."""
_COMPUTES_IN = frozenset(["sum", "prod", "cumsum", "cumprod"])
"""The functions that compute in the dtype of `out`."""
_CASTS_ALL = _COMPUTES_IN | {"nansum"}
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
"""The rules by which PyTorch checks for overlapping memory, see `views.check_overlap`."""
_RESIZING = frozenset((
    *_JOINS, "addbmm", "addmm", "addmv", "addr", "all", "amax", "amin", "any", "argmax", "argmin", "argsort",
    "baddbmm", "bmm", "chain_matmul", "cholesky", "cross", "cumprod", "cumsum", "diag", "diff", "dot", "gather",
    "histc", "index_add", "index_select", "inner", "inverse", "isin", "kron", "log_softmax", "logcumsumexp",
    "logsumexp", "matmul", "matrix_power", "mean", "mm", "msort", "multinomial", "mv", "nan_to_num", "nanmean",
    "nanquantile", "nansum", "nonzero", "norm", "prod", "quantile", "renorm", "searchsorted", "softmax", "std",
    "sum", "take_along_dim", "tensordot", "tril", "triu", "var", "vdot",
))  # fmt: skip
"""The functions that resize `out` before they look at its memory, even if it is an operand; so do those of `_PAIRS`."""
_BOOLEAN = {
    **dict.fromkeys(["all", "any"], "{name} only supports bool tensor for result, got: {kind}"),
    **dict.fromkeys(["isneginf", "isposinf", "signbit"], "{name} does not support non-boolean outputs."),
    "isin": "Expected out tensor to have dtype bool, but got {cpp_name} instead",
}
"""The functions that give booleans to no other dtype, and what PyTorch says about one."""
_ORDER = "bif"
NUMBERS = (bool, int, float, np.number, np.bool_)
"""The types of operands that become tensors without dimensions."""


def taking_out(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `function`, which is public as `name`, so that it accepts the keyword ``out``."""

    @forwards
    @functools.wraps(function)
    def wrapper(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if out is None:
            return function(*args, **kwargs)
        outs = _checked(name, out) if _is_single(name, args, kwargs) else _checked_pair(name, out)
        inputs = list(_tensors([*args, *kwargs.values()]))
        _refuse_gradients(name, [*inputs, *outs])
        if name in _COMPUTES_IN and kwargs.get("dtype") is None:
            kwargs["dtype"] = outs[0].dtype
        with no_grad():
            result = function(*args, **kwargs)
            results = result if isinstance(result, tuple) else (result,)
            for target, output in zip(outs, results, strict=True):
                _write(name, target, output, inputs, resizes=name in _RESIZING or len(outs) > 1)
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
    if name not in _PAIRS_OF_DIM:
        return name not in _PAIRS
    has_dim = "dim" in kwargs or "axis" in kwargs or (len(args) > 1 and not isinstance(args[1], Tensor))
    return not has_dim


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


def _write(name: str, target: Tensor, result: Tensor, inputs: Sequence[Tensor], *, resizes: bool) -> None:
    """Copy a result into a tensor; one of another shape is resized.

    Functions of elements look at its memory before that, and refuse to resize an operand; others (`resizes`) after it.
    """
    fits = target.shape == result.shape
    if resizes:
        _check_cast(name, result.dtype, target.dtype)
        if not fits:
            _resize(target, result.shape)
        apart, others = (inputs[:1], inputs[1:]) if name == "gather" else (inputs, [])  # its index is read as elements
        check_overlap(target, apart, _OVERLAP.get(name, "elementwise"))
        if others:
            check_overlap(target, others, "elementwise")
    else:
        check_overlap(target, inputs, _OVERLAP.get(name, "elementwise"))
        operands = inputs[:1] if name == "ldexp" else inputs  # whose other operand is first computed with
        if not fits and len(inputs) > 1 and any(target is operand for operand in operands):
            raise RuntimeError(messages.OUTPUT_SHAPE.format(own=list(target.shape), result=list(result.shape)))
        _check_cast(name, result.dtype, target.dtype)
        if not fits:
            _resize(target, result.shape)
    callbacks.copy_into(target, result)


def _check_cast(name: str, source: DType, target: DType) -> None:
    if source is target or name in _CASTS_ALL:
        return
    if name in _BOOLEAN and not (name in ("all", "any") and target is dtypes.uint8):
        raise RuntimeError(_BOOLEAN[name].format(name=name, kind=target.tensor_type, cpp_name=target.cpp_name))
    if name in _EXACT:
        names = {"source": _c_name(source), "target": _c_name(target)}
        raise RuntimeError(messages.OUT_DTYPE.format(**names))
    if name == "where":
        raise RuntimeError(f"Expected out type to be {source.tensor_type} but got {target.tensor_type}")
    if name in ("clamp", "clip"):
        raise RuntimeError(f"Found dtype {target.tensor_type} but expected {source.tensor_type}")
    if _rank(source) <= _rank(target):
        return
    if name in _JOINS:
        raise TypeError(f"torch.cat(): input types can't be cast to the desired output type {target.tensor_type}")
    raise RuntimeError(messages.RESULT_CAST.format(source=source.tensor_type, target=target.tensor_type))


def _c_name(kind: DType) -> str:
    return kind.cpp_name


def _rank(kind: DType) -> int:
    return _ORDER.index(kind.numpy.kind.replace("u", "i"))


def _resize(target: Tensor, shape: tuple[int, ...]) -> None:
    """Give `target` another shape, within its memory if that is long enough."""
    if target.numel():
        before, after = list(target.shape), list(shape)
        warn(messages.OUT_RESIZED.format(before=before, after=after))
    channel = emit.channel
    if channel is not None:
        instrumentation.seen(channel, target)
    array = resized(target._array, shape, strides_in(shape, contiguous_format))
    is_in_its_own = np.may_share_memory(target._array, array)
    target._array = array
    if channel is not None:
        instrumentation.moved(channel, target, target if is_in_its_own else None)


def _as_returned(name: str, result: Any, outs: tuple[Tensor, ...]) -> Any:
    if isinstance(result, Results):
        return results_type(f"{name}_out", type(result).names)(outs)
    return outs if isinstance(result, tuple) else outs[0]


F = TypeVar("F", bound=Callable[..., Any])
Number = bool | int | float
Runner = Callable[[Op, Sequence[Tensor], Attrs], Any]
"""`apply` or `apply_in_place`: code that both variants of a function share takes either."""

NAMESPACE = __name__.rpartition(".")[0]
"""The package that is imported as ``torch``."""

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""The functions of the namespace ``torch``, by name."""


def front(*names: str, method: bool = True, function: bool = True, checks: bool = False) -> Callable[[F], F]:
    """Registers a hand-written function as ``torch.<name>`` and ``Tensor.<name>``, for each of `names`.

    Unless it `checks` its arguments itself, it is wrapped to raise an error for those that are not tensors.
    """

    def offer(implementation: F) -> F:
        if implementation not in _addressed:
            implementation.__qualname__ = names[0]  # Python's errors about the arguments use it
        checked = emitting_parts(implementation)
        for name in names:
            if function:
                called = checked if checks else wanting_tensors(checked, name, parser_of(name))
                FUNCTIONS[name] = set_address(NAMESPACE, name, taking_out(name, called) if name in WITH_OUT else called)
            if method:
                parser = parser_of(name, method=True)
                if parser is not None and name.endswith("_") and not name.endswith("__") and name not in _UNCHECKED:
                    parser.before = check_writable
                called = checked if checks else wanting_tensors(checked, name, parser, method=True)
                alone = called is not FUNCTIONS.get(name)
                addressed = set_address(NAMESPACE, f"Tensor.{name}", called) if alone else called
                setattr(Methods, name, _for_operands(addressed) if name in _IN_PLACE_OPERATORS else addressed)
        return implementation

    return offer


_OPERATORS = ("add", "sub", "mul", "truediv", "pow", "and", "or", "xor", "lshift", "rshift")
_IN_PLACE_OPERATORS = frozenset([f"__i{name}__" for name in _OPERATORS])


def _for_operands(method: Callable[[Tensor, Any], Any]) -> Callable[[Tensor, Any], Any]:
    """The method of an in-place operator, with NotImplemented for an operand that is neither a tensor nor a number."""

    @functools.wraps(method)
    def checked(self: Tensor, other: Any) -> Any:
        return method(self, other) if isinstance(other, (Tensor, *NUMBERS)) else NotImplemented

    return checked


_UNCHECKED = {"detach_", "fill_diagonal_", "requires_grad_", "resize_", "resize_as_", "set_"}
_UNCHECKED |= {f"logical_{word}_" for word in ("and", "not", "or", "xor")}
"""Methods that write, or look like it, and that autograd does not refuse before anything else."""

_addressed = WeakSet[Callable[..., Any]]()


def set_address(module: str, path: str, function: F) -> F:
    """Names `function` after the first path at which it is registered, where pickle finds it again."""
    if function not in _addressed:  # one function may have several names
        _addressed.add(function)
        function.__module__, function.__qualname__, function.__name__ = module, path, path.rpartition(".")[2]
    return function


def attribute(
    name: str,
    read: Callable[[Tensor], Any],
    write: Callable[[Tensor, Any], None] | None = None,
    delete: Callable[[Tensor], None] | None = None,
) -> None:
    """Registers a property of tensors that an op computes."""
    setattr(Methods, name, property(read, write, delete))


def derive(op: Op, *aliases: str, numbers: bool = True, number_first: bool = False) -> None:
    """Registers an op as function and method, and its in-place variant as a method.

    Without `numbers`, a Python number raises an error where a tensor is expected; `number_first` allows one as the
    first operand.
    """
    bound = bool(op.attrs) or len(op.slots) > 2 or not (numbers or len(op.slots) == 1)
    implementation = _bound(op, numbers) if bound else _unary(op) if len(op.slots) == 1 else _binary(op, number_first)
    front(op.name, *aliases, checks=not bound)(_named(implementation, op, op.name))
    if op.in_place:
        variant = in_place(op, numbers)
        front(*(name + "_" for name in (op.name, *aliases)), function=False, checks=not bound)(variant)


def _named(function: Callable[..., Any], op: Op, name: str) -> Callable[..., Any]:
    """Give a derived function its name and the op's signature, for ``help`` and the stub."""
    function.__name__ = function.__qualname__ = name
    function.__signature__ = signature(op)  # type: ignore[attr-defined]  # every function may have one
    return function


def signature(op: Op) -> Signature:
    """The parameters of an op's function: tensors or numbers, then the other arguments with their defaults."""
    first, *others = op.slots
    tensors = [Parameter("input" if first == "self" else first, Parameter.POSITIONAL_OR_KEYWORD, annotation="Tensor")]
    tensors += [_tensor_parameter(op, slot) for slot in others]
    attrs = [
        Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=_annotation(default))
        for name, default in op.attrs.items()
    ]
    return Signature([*tensors, *attrs], return_annotation="tuple[Tensor, ...]" if op.has_several_outputs else "Tensor")


def _tensor_parameter(op: Op, slot: str) -> Parameter:
    if slot in op.optional:
        return Parameter(slot, Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation="Tensor | None")
    return Parameter(slot, Parameter.POSITIONAL_OR_KEYWORD, annotation="Tensor | Number")


def _annotation(default: Any) -> str:
    kinds = {bool: "bool", int: "Number", float: "Number", str: "str", type(None): "Number | None"}
    return kinds.get(type(default), "Any")


def derive_all(*ops: Op, numbers: bool = True) -> None:
    """Calls `derive` for each op."""
    for op in ops:
        derive(op, numbers=numbers)


def in_place(op: Op, numbers: bool = True) -> Callable[..., Any]:
    """The method that writes the op's result into its first tensor."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        tensors, attrs = bind(op, (self, *args), kwargs, numbers=numbers)
        return apply_in_place(*op.present(tensors), attrs)

    return _named(method, op, op.name + "_")


def bind(
    op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], *, numbers: bool = True
) -> tuple[list[Tensor | None], Attrs]:
    """Splits arguments into the op's tensors and attributes. Numbers become 0-dimensional constants.

    Raises TypeError for arguments that do not match. An optional tensor that was not passed is None.
    """
    names = (*op.slots, *op.attrs)
    if len(args) > len(names):
        raise TypeError(f"{op.name}() takes at most {len(names)} arguments ({len(args)} given)")
    arguments = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        own = "self" if name == "input" else name
        if own in arguments:
            raise TypeError(f"{op.name}() got multiple values for argument '{name}'")
        arguments[own] = value
    unknown = [name for name in arguments if name not in names]
    if unknown:
        raise TypeError(f"{op.name}() got an unexpected keyword argument '{unknown[0]}'")
    missing = [
        n for n in names if n not in arguments and n not in op.optional and op.attrs.get(n, REQUIRED) is REQUIRED
    ]
    if missing:
        raise missing_arguments(op.name, missing)
    first = checked(op, arguments[op.slots[0]], 1)
    tensors: list[Tensor | None] = [first]
    for position, slot in enumerate(op.slots[1:], 2):
        absent = slot in op.optional and arguments.get(slot) is None
        if absent:
            tensors.append(None)
        else:
            value = arguments[slot]
            tensors.append(operand(op, value, first, position) if numbers else checked(op, value, position))
    return tensors, {name: arguments.get(name, default) for name, default in op.attrs.items()}


def checked(op: Op, value: object, position: int) -> Tensor:
    """Returns `value` if it is a tensor. Raises TypeError with PyTorch's text otherwise."""
    if isinstance(value, Tensor):
        return value
    name = "input" if position == 1 else op.slots[position - 1]
    raise TypeError(f"{op.name}(): argument '{name}' (position {position}) must be Tensor, not {typename(value)}")


def operand(op: Op, value: object, like: Tensor, position: int = 2) -> Tensor:
    """`value` as a tensor operand next to `like`."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, NUMBERS):
        return number(value, like._array)
    return checked(op, value, position)


def number(value: Any, like: Array) -> Tensor:
    """A Python number as a constant, in its dtype next to `like`."""
    plain = value.item() if isinstance(value, np.generic) else value
    kind = dtypes.scalar_dtype(plain, like.dtype)
    if kind.kind in "iu":
        wrapped = new_tensor(np.array(plain).astype(kind), WrappedNumber)  # wraps around if out of range
    else:
        wrapped = new_tensor(thread.quietly(np.array, plain, kind), WrappedNumber)
    if operation_watchers.watchers:
        wrapped.number = plain  # type: ignore[attr-defined]  # a recorded program may meet another dtype
    return wrapped


def operator(op: Op, with_number: Op | None = None, *, takes_arrays: bool = False) -> Callable[[Tensor, Any], Tensor]:
    """The method of a binary operator.

    Returns NotImplemented for other operands than tensors, numbers and allowed arrays.
    """
    number_op = with_number or op

    def method(self: Tensor, other: Tensor | Number) -> Tensor:
        if isinstance(other, Tensor):
            result: Tensor = apply(op, (self, other))
        elif takes_arrays and isinstance(other, np.ndarray):
            result = apply(op, (self, new_tensor(other)))
        elif isinstance(other, NUMBERS):
            result = apply(number_op, (self, number(other, self._array)))
        else:
            return NotImplemented
        return result

    return method


def reflected(op: Op) -> Callable[[Tensor, Any], Tensor]:
    """The operator's method for a number on the left."""

    def method(self: Tensor, other: Number) -> Tensor:
        if not isinstance(other, NUMBERS):
            return NotImplemented
        result: Tensor = apply(op, (number(other, self._array), self))
        return result

    return method


def _unary(op: Op) -> Callable[..., Any]:
    def function(input: Any) -> Any:
        return apply(op, (checked(op, input, 1),))

    return function


def _binary(op: Op, number_first: bool) -> Callable[..., Any]:
    def function(input: Any, other: Any) -> Any:
        if number_first and isinstance(other, Tensor):
            input = operand(op, input, other, 1)
        return apply(op, (checked(op, input, 1), operand(op, other, input)))

    return function


def _bound(op: Op, numbers: bool = True) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        tensors, attrs = bind(op, args, kwargs, numbers=numbers)
        return op(*tensors, **attrs)

    return function
