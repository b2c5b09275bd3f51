"""What the ranks of data-parallel training share, and what each has of its own.

Each rank has its own batch, so its data, what it computes from them, its random numbers, and its gradients before they
are brought together are expected to differ. All ranks share the parameters, the gradients that their optimizers use,
the buffers and the tracked graph: where one of these differs, the copies of the model drift apart.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Literal, TypeGuard, get_args

from gviz.compare.comparison import STRUCTURE, Comparison, Difference
from gviz.compare.side import Side

Shared = Literal["parameter", "gradient", "buffer", "graph"]
"""What has to agree: a parameter at the beginning of the iteration; a gradient as an optimizer used it; a tensor of a
module that is no parameter; what is computed, and from what, in which dtype, as far as autograd tracks it."""

Own = Literal["data", "random", "result", "own gradient", "own work"]
"""What is expected to differ: what comes from outside; what a dropout drew; what is computed from these; a gradient
that no optimizer used; operations that no gradient comes through, as for a log."""

Part = Shared | Own

SHARED: tuple[Shared, ...] = get_args(Shared)
OWN: tuple[Own, ...] = get_args(Own)


def is_shared(part: Part) -> TypeGuard[Shared]:
    """Whether a part of training is one that ranks have in common."""
    return part in SHARED


class Parted:
    """The differences between two ranks in one iteration, each with the part of training that it is about."""

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison

    @cached_property
    def parts(self) -> tuple[tuple[Part, Difference], ...]:
        """Every difference, in order of time."""
        return tuple((self._part(each), each) for each in self.comparison.differences)

    @cached_property
    def shared(self) -> Comparison:
        """The comparison with the differences alone that ranks should not have."""
        kept = [difference for part, difference in self.parts if is_shared(part)]
        return replace(self.comparison, differences=tuple(kept))

    @property
    def first(self) -> tuple[Part, Difference] | None:
        """The first difference that ranks should not have."""
        return next(((part, difference) for part, difference in self.parts if is_shared(part)), None)

    def _part(self, difference: Difference) -> Part:
        sides = (self.comparison.a, self.comparison.b)
        there = [(side, node) for side, node in zip(sides, difference.pair, strict=True) if node]
        side, node = there[0]
        if difference.kind in ("gradient", "kept"):
            used = difference.kind == "gradient" and any(one in its.updated for its, one in there)
            return "gradient" if used else "own gradient"
        created = side.infos[node].created
        if created.kind == "op":
            return _of_operation(difference, there)
        if any(one in its.learnt for its, one in there):
            return "graph" if difference.kind in STRUCTURE else "parameter"
        if any(one in its.buffers for its, one in there):
            return "buffer" if all(its.known_before_use(one) for its, one in there) else "result"
        return "random" if any(name == "mask" for name, _ in created.attrs) else "data"


def _of_operation(difference: Difference, there: list[tuple[Side, int]]) -> Part:
    """What an operation differs in: its making, or only what it made of other data."""
    if all(side.infos[node].created.untracked for side, node in there):
        return "own work"
    if difference.kind == "missing" and not any(side.is_reached(node) for side, node in there):
        return "own work"
    if difference.kind in ("missing", "inputs", "tracking", "dtype"):
        return "graph"
    if difference.kind == "arguments" and not _other_sizes(there):
        return "graph"
    return "result"


def _other_sizes(there: list[tuple[Side, int]]) -> bool:
    """Whether two operations were given or made tensors of other shapes: their arguments follow from those."""
    shapes = []
    for side, node in there:
        inputs = side.infos[node].created.inputs
        given = [value for of, nr in inputs for value in side.values.get(of, ())[nr : nr + 1]]
        shapes.append([value and value.shape for value in (*given, *side.values[node])])
    return shapes[0] != shapes[-1]
