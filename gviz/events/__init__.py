"""The closed vocabulary of events about a program's computation graph.

Rules of this package:

1. Every event is frozen and holds only ints, strings, booleans, tuples of those, and `Value`s. No I/O, no behaviour.
2. Subclassing an event is not supported. Consumers `match` on these classes and on nothing else.
3. Sequence number, time and thread belong to the log (the envelope), not to the event.
4. `KINDS` gives each class its number in trace files. Classes are only ever appended, and so are fields of a class
   (with defaults), because old traces stay readable.

To add an event, write a class in one of the files, append it to `KINDS`, and declare in `changes` what it changes of a
node. Codec, checks, breakpoints and the timeline's search lists follow from its fields and from `changes`. Then add its
effect (a case in `tests/replay.py`, and in `gviz.trace.index.node_state` for something new), its description
(`gviz.explain.event_description`) and the code that emits it. ``tests/trace/test_vocabulary.py`` names what is missing.

Numbers: nodes, storages, ops, stacks, scopes and passes are counted from 1 in a recording, in the order of their first
mention; 0 means "none". A stack belongs to one thread: the same lines in another thread have stacks of their own. A
**node** is anything that gets a box: a leaf, a constant, or one operation with its outputs, tracked by autograd or not.
``output_nr`` counts a node's outputs from 0, as PyTorch does.

"Gradient accumulation" can mean two things: summing contributions at a fan-out *within* a pass (`GradFlowed`), and
adding to a leaf's ``.grad`` *across* passes (`GradAccumulated`).
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
    "SILENT",
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
"""Events that only define a number; a debugger does not stop at them."""

SILENT = (VariableHeld,)
"""Events that say what names mean, and that nothing happens in: a step of one event passes them."""


def changing(*what: Change) -> tuple[type[Event], ...]:
    """Return the event classes that change any of these."""
    return tuple(kind for kind in KINDS if not set(what).isdisjoint(kind.changes))
