"""Pauses a program between two of its events. It has no I/O of its own: it pauses by calling `wait`.

The gate is between a `Channel` and the writer of the trace. It tracks just enough state to stop where a `Timeline` of
the same events would stop, so that live stepping and stepping through a recording visit the same moments. An event is
passed on before the program pauses. The exceptions are the end of a phase, for `finish`, and of a collapsed module, for
`next`: only the first event afterwards shows these, and that event waits outside.

If one thread of the program pauses, all of them wait: each emits its next event under the same lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
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
from gviz.trace.phases import DECIDING, Chapters

Wait = Callable[[Why], Wish]
"""Called while the program is paused; returns how it continues."""

_DECIDING, _CONTEXT, _DEFINITIONS = frozenset(DECIDING), frozenset(CONTEXT), frozenset(e.DEFINITIONS)
_SILENT = frozenset(e.SILENT)
_FOLLOWED = LEARNED_FROM | _DECIDING | _CONTEXT
_STEP_KINDS = (e.StepStarted, e.StepFinished)
_SCOPE_KINDS = (e.ScopeEntered, e.ScopeLeft)


class Gate:
    """The gate of one program. `say` is the listener of a channel; `first` is how the program starts."""

    def __init__(self, hand_on: Listener, wait: Wait, first: Wish) -> None:
        self._hand_on = hand_on
        self._wait = wait
        self._lock = threading.RLock()
        self._owner = 0
        """The thread that holds the lock."""
        self.aside: frozenset[int] = frozenset()
        """Threads that are never paused, because the program may need them to continue."""
        self.count = 0
        self._pausing = False
        self._cache = NodeCache()
        self._context = Context()
        self._chapters = Chapters()
        self._scope = self._depth = self._ran = 0
        self._prefilters: dict[str, Prefilter] = {}
        self._bad, self._is_first_bad = FirstBad(), False
        self._inside = 0
        """The collapsed module call whose nodes are passing, while `next` treats them as one."""
        self._asked_of = 0
        """The stack of the node the debugger was last asked about, while its statement may still run."""
        self._take_up(first)

    def say(self, event: e.Event) -> None:
        """Pass an event on, and pause the program if the current wish asks for it."""
        me = get_ident()
        if me not in self.aside:
            with self._lock:
                outer, self._owner = self._owner, me  # a destructor may emit an event inside another
                try:
                    self._say(event)
                finally:
                    self._owner = outer
        else:
            self.count += event.__class__ not in _DEFINITIONS
            self._hand_on(event)

    def pause(self) -> None:
        """Pause the program at its next event or `pause_here`, whichever comes first."""
        self._pausing = True

    @property
    def pausing(self) -> bool:
        """Whether a pause was requested and has not happened yet."""
        return self._pausing

    def let_go(self) -> None:
        """Never pause the program again, from any thread."""
        self._take_up(Wish("run"))

    def pause_here(self) -> bool:
        """Pause the program here if a pause was requested. Returns whether no pause is pending any more.

        For a signal handler: it runs between two instructions of a thread, also inside `say`, which then handles the
        pause.
        """
        if self._pausing and self._owner != get_ident():
            self.stop_here("pause")
        return not self._pausing

    def stop_here(self, why: Why) -> None:
        """Pause the program here."""
        with self._lock:
            outer, self._owner = self._owner, get_ident()
            try:
                if why != "pause" or self._pausing:
                    self._hold(why)
            finally:
                self._owner = outer

    def _say(self, event: e.Event) -> None:
        kind = event.__class__
        if kind in _DEFINITIONS:
            self._cache.learn(event)
            self._hand_on(event)
            return
        if self._inside and self._leaves(event):
            self._inside = 0
            self._counted()
        before = self._depth
        if kind in _FOLLOWED:
            self._follow(event, kind)
        self._is_first_bad = not self._bad.found and self._bad.meets(event)
        self._hand_on(event)
        self.count += 1
        if self._pausing:
            self._hold("pause")
        elif self._every:
            if kind not in _SILENT:
                self._counted()
        elif self._nodes:
            if self._is_whole_node(event, kind, before):
                self._inside = self._inside or self._call_of(event)
                if not self._inside:
                    self._counted()
        else:
            tests = self._tests.get(kind, ())
            if tests or self._asked_of:
                self._test(event, tests)

    def _test(self, event: e.Event, tests: tuple[Test, ...]) -> None:
        """Pause if this event may be a stop, or shows that an earlier one was: names are known when statements end."""
        for test in tests:
            if test(event):
                break
        else:
            if not self._asked_of or not self._ends_statement(event):
                return
        self._hold("maybe")
        self._asked_of = event.stack if isinstance(event, e.NodeCreated) and self._may_be_named(event.node) else 0

    def _may_be_named(self, node: int) -> bool:
        """Return whether the name of the node decides if the program pauses there."""
        return any(self._prefilters[text].goes_by_name(node) for text in self._wish.stops if text in self._prefilters)

    def _ends_statement(self, event: e.Event) -> bool:
        if isinstance(event, e.NodeCreated):
            return event.stack != self._asked_of
        return isinstance(event, OF_NO_STATEMENT)

    def _is_whole_node(self, event: e.Event, kind: type[e.Event], depth: int) -> bool:
        """Return whether a node is complete (`depth` is that before the event), or an optimizer step with all it
        computes.
        """
        if kind in _CONTEXT:
            return depth > 0 == self._depth
        if kind not in WHOLE_NODE or self._depth:
            return False
        own = isinstance(event, e.NodeCreated) and self._chapters.steps.computes(event)
        return not (own and self._steps_closed)

    def _call_of(self, event: e.Event) -> int:
        """Return the collapsed call of the completed node, 0 if none; for a parameter, that of the previous backward
        rule.
        """
        node = subject(event)[0]
        of_parameter = isinstance(event, e.GradAccumulated) and node in self._cache.parameters
        return self._cache.outermost(self._ran if of_parameter else node, self._closed)

    def _leaves(self, event: e.Event) -> bool:
        """Return whether this event follows everything in the current collapsed call, forward or in a pass."""
        match event:
            case e.ScopeLeft(scope=scope):
                return scope == self._inside
            case e.GradAccumulated(node=node) if node in self._cache.parameters:
                return False
            case e.StepStarted(node=node) | e.GradAccumulated(node=node) | e.GradCaptured(node=node):
                return not self._depth and self._cache.outermost(node, self._closed) != self._inside
            case e.BackwardFinished(pass_nr=pass_nr):  # a pass run by its forward, or by a backward rule, is part of it
                return self._inside not in self._context.scopes and self._context.passes[:1] == [pass_nr]
        return isinstance(event, e.Failed)

    def _counted(self) -> None:
        self._left -= 1
        if self._left <= 0:
            self._hold("wish")

    def _follow(self, event: e.Event, kind: type[e.Event]) -> None:
        """Track phases, passes and module calls; pause first if this event shows that a phase has ended."""
        if kind in _DECIDING:
            phases = len(self._chapters.rows)
            self._chapters.happen(self.count + 1, event)
            if self._until_phase_ends and len(self._chapters.rows) > phases > 0 and self._phase_is_over():
                self._hold("wish")
        if kind in LEARNED_FROM:
            self._cache.learn(event)
        if kind in _CONTEXT:
            if isinstance(event, _STEP_KINDS):
                self._ran = event.node
                node, pass_nr, scope = event.node, event.pass_nr, 0
            else:
                node, _, pass_nr = subject(event)
                scope = event.scope if isinstance(event, _SCOPE_KINDS) else 0
            _, _, self._scope, self._depth = self._context.happen(KIND_NUMBERS[kind], node, pass_nr, scope)

    def _phase_is_over(self) -> bool:
        """Return whether the waiting event shows that a phase ended with the event before, or that the next one began
        earlier.

        False if the program continued from that same moment.
        """
        (_, _, end, _), (_, start, _, _) = self._chapters.rows[-2:]
        return end > self._wished_at and (end == self.count or start <= self.count)

    def _hold(self, why: Why) -> None:
        """Wait for the next wish. An exception during the wait goes to the program, which then runs to a stop."""
        self._pausing = False
        wish = Wish("continue", stops=self._wish.stops)
        try:
            wish = self._wait(why)
        finally:
            self._take_up(wish)

    def _take_up(self, wish: Wish) -> None:
        self._wish = wish
        self._left = wish.count
        self._wished_at = self.count
        self._every = wish.mode == "step"
        self._nodes = wish.mode == "next"
        self._closed, self._inside = frozenset(wish.closed), 0
        self._steps_closed = OPTIMIZER in self._closed
        self._until_phase_ends = wish.mode == "finish" and not self._scope
        self._tests = self._tests_of(wish)

    def _tests_of(self, wish: Wish) -> dict[type[e.Event], tuple[Test, ...]]:
        """Return the tests that decide whether to pause, by event class."""
        tests: dict[type[e.Event], tuple[Test, ...]] = {}
        for kind, test in self._wanted(wish):
            tests[kind] = (*tests.get(kind, ()), test)
        return tests

    def _wanted(self, wish: Wish) -> list[tuple[type[e.Event], Test]]:
        match wish.mode:
            case "finish":
                return self._ends()
            case "phase":
                return [(kind, self._begins_phase()) for kind in DECIDING]
            case "to":
                return [(kind, concerns(wish.node, frozenset(wish.storages))) for kind in e.KINDS]
            case "backward":
                return [(e.BackwardStarted, _always)]
            case "continue":
                return self._stops(wish.stops)
        return []

    def _ends(self) -> list[tuple[type[e.Event], Test]]:
        if self._scope:
            scope = self._scope
            return [(e.ScopeLeft, lambda event: scope not in self._context.scopes)]
        return [(e.BackwardFinished, lambda event: self._chapters.rows[-1][2] == self.count)]

    def _begins_phase(self) -> Test:
        rows = self._chapters.rows
        known = len(rows) - bool(rows and rows[-1][1] > self.count)  # the last one may begin with the waiting event
        return lambda event: len(self._chapters.rows) > known

    def _stops(self, texts: tuple[str, ...]) -> list[tuple[type[e.Event], Test]]:
        tests: list[tuple[type[e.Event], Test]] = [(e.Marked, _always), (e.BackwardFinished, _failed)]
        if not self._bad.found:
            tests += [(kind, lambda event: self._is_first_bad) for kind in HELD_VALUES]
        for text in texts:
            prefilter = self._prefilters.get(text)
            if prefilter is None:
                prefilter = self._prefilters[text] = Prefilter(text, self._cache, self._chapters)
                self._cache.keep_values |= prefilter.asks_for_values
            tests += [(kind, prefilter.may_stop) for kind in prefilter.stop.at.kinds]
        return tests


def _always(event: e.Event) -> bool:
    return True


def _failed(event: e.Event) -> bool:
    """Return whether an error ended a pass; whether it is caught is known only later."""
    return isinstance(event, e.BackwardFinished) and bool(event.error)
