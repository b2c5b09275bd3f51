"""Reads the events of a recording in order and divides them into phases (forward, backward, optimizer).

`PhaseTracker` is a state machine like `Iterations`, which it contains: a table has the next state for each state and
role of an event.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum, auto

from gviz import events as e
from gviz.trace.graph_state import PhaseKind
from gviz.trace.iterations import GRADIENT_ATTRIBUTES, IterationPattern, Iterations, State, is_tracked
from gviz.trace.optimizer_steps import OptimizerSteps

PHASE_KINDS: tuple[PhaseKind, ...] = (
    "forward", "backward", "optimizer", "failed", "after backward", "after optimizer",
)  # fmt: skip

PhaseRow = tuple[int, int, int, int]
"""``(index into PHASE_KINDS, start, end, pass_nr)``; `end` is 0 while the phase lasts."""

PHASE_EVENTS = (
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
"""The events that can begin or end a phase, an iteration or an optimizer step."""


class _State(IntEnum):
    """What the program is doing outside of passes."""

    BEFORE_FORWARD = auto()
    """The program has started, has failed, or has run a pass with ``create_graph``. A forward starts or continues."""
    FORWARD = auto()
    FORWARD_STEP = auto()
    """An optimizer step has started during a forward. If it calls a closure, the forward continues."""
    AFTER_PASS = auto()
    """A pass has ended, and the program reads its loss and outputs."""
    GRADIENTS_USED = auto()
    """Gradients were used after a pass. If weights are written next, the optimizer phase started here."""
    UPDATE = auto()
    """An optimizer step is running, or the program writes its weights without an optimizer."""
    STEP_ENDED = auto()
    """A step has ended. Clearing gradients still belongs to it."""
    AFTER_STEP = auto()
    """A step has ended, and the program does something else or prepares data for its next forward."""


class _EventRole(IntEnum):
    """What an event outside of passes means for the state."""

    FORWARD = auto()
    """Autograd tracks a new node, or a module is called."""
    GRADIENT_USE = auto()
    """A gradient is used or cleared."""
    STEP_START = auto()
    """An optimizer step starts."""
    WEIGHT_WRITE = auto()
    """The memory of a leaf is written."""
    BY_STEP = auto()
    """A running optimizer step computed something or wrote memory, or another step ended within it. A write during a
    forward in its closure does not count.
    """
    STEP_END = auto()
    """A step has ended."""
    OTHER = auto()


_BEFORE_FORWARD, _FORWARD, _FORWARD_STEP, _AFTER_PASS, _GRADIENTS_USED, _UPDATE, _STEP_ENDED, _AFTER_STEP = _State

_TRANSITION_ROWS = {
    # after           FORWARD   GRADIENT_USE     STEP_START     WEIGHT_WRITE  BY_STEP  STEP_END     OTHER
    _BEFORE_FORWARD: (_FORWARD, _FORWARD,        _FORWARD_STEP, _FORWARD,     _UPDATE, _STEP_ENDED, _FORWARD),
    _FORWARD:        (_FORWARD, _FORWARD,        _FORWARD_STEP, _FORWARD,     _UPDATE, _STEP_ENDED, _FORWARD),
    _FORWARD_STEP:   (_FORWARD, _FORWARD_STEP,   _FORWARD_STEP, _UPDATE,      _UPDATE, _STEP_ENDED, _FORWARD_STEP),
    _AFTER_PASS:     (_FORWARD, _GRADIENTS_USED, _UPDATE,       _UPDATE,      _UPDATE, _STEP_ENDED, _AFTER_PASS),
    _GRADIENTS_USED: (_FORWARD, _GRADIENTS_USED, _UPDATE,       _UPDATE,      _UPDATE, _STEP_ENDED, _GRADIENTS_USED),
    _UPDATE:         (_FORWARD, _UPDATE,         _UPDATE,       _UPDATE,      _UPDATE, _STEP_ENDED, _UPDATE),
    _STEP_ENDED:     (_FORWARD, _STEP_ENDED,     _UPDATE,       _AFTER_STEP,  _UPDATE, _STEP_ENDED, _AFTER_STEP),
    _AFTER_STEP:     (_FORWARD, _AFTER_STEP,     _UPDATE,       _AFTER_STEP,  _UPDATE, _STEP_ENDED, _AFTER_STEP),
}  # fmt: skip
_NEXT_STATE = {
    (state, role): next_state
    for state, row in _TRANSITION_ROWS.items()
    for role, next_state in zip(_EventRole, row, strict=True)
}
"""The next state, by current state and role of the event."""

_PHASE_OF_STATE: dict[_State, PhaseKind] = {
    _FORWARD: "forward",
    _FORWARD_STEP: "forward",
    _AFTER_PASS: "after backward",
    _GRADIENTS_USED: "after backward",
    _UPDATE: "optimizer",
    _STEP_ENDED: "optimizer",
    _AFTER_STEP: "after optimizer",
}
_LEAVES = ("leaf", "parameter")
_BOUNDS = (e.Failed, e.BackwardStarted, e.BackwardFinished)


class Gradients:
    """Tracks the nodes that are a leaf's ``.grad``, and the nodes computed from them."""

    def __init__(self) -> None:
        self._by_leaf: dict[int, int] = {}
        self._grad_nodes: set[int] = set()
        self._results: set[int] = set()  # computed from gradients since the last pass
        # computed from gradients before the end of the last pass, such as a momentum
        self._earlier_results: set[int] = set()

    def process(self, created: e.NodeCreated) -> bool:
        """Record a new node. Return whether it is a gradient, or is computed directly from a leaf's gradient."""
        attrs = dict(created.attrs)
        leaf = attrs.get("grad_of")
        if isinstance(leaf, int):
            self._grad_nodes.discard(self._by_leaf.get(leaf, 0))  # a leaf has one ``.grad``
            self._by_leaf[leaf] = created.node
            self._grad_nodes.add(created.node)
            return True
        used = not GRADIENT_ATTRIBUTES.isdisjoint(attrs) or any(node in self._grad_nodes for node, _ in created.inputs)
        if used or any(node in self._results for node, _ in created.inputs):
            self._results.add(created.node)
            if created.untracked == "inputs" and any(output.version for output in created.outputs):
                # it wrote to the memory of this input, which is not a leaf
                self._results.update(node for node, _ in created.inputs[:1])
        return used

    def uses_earlier_results(self, created: e.NodeCreated) -> bool:
        """Return whether a new node is computed from one that was computed from gradients before the end of the last
        pass, such as the momentum of the last step.
        """
        return any(node in self._earlier_results for node, _ in created.inputs)

    def end_pass(self) -> None:
        """Process the end of a pass: what was computed from gradients so far now counts as earlier."""
        if self._results:
            self._earlier_results, self._results = self._results, set()


