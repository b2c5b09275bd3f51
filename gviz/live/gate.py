"""Pauses a program between two of its events. It has no I/O of its own: it pauses by calling `wait`.

The gate is between a `Channel` and the writer of the trace. It tracks just enough state to stop where a `Timeline` of
the same events would stop, so that live stepping and stepping through a recording visit the same moments. The gate
usually passes an event on and then pauses. For two stops it pauses first: the end of a phase (`finish`) and of a
collapsed module (`next`). Only the next event shows that they have ended, so that event waits.

If one thread of the program pauses, all of them wait: each emits its next event under the same lock.

A program is paused, or it runs in one of these modes::

    mode        wish                           pauses before an event that     pauses after an event that
    _Run        run                            -                               -
    _Events     step                           -                               is the last of `count` events
    _Nodes      next                           leaves the last collapsed call  completes the last of `count` nodes
    _Finish     finish                         shows that the phase has ended  may end the module call or the pass
    _Tests      continue, to, phase, backward  -                               may be a stop

    running --- the mode pauses it, or a pause was requested ---> paused
    paused  --- `wait` returns a wish ------------------------->  running, in the mode of that wish

The debugger decides whether such an event really is a stop: it evaluates the stop in the timeline. If it is not one,
the program continues with the same wish. For example, ``continue`` with the breakpoint ``x`` at ``x = a * b``:
the multiplication may be `x`, so the program pauses after it. Its name is only known when the statement has ended.
Therefore the program pauses again after the first event of another statement, and there the debugger knows the name.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from threading import get_ident

from gviz import events as e
from gviz.emit import Listener
from gviz.live.breakpoint_prefilter import Prefilter, Test, concerns
from gviz.live.node_cache import LEARNED_FROM, NodeCache
from gviz.live.protocol import Why, Wish
from gviz.trace.codec import HELD_VALUES, KIND_NUMBERS, subject
from gviz.trace.contexts import WHOLE_NODE
from gviz.trace.graph_state import OPTIMIZER
from gviz.trace.index.threads import CONTEXT, Context
from gviz.trace.node_table import OF_NO_STATEMENT
from gviz.trace.nonfinite import FirstBad
from gviz.trace.phases import DECIDING, PhaseTracker

Wait = Callable[[Why], Wish]
"""Called while the program is paused; returns how it continues."""
Tests = Iterable[tuple[type[e.Event], Test]]
"""Tests of single events, each with the class of events that it applies to."""

_DECIDING, _CONTEXT, _DEFINITIONS = frozenset(DECIDING), frozenset(CONTEXT), frozenset(e.DEFINITIONS)
_SILENT = frozenset(e.SILENT)
_RULES = (e.StepStarted, e.StepFinished)
_CALLS = (e.ScopeEntered, e.ScopeLeft)


class Gate:
    """The gate of one program. `receive` is the listener of a channel; `first` is how the program starts."""

    def __init__(self, listener: Listener, wait: Wait, first: Wish) -> None:
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
        self._take_up(first)

    @property
    def count(self) -> int:
        """How many events have passed, without definitions."""
        return self._position.count

    def receive(self, event: e.Event) -> None:
        """Pass an event on, and pause the program if the current mode or a requested pause does so."""
        me = get_ident()
        if me not in self.exempt_threads:
            with self._lock:
                outer, self._owner = self._owner, me  # a destructor may emit an event inside another
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
    def pausing(self) -> bool:
        """Whether a pause was requested and has not happened yet."""
        return self._is_pause_requested

    def release(self) -> None:
        """Never pause the program again, from any thread."""
        self._take_up(Wish("run"))

    def pause_here(self) -> bool:
        """Pause the program here if a pause was requested. Returns False if a pause is still pending.

        Meant for signal handlers. One that interrupts `receive` leaves the pause to `receive`.
        """
        if self._is_pause_requested and self._owner != get_ident():
            self.stop_here("pause")
        return not self._is_pause_requested

    def stop_here(self, why: Why) -> None:
        """Pause the program here; for the reason ``pause``, only if a pause is still requested."""
        with self._lock:
            outer, self._owner = self._owner, get_ident()
            try:
                if why != "pause" or self._is_pause_requested:
                    self._hold(why)
            finally:
                self._owner = outer

    def _receive(self, event: e.Event) -> None:
        position, kind = self._position, event.__class__
        if kind in _DEFINITIONS:
            position.cache.learn(event)
            self._pass_on(event)
            return
        if kind in _DECIDING:
            position.phase_tracker.process(position.count + 1, event)
        if self._mode.pauses_before(event):
            self._hold("wish")
        depth = position.depth
        position.follow(event, kind)
        self._pass_on(event)
        position.count += 1
        why = "pause" if self._is_pause_requested else self._mode.reason_after(event, kind, depth)
        if why is not None:
            self._hold(why)
            if why == "maybe":
                self._mode.continued(event)

    def _hold(self, why: Why) -> None:
        """Wait for the next wish. An exception during it goes to the program, which continues to its next stop."""
        self._is_pause_requested = False
        wish = Wish("continue", stops=self._wish.stops)
        try:
            wish = self._wait(why)
        finally:
            self._take_up(wish)

    def _take_up(self, wish: Wish) -> None:
        self._wish = wish
        self._mode = self._mode_of(wish)

    def _mode_of(self, wish: Wish) -> _Run:
        position = self._position
        match wish.mode:
            case "step":
                return _Events(wish.count)
            case "next":
                return _Nodes(position, wish.count, frozenset(wish.closed))
            case "finish":
                return _Finish(position)
            case "phase":
                return _Tests((kind, position.phase_test()) for kind in DECIDING)
            case "to":
                return _Tests((kind, concerns(wish.node, frozenset(wish.storages))) for kind in e.KINDS)
            case "backward":
                return _Tests([(e.BackwardStarted, _always)])
            case "continue":
                prefilters = [self._prefilter(text) for text in wish.stops]
                return _Tests(_stops(position, prefilters), prefilters)
        return _Run()

    def _prefilter(self, text: str) -> Prefilter:
        """Return the prefilter of a breakpoint, which keeps what it has found out about nodes."""
        position = self._position
        if text not in self._prefilters:
            self._prefilters[text] = Prefilter(text, position.cache, position.phase_tracker)
            position.cache.keep_values |= self._prefilters[text].asks_for_values
        return self._prefilters[text]


class Position:
    """Where the program is: its nodes, phases, passes and module calls."""

    def __init__(self) -> None:
        self.count = 0
        """How many events have passed, without definitions."""
        self.cache = NodeCache()
        self.phase_tracker = PhaseTracker()
        """Phases, up to and including the event that is passing."""
        self.scope = 0
        """The innermost running module call, 0 if there is none."""
        self.depth = 0
        """How many backward rules are running, one inside the other."""
        self.rule = 0
        """The node whose backward rule started or finished last."""
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
        if kind in _CONTEXT:
            if isinstance(event, _RULES):
                self.rule = event.node
                node, pass_nr, scope = event.node, event.pass_nr, 0
            else:
                node, _, pass_nr = subject(event)
                scope = event.scope if isinstance(event, _CALLS) else 0
            _, _, self.scope, self.depth = self._context.process(KIND_NUMBERS[kind], node, pass_nr, scope)
        self.is_first_bad = not self.first_bad.found and self.first_bad.process(event)

    def phase_test(self) -> Test:
        """Return a test for whether a new phase has begun since this position."""
        rows = self.phase_tracker.rows
        known = len(rows) - bool(rows and rows[-1][1] > self.count)  # the last one may begin with the waiting event
        return lambda event: len(self.phase_tracker.rows) > known


class _Run:
    """The program runs until a pause is requested. Other modes override what they decide."""

    def pauses_before(self, event: e.Event) -> bool:
        """Return whether the program pauses before an event. `Position.phase_tracker` has already processed it."""
        return False

    def reason_after(self, event: e.Event, kind: type[e.Event], depth: int) -> Why | None:
        """Return why the program pauses after an event; None if it does not. `depth` is the depth before the event."""
        return None

    def continued(self, event: e.Event) -> None:
        """Note that the debugger was asked about an event, and has continued in this mode."""


class _Events(_Run):
    """The program runs for a number of events."""

    def __init__(self, count: int) -> None:
        self._left = count

    def reason_after(self, event: e.Event, kind: type[e.Event], depth: int) -> Why | None:
        if kind in _SILENT:
            return None
        self._left -= 1
        return "wish" if self._left <= 0 else None


class _Nodes(_Run):
    """The program runs for a number of nodes.

    A call of a collapsed module counts as one node, and so does an optimizer step if `closed` has `OPTIMIZER`.
    """

    def __init__(self, position: Position, count: int, closed: frozenset[str]) -> None:
        self._position = position
        self._left = count
        self._collapsed = closed
        self._steps_closed = OPTIMIZER in closed
        self._inside = 0
        """The collapsed module call whose nodes are passing."""

    def pauses_before(self, event: e.Event) -> bool:
        if not self._inside or not self._ends_call(event):
            return False
        self._inside = 0
        self._left -= 1
        return self._left <= 0

    def reason_after(self, event: e.Event, kind: type[e.Event], depth: int) -> Why | None:
        if not self._is_whole_node(event, kind, depth):
            return None
        self._inside = self._inside or self._call_of(event)
        if self._inside:
            return None
        self._left -= 1
        return "wish" if self._left <= 0 else None

    def _is_whole_node(self, event: e.Event, kind: type[e.Event], depth: int) -> bool:
        """Return whether an event completes a node, or an optimizer step with all it computes."""
        if kind in _CONTEXT:
            return depth > 0 == self._position.depth
        if kind not in WHOLE_NODE or self._position.depth:
            return False
        own = isinstance(event, e.NodeCreated) and self._position.phase_tracker.steps.computes(event)
        return not (own and self._steps_closed)

    def _call_of(self, event: e.Event) -> int:
        """Return the collapsed call of the completed node, 0 if none; for a parameter, that of the last rule."""
        cache, node = self._position.cache, subject(event)[0]
        of_parameter = isinstance(event, e.GradAccumulated) and node in cache.parameters
        return cache.outermost(self._position.rule if of_parameter else node, self._collapsed)

    def _ends_call(self, event: e.Event) -> bool:
        """Return whether this event follows everything in the current collapsed call, forward or in a pass."""
        position = self._position
        match event:
            case e.ScopeLeft(scope=scope):
                return scope == self._inside
            case e.GradAccumulated(node=node) if node in position.cache.parameters:
                return False
            case e.StepStarted(node=node) | e.GradAccumulated(node=node) | e.GradCaptured(node=node):
                return not position.depth and position.cache.outermost(node, self._collapsed) != self._inside
            case e.BackwardFinished(
                pass_nr=pass_nr
            ):  # a pass that the call's forward or a backward rule runs is part of the call
                return self._inside not in position.scopes and position.passes[:1] == [pass_nr]
        return isinstance(event, e.Failed)


class _Tests(_Run):
    """The program runs to an event that may be a stop.

    If a breakpoint depends on the name of a node, the program pauses again when the node's statement has ended.
    """

    def __init__(self, tests: Tests, prefilters: Iterable[Prefilter] = ()) -> None:
        self._tests: dict[type[e.Event], tuple[Test, ...]] = {}
        for kind, test in tests:
            self._tests[kind] = (*self._tests.get(kind, ()), test)
        self._prefilters = tuple(prefilters)
        self._unnamed = 0
        """The stack of the node that the debugger was asked about, while its statement may still run."""

    def reason_after(self, event: e.Event, kind: type[e.Event], depth: int) -> Why | None:
        for test in self._tests.get(kind, ()):
            if test(event):
                return "maybe"
        return "maybe" if self._unnamed and self._ends_statement(event) else None

    def continued(self, event: e.Event) -> None:
        self._unnamed = 0
        if isinstance(event, e.NodeCreated) and any(one.goes_by_name(event.node) for one in self._prefilters):
            self._unnamed = event.stack

    def _ends_statement(self, event: e.Event) -> bool:
        if isinstance(event, e.NodeCreated):
            return event.stack != self._unnamed
        return isinstance(event, OF_NO_STATEMENT)


class _Finish(_Tests):
    """The program runs to the end of the module call, or of the phase, in which it is."""

    def __init__(self, position: Position) -> None:
        self._position, self._start, scope = position, position.count, position.scope
        self._is_in_call = bool(scope)
        if scope:
            super().__init__([(e.ScopeLeft, lambda event: scope not in position.scopes)])
        else:
            rows = position.phase_tracker.rows
            super().__init__([(e.BackwardFinished, lambda event: rows[-1][2] == position.count)])
        self._phases = len(position.phase_tracker.rows)

    def pauses_before(self, event: e.Event) -> bool:
        rows, before = self._position.phase_tracker.rows, self._phases
        self._phases = len(rows)
        if self._is_in_call or not len(rows) > before > 0:
            return False
        # does not pause again where the program was paused before
        (_, _, end, _), (_, start, _, _) = rows[-2:]
        return end > self._start and (end == self._position.count or start <= self._position.count)


def _stops(position: Position, prefilters: Iterable[Prefilter]) -> Tests:
    """Yield the tests for everything that `continue` stops at."""
    yield e.Marked, _always
    yield e.BackwardFinished, _failed
    if not position.first_bad.found:
        yield from ((kind, lambda event: position.is_first_bad) for kind in HELD_VALUES)
    for prefilter in prefilters:
        yield from ((kind, prefilter.may_stop) for kind in prefilter.stop.at.kinds)


def _always(event: e.Event) -> bool:
    return True


def _failed(event: e.Event) -> bool:
    """Return whether an error ended a pass; whether it is caught is known only later."""
    return isinstance(event, e.BackwardFinished) and bool(event.error)
