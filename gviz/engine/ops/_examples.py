"""Example arrays for operations: the same in every run, away from kinks and poles if requested."""

from __future__ import annotations

from itertools import count

import numpy as np

from gviz.values.value import Array

_seeds = count()


def normal(*shape: int) -> Array:
    """Standard normal numbers."""
    return np.random.default_rng(next(_seeds)).standard_normal(shape)


def positive(*shape: int) -> Array:
    """Numbers between 0.5 and 2."""
    return np.random.default_rng(next(_seeds)).uniform(0.5, 2.0, shape)


def uniform_array(low: float, high: float, *shape: int) -> Array:
    """Numbers between two bounds."""
    return np.random.default_rng(next(_seeds)).uniform(low, high, shape)


def spaced(*shape: int) -> Array:
    """Shuffled numbers at least 0.25 apart and away from zero, so that no kink or tie is close."""
    rng = np.random.default_rng(next(_seeds))
    size = int(np.prod(shape))
    return rng.permutation((np.arange(size) - size // 2 + 0.5) * 0.5).reshape(shape)