class PhaseTracker:
    """Reads events in order, divides them into phases and iterations, and finds the optimizer steps.

    A pass is a phase. Outside of passes, `_role_of` finds the role of each event, and the table `_TRANSITION_ROWS` has
    the next state. A phase lasts as long as `_PHASE_OF_STATE` maps each new state to it. A forward starts where its
    graph starts, or at data that was prepared for it earlier (see `Iterations`). `patterns` are loop iterations found
    in earlier events, which the recording has since dropped.
    """

    def __init__(self, patterns: Iterable[IterationPattern] = ()) -> None:
        self.rows: list[PhaseRow] = []
        self.iterations = Iterations(patterns)
        self._gradients = Gradients()
        self._leaf_storages: set[int] = set()
        self._state = _BEFORE_FORWARD

    def process(self, seq: int, event: e.Event) -> None:
        """Process the next event, one of `PHASE_EVENTS`."""
        created = event if isinstance(event, e.NodeCreated) else None
        if created and created.kind in _LEAVES:
            self._leaf_storages.update(output.storage for output in created.outputs)
        if created and self.iterations.state is State.FORWARD and self._state is _FORWARD:
            has_new_start = self.iterations.awaits_results or created.kind in _LEAVES
            if has_new_start and (start := self.iterations.process(seq, event)):
                self._begin("forward", start)
            return  # the case for almost every event
        running_before = len(self.iterations.running_passes)
        start = self.iterations.process(seq, event)
        if event.__class__ in _BOUNDS:
            self._begin_or_end(seq, event, running_before)
        elif not running_before and not (created and self._state is _UPDATE and not is_tracked(created)):
            self._process_outside_passes(start, seq, event)

    @property
    def steps(self) -> OptimizerSteps:
        """The optimizer steps."""
        return self.iterations.steps

    def _begin_or_end(self, seq: int, event: e.Event, running_before: int) -> None:
        """Process a failure, or the start or end of a pass. Before it, `running_before` passes were running."""
        if isinstance(event, e.Failed):
            self._begin("failed", seq)
            self._state = _BEFORE_FORWARD
        elif isinstance(event, e.BackwardStarted) and not running_before:
            self._begin("backward", seq, event.pass_nr)
        elif isinstance(event, e.BackwardFinished) and not self.iterations.running_passes:
            self._state = _BEFORE_FORWARD if self.iterations.state is not State.AFTER_PASS else _AFTER_PASS
            self._gradients.end_pass()
            if self._phase == "backward":
                self._end(seq)

    def _process_outside_passes(self, start: int, seq: int, event: e.Event) -> None:
        """Process an event outside of passes. `start` is the event at which a graph starts if this event shows that
        one has started, otherwise 0.
        """
        previous_state, self._state = self._state, _NEXT_STATE[self._state, self._role_of(event)]
        kind = _PHASE_OF_STATE[self._state]
        if kind == "forward" and self._phase != "forward":
            start = start or self.iterations.prepared_from  # include its data, which autograd does not track
        if previous_state is _GRADIENTS_USED and kind == "optimizer":
            self.rows[-1] = (PHASE_KINDS.index(kind), *self.rows[-1][1:])
        elif start or kind != self._phase or (self._state is _GRADIENTS_USED and previous_state is not _GRADIENTS_USED):
            self._begin(kind, start or seq)

    def _role_of(self, event: e.Event) -> _EventRole:
        match event:
            case e.OptimizerStarted():
                return _EventRole.STEP_START
            case e.OptimizerStepped():
                return _EventRole.BY_STEP if self.steps.running else _EventRole.STEP_END
            case e.StorageWritten() | e.DataSet():
                return self._role_of_write(event)
            case e.GradSet():
                return _EventRole.GRADIENT_USE
            case e.NodeCreated() if not is_tracked(event):
                if self.steps.computes(event):
                    return _EventRole.BY_STEP
                uses_gradient = self._gradients.process(event) or (
                    self._state is _AFTER_PASS and self._gradients.uses_earlier_results(event)
                )
                return _EventRole.GRADIENT_USE if uses_gradient else _EventRole.OTHER
        return _EventRole.FORWARD

    def _role_of_write(self, write: e.StorageWritten | e.DataSet) -> _EventRole:
        if self.steps.running and self._state is not _FORWARD:
            return _EventRole.BY_STEP
        of_leaf = isinstance(write, e.DataSet) or write.storage in self._leaf_storages
        return _EventRole.WEIGHT_WRITE if of_leaf else _EventRole.OTHER

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
