"""What an operation is, declared once; and how one runs.

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

Left of the star in the signature stand the tensors, right of it the other arguments. A rule is the vector-Jacobian
product for one input. It is written once and serves arrays (an ordinary pass) and tensors (``create_graph``): operators
work on both, and calling an `Op` runs plain numpy on arrays and a tracked operation on tensors. The names of a rule's
parameters say what it needs: `g` (or `grads` for several outputs), inputs, outputs (``result``), attributes, and
``<input>_sym_sizes``, the shape of an input (``sizes``, all of them, for a list). Only what the rules in use name is
saved. The engine reduces broadcast gradients, sums contributions, checks shapes and dtypes and tells listeners; rules
never do.
"""

from __future__ import annotations

import inspect
from ast import literal_eval
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Literal

import msgspec
import numpy as np

from gviz import emit
from gviz.engine import announce, dtypes, messages
from gviz.engine.modes import thread
from gviz.engine.node import Edge, Grad, Node, next_sequence_nr
from gviz.engine.tensor import Tensor, new_tensor
from gviz.events import OpSeen
from gviz.values import Array

Attrs = dict[str, Any]
Memory = Literal["new", "view", "alias", "data"]
REQUIRED = inspect.Parameter.empty
_NO_ATTRS: Attrs = {}
_SIZES = "_sym_sizes"


@dataclass(frozen=True, slots=True)
class Rule:
    """The gradient of one input: `text` for people, `vjp` for both kinds of pass.

    In `text`, `g` is the incoming gradient and every other name an input, an output or an attribute.
    """

    slot: str
    text: str
    vjp: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Example:
    """Arguments to try an op with: arrays for its tensors, and its attributes."""

    tensors: tuple[Any, ...]
    attrs: Attrs


class _Call:
    """A rule made ready to run: which saved tensors and which attributes its parameters are."""

    __slots__ = ("attrs", "needs", "pick", "text", "vjp")

    def __init__(self, rule: Rule, saved_names: tuple[str, ...]) -> None:
        names = tuple(inspect.signature(rule.vjp).parameters)[1:]
        self.vjp = rule.vjp
        self.text = rule.text
        self.needs = frozenset(name for name in names if name in saved_names)
        self.attrs = tuple(name for name in names if name not in saved_names)
        self.pick = _picker([saved_names.index(name) for name in names if name in saved_names])

    def __call__(self, g: Any, saved: Sequence[Any], attrs: Attrs) -> Any:
        return self.vjp(g, *self.pick(saved), **{name: attrs[name] for name in self.attrs})


def _picker(positions: list[int]) -> Callable[[Sequence[Any]], Any]:
    """A getter of these positions that always gives a tuple, so that one kind of call serves every rule."""
    if len(positions) > 1:
        return itemgetter(*positions)
    return itemgetter(slice(positions[0], positions[0] + 1) if positions else slice(0))


