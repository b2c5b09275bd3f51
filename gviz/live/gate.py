"""In the program's process: pauses it between two of its events. It has no I/O of its own: it pauses by calling `wait`.

The gate is between a `Channel` and the writer of the trace. It tracks just enough state to stop where a `Timeline` of
the same events would stop, so that live stepping and stepping through a recording visit the same moments. The gate
usually passes an event on and then pauses. For two stops it pauses first: the end of a phase (`finish`) and of a
collapsed module (`next`). Only the next event shows that they have ended, so that event waits.

If one thread of the program pauses, all of them wait: each emits its next event under the same lock.

While the program is paused, the debugger sends a *request* (`ResumeRequest`) for how it continues, such as ``step`` or
``continue``. The program then runs in the mode of that request::

    mode         request                        pauses before an event that         pauses after an event that
    _Run         run                            -                                   -
    _StepEvents  step                           -                                   is the last of `count` events
    _StepNodes   next                           shows that the last call has ended  completes the last of `count` nodes
    _RunToEnd    finish                         shows that the phase has ended      may end the module call or the pass
    _RunToStop   continue, to, phase, backward  -                                   may be a stop

    running --- the mode pauses it, or a pause was requested ---> paused
    paused  --- `wait` returns a request ---------------------->  running, in the mode of that request

Where the table says "may", the debugger decides: it evaluates the condition of the stop in the timeline. If the
condition does not hold, the program continues with the same request. For example, ``continue`` with the breakpoint
``x`` at ``x = a * b``: the multiplication may be `x`, so the program pauses after it. Its name is only known when the
statement has ended. Therefore the program pauses again after the first event of another statement, and there the
debugger knows the name.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from threading import get_ident

from gviz import events as e
from gviz.emit import Listener
from gviz.live.breakpoint_prefilter import Prefilter, Test, concerns
from gviz.live.node_cache import LEARNED_FROM, NodeCache
from gviz.live.protocol import PauseReason, ResumeRequest
from gviz.trace.codec import KIND_NUMBERS, VALUE_READERS, subject
from gviz.trace.event_contexts import WHOLE_NODE
from gviz.trace.graph_state import OPTIMIZER
from gviz.trace.index.threads import CONTEXT, Context
from gviz.trace.nan_and_inf import FirstBad
from gviz.trace.node_table import OF_NO_STATEMENT
from gviz.trace.phases import PHASE_EVENTS, PhaseTracker

Wait = Callable[[PauseReason], ResumeRequest]
"""Called to pause the program. Returns when the debugger has sent the next request."""
Tests = Iterable[tuple[type[e.Event], Test]]
"""Tests of single events, each with the class of events that it applies to."""

_PHASE_EVENTS, _CONTEXT, _DEFINITIONS = frozenset(PHASE_EVENTS), frozenset(CONTEXT), frozenset(e.DEFINITIONS)
_SILENT = frozenset(e.SILENT)
_BACKWARD_RULE_EVENTS = (e.StepStarted, e.StepFinished)
_MODULE_CALL_EVENTS = (e.ScopeEntered, e.ScopeLeft)


class Gate:
    """The gate of one program. `receive` is the listener of a channel. `first_request` is how the program starts."""

    def __init__(self, listener: Listener, wait: Wait, first_request: ResumeRequest) -> None:
        self._pass_on = listener
        self._wait = wait
        self._lock = threading.RLock()
        self._owner = 0
        """The thread that holds the lock."""
        self.exempt_threads: frozenset[int] = frozenset()
        """Threads that are never paused, because the program may need them to continue."""
        self._is_pause_requested = False
        self._position = Position()
        self._prefilters: dict[str, Prefilter] = {}
        self._follow_request(first_request)

    @property
    def count(self) -> int:
        """How many events have passed, not counting `events.DEFINITIONS`."""
        return self._position.count

    @property
    def is_at_module_call(self) -> bool:
        """Whether the last event begins a module call: it has no call stack of its own."""
        return self._position.is_at_module_call

    def receive(self, event: e.Event) -> None:
        """Pass an event on. Pause the program before or after it as the current mode requires, or after it if a pause
        was requested.
        """
        thread = get_ident()
        if thread not in self.exempt_threads:
            with self._lock:
                # a destructor may emit an event while this thread handles another one
                outer, self._owner = self._owner, thread
                try:
                    self._receive(event)
                finally:
                    self._owner = outer
        else:
            self._position.count += event.__class__ not in _DEFINITIONS
            self._pass_on(event)

    def pause(self) -> None:
        """Pause the program at its next event or `pause_here`, whichever comes first."""
        self._is_pause_requested = True

    @property
    def is_pause_pending(self) -> bool:
        """Whether a pause was requested that has not happened yet."""
        return self._is_pause_requested

    def release(self) -> None:
        """Never pause the program again, from any thread."""
        self._follow_request(ResumeRequest("run"))

    def pause_here(self) -> bool:
        """Pause the program here if a pause was requested. Returns False if a pause is still pending.

        Meant for signal handlers. If a signal handler interrupts `receive`, the pause is left to `receive`.
        """
        if self._is_pause_requested and self._owner != get_ident():
            self.stop_here("pause")
        return not self._is_pause_requested

    def stop_here(self, reason: PauseReason) -> None:
        """Pause the program here. If `reason` is ``pause``, do so only if the requested pause has not happened yet."""
        with self._lock:
            outer, self._owner = self._owner, get_ident()
            try:
                if reason != "pause" or self._is_pause_requested:
                    self._hold(reason)
            finally:
                self._owner = outer

    def _receive(self, event: e.Event) -> None:
        position, kind = self._position, event.__class__
        if kind in _DEFINITIONS:
            position.cache.learn(event)
            self._pass_on(event)
            return
        if kind in _PHASE_EVENTS:
            position.phase_tracker.process(position.count + 1, event)
        if self._mode.pauses_before(event):
            self._hold("fulfilled")
        depth = position.depth
        position.follow(event, kind)
        self._pass_on(event)
        position.count += 1
        reason = "pause" if self._is_pause_requested else self._mode.reason_after(event, kind, depth)
        if reason is not None:
            self._hold(reason)
            if reason == "maybe":
                self._mode.note_continued(event)

    def _hold(self, reason: PauseReason) -> None:
        """Wait for the next request. If `wait` raises an exception, the program gets it and runs to its next stop."""
        self._is_pause_requested = False
        request = ResumeRequest("continue", stops=self._request.stops)
        try:
            request = self._wait(reason)
        finally:
            self._follow_request(request)

    def _follow_request(self, request: ResumeRequest) -> None:
        self._request = request
        self._mode = self._mode_of(request)

    def _mode_of(self, request: ResumeRequest) -> _Mode:
        position = self._position
        match request.mode:
            case "step":
                return _StepEvents(request.count)
            case "next":
                return _StepNodes(position, request.count, frozenset(request.collapsed))
            case "finish":
                return _RunToEnd(position)
            case "phase":
                return _RunToStop((kind, position.phase_test()) for kind in PHASE_EVENTS)
            case "to":
                return _RunToStop((kind, concerns(request.node, frozenset(request.storages))) for kind in e.KINDS)
            case "backward":
                return _RunToStop([(e.BackwardStarted, _always)])
            case "continue":
                prefilters = [self._prefilter(text) for text in request.stops]
                return _RunToStop(_stops(position, prefilters), prefilters)
        return _Run()

    def _prefilter(self, text: str) -> Prefilter:
        """Return the prefilter of a breakpoint. It is made once, because it remembers its results for nodes."""
        position = self._position
        if text not in self._prefilters:
            self._prefilters[text] = Prefilter(text, position.cache, position.phase_tracker)
            position.cache.keep_values |= self._prefilters[text].asks_for_values
        return self._prefilters[text]


class Position:
    """Where the program is: its nodes, phases, passes and module calls."""

    def __init__(self) -> None:
        self.count = 0
        """How many events have passed, not counting `events.DEFINITIONS`."""
        self.cache = NodeCache()
        self.phase_tracker = PhaseTracker()
        """Phases, up to and including the event that is passing."""
        self.scope = 0
        """The innermost running module call, 0 if there is none."""
        self.is_at_module_call = False
        """Whether the last event begins a module call."""
        self.depth = 0
        """How many backward rules are running, one inside the other."""
        self.rule_node = 0
        """The node whose backward rule has started or finished last."""
        self.first_bad = FirstBad()
        self.is_first_bad = False
        """Whether the last event has the first nan or inf."""
        self._context = Context()

    @property
    def scopes(self) -> list[int]:
        """The running module calls, outermost first."""
        return self._context.scopes

    @property
    def passes(self) -> list[int]:
        """The running backward passes, outermost first."""
        return self._context.passes

    def follow(self, event: e.Event, kind: type[e.Event]) -> None:
        """Track nodes, passes and module calls, and the first nan."""
        if kind in LEARNED_FROM:
            self.cache.learn(event)
        self.is_at_module_call = kind is e.ScopeEntered
        if kind in _CONTEXT:
            if isinstance(event, _BACKWARD_RULE_EVENTS):
                self.rule_node = event.node
                node, pass_nr, scope = event.node, event.pass_nr, 0
            else:
                node, _, pass_nr = subject(event)
                scope = event.scope if isinstance(event, _MODULE_CALL_EVENTS) else 0
            _, _, self.scope, self.depth = self._context.process(KIND_NUMBERS[kind], node, pass_nr, scope)
        self.is_first_bad = not self.first_bad.is_found and self.first_bad.process(event)

    def phase_test(self) -> Test:
        """Return a test for whether a new phase has begun since this position."""
        rows = self.phase_tracker.rows
        is_waiting = bool(rows and rows[-1][1] > self.count)  # the last phase begins with the event that waits
        phases_before = len(rows) - is_waiting
        return lambda event: len(self.phase_tracker.rows) > phases_before


class _Mode:
    """How the program runs. The base class never pauses; each mode overrides the methods in which it differs."""

    def pauses_before(self, event: e.Event) -> bool:
        """Return whether the program pauses before an event. `Position.phase_tracker` has already processed it."""
        return False

    def reason_after(self, event: e.Event, kind: type[e.Event], depth: int) -> PauseReason | None:
        """Return why the program pauses after an event; None if it does not. `depth` is the depth before the event."""
        return None

    def note_continued(self, event: e.Event) -> None:
        """Note that the program paused after an event that may be a stop, and the debugger resumed it in this mode."""


class _Run(_Mode):
    """The program runs until a pause is requested."""


class _StepEvents(_Mode):
    """The program runs for a number of events."""

    def __init__(self, count: int) -> None:
        self._remaining = count

    def reason_after(self, event: e.Event, kind: type[e.Event], depth: int) -> PauseReason | None:
        if kind in _SILENT:
            return None
        self._remaining -= 1
        return "fulfilled" if self._remaining <= 0 else None


class _StepNodes(_Mode):
    """The program runs for a number of nodes.

    `collapsed` are the paths of collapsed modules. Each call of one of them counts as one node. So does an optimizer
    step if `collapsed` contains `OPTIMIZER`.
    """

    def __init__(self, position: Position, count: int, collapsed: frozenset[str]) -> None:
        self._position = position
        self._remaining = count
        self._collapsed = collapsed
        self._steps_collapsed = OPTIMIZER in collapsed
        self._collapsed_call = 0
        """The collapsed module call to which the last completed node belongs, 0 if none."""

    def pauses_before(self, event: e.Event) -> bool:
        if not self._collapsed_call or not self._ends_call(event):
            return False
        self._collapsed_call = 0
        self._remaining -= 1
        return self._remaining <= 0

    def reason_after(self, event: e.Event, kind: type[e.Event], depth: int) -> PauseReason | None:
        if not self._is_whole_node(event, kind, depth):
            return None
        self._collapsed_call = self._collapsed_call or self._call_of(event)
        if self._collapsed_call:
            return None
        self._remaining -= 1
        return "fulfilled" if self._remaining <= 0 else None

    def _is_whole_node(self, event: e.Event, kind: type[e.Event], depth: int) -> bool:
        """Return whether an event completes a node, or an optimizer step with all it computes."""
        if kind in _CONTEXT:
            return depth > 0 == self._position.depth
        if kind not in WHOLE_NODE or self._position.depth:
            return False
        is_of_step = isinstance(event, e.NodeCreated) and self._position.phase_tracker.steps.computes(event)
        return not (is_of_step and self._steps_collapsed)

    def _call_of(self, event: e.Event) -> int:
        """Return the collapsed module call to which the completed node belongs, 0 if none.

        The gradient of a parameter belongs to the call of the node whose backward rule ran last.
        """
        cache, node = self._position.cache, subject(event)[0]
        is_of_parameter = isinstance(event, e.GradAccumulated) and node in cache.parameters
        return cache.outermost(self._position.rule_node if is_of_parameter else node, self._collapsed)

    def _ends_call(self, event: e.Event) -> bool:
        """Return whether this event shows that the current collapsed call is over: its forward has ended, or all its
        backward rules in the running pass have.
        """
        position = self._position
        match event:
            case e.ScopeLeft(scope=scope):
                return scope == self._collapsed_call
            case e.GradAccumulated(node=node) if node in position.cache.parameters:
                return False
            case e.StepStarted(node=node) | e.GradAccumulated(node=node) | e.GradCaptured(node=node):
                return not position.depth and position.cache.outermost(node, self._collapsed) != self._collapsed_call
            case e.BackwardFinished(pass_nr=pass_nr):
                # a pass that the call's forward or a backward rule runs is part of the call
                return self._collapsed_call not in position.scopes and position.passes[:1] == [pass_nr]
        return isinstance(event, e.Failed)


class _RunToStop(_Mode):
    """The program runs to an event that may be a stop.

    If a breakpoint depends on the name of a node, the program pauses again when the node's statement has ended.
    """

    def __init__(self, tests: Tests, prefilters: Iterable[Prefilter] = ()) -> None:
        self._tests: dict[type[e.Event], tuple[Test, ...]] = {}
        for kind, test in tests:
            self._tests[kind] = (*self._tests.get(kind, ()), test)
        self._prefilters = tuple(prefilters)
        self._stack_awaiting_name = 0
        """The call stack of the node after which the program paused, if a breakpoint may match the node's name and its
        statement may still run; otherwise 0.
        """

    def reason_after(self, event: e.Event, kind: type[e.Event], depth: int) -> PauseReason | None:
        for test in self._tests.get(kind, ()):
            if test(event):
                return "maybe"
        return "maybe" if self._stack_awaiting_name and self._ends_statement(event) else None

    def note_continued(self, event: e.Event) -> None:
        self._stack_awaiting_name = 0
        if isinstance(event, e.NodeCreated) and any(one.goes_by_name(event.node) for one in self._prefilters):
            self._stack_awaiting_name = event.stack

    def _ends_statement(self, event: e.Event) -> bool:
        if isinstance(event, e.NodeCreated):
            return event.stack != self._stack_awaiting_name
        return isinstance(event, OF_NO_STATEMENT)


class _RunToEnd(_RunToStop):
    """The program runs to the end of the current module call; outside of module calls, to the end of the phase."""

    def __init__(self, position: Position) -> None:
        self._position, self._start, scope = position, position.count, position.scope
        self._is_in_call = bool(scope)
        if scope:
            super().__init__([(e.ScopeLeft, lambda event: scope not in position.scopes)])
        else:
            rows = position.phase_tracker.rows
            super().__init__([(e.BackwardFinished, lambda event: rows[-1][2] == position.count)])
        self._phase_count = len(position.phase_tracker.rows)

    def pauses_before(self, event: e.Event) -> bool:
        rows, phases_before = self._position.phase_tracker.rows, self._phase_count
        self._phase_count = len(rows)
        if self._is_in_call or not len(rows) > phases_before > 0:
            return False
        # do not pause again where the program was paused before
        (_, _, end, _), (_, start, _, _) = rows[-2:]
        return end > self._start and (end == self._position.count or start <= self._position.count)


def _stops(position: Position, prefilters: Iterable[Prefilter]) -> Tests:
    """Yield the tests for everything that `continue` stops at."""
    yield e.Marked, _always
    yield e.BackwardFinished, _failed
    if not position.first_bad.is_found:
        yield from ((kind, lambda event: position.is_first_bad) for kind in VALUE_READERS)
    for prefilter in prefilters:
        yield from ((kind, prefilter.may_stop) for kind in prefilter.stop.at.kinds)


def _always(event: e.Event) -> bool:
    return True


def _failed(event: e.Event) -> bool:
    """Return whether an error ended a pass. Whether the program catches the error is not known yet."""
    return isinstance(event, e.BackwardFinished) and bool(event.error)
