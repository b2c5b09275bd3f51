"""What every event means: the things that it sets, and what it leaves there.

The state of a program consists of *cells*. The ``.grad`` of output 0 of node 4 is a cell, the memory of storage 7 is
another. An event sets some cells and does nothing else, so the state at a moment is the last effect on each cell.
`EFFECTS` is the only definition. Everything that answers questions about state derives from it:

* the index lists the events of each cell, and a timeline finds the last one by search (`gviz.trace.index`);
* the snapshot of a shortened recording repeats the last event of each cell that outlasts a pass
  (`gviz.trace.file.snapshot`);
* a paused program keeps the last content of a few cells (`gviz.live.node_cache`).

``tests/replay.py`` says the same as a plain program, event by event. It does not use this table, and the tests compare
both.

Example: ``y = x * x; y.backward()`` with a leaf ``x`` (node 1) and a product ``y`` (node 2)::

    NodeCreated(1), NodeCreated(2)      node[1], node[2]       the events
    BackwardStarted(pass 1, root 2.0)   pass[1]                running
                                        seed[2.0]              slot 0, the value 1
    StepStarted(2)                      rule[2], step[2]       running
    GradFlowed(2 -> 1.0), twice         arrived[1.0]           the first part, then the sum
    StepFinished(2)                     rule_end[2], step[2]   done
    GradAccumulated(1)                  grad[1.0], step[1]     the sum, done
    BackwardFinished(pass 1)            pass_end[1]            no error

What begins and ends (a node, a pass, a backward rule, a module call) has two cells, because both events are searched
for. Phases, iterations and optimizer steps are not here: they are read from several events, by the state machines
`gviz.trace.phases`, `gviz.trace.iterations` and `gviz.trace.optimizer_steps`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Literal, NamedTuple

from gviz.events.event import Edge, Event
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
    Named,
    NodeCreated,
    NodeFreed,
    OpSeen,
    RequiresGradSet,
    Returned,
    SavedFreed,
    StorageWritten,
    VariableHeld,
)
from gviz.events.program import (
    Failed,
    Marked,
    OptimizerStarted,
    OptimizerStepped,
    Printed,
    ScopeEntered,
    ScopeLeft,
    SourceSeen,
    StackSeen,
    Warned,
)
from gviz.values.value import Value

Cell = Literal[
    "node", "freed", "memory", "data", "requires_grad", "grad", "saved", "name", "part", "call", "call_end",
    "pass", "pass_end", "seed", "arrived", "replaced", "step", "rule", "rule_end",
    "op", "stack", "source",
]  # fmt: skip
"""What an event can set, and for what:

``node``, ``freed``: a node, which exists or is not referred to any more; ``memory``: the elements of a storage;
``data``: the value of an output that has left its memory; ``requires_grad`` of a node; ``grad``: the ``.grad`` of an
output; ``saved``: the tensors that a node saved, which are released; ``name``: the names that the program gave a node;
``part``: the place of an output in a call's return value; ``call``, ``call_end``: a module call.

In a pass: ``pass``, ``pass_end``: the pass itself; ``seed``: what it starts with at an output; ``arrived``: the sum of
the contributions to an output; ``replaced``: the gradient that a hook put in place of that sum; ``step``: how far a
node is; ``rule``, ``rule_end``: its running backward rule.

