"""The closed vocabulary of events about a program's computation graph.

Rules of this package:

1. Every event is frozen and holds only ints, strings, booleans, tuples of those, and `Value`s. No I/O, no behaviour.
2. Subclassing an event is not supported. Consumers use ``match`` on these classes and on nothing else.
3. Sequence number, time and thread belong to the log (the envelope), not to the event.
4. `KINDS` gives each class its number in trace files. Classes are only ever appended, and so are fields of a class
   (with defaults), because old traces stay readable.

To add an event, write a class in one of the files, append it to `KINDS`, and say in `gviz.events.event_effects` what it
sets. Codec, checks, breakpoints, search lists, snapshots and live facts follow from its fields and its effects. Then
add a case in `tests/replay.py`, its description (`gviz.explain.event_description`) and the code that emits it.
``tests/trace/test_vocabulary.py`` names what is missing.

Numbers: nodes, storages, ops, stacks, scopes and passes are counted from 1 in a recording, in the order of their first
mention; 0 means "none". A stack belongs to one thread: the same lines in another thread have stacks of their own. A
**node** is anything that gets a box: a leaf, a constant, or one operation with its outputs, tracked by autograd or not.
``output_nr`` counts a node's outputs from 0, as PyTorch does.

"Gradient accumulation" can mean two things: summing contributions at a fan-out *within* a pass (`GradFlowed`), and
adding to a leaf's ``.grad`` *across* passes (`GradAccumulated`).
"""

from __future__ import annotations

from gviz.events.event import COUNTS, Attr, Count, Edge, Event
from gviz.events.event_effects import (
    DEFINITIONS,
    EFFECTS,
    LASTING,
    OF_SEVERAL_NODES,
    VALUE,
    WHOLE,
    Cell,
    Effect,
    WrittenMemory,
    changing,
    effect,
    grad_left,
    left,
    nodes_of,
    references,
)
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
    "EFFECTS",
    "KINDS",
    "LASTING",
    "NOT_SEEN",
    "OF_SEVERAL_NODES",
    "SILENT",
    "VALUE",
    "WHOLE",
    "Attr",
    "BackwardFinished",
    "BackwardStarted",
    "Cell",
    "Count",
    "DataSet",
    "Edge",
    "Effect",
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
    "WrittenMemory",
    "changing",
    "effect",
    "grad_left",
    "left",
    "nodes_of",
    "references",
]

KINDS: tuple[type[Event], ...] = (
    NodeCreated, StorageWritten, RequiresGradSet, BackwardStarted, BackwardFinished, StepStarted, GradFlowed,
    StepFinished, GradAccumulated, GradRetained, GradCaptured, GradSet, SavedFreed, NodeFreed, ScopeEntered, ScopeLeft,
    OptimizerStepped, HookRan, Marked, OpSeen, StackSeen, SourceSeen, Named, Printed, Warned, Failed, OptimizerStarted,
    Returned, DataSet, VariableHeld,
)  # fmt: skip
"""Every event class; its index is its number in trace files. Append only."""

SILENT = (VariableHeld,)
"""Events that say what names mean, and that nothing happens in: a step of one event passes them."""
