"""Tensors made from data, constants and ranges: ``tensor``, ``zeros``, ``arange``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from math import ceil, isfinite, prod
from typing import Any, Unpack

import numpy as np

from gviz import emit
from gviz.engine import dtypes, instrumentation, messages
from gviz.engine.arguments import Options, checked, combination, integer, kind_of, number, sizes, typename, worded
from gviz.engine.arguments import size as sizes_given
from gviz.engine.dtypes import dtype as DType
from gviz.engine.functions_and_methods import front, taking_out
from gviz.engine.memory_format import contiguous_format, preserve_format, strides_in, with_strides
from gviz.engine.memory_format import zeros as zeros_in
from gviz.engine.memory_format import zeros_like as zeros_as
from gviz.engine.modes import thread
from gviz.engine.number_conversion import fitting, integer_array, real_number
from gviz.engine.op import any_requires_grad
from gviz.engine.tensor import Tensor, callbacks, new_tensor
from gviz.events import OpSeen
from gviz.source.call_stack import warn
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Converts Python data to arrays: what `torch.tensor` makes of numbers, nested sequences, tensors and arrays.


_NUMBERS = (bool, int, float)
_UNSUPPORTED = (
    "can't convert np.ndarray of type numpy.{name}. The only supported types are: float64, float32, float16, "
    "complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
)
_STRIDES = (
    "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently "
    "supported. (You can probably work around this by making a copy of your array  with array.copy().) "
)
_BYTES = (
    "given numpy array has byte order different from the native byte order. Conversion between byte orders is "
    "currently not supported."
)
MAX_DIMS = 64


def array_of(data: Any, kind: DType | None = None) -> Array:
    """`data` as an array of dtype `kind` (None: the inferred dtype); arrays and tensors share their memory."""
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{typename(data)}'")
    if isinstance(data, (np.ndarray, Tensor)):
        array = data._array if isinstance(data, Tensor) else supported(data)
        return array if kind is None else cast(array, kind)
    shape = _shape(data)
    return _stored(data, shape, kind or _inferred(data))


def supported(array: Array) -> Array:
    """Returns an array that a tensor can have. Raises TypeError or ValueError, with PyTorch's text, for any other."""
    if array.dtype.newbyteorder("=") != array.dtype:
        raise ValueError(_BYTES)
    kind = dtypes.by_name(array.dtype.name)
    if kind is None:
        raise TypeError(_UNSUPPORTED.format(name=array.dtype.type.__name__))
    if any(s < 0 for s in array.strides):
        raise ValueError(_STRIDES)
    assert kind.numpy  # raises for a dtype that is only a name
    return np.asarray(array)


def cast(array: Array, kind: DType) -> Array:
    """The array in another dtype; values out of range become inf or wrap around."""
    if array.dtype == kind.numpy:
        return array
    result: Array = thread.quietly(array.astype, kind.numpy)
    return result


def _shape(data: Any) -> tuple[int, ...]:
    """Return the lengths of nested sequences, taken from the first element at each level."""
    shape: list[int] = []
    while is_sequence(data):
        shape.append(len(data))
        if len(shape) > MAX_DIMS:
            raise ValueError(f"too many dimensions '{typename(data)}'")
        if not shape[-1]:
            break
        data = data[0]
    return tuple(shape)


def is_sequence(data: object) -> bool:
    """Whether `data` is a sequence, and not a tensor or a number."""
    if isinstance(data, (list, tuple)):
        return True
    if isinstance(data, (Tensor, np.generic, Mapping, Set)):
        return False
    return hasattr(data, "__getitem__") and hasattr(data, "__len__")


