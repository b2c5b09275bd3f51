"""Operations and their attributes as plain data, and back: for files, and for events of a recording."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple
from functools import cache
from typing import Any

import numpy as np

from gviz.engine.op import REGISTRY, Op
from gviz.engine.ops.strided import Geometry
from gviz.events import OpSeen


def named(op: Op) -> tuple[str, str, str, tuple[str, ...]]:
    """What tells an op from all others: signature, ``grad_fn``, formula, and the optional tensors it is without."""
    return op.signature, op.grad_fn, op.formula, tuple(sorted(op.absent))


def operation(name: Any) -> Op:
    """The op of a name. ValueError if the engine has none."""
    signature, grad_fn, formula, absent = name
    found = _by_name().get((signature, grad_fn, formula)) or _by_name().get((signature, "", formula))
    if found is None:
        raise ValueError(f"this version of gviz has no operation {signature!r}")
    return without(found, absent)


def without(op: Op, absent: Iterable[str]) -> Op:
    """The variant of an op without some of its optional tensors. ValueError if they are not optional."""
    gone = frozenset(absent)
    if not gone <= op.optional:
        raise ValueError(f"{op.name} cannot be without {', '.join(sorted(gone - op.optional))}")
    return op.present([None if slot in gone else slot for slot in op.slots])[0] if gone else op


def operation_of(seen: OpSeen) -> tuple[Op, bool]:
    """The op that an event describes, and whether it wrote its result in place. ValueError if the engine has none."""
    for op in REGISTRY:
        writes = seen.name != op.name and seen.name == op.name.rstrip("_") + "_"
        if (seen.name != op.name and not writes) or (seen.grad_fn, seen.formula) != (op.grad_fn, op.formula):
            continue
        absent = [slot for slot in op.slots if slot not in seen.slots]
        if set(seen.slots) <= set(op.slots) and op.optional.issuperset(absent):
            return without(op, absent), writes
    raise ValueError(f"the engine cannot run {seen.name} ({seen.grad_fn or 'no grad_fn'}) from a recording")


def plain_attributes(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as numbers, text, and tuples of those. TypeError for one that cannot be so."""
    return {name: _plain(value) for name, value in attrs.items()}


def attributes_of(op: Op, plain: Any) -> dict[str, Any]:
    """Attributes again, also from an event. ValueError for names that are not the op's."""
    given = dict(plain)
    unknown = [name for name in given if name not in op.attrs]
    if unknown:
        raise ValueError(f"{op.name} has no argument {unknown[0]!r}")
    return {name: _restored(name, value) for name, value in given.items()}


@cache
def _by_name() -> dict[tuple[str, str, str], Op]:
    known = {(op.signature, "", op.formula): op for op in REGISTRY}
    return known | {(op.signature, op.grad_fn, op.formula): op for op in REGISTRY}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return tuple([_plain(item) for item in value])
    if isinstance(value, Geometry):
        return astuple(value)
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"an argument of type {type(value).__name__} cannot be kept in a file")


def _restored(name: str, value: Any) -> Any:
    if name == "geometry":
        base_shape, base_strides, shape, strides, offset = _tuples(value)
        return Geometry(base_shape, base_strides, shape, strides, int(offset))
    return _tuples(value)


def _tuples(value: Any) -> Any:
    return tuple([_tuples(item) for item in value]) if isinstance(value, (tuple, list)) else value
