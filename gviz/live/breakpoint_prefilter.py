"""Tests in the program's process whether an event may be a stop of a breakpoint: a no is certain, a yes is not.

After a yes, the program pauses and the debugger evaluates the breakpoint exactly in the timeline. A condition is tested
with the event and the `NodeCache`. If these are not sufficient, the answer is yes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gviz import events as e
from gviz.live.node_cache import NodeCache, Origin
from gviz.query_syntax.condition import Condition, OpWord
from gviz.query_syntax.expression_operations import Numbers
from gviz.query_syntax.place import Place
from gviz.query_syntax.safe_expression import BUILTINS
from gviz.query_syntax.statistics_proxy import summarized
from gviz.query_syntax.stop_condition import AT_A_NODE, CALLED, Stop, stop
from gviz.trace.breakpoint_hits import is_of
from gviz.trace.codec import subject
from gviz.trace.condition_environment import Absent, word_of
from gviz.trace.nan_and_inf import may_be_nonfinite
from gviz.trace.phases import PhaseTracker
from gviz.values.value import Value

Test = Callable[[e.Event], bool]

_LASTING = {"value", "op", "module", "node"}
"""Names in a condition that stay the same for all events of a node, unless its memory is written to."""


class Unknown(Exception):
    """A condition uses something that is not known in this process."""


class Prefilter:
    """The prefilter of one breakpoint."""

    def __init__(self, text: str, cache: NodeCache, phase_tracker: PhaseTracker) -> None:
        self.stop: Stop = stop(text)
        variables = self.stop.condition.asks if self.stop.condition is not None else frozenset()
        self.asks_for_values, self._asks_for_names = "value" in variables, "name" in variables
        self._is_fixed_per_node = variables <= _LASTING and {*self.stop.at.kinds} <= {*AT_A_NODE}
        self._word, self._place = self.stop.event, self.stop.at.place
        self._denied = bytearray()  # by node: 1 if the condition is false, until its memory is written to
        self._cache = cache
        self._phase_tracker = phase_tracker
        self._fits: dict[int, bool] = {}
        self._calls: dict[int, int] = {}
        self._begun: set[tuple[int, int]] = set()
        """Pairs of a pass (0: none) and a module call that it has reached."""
        self._storages: set[int] = set()
        self._searched = self._late = 0

    def may_stop(self, event: e.Event) -> bool:
        """Return whether the debugger has to check an event, which is one of the stop's kinds."""
        word, condition = self._word, self.stop.condition
        if word in ("nan", "inf"):
            # a mask of attention writes -inf in each iteration: a stop at nan must not pause the program for it
            if not may_be_nonfinite(event) or not is_of(word, event):
                return False
        elif word and not is_of(word, event):
            return False
        node = subject(event)[0]
        if not self._concerns(event, node):
            return False
        if condition is None:
            return not self.stop.once_a_call or self._may_begin(event, node)
        if self._is_fixed_per_node:
            return self._may_hold_of(node, event, condition)
        names = self._cache.possible_names(node) if self._asks_for_names else ("",)
        environments = (KnownSoFar(event, node, self._cache, self._phase_tracker, name) for name in names)
        return not names or any(_may_hold(condition, known) for known in environments)

    def _may_hold_of(self, node: int, event: e.Event, condition: Condition) -> bool:
        """`may_stop` for conditions that depend only on the node.

        A false result is remembered until the node's memory is written to.
        """
        denied = self._denied
        if node < len(denied) and denied[node] and not self._cache.is_rewritten(node):
            return False
        holds = _may_hold(condition, KnownSoFar(event, node, self._cache, self._phase_tracker))
        if not holds:
            denied.extend(bytes(max(node + 1 - len(denied), 0)))
            denied[node] = 1
        return holds

    def _may_begin(self, event: e.Event, node: int) -> bool:
        """Return whether a pass may reach a call of the place for the first time, or the place may be this node."""
        number = self._cache.number_of(node)
        if self._place is None or self._may_be_named(self._place, node, self._cache.kinds[number]):
            return True
        if number not in self._calls:
            self._calls[number] = self._cache.call(self._cache.kinds[number], self._place)
        match event:
            case e.NodeCreated(kind="op"):
                begun = 0, self._calls[number]
            case e.StepStarted(pass_nr=pass_nr):
                begun = pass_nr, self._calls[number]
            case _:
                return False
        known = begun in self._begun
        self._begun.add(begun)
        return not known

    def _may_be_named(self, place: Place, node: int, kind: Origin) -> bool:
        """Return whether the place may refer to a node by its own name or operation."""
        cache = self._cache
        if node in cache.gradients or node in cache.parts:
            return True
        names = cache.names.get(node, ())
        return place.names(cache.possible(kind, node)) or any(path in names for _, path in place.parameters)

    def _is_open(self, node: int) -> bool:
        """Return whether the names of a node depend on more than its kind."""
        return node in self._cache.names or node in self._cache.gradients or node in self._cache.parts

    def goes_by_name(self, node: int) -> bool:
        """Return whether the stop's place matches the node only through a name that it may get."""
        place, kind = self._place, self._cache.kinds[self._cache.number_of(node)]
        if place is None:
            return False
        possible = self._cache.possible(kind, node)
        return place.names(possible) and not place.names(replace(possible, names=()))

    def _concerns(self, event: e.Event, node: int) -> bool:
        place = self._place
        if isinstance(event, CALLED) and place is not None:
            return place.calls(self._cache.stacks.get(event.stack, ()))
        if place is None or self._means(place, node):
            return True
        return isinstance(event, e.StorageWritten) and event.storage in self._memory(place)

    def _means(self, place: Place, node: int) -> bool:
        if place.kind == "node":
            return node == place.number
        cache = self._cache
        if self._is_open(node):
            return True
        number = cache.number_of(node)
        fits = self._fits.get(number)
        if fits is None:
            fits = self._fits[number] = bool(number) and self._fits_kind(place, cache.kinds[number])
        return fits

    def _fits_kind(self, place: Place, kind: Origin) -> bool:
        return place.names(self._cache.possible(kind)) or self._cache.is_of_module(kind, place)

    def _memory(self, place: Place) -> set[int]:
        """Return the storages of all nodes that the place may refer to."""
        cache = self._cache
        for node in (*cache.late[self._late :], *range(self._searched, len(cache.kind_of))):
            if self._means(place, node):
                self._storages.update(cache.storages(node))
        self._searched, self._late = len(cache.kind_of), len(cache.late)
        return self._storages


