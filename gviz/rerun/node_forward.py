"""The forward of a recorded node as a function that can be called again.

There are three cases. An operation of the engine is run from its event. An operation of another framework is run as the
engine's operation of the same name, if that gives the recorded result. A function of the program is run as the
operations that its forward recorded (`gviz.rerun.custom_function_forward`). Calls of several operations, such as
``matmul``, and conversions, such as ``long()``, are run by their name (`run_by_name`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import msgspec
import numpy as np

from gviz import emit, engine
from gviz.engine import einsum, float64, full
from gviz.engine.autograd import grad
from gviz.engine.jit.tensor_interpreter import run_op
from gviz.engine.modes import enable_grad, no_grad
from gviz.engine.nn import functional
from gviz.engine.op import REQUIRED, Op
from gviz.engine.operation_lookup import GEOMETRY, VIEW, attributes_of, effect_of, recorded_operation
from gviz.engine.ops.strided import Geometry, read_part
from gviz.engine.tensor import Tensor, new_tensor
from gviz.errors import GvizError
from gviz.events import NodeCreated, OpSeen, Output
from gviz.rerun.change_parser import Changes
from gviz.rerun.custom_function_forward import FunctionBody, Use, refusal, repeated_inputs
from gviz.rerun.inputs import input_array, inputs_of, stored_array
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.value import Array, Value

T = TypeVar("T")
Run = Callable[[Sequence[Tensor]], Sequence[Tensor]]

ENGINE = "gviz.engine"
"""The framework of recordings made with the engine itself."""


@dataclass(frozen=True, slots=True)
class Forward:
    """A function from tensors, in place of the recorded inputs, to outputs; it runs this many `operations`.

    It returns the outputs with the numbers in `outputs`, all if None. If one tensor was given for several inputs, it is
    unknown which of them an operation in a function used: `otherwise` has the alternatives.
    """

    run: Run
    operations: int = 1
    outputs: tuple[int, ...] | None = None
    otherwise: tuple[Run, ...] = ()

    def each(self) -> Iterator[Forward]:
        """Yield itself and the alternatives."""
        yield from (replace(self, run=run) for run in (self.run, *self.otherwise))

    def of_outputs(self, each: Sequence[T]) -> list[T]:
        """Return the outputs it computes, from one item per output of the node."""
        return list(each) if self.outputs is None else [each[nr] for nr in self.outputs]

    def __call__(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return the outputs. Raises one of `FAILURES`."""
        return self.run(tensors)


def forward_of(timeline: Timeline, info: NodeInfo) -> Forward:
    """Return what a node computed. Raises GvizError if that cannot be run on its own."""
    operation = _engine_operation(timeline, info)
    forward = _function_forward(timeline, info) if operation is None else _operation_forward(info, *operation)
    if operation is None or timeline.framework != ENGINE:
        arrays = inputs_of(timeline, info)
        _require_recorded_result(timeline, info, forward, forward.of_outputs(info.created.outputs), arrays)
    return forward


def operation_of(timeline: Timeline, info: NodeInfo) -> tuple[Op, NodeCreated] | None:
    """Return the engine's operation that a node ran, and its event; None if it cannot be run on its own."""
    operation = _engine_operation(timeline, info)
    if operation is not None and timeline.framework != ENGINE:
        arrays = inputs_of(timeline, info)
        _require_recorded_result(timeline, info, _operation_forward(info, *operation), info.created.outputs, arrays)
    return operation


def _operation_forward(info: NodeInfo, op: Op, created: NodeCreated) -> Forward:
    return Forward(lambda tensors: run_operation(op, info.op, created, tensors))


def _function_forward(timeline: Timeline, info: NodeInfo) -> Forward:
    body = FunctionBody(timeline, info)
    runs = [(step, _unchecked_run(timeline, step)) for step in body.steps]
    first, *others = [partial(_run_function, body, info, runs, choice) for choice in body.choices]
    return Forward(first, len(runs), tuple(body.ends), tuple(others))


