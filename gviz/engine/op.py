"""How an operation is declared, once, with its forward and its gradient rules, and how it runs. For example:
    mul = Op(
        "mul(self, other)",
        grad_fn="MulBackward0",
        formula="self * other",
        forward=np.multiply,
        rules=(
            Rule("self", "g * other", lambda g, other: g * other),
            Rule("other", "g * self", lambda g, self: g * self),
        ),
    )

In the signature the tensor arguments (*slots*) come before the star, the other arguments (*attributes*) after it. A
slot written ``weight?`` may be None: then a variant of the op without this slot runs, and its forward and rules receive
None.

A rule is the vector-Jacobian product for one slot. It is written once and works on arrays (an ordinary pass) and
tensors (``create_graph``): operators accept both, and calling an `Op` runs plain NumPy on arrays and a tracked
operation on tensors. The first parameter of a rule is the incoming gradient (`g`, or a list `grads` if the op has
several outputs). The names of the others define what they receive:

- the name of a slot, of an output (``result``) or of an attribute: that value
- ``<slot>_sym_sizes``: the shape of a slot
- ``sizes``: the shapes of all tensors of an op that takes a list

A node saves the tensors that its rules name. It does not save an input that only one rule names if no gradient is
needed for that rule's slot. The engine reduces broadcast gradients, sums contributions, checks shapes and dtypes and
emits events; rules never do.
"""

from __future__ import annotations

import inspect
from ast import literal_eval
from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np

from gviz import emit
from gviz.emit import Channel
from gviz.engine import dtypes, instrumentation, messages, operation_watchers
from gviz.engine.broadcasting import broadcast_error
from gviz.engine.memory_format import laid_out, zeros_like
from gviz.engine.modes import is_entered, thread
from gviz.engine.node import (
    NOT_SAVED,
    Edge,
    Grad,
    Node,
    next_sequence_nr,
    pack_saved_tensors,
    raw_saved_tensor,
    saved_attribute,
    saved_tensor,
)
from gviz.engine.return_types import results_type
from gviz.engine.tensor import UNCOUNTED, Tensor, new_tensor
from gviz.events import OpSeen, Reading
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# The vector-Jacobian products of an operation, and their preparation for calls.


