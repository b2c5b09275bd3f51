"""Times the module calls of one iteration, forward and backward, while nothing of it is recorded.

Light hooks read a clock where a module call, the backward rule of a node, a backward pass or an optimizer step begins
and ends. The time of an interval is its own, without the intervals inside it. They exclude the hooks' own time, but
not PyTorch's overhead of calling them: 5 to 10 µs for a module call, about 1 µs for a backward rule.

A node belongs to the module call that created it. Autograd numbers the nodes of a thread in order of creation, so a
call needs no more than two of these numbers, and the nodes are found when a pass begins::

    call of net       numbers 7 to 20
    call of net.0     numbers 7 to 9       node 8 belongs to net.0
    call of net.1     numbers 9 to 19
    the loss          numbers 20 to 22     nodes outside of modules

A leaf's accumulation belongs to the call whose node sends its gradient. Modules that run during a pass, for example
because of a checkpoint, count as backward.

On a device the clock is a series of events on its streams. They are read at a later step, without waiting.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from gviz.adapters.pytorch.private_api import without_overrides


class Clock(Protocol):
    """Reads moments, and the nanoseconds between two of them."""

    name: str

    def now(self) -> Any:
        """Return the present moment."""

    def is_known(self, moment: Any) -> bool:
        """Return whether the work up to a moment has ended."""

    def between(self, start: Any, end: Any) -> float:
        """Return the nanoseconds between two known moments."""


class HostClock:
    """The clock of the host: what runs on the CPU has ended when the call returns."""

    name = "cpu"

    def __init__(self, read: Callable[[], int] = time.perf_counter_ns) -> None:
        self.now = read

    def is_known(self, moment: int) -> bool:
        """Return True."""
        return True

    def between(self, start: int, end: int) -> float:
        """Return the difference."""
        return end - start


class CudaClock:
    """Events on the current stream of a device."""

    name = "cuda"

    def now(self) -> Any:
        """Record an event."""
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]  # PyTorch has no types here
        event.record()
        return event

    def is_known(self, moment: Any) -> bool:
        """Return whether the device has reached the event."""
        return bool(moment.query())

    def between(self, start: Any, end: Any) -> float:
        """Return the time between two events."""
        return float(start.elapsed_time(end)) * 1e6


@dataclass(slots=True, eq=False)
class Interval:
    """What began at `start` and ended at `end`. `before` and `after` also include the time of the hooks."""

    call: int
    backward: bool
    before: Any
    start: Any
    end: Any = None
    after: Any = None
    inside: list[Interval] = field(default_factory=list)
    is_elsewhere: bool = False
    """Whether a thread of PyTorch ran it, while the program's thread waited in a pass."""


@dataclass(frozen=True, slots=True)
class Call:
    """A module call: its path and class, the call around it (-1: none), and its numbers of nodes from `first` on."""

    path: str
    kind: str
    parent: int
    first: int


_OUTSIDE, _PASS, _STEP = -1, -2, -3
"""Intervals that belong to no module call: nodes of the loss, a pass around its nodes, an optimizer step."""


