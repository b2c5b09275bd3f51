"""``torch.random``: the random number generator, its seeds and its state.

The numbers are those of NumPy's PCG64: equal seeds repeat, but give other numbers than PyTorch's Mersenne Twister.
Unless a program seeds it, every run starts from the same seed, so that recordings repeat.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from gviz.engine import operation_watchers
from gviz.engine.tensor import Tensor, new_tensor
from gviz.values.value import Array

__all__ = [
    "Generator",
    "default_generator",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]

FIRST_SEED = 67280421310721
"""The initial seed of a new `Generator`, as in PyTorch."""

_STATE = np.dtype([("state", "u1", 16), ("increment", "u1", 16), ("half", "<u8"), ("held", "<u8"), ("seed", "<u8")])


class Generator:
    """An independent random number generator on the CPU."""

    def __init__(self, device: Any = "cpu") -> None:
        if str(device).partition(":")[0] != "cpu":
            raise RuntimeError(f"the built-in engine runs on the CPU; there is no device '{device}'")
        self.device = "cpu"
        self.manual_seed(FIRST_SEED)

    def manual_seed(self, seed: int) -> Generator:
        """Seeds the generator. Raises ValueError for a seed of more than 64 bits."""
        if not -(2**63) <= seed < 2**64:
            raise ValueError("Overflow when unpacking long long")
        self._seed = seed % 2**64
        self.__dict__.pop("stream", None)
        return self

    @cached_property
    def stream(self) -> np.random.Generator:
        """The NumPy generator, created at the first draw: a program without random numbers need not import it."""
        return np.random.Generator(np.random.PCG64(self._seed))

    def seed(self) -> int:
        """Seeds the generator from the system. Returns the seed."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self._seed

    def initial_seed(self) -> int:
        """The seed of this generator."""
        return self._seed

    def get_state(self) -> Tensor:
        """The state of the generator, as bytes."""
        now: Any = self.stream.bit_generator.state
        numbers = [now["state"]["state"], now["state"]["inc"]]
        halves = [np.frombuffer(number.to_bytes(16, "little"), "u1") for number in numbers]
        packed = np.array([(*halves, now["has_uint32"], now["uinteger"], self._seed)], _STATE)
        return new_tensor(packed.view(np.uint8).copy())

    def set_state(self, new_state: Tensor) -> Generator:
        """Restores a state that `get_state` returned."""
        if not isinstance(new_state, Tensor) or new_state._array.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if new_state._array.size != _STATE.itemsize:
            raise RuntimeError(
                f"Expected a generator's state of size {_STATE.itemsize} but found the input RNG state size to be "
                f"{new_state._array.size}"
            )
        packed = np.ascontiguousarray(new_state._array).view(_STATE)[0]
        state, increment = (int.from_bytes(packed[name].tobytes(), "little") for name in ("state", "increment"))
        self._seed = int(packed["seed"])
        self.stream.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {"state": state, "inc": increment},
            "has_uint32": int(packed["half"]),
            "uinteger": int(packed["held"]),
        }
        return self

    def clone_state(self) -> Generator:
        """A new generator in the same state."""
        return Generator().set_state(self.get_state())

    def __getstate__(self) -> Array:
        return self.get_state()._array

    def __setstate__(self, state: Array) -> None:
        self.__init__()  # type: ignore[misc]  # an empty generator, which then takes the state
        self.set_state(new_tensor(state))


default_generator = Generator().manual_seed(0)


def manual_seed(seed: Any) -> Generator:
    """Seeds the default generator."""
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Seeds the default generator from the system. Returns the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator, as bytes."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Restores a state that `get_rng_state` returned."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, **_: Any) -> Iterator[None]:
    """Restores the state of the default generator at the end of the block."""
    before = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(before)


def stream_of(generator: Generator | None) -> np.random.Generator:
    """The NumPy generator to draw from: that of `generator`, or of the default one."""
    if operation_watchers.watchers and (recorder := operation_watchers.recorder()) is not None:
        recorder.drew()
    return (generator or default_generator).stream


def uniform(
    low: float, high: float, shape: tuple[int, ...], kind: np.dtype[Any], generator: Generator | None = None
) -> Array:
    """Uniform random numbers from `low` to `high`, never `high` itself, even if rounding to `kind` would reach it."""
    drawn = stream_of(generator).uniform(low, high, shape)
    cast = np.asarray(drawn, kind)
    return np.minimum(cast, np.nextafter(kind.type(high), kind.type(low))) if low < high else cast


def normal(
    mean: Any, std: Any, shape: tuple[int, ...], kind: np.dtype[Any], generator: Generator | None = None
) -> Array:
    """Normal random numbers."""
    return np.asarray(stream_of(generator).normal(mean, std, shape), kind)