SIZES = "_sym_sizes"
"""The suffix of a rule's parameter that requests the shape of an input."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The gradient of one input: `text` for readers, `vjp` for both kinds of pass.

    In `text`, `g` is the incoming gradient and every other name is an input, an output or an attribute. ``number of
    elements``, ``size of dim``, ``number of targets`` and ``number of classes`` are placeholders: the reader sees the
    number itself.

    A *joint* rule computes the gradients of several inputs together. Its `slot` names them all (``"input, weight"``),
    `text` has a part for each (``"...; ..."``), and `vjp` returns a tuple in this order.
    """

    slot: str
    text: str
    vjp: Callable[..., Any]

    @property
    def slots(self) -> tuple[str, ...]:
        """The inputs that the rule is for."""
        return tuple(self.slot.split(", "))

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters of `vjp` after the incoming gradient."""
        signature = getattr(self.vjp, "__signature__", None)
        if signature is not None:
            return tuple(signature.parameters)[1:]
        code = self.vjp.__code__  # faster than inspect.signature: there are hundreds of rules
        return code.co_varnames[1 : code.co_argcount]


@dataclass(frozen=True, slots=True)
class Example:
    """Example arguments for an op: arrays for its tensors, and its attributes."""

    tensors: tuple[Any, ...]
    attrs: Attrs


class RuleCall:
    """A rule whose parameters are matched to saved tensors and attributes.

    A joint rule is called once each time its node runs in a pass.
    """

    __slots__ = ("attrs", "is_joint", "names", "needs", "pick", "texts", "vjp")

    def __init__(self, rule: Rule, saved_names: tuple[str, ...]) -> None:
        self.names = names = rule.names
        self.vjp = rule.vjp
        self.is_joint = len(rule.slots) > 1
        texts = rule.text.split("; ") if self.is_joint else [rule.text]
        self.texts = dict(zip(rule.slots, texts, strict=True))
        self.needs = frozenset(name for name in names if name in saved_names)
        self.attrs = tuple(name for name in names if name not in saved_names)
        self.pick = picker([saved_names.index(name) for name in names if name in saved_names])

    def __call__(self, g: Any, saved: Sequence[Any], attrs: Attrs) -> Any:
        return self.vjp(g, *self.pick(saved), **{name: attrs[name] for name in self.attrs})


def picker(positions: list[int]) -> Callable[[Sequence[Any]], Any]:
    """A getter of these positions that always returns a tuple, so that every rule is called in the same way."""
    if len(positions) > 1:
        return itemgetter(*positions)
    return itemgetter(slice(positions[0], positions[0] + 1) if positions else slice(0))


# ----------------------------------------------------------------------------------------------------------------------
# Variants of an operation without some of its optional tensors.


def rules_without(rules: tuple[Rule, ...], absent: frozenset[str]) -> tuple[Rule, ...]:
    """The rules of the remaining inputs, with None for parameters of absent ones.

    A joint rule is kept if one of its inputs remains.
    """
    absent_parameters = absent | {slot + SIZES for slot in absent}
    remaining = [rule for rule in rules if not absent.issuperset(rule.slots)]
    return tuple([Rule(rule.slot, rule.text, _with_none(rule.vjp, absent_parameters)) for rule in remaining])


def forward_without(forward: Callable[..., Any], slots: tuple[str, ...], absent: frozenset[str]) -> Callable[..., Any]:
    """The forward function that takes only the arrays of the remaining `slots`."""

    def variant(*arrays: Any, **attrs: Any) -> Any:
        remaining = iter(arrays)
        return forward(*[None if slot in absent else next(remaining) for slot in slots], **attrs)

    return variant


def _with_none(vjp: Callable[..., Any], absent: frozenset[str]) -> Callable[..., Any]:
    parameters = inspect.signature(vjp).parameters
    if absent.isdisjoint(parameters):
        return vjp
    names = [name for name in parameters if name not in absent]

    def variant(*args: Any, **attrs: Any) -> Any:
        arguments = dict(zip(names, args, strict=False)) | attrs
        return vjp(*[arguments.get(name) for name in parameters])

    variant.__signature__ = inspect.Signature([parameters[name] for name in names])  # type: ignore[attr-defined]
    return variant


# ----------------------------------------------------------------------------------------------------------------------
# How the rules of an op run when a node runs in a pass.
#
# Most ops have one output, and each of their rules belongs to one input. For these ops a function that calls each rule
# directly with its arguments is generated (as ``dataclasses`` generates ``__init__``) when a node of the op first runs.
# The inner function calls of a general implementation would take longer than the arithmetic on a scalar.


Vjp = Callable[["OpNode", Sequence[Grad | None], bool], Sequence[Grad | None]]
"""A node class's `vjp`: gradients of the inputs from those of the outputs, None for inputs without an edge."""

_VJP_TEMPLATE = """
def vjp(node, grads, create_graph):
    g = grads[0]
    {saved}
    if g is None:
        return [None] * {slots}
    edges = node.next_edges
    return [{expressions}]
"""
_SAVED = "saved = node.saved_tensors() if create_graph else node.saved_arrays()"


def vjp_of(op: Op) -> Vjp:
    """The function that runs the op's rules for the inputs that a node has edges for."""
    if op.has_several_outputs or op.takes_list or any(call is not None and call.is_joint for call in op.calls):
        return lambda node, grads, create_graph: _run_rules(op, node, grads, create_graph)

    def generate_and_run(node: OpNode, grads: Sequence[Grad | None], create_graph: bool) -> Sequence[Grad | None]:
        vjp = _generate_vjp(op)
        op.node_class.vjp = vjp  # type: ignore[assignment]  # on first use: a program uses few of the ops
        return vjp(node, grads, create_graph)

    return generate_and_run


def _generate_vjp(op: Op) -> Vjp:
    """Generate and compile the function for an op whose rules each return one gradient."""
    rules = {f"rule_{slot}": call.vjp for slot, call in enumerate(op.calls) if call is not None}
    expressions = [_gradient_expression(slot, call, op.saved_names) for slot, call in enumerate(op.calls)]
    saved = _SAVED if op.saved_names else ""
    text = _VJP_TEMPLATE.format(slots=len(expressions), saved=saved, expressions=", ".join(expressions))
    names: dict[str, Any] = dict(rules)
    file = f"{__file__}:{op.name}"  # a path in the engine, but no such file exists: a traceback shows no source line
    exec(compile(text, file, "exec"), names)  # safe: the text has only numbers and names from declarations
    vjp: Vjp = names["vjp"]
    return vjp


