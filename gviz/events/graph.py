"""Events about nodes and memory: what is made, written, switched, released, and what it is called."""

from __future__ import annotations

from typing import Literal

import msgspec

from gviz.events.event import Attr, Count, Edge, Event
from gviz.values.value import Value

NodeKind = Literal["leaf", "parameter", "constant", "op"]


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
    `untracked` is empty for an op that autograd tracks, else why it does not: ``no_grad``, ``inference`` (it ran in
    ``inference_mode``), ``detach``, ``data``, ``dtype`` (its result cannot have a gradient), ``numbers`` (it takes no
    more than numbers, as ``torch.tensor`` of a list does), ``inputs`` (no input requires grad). `stack` is the user's
    call stack, `scope` the module call it happened in. `during` is ``(pass_nr, node)`` when a backward step made it
    (graphs of gradients), else (0, 0). A Python number that became a constant has the attribute ``number``; a tensor
    that is some leaf's ``.grad`` has ``grad_of``, that leaf; one that ``autograd.grad`` gave may have ``gradient``; one
    that a dropout drew has ``mask``.
    `given` are the numbers of the inputs (None: they are in the recording anyway), where a call is one of the first of
    a function of the program's own: its rule can be tried with them.
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
    given: tuple[Value | None, ...] = ()

    @property
    def switched_off(self) -> bool:
        """Whether autograd would have tracked the operation, and was switched off there."""
        return self.untracked in ("no_grad", "inference")

    @property
    def first_value(self) -> Value | None:
        """What it made, if that was recorded; of several outputs the first."""
        return self.outputs[0].value if self.outputs else None


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


class DataSet(Event, frozen=True):
    """A tensor has other data from now on: another memory (``x.data = v``), or a leaf another form (``x.t_()``).

    `value` is what it shows then, of whatever dtype and shape. No `StorageWritten` concerns this output any more: what
    is written to the memory that it lies in now is said as this again. `writer` is the operation that wrote or gave it
    another form, or the node itself: the program assigned, or an optimizer stepped. `stack` is where the program was.
    Of data on another device than before (``net.to(device)``), `source` is the device left, and `device` the new one.
    """

    changes = ("value",)

    node: Count
    output_nr: Count
    version: Count
    value: Value
    writer: Count = 0
    stack: Count = 0
    source: str = ""
    device: str = ""


class RequiresGradSet(Event, frozen=True):
    """``requires_grad`` of a leaf was switched after it was made; `stack` is where (0: not known).

    Of one that was made and switched before it was announced, this follows its announcement.
    """

    changes = ("requires_grad",)

    node: Count
    requires_grad: bool
    stack: Count = 0


class SavedFreed(Event, frozen=True):
    """The tensors a node had saved for its backward rule were released."""

    changes = ("saved",)

    node: Count


class NodeFreed(Event, frozen=True):
    """Nothing in the program refers to the node any more."""

    changes = ("life",)

    node: Count


class Reading(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How the texts of an operation read where it was given this.

    `given` are arguments with what they were, as text: ``("reduction", "sum")``. `formula` then takes the place of the
    operation's (empty: it has none), and `words` say what names in its rules stand for: ``("g", "g / number of
    elements")``. `beside` are slots that were given a tensor.
    """

    given: tuple[tuple[str, str], ...]
    formula: str
    words: tuple[tuple[str, str], ...] = ()
    beside: tuple[str, ...] = ()


class OpSeen(Event, frozen=True):
    """An operation, said once before a node refers to it.

    `grad_fn` is PyTorch's name of its backward node, `slots` the names of its tensor parameters (``tensors...`` for a
    list), `rules` the gradient of each slot as text in which `g` is the incoming gradient and every other name a slot,
    `result` or an attribute, `saved` the names it keeps for backward, `formula` the value as text in the same names.
    Of the `readings` the first that fits says how these texts read for what a node's call was given.
    """

    op: Count
    name: str
    grad_fn: str
    slots: tuple[str, ...]
    rules: tuple[str, ...]
    saved: tuple[str, ...]
    formula: str = ""
    readings: tuple[Reading, ...] = ()

    @property
    def base_name(self) -> str:
        """The name whether it writes in place or not: ``add`` of ``add_``, too."""
        return self.name.rstrip("_")

    @property
    def is_of_program(self) -> bool:
        """Whether it is a function of the program (`torch.autograd.Function`): the name says so."""
        return self.grad_fn == f"{self.name}Backward"  # PyTorch's own end in a number: MulBackward0


class Named(Event, frozen=True):
    """A node got a name of its own: a parameter's path in its model, where a tied weight has `also` others."""

    node: Count
    name: str
    also: tuple[str, ...] = ()


class VariableHeld(Event, frozen=True):
    """A variable of the program holds a model, or a leaf: its name alone would be taken for another object.

    `node` is the first of the model's parameters that is part of the recording, and `path` the parameter's path in what
    the variable holds; a leaf itself has an empty path. Node 0: nothing of it was part of the recording so far.
    `function` is where the variable is (``<module>``, ``main``). It is said at the start of a backward pass, and at the
    end, of variables that hold something that has no part in the recording, of what can be mixed up with that, and of
    parts and leaves that have another name.
    """

    variable: str
    node: Count
    path: str
    function: str


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
