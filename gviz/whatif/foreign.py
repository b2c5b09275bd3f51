"""What another framework ran, as an operation of the engine: taken for it only if it gives what was recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from gviz import emit
from gviz.engine.identify import recorded_operation
from gviz.engine.op import REQUIRED, Op
from gviz.engine.tensor import Tensor, new_tensor
from gviz.errors import GvizError
from gviz.events import NodeCreated, Output
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values import Array, Value
from gviz.whatif import operations
from gviz.whatif.inputs import inputs_of, stored

_CLOSE, _CLOSE_IN_HALF = 1e-3, 2e-2
"""How close to the recorded result, in parts of its largest element: it was computed in the program's dtype."""


def in_engine_terms(info: NodeInfo) -> tuple[Op, NodeCreated] | None:
    """The engine's operation of the same name, and its event with the attributes that it takes.

    None if the engine has none of this name, formula and backward node. It may still give another result, where its
    arguments mean something else: `require_the_recorded` refuses that.
    """
    op = recorded_operation(info.op, ())
    if op is None:
        return None
    return op, msgspec.structs.replace(info.created, attrs=tuple(_attributes(op, info.created).items()))


def _attributes(op: Op, created: NodeCreated) -> dict[str, Any]:
    """The arguments that the engine's operation has as well; a shape that was left out is that of the result."""
    given = {name: default for name, default in op.attrs.items() if default is not REQUIRED}
    given |= {name: value for name, value in created.attrs if name in op.attrs and value is not None}
    value = created.outputs[0].value
    if "size" in op.attrs and value is not None:
        given["size"] = list(value.shape)
    return given


def require_the_recorded(
    timeline: Timeline, info: NodeInfo, run: Callable[[list[Tensor]], Sequence[Tensor]], outputs: Sequence[Output]
) -> None:
    """Raise GvizError if what runs a node in the engine gives others than its recorded `outputs`."""
    tensors = [new_tensor(np.array(array)) for array in inputs_of(timeline, info)]
    try:
        with emit.silence():
            again = [tensor._array for tensor in run(tensors)]
    except operations.FAILURES as error:
        raise _refusal(info, f"the engine refuses it: {error}") from None
    values = [output.value for output in outputs if output.value is not None]
    recorded = [stored(timeline, info.node, "result", value) for value in values]
    three = list(zip(values, recorded, again, strict=False))
    if not three or not all(one.shape == other.shape and _close(value, one, other) for value, one, other in three):
        raise _refusal(info, "run by the engine on what was recorded it gives another result")


def _close(value: Value, recorded: Array, again: Array) -> bool:
    size = float(np.abs(recorded).max(initial=0.0, where=np.isfinite(recorded)))
    close = _CLOSE_IN_HALF if value.dtype in ("float16", "bfloat16") else _CLOSE
    return bool(np.allclose(recorded, again, rtol=close, atol=close * size, equal_nan=True))


def _refusal(info: NodeInfo, why: str) -> GvizError:
    return GvizError(f"{info.op.name} of #{info.node} cannot be run on its own", why=why, exit_code=2)