class IterationTimer:
    """Times one iteration, from `start` to `stop`. `path_of` names a module."""

    def __init__(self, path_of: Callable[[torch.nn.Module], str], clock: Clock) -> None:
        self._path_of = path_of
        self._clock = clock
        self._calls: list[Call] = []
        self._ends: list[int] = []
        self._open: dict[int, list[Interval]] = {}
        self._top: list[Interval] = []
        self._owners: dict[Any, int] = {}
        self._thread = threading.get_ident()
        self._passes = 0
        self._is_broken = False
        self._leaving = ExitStack()
        self._start = self._stop = None

    def start(self) -> None:
        """Install the hooks. The iteration begins."""
        hooks = torch.nn.modules.module
        self._leaving.callback(hooks.register_module_forward_pre_hook(self._enter).remove)
        self._leaving.callback(hooks.register_module_forward_hook(self._leave, always_call=True).remove)
        self._leaving.callback(register_optimizer_step_pre_hook(self._begin_step).remove)
        self._start = self._clock.now()

    def stop(self, end: Any = None) -> None:
        """Remove the hooks. The iteration has ended, at `end` of the clock if given."""
        self._stop = self._clock.now() if end is None else end
        self._leaving.close()
        self.end_step()
        self._is_broken = self._is_broken or any(self._open.values())
        self._owners.clear()

    @property
    def is_known(self) -> bool:
        """Whether the times can be read without waiting."""
        return self._clock.is_known(self._stop)

    def run_pass(self, engine: Callable[[], Any], roots: Any) -> Any:
        """Run a backward pass, with hooks at its nodes."""
        before = self._clock.now()
        with without_overrides():
            self._hook_nodes(roots)
        self._passes += 1
        self._begin(_PASS, True, before)
        try:
            return engine()
        finally:
            self._end(_PASS)
            self._passes -= 1

    def times(self) -> dict[str, Any] | None:
        """Return the nanoseconds of the iteration, its calls and its other parts; None if an exception broke it off.

        Each call has its path, class, parent, and its own nanoseconds forward and backward.
        """
        if self._is_broken or not self._calls:
            return None
        own = {(call, backward): 0.0 for call in range(len(self._calls)) for backward in (False, True)}
        for interval in self._all():
            key = interval.call, interval.backward
            own[key] = own.get(key, 0.0) + self._own(interval)
        calls = [
            [call.path, call.kind, call.parent, *(max(round(own[at, backward]), 0) for backward in (False, True))]
            for at, call in enumerate(self._calls)
        ]
        elsewhere = sum(self._clock.between(each.before, each.after) for each in self._top if each.is_elsewhere)
        passes = own.get((_PASS, True), 0.0)
        total = self._clock.between(self._start, self._stop)
        hooks = sum(self._hooks(interval) for interval in self._all())
        return {
            "clock": self._clock.name,
            "total": round(total - hooks),
            "calls": calls,
            "outside": max(round(own.get((_OUTSIDE, True), 0.0) + max(passes - elsewhere, 0.0)), 0),
            "optimizer": max(round(own.get((_STEP, False), 0.0)), 0),
        }

    def _all(self) -> Iterator[Interval]:
        left = list(self._top)
        while left:
            interval = left.pop()
            left += interval.inside
            yield interval

    def _own(self, interval: Interval) -> float:
        inside = sum(self._clock.between(each.before, each.after) for each in interval.inside)
        return self._clock.between(interval.start, interval.end) - inside

    def _hooks(self, interval: Interval) -> float:
        between = self._clock.between
        return between(interval.before, interval.start) + between(interval.end, interval.after)

    def _begin(self, call: int, backward: bool, before: Any) -> None:
        thread = threading.get_ident()
        interval = Interval(call, backward, before, None, is_elsewhere=thread != self._thread)
        around = self._open.setdefault(thread, [])
        (around[-1].inside if around else self._top).append(interval)
        around.append(interval)
        interval.start = self._clock.now()

    def _end(self, call: int) -> None:
        now = self._clock.now()
        around = self._open.get(threading.get_ident())
        if not around or around[-1].call != call:
            self._is_broken = True  # an exception left something open
            return
        interval = around.pop()
        interval.end, interval.after = now, self._clock.now()

    def _enter(self, module: torch.nn.Module, args: Any) -> None:
        if torch.compiler.is_compiling() or (threading.get_ident() != self._thread and not self._passes):
            return
        before = self._clock.now()
        around = self._open.get(threading.get_ident(), ())
        parent = next((each.call for each in reversed(around) if each.call >= 0), -1)
        call, path = len(self._calls), self._path_of(module)
        if self._passes:  # it runs again: it belongs to the first call with this path
            call = next((at for at, known in enumerate(self._calls) if known.path == path), call)
        if call == len(self._calls):
            number = torch.autograd._get_sequence_nr()  # type: ignore[attr-defined]  # PyTorch has no types here
            self._calls.append(Call(path, type(module).__name__, parent, number))
            self._ends.append(-1)
        self._begin(call, bool(self._passes), before)

    def _leave(self, module: torch.nn.Module, args: Any, result: Any) -> None:
        around = self._open.get(threading.get_ident())
        if torch.compiler.is_compiling() or not around or around[-1].call < 0:
            return
        call = around[-1].call
        self._end(call)
        if self._ends[call] < 0:
            self._ends[call] = torch.autograd._get_sequence_nr()  # type: ignore[attr-defined]

    def _begin_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        before = self._clock.now()
        self.end_step()
        self._begin(_STEP, False, before)

    def end_step(self) -> None:
        """End the optimizer step that runs, if one does."""
        around = self._open.get(self._thread)
        if around and around[-1].call == _STEP:
            self._end(_STEP)

    def _hook_nodes(self, roots: Any) -> None:
        """Put hooks on the nodes behind the roots that have none, and find the calls that created them."""
        nodes = (getattr(root, "grad_fn", None) or getattr(root, "node", None) for root in roots)
        left = [(node, _OUTSIDE) for node in nodes if node is not None]
        starts = sorted((call.first, at) for at, call in enumerate(self._calls))
        while left:
            node, sender = left.pop()
            if node in self._owners:
                continue
            number = node._sequence_nr()
            owner = sender if number >= 1 << 63 else self._owner(number, starts)
            self._owners[node] = owner
            for handle in self._hooks_at(node, owner):
                self._leaving.callback(handle.remove)
            left += [(inner, owner) for inner, _ in node.next_functions if inner is not None]

    def _owner(self, number: int, starts: list[tuple[int, int]]) -> int:
        """Return the innermost call that created the node with a number."""
        at = bisect_right(starts, (number, len(self._calls))) - 1
        call = starts[at][1] if at >= 0 else -1
        while call >= 0 and not number < self._ends[call]:
            call = self._calls[call].parent
        return call

    def _hooks_at(self, node: Any, owner: int) -> Iterator[Any]:
        def begin(*gradients: Any) -> None:
            self._begin(owner, True, self._clock.now())

        def end(*gradients: Any) -> None:
            self._end(owner)

        yield node.register_prehook(begin)
        yield node.register_hook(end)