def _gradient_expression(slot: int, call: RuleCall | None, saved_names: Sequence[str]) -> str:
    """Return the gradient of one slot as an expression."""
    if call is None:
        return "None"
    arguments = [f"saved[{saved_names.index(n)}]" if n in saved_names else f"node.attrs[{n!r}]" for n in call.names]
    return f"None if edges[{slot}] is None else rule_{slot}({', '.join(['g', *arguments])})"


def _run_rules(op: Op, node: OpNode, grads: Sequence[Grad | None], create_graph: bool) -> Sequence[Grad | None]:
    """Run the rules of an op that has several outputs, takes a list or has joint rules."""
    saved: Sequence[Any] = node.saved_tensors() if create_graph else node.saved_arrays()
    g: Any = grads[0]
    if all(grad is None for grad in grads):
        return [None] * len(node.next_edges)
    if op.has_several_outputs:
        g = _fill_with_zeros(node, grads, create_graph)
        if op.differentiable_outputs == 1:
            g = g[0]
    if op.takes_list:
        (call,) = op.calls
        return list(call(g, saved, node.attrs)) if call else []
    joint: dict[RuleCall, dict[str, Grad | None]] = {}
    outgoing: list[Grad | None] = []
    for slot, edge, call in zip(op.slots, node.next_edges, op.calls, strict=True):
        if edge is None or call is None:
            outgoing.append(None)
        elif not call.is_joint:
            outgoing.append(call(g, saved, node.attrs))
        else:
            if call not in joint:
                joint[call] = dict(zip(call.texts, call(g, saved, node.attrs), strict=True))
            outgoing.append(joint[call][slot])
    return outgoing


def _fill_with_zeros(node: OpNode, grads: Sequence[Grad | None], create_graph: bool) -> list[Grad]:
    """Return the gradients of several outputs, with zeros where none arrived."""
    full = []
    for g, (shape, dtype) in zip(grads, node.outputs, strict=True):
        if g is None:
            g = np.zeros(shape, dtype)
            g = new_tensor(g) if create_graph else g
        full.append(g)
    return full


# ----------------------------------------------------------------------------------------------------------------------
# How an operation runs: forward on arrays, a node if a gradient may be needed, an event during a recording.


Attrs = dict[str, Any]
Memory = Literal["new", "view", "alias", "data"]
"""Whose memory an output has, see `Op`."""
Overlap = Literal["elementwise", "apart", "indexed", "masked", "once", "free"]
"""Which memory may overlap in a write, see `views.check_overlap`."""

NO_ATTRS: Attrs = {}


def apply(op: Op, tensors: Sequence[Tensor], attrs: Attrs = NO_ATTRS) -> Any:
    """Runs `op`, makes its node if a gradient may be needed, and emits its event.

    Returns a tensor. For an op with several outputs, returns a tuple made by its `returns`.
    """
    if op.is_plain and not operation_watchers.watchers:
        output = _apply_plain(op, tensors)
        channel = emit.channel
        if channel is not None:
            _announce(channel, op, tensors, NO_ATTRS, [output], output._grad_fn)
        return output
    result = compute(op, tensors, attrs)
    if op.has_several_outputs:
        outputs = [new_tensor(np.asarray(array)) for array in result]
    else:
        outputs = [new_tensor(result if result.__class__ is np.ndarray else np.asarray(result))]
    if op.memory != "new":
        _share_memory(op, tensors[0], outputs)
    node = _make_node(op, tensors, attrs, outputs) if thread.grad_enabled and not op.untracked else None
    channel = emit.channel
    if channel is not None:
        _announce(channel, op, tensors, attrs, outputs, node)
    if operation_watchers.watchers:
        _notify_watchers(op, tensors, attrs, outputs, node)
    return op.returns(outputs) if op.has_several_outputs else outputs[0]


def only_inference_tensors(op: Op, tensors: Sequence[Tensor]) -> bool:
    """Whether all operands are inference tensors. Autograd does not track such an operation, even if one requires grad.

    A Python number does not count, except in the operations in which PyTorch turns it into a normal tensor.
    """
    numbers_count = op.name in _OPS_THAT_WRAP_NUMBERS
    return all(t.is_inference() or (t._is_number and not numbers_count) for t in tensors)


_OPS_THAT_WRAP_NUMBERS = frozenset(["add", "sub", "rsub", "mul", "div"])


