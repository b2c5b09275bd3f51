"""Holds a program between two of its events. It has no I/O of its own: it holds by calling the `wait` it is given.

The gate is between a `Channel` and the writer of the trace. It follows what happens just far enough to stop where a
`Timeline` of the same events would stop: live stepping and stepping through a recording meet the same moments. An event
is handed on first and then the program is held, with one exception: the end of a phase, for `finish`, or of a closed
module, for `next`, which only the first event after it shows, and that one waits outside.

All threads of the program wait where one of them is held: each says its next event behind the same lock.
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
"""Called while the program is held; returns how it runs on."""

_DECIDING, _CONTEXT, _DEFINITIONS = frozenset(DECIDING), frozenset(CONTEXT), frozenset(e.DEFINITIONS)
_FOLLOWED = LEARNED_FROM | _DECIDING | _CONTEXT
_STEP_KINDS = (e.StepStarted, e.StepFinished)
_SCOPE_KINDS = (e.ScopeEntered, e.ScopeLeft)


class Gate:
    """`say` is the listener of a channel; `first` is how the program begins."""

    def __init__(self, hand_on: Listener, wait: Wait, first: Wish) -> None:
        self._hand_on = hand_on
        self._wait = wait
        self._lock = threading.RLock()
        self._owner = 0
        """The thread that holds the lock."""
        self.aside: frozenset[int] = frozenset()
        """Threads that are never held, because the program may need them to run on."""
        self.count = 0
        self._pausing = False
        self._cache = NodeCache()
        self._context = Context()
        self._chapters = Chapters()
        self._scope = self._depth = self._ran = 0
        self._prefilters: dict[str, Prefilter] = {}
        self._bad, self._is_first_bad = FirstBad(), False
        self._inside = 0
        """The closed module call whose nodes are going through, while `next` takes them for one."""
        self._asked_of = 0
        """The stack of the node that the debugger was asked about last, while its statement may still run."""
        self._take_up(first)

    def say(self, event: e.Event) -> None:
        """Hand an event on, and hold the program if that is what was wished for."""
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
        """Hold the program at its next event, or at the next `pause_here`, whichever comes first."""
        self._pausing = True

    @property
    def pausing(self) -> bool:
        """Whether the program was asked to pause and has not yet."""
        return self._pausing

    def let_go(self) -> None:
        """Never hold the program again, from any thread, while it runs."""
        self._take_up(Wish("run"))

    def pause_here(self) -> bool:
        """Hold the program where it is, if it is asked to pause; whether this was the moment for it.

        For a signal handler: between two instructions of a thread, also inside `say`, which then sees to it itself.
        """
        if self._pausing and self._owner != get_ident():
            self.stop_here("pause")
        return not self._pausing

    def stop_here(self, why: Why) -> None:
        """Hold the program where it is."""
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
        """Hold if this event may be a stop, or shows that one before was: names come when their statements end."""
        for test in tests:
            if test(event):
                break
        else:
            if not self._asked_of or not self._ends_statement(event):
                return
        self._hold("maybe")
        self._asked_of = event.stack if isinstance(event, e.NodeCreated) and self._may_be_named(event.node) else 0

    def _may_be_named(self, node: int) -> bool:
        """Whether what the node is called decides if the program is to be held there."""
        return any(self._prefilters[text].goes_by_name(node) for text in self._wish.stops if text in self._prefilters)

    def _ends_statement(self, event: e.Event) -> bool:
        if isinstance(event, e.NodeCreated):
            return event.stack != self._asked_of
        return isinstance(event, OF_NO_STATEMENT)

    def _is_whole_node(self, event: e.Event, kind: type[e.Event], depth: int) -> bool:
        """Whether a node is through, of `depth` before the event, or an optimizer's step with all it computes."""
        if kind in _CONTEXT:
            return depth > 0 == self._depth
        if kind not in WHOLE_NODE or self._depth:
            return False
        own = isinstance(event, e.NodeCreated) and self._chapters.steps.computes(event)
        return not (own and self._steps_closed)

    def _call_of(self, event: e.Event) -> int:
        """The closed call of the node that is through, 0 if there is none; of a parameter that of the rule before."""
        node = subject(event)[0]
        of_parameter = isinstance(event, e.GradAccumulated) and node in self._cache.parameters
        return self._cache.outermost(self._ran if of_parameter else node, self._closed)

    def _leaves(self, event: e.Event) -> bool:
        """Whether this event comes after all that the closed call in progress does, forward or in a pass."""
        match event:
            case e.ScopeLeft(scope=scope):
                return scope == self._inside
            case e.GradAccumulated(node=node) if node in self._cache.parameters:
                return False
            case e.StepStarted(node=node) | e.GradAccumulated(node=node) | e.GradCaptured(node=node):
                return not self._depth and self._cache.outermost(node, self._closed) != self._inside
            case e.BackwardFinished(pass_nr=pass_nr):  # one that its forward runs, or a rule, is a part of it
                return self._inside not in self._context.scopes and self._context.passes[:1] == [pass_nr]
        return isinstance(event, e.Failed)

    def _counted(self) -> None:
        self._left -= 1
        if self._left <= 0:
            self._hold("wish")

    def _follow(self, event: e.Event, kind: type[e.Event]) -> None:
        """Follow phases, passes and module calls; hold first if this event shows that a phase is over."""
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
        """Whether the event that waits shows that a phase ended with the one before, or the next began even earlier.

        Not if the program went on from just there.
        """
        (_, _, end, _), (_, start, _, _) = self._chapters.rows[-2:]
        return end > self._wished_at and (end == self.count or start <= self.count)

    def _hold(self, why: Why) -> None:
        """Wait for the next wish; whatever comes out of the wait goes to the program, which then runs to a stop."""
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
        """The tests that say whether to hold, by the class of the event."""
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
        known = len(rows) - bool(rows and rows[-1][1] > self.count)  # the last may begin with the event that waits
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
    """Whether an error ended a pass; that nothing catches it, if so, is known later."""
    return isinstance(event, e.BackwardFinished) and bool(event.error)
