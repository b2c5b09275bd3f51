"""The phases of a program (forward, backward, optimizer), in order of its events."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum, auto

from gviz import events as e
from gviz.trace.graph_state import PhaseKind
from gviz.trace.iterations import GRADIENTS, IterationPattern, Iterations, State, is_tracked
from gviz.trace.optimizer_steps import OptimizerSteps

PHASE_KINDS: tuple[PhaseKind, ...] = (
    "forward", "backward", "optimizer", "failed", "after backward", "after optimizer",
)  # fmt: skip

Row = tuple[int, int, int, int]
"""``(index into PHASE_KINDS, start, end, pass_nr)``; `end` is 0 while the phase lasts."""

DECIDING = (
    e.NodeCreated,
    e.StorageWritten,
    e.DataSet,
    e.GradSet,
    e.OptimizerStarted,
    e.OptimizerStepped,
    e.ScopeEntered,
    e.BackwardStarted,
    e.BackwardFinished,
    e.Failed,
)
"""The events that can begin or end a phase."""


class _State(IntEnum):
    """What a program is doing outside of passes."""

    BEGUN = auto()
    """At the start, after a failure, or after a pass with ``create_graph``: a forward starts or continues."""
    FORWARD = auto()
    CALLED = auto()
    """In a forward, an optimizer step has started. If it calls a closure, the forward continues."""
    PASSED = auto()
    """A pass has ended, and the program reads its loss and outputs."""
    USED = auto()
    """Gradients were used after a pass. If weights are written next, the optimizer phase started here."""
    UPDATING = auto()
    UPDATED = auto()
    """A step has ended. Clearing gradients still belongs to it."""
    LEFT = auto()
    """After a step, the program does something else, or prepares data for its next forward."""


class _EventRole(IntEnum):
    """What an event means for the state."""

    FORWARD = auto()
    """Autograd tracks a new node, or a module is called."""
    GRADIENT = auto()
    """A gradient is used or cleared."""
    START = auto()
    """An optimizer step starts."""
    WEIGHT = auto()
    """The memory of a leaf is written."""
    OWN = auto()
    """A running optimizer step computed something, or wrote memory outside of a forward in its closure."""
    END = auto()
    """A step has ended."""
    OTHER = auto()


_BEGUN, _FORWARD, _CALLED, _PASSED, _USED, _UPDATING, _UPDATED, _LEFT = _State

_THEN = {
    # after     FORWARD   GRADIENT   START      WEIGHT     OWN        END       OTHER
    _BEGUN:    (_FORWARD, _FORWARD,  _CALLED,   _FORWARD,  _UPDATING, _UPDATED, _FORWARD),
    _FORWARD:  (_FORWARD, _FORWARD,  _CALLED,   _FORWARD,  _UPDATING, _UPDATED, _FORWARD),
    _CALLED:   (_FORWARD, _CALLED,   _CALLED,   _UPDATING, _UPDATING, _UPDATED, _CALLED),
    _PASSED:   (_FORWARD, _USED,     _UPDATING, _UPDATING, _UPDATING, _UPDATED, _PASSED),
    _USED:     (_FORWARD, _USED,     _UPDATING, _UPDATING, _UPDATING, _UPDATED, _USED),
    _UPDATING: (_FORWARD, _UPDATING, _UPDATING, _UPDATING, _UPDATING, _UPDATED, _UPDATING),
    _UPDATED:  (_FORWARD, _UPDATED,  _UPDATING, _LEFT,     _UPDATING, _UPDATED, _LEFT),
    _LEFT:     (_FORWARD, _LEFT,     _UPDATING, _LEFT,     _UPDATING, _UPDATED, _LEFT),
}  # fmt: skip
_NEXT = {(state, sign): then for state, row in _THEN.items() for sign, then in zip(_EventRole, row, strict=True)}

_KINDS: dict[_State, PhaseKind] = {
    _FORWARD: "forward",
    _CALLED: "forward",
    _PASSED: "after backward",
    _USED: "after backward",
    _UPDATING: "optimizer",
    _UPDATED: "optimizer",
    _LEFT: "after optimizer",
}
_LEAVES = ("leaf", "parameter")
_BOUNDS = (e.Failed, e.BackwardStarted, e.BackwardFinished)


class Gradients:
    """Tracks the nodes that are a leaf's ``.grad``, and the nodes computed from them."""

    def __init__(self) -> None:
        self._by_leaf: dict[int, int] = {}
        self._known: set[int] = set()
        self._made: set[int] = set()  # computed from gradients since the last pass
        self._kept: set[int] = set()  # computed from gradients before an earlier pass, such as a momentum

    def process(self, created: e.NodeCreated) -> bool:
        """Record a new node. Return whether it is a gradient, or is computed directly from a leaf's gradient."""
        attrs = dict(created.attrs)
        leaf = attrs.get("grad_of")
        if isinstance(leaf, int):
            self._known.discard(self._by_leaf.get(leaf, 0))  # a leaf has one ``.grad``
            self._by_leaf[leaf] = created.node
            self._known.add(created.node)
            return True
        used = not GRADIENTS.isdisjoint(attrs) or any(node in self._known for node, _ in created.inputs)
        if used or any(node in self._made for node, _ in created.inputs):
            self._made.add(created.node)
            if created.untracked == "inputs" and any(output.version for output in created.outputs):
                # it wrote to the memory of this input, which is not a leaf
                self._made.update(node for node, _ in created.inputs[:1])
        return used

    def uses_kept(self, created: e.NodeCreated) -> bool:
        """Return whether a new node is computed from results of earlier gradients, such as the momentum of the last
        step.
        """
        return any(node in self._kept for node, _ in created.inputs)

    def end_pass(self) -> None:
        """Process the end of a pass: values computed from gradients before it count as kept."""
        if self._made:
            self._kept, self._made = self._made, set()