def _inferred(data: Any) -> DType:
    """Return the dtype of a number, or the common dtype of nested sequences of numbers."""
    if isinstance(data, (bool, np.bool_)):
        return dtypes.bool_
    if isinstance(data, np.generic):
        return dtypes.of(data)
    if isinstance(data, (int, float)):
        return dtypes.int64 if isinstance(data, int) else dtypes.get_default_dtype()
    if isinstance(data, Tensor):
        return data.dtype
    if isinstance(data, np.ndarray):
        return dtypes.of(supported(data))
    if isinstance(data, complex):
        return dtypes.complex64
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{typename(data)}'")
    if not is_sequence(data):
        raise RuntimeError(f"Could not infer dtype of {typename(data)}")
    return _common(data)


def _common(items: Sequence[Any]) -> DType:
    one_of_each = {type(item): item for item in items if isinstance(item, _NUMBERS)}
    rest = [item for item in items if not isinstance(item, _NUMBERS)]
    if any(item is items for item in rest):
        raise TypeError("new(): self-referential lists are incompatible")
    kinds = {_inferred(item) for item in (*one_of_each.values(), *rest)}
    if not kinds:
        return dtypes.get_default_dtype()
    if dtypes.complex64 in kinds:
        return dtypes.complex64
    common = dtypes.join([kind.numpy for kind in kinds])
    assert common is not None
    return dtypes.of_numpy(common)


def _stored(data: Any, shape: tuple[int, ...], kind: DType) -> Array:
    flat: list[Any] = []
    if 0 not in shape:
        _flatten(data, shape, 0, kind, flat)
    if not kind.is_floating_point and kind is not dtypes.bool_:
        return integer_array(flat, kind).reshape(shape)
    target = np.float64 if kind.is_floating_point else kind.numpy
    return cast(np.array(flat, dtype=target), kind).reshape(shape)


def _flatten(data: Any, shape: tuple[int, ...], dim: int, kind: DType, flat: list[Any]) -> None:
    """Append the numbers of nested sequences to `flat`. Raises ValueError if lengths differ."""
    assert kind.numpy  # raises for a dtype that is only a name
    if dim == len(shape):
        flat.append(real_number(data, kind))
        return
    if not is_sequence(data) and not isinstance(data, str):
        raise TypeError("not a sequence")
    if len(data) != shape[dim]:
        raise ValueError(f"expected sequence of length {shape[dim]} at dim {dim} (got {len(data)})")
    if dim == len(shape) - 1 and {*map(type, data)} <= {*_NUMBERS}:
        flat.extend(data)
        return
    for item in data:
        _flatten(item, shape, dim + 1, kind, flat)


# ----------------------------------------------------------------------------------------------------------------------
# Tensors made from Python's and NumPy's data.


__all__ = ["as_tensor", "asarray", "from_numpy", "tensor"]

_COPY_OF_TENSOR = (
    "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
    "sourceTensor.detach().clone().requires_grad_(True), rather than {call}(sourceTensor)."
)
_READ_ONLY = (
    "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means writing to "
    "this tensor will result in undefined behavior. You may want to copy the array to protect its data or make it "
    "writable before converting it to a tensor. This type of warning will be suppressed for the rest of this program."
)


@worded
def tensor(data: Any, **options: Unpack[Options]) -> Tensor:
    """A tensor with a copy of `data`: numbers, nested sequences, arrays."""
    return copied("tensor", data, options, None)


def copied(function: str, data: Any, options: Options, default: DType | None) -> Tensor:
    """A new leaf with a copy of `data`, in the dtype of `options`, or `default` (None: the inferred dtype)."""
    checked(function, options, refused=("layout", "memory_format", "out"))
    kind = kind_of(function, options, default) if options.get("dtype") is not None or default else None
    if isinstance(data, Tensor):
        warn(_COPY_OF_TENSOR.format(call=f"{'tensor' if function == 'new_tensor' else 'torch'}.{function}"))
    array = np.array(array_of(data, kind))
    if isinstance(data, np.ndarray):
        array = _with_its_strides(array, data)
    return _of_data(function, data, array, options.get("requires_grad") or False)


