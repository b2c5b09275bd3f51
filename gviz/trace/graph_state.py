"""What a graph looks like at one moment: plain data, as `Timeline` gives it, and the plain replay of the tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from msgspec import Struct

from gviz.events import NodeCreated, OpSeen
from gviz.source.site import Frame
from gviz.values.value import Array, Value

Step = Literal["none", "pending", "waiting", "running", "done", "failed"]
"""Where a node stands in the latest pass: it is not part of it; nothing arrived yet; some of its contributions arrived;
its rule runs (or, for a leaf, its gradient is complete but not accumulated); it is through; its rule ran when an error
ended the pass."""

UNKNOWN_OP = OpSeen(0, "?", "", (), (), ())
"""An operation that the trace refers to and does not describe."""

Saved = Literal["nothing", "held", "freed"]
Bad = Literal["nan", "inf"]
"""What is no finite number."""
BAD: tuple[Bad, ...] = get_args(Bad)

PhaseKind = Literal["forward", "backward", "optimizer", "failed", "after backward", "after optimizer"]

OPTIMIZER = "optimizer step"
"""The path that the steps of all optimizers have, as calls of modules have theirs."""


class Contribution(Struct, frozen=True):
    """One `GradFlowed`: what arrived over one edge, from input `slot` of node `source`, by event number `seq`.

    The seed of a pass is a contribution too: `source` 0, `slot` its place among the pass's roots.
    """

    source: int
    slot: int
    value: Value
    seq: int


class OutputState(Struct, frozen=True):
    """One output of a node at one moment.

    `value` is what its memory holds now and `value_seq` the event that put it there; `version` and `written_by` (a
    node, 0: nobody) tell of in-place writes since it was made. `incoming` is the sum of the `parts` that arrived in the
    latest pass that reaches it, of `expected` in the whole pass. `grad` is its ``.grad``, set by event `grad_seq`.
    """

    value: Value | None
    value_seq: int
    version: int
    written_by: int
    incoming: Value | None
    parts: Sequence[Contribution]
    expected: int
    grad: Value | None
    grad_seq: int


class NodeState(Struct, frozen=True):
    """One node at one moment. `freed` and `saved_freed` are event numbers, 0 while it has not happened.

    `pass_nr` is the innermost running pass that covers the node, else the latest that reached it (0: none yet).
    """

    node: int
    requires_grad: bool
    saved: Saved
    saved_freed: int
    freed: int
    pass_nr: int
    step: Step
    outputs: tuple[OutputState, ...]


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """What never changes about a node: how it was made. `name` is the variable or parameter that holds it, or empty.

    `variables` are the names of its outputs, where these have names of their own; there may be fewer than outputs.
    `also` are the other paths of a parameter that several modules have, and of a result the variables of callers: where
    ``forward`` ends in ``x = f(x)`` and ``return x``, and ``out = net(x)`` called it, `x` is `out` also.
    `born` is its event number, `frames` the user's call stack with the innermost first, `scope` the module path, and
    `iteration` the index of the iteration that made it.
    """

    node: int
    born: int
    created: NodeCreated
    op: OpSeen
    name: str
    frames: tuple[Frame, ...]
    scope: str
    iteration: int
    variables: tuple[str, ...] = ()
    also: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All that the node, or one of its outputs, is called."""
        return tuple(dict.fromkeys(filter(None, (self.name, *self.also, *self.variables))))

    def means(self, name: str) -> bool:
        """Whether the node, or one of its outputs, is called so."""
        return name == self.name or name in self.variables or name in self.also

    def output_called(self, name: str) -> int:
        """Which output a name of the node means; the first, unless another is called so."""
        return self.variables.index(name) if name and name in self.variables else 0

    def output_name(self, nr: int) -> str:
        """What an output is called: of the only one that is the name of the node."""
        if len(self.created.outputs) > 1:
            return self.variables[nr] if nr < len(self.variables) else ""
        return self.name

    @property
    def title(self) -> str:
        """The name if it has one, else the operation."""
        return self.name or self.op.name


class Origins(NamedTuple):
    """How nodes were made, an entry a node: by which operation, at which call stack, in which module call, and the leaf
    whose ``.grad`` it was (0: none)."""

    op: Array
    stack: Array
    scope: Array
    gradient_of: Array


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of events ``start..end`` (both included) of one kind; `pass_nr` for a backward pass, else 0."""

    kind: PhaseKind
    start: int
    end: int
    pass_nr: int


@dataclass(frozen=True, slots=True)
class Iteration:
    """One graph's life: events ``start..end`` (both included). Ends where a forward begins after a backward pass."""

    index: int
    start: int
    end: int
