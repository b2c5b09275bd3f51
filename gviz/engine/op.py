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
saved. A slot written ``weight?`` may be given None: the op then runs as a variant of itself without that slot, and its
forward and rules see None. The engine reduces broadcast gradients, sums contributions, checks shapes and dtypes and
tells listeners; rules never do.
"""

from __future__ import annotations

import inspect
from ast import literal_eval
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Literal

import msgspec
import numpy as np

from gviz.engine import messages
from gviz.engine.apply import NO_ATTRS, Attrs, Memory, Overlap, apply
from gviz.engine.node import Edge, Node, raw_saved_tensor, saved_attribute, saved_tensor
from gviz.engine.return_types import results_type
from gviz.engine.rule import SIZES, Call, Example, Rule, picker
from gviz.engine.tensor import UNCOUNTED, Tensor
from gviz.engine.variant import forward_without, rules_without
from gviz.engine.vjp import vjp_of
from gviz.events import OpSeen, Reading

REQUIRED = inspect.Parameter.empty

SLICES = "self, its part now "
"""Before the formula of an operation that wrote through a view, as the event on the view's base has it."""

__all__ = ["REGISTRY", "REQUIRED", "SLICES", "Example", "Op", "Reading", "Rule"]


class Op:
    """One operation: its forward on arrays, one rule per differentiable input, its names.

    `memory` says whose memory the output has: its own (``new``), its input's as a tracked ``view``, or its input's
    without being tracked (``alias`` with the same version counter, ``data`` with one of its own). `promotes`: operands
    of different dtypes are brought to a common one first (``"float"``: a floating one). `outputs` names the results
    (``results...`` for a list), of which the first `differentiable_outputs` can require grad. For a list argument
    (``tensors...``) the single rule gives one gradient per tensor. One that is `public` is ``torch.<name>``, which
    `surface.derive` or a front offers, and one that can be `in_place` has a method with a trailing underscore. One of
    several pointwise steps may say how it is computed within the memory of its first operand: `write_block`, see
    `blocks`. `named` outputs can be read by name (``torch.return_types``).
    `readings` say how `formula` and the rules' texts read for some arguments, the more particular before the others.
    `untracked` is the reason why an op never records. `torch` is the path, from ``torch``, of the function that means
    this op when called with its tensors and attributes (its name if it is public); `differs` says how it then differs.
    `drawn` is the slot of a mask that a call draws itself, of random numbers. `overlap` says which places in memory
    may meet when it writes in place, see `views.check_overlap`. The result of one that is `pointwise` lies in memory as
    its operands do, as PyTorch lays it out; one that promotes, or runs a ufunc, always is.
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
        self.ruled = tuple([slot for slot in self.slots if any(slot in rule.slots for rule in rules)])
        self.variants: dict[frozenset[str], Op] = {}
        self.variadic = bool(self.slots) and self.slots[-1].endswith("...")
        self.several = len(outputs) > 1 or outputs[-1].endswith("...")
        self.grad_fn = grad_fn
        self.formula = formula
        self.readings = tuple(readings)
        self.forward = forward
        self.rules = tuple(rules)
        self.outputs = outputs
        self.differentiable_outputs = differentiable_outputs
        self.memory = memory
        self.promotes = promotes
        self.in_place = in_place
        self.write_block = write_block
        self.returns: Callable[[Sequence[Tensor]], Any] = results_type(self.name, outputs) if named else tuple
        self.untracked = untracked or ("" if self.rules else "dtype")
        self.torch = torch or (self.name if public else "")
        self.differs = differs
        self.drawn = drawn
        self.overlap: Overlap = overlap
        if pointwise is None:
            pointwise = (bool(promotes) and not self.variadic) or isinstance(forward, np.ufunc)
        self.pointwise = pointwise
        self.examples = examples
        self.is_operator = getattr(forward, "__module__", "") == "_operator"
        self._compile()
        REGISTRY.append(self)

    def _compile(self) -> None:
        """Work out from the rules' parameter names what is saved, and make the node class."""
        named = [name for rule in self.rules for name in rule.names]
        known = (*self.slots, *self.outputs)
        self.saved_names = tuple(name for name in known if name in named)
        self.saved_outputs = {
            i: self.outputs.index(name)
            for i, name in enumerate(self.saved_names)
            if name in self.outputs[: self.differentiable_outputs]  # the others are leaves, saved as inputs are
        }
        self.saves_outputs = any(name in self.outputs for name in self.saved_names)
        self._sized_slots = tuple((i, slot + SIZES) for i, slot in enumerate(self.slots) if slot + SIZES in named)
        self.keeps_sizes = bool(self._sized_slots) or (self.variadic and "sizes" in named)
        calls = {slot: call for rule in self.rules for call in (Call(rule, self.saved_names),) for slot in rule.slots}
        self.calls = tuple(calls.get(slot) for slot in self.slots)
        self.partial = not self.variadic and None in self.calls
        self.saves_inputs = self.saved_names == self.slots
        self._pick_saved = picker([known.index(name) for name in self.saved_names])
        simple = not (self.attrs or self.several or self.untracked or self.partial or self.keeps_sizes)
        self.is_plain = simple and self.memory == "new" and self.differentiable_outputs is None
        members = {"__slots__": (), "op": self, "vjp": vjp_of(self)}
        members |= {f"_saved_{name}": shown for name, shown in self.shown().items()}
        members |= {f"_raw_saved_{name}": raw_saved_tensor(place) for place, name in enumerate(self.saved_names)}
        self.node_class: type[Node] = type(self.grad_fn or "NotDifferentiable", (Node,), members)

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def __call__(self, *operands: Any, **attrs: Any) -> Any:
        """Run on arrays as plain numpy, on tensors as a tracked operation. An optional tensor may be None."""
        if isinstance(operands[0], Tensor):
            if self.optional:
                return apply(*self.present(operands), attrs or NO_ATTRS)
            return apply(self, operands, attrs or NO_ATTRS)
        return self.forward(*operands, **attrs)

    def present(self, operands: Sequence[Any]) -> tuple[Op, list[Any]]:
        """The variant of this op for the operands that are not None, and these."""
        absent = frozenset([slot for slot, operand in zip(self.slots, operands, strict=True) if operand is None])
        return self._without(absent) if absent else self, [operand for operand in operands if operand is not None]

    def _without(self, absent: frozenset[str]) -> Op:
        if absent not in self.variants:
            variant = self.variants[absent] = copy(self)
            variant.optional, variant.absent = frozenset(), absent
            variant.slots = tuple([slot for slot in self.slots if slot not in absent])
            variant.forward = forward_without(self.forward, self.slots, absent)
            variant.rules = rules_without(self.rules, absent)
            variant._compile()
        return self.variants[absent]

    def save(self, node: Node, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        """Keep in `node` what the rules of its edges name, with the versions of now."""
        candidates = inputs
        if self.saves_outputs:
            made = [t._alias() for t in outputs[: self.differentiable_outputs]]
            candidates = (*inputs, *made, *outputs[len(made) :])
        saved: Sequence[Tensor | None] = candidates if self.saves_inputs else self._pick_saved(candidates)
        if None in node.next_edges:  # what only the missing edges' rules need is not saved
            pairs = zip(node.next_edges, self.calls, strict=False)
            wanted = {name for edge, call in pairs if edge and call for name in call.needs}
            saved = tuple([t if n in wanted else None for n, t in zip(self.saved_names, saved, strict=True)])
        node.saved = saved
        node.versions = [0 if t is None else t._counter[0] for t in saved]
        if UNCOUNTED in node.versions:
            raise RuntimeError(messages.INFERENCE_SAVED)

    def sizes(self, tensors: Sequence[Tensor]) -> Attrs:
        """The shapes of inputs that rules ask for, under the names they ask by."""
        if self.variadic:
            return {"sizes": tuple([t._array.shape for t in tensors])}
        return {name: tensors[slot]._array.shape for slot, name in self._sized_slots}

    def places(self, edges: Sequence[Edge | None]) -> Sequence[Edge | None]:
        """One edge for each argument that can have one, also for those that are not there."""
        if self.variadic:
            return edges
        by_slot = dict(zip(self.slots, edges, strict=True))
        if self.grad_fn == "NotImplemented":  # a node of PyTorch's own, which knows no places
            return [edge for edge in map(by_slot.get, self.ruled) if edge is not None]
        return [by_slot.get(slot) for slot in self.ruled]

    def shown(self) -> dict[str, property]:
        """What a node shows as ``grad_fn._saved_<name>``, by name: saved tensors (checked), arguments, shapes."""
        numbers = (*self.attrs, *(name for _, name in self._sized_slots), *(["sizes"] if self.variadic else []))
        tensors = {name: saved_tensor(position) for position, name in enumerate(self.saved_names)}
        return {name: saved_attribute(name) for name in numbers} | tensors

    def describe(self, number: int) -> OpSeen:
        """This op as an event."""
        pairs = zip(self.slots, self.calls, strict=not self.variadic)
        rules = tuple("" if call is None else call.texts[slot] for slot, call in pairs)
        return OpSeen(number, self.name, self.grad_fn, self.slots, rules, self.saved_names, self.formula, self.readings)

    def describe_in_place(self, number: int) -> OpSeen:
        """The variant that writes to its first input."""
        return msgspec.structs.replace(self.describe(number), name=self.name.rstrip("_") + "_")

    def describe_slices(self, number: int) -> OpSeen:
        """The variant that writes to a view, as the node of the view's base."""
        written = self.describe_in_place(number)
        readings = tuple(
            [msgspec.structs.replace(it, formula=SLICES + it.formula if it.formula else "") for it in written.readings]
        )
        return msgspec.structs.replace(
            written, grad_fn="CopySlices", formula=SLICES + written.formula, readings=readings
        )


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
