"""One array as it was at one moment: its bytes or its statistics, never a live reference.

A `Value`'s dtype is a string, because frameworks have dtypes that numpy lacks (``bfloat16``). The bytes are in C order,
little-endian. Statistics are the same everywhere: min, max, mean and rms over the finite elements; counts of nan, inf
and zero over all of them, never sampled.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from math import isfinite, prod, sqrt
from time import monotonic, sleep
from typing import Annotated, Any, Literal, Protocol

import msgspec
import numpy as np

Array = np.ndarray[Any, Any]

Keep = Literal["none", "stats", "whole"]
"""How much of an array a recording keeps: only shape and dtype, statistics, or all elements up to a limit."""

INLINE_BYTES = 1024
"""Up to this size, raw bytes cost no more than statistics. They are kept unless less is requested."""

NUMPY_DTYPES = {
    "bool": "?", "uint8": "u1", "int8": "i1", "int16": "<i2", "int32": "<i4", "int64": "<i8",
    "float16": "<f2", "float32": "<f4", "float64": "<f8", "complex64": "<c8", "complex128": "<c16",
}  # fmt: skip
ITEM_SIZES = {name: np.dtype(code).itemsize for name, code in NUMPY_DTYPES.items()} | {"bfloat16": 2}
FEW_BYTES = 64
"""Arrays up to this size are kept whole even if only statistics are requested, which would not be shorter."""

_SUMMED_IN_FLOAT32 = 100_000
"""Up to this number of elements, sums in float32 (pairwise, as in numpy) are as exact as the elements."""

_LEAST_IN_FLOAT32, _LARGEST_IN_FLOAT32 = 1e-16, 1e16
_FEW = 2048
"""Up to this number of elements, counting nonzeros directly is faster than comparing all at once."""

_FLOAT32 = np.dtype(np.float32)
_LEAST_SQUARE, _LARGEST_SQUARE = 1e-140, 1e140

_NAMES = {np.dtype(code): name for name, code in NUMPY_DTYPES.items()}


Shape = Annotated[tuple[Annotated[int, msgspec.Meta(ge=0)], ...], msgspec.Meta(max_length=64)]


class Stats(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Statistics of one array: `min`, `max`, `mean`, `rms` of the finite elements; numbers of nan, infinities, zeros.

    If no element is finite, the first four are nan. `minus` is the number of negative infinities, or -1 if it is
    unknown or there are no infinities.
    """

    min: float
    max: float
    mean: float
    rms: float
    nan: int
    inf: int
    zero: int
    minus: int = -1


