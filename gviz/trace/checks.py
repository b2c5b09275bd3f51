"""Whether an event that came from a file is one that a program could have said."""

from __future__ import annotations

from math import prod

from gviz import events as e
from gviz.trace.codec import values
from gviz.values import ITEM_SIZES, Value

LARGEST_NUMBER = 1 << 32
_MOST_DIMENSIONS = 64


def check(event: e.Event) -> None:
    """Raises ValueError for numbers and shapes that no recording can contain."""
    for value in values(event):
        check_value(value)
    match event:
        case e.NodeCreated():
            _numbers(event.op, event.stack, event.scope, *event.during)
            for edge in event.inputs:
                _numbers(*edge)
            for output in event.outputs:
                _numbers(output.storage, output.view_of, output.offset, output.version)
        case e.StorageWritten(storage=storage):
            _numbers(storage)
        case e.BackwardStarted(roots=roots, inputs=inputs):
            for edge in (*roots, *inputs):
                _numbers(*edge)
        case e.OptimizerStepped(parameters=parameters):
            _numbers(*parameters)
        case e.ScopeEntered(scope=scope) | e.ScopeLeft(scope=scope):
            _numbers(scope)
        case e.GradFlowed(source=source, slot=slot):
            _numbers(source, slot)


def check_value(value: Value) -> None:
    """Raises ValueError if the elements do not fit the shape, or the shape nothing at all."""
    if len(value.shape) > _MOST_DIMENSIONS or any(n < 0 for n in value.shape):
        raise ValueError(f"the shape {str(value.shape)[:60]} is impossible")
    if value.data is not None and prod(value.shape) * ITEM_SIZES.get(value.dtype, -1) != len(value.data):
        raise ValueError(f"{len(value.data)} bytes do not make an array of shape {str(value.shape)[:60]}")


def _numbers(*numbers: int) -> None:
    for number in numbers:
        if not 0 <= number < LARGEST_NUMBER:
            raise ValueError(f"the number {number} is impossible")