def _run_function(
    body: FunctionBody,
    info: NodeInfo,
    runs: Sequence[tuple[NodeInfo, Run]],
    choice: Mapping[Use, int],
    tensors: Sequence[Tensor],
) -> list[Tensor]:
    """Return the outputs of a function that ran these operations, with its inputs resolved as in `choice`."""
    known = dict(zip(info.created.inputs, tensors, strict=True))
    for step, run in runs:
        edges = step.created.inputs
        for edge in edges:
            if edge not in known:
                known[edge] = body.constant(edge)
        meant = (choice.get((step.node, position)) for position in range(len(edges)))
        inputs = [known[edge] if slot is None else tensors[slot] for edge, slot in zip(edges, meant, strict=True)]
        for output_nr, output in enumerate(run(inputs)):
            known[step.node, output_nr] = output
    return [known[end] for end in body.ends.values()]


def _engine_operation(timeline: Timeline, info: NodeInfo) -> tuple[Op, NodeCreated] | None:
    """Return the engine's operation with a node's name, and its event; in another framework it may mean
    something else.
    """
    attrs = dict(info.created.attrs)
    if VIEW in attrs or is_regenerated(info.created):
        return None
    if timeline.framework != ENGINE:
        return _in_engine_terms(info)
    op = recorded_operation(info.op, attrs)
    return None if op is None else (op, info.created)


def _unchecked_run(timeline: Timeline, info: NodeInfo) -> Run:
    """Return how to run an operation whose result the caller checks, or that of the function around it."""
    run = run_by_name(info.op.name, info.created)
    if run is not None:
        return run
    operation = _engine_operation(timeline, info)
    if operation is None:
        raise refusal(info, f"it runs {info.op.name}, which cannot be run by itself")
    return _operation_forward(info, *operation).run


def runs_of(timeline: Timeline, infos: Sequence[NodeInfo]) -> dict[int, Run]:
    """Return how to run each of some operations by itself, unchecked. Raises GvizError if one cannot be run."""
    return {info.node: _unchecked_run(timeline, info) for info in infos}


# A recorded operation of the engine

FAILURES = (ArithmeticError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)
"""The exceptions that operations raise."""