class Op:
    """One operation: its forward on arrays, one rule per differentiable input, its names.

    `memory` says whose memory the output has: its own (``new``), its input's as a tracked ``view``, or its input's
    without being tracked (``alias`` with the same version counter, ``data`` with one of its own). `promotes`: operands
    of different dtypes are brought to a common one first (``"float"``: a floating one). `outputs` names the results
    (``results...`` for a list), of which the first `differentiable_outputs` can require grad. For a list argument
    (``tensors...``) the single rule gives one gradient per tensor. `public` derives ``torch.<name>`` and the method,
    `in_place` also the method with a trailing underscore. `untracked` is the reason why an op never records.
    """

    def __init__(
        self,
        signature: str,
        *,
        grad_fn: str,
        forward: Callable[..., Any],
        rules: Sequence[Rule] = (),
        formula: str = "",
        outputs: tuple[str, ...] = ("result",),
        differentiable_outputs: int | None = None,
        memory: Memory = "new",
        promotes: bool | Literal["float"] = False,
        public: bool = True,
        in_place: bool = False,
        untracked: str = "",
        examples: Callable[[], Sequence[Example]] = tuple,
    ) -> None:
        self.signature = signature
        self.name, self.slots, self.attrs = _parse(signature)
        self.variadic = bool(self.slots) and self.slots[-1].endswith("...")
        self.several = len(outputs) > 1 or outputs[-1].endswith("...")
        self.grad_fn = grad_fn
        self.formula = formula
        self.forward = forward
        self.rules = tuple(rules)
        self.outputs = outputs
        self.differentiable_outputs = differentiable_outputs
        self.memory = memory
        self.promotes = promotes
        self.public = public
        self.in_place = in_place
        self.untracked = untracked or ("" if self.rules else "dtype")
        self.examples = examples
        self.is_operator = getattr(forward, "__module__", "") == "_operator"
        self._compile()
        REGISTRY.append(self)

    def _compile(self) -> None:
        """Work out from the rules' parameter names what is saved, and make the node class."""
        named = [n for rule in self.rules for n in tuple(inspect.signature(rule.vjp).parameters)[1:]]
        known = (*self.slots, *self.outputs)
        self.saved_names = tuple(name for name in known if name in named)
        self.saved_outputs = {
            i: self.outputs.index(name) for i, name in enumerate(self.saved_names) if name in self.outputs
        }
        self.shape_slots = tuple((i, slot + _SIZES) for i, slot in enumerate(self.slots) if slot + _SIZES in named)
        self.keeps_sizes = self.variadic and "sizes" in named
        calls = {rule.slot: _Call(rule, self.saved_names) for rule in self.rules}
        self.calls = tuple(calls.get(slot) for slot in self.slots)
        self.partial = not self.variadic and None in self.calls
        self._pick_saved = _picker([known.index(name) for name in self.saved_names])
        methods = {"__slots__": (), "op": self, "vjp": self._make_vjp()}
        self.node_class: type[Node] = type(self.grad_fn or "NotDifferentiable", (Node,), methods)

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def __call__(self, *operands: Any, **attrs: Any) -> Any:
        """Run on arrays as plain numpy, on tensors as a tracked operation; for use inside rules."""
        if isinstance(operands[0], Tensor):
            return apply(self, operands, attrs or _NO_ATTRS)
        return self.forward(*operands, **attrs)

    def _make_vjp(self) -> Callable[..., Sequence[Grad | None]]:
        """The node class's `vjp`: runs the rules of the inputs that a node has edges for."""
        calls = self.calls
        if self.several or self.variadic or any(call and call.attrs for call in calls):
            return lambda node, grads, create_graph: self._vjp(node, grads, create_graph)
        rules = [(call.vjp, call.pick) if call else (_no_rule, itemgetter(slice(0))) for call in calls]
        if not self.saved_names:
            return _vjp_of_nothing_saved([rule for rule, _ in rules])

        def vjp(node: Node, grads: Sequence[Grad | None], create_graph: bool) -> Sequence[Grad | None]:
            g = grads[0]
            if g is None:
                return [None] * len(rules)
            saved = node.saved_tensors() if create_graph else node.saved_arrays()
            pairs = zip(node.next_edges, rules, strict=True)
            return [None if edge is None else rule(g, *pick(saved)) for edge, (rule, pick) in pairs]

        return vjp

    def _vjp(self, node: Node, grads: Sequence[Grad | None], create_graph: bool) -> Sequence[Grad | None]:
        """As above, for several outputs, list arguments and rules with attributes."""
        saved: Sequence[Any] = node.saved_tensors() if create_graph else node.saved_arrays()
        g: Any = grads[0]
        if self.several:
            g = _materialized(node, grads, create_graph)
            if self.differentiable_outputs == 1:
                g = g[0]
        elif g is None:
            return [None] * len(node.next_edges)
        if self.variadic:
            (call,) = self.calls
            return list(call(g, saved, node.attrs)) if call else []
        return [
            None if edge is None or call is None else call(g, saved, node.attrs)
            for edge, call in zip(node.next_edges, self.calls, strict=True)
        ]

    def save(self, node: Node, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        """Keep in `node` what the rules of its edges name, with the versions of now."""
        candidates = inputs if not self.saved_outputs else (*inputs, *[t._alias() for t in outputs])
        saved = self._pick_saved(candidates)
        if None in node.next_edges:  # what only the missing edges' rules need is not saved
            pairs = zip(node.next_edges, self.calls, strict=False)
            wanted = {name for edge, call in pairs if edge and call for name in call.needs}
            saved = tuple([t if n in wanted else None for n, t in zip(self.saved_names, saved, strict=True)])
        node.saved = saved
        node.versions = [0 if t is None else t._counter[0] for t in saved]

    def saved_attribute(self, node: Node, name: str) -> Any:
        """``grad_fn._saved_<name>``: a saved tensor (checked) or an attribute. AttributeError if there is none."""
        if name in self.saved_names:
            return node.saved_tensors()[self.saved_names.index(name)]
        if name in node.attrs:
            return node.attrs[name]
        raise AttributeError(f"'{type(node).__name__}' object has no attribute '_saved_{name}'")

    def describe(self, number: int) -> OpSeen:
        """This op as an event."""
        rules = tuple("" if call is None else call.text for call in self.calls)
        return OpSeen(number, self.name, self.grad_fn, self.slots, rules, self.saved_names, self.formula)

    def describe_in_place(self, number: int) -> OpSeen:
        """The variant that writes to its first input."""
        return msgspec.structs.replace(self.describe(number), name=self.name.rstrip("_") + "_")

    def describe_slices(self, number: int) -> OpSeen:
        """The variant that writes to a view, as the node of the view's base."""
        return msgspec.structs.replace(self.describe_in_place(number), grad_fn="CopySlices")


REGISTRY: list[Op] = []
"""Every op, in order of declaration: drives tests, docs and the methods of `Tensor`."""


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


def _vjp_of_nothing_saved(rules: list[Callable[..., Grad]]) -> Callable[..., Sequence[Grad | None]]:
    def vjp(node: Node, grads: Sequence[Grad | None], create_graph: bool) -> Sequence[Grad | None]:
        g = grads[0]
        if g is None:
            return [None] * len(rules)
        return [None if edge is None else rule(g) for edge, rule in zip(node.next_edges, rules, strict=True)]

    return vjp


def _no_rule(g: Grad) -> Grad:
    raise AssertionError("an edge exists only where a rule does")


def _materialized(node: Node, grads: Sequence[Grad | None], create_graph: bool) -> list[Grad]:
    """Gradients of several outputs, zeros where nothing arrived."""
    full = []
    for g, (shape, kind) in zip(grads, node.outputs, strict=True):
        if g is None:
            g = np.zeros(shape, kind)
            g = new_tensor(g) if create_graph else g
        full.append(g)
    return full


def apply(op: Op, tensors: Sequence[Tensor], attrs: Attrs = _NO_ATTRS) -> Any:
    """Run `op`, record it if a gradient may be wanted, and tell whoever listens.

    Returns a tensor, or a tuple of them for an op of several outputs.
    """
    result = compute(op, tensors, attrs)
    if op.several:
        outputs = [new_tensor(np.asarray(array)) for array in result]
    else:
        outputs = [new_tensor(result if result.__class__ is np.ndarray else np.asarray(result))]
    if op.memory != "new":
        _share(op.memory, tensors[0], outputs)
    node = _record(op, tensors, attrs, outputs) if thread.grad_enabled and not op.untracked else None
    channel = emit.channel
    if channel is not None:
        untracked = "" if node is not None else op.untracked or why_untracked(tensors)
        announce.operation(channel, op, tensors, attrs, outputs, node, untracked)
    return tuple(outputs) if op.several else outputs[0]


def compute(op: Op, tensors: Sequence[Tensor], attrs: Attrs) -> Any:
    """The op's forward on the tensors' arrays. RuntimeError, in PyTorch's words, for shapes that do not fit."""
    # Arithmetic on numpy scalars is ten times as fast as on 0-dimensional arrays.
    arrays = [a if (a := t._array).ndim else a[()] for t in tensors] if op.is_operator else [t._array for t in tensors]
    if op.promotes and (op.promotes == "float" or arrays[0].dtype is not arrays[-1].dtype):
        arrays = promoted(arrays, op.promotes)
    try:
        return op.forward(*arrays, **attrs) if attrs else op.forward(*arrays)
    except ValueError as error:
        if op.promotes and len(arrays) == 2:
            raise RuntimeError(broadcast_error(arrays[0].shape, arrays[1].shape)) from None
        raise RuntimeError(str(error)) from error


def why_untracked(tensors: Sequence[Tensor]) -> str:
    """Why autograd would not record an operation on these tensors now; empty if it would."""
    if all(edge is None for edge in edges_of(tensors)):
        return "inputs"
    return "" if thread.grad_enabled else "no_grad"


def edges_of(tensors: Sequence[Tensor]) -> list[Edge | None]:
    """Where the gradients of these tensors go; None for those that require none."""
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


def _record(op: Op, tensors: Sequence[Tensor], attrs: Attrs, outputs: Sequence[Tensor]) -> Node | None:
    """Make the node of an operation and let its outputs come from it; None if no input requires grad."""
    edges = edges_of(tensors)
    for edge in edges:
        if edge is not None:
            node = start_node(op, edges, tensors, attrs)
            if op.saved_names:
                op.save(node, tensors, outputs)
            set_history(node, outputs, op.differentiable_outputs)
            return node
    return None


def start_node(op: Op, edges: list[Edge | None], tensors: Sequence[Tensor], attrs: Attrs) -> Node:
    """A node with its edges and attributes; saving, outputs and history are the caller's."""
    node = op.node_class()
    node.sequence_nr = next_sequence_nr()
    node.tensor_hooks = node.retained = node.seen = node.metadata = None
    node.saved = node.versions = ()
    if op.partial:
        edges = [e if call else None for e, call in zip(edges, op.calls, strict=True)]
    node.next_edges = edges
    if op.shape_slots:
        attrs = attrs | {name: tensors[i]._array.shape for i, name in op.shape_slots}
    if op.keeps_sizes:
        attrs = attrs | {"sizes": tuple([t._array.shape for t in tensors])}
    node.attrs = attrs
    return node


def set_history(node: Node, outputs: Sequence[Tensor], differentiable: int | None = None) -> None:
    """Let the first `differentiable` outputs (None: all) come from `node`."""
    if len(outputs) == 1:
        output = outputs[0]
        node.outputs = ((output._array.shape, output._array.dtype),)
        output._grad_fn = node
        output._output_nr = 0
        output._requires_grad = True
        return
    node.outputs = tuple([(t._array.shape, t._array.dtype) for t in outputs])
    for output_nr, output in enumerate(outputs[:differentiable]):
        output._grad_fn = node
        output._output_nr = output_nr
        output._requires_grad = True


def _share(memory: Memory, base: Tensor, outputs: Sequence[Tensor]) -> None:
    """Tie outputs to the memory of `base`: its version counter, and for views the tensor they are views of."""
    for output in outputs:
        if memory != "data":
            output._counter = base._counter
        if memory == "view":
            output._base = base if base._base is None else base._base
            output._view_version = base._counter[0]
            output._creation = "multi" if len(outputs) > 1 else "default" if thread.grad_enabled else "no_grad"


def promoted(arrays: Sequence[Array], how: bool | str) -> list[Array]:
    """Bring operands to their common dtype, to a floating one if `how` is ``"float"``."""
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


def broadcast_error(a: tuple[int, ...], b: tuple[int, ...]) -> str:
    """PyTorch's words for two shapes that do not broadcast."""
    width = max(len(a), len(b))
    wide_a, wide_b = (1,) * (width - len(a)) + a, (1,) * (width - len(b)) + b
    for dim in reversed(range(width)):
        if wide_a[dim] != wide_b[dim] and 1 not in (wide_a[dim], wide_b[dim]):
            return messages.BROADCAST.format(a=wide_a[dim], b=wide_b[dim], dim=dim)
    return messages.BROADCAST.format(a=a, b=b, dim=0)


def zeros(like: Any, shape: tuple[int, ...]) -> Any:
    """Zeros beside a gradient: an array for an array, a tensor for a tensor; for use inside rules."""
    if isinstance(like, Tensor):
        return new_tensor(np.zeros(shape, like._array.dtype))
    return np.zeros(shape, like.dtype)
