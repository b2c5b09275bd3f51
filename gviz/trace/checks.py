"""Whether an event that came from a file is one that a program could have said."""

from __future__ import annotations

from itertools import chain
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
            _numbers(*chain.from_iterable(event.inputs))
            for output in event.outputs:
                _numbers(output.storage, output.view_of, output.offset, output.version)
        case e.StorageWritten(storage=storage):
            _numbers(storage)
        case e.BackwardStarted(roots=roots, inputs=inputs):
            _numbers(*chain.from_iterable((*roots, *inputs)))
        case e.OptimizerStepped(parameters=parameters):
            _numbers(*parameters)
        case e.ScopeEntered(scope=scope) | e.ScopeLeft(scope=scope):
            _numbers(scope)


def check_value(value: Value) -> None:
    """Raises ValueError if the elements do not fit the shape, or the shape nothing at all."""
    shape, data = value.shape, value.data
    if shape and (len(shape) > _MOST_DIMENSIONS or min(shape) < 0):
        raise ValueError(f"the shape {str(shape)[:60]} is impossible")
    if data is not None and prod(shape) * ITEM_SIZES.get(value.dtype, -1) != len(data):
        raise ValueError(f"{len(data)} bytes do not make an array of shape {str(shape)[:60]}")


def _numbers(*numbers: int) -> None:
    if numbers and not 0 <= min(numbers) <= max(numbers) < LARGEST_NUMBER:
        raise ValueError(f"the numbers {numbers} are impossible")