class KnownSoFar(dict[str, Any]):
    """The variables of a condition, as far as this process knows them at the event; `name` is the node's name."""

    __slots__ = ("_cache", "_event", "_name", "_node", "_phase_tracker")

    def __init__(
        self, event: e.Event, node: int, cache: NodeCache, phase_tracker: PhaseTracker, name: str = ""
    ) -> None:
        self._name = name
        self._event = event
        self._node = node
        self._cache = cache
        self._phase_tracker = phase_tracker

    def __missing__(self, name: str) -> Any:
        reader = _READERS.get(name)
        if reader is None:
            return BUILTINS[name]
        value = self[name] = reader(self)
        return value

    def _value(self) -> Any:
        match self._event:
            case e.NodeCreated(outputs=(_, _, *_)):
                raise Unknown  # the condition may refer to any of the outputs
            case e.NodeCreated(outputs=outputs):
                return _numbers(outputs[0].value if outputs else None)
            case e.StorageWritten() | e.DataSet() | e.GradFlowed() | e.GradSet() | e.GradRetained():
                raise Unknown
        if self._node in self._cache.more_storages:
            raise Unknown
        try:
            return _numbers(self._cache.value(self._node))
        except KeyError:
            raise Unknown from None

    def _grad(self) -> Any:
        match self._event:
            case e.NodeCreated():
                raise Absent
            case e.StepStarted(grads=(grad,)) if grad is not None:
                return _numbers(grad)
            case e.GradAccumulated():
                return _numbers(e.grad_left(self._event))
        raise Unknown

    def _module(self) -> str:
        number = self._cache.number_of(self._node)
        return self._cache.possible(self._cache.kinds[number]).scope

    def _op(self) -> str:
        number = self._cache.number_of(self._node)
        if not number:
            raise Unknown
        return OpWord.of(self._cache.possible(self._cache.kinds[number]).op)


_READERS: dict[str, Callable[[KnownSoFar], Any]] = {
    "value": KnownSoFar._value,
    "grad": KnownSoFar._grad,
    "op": KnownSoFar._op,
    "name": lambda self: self._name,
    "module": KnownSoFar._module,
    "node": lambda self: self._node,
    "event": lambda self: word_of(self._event),
    "step": lambda self: len(self._phase_tracker.iterations.starts) - 1,
}


def _may_hold(condition: Condition, known: KnownSoFar) -> bool:
    try:
        return condition.holds(known)
    except Absent:
        return False
    except Exception:  # the debugger evaluates it too, and shows any error
        return True


def _numbers(value: Value | None) -> Any:
    if value is None:
        raise Absent
    array = value.array()
    if array is None:
        return summarized("the value", value)
    return array.view(Numbers) if array.ndim else array[()]


def concerns(node: int, storages: frozenset[int]) -> Test:
    """Return a test of whether an event concerns a node, or the memory of its outputs."""

    def test(event: e.Event) -> bool:
        match event:
            case e.StorageWritten(storage=storage) if storage in storages:
                return True
        return node in e.nodes_of(event)

    return test