class Value(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One array at one moment.

    `data` has all elements if they were kept in the event. `blob` names the chunks that hold them in the trace file.
    `stats` is set if neither is, or in addition to a blob. A value without any of the three was not stored.
    """

    dtype: str
    shape: Shape
    data: bytes | None = None
    stats: Stats | None = None
    blob: bytes | None = None

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def counts_up(self) -> bool:
        """Whether it has the statistics of 0, 1, 2 …, as ``torch.arange(n)``. Another order of these has them, too."""
        stats, last = self.statistics(), self.size - 1
        if stats is None or last < 1 or stats.nan or stats.inf:
            return False
        is_middle = abs(stats.mean - last / 2) <= 1e-6 * last
        return (stats.min, stats.max, stats.zero) == (0, last, 1) and is_middle

    @property
    def is_known(self) -> bool:
        """Whether anything about its numbers was stored."""
        return (self.data, self.stats, self.blob) != (None, None, None)

    @property
    def nbytes(self) -> int:
        """The number of bytes the elements take, stored or not."""
        return self.size * ITEM_SIZES.get(self.dtype, 0)

    @property
    def stays_whole(self) -> bool:
        """Whether a recording keeps all elements, regardless of its limits."""
        return False

    def reshaped(self, shape: Shape) -> Value:
        """Return a value with the same elements and another shape."""
        return Value(self.dtype, shape, self.data, self.stats, self.blob)

    def array(self) -> Array | None:
        """Return all elements as a read-only array (bfloat16 as float32), or None if they are not in this object."""
        data = self.data
        return None if data is None else decode(self.dtype, self.shape, data)

    def statistics(self) -> Stats | None:
        """Return the stored statistics, or those of the stored elements, or None."""
        data = self.data  # read first: a thread that shortens a value sets the statistics before
        if self.stats is not None or data is None:
            return self.stats
        return _of_data(self.dtype, self.shape, data)


class UnorderedValue(Value, frozen=True, array_like=True, gc=False):
    """A value whose elements are used for statistics only, in memory order."""

    def array(self) -> None:
        """Return None: the positions of the elements are unknown."""


class Whole(Value, frozen=True, array_like=True, gc=False):
    """A value that a recording keeps whole, regardless of its limits."""

    @property
    def stays_whole(self) -> bool:
        """Always True."""
        return True


class DeviceRequest(Protocol):
    """A pending request to a device about one array."""

    @property
    def keeps_elements(self) -> bool:
        """Whether all elements were requested, rather than statistics."""

    def take(self) -> tuple[bytes | None, Stats | None] | None:
        """Return bytes and statistics, at most one not None, or None if the device has not answered yet."""


class AwaitedValue(Value, frozen=True, array_like=True, gc=True, dict=True, eq=False):
    """A value that a device has not delivered yet. It becomes an ordinary value when it `arrives`.

    Only a reader of its numbers waits for the device. The writer of a trace waits for values before it writes them.
    """

    @classmethod
    def of(cls, dtype: str, shape: Shape, answer: DeviceRequest) -> AwaitedValue:
        """Return a value without elements and statistics, which `answer` will deliver."""
        value = cls(dtype, shape)
        value.__dict__.update(answer=answer, then=[], stays_whole=False)
        return value

    @property
    def stays_whole(self) -> bool:
        """Whether it is to be kept whole."""
        whole: bool = self.__dict__["stays_whole"]
        return whole

    def stay_whole(self) -> None:
        """Keep this value whole, regardless of the recording's limits."""
        self.__dict__["stays_whole"] = True

    @property
    def keeps_elements(self) -> bool:
        """Whether it will have elements, rather than only statistics."""
        answer: DeviceRequest | None = self.__dict__["answer"]
        return self.data is not None if answer is None else answer.keeps_elements

    def reshaped(self, shape: Shape) -> Value:
        """Return a value with the same elements and another shape; they are requested only once."""
        answer = self.__dict__["answer"]
        return (
            Value(self.dtype, shape, self.data, self.stats)
            if answer is None
            else AwaitedValue.of(self.dtype, shape, answer)
        )

    def when_known(self, then: Callable[[Value], None]) -> None:
        """Call `then` when it arrives, in the thread that finds that, before it is written."""
        self.__dict__["then"].append(then)

    def arrives(self, until: float = 0.0) -> bool:
        """Return whether it has its numbers, or never will; waits for that until a time of `time.monotonic`."""
        fields = self.__dict__
        while (answer := fields["answer"]) is not None:
            taken = answer.take()
            if taken is not None:
                data, stats = taken
                msgspec.structs.force_setattr(self, "stats", stats)
                msgspec.structs.force_setattr(self, "data", data)
                fields["answer"] = None
                for then in fields["then"]:
                    then(self)
            elif monotonic() >= until:
                return False
            else:
                sleep(_BETWEEN_LOOKS)
        return True

    def array(self) -> Array | None:
        """Same as for any value, after waiting for the device."""
        self.arrives(monotonic() + LONGEST_ANSWER)
        return super().array()

    def statistics(self) -> Stats | None:
        """Same as for any value, after waiting for the device."""
        self.arrives(monotonic() + LONGEST_ANSWER)
        return super().statistics()


LONGEST_ANSWER = 60.0
"""The most seconds to wait for a device."""

_BETWEEN_LOOKS = 5e-5


@lru_cache(maxsize=1024)
def _of_data(dtype: str, shape: tuple[int, ...], data: bytes) -> Stats:
    """Return the statistics of stored elements; cached because stepping shows the same values repeatedly."""
    return statistics(decode(dtype, shape, data))


def decode(dtype: str, shape: tuple[int, ...], data: bytes) -> Array:
    """Convert raw bytes to a read-only array.

    Raises ValueError for an unknown dtype, or if the number of bytes does not match the shape.
    """
    if dtype not in ITEM_SIZES or min(shape, default=0) < 0 or prod(shape) * ITEM_SIZES[dtype] != len(data):
        raise ValueError(f"{len(data)} bytes do not make a {dtype} array of shape {shape}")
    if dtype == "bfloat16":
        return (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4").reshape(shape)
    return np.frombuffer(data, NUMPY_DTYPES[dtype]).reshape(shape)


def capture(array: Array | np.generic, limit: int = INLINE_BYTES) -> Value:
    """Return the value of `array` now: its bytes if there are at most `limit`, otherwise its statistics."""
    return capturing(limit)(array)


def capturing(limit: int) -> Callable[[Array | np.generic], Value]:
    """Return a function that captures arrays: bytes up to `limit` (0.2 µs for small ones), else statistics (3 µs).

    If there is no memory for either, only the shape is kept.
    """

    def captured(array: Array | np.generic) -> Value:
        try:
            if array.nbytes > limit:
                return Value(_NAMES[array.dtype], array.shape, None, statistics(np.asarray(array)))
            # `tobytes` of a numpy scalar makes an array first
            data = array.tobytes() if array.__class__ is np.ndarray else array.data.tobytes()
        except MemoryError:
            return shape_of(array)
        return Value(_NAMES[array.dtype], array.shape, data)

    return captured


def shape_of(array: Array | np.generic) -> Value:
    """Return a value with only dtype and shape, without reading elements."""
    return Value(_NAMES[array.dtype], array.shape)


def statistics(array: Array) -> Stats:
    """Return the statistics of an array; counts are exact."""
    if 0 in array.strides and array.size:
        once = each_once(array)
        return repeated(statistics(once), array.size // once.size)
    flat = array.ravel("K")  # the order does not matter, and a transposed array is not copied
    if flat.dtype is _FLOAT32 and 0 < flat.size <= _SUMMED_IN_FLOAT32:
        quick = _ordinary(flat)
        if quick is not None:
            return quick
    wide = _real(flat)
    if wide.size == 0:
        missing = float("nan")
        return Stats(missing, missing, missing, missing, 0, 0, 0)
    low, high = float(wide[wide.argmin()]), float(wide[wide.argmax()])  # faster than `min` and `max`
    zero = 0 if low > 0 or high < 0 else int(np.count_nonzero(wide == 0))
    if isfinite(low) and isfinite(high):  # a nan anywhere makes both nan
        largest = max(-low, high)
        if not _LEAST_IN_FLOAT32 < largest < _LARGEST_IN_FLOAT32:
            wide = wide.astype(np.float64, copy=False)
        mean = float(np.add.reduce(wide)) / wide.size
        return Stats(low, high, mean, _root_mean_square(wide, largest), 0, 0, zero)
    finite = statistics(wide[np.isfinite(wide)])
    nan = int(np.count_nonzero(np.isnan(wide)))
    infinite = int(np.count_nonzero(np.isinf(wide)))
    minus = int(np.count_nonzero(np.isneginf(wide))) if infinite else -1
    return msgspec.structs.replace(finite, nan=nan, inf=infinite, minus=minus)


def each_once(array: Array) -> Array:
    """Return a nonempty array without broadcast repetition: one element for each group that shares memory."""
    if 0 not in array.strides:
        return array
    return array[tuple(slice(None) if stride else 0 for stride in array.strides)]


def repeated(stats: Stats, times: int) -> Stats:
    """Return the statistics of an array that repeats each element of another one `times` times."""
    if times == 1:
        return stats
    counts = {name: getattr(stats, name) * times for name in ("nan", "inf", "zero")}
    return msgspec.structs.replace(stats, **counts, minus=max(stats.minus * times, -1))


def _ordinary(flat: Array) -> Stats | None:
    """Return the statistics of finite float32 numbers of ordinary size in half the time; None for others."""
    low, high = flat.item(flat.argmin()), flat.item(flat.argmax())  # a nan anywhere makes both nan
    if not (low > -_LARGEST_IN_FLOAT32 and _LEAST_IN_FLOAT32 < max(-low, high) < _LARGEST_IN_FLOAT32):
        return None
    size = flat.size
    zero = 0
    if low <= 0 <= high:
        zero = size - int(np.count_nonzero(flat)) if size <= _FEW else int(np.count_nonzero(flat == 0))
    mean = float(flat.dot(_ones()[:size])) / size  # as exact as `add.reduce`, in less than half the time
    return Stats(low, high, mean, sqrt(float(flat.dot(flat)) / size), 0, 0, zero)


@cache
def _ones() -> Array:
    return np.ones(_SUMMED_IN_FLOAT32, np.float32)


def _real(flat: Array) -> Array:
    """Return the numbers to sum: magnitudes of complex numbers, small types as float64."""
    if flat.dtype == np.float32 and flat.size <= _SUMMED_IN_FLOAT32:
        return flat
    return (np.abs(flat) if flat.dtype.kind == "c" else flat).astype(np.float64, copy=False)


def _root_mean_square(wide: Array, largest: float) -> float:
    if _LEAST_SQUARE < largest < _LARGEST_SQUARE:
        return sqrt(float(np.dot(wide, wide)) / wide.size)
    scale = largest or 1.0  # squares would leave the range of the dtype
    return scale * sqrt(float(np.mean(np.square(wide / scale))))
