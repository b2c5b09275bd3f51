"""The closed vocabulary of what a program can say about its computation graph.

Rules of this file:

1. Every event is frozen and holds only ints, strings, booleans, tuples of those, and `Value`s. No I/O, no behaviour.
2. Subclassing an event is not supported; consumers `match` on the classes below and on nothing else.
3. Sequence number, time and thread are the log's (the envelope), not the event's.
4. `KINDS` gives each class its number in trace files. It is only ever appended to, and so are the fields of a class
   (with defaults), because old traces stay readable.

A new event is a class here, last in `KINDS`, that declares in `changes` what of a node is something else after it.
Codec, checks, breakpoints and the lists by which a timeline searches follow from its fields and from that. What remains
is to say what it does (a case in `gviz.trace.replay`, for something new one in `gviz.trace.index.node_state`), what a
reader is told (`gviz.explain.happening`) and where it is said; ``tests/trace/test_vocabulary.py`` names the missing.

Numbers: nodes, storages, ops, stacks, scopes and passes are counted from 1 within a recording, in the order in which
they are first spoken of; 0 means "none". A stack is of one thread: the same lines in another have their own. A
**node** is anything that gets a box: a leaf, a constant, or one operation
with its outputs, tracked by autograd or not. ``output_nr`` counts a node's outputs from 0, as PyTorch does.

"Gradient accumulation" is two things: summing contributions at a fan-out *within* a pass (`GradFlowed`), and adding to
a leaf's ``.grad`` *across* passes (`GradAccumulated`).
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec

from gviz.site import Frame
from gviz.values import Value

Attr = Any
"""A non-tensor argument: None, bool, int, float, str, or tuples of those (lists once read back from a file)."""

COUNTS = 1 << 32
"""What is counted stays below this."""

Count = Annotated[int, msgspec.Meta(ge=0, lt=COUNTS)]
"""A number that counts something, or names what was counted; events that come from a file are held to its bounds."""

Edge = tuple[Count, Count]
"""``(node, output_nr)``: one output of one node."""

NodeKind = Literal["leaf", "parameter", "constant", "op"]


Change = Literal["life", "value", "requires_grad", "grad", "incoming", "progress", "saved"]
"""What an event can change of nodes: whether they are there, what they hold, whether they take part, their ``.grad``, a
gradient on its way, how far a pass is, their saved tensors."""


class Event(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Base of the vocabulary; never instantiated."""

    changes: ClassVar[tuple[Change, ...]] = ()


