"""A recording that pauses: whole iterations within a budget, and a sentinel at each optimizer's step between them.

`gviz.adapters.recording_budget` decides what is recorded, and documents the states. This module does it in PyTorch: it
installs and removes the parts of a recording at the end of a step. A look computes the norm of all gradients, with the
loss, in one fused call. The host does not wait for a device: an answer is copied to pinned memory, and read at a later
step, when it has arrived.
"""

from __future__ import annotations

import json
import math
import shlex
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial, wraps
from types import TracebackType
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from gviz.adapters.pytorch.attachment import Attached
from gviz.adapters.pytorch.in_place_writes import has_other_ranks
from gviz.adapters.pytorch.iteration_timer import Clock, CudaClock, HostClock, IterationTimer
from gviz.adapters.pytorch.private_api import replace, without_overrides
from gviz.adapters.recording_budget import Alarm, Budget, Look
from gviz.events import Marked
from gviz.system import notice

_clock = time.perf_counter_ns
_MOST_WAITING = 64
"""The largest number of answers of a device that are pending; further looks are skipped."""


@dataclass(slots=True)
class Answer:
    """The norms of the gradients, then the loss if there is one; `arrived` is the device event of their arrival."""

    iteration: int
    numbers: torch.Tensor
    has_loss: bool
    arrived: Any = None

    @property
    def is_there(self) -> bool:
        """Whether it can be read without waiting."""
        return self.arrived is None or bool(self.arrived.query())

    def look(self) -> Look:
        """Return the loss and the norm of all gradients."""
        numbers: list[float] = self.numbers.tolist()
        loss = numbers.pop() if self.has_loss else None
        norm = math.hypot(*numbers)  # inf where one is, unless one is nan
        return Look(self.iteration, loss, math.nan if any(map(math.isnan, numbers)) else norm)


class Monitored:
    """`attached` within a `budget`: a context manager. `write` stores its decisions in the trace, as JSON."""

    def __init__(self, attached: Attached, budget: Budget, write: Callable[[str], None]) -> None:
        self._attached = attached
        self._budget = budget
        budget.times_modules = attached.session.hears_operations
        self._write = write
        self._leaving = ExitStack()
        self._answers: deque[Answer] = deque()
        self._leader: int | None = None
        self._thread = threading.get_ident()
        self._loss: torch.Tensor | None = None
        self._alarm: Alarm | None = None
        """The last alarm that has no mark in the trace yet."""
        self._heard = 0
        self.timer: IterationTimer | None = None
        """Times the current iteration, if it is timed."""
        self._timed: deque[tuple[int, IterationTimer]] = deque()
        self._left = self._stretch = budget.stretch
        """The steps left in the current stretch, and its length."""
        self._began = _clock()

    def __enter__(self) -> Monitored:
        with ExitStack() as leaving:
            replace_engine(self, leaving)
            leaving.enter_context(self._attached)
            leaving.callback(register_optimizer_step_post_hook(self._stepped).remove)
            self._leaving = leaving.pop_all()
        session = self._attached.session
        if self._budget.first == 1:
            session.not_seen("between")
        if self._budget.is_whole:
            session.channel.emit(Marked("iteration 1"))
        else:
            self._attached.pause()
        self._began = _clock()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for answer in self._answers:
            self._take(answer)
        if self.timer is not None:
            self.timer.stop()
        for number, timer in self._timed:
            if timer.is_known:
                self._take_times(number, timer)
        self._budget.iteration += self._stretch - self._left
        self._write_facts()
        self._leaving.close()

    @property
    def spent(self) -> int:
        """Nanoseconds that the program's threads have spent in gviz's hooks."""
        return self._attached.spent

    def node_of(self, tensor: object) -> int:
        """Return the node whose output is `tensor`, or 0 if the recording does not know the tensor."""
        return self._attached.node_of(tensor)

    def observed(self, roots: Sequence[Any]) -> None:
        """Note that a backward pass begins. If it begins at a single number, that is the loss."""
        if self._left == 1 and len(roots) == 1:
            with without_overrides():
                root = roots[0]
                if isinstance(root, torch.Tensor) and root.numel() == 1:
                    self._loss = root.detach()

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Note an optimizer step. If that optimizer was the first to step in the run, an iteration is over."""
        if self.timer is not None and threading.get_ident() == self._thread:
            self.timer.end_step()
        if self._leader is None:
            self._leader, self._thread = id(optimizer), threading.get_ident()
        if id(optimizer) != self._leader or threading.get_ident() != self._thread:
            return
        self._left -= 1
        if self._left:
            return
        now, budget, was_whole = _clock(), self._budget, self._budget.is_whole
        if self.timer is not None:
            self.timer.stop()
            self._timed.append((budget.iteration, self.timer))
            self.timer = None
        while self._timed and not _is_captured() and self._timed[0][1].is_known:
            self._take_times(*self._timed.popleft())
        if budget.looks_at_all:
            with without_overrides(), torch.no_grad():
                self._look(optimizer)
        while self._answers and self._answers[0].is_there:
            self._take(self._answers.popleft())
        if not budget.by_number and has_other_ranks():
            budget.by_number = True
        heard, self._heard = self._attached.spent - self._heard, self._attached.spent
        is_whole = budget.ended(now - self._began, heard, self._stretch)
        if is_whole != was_whole:
            self._switch(is_whole)
        if is_whole:
            emit = self._attached.session.channel.emit
            if self._alarm is not None:
                emit(Marked(f"alarm at iteration {self._alarm.iteration}: {self._alarm.what}"))
                self._alarm = None
            emit(Marked(f"iteration {budget.iteration}"))
        self._left = self._stretch = budget.stretch
        if budget.is_timed:
            self._start_timer()
        self._began = _clock()
        budget.spent += self._began - now
        if budget.looks_at_all and not (is_whole or was_whole):
            budget.looked(self._began - now)

    def _start_timer(self) -> None:
        paths = self._attached.session.module_paths
        is_on_device = torch.cuda.is_available() and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        clock: Clock = CudaClock() if is_on_device else HostClock()
        self.timer = IterationTimer(lambda module: paths.get(id(module)) or type(module).__name__, clock)
        self.timer.start()

    def _take_times(self, iteration: int, timer: IterationTimer) -> None:
        times = timer.times()
        if times is not None:
            self._budget.timed.append((iteration, times))

    def _switch(self, is_whole: bool) -> None:
        if is_whole:
            self._attached.resume()
        else:
            self._write_facts()
            self._attached.pause()

    def _look(self, optimizer: Any) -> None:
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        gradients = [each for each in gradients if each.layout is torch.strided]
        if not gradients or len(self._answers) >= _MOST_WAITING:
            return
        loss, self._loss = self._loss, None
        norms = list(torch._foreach_norm(gradients))
        if loss is not None:
            norms.append(loss)
        self._answers.append(_asked(self._budget.iteration + self._stretch - 1, norms, loss is not None))

    def _take(self, answer: Answer) -> None:
        alarm = self._budget.answered(answer.look())
        if alarm is not None:
            self._alarm = alarm
            notice.show(*_words(alarm))

    def _write_facts(self) -> None:
        self._write(json.dumps(self._budget.as_data()))


def _is_captured() -> bool:
    """Return whether a CUDA graph is being captured: asking for an event then would break the capture."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()  # type: ignore[no-untyped-call]


