"""The state of a graph at one moment, as plain data: returned by `Timeline` and by the simple replay in the tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from msgspec import Struct

from gviz.events import NodeCreated, OpSeen
from gviz.source.call_stack import Frame
from gviz.values.value import Array, Value

Step = Literal["none", "pending", "waiting", "running", "done", "failed"]
"""The state of a node in the latest pass.

"none": not part of it. "pending": nothing has arrived. "waiting": some contributions have arrived. "running": its
backward rule runs (a leaf: the gradient is complete but not accumulated). "done": finished. "failed": its backward rule
was running when an error ended the pass.
"""

UNKNOWN_OP = OpSeen(0, "?", "", (), (), ())
"""An operation that the trace refers to but does not describe."""

Saved = Literal["nothing", "held", "freed"]
Bad = Literal["nan", "inf"]
"""The kinds of nonfinite numbers."""
BAD: tuple[Bad, ...] = get_args(Bad)

PhaseKind = Literal["forward", "backward", "optimizer", "failed", "after backward", "after optimizer"]

OPTIMIZER = "optimizer step"
"""The path of all optimizer steps, like the module path of a module call."""


class Contribution(Struct, frozen=True):
    """One `GradFlowed`: what arrived over one edge, from input `slot` of node `source`, with event number `seq`.

    The seed of a pass is a contribution too: `source` is 0 and `slot` is its position among the roots of the pass.
    """

    source: int
    slot: int
    value: Value
    seq: int


class OutputState(Struct, frozen=True):
    """One output of a node at one moment.

    `value` is what its memory holds now, and `value_seq` the event that wrote it. `version` counts in-place writes
    since the output was created; `written_by` is the node that wrote last (0: none). `incoming` is the sum of the
    `parts` that have arrived in the latest pass that reaches the output, out of `expected` in the whole pass. `grad` is
    its ``.grad``, set by event `grad_seq`.
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
    """One node at one moment. `freed` and `saved_freed` are event numbers, 0 if it has not happened yet.

    `pass_nr` is the innermost running pass that covers the node, otherwise the latest that reached it (0: none yet).
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
    """What never changes about a node.

    `born` is the event that created it, `frames` the user's call stack (innermost first), `scope` the module path and
    `iteration` the index of the iteration that created it. `name` is the variable or parameter that holds the node, or
    empty. `variables` are the names of its outputs if they have their own; there may be fewer names than outputs.
    `also` holds further names: other paths of a parameter shared by several modules, and variables of callers. For
    example, if ``forward`` ends with ``x = f(x)`` and ``return x``, and the caller runs ``out = net(x)``, then `x` is
    also `out`.
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
        """All names of the node and of its outputs."""
        return tuple(dict.fromkeys(filter(None, (self.name, *self.also, *self.variables))))

    def means(self, name: str) -> bool:
        """Return whether `name` is a name of the node or of one of its outputs."""
        return name == self.name or name in self.variables or name in self.also

    def output_called(self, name: str) -> int:
        """Return the number of the output with this name; 0 if no other output has it."""
        return self.variables.index(name) if name and name in self.variables else 0

    def output_name(self, nr: int) -> str:
        """Return the name of an output; the node's name if it has only one output."""
        if len(self.created.outputs) > 1:
            return self.variables[nr] if nr < len(self.variables) else ""
        return self.name

    @property
    def returned(self) -> int:
        """The number of outputs that the operation returns to the program.

        Further ones are for its backward rule, such as the mean and the deviation of ``layer_norm``. They come last.
        An output with a name was returned in any case.
        """
        count = len(self.created.outputs)
        own = sum(name in _FOR_THE_RULE for name in self.op.saved) if count > 1 else 0
        return max(count - own, len(self.variables), 1) if count else 0

    @property
    def title(self) -> str:
        """The name, or the operation if there is none."""
        return self.name or self.op.name


_FOR_THE_RULE = {"result1", "result2", "total_weight", "logsumexp", "is_target"}
"""What operations of the built-in engine compute, and save, for their backward rules alone, by PyTorch's names."""


class Origins(NamedTuple):
    """How nodes were created, one entry per node: the operation, the call stack, the module call, and the leaf whose
    ``.grad`` the node was (0: none).
    """

    op: Array
    stack: Array
    scope: Array
    gradient_of: Array


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of events ``start..end`` (both included) of one kind. `pass_nr` is the backward pass, otherwise 0."""

    kind: PhaseKind
    start: int
    end: int
    pass_nr: int


@dataclass(frozen=True, slots=True)
class Iteration:
    """The lifetime of one graph: events ``start..end`` (both included). It ends where a forward starts after a backward
    pass.

    `index` counts the iterations of the recording from 0. `in_run` is the number in the run, where the recording has
    only some of its iterations and it is known.
    """

    index: int
    start: int
    end: int
    in_run: int = 0

    @property
    def number(self) -> int:
        """The number that people use, from 1."""
        return self.in_run or self.index + 1