def _with_its_strides(array: Array, data: Array) -> Array:
    """Keep NumPy's strides of an array without elements, which may be 0, as PyTorch does."""
    return array if data.size else with_strides(array, [step // data.itemsize for step in data.strides])


def _of_data(function: str, data: Any, array: Array, requires_grad: bool) -> Tensor:
    """A new leaf or constant around `array`, the copy of `data`; of data with tensors in it, the result of a function.

    Autograd does not track that function, which takes the numbers of the tensors. A listener sees it, as it sees
    `detach`; a result that requires a gradient is a leaf.
    """
    channel = emit.channel
    tensors = [] if channel is None or requires_grad else list(_tensors_in(data))
    if channel is None or not tensors:
        return from_array(array, requires_grad)
    result = new_tensor(array)
    if not any_requires_grad(tensors):
        untracked = "inputs"
    elif not thread.grad_enabled:
        untracked = "inference" if thread.inference else "no_grad"
    else:
        untracked = "numbers" if array.dtype.kind == "f" else "dtype"
    instrumentation.ran(channel, _FROM_TENSORS[function], tensors, {}, [result], None, untracked)
    return result


def _tensors_in(data: Any) -> Iterator[Tensor]:
    """The tensors in nested sequences, from left to right."""
    if isinstance(data, Tensor):
        yield data
    elif isinstance(data, (list, tuple)):
        for item in data:
            if not isinstance(item, _NUMBERS):
                yield from _tensors_in(item)


class _FromTensors:
    """What events need of a function that copies the numbers of tensors."""

    memory = "new"

    def __init__(self, name: str) -> None:
        self.name = name

    def describe(self, number: int) -> OpSeen:
        """The function as an event."""
        return OpSeen(number, self.name, "", ("input",), (), ())

    describe_in_place = describe_slices = describe


_FROM_TENSORS = {name: _FromTensors(name) for name in ("tensor", "new_tensor", "as_tensor", "asarray")}


@worded
def as_tensor(data: Any, **options: Unpack[Options]) -> Tensor:
    """A tensor of `data` that shares memory if possible; a tensor is returned as it is, with its graph."""
    checked("as_tensor", options, refused=("requires_grad", "layout", "memory_format", "out", "pin_memory"))
    kind = kind_of("as_tensor", options) if options.get("dtype") is not None else None
    if isinstance(data, Tensor):
        return data if kind is None else data.to(kind)
    warn_of_read_only(data)
    return _of_data("as_tensor", data, array_of(data, kind), False)


@worded
def asarray(obj: Any, *, copy: bool | None = None, **options: Unpack[Options]) -> Tensor:
    """A tensor of `obj` that shares memory unless `copy` is True.

    Raises ValueError if `copy` is False and it cannot.
    """
    checked("asarray", options, refused=("layout", "memory_format", "out", "pin_memory"))
    kind = kind_of("asarray", options) if options.get("dtype") is not None else None
    if isinstance(obj, (bytes, bytearray, memoryview)):
        obj = np.frombuffer(obj, (kind or dtypes.get_default_dtype()).numpy)
    if copy is False:
        _check_alias(obj, kind)
    wants_grad = options.get("requires_grad") or False
    if isinstance(obj, Tensor):
        if obj.requires_grad and options.get("requires_grad") is None:
            messages.warn_once(messages.ASARRAY)
        shared = obj if kind is None else obj.to(kind)
        shared = shared.clone() if copy and shared is obj else shared
        return shared if wants_grad or not shared.requires_grad else shared.detach() if copy else shared
    array = array_of(obj, kind)
    if not copy and array is obj:
        warn_of_read_only(obj)
    return _of_data("asarray", obj, np.array(array) if copy else array, wants_grad)


def _check_alias(obj: Any, kind: DType | None) -> None:
    if not isinstance(obj, (Tensor, np.ndarray)):
        raise ValueError("can't alias arbitrary sequence into a tensor.")
    own = obj.dtype if isinstance(obj, Tensor) else dtypes.of(obj)
    if kind is not None and own is not kind:
        raise ValueError(f"can't alias tensor with dtype '{own.tensor_type}' into dtype '{kind.tensor_type}'.")


def from_numpy(array: Array) -> Tensor:
    """A tensor that shares memory with a NumPy array."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {typename(array)})")
    shared = supported(array)
    warn_of_read_only(array)
    return from_array(_with_its_strides(shared, array), False)


def warn_of_read_only(data: Any) -> None:
    """Warns once if `data` is an array of NumPy that refuses writes, which a tensor of its memory would not do."""
    if isinstance(data, np.ndarray) and not data.flags.writeable:
        messages.warn_once(_READ_ONLY)


callbacks.from_numpy = from_numpy


def factory_result(function: str, array: Array, options: Options) -> Tensor:
    """The result of a factory: a new leaf or constant, or ``out`` with the array written to it."""
    out = options.get("out")
    if out is None:
        return from_array(array, options.get("requires_grad") or False)
    if not isinstance(out, Tensor):
        raise TypeError(f"{function}(): argument 'out' must be Tensor, not {typename(out)}")
    requested = options.get("dtype")
    if requested is not None and requested is not out.dtype:
        kind = dtypes.from_argument(requested)
        kinds = f"dtype {kind.tensor_type if kind else requested} does not match dtype of out parameter "
        raise RuntimeError(f"{kinds}({out.dtype.tensor_type})")
    written: Tensor = taking_out(function, lambda: from_array(array.astype(out._array.dtype), False))(out=out)
    return written


def from_array(array: Array, requires_grad: bool) -> Tensor:
    """A new leaf or constant around `array`. Raises RuntimeError if it cannot require grad and should."""
    if requires_grad and array.dtype.kind != "f":
        raise RuntimeError(messages.FACTORY_CANNOT_REQUIRE)
    result = new_tensor(array)
    result._requires_grad = requires_grad
    if emit.channel is not None:
        instrumentation.entered(emit.channel, result)
    return result


# ----------------------------------------------------------------------------------------------------------------------
# Tensors of constants: ``zeros``, ``full``, ``ones_like``, ``Tensor.new_zeros`` and similar.


__all__ += [
    "empty",
    "empty_like",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "scalar_tensor",
    "zeros",
    "zeros_like",
]


@worded
def scalar_tensor(s: Any, **options: Unpack[Options]) -> Tensor:
    """A 0-dimensional tensor of a number, in the default dtype unless one is given."""
    checked("scalar_tensor", options, refused=("memory_format", "out"))
    return factory_result(
        "scalar_tensor", filled("scalar_tensor", (), s, kind_of("scalar_tensor", options), "s", 1), options
    )


@worded
def full(size: Any, fill_value: Any, **options: Unpack[Options]) -> Tensor:
    """A tensor filled with one value."""
    shape = sizes_given("full", size)
    value = number("full", fill_value, "fill_value", 2)
    kind = kind_of("full", checked("full", options, refused=("memory_format",)), _kind_of_number(value))
    return factory_result("full", filled("full", shape, value, kind), options)


def _kind_of_number(value: Any) -> DType:
    if isinstance(value, bool):
        return dtypes.bool_
    if isinstance(value, int):
        fitting(value, dtypes.int64)
        return dtypes.int64
    return dtypes.get_default_dtype()


def filled(
    function: str, shape: tuple[int, ...], value: Any, kind: DType, name: str = "fill_value", position: int = 2
) -> Array:
    """An array filled with the function's argument `name`. Raises TypeError if that is not a number."""
    value = fitting(number(function, value, name, position), kind)
    single = np.array(value if kind.is_floating_point or kind is dtypes.bool_ else int(value))
    return allocated(np.full, shape, single.astype(kind.numpy))


def allocated(make: Callable[..., Array], shape: tuple[int, ...], *args: Any) -> Array:
    """Calls `make` with a shape. Raises RuntimeError, with PyTorch's text, if there is not enough memory."""
    try:
        array: Array = make(shape, *args)
    except (MemoryError, ValueError):
        raise RuntimeError(_too_much(shape)) from None
    return array


def _too_much(shape: tuple[int, ...]) -> str:
    if prod(shape) >= 2**63:
        return f"Storage size calculation overflowed with sizes={list(shape)}"
    return f"DefaultCPUAllocator: can't allocate memory for a tensor of size {list(shape)}"


def _factory(name: str, make: Callable[..., Array], doc: str) -> Callable[..., Tensor]:
    def factory(*size: Any, **options: Any) -> Tensor:
        shape = shape_of(name, size, options)
        refused = () if name == "empty" else ("memory_format",)
        kind = kind_of(name, checked(name, options, refused=refused))  # type: ignore[arg-type]  # it checks them
        order = options.get("memory_format")
        if order is preserve_format:
            raise RuntimeError("unsupported memory format Preserve")
        if order is None or order is contiguous_format:
            return factory_result(name, allocated(make, shape, kind.numpy), options)  # type: ignore[arg-type]
        strides = strides_in(shape, order)
        return factory_result(name, allocated(zeros_in, shape, kind.numpy, strides), options)  # type: ignore[arg-type]

    factory.__name__ = factory.__qualname__ = name
    factory.__doc__ = doc
    return factory


def shape_of(function: str, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[int, ...]:
    """The shape passed to a function in one of PyTorch's ways. Raises TypeError if it was passed twice."""
    if "size" not in options:
        return sizes(function, args)
    if args:
        raise TypeError(f"{function}() got multiple values for argument 'size'")
    return sizes_given(function, options.pop("size"), "")


zeros = _factory("zeros", np.zeros, "Zeros.")
ones = _factory("ones", np.ones, "Ones.")
empty = _factory("empty", np.zeros, "Memory that has not been written yet: zeros here, so that recordings repeat.")


def _constant_like(name: str, value: int, doc: str) -> Callable[..., Tensor]:
    def like(input: Tensor, **options: Unpack[Options]) -> Tensor:
        kind = _kind_like(name, input, options)
        array = zeros_as(input._array, kind.numpy, options.get("memory_format") or preserve_format)
        array[...] = value
        return factory_result(name, array, options)

    like.__name__ = like.__qualname__ = name
    like.__doc__ = doc
    return worded(like)


def _kind_like(name: str, input: Tensor, options: Options) -> DType:
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {typename(input)}")
    return kind_of(name, checked(name, options, refused=("out",)), input.dtype)


zeros_like = _constant_like("zeros_like", 0, "Zeros, of the shape and dtype of `input`.")
ones_like = _constant_like("ones_like", 1, "Ones, of the shape and dtype of `input`.")
empty_like = _constant_like("empty_like", 0, "`empty`, of the shape and dtype of `input`.")


@worded
def full_like(input: Tensor, fill_value: Any, **options: Unpack[Options]) -> Tensor:
    """A tensor filled with one value, in the shape and dtype of `input`."""
    kind = _kind_like("full_like", input, options)
    value = filled("full_like", (), fill_value, kind)
    array = zeros_as(input._array, kind.numpy, options.get("memory_format") or preserve_format)
    array[...] = value
    return factory_result("full_like", array, options)


def _new(name: str, make: Callable[..., Array]) -> Callable[..., Tensor]:
    def new(self: Tensor, *size: Any, **options: Any) -> Tensor:
        shape = shape_of(name, size, options)
        kind = kind_of(name, checked(name, options, refused=("memory_format",)), self.dtype)  # type: ignore[arg-type]  # it checks them
        return factory_result(name, allocated(make, shape, kind.numpy), options)  # type: ignore[arg-type]

    new.__name__, new.__qualname__ = name, name
    new.__doc__ = "A tensor of the dtype of this one."
    return new


for name, make in (("new_zeros", np.zeros), ("new_ones", np.ones), ("new_empty", np.zeros)):
    front(name, function=False)(_new(name, make))


@front("new_full", function=False)
@worded
def new_full(self: Tensor, size: Any, fill_value: Any, **options: Any) -> Tensor:
    """A tensor filled with one value, in the dtype of this one."""
    kind = kind_of("new_full", checked("new_full", options, refused=("memory_format",)), self.dtype)  # type: ignore[arg-type]  # it checks them
    array = filled("new_full", sizes_given("new_full", size), fill_value, kind)
    return factory_result("new_full", array, options)  # type: ignore[arg-type]


@front("new_tensor", function=False)
@worded
def new_tensor_method(self: Tensor, data: Any, **options: Any) -> Tensor:
    """A tensor with a copy of `data`, in the dtype of this one."""
    return copied("new_tensor", data, options, self.dtype)  # type: ignore[arg-type]  # it checks them


# ----------------------------------------------------------------------------------------------------------------------
# Sequences of numbers: ``arange``, ``range``, ``linspace``, ``logspace``, ``eye``.


__all__ += ["arange", "eye", "linspace", "logspace", "range"]

_ARANGE = (
    "Number end, OPTIONS",
    "Number start, Number end, *, torch.dtype dtype = None, torch.layout layout = None, torch.device device = None, "
    "bool pin_memory = False, bool requires_grad = False",
    "Number start, Number end, Number step = 1, OPTIONS",
)
_LINSPACE = tuple(
    f"{start} start, {end} end, int steps, OPTIONS" for end in ("Tensor", "Number") for start in ("Tensor", "Number")
)
_RANGE = (
    "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
    "Python's range builtin. Instead, use torch.arange, which produces values in [start, end)."
)
_EYE = ("int n, OPTIONS", "int n, int m, OPTIONS")


def arange(*bounds: Any, **options: Any) -> Tensor:
    """``arange([start=0,] end, step=1)``: numbers from `start` up to and excluding `end`, `step` apart."""
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
    return factory_result("arange", _steps(start, step, _count(start, end, step), kind), options)  # type: ignore[arg-type]


def _bounds(bounds: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, Any, Any]:
    """`arange`'s arguments, passed by position or name."""
    names = ("end",) if len(bounds) == 1 and "end" not in options else ("start", "end", "step")
    numbers = dict(zip(names, bounds, strict=False))
    numbers |= {name: options.pop(name) for name in ("start", "end", "step") if name in options}
    unfit = [name for name, value in numbers.items() if not _is_number(value)]
    if unfit == ["end"] == list(numbers):
        kind = typename(numbers["end"])
        raise TypeError(f"arange(): argument 'end' (position 1) must be Number, not {kind}")
    if unfit or len(bounds) > 3 or "end" not in numbers or ("step" in numbers and "start" not in numbers):
        named = {name: value for name, value in numbers.items() if name not in names[: len(bounds)]}
        raise combination("arange", bounds, named, *_ARANGE)
    values = {name: number("arange", value, name, 1) for name, value in numbers.items()}
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
    """Return a number formatted as in C++."""
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
    """`count` numbers from `start`, `step` apart, computed in integers or float64 and then converted to `kind`."""
    if not kind.is_floating_point:
        start, step = int(start), int(step)
    values = np.arange(count, dtype=np.float64 if kind.is_floating_point else np.int64) * step + start
    result: Array = thread.quietly(values.astype, kind.numpy)
    return result


@worded
def range(start: Any, end: Any, step: Any = 1, **options: Unpack[Options]) -> Tensor:
    """Numbers from `start` to `end`, both included. `arange` is preferred."""
    first, last, by = (
        number("range", v, n, i) for i, (v, n) in enumerate(((start, "start"), (end, "end"), (step, "step")), 1)
    )
    kind = kind_of("range", checked("range", options))
    warn(_RANGE)
    _check_range(first, last, by)
    return factory_result("range", _steps(first, by, int((last - first) / by) + 1, kind), options)


def linspace(*args: Any, **options: Any) -> Tensor:
    """``linspace(start, end, steps)``: `steps` evenly spaced numbers from `start` to `end`, both included."""
    return factory_result("linspace", *_spaced("linspace", args, options))


def logspace(*args: Any, base: float = 10.0, **options: Any) -> Tensor:
    """``logspace(start, end, steps, base=10)``: `base` to the powers of `linspace`."""
    if len(args) == 4:
        *args, base = args  # type: ignore[assignment]  # by position
    exponents, rest = _spaced("logspace", tuple(args), options, exact=True)
    kind = kind_of("logspace", rest)
    powers = thread.quietly(np.power, np.asarray(base, exponents.dtype), exponents)
    return factory_result("logspace", thread.quietly(powers.astype, kind.numpy), rest)


def _spaced(
    function: str, args: tuple[Any, ...], options: dict[str, Any], *, exact: bool = False
) -> tuple[Array, Options]:
    numbers = dict(zip(("start", "end", "steps"), args, strict=False))
    numbers |= {name: options.pop(name) for name in ("start", "end", "steps") if name in options}
    fits = len(numbers) == 3 == max(3, len(args)) and all(
        _is_number(v) or isinstance(v, Tensor) for v in numbers.values()
    )
    if not fits or isinstance(numbers["steps"], bool) or not hasattr(numbers["steps"], "__index__"):
        raise combination(
            function,
            args,
            {n: v for n, v in numbers.items() if n not in ("start", "end", "steps")[: len(args)]},
            *_LINSPACE,
        )
    for name in ("start", "end"):
        if isinstance(numbers[name], Tensor) and numbers[name].ndim:
            raise RuntimeError(
                f"{function} only supports 0-dimensional start and end tensors, but got {name} with "
                f"{numbers[name].ndim} dimension(s)."
            )
    steps = integer(function, numbers["steps"], "steps", 3)
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    kind = kind_of(function, checked(function, options))  # type: ignore[arg-type]
    if kind is dtypes.bool_:
        raise NotImplementedError(f"\"{function}_cpu\" not implemented for 'Bool'")
    start, end = (number(function, numbers[name], name, i) for i, name in enumerate(("start", "end"), 1))
    inner = np.dtype(np.float64) if not kind.is_floating_point else kind.numpy
    values = thread.quietly(_even, start, end, steps, inner)
    return values if exact else thread.quietly(values.astype, kind.numpy), options  # type: ignore[return-value]


def _even(start: float, end: float, steps: int, kind: np.dtype[Any]) -> Array:
    """Compute from both ends towards the middle, as PyTorch does, so that the last number is exactly `end`."""
    low, high = np.asarray(start, kind), np.asarray(end, kind)
    step = np.asarray((high - low) / np.asarray(max(steps - 1, 1), kind))
    half = steps // 2 if steps > 1 else 1
    wide = np.longdouble if kind == np.float64 else np.float64  # so that a product and a sum are rounded once
    up = low.astype(wide) + step.astype(wide) * np.arange(min(half, steps)).astype(wide)
    down = high.astype(wide) - step.astype(wide) * np.arange(steps - half - 1, -1, -1).astype(wide)
    result: Array = np.concatenate([up, down]).astype(kind)
    return result


def eye(*size: Any, **options: Any) -> Tensor:
    """``eye(n, m=n)``: ones on the diagonal, zeros elsewhere."""
    counts = dict(zip(("n", "m"), size, strict=False)) | {k: options.pop(k) for k in ("n", "m") if k in options}
    if len(size) == 1 == len(counts):
        integer("eye", size[0], "n", 1)
    if (
        "n" not in counts
        or len(size) > 2
        or any(not hasattr(v, "__index__") or isinstance(v, bool) for v in counts.values())
    ):
        raise combination("eye", size, {}, *_EYE)
    n = integer("eye", counts["n"], "n", 1)
    m = integer("eye", counts.get("m", n), "m", 2)
    for name, value in (("n", n), ("m", m)):
        if value < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {value}")
    kind = kind_of("eye", checked("eye", options))  # type: ignore[arg-type]
    return factory_result("eye", np.eye(n, m, dtype=kind.numpy), options)  # type: ignore[arg-type]
