"""The closed vocabulary of what a program can say about its computation graph.

Rules of this package:

1. Every event is frozen and holds only ints, strings, booleans, tuples of those, and `Value`s. No I/O, no behaviour.
2. Subclassing an event is not supported; consumers `match` on these classes and on nothing else.
3. Sequence number, time and thread are the log's (the envelope), not the event's.
4. `KINDS` gives each class its number in trace files. It is only ever appended to, and so are the fields of a class
   (with defaults), because old traces stay readable.

A new event is a class in one of the files, last in `KINDS`, that declares in `changes` what of a node is something else
after it. Codec, checks, breakpoints and the lists by which a timeline searches follow from its fields and from that.
What remains is to say what it does (a case in `tests/replay.py`, for something new one in
`gviz.trace.index.node_state`), what a reader is told (`gviz.explain.event_description`) and where it is said;
``tests/trace/test_vocabulary.py`` names the missing.

Numbers: nodes, storages, ops, stacks, scopes and passes are counted from 1 within a recording, in the order in which
they are first spoken of; 0 means "none". A stack is of one thread: the same lines in another have their own. A
**node** is anything that gets a box: a leaf, a constant, or one operation with its outputs, tracked by autograd or not.
``output_nr`` counts a node's outputs from 0, as PyTorch does.

"Gradient accumulation" is two things: summing contributions at a fan-out *within* a pass (`GradFlowed`), and adding to
a leaf's ``.grad`` *across* passes (`GradAccumulated`).
"""

from __future__ import annotations

from gviz.events.event import COUNTS, Attr, Change, Count, Edge, Event
from gviz.events.gradients import (
    BackwardFinished,
    BackwardStarted,
    GradAccumulated,
    GradCaptured,
    GradFlowed,
    GradRetained,
    GradSet,
    HookRan,
    StepFinished,
    StepStarted,
    grad_left,
)
from gviz.events.graph import (
    DataSet,
    KeyEntry,
    KeyPath,
    Named,
    NodeCreated,
    NodeFreed,
    NodeKind,
    OpSeen,
    Output,
    Reading,
    RequiresGradSet,
    Returned,
    SavedFreed,
    StorageWritten,
    VariableHeld,
)
from gviz.events.program import (
    NOT_SEEN,
    Failed,
    Marked,
    OptimizerStarted,
    OptimizerStepped,
    Printed,
    ScopeEntered,
    ScopeLeft,
    SourceSeen,
    StackSeen,
    Unseen,
    Warned,
)

__all__ = [
    "COUNTS",
    "DEFINITIONS",
    "KINDS",
    "NOT_SEEN",
    "Attr",
    "BackwardFinished",
    "BackwardStarted",
    "Change",
    "Count",
    "DataSet",
    "Edge",
    "Event",
    "Failed",
    "GradAccumulated",
    "GradCaptured",
    "GradFlowed",
    "GradRetained",
    "GradSet",
    "HookRan",
    "KeyEntry",
    "KeyPath",
    "Marked",
    "Named",
    "NodeCreated",
    "NodeFreed",
    "NodeKind",
    "OpSeen",
    "OptimizerStarted",
    "OptimizerStepped",
    "Output",
    "Printed",
    "Reading",
    "RequiresGradSet",
    "Returned",
    "SavedFreed",
    "ScopeEntered",
    "ScopeLeft",
    "SourceSeen",
    "StackSeen",
    "StepFinished",
    "StepStarted",
    "StorageWritten",
    "Unseen",
    "VariableHeld",
    "Warned",
    "changing",
    "grad_left",
]

KINDS: tuple[type[Event], ...] = (
    NodeCreated, StorageWritten, RequiresGradSet, BackwardStarted, BackwardFinished, StepStarted, GradFlowed,
    StepFinished, GradAccumulated, GradRetained, GradCaptured, GradSet, SavedFreed, NodeFreed, ScopeEntered, ScopeLeft,
    OptimizerStepped, HookRan, Marked, OpSeen, StackSeen, SourceSeen, Named, Printed, Warned, Failed, OptimizerStarted,
    Returned, DataSet, VariableHeld,
)  # fmt: skip
"""Every event class; its index is its number in trace files. Append only."""

DEFINITIONS = (OpSeen, StackSeen, SourceSeen)
"""Events that only introduce a number; a debugger does not stop at them."""


def changing(*what: Change) -> tuple[type[Event], ...]:
    """The events that change one of these."""
    return tuple(kind for kind in KINDS if not set(what).isdisjoint(kind.changes))