def _announce(
    channel: Channel,
    op: Op,
    tensors: Sequence[Tensor],
    attrs: Attrs,
    outputs: Sequence[Tensor],
    node: Node | None,
) -> None:
    """Emit that the operation ran, with the reason if it is untracked."""
    untracked = "" if node is not None else op.untracked or why_untracked(tensors) or "inference"
    instrumentation.ran(channel, op, tensors, attrs, outputs, node, untracked)


def _notify_watchers(
    op: Op, tensors: Sequence[Tensor], attrs: Attrs, outputs: Sequence[Tensor], node: Node | None
) -> None:
    """Pass the operation to the hooks of saved tensors and to the recorder of a static graph."""
    if node is not None:
        pack_saved_tensors(node)
    recorder = operation_watchers.recorder()
    if recorder is not None:
        recorder.ran(op, recorder.refs(tensors), attrs, outputs)


def _apply_plain(op: Op, tensors: Sequence[Tensor], _new: Any = object.__new__) -> Tensor:
    """`apply` for the common case, in one function: one output in its own memory, no attributes, no watchers.

    It does the same as the general code, whose function calls would take a sixth of the time of a chain of operations
    on scalars.
    """
    result = compute(op, tensors, NO_ATTRS)
    output = new_tensor(result if result.__class__ is np.ndarray else np.asarray(result))
    if not thread.grad_enabled:
        return output
    edges: list[Edge | None] = []
    constants = 0
    for t in tensors:
        if t._base is not None:
            t._refresh()
        if t._grad_fn is not None:
            edges.append((t._grad_fn, t._output_nr))
        elif t._requires_grad:
            if t._counter[0] == UNCOUNTED and only_inference_tensors(op, tensors):
                return output
            edges.append(t._edge())
        else:
            edges.append(None)
            constants += 1
    if constants == len(edges) and not any_requires_grad(tensors):
        return output
    node = output._grad_fn = _new(op.node_class)
    node.sequence_nr = next_sequence_nr()
    node.extras = node.seen = None
    node.next_edges, node.attrs = edges, NO_ATTRS
    node.outputs = ((output._array.shape, output._array.dtype),)
    node.saved = node.versions = ()
    if op.saves_inputs and not constants:
        versions: list[int] = []
        for t in tensors:
            versions.append(t._counter[0])  # noqa: PERF401  # a comprehension takes longer for one or two
        node.saved, node.versions = tensors, versions
    elif op.saved_names:
        op.save(node, tensors, (output,))
    output._requires_grad = True
    return output


def compute(op: Op, tensors: Sequence[Tensor], attrs: Attrs) -> Any:
    """Runs the op's forward on the tensors' arrays. Raises RuntimeError, with PyTorch's text, for mismatched shapes."""
    arrays = operands(op, tensors)
    try:
        try:
            result = (
                thread.run_quietly(op.forward, *arrays, **attrs) if attrs else thread.run_quietly(op.forward, *arrays)
            )
        except RuntimeError as error:
            if not is_entered(error):
                raise
            with np.errstate(all="ignore"):
                result = op.forward(*arrays, **attrs)
        # a result with fewer dimensions has only one order in memory
        if op.pointwise and result.__class__ is np.ndarray and result.ndim > 1:
            return laid_out(result, arrays)
        return result
    except ValueError as error:
        if thread.grad_enabled and not op.untracked:
            edges_of(tensors)  # raises for a view that must not be used: PyTorch checks that first
        if op.promotes and len(arrays) == 2:
            raise RuntimeError(broadcast_error(arrays[0].shape, arrays[1].shape)) from None
        raise RuntimeError(str(error)) from error


def operands(op: Op, tensors: Sequence[Tensor]) -> list[Array]:
    """The tensors' arrays for the op's forward, in one dtype if it promotes."""
    # Arithmetic on NumPy scalars is ten times as fast as on 0-dimensional arrays.
    arrays, uses_scalars = [], op.is_operator
    for t in tensors:
        array = t._array
        arrays.append(array[()] if uses_scalars and not array.ndim else array)
    if op.promotes and (op.promotes is not True or tensors[0]._array.dtype is not tensors[-1]._array.dtype):
        return promote_operands(arrays, op.promotes)
    return arrays


def why_untracked(tensors: Sequence[Tensor]) -> str:
    """Why autograd would not track an operation on these tensors now; empty if it would."""
    if not thread.grad_enabled:
        # PyTorch does not check views then: even a view that raises an error when autograd tracks it may be written
        mode = "inference" if thread.inference else "no_grad"
        return mode if any(t.requires_grad for t in tensors) else "inputs"
    edges_of(tensors)  # raises for a view that must not be used
    return "" if any_requires_grad(tensors) else "inputs"