def run_operation(op: Op, seen: OpSeen, created: NodeCreated, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Run an operation on other tensors and return its outputs, or the tensor it wrote to. Raises one of `FAILURES`."""
    effect, attrs = effect_of(op, seen), attributes_of(op, created.attrs)
    with no_grad() if created.switched_off else enable_grad():
        outputs = run_op(op, effect, tensors, attrs)
    if effect == "write" and not created.untracked and outputs[0]._base is not None:
        return [outputs[0]._base]
    return list(outputs)


def with_changed_results(op: Op, changes: Mapping[int, Changes]) -> Op:
    """Return the op with changed results, by output number; even its own backward rules see only these."""
    variant = copy(op)

    def forward(*arrays: Array, **attrs: Any) -> Any:
        result = op.forward(*arrays, **attrs)
        if op.has_several_outputs:
            return [changes[nr].applied(each) if nr in changes else each for nr, each in enumerate(result)]
        return changes[0].applied(np.asarray(result))

    variant.forward = forward
    return variant


def is_regenerated(created: NodeCreated) -> bool:
    """Return whether this is not an operation of the program: a view was updated after a write to its base."""
    return any(name == GEOMETRY for name, _ in created.attrs) and any(output.view_of for output in created.outputs)


def is_view(tensor: Tensor, base: Tensor, created: NodeCreated) -> bool:
    """Return whether a tensor is the same view of `base` as the recorded node."""
    if tensor._base is not base:
        return False
    recorded: Geometry = attributes_of(read_part, created.attrs)[GEOMETRY]
    return Geometry.of(base._array, tensor._array) == recorded


# An operation of another framework, as one of the engine

_CLOSE, _CLOSE_IN_HALF = 1e-3, 2e-2
"""The tolerance for the recorded result, relative to its largest element; it depends on the program's dtype."""


def _in_engine_terms(info: NodeInfo) -> tuple[Op, NodeCreated] | None:
    """Return the engine's operation of the same name, and its event with the attributes that it takes.

    None if the engine has none with this name, formula and backward node. It may still give another result if its
    arguments have another meaning; `_require_recorded_result` refuses that.
    """
    op = recorded_operation(info.op, ())
    if op is None:
        return None
    return op, msgspec.structs.replace(info.created, attrs=tuple(_attributes(op, info.created).items()))


_DEFAULTS = {
    "descending": False, "stable": False, "largest": True, "sorted": True, "scales": None, "align_corners": False,
    "keepdim": False, "correction": 1, "scale": None,
}  # fmt: skip
"""What PyTorch takes for arguments that a call leaves out; the engine's operations require some of them."""

_REDUCTIONS = ("mean", "sum", "nansum", "var", "std", "var_mean", "std_mean", "amax", "amin", "logsumexp", "norm")
_SEVERAL = {**dict.fromkeys(_REDUCTIONS, ("dim",)), "roll": ("shifts", "dims"), "flip": ("dims",)}
"""By operation the arguments that are tuples; a call may give one number for them."""


def _attributes(op: Op, created: NodeCreated) -> dict[str, Any]:
    """Return the arguments that the engine's operation takes; an omitted shape is that of the result."""
    attributes = {name: _DEFAULTS.get(name, REQUIRED) if it is REQUIRED else it for name, it in op.attrs.items()}
    attributes = {name: default for name, default in attributes.items() if default is not REQUIRED}
    attributes |= {name: value for name, value in created.attrs if name in op.attrs and value is not None}
    for name in _SEVERAL.get(op.name, ()):
        if type(attributes.get(name)) is int:
            attributes[name] = (attributes[name],)
    value = created.outputs[0].value
    if "size" in op.attrs and value is not None:
        attributes["size"] = list(value.shape)
    return attributes


def _require_recorded_result(
    timeline: Timeline,
    info: NodeInfo,
    run: Callable[[list[Tensor]], Sequence[Tensor]],
    outputs: Sequence[Output],
    arrays: Sequence[Array],
) -> None:
    """Raise GvizError if a rerun in the engine on its inputs, `arrays`, does not give the recorded `outputs`."""
    tensors = [new_tensor(np.array(array)) for array in arrays]
    try:
        with emit.silence():
            again = [tensor._array for tensor in run(tensors)]
    except FAILURES as error:
        raise _refusal_of_result(info, f"the engine refuses it: {error}") from None
    values = [
        output.value if output.value is not None and (output.value.is_known or not nr) else None
        for nr, output in enumerate(outputs)
    ]
    three = [
        (value, stored_array(timeline, info.node, "result", value), array)
        for value, array in zip(values, again, strict=False)
        if value is not None
    ]
    if not three or not all(one.shape == other.shape and _close(value, one, other) for value, one, other in three):
        raise _refusal_of_result(info, "run by the engine on what was recorded it gives another result")


def _close(value: Value, recorded: Array, again: Array) -> bool:
    size = float(np.abs(recorded).max(initial=0.0, where=np.isfinite(recorded)))
    close = _CLOSE_IN_HALF if value.dtype in ("float16", "bfloat16") else _CLOSE
    return bool(np.allclose(recorded, again, rtol=close, atol=close * size, equal_nan=True))


def _refusal_of_result(info: NodeInfo, why: str) -> GvizError:
    return GvizError(f"{info.op.name} of #{info.node} cannot be run on its own", why=why, exit_code=2)


# The backward rule of a node on other gradients than the recorded ones


def vector_jacobian_products(
    timeline: Timeline, info: NodeInfo, arriving: Sequence[Mapping[int, Array]]
) -> list[dict[int, Array]]:
    """Return, for each set of incoming gradients by output, the outgoing gradients by input slot, in float64.

    Raises GvizError for an operation that cannot be run on its own, or whose numbers were not stored.
    """
    forward, arrays = _forward_and_inputs(timeline, info)
    if repeated_inputs(info):
        raise refusal(info, "it was given one tensor twice, and which of them its forward used is not recorded")
    with emit.silence(), enable_grad():
        leaves = [_leaf(array) for array in arrays]
        try:
            gave = forward([leaf.clone() for leaf in leaves])
            outputs = dict(zip(range(len(gave)) if forward.outputs is None else forward.outputs, gave, strict=True))
            return [_gradients(outputs, leaves, grads) for grads in arriving]
        except FAILURES as error:
            raise GvizError(f"{info.op.name} cannot be run on its own", why=str(error), exit_code=2) from None


def result_again(timeline: Timeline, info: NodeInfo, arrays: Sequence[Array] | None = None) -> Array | None:
    """Return the first result of a node, run again on its recorded inputs, or on `arrays`; None if that is impossible.

    The caller compares it with what is known of the recorded result.
    """
    try:
        inputs = inputs_of(timeline, info) if arrays is None else arrays
        run = _unchecked_run(timeline, info)
        with emit.silence():
            return run([new_tensor(np.array(array)) for array in inputs])[0]._array
    except (GvizError, *FAILURES):
        return None


def _forward_and_inputs(timeline: Timeline, info: NodeInfo) -> tuple[Forward, list[Array]]:
    """Return a node's forward and its inputs; those that its framework made inside of a call are computed anew.

    What is computed so, or gives a result that no event has, is not compared with the recording: the caller compares
    what follows from it.
    """
    missing = [slot for slot in range(len(info.created.inputs)) if _is_inside(timeline, *info.created.inputs[slot])]
    known = any(not _is_inside(timeline, info.node, nr) for nr in range(len(info.created.outputs)))
    if known and not missing and timeline.framework != ENGINE and info.op.name in _POOLINGS:
        info = replace(info, created=msgspec.structs.replace(info.created, attrs=_of_windows(info)))
    if known and not missing:
        return forward_of(timeline, info), inputs_of(timeline, info)
    arrays = [_known_or_computed(timeline, info, slot, _MOST_INSIDE) for slot in range(len(info.created.inputs))]
    operation = _engine_operation(timeline, info)
    if operation is None:
        run = run_by_name(info.op.name, info.created)
        if run is None:
            raise refusal(info, f"it runs {info.op.name}, which cannot be run alone")
        return Forward(run), arrays
    forward = _operation_forward(info, *operation)
    if known:
        _require_recorded_result(timeline, info, forward, info.created.outputs, arrays)
    return forward, arrays


_POOLINGS = ("max_pool2d_with_indices", "max_pool3d_with_indices")
_WINDOWS = {"padding": 0, "dilation": 1}


def _of_windows(info: NodeInfo) -> tuple[tuple[str, Any], ...]:
    """Return the arguments of a pooling of PyTorch with those that its call left out, one number for each dimension.

    Finite differences do not run it: after a relu, equal maxima have no slope.
    """
    attributes = {name: value for name, value in info.created.attrs if value not in (None, [], ())}
    dims = int(info.op.name[len("max_pool")])
    windows = {"stride": attributes["kernel_size"], "ceil_mode": False, **_WINDOWS, **attributes}
    return tuple((name, (value,) * dims if type(value) is int else value) for name, value in windows.items())


_MOST_INSIDE = 40
"""The most operations inside of one call, one after the other, that are computed anew."""


def _is_inside(timeline: Timeline, node: int, output_nr: int) -> bool:
    """Whether an output has no recorded value, as its framework made it inside of a call."""
    if not node:
        return False
    value = timeline.info(node).created.outputs[output_nr].value
    return value is not None and not value.is_known


def _known_or_computed(timeline: Timeline, info: NodeInfo, slot: int, depth: int) -> Array:
    node, output_nr = info.created.inputs[slot]
    if not _is_inside(timeline, node, output_nr) or not depth:
        return input_array(timeline, info, slot)
    source = timeline.info(node)
    arrays = [_known_or_computed(timeline, source, nr, depth - 1) for nr in range(len(source.created.inputs))]
    run = _unchecked_run(timeline, source)
    try:
        return np.array(run([new_tensor(np.array(array)) for array in arrays])[output_nr]._array)
    except FAILURES as error:
        raise _refusal_of_result(source, f"the engine refuses it: {error}") from None


def _leaf(array: Array) -> Tensor:
    tensor = new_tensor(np.array(array))
    return tensor.requires_grad_() if array.dtype.kind == "f" else tensor


def _gradients(outputs: Mapping[int, Tensor], leaves: Sequence[Tensor], grads: Mapping[int, Array]) -> dict[int, Array]:
    """Return what the rule sends to every input that a gradient can reach."""
    arrived = {nr: array for nr, array in grads.items() if nr in outputs and outputs[nr].requires_grad}
    slots = [slot for slot, leaf in enumerate(leaves) if leaf.requires_grad]
    if not arrived or not slots:
        return {}
    sent = grad(
        [outputs[nr] for nr in arrived],
        [leaves[slot] for slot in slots],
        [new_tensor(array.reshape(outputs[nr]._array.shape)) for nr, array in arrived.items()],
        retain_graph=True,
        allow_unused=True,
    )
    return {slot: one._array for slot, one in zip(slots, sent, strict=True) if one is not None}


# Calls that are no operation of the engine, by their name. It does not determine what a call did, so the callers
# compare the result with the recording.

_CASTS = {
    "float", "double", "half", "bfloat16", "to", "type", "type_as", "long", "int", "short", "char", "byte", "bool",
}  # fmt: skip
_METHODS = {
    "matmul": "matmul", "view_as": "view_as", "expand_as": "expand_as", "reshape_as": "reshape_as", "norm": "norm",
    "reshape": "reshape", "flatten": "flatten", "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or", "std": "std",
    "var": "var", "square": "square", "true_divide": "true_divide", "logical_and": "logical_and",
    "outer": "outer", "topk": "topk", "sort": "sort", "roll": "roll", "unfold": "unfold",
}  # fmt: skip
_MAKERS = {"zeros_like": 0.0, "ones_like": 1.0}
_FUNCTIONS = {
    "linear", "layer_norm", "normalize", "silu", "relu6", "hardtanh", "one_hot", "logsigmoid", "conv1d", "conv2d",
    "pad", "conv_transpose2d", "max_pool2d", "avg_pool2d", "cross_entropy", "group_norm", "batch_norm",
}  # fmt: skip


def run_by_name(name: str, created: NodeCreated) -> Run | None:
    """Return a function that runs the call of a node on given tensors; None if the call is not known."""
    attrs = {key: value for key, value in created.attrs if value is not None}
    if name in _CASTS:
        return _cast(created)
    if name in _MAKERS and _gives_fractions(created):
        return lambda tensors: [full(tensors[0].shape, _MAKERS[name], dtype=float64)]
    if name == "getitem" and not attrs and len(created.inputs) > 1:
        return lambda tensors: [tensors[0][tuple(tensors[1:])]]
    if name == "getitem" and set(attrs) == {"key"} and len(created.inputs) == 1:
        return lambda tensors: [tensors[0][_index(attrs["key"])]]
    if name.rstrip("_") == "setitem" and set(attrs) == {"key"} and len(created.inputs) == 2:
        return lambda tensors: [_written(tensors[0], _index(attrs["key"]), tensors[1])]
    if name == "reshape" and set(attrs) == {"shape"}:
        shape = attrs["shape"]
        return lambda tensors: [tensors[0].reshape((shape,) if isinstance(shape, int) else tuple(shape))]
    if name == "einsum":
        return lambda tensors: [einsum(*attrs.values(), *tensors)]
    if name in _METHODS:
        return lambda tensors: _listed(getattr(tensors[0], _METHODS[name])(*tensors[1:], **attrs))
    if name in _FUNCTIONS:
        return lambda tensors: _listed(getattr(functional, name)(*tensors, **attrs))
    return None


def _listed(result: Any) -> list[Tensor]:
    return [result] if isinstance(result, Tensor) else list(result)


def _cast(created: NodeCreated) -> Run | None:
    """Return a cast to the dtype of the result; None if it is unknown, or the engine lacks it."""
    if _gives_fractions(created):
        return lambda tensors: [tensors[0] if tensors[0].is_floating_point() else tensors[0].double()]
    dtype = getattr(engine, _dtype(created), None)
    return None if dtype is None else lambda tensors: [tensors[0].to(dtype)]


def _gives_fractions(created: NodeCreated) -> bool:
    """Return whether a call returned floats; these are computed in float64, whatever dtype the program used."""
    return "float" in _dtype(created)


def _dtype(created: NodeCreated) -> str:
    """Return the dtype that a call returned; empty if unknown."""
    value = created.outputs[0].value if created.outputs else None
    return "" if value is None else value.dtype


def _index(key: Any) -> Any:
    """Return an index from its recorded form."""
    if key == "Ellipsis":
        return ...
    if not isinstance(key, list | tuple):
        return key
    return slice(*key[1:]) if key and key[0] == "slice" else tuple(map(_index, key))


def _written(tensor: Tensor, index: Any, value: Tensor) -> Tensor:
    tensor[index] = value
    return tensor
