"""Finds the declared operation that a file or an event describes, and its attributes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from typing import Any, Literal

import numpy as np

from gviz.engine.op import REGISTRY, WRITTEN_PART_PREFIX, Op
from gviz.engine.ops import shape
from gviz.engine.ops.strided import Geometry
from gviz.events import OpSeen

Effect = Literal["new", "write", "become"]
"""Whether an operation makes new tensors, writes to its first operand, or turns that operand into another view."""

GEOMETRY, VIEW = "geometry", "view"
"""Attributes of events: the geometry of a view in its base; the node of the view that an operation wrote through."""


def named(op: Op) -> tuple[str, str, str, tuple[str, ...]]:
    """The key of an op: signature, ``grad_fn``, formula, and the optional tensors that it lacks."""
    return op.signature, op.grad_fn, op.formula, tuple(sorted(op.absent))


def operation(name: Any) -> Op:
    """The op for a key from `named`. Raises ValueError if the engine has none."""
    signature, grad_fn, formula, absent = name
    op = _by_signature().get((signature, grad_fn, formula))
    if op is None:
        raise ValueError(f"this version of gviz has no operation {signature!r}")
    return without(op, absent)


def without(op: Op, absent: Iterable[str]) -> Op:
    """The variant of an op without some of its optional tensors. Raises ValueError if they are not optional."""
    missing = frozenset(absent)
    if not missing <= op.optional:
        raise ValueError(f"{op.name} cannot be without {', '.join(sorted(missing - op.optional))}")
    return op.present([None if slot in missing else slot for slot in op.slots])[0] if missing else op


def recorded_operation(seen: OpSeen, attrs: Iterable[str]) -> Op | None:
    """The op that an event describes, for attributes of these names; None if the engine has none.

    A write through a view is identified by its rules and saved tensors, since every such write has the same
    ``grad_fn``.
    """
    is_part = seen.grad_fn == "CopySlices"
    formula = seen.formula.removeprefix(WRITTEN_PART_PREFIX) if is_part else seen.formula
    names = set(attrs) - {VIEW}
    candidates = [
        without(op, set(op.slots) - set(seen.slots))
        for op in _by_formula().get((seen.name.rstrip("_"), formula), ())
        if set(seen.slots) <= set(op.slots) <= set(seen.slots) | op.optional
        and names <= set(op.attrs)
        and (is_part or op.grad_fn == seen.grad_fn)
    ]
    return max(candidates, key=lambda op: _likeness(op.describe(seen.op), seen), default=None)


def effect_of(op: Op, seen: OpSeen) -> Effect:
    """What the op did in that event."""
    return "new" if not is_in_place(seen) else "become" if op.memory == "view" else "write"


def is_in_place(seen: OpSeen) -> bool:
    """Whether the operation wrote to its first input, or turned it into another view."""
    return seen.name.endswith("_") and not seen.name.startswith("_")


def attributes_of(op: Op, plain: Any) -> dict[str, Any]:
    """The op's attributes from plain data. Raises ValueError for names that the op lacks."""
    attrs = {name: value for name, value in dict(plain).items() if name != VIEW}
    unknown = [name for name in attrs if name not in op.attrs]
    if unknown:
        raise ValueError(f"{op.name} has no argument {unknown[0]!r}")
    return {name: Geometry(*_tuples(value)) if name == GEOMETRY else _tuples(value) for name, value in attrs.items()}


def _likeness(described: OpSeen, seen: OpSeen) -> tuple[bool, bool]:
    return described.rules == seen.rules, described.saved == seen.saved


def _tuples(value: Any) -> Any:
    return tuple([_tuples(item) for item in value]) if isinstance(value, (tuple, list)) else value


@cache
def _by_signature() -> dict[tuple[str, str, str], Op]:
    return {(op.signature, op.grad_fn, op.formula): op for op in _every_op()}


@cache
def _by_formula() -> dict[tuple[str, str], list[Op]]:
    by_formula: defaultdict[tuple[str, str], list[Op]] = defaultdict(list)
    for op in _every_op():
        by_formula[op.name.rstrip("_"), op.formula].append(op)
    return by_formula


def _every_op() -> list[Op]:
    """Return every operation. Importing the package declares them all."""
    return [*REGISTRY, *shape.VARIANTS]


# ----------------------------------------------------------------------------------------------------------------------
# Operations whose result size depends on the data: no static graph and no fixed buffer can hold them.


_NAMES = frozenset({"argwhere", "bincount", "masked_select", "nonzero", "unique", "unique_consecutive", "unique_dim"})


def is_sized_by_data(op: Op, others: Iterable[np.dtype[Any]]) -> bool:
    """Whether the result size of an op depends on data; `others` are the dtypes of all operands but the first."""
    return op.name in _NAMES or is_by_mask(op, others)


def is_by_mask(op: Op, others: Iterable[np.dtype[Any]]) -> bool:
    """Whether an op selects elements with a mask."""
    return op.name == "index" and any(dtype.kind == "b" for dtype in others)