def any_requires_grad(tensors: Sequence[Tensor]) -> bool:
    """Whether autograd tracks an operation on these tensors.

    It may track it even if all edges of the operation are None: a view made under ``no_grad`` requires grad like its
    base, but has no node through which a gradient could reach it.
    """
    return any(t._requires_grad or (t._base is not None and t._base._requires_grad) for t in tensors)


def edges_of(tensors: Sequence[Tensor]) -> list[Edge | None]:
    """The edges for the gradients of these tensors; None for those that require none, and for untracked views."""
    edges: list[Edge | None] = []
    for t in tensors:
        if t._base is not None:
            t._refresh()
        grad_fn = t._grad_fn
        if grad_fn is not None:
            edges.append((grad_fn, t._output_nr))
        else:
            edges.append(t._edge() if t._requires_grad else None)
    return edges


def _make_node(op: Op, tensors: Sequence[Tensor], attrs: Attrs, outputs: Sequence[Tensor]) -> Node | None:
    """Make the node of an operation and attach its outputs. Return None if no input requires grad."""
    edges = edges_of(tensors)
    if edges.count(None) == len(edges) and not any_requires_grad(tensors):
        return None
    if tensors[0].is_inference() and only_inference_tensors(op, tensors):
        return None
    node = start_node(op, edges, tensors, attrs)
    if op.saved_names:
        op.save(node, tensors, outputs)
    set_history(node, outputs, op.differentiable_outputs)
    return node


def start_node(op: Op, edges: list[Edge | None], tensors: Sequence[Tensor], attrs: Attrs) -> OpNode:
    """A node with its edges and attributes; the caller sets saved tensors, outputs and history."""
    node = op.node_class()
    if op.lacks_some_rules:
        edges = [e if call else None for e, call in zip(edges, op.calls, strict=True)]
    node.next_edges = edges
    node.attrs = attrs | op.sizes(tensors) if op.keeps_sizes else attrs
    return node


def set_history(node: Node, outputs: Sequence[Tensor], differentiable: int | None = None) -> None:
    """Makes `node` the grad_fn of the first `differentiable` outputs (None: all)."""
    if len(outputs) == 1:
        output = outputs[0]
        node.outputs = ((output._array.shape, output._array.dtype),)
        output._grad_fn = node
        output._output_nr = 0
        output._requires_grad = True
        return
    tracked = outputs[:differentiable]  # a node gets no gradients of the others, such as indices
    node.outputs = tuple([(t._array.shape, t._array.dtype) for t in tracked])
    for output_nr, output in enumerate(tracked):
        output._grad_fn = node
        output._output_nr = output_nr
        output._requires_grad = True


def _share_memory(op: Op, base: Tensor, outputs: Sequence[Tensor]) -> None:
    """Make outputs share the version counter of `base`; views also get their base."""
    creation = "multi" if op.has_several_outputs else "default"
    if not thread.grad_enabled:
        creation = "inference" if thread.inference else "no_grad"
    if creation == "default" and base._base is not None:
        creation = base._creation  # a view of a view that must not be written inherits the restriction
    for output in outputs:
        if op.memory != "data":
            output._counter = base._counter
        else:  # its own counter, which counts unless the data are an inference tensor
            output._counter = [min(base._counter[0], 0)]
        if op.memory == "view" and not base.is_inference():  # autograd ignores inference tensors
            output._base = base if base._base is None else base._base
            output._view_version = base._counter[0]
            output._creation = creation


def promote_operands(arrays: Sequence[Array], how: bool | str) -> list[Array]:
    """Converts operands to their common dtype; to a floating one if `how` is ``"float"``."""
    first = arrays[0].dtype
    if first.kind == "f" or how != "float":
        for array in arrays:
            if array.dtype is not first:
                break
        else:
            return list(arrays)
    common = dtypes.promote(arrays)
    if how == "float" and common.kind != "f":
        common = dtypes.get_default_dtype().numpy
    return [a if a.dtype == common else a.astype(common) for a in arrays]


def zeros(like: Any, shape: tuple[int, ...]) -> Any:
    """Zeros for use in rules: an array or a tensor, as the gradient `like` is one."""
    if isinstance(like, Tensor):
        return new_tensor(np.zeros(shape, like._array.dtype))
    return np.zeros(shape, like.dtype)


