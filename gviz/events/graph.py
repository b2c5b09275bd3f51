"""Events about nodes and memory: creation, writes, changes of ``requires_grad``, release, and names."""

from __future__ import annotations

from typing import Literal

import msgspec

from gviz.events.event import Attr, Count, Edge, Event
from gviz.values.value import Value

NodeKind = Literal["leaf", "parameter", "constant", "op"]


class Output(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One output of a node, as it was when the node was created.

    `storage` is its memory and `version` that memory's version counter. A view names the node it is a view of
    (`view_of`, otherwise 0), with `offset` and `strides` in elements of the storage; they are None for a C-contiguous
    array that fills its storage. `value` is None for a graph that was discovered after its creation, and for one that
    is built before it runs: its results are then recorded as `StorageWritten`.
    """

    value: Value | None
    storage: Count
    version: Count = 0
    view_of: Count = 0
    offset: Count = 0
    strides: tuple[int, ...] | None = None


class NodeCreated(Event, frozen=True):
    """A tensor entered the graph, or an operation ran.

    `inputs` are in argument order, repeated as used. Their parameter names are the op's `OpSeen.slots`; the last
    slot repeats for a list argument. ``(0, 0)`` is an input of unknown origin (a graph discovered late).
    `attrs` are the non-tensor arguments by name, so that the op can be run again.

    `untracked` is empty for an op that autograd tracks. Otherwise it is the reason: ``no_grad``, ``inference``
    (``inference_mode``), ``detach``, ``data``, ``dtype`` (the result cannot have a gradient), ``numbers`` (it takes
    only numbers, such as ``torch.tensor`` of a list), or ``inputs`` (no input requires grad).

    `stack` is the user's call stack, `scope` the module call it happened in. `during` is ``(pass_nr, node)`` if a
    backward step created it (graphs of gradients), otherwise (0, 0). Special attributes: ``number`` for a Python number
    that became a constant; ``grad_of``, the leaf, for a tensor that is its ``.grad``; ``gradient`` for a result of
    ``autograd.grad`` (not always); ``mask`` for the mask of a dropout.

    `given` are the numbers of the inputs (None: they are in the recording anyway). It is set for the first calls of
    each function of the program's own, so that its backward rule can be tested with them.
    """

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
    given: tuple[Value | None, ...] = ()

    @property
    def switched_off(self) -> bool:
        """Whether autograd would have tracked the operation, but was switched off."""
        return self.untracked in ("no_grad", "inference")

    @property
    def first_value(self) -> Value | None:
        """The value of the first output, None if it was not recorded."""
        return self.outputs[0].value if self.outputs else None


class StorageWritten(Event, frozen=True):
    """`node` wrote to memory in place; `value` is the whole storage afterwards.

    The value is one-dimensional, in elements. If the output that fills the storage had no value before, it has that
    output's shape. There is one event per write, through whichever alias; every view of the storage derives its new
    value from it.
    """

    storage: Count
    node: Count
    version: Count
    value: Value


class DataSet(Event, frozen=True):
    """A tensor now holds other data: new memory (``x.data = v``), or, for a leaf, another shape (``x.t_()``).

    `value` is its value afterwards, of any dtype and shape. From then on, writes to its memory are recorded as further
    `DataSet` events, not as `StorageWritten`. `writer` is the operation that wrote to it or changed its form; it is the
    node itself if the program assigned, or an optimizer stepped. `stack` is where the program was. If the data moved to
    another device (``net.to(device)``), `source` is the old device and `device` the new one.
    """

    node: Count
    output_nr: Count
    version: Count
    value: Value
    writer: Count = 0
    stack: Count = 0
    source: str = ""
    device: str = ""


class RequiresGradSet(Event, frozen=True):
    """``requires_grad`` of a leaf was changed after its creation; `stack` is where (0: unknown).

    If a leaf was changed before it was recorded, this event follows its `NodeCreated`.
    """

    node: Count
    requires_grad: bool
    stack: Count = 0


class SavedFreed(Event, frozen=True):
    """The tensors that a node had saved for its backward rule were released."""

    node: Count


class NodeFreed(Event, frozen=True):
    """Nothing in the program refers to the node any more."""

    node: Count


class Reading(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Another formula and other rules of an operation, for calls with certain arguments.

    `given` are argument names and values as text: ``("reduction", "sum")``. `formula` replaces that of the operation
    (empty: none). `words` replace names in its rules: ``("g", "g / number of elements")``. `beside` are slots that must
    hold a tensor.
    """

    given: tuple[tuple[str, str], ...]
    formula: str
    words: tuple[tuple[str, str], ...] = ()
    beside: tuple[str, ...] = ()


HOOK_FUNCTION, HOOK_NAME = "BackwardHookFunction", "backward_hook"
"""The custom function around a module with a full backward hook, as PyTorch calls it, and the operation's name here."""


class OpSeen(Event, frozen=True):
    """An operation, recorded once before a node refers to it.

    `grad_fn` is PyTorch's name of its backward node. `slots` are the names of its tensor parameters (``tensors...`` for
    a list). `rules` has the gradient of each slot as text, in which `g` is the incoming gradient and every other name
    is a slot, `result` or an attribute. `saved` are the names it keeps for backward. `formula` is the value as text in
    the same names. The first of the `readings` that fits a node's call replaces these texts.
    `call` is the public function that made the node, if its name differs: ``cross_entropy`` for ``nll_loss``. `more`
    is true if that call made later nodes, too: it is for the ``log_softmax`` of a ``cross_entropy``.
    """

    op: Count
    name: str
    grad_fn: str
    slots: tuple[str, ...]
    rules: tuple[str, ...]
    saved: tuple[str, ...]
    formula: str = ""
    readings: tuple[Reading, ...] = ()
    call: str = ""
    more: bool = False

    @property
    def base_name(self) -> str:
        """The name without the trailing underscore of in-place operations: ``add`` for ``add_``."""
        return self.name.rstrip("_")

    @property
    def is_of_program(self) -> bool:
        """Whether it is a function of the program (`torch.autograd.Function`), by its name."""
        return self.grad_fn == f"{self.name}Backward"  # PyTorch's own names end with a number: MulBackward0


class Named(Event, frozen=True):
    """A node got a name of its own: a parameter's path in its model. A tied weight has further paths in `also`."""

    node: Count
    name: str
    also: tuple[str, ...] = ()


class VariableHeld(Event, frozen=True):
    """A variable of the program holds a model or a leaf that its path alone does not identify.

    `node` is the first of the model's parameters that is part of the recording, and `path` that parameter's path within
    the variable; empty for a leaf itself. Node 0: nothing of it is part of the recording so far. `function` is where
    the variable is (``<module>``, ``main``).

    Recorded at the start of a backward pass and at the end, for variables that hold something outside the recording,
    for those that could be confused with it, and for parts and leaves that have another name.
    """

    variable: str
    node: Count
    path: str
    function: str


KeyEntry = tuple[Count, Count, str]
"""One step into a call's return value: the position of a part, the number of parts, and the name that reads it (or
empty). Parts of a mapping have only names; their count is 0.
"""

KeyPath = tuple[KeyEntry, ...]
"""The path to a part of a call's return value, from the outside in."""


class Returned(Event, frozen=True):
    """An output is a part of the return value of the program's own call at `stack`; `path` is the path to it.

    Recorded for calls that return several tensors, or one within a tuple. The indices of ``x.max(1)`` are the part
    ``((1, 2, "indices"),)``; the last one in a recurrent module's ``out, (h, c)`` is ``((1, 2, ""), (1, 2, ""))``.
    """

    node: Count
    output_nr: Count
    stack: Count
    path: KeyPath
