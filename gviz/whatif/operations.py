"""A recorded operation, run again by the engine from what its event says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cache

from gviz.engine import functions  # noqa: F401  # declares every operation
from gviz.engine.apply import apply
from gviz.engine.attributes import Attrs, revived_attrs
from gviz.engine.modes import enable_grad, no_grad
from gviz.engine.op import REGISTRY, Op
from gviz.engine.ops.strided import Geometry
from gviz.engine.tensor import Tensor
from gviz.engine.views import apply_in_place, view_in_place
from gviz.events import NodeCreated, OpSeen

VIEW = "view"
"""The attribute that names the view through which an operation wrote to its base."""

_KINDS = {"geometry": Geometry}


def operation(seen: OpSeen, attrs: Attrs) -> Op | None:
    """The declaration of an operation that was recorded with these attributes; None if the engine has none."""
    slots, given = set(seen.slots), {name for name, _ in attrs} - {VIEW}
    fitting = [
        op
        for op in _by_name().get(seen.name.rstrip("_"), ())
        if seen.grad_fn in (op.grad_fn, "CopySlices")
        and slots <= set(op.slots)
        and set(op.slots) - slots <= op.optional
        and given <= set(op.attrs)
    ]
    return min(fitting, key=lambda op: len(op.attrs), default=None)


def run(op: Op, seen: OpSeen, created: NodeCreated, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Run an operation on other tensors; its outputs, or the tensor it wrote to. Raises what the operation raises."""
    attrs = revived_attrs(tuple((name, value) for name, value in created.attrs if name != VIEW), _KINDS)
    with no_grad() if created.untracked == "no_grad" else enable_grad():
        if not is_in_place(seen):
            variant, operands = op.present(_placed(op, seen, tensors)) if op.optional else (op, list(tensors))
            result = apply(variant, operands, attrs)
            return list(result) if op.several else [result]
        if op.memory == "view":
            return [view_in_place(op, tensors[0], attrs)]
        written = apply_in_place(op, tensors, attrs)
    return [written if created.untracked or written._base is None else written._base]


def is_in_place(seen: OpSeen) -> bool:
    """Whether the operation wrote to its first input."""
    return seen.name.endswith("_") and not seen.name.startswith("_")


def _placed(op: Op, seen: OpSeen, tensors: Sequence[Tensor]) -> list[Tensor | None]:
    """The operands in their slots, None in those that were empty."""
    given = dict(zip(seen.slots, tensors, strict=True))
    return [given.get(slot) for slot in op.slots]


@cache
def _by_name() -> dict[str, list[Op]]:
    by_name: defaultdict[str, list[Op]] = defaultdict(list)
    for op in REGISTRY:
        by_name[op.name.rstrip("_")].append(op)
    return by_name
