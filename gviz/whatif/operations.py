"""A recorded operation, run again by the engine from what its event says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cache

from gviz.engine import functions  # noqa: F401  # declares every operation
from gviz.engine.apply import apply
from gviz.engine.attributes import Attrs, plain_attrs, revived_attrs
from gviz.engine.modes import enable_grad, no_grad
from gviz.engine.op import REGISTRY, Op
from gviz.engine.ops.strided import Geometry
from gviz.engine.tensor import Tensor
from gviz.engine.views import apply_in_place, view_in_place
from gviz.events import NodeCreated, OpSeen

VIEW = "view"
"""The attribute that names the view through which an operation wrote to its base."""

_GEOMETRY = "geometry"
_KINDS = {_GEOMETRY: Geometry}


def operation(seen: OpSeen, attrs: Attrs) -> Op | None:
    """The declaration of an operation that was recorded with these attributes; None if the engine has none.

    What writes to a view, or becomes one, has a ``grad_fn`` of another name or number than the declaration.
    """
    slots, given = set(seen.slots), {name for name, _ in attrs} - {VIEW}
    fitting = [
        op
        for op in _by_name().get(seen.name.rstrip("_"), ())
        if _stem(seen.grad_fn) in (_stem(op.grad_fn), "CopySlices")
        and slots <= set(op.slots)
        and set(op.slots) - slots <= op.optional
        and given <= set(op.attrs)
    ]
    return min(fitting, key=lambda op: (op.grad_fn != seen.grad_fn, len(op.attrs)), default=None)


def _stem(grad_fn: str) -> str:
    return grad_fn.rstrip("0123456789")


def run(op: Op, seen: OpSeen, created: NodeCreated, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Run an operation on other tensors; its outputs, or the tensor it wrote to. Raises what the operation raises."""
    attrs = revived_attrs(tuple((name, value) for name, value in created.attrs if name != VIEW), _KINDS)
    variant, operands = op.present(_placed(op, seen, tensors)) if op.optional else (op, list(tensors))
    with no_grad() if created.untracked == "no_grad" else enable_grad():
        if not is_in_place(seen):
            result = apply(variant, operands, attrs)
            return list(result) if op.several else [result]
        if op.memory == "view":
            return [view_in_place(variant, tensors[0], attrs)]
        written = apply_in_place(variant, operands, attrs)
    return [written if created.untracked or written._base is None else written._base]


def is_regenerated(created: NodeCreated) -> bool:
    """Whether it is no operation of the program's: a view took notice that its base was written to."""
    return any(name == _GEOMETRY for name, _ in created.attrs) and any(output.view_of for output in created.outputs)


def is_view(tensor: Tensor, base: Tensor, created: NodeCreated) -> bool:
    """Whether a tensor looks into the memory of `base` as that node does."""
    if tensor._base is not base:
        return False
    geometry = plain_attrs({_GEOMETRY: Geometry.of(base._array, tensor._array)})
    return revived_attrs(geometry, _KINDS) == revived_attrs(created.attrs, _KINDS)


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