def zero_gradient(g: Any) -> Any:
    """The gradient of an input that the output does not depend on: zeros in the layout of `g`.

    They are zeros also where `g` is inf or nan; ``g * 0`` would be nan there.
    A rule that returns them is not the same as no rule: the result of the operation requires grad, as in PyTorch.
    """
    if isinstance(g, Tensor):
        return new_tensor(zeros_like(g._array, g._array.dtype))
    return zeros_like(np.asarray(g), g.dtype)


REQUIRED = inspect.Parameter.empty

WRITTEN_PART_PREFIX = "self, its part now "
"""What the formula of an operation that wrote to a view begins with in the event on the view's base.

It is in traces, so it must not change.
"""

__all__ = ["REGISTRY", "REQUIRED", "WRITTEN_PART_PREFIX", "Example", "Op", "Reading", "Rule"]


class OpNode(Node):
    """The node of a declared operation.

    Each op has a subclass with its rules as `vjp` and its saved tensors as attributes. A ``__getattr__`` for these
    would make every other attribute slower to read.
    """

    __slots__ = ()
    op: ClassVar[Op]

    def by_argument(self, values: Sequence[Any]) -> Sequence[Any]:
        return self.op.by_argument(values)

    def describe(self, number: int) -> OpSeen:
        return self.op.describe(number)

    @property
    def saved_outputs(self) -> dict[int, int]:
        return self.op.saved_outputs

    def pack_order(self) -> Sequence[int]:
        """The positions of the saved tensors, in PyTorch's order: inputs by name, then outputs by name."""
        op = self.op
        return sorted(range(len(op.saved_names)), key=lambda i: (op.saved_names[i] in op.outputs, op.saved_names[i]))