class PhaseTracker:
    """Divides a log into phases and iterations, in order of its events, and finds optimizer steps.

    A pass is a phase. Outside of passes, `_role_of` classifies each event, and the table `_THEN` has the next state. A
    phase lasts while the states have its kind (`_KINDS`). A forward starts where its graph starts, or at data that was
    prepared for it earlier (see `Iterations`). `patterns` are loop iterations that are known before the log starts.
    """

    def __init__(self, patterns: Iterable[IterationPattern] = ()) -> None:
        self.rows: list[Row] = []
        self.iterations = Iterations(patterns)
        self._gradients = Gradients()
        self._weights: set[int] = set()  # the memory of leaves
        self._state = _BEGUN

    def process(self, seq: int, event: e.Event) -> None:
        """Process the next event, one of `DECIDING`."""
        created = event if isinstance(event, e.NodeCreated) else None
        if created and created.kind in _LEAVES:
            self._weights.update(output.storage for output in created.outputs)
        if created and self.iterations.state is State.FORWARD and self._state is _FORWARD:
            return  # the case for almost every event
        running_before = len(self.iterations.running)
        start = self.iterations.process(seq, event)
        if event.__class__ in _BOUNDS:
            self._begin_or_end(seq, event, running_before)
        elif not running_before and not (created and self._state is _UPDATING and not is_tracked(created)):
            self._process_outside_passes(start, seq, event)

    @property
    def steps(self) -> OptimizerSteps:
        """The optimizer steps."""
        return self.iterations.steps

    def _begin_or_end(self, seq: int, event: e.Event, running_before: int) -> None:
        """Process a failure, or the start or end of a pass. Before it, `running_before` passes were running."""
        if isinstance(event, e.Failed):
            self._begin("failed", seq)
            self._state = _BEGUN
        elif isinstance(event, e.BackwardStarted) and not running_before:
            self._begin("backward", seq, event.pass_nr)
        elif isinstance(event, e.BackwardFinished) and not self.iterations.running:
            self._state = _BEGUN if self.iterations.state is not State.PASSED else _PASSED
            self._gradients.end_pass()
            if self._phase == "backward":
                self._end(seq)

    def _process_outside_passes(self, start: int, seq: int, event: e.Event) -> None:
        """Process an event outside of passes. `start` is the start of a graph that it reveals, otherwise 0."""
        before, self._state = self._state, _NEXT[self._state, self._role_of(event)]
        kind = _KINDS[self._state]
        if kind == "forward" and self._phase != "forward":
            start = start or self.iterations.prepared_from  # include its data, which autograd does not track
        if before is _USED and kind == "optimizer":
            self.rows[-1] = (PHASE_KINDS.index(kind), *self.rows[-1][1:])
        elif start or kind != self._phase or (self._state is _USED and before is not _USED):
            self._begin(kind, start or seq)

    def _role_of(self, event: e.Event) -> _EventRole:
        match event:
            case e.OptimizerStarted():
                return _EventRole.START
            case e.OptimizerStepped():
                return _EventRole.OWN if self.steps.running else _EventRole.END
            case e.StorageWritten() | e.DataSet():
                return self._role_of_write(event)
            case e.GradSet():
                return _EventRole.GRADIENT
            case e.NodeCreated() if not is_tracked(event):
                if self.steps.computes(event):
                    return _EventRole.OWN
                used = self._gradients.process(event) or (self._state is _PASSED and self._gradients.uses_kept(event))
                return _EventRole.GRADIENT if used else _EventRole.OTHER
        return _EventRole.FORWARD

    def _role_of_write(self, write: e.StorageWritten | e.DataSet) -> _EventRole:
        if self.steps.running and self._state is not _FORWARD:
            return _EventRole.OWN
        of_leaf = isinstance(write, e.DataSet) or write.storage in self._weights
        return _EventRole.WEIGHT if of_leaf else _EventRole.OTHER

    @property
    def _phase(self) -> PhaseKind | None:
        """The kind of the current phase."""
        return PHASE_KINDS[self.rows[-1][0]] if self.rows and not self.rows[-1][2] else None

    def _begin(self, kind: PhaseKind, start: int, pass_nr: int = 0) -> None:
        """Begin a phase at an event, which may be earlier than the current one."""
        while self.rows and self.rows[-1][1] >= start:
            self.rows.pop()
        if self.rows:
            self._end(min(self.rows[-1][2] or start - 1, start - 1))
        self.rows.append((PHASE_KINDS.index(kind), start, 0, pass_nr))

    def _end(self, seq: int) -> None:
        self.rows[-1] = (*self.rows[-1][:2], seq, self.rows[-1][3])