class Output(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One output of a node, as it was when the node was made.

    `storage` is the memory it lives in and `version` that memory's counter. A view names the node it is a view of
    (`view_of`, else 0), with `offset` and `strides` in elements of the storage; they are None for a plain C-order array
    that fills its storage. `value` is None for a graph found after it was made, and for one that is built before it
    runs: what it computes when it runs is said as `StorageWritten`.
    """

    value: Value | None
    storage: Count
    version: Count = 0
    view_of: Count = 0
    offset: Count = 0
    strides: tuple[int, ...] | None = None


class NodeCreated(Event, frozen=True):
    """A tensor entered the graph, or an operation ran.

    `inputs` are in argument order, repeated as used; their parameter names are the op's `OpSeen.slots`, of which the
    last repeats for a list argument; ``(0, 0)`` holds the place of one whose origin is not known (a graph found late).
    `attrs` are the non-tensor arguments by name, so that the op can be run again.
    `untracked` is empty for an op that autograd tracks, else why it does not: ``no_grad``, ``detach``, ``data``,
    ``dtype`` (its result cannot have a gradient), ``numbers`` (it takes no more than numbers, as ``torch.tensor`` of a
    list does), ``inputs`` (no input requires grad). `stack` is the user's call
    stack, `scope` the module call it happened in. `during` is ``(pass_nr, node)`` when a backward step made it (graphs
    of gradients), else (0, 0). A Python number that became a constant has the attribute ``number``; a tensor that is
    some leaf's ``.grad`` has ``grad_of``, that leaf.
    """

    changes = ("life", "value")

    node: Count
    op: Count
    kind: NodeKind
    inputs: tuple[Edge, ...]
    outputs: tuple[Output, ...]
    attrs: tuple[tuple[str, Attr], ...]
    requires_grad: bool
    untracked: str
    stack: Count
    scope: Count
    during: Edge = (0, 0)


class StorageWritten(Event, frozen=True):
    """Memory was written in place by `node`; `value` is the whole storage afterwards (one-dimensional, in elements; in
    the shape of the output that fills it, where that output had no value before).

    One event per write, through whichever alias; every view of the storage derives its new value from it.
    """

    changes = ("value",)

    storage: Count
    node: Count
    version: Count
    value: Value


class RequiresGradSet(Event, frozen=True):
    """``requires_grad`` of a leaf was switched after it was made; `stack` is where (0: not known).

    Of one that was made and switched before it was announced, this follows its announcement.
    """

    changes = ("requires_grad",)

    node: Count
    requires_grad: bool
    stack: Count = 0


class BackwardStarted(Event, frozen=True):
    """A backward pass begins at `roots` with the gradients `seeds`; `inputs` as given to ``backward`` or ``grad``."""

    changes = ("progress",)

    pass_nr: Count
    roots: tuple[Edge, ...]
    seeds: tuple[Value, ...]
    retain_graph: bool
    create_graph: bool
    inputs: tuple[Edge, ...]
    stack: Count


class BackwardFinished(Event, frozen=True):
    """The pass is over; `error` is the message of the exception that ended it, else empty, and `raised` its class."""

    changes = ("progress",)

    pass_nr: Count
    error: str = ""
    raised: str = ""


class StepStarted(Event, frozen=True):
    """A node's incoming gradient is complete, one entry per output (None: nothing arrived), and its rule runs now."""

    changes = ("progress",)

    pass_nr: Count
    node: Count
    grads: tuple[Value | None, ...]


class GradFlowed(Event, frozen=True):
    """One contribution went over one edge: from input `slot` of `source` to an output of `node`.

    `total` is the sum at its target so far; None when this is the first contribution, so that the total is `part`.
    """

    changes = ("incoming",)

    pass_nr: Count
    source: Count
    slot: Count
    node: Count
    output_nr: Count
    part: Value
    total: Value | None = None


class StepFinished(Event, frozen=True):
    """The node's rule has run and all its contributions (the `GradFlowed` since `StepStarted`) have arrived."""

    changes = ("progress",)

    pass_nr: Count
    node: Count


class GradAccumulated(Event, frozen=True):
    """`part` was added to a leaf's ``.grad``, which is now `value` (None: there was none before, so it is `part`)."""

    changes = ("grad", "progress")

    pass_nr: Count
    node: Count
    part: Value
    value: Value | None = None


class GradRetained(Event, frozen=True):
    """A non-leaf that asked for it (``retain_grad``) has its ``.grad`` now."""

    changes = ("grad",)

    pass_nr: Count
    node: Count
    output_nr: Count
    value: Value


class GradCaptured(Event, frozen=True):
    """``autograd.grad`` took this gradient as a result instead of accumulating it."""

    changes = ("progress",)

    pass_nr: Count
    node: Count
    output_nr: Count
    value: Value


class GradSet(Event, frozen=True):
    """A ``.grad`` was changed outside a pass: `how` is ``none``, ``zero``, ``assigned`` or ``in place``.

    `stack` is where the program did it; 0 for one that was there before it was recorded.
    """

    changes = ("grad",)

    node: Count
    output_nr: Count
    how: str
    value: Value | None
    stack: Count = 0


class SavedFreed(Event, frozen=True):
    """The tensors a node had saved for its backward rule were released."""

    changes = ("saved",)

    node: Count


class NodeFreed(Event, frozen=True):
    """Nothing in the program refers to the node any more."""

    changes = ("life",)

    node: Count


class ScopeEntered(Event, frozen=True):
    """A module's forward begins: `name` is its path in the model (``net.fc1``), `kind` its class."""

    scope: Count
    parent: Count
    name: str
    kind: str


class ScopeLeft(Event, frozen=True):
    """A module's forward ended."""

    scope: Count


class OptimizerStepped(Event, frozen=True):
    """An optimizer has updated `parameters`; the new values came before it as `StorageWritten`.

    `skipped` are those it has as well that had no gradient, as far as they were announced. It ends the step that
    `OptimizerStarted` has said at the same `stack`. Where an exception ended it, `raised` is its class, and
    `parameters` are those that it had changed by then; in older traces such a step has no end.
    """

    kind: str
    parameters: tuple[Count, ...]
    stack: Count
    skipped: tuple[Count, ...] = ()
    raised: str = ""


class OptimizerStarted(Event, frozen=True):
    """A step of an optimizer of class `kind` begins, called at `stack`.

    What is made at the same `stack` before its `OptimizerStepped` is the optimizer's own arithmetic. What a closure
    does in between is the program's, passes included.
    """

    kind: str
    stack: Count


class HookRan(Event, frozen=True):
    """A hook ran at a node; `value` is what it gave, or None.

    `when` is ``tensor`` for a tensor's hook, ``pre`` and ``post`` for a node's before and after its rule, ``post
    accumulate`` for a leaf's. What a ``tensor`` or ``pre`` hook gives replaces the gradient that has arrived; what a
    ``post`` hook gives goes on, and `output_nr` then counts the inputs that can have a gradient.
    """

    changes = ("progress",)

    pass_nr: Count
    node: Count
    output_nr: Count
    when: str
    name: str
    value: Value | None


class Marked(Event, frozen=True):
    """The program named this moment: ``gviz.mark("epoch 3")``."""

    name: str


class OpSeen(Event, frozen=True):
    """An operation, said once before a node refers to it.

    `grad_fn` is PyTorch's name of its backward node, `slots` the names of its tensor parameters (``tensors...`` for a
    list), `rules` the gradient of each slot as text in which `g` is the incoming gradient and every other name a slot,
    `result` or an attribute, `saved` the names it keeps for backward, `formula` the value as text in the same names.
    """

    op: Count
    name: str
    grad_fn: str
    slots: tuple[str, ...]
    rules: tuple[str, ...]
    saved: tuple[str, ...]
    formula: str = ""


class StackSeen(Event, frozen=True):
    """A call stack of the user's program, innermost frame first, said once before something refers to it."""

    stack: Count
    frames: tuple[Frame, ...]


class SourceSeen(Event, frozen=True):
    """The text of a source file as it was when the program ran; None where it could or should not be kept."""

    path: str
    text: str | None


class Named(Event, frozen=True):
    """A node got a name of its own: a parameter's path in its model."""

    node: Count
    name: str


KeyEntry = tuple[Count, Count, str]
"""One step into what a call gave: the place of a part, how many parts there are, and the name it can be read by (or
empty); the places of a mapping's parts, which has names alone, are not counted."""

KeyPath = tuple[KeyEntry, ...]
"""The way to a part of what a call gave, from the outside in."""


class Returned(Event, frozen=True):
    """An output is a part of what the program's own call at `stack` gave, and `path` is the way to it.

    It is said of calls that give several tensors, or one within a tuple: the indices of ``x.max(1)`` are the part
    ``((1, 2, "indices"),)``, the last of a recurrent module's ``out, (h, c)`` is ``((1, 2, ""), (1, 2, ""))``.
    """

    node: Count
    output_nr: Count
    stack: Count
    path: KeyPath


class Printed(Event, frozen=True):
    """The program wrote to ``stdout`` or ``stderr``."""

    stream: str
    text: str


NOT_SEEN = "NotSeen"
"""The category of a warning by gviz itself: what the program does that no event can show, said once of each kind."""


class Warned(Event, frozen=True):
    """The program warned, or gviz did (category `NOT_SEEN`)."""

    category: str
    message: str
    stack: Count


class Failed(Event, frozen=True):
    """The program raised and did not catch, or was shown after it (``post_mortem``): error class, message, node at
    fault (0: none), the printed traceback."""

    error: str
    message: str
    node: Count
    stack: Count
    traceback: str


KINDS: tuple[type[Event], ...] = (
    NodeCreated, StorageWritten, RequiresGradSet, BackwardStarted, BackwardFinished, StepStarted, GradFlowed,
    StepFinished, GradAccumulated, GradRetained, GradCaptured, GradSet, SavedFreed, NodeFreed, ScopeEntered, ScopeLeft,
    OptimizerStepped, HookRan, Marked, OpSeen, StackSeen, SourceSeen, Named, Printed, Warned, Failed, OptimizerStarted,
    Returned,
)  # fmt: skip
"""Every event class; its index is its number in trace files. Append only."""

DEFINITIONS = (OpSeen, StackSeen, SourceSeen)
"""Events that only introduce a number; a debugger does not stop at them."""


def changing(*what: Change) -> tuple[type[Event], ...]:
    """The events that change one of these."""
    return tuple(kind for kind in KINDS if not set(what).isdisjoint(kind.changes))