class Op:
    """One operation: its forward on arrays, one rule per differentiable input, its names.

    - `memory`: whose memory the output uses. ``new``: its own. ``view``: its input's, and autograd tracks the view.
      ``alias`` and ``data``: its input's, and autograd does not know of it. An ``alias`` shares the version counter of
      its input, ``data`` has its own.
    - `promotes`: whether operands are first converted to a common dtype (``"float"``: to a floating one).
    - `outputs`: the names of the results (``results...`` for a list). The first `differentiable_outputs` of them can
      require grad.
    - `named`: whether the results can be read by name (``torch.return_types``).
    - `rules`: for a list argument (``tensors...``) the single rule returns one gradient per tensor.
    - `public`: whether the op is available as ``torch.<name>``. The function is made by
      `functions_and_methods.derive`, or written by hand and registered with `functions_and_methods.front`.
    - `in_place`: whether tensors also have the in-place method, whose name ends in an underscore.
    - `write_block`: how a pointwise op of several steps is computed within the memory of its first operand, see
      `pointwise_blocks`.
    - `readings`: variants of `formula` and the rules' texts for some arguments, the more specific first.
    - `untracked`: the reason why autograd never tracks the op.
    - `torch`: the path, from ``torch``, of the function that performs this op on its tensors and attributes (default:
      the name, if public). `differs` explains how that function differs.
    - `drawn`: the slot of a random mask. Callers do not pass it: each call draws it.
    - `overlap`: which memory may overlap in an in-place write, see `views.check_overlap`.
    - `pointwise`: whether the result has the memory order of its operands, as in PyTorch. By default this is so for an
      op that promotes or runs a ufunc.
    """

    def __init__(
        self,
        signature: str,
        *,
        grad_fn: str,
        forward: Callable[..., Any],
        rules: Sequence[Rule] = (),
        formula: str = "",
        readings: Sequence[Reading] = (),
        outputs: tuple[str, ...] = ("result",),
        differentiable_outputs: int | None = None,
        memory: Memory = "new",
        promotes: bool | Literal["float"] = False,
        public: bool = True,
        in_place: bool = False,
        write_block: Callable[..., None] | None = None,
        named: bool = False,
        untracked: str = "",
        torch: str = "",
        differs: str = "",
        drawn: str = "",
        overlap: Overlap = "elementwise",
        pointwise: bool | None = None,
        examples: Callable[[], Sequence[Example]] = tuple,
    ) -> None:
        self.signature = signature
        self.name, slots, self.attrs = _parse(signature)
        self.slots = tuple([slot.removesuffix("?") for slot in slots])
        self.optional = frozenset([slot.removesuffix("?") for slot in slots if slot.endswith("?")])
        self.absent: frozenset[str] = frozenset()
        self.slots_with_rules = tuple([slot for slot in self.slots if any(slot in rule.slots for rule in rules)])
        self.variants: dict[frozenset[str], Op] = {}
        self.takes_list = bool(self.slots) and self.slots[-1].endswith("...")
        self.has_several_outputs = len(outputs) > 1 or outputs[-1].endswith("...")
        self.grad_fn = grad_fn
        self.formula = formula
        self.readings = tuple(readings)
        self.forward = forward
        self.rules = tuple(rules)
        self.outputs = outputs
        self.differentiable_outputs = differentiable_outputs
        self.memory = memory
        self.promotes = "all" if promotes is True and len(self.slots) > 2 else promotes
        self.in_place = in_place
        self.write_block = write_block
        self.returns: Callable[[Sequence[Tensor]], Any] = results_type(self.name, outputs) if named else tuple
        self.untracked = untracked or ("" if self.rules else "dtype")
        self.torch = torch or (self.name if public else "")
        self.differs = differs
        self.drawn = drawn
        self.overlap: Overlap = overlap
        if pointwise is None:
            pointwise = (bool(promotes) and not self.takes_list) or isinstance(forward, np.ufunc)
        self.pointwise = pointwise
        self.examples = examples
        self.is_operator = getattr(forward, "__module__", "") == "_operator"
        self._compile()
        REGISTRY.append(self)

    def _compile(self) -> None:
        """Determine from the rules' parameter names what is saved, and make the node class."""
        rule_parameters = [name for rule in self.rules for name in rule.names]
        tensor_names = (*self.slots, *self.outputs)
        self.saved_names = tuple(name for name in tensor_names if name in rule_parameters)
        self.saved_outputs = {
            i: self.outputs.index(name)
            for i, name in enumerate(self.saved_names)
            # outputs that cannot require grad are saved like inputs
            if name in self.outputs[: self.differentiable_outputs]
        }
        self.saves_outputs = any(name in self.outputs for name in self.saved_names)
        # PyTorch does not save an input if only one rule uses it and that rule's slot has no edge. It saves all others.
        uses = Counter(name for rule in self.rules for name in rule.names)
        self._always_saved = frozenset(n for n in self.saved_names if n in self.outputs or uses[n] > 1)
        self._sized_slots = tuple(
            (i, slot + SIZES) for i, slot in enumerate(self.slots) if slot + SIZES in rule_parameters
        )
        self.keeps_sizes = bool(self._sized_slots) or (self.takes_list and "sizes" in rule_parameters)
        calls = {
            slot: call for rule in self.rules for call in (RuleCall(rule, self.saved_names),) for slot in rule.slots
        }
        self.calls = tuple(calls.get(slot) for slot in self.slots)
        self.lacks_some_rules = not self.takes_list and None in self.calls
        self.saves_inputs = self.saved_names == self.slots
        self._pick_saved = picker([tensor_names.index(name) for name in self.saved_names])
        has_attrs = bool(self.attrs) or self.keeps_sizes
        is_simple = not (has_attrs or self.has_several_outputs or self.untracked or self.lacks_some_rules)
        self.is_plain = is_simple and self.memory == "new" and self.differentiable_outputs is None
        members = {"__slots__": (), "op": self, "vjp": vjp_of(self)}
        members |= {f"_saved_{name}": read for name, read in self.saved_properties().items()}
        members |= {f"_raw_saved_{name}": raw_saved_tensor(position) for position, name in enumerate(self.saved_names)}
        self.node_class: type[OpNode] = type(self.grad_fn or "NotDifferentiable", (OpNode,), members)

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def __call__(self, *operands: Any, **attrs: Any) -> Any:
        """Runs as plain NumPy on arrays, or as a tracked operation on tensors. An optional tensor may be None."""
        if isinstance(operands[0], Tensor):
            if self.optional:
                return apply(*self.present(operands), attrs or NO_ATTRS)
            return apply(self, operands, attrs or NO_ATTRS)
        return self.forward(*operands, **attrs)

    def present(self, operands: Sequence[Any]) -> tuple[Op, list[Any]]:
        """The variant of this op for the operands that are not None, and these operands."""
        absent = frozenset([slot for slot, operand in zip(self.slots, operands, strict=True) if operand is None])
        variant = self._variant_without(absent) if absent else self
        return variant, [operand for operand in operands if operand is not None]

    def _variant_without(self, absent: frozenset[str]) -> Op:
        if absent not in self.variants:
            variant = self.variants[absent] = copy(self)
            variant.optional, variant.absent = frozenset(), absent
            variant.slots = tuple([slot for slot in self.slots if slot not in absent])
            variant.forward = forward_without(self.forward, self.slots, absent)
            variant.rules = rules_without(self.rules, absent)
            variant._compile()
        return self.variants[absent]

    def save(self, node: Node, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        """Saves in `node` the tensors that the rules of its edges use, with their current versions."""
        candidates = inputs
        if self.saves_outputs:
            results = [t._alias() for t in outputs[: self.differentiable_outputs]]
            candidates = (*inputs, *results, *outputs[len(results) :])
        saved: Sequence[Tensor | None] = candidates if self.saves_inputs else self._pick_saved(candidates)
        if None in node.next_edges:  # some inputs need not be saved, see `_compile`
            pairs = zip(node.next_edges, self.calls, strict=False)
            needed = self._always_saved.union(*[call.needs for edge, call in pairs if edge and call])
            saved = tuple([t if n in needed else None for n, t in zip(self.saved_names, saved, strict=True)])
        node.saved = saved
        node.versions = [NOT_SAVED if t is None else t._counter[0] for t in saved]
        if UNCOUNTED in node.versions:
            raise RuntimeError(messages.INFERENCE_SAVED)

    def sizes(self, tensors: Sequence[Tensor]) -> Attrs:
        """The shapes of inputs that rules use, by parameter name."""
        if self.takes_list:
            return {"sizes": tuple([t._array.shape for t in tensors])}
        return {name: tensors[slot]._array.shape for slot, name in self._sized_slots}

    def by_argument(self, edges: Sequence[Edge | None]) -> Sequence[Edge | None]:
        """One edge for each argument that can have one, including absent arguments."""
        if self.takes_list:
            return edges
        by_slot = dict(zip(self.slots, edges, strict=True))
        if self.grad_fn == "NotImplemented":  # PyTorch's node has no edge for an input that requires none
            return [edge for edge in map(by_slot.get, self.slots_with_rules) if edge is not None]
        return [by_slot.get(slot) for slot in self.slots_with_rules]

    def saved_properties(self) -> dict[str, property]:
        """The properties ``grad_fn._saved_<name>`` of a node, by name: saved tensors (checked), arguments, shapes."""
        numbers = (*self.attrs, *(name for _, name in self._sized_slots), *(["sizes"] if self.takes_list else []))
        tensors = {name: saved_tensor(position) for position, name in enumerate(self.saved_names)}
        return {name: saved_attribute(name) for name in numbers} | tensors

    def describe(self, number: int) -> OpSeen:
        """The event that describes this op."""
        pairs = zip(self.slots, self.calls, strict=not self.takes_list)
        rules = tuple("" if call is None else call.texts[slot] for slot, call in pairs)
        return OpSeen(number, self.name, self.grad_fn, self.slots, rules, self.saved_names, self.formula, self.readings)

    def describe_in_place(self, number: int) -> OpSeen:
        """The event that describes the in-place variant, which writes to its first input."""
        return msgspec.structs.replace(self.describe(number), name=self.name.rstrip("_") + "_")

    def describe_slices(self, number: int) -> OpSeen:
        """The event that describes the in-place variant that writes to a view, from the point of view of its base."""
        written = self.describe_in_place(number)
        prefix, replace = WRITTEN_PART_PREFIX, msgspec.structs.replace
        readings = tuple([replace(it, formula=prefix + it.formula if it.formula else "") for it in written.readings])
        return replace(written, grad_fn="CopySlices", formula=prefix + written.formula, readings=readings)


REGISTRY: list[Op] = []
"""Every op, in order of declaration: used for tests, docs and the methods of `Tensor`."""


def _parse(signature: str) -> tuple[str, tuple[str, ...], dict[str, Any]]:
    """Split ``name(tensors, *, attributes=defaults)``; a missing default is `REQUIRED`."""
    name, _, rest = signature.rstrip(")").partition("(")
    left, _, right = rest.partition("*")
    slots = tuple(part.strip() for part in left.split(",") if part.strip())
    attrs = {}
    for part in right.split(";" if ";" in right else ","):
        attr, _, default = part.partition("=")
        if attr.strip():
            attrs[attr.strip()] = literal_eval(default.strip()) if default.strip() else REQUIRED
    return name, slots, attrs