``op``, ``stack``, ``source``: what a number or a path refers to, without a moment.
"""

LASTING: tuple[Cell, ...] = (
    "node", "freed", "memory", "data", "requires_grad", "grad", "saved", "name", "part", "call", "call_end",
)  # fmt: skip
"""The cells that outlast a pass."""

VALUE: tuple[Cell, ...] = ("node", "memory", "data")
"""The cells that the value of a tensor depends on."""


class WrittenMemory(NamedTuple):
    """What is left in memory: its elements, its version, and the node that wrote them (0: none)."""

    value: Value
    version: int
    writer: int


class Effect(NamedTuple):
    """An event sets a cell. `sets` returns pairs of what the cell belongs to and what is left there.

    A node is given by its number, an output as ``(node, output_nr)``.
    """

    cell: Cell
    sets: Callable[[Any], Iterable[tuple[Any, Any]]]


def _of_node(cell: Cell, left: Callable[[Any], Any]) -> Effect:
    return Effect(cell, lambda event: ((event.node, left(event)),))


def _of_output(cell: Cell, left: Callable[[Any], Any]) -> Effect:
    return Effect(cell, lambda event: (((event.node, event.output_nr), left(event)),))


def _seeds(event: BackwardStarted) -> list[tuple[Edge, tuple[int, Value]]]:
    return [(root, (slot, seed)) for slot, (root, seed) in enumerate(zip(event.roots, event.seeds, strict=False))]


def _replacement(event: HookRan) -> Iterable[tuple[Edge, Value]]:
    """A hook of a tensor, or before a backward rule, replaces the gradient; other hooks see other gradients."""
    replaces = event.value is not None and event.when in ("tensor", "pre")
    return (((event.node, event.output_nr), event.value),) if replaces and event.value is not None else ()


EFFECTS: dict[type[Event], tuple[Effect, ...]] = {
    # the graph
    NodeCreated: (_of_node("node", lambda event: event),),
    NodeFreed: (_of_node("freed", lambda event: True),),
    StorageWritten: (
        Effect("memory", lambda event: ((event.storage, WrittenMemory(event.value, event.version, event.node)),)),
    ),
    DataSet: (_of_output("data", lambda event: WrittenMemory(event.value, event.version, event.writer)),),
    RequiresGradSet: (_of_node("requires_grad", lambda event: event.requires_grad),),
    SavedFreed: (_of_node("saved", lambda event: "freed"),),
    Named: (_of_node("name", lambda event: (event.name, *event.also)),),
    Returned: (_of_output("part", lambda event: event.path),),
    # backward passes
    BackwardStarted: (Effect("pass", lambda event: ((event.pass_nr, "running"),)), Effect("seed", _seeds)),
    StepStarted: (_of_node("rule", lambda event: "running"), _of_node("step", lambda event: "running")),
    GradFlowed: (_of_output("arrived", lambda event: event.part if event.total is None else event.total),),
    HookRan: (Effect("replaced", _replacement),),
    StepFinished: (_of_node("rule_end", lambda event: "done"), _of_node("step", lambda event: "done")),
    GradCaptured: (_of_node("step", lambda event: "done"),),
    GradAccumulated: (
        _of_node("step", lambda event: "done"),
        Effect("grad", lambda event: (((event.node, 0), event.part if event.value is None else event.value),)),
    ),
    BackwardFinished: (Effect("pass_end", lambda event: ((event.pass_nr, event.error),)),),
    # .grad
    GradRetained: (_of_output("grad", lambda event: event.value),),
    GradSet: (_of_output("grad", lambda event: event.value),),
    # the program around the graph
    ScopeEntered: (Effect("call", lambda event: ((event.scope, (event.name, event.parent)),)),),
    ScopeLeft: (Effect("call_end", lambda event: ((event.scope, True),)),),
    OptimizerStarted: (),
    OptimizerStepped: (),
    VariableHeld: (),
    Marked: (),
    Printed: (),
    Warned: (),
    Failed: (),
    # definitions
    OpSeen: (Effect("op", lambda event: ((event.op, event),)),),
    StackSeen: (Effect("stack", lambda event: ((event.stack, event),)),),
    SourceSeen: (Effect("source", lambda event: ((event.path, event.text),)),),
}
"""By event class: its effects, in the order of the classes' own docstrings. Empty: it changes nothing of the graph."""


def changing(*cells: Cell) -> tuple[type[Event], ...]:
    """Return the event classes that can set any of these cells."""
    return tuple(kind for kind, effects in EFFECTS.items() if any(effect.cell in cells for effect in effects))


@cache
def effect(kind: type[Event], cell: Cell) -> Effect | None:
    """Return the effect of an event class on a cell, None if it has none."""
    return next((each for each in EFFECTS[kind] if each.cell == cell), None)


def left(event: Event, cell: Cell) -> Any:
    """Return what an event leaves in the first cell of this kind; None if it sets none."""
    matching = effect(event.__class__, cell)
    return next((content for _, content in matching.sets(event)), None) if matching is not None else None


def grad_left(event: Event) -> Value | None:
    """Return the ``.grad`` after an event; None if the event removes it or does not change it."""
    value: Value | None = left(event, "grad")
    return value


DEFINITIONS = changing("op", "stack", "source")
"""Events that only define a number; a debugger does not stop at them."""


OF_SEVERAL_NODES = (BackwardStarted, OptimizerStepped)
"""The events that are about several nodes; any other names its node in the field `node`, if it has one."""


def nodes_of(event: Event) -> tuple[int, ...]:
    """Return the nodes that an event is about: its own, the roots of a pass, the parameters of an optimizer step."""
    match event:
        case BackwardStarted(roots=roots):
            return tuple(dict.fromkeys(node for node, _ in roots))
        case OptimizerStepped(parameters=parameters):
            return parameters
    node: int = getattr(event, "node", 0)
    return (node,) if node else ()


WHOLE = -1
"""In `references`: a node, not one of its outputs."""


def references(event: Event) -> Iterator[Edge]:
    """Yield every output that an event names, ``(node, WHOLE)`` for a node; node 0 is none."""
    match event:
        case NodeCreated(inputs=inputs, outputs=outputs, during=(_, node)):
            yield from inputs
            yield from ((output.view_of, WHOLE) for output in outputs)
            yield node, WHOLE
        case BackwardStarted(roots=roots, inputs=inputs):
            yield from roots
            yield from inputs
        case OptimizerStepped(parameters=parameters, skipped=skipped):
            yield from ((node, WHOLE) for node in (*parameters, *skipped))
        case _:
            yield getattr(event, "node", 0), getattr(event, "output_nr", WHOLE)