def replace_engine(monitored: Monitored, leaving: ExitStack) -> None:
    """Observe the roots of backward passes, also while nothing is recorded."""
    engine = torch.autograd.graph._engine_run_backward

    @wraps(engine)
    def observed(roots: Any, *args: Any, **options: Any) -> Any:
        monitored.observed(roots)
        timer = monitored.timer  # a step in another thread may remove it meanwhile
        if timer is None:
            return engine(roots, *args, **options)
        return timer.run_pass(partial(engine, roots, *args, **options), roots)

    for home in (torch.autograd.graph, torch.autograd):
        replace(home, "_engine_run_backward", observed, leaving)


def _asked(iteration: int, numbers: list[torch.Tensor], has_loss: bool) -> Answer:
    """Start the copy of numbers to the host."""
    first = numbers[0]
    if any(it.dtype is not first.dtype or it.device != first.device or it.ndim for it in numbers):
        exact = torch.float64 if first.device.type in ("cpu", "cuda") else torch.float32
        numbers = [it.reshape(()).to(first.device, exact) for it in numbers]
    together = torch.stack(numbers)
    if together.device.type != "cuda":
        return Answer(iteration, together, has_loss)
    host = torch.empty(together.shape, dtype=together.dtype, pin_memory=True)
    host.copy_(together, non_blocking=True)
    arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]  # PyTorch has no types here
    arrived.record()
    return Answer(iteration, host, has_loss, arrived)


def _words(alarm: Alarm) -> tuple[str, str]:
    """Return the lines about an alarm: what is wrong, and the command that records the iterations before it."""
    again = shlex.join(["gviz", "record", "--from-iteration", str(alarm.since), *_program()])
    return (
        f"gviz: iteration {alarm.iteration:,}: {alarm.what}; the next iterations are recorded whole",
        f"gviz: to record the iterations before it, if the program sets its seeds: {again}",
    )


def _program() -> list[str]:
    """Return the program of this process with its arguments, as they are typed for gviz."""
    words = sys.orig_argv
    if "-m" in words and sys.argv and sys.argv[0].endswith(".py"):
        return ["-m", words[words.index("-m") + 1], *sys.argv[1:]]
    return list(sys.argv)
