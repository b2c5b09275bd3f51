"""A recorded operation run again with one element of one input moved: what that changes its outputs by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gviz.engine.tensor import new_tensor
from gviz.errors import GvizError
from gviz.trace.state import NodeInfo
from gviz.values import Array
from gviz.whatif import operations
from gviz.whatif.functions import Forward


@dataclass(frozen=True)
class Moved:
    """The operation of a node, the numbers that went into it, and the gradients that arrived at what it gave."""

    info: NodeInfo
    forward: Forward
    arrays: Sequence[Array]
    seeds: Sequence[Array | None]

    @cached_property
    def here(self) -> list[Array]:
        """Its outputs where nothing is moved."""
        return self._outputs(self.arrays)

    @cached_property
    def largest_output(self) -> float:
        """The largest number that it gave."""
        finite = (np.abs(array[np.isfinite(array)]).max(initial=0.0) for array in self.here)
        return float(max(finite, default=0.0))

    @cached_property
    def largest_seed(self) -> float:
        """The largest gradient that arrived."""
        return max((float(np.abs(seed).max(initial=0.0)) for seed in self.seeds if seed is not None), default=0.0)

    def gives_on(self, slot: int) -> bool:
        """Whether all that it does is to give an input on as it is, whatever that and the others hold."""
        others = [0.3 - 1.7 * array if array.dtype.kind == "f" else array for array in self.arrays]
        try:
            gave = self._outputs(others)
        except GvizError:  # it takes only numbers such as it was given
            return False
        return len(gave) == 1 and np.array_equal(gave[0], others[slot])

    def slopes(self, slots: Sequence[int], places: Sequence[int], step: float) -> Array:
        """What its weighted outputs change by for each unit that an element of an input is moved: down, and up.

        Of several inputs that hold the same, that element of all of them is moved at once.

        Of shape ``(elements, 2)``; elements far from zero are moved by as many steps.
        """
        return np.array([self._slopes_at(slots, place, step) for place in places]).reshape(-1, 2)

    def _slopes_at(self, slots: Sequence[int], place: int, step: float) -> tuple[float, float]:
        by = step * max(1.0, abs(float(self.arrays[slots[0]].reshape(-1)[place])))
        return -self._change(slots, place, -by) / by, self._change(slots, place, by) / by

    def _change(self, slots: Sequence[int], place: int, by: float) -> float:
        """What moving one element changes its outputs by, weighted by the gradients that arrived at them."""
        arrays = list(self.arrays)
        for slot in slots:
            arrays[slot] = np.array(arrays[slot], order="C")
            arrays[slot].reshape(-1)[place] += by
        changes = zip(self._outputs(arrays), self.here, self.seeds, strict=False)
        with np.errstate(invalid="ignore"):
            return sum(_dot(after - before, seed) for after, before, seed in changes if seed is not None)

    def _outputs(self, arrays: Sequence[Array]) -> list[Array]:
        given = [new_tensor(np.array(array)) for array in arrays]  # an operation may write to what it is given
        try:
            outputs = self.forward(given)
        except operations.FAILURES as error:
            raise GvizError(f"{self.info.op.name} cannot be run on its own", why=str(error), exit_code=2) from None
        return [output._array.astype(np.float64) for output in outputs]


def _dot(array: Array, seed: Array) -> float:
    """The sum of the products; an infinity at which no gradient arrived does not count."""
    arrived = seed != 0
    return float(np.sum(array[arrived] * seed[arrived]))
