"""`gviz monitor` in PyTorch: whole iterations within a budget, and a sentinel at each optimizer step between them.

`gviz.adapters.monitor_budget` decides what is recorded, and documents the states. This module does it in PyTorch: it
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
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial, wraps
from types import TracebackType
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from gviz import emit
from gviz.adapters.monitor_budget import NO_RATE, STILL_FOR, TOO_SMALL, Alarm, Budget, Look, Values
from gviz.adapters.pytorch.attachment import Attachment
from gviz.adapters.pytorch.in_place_writes import emit_written, has_other_ranks
from gviz.adapters.pytorch.iteration_timer import Clock, CudaClock, HostClock, IterationTimer
from gviz.adapters.pytorch.private_api import replace, without_overrides
from gviz.adapters.pytorch.state_snapshot import Key, NoSnapshot, NotRestored, Reach, StateSnapshot
from gviz.adapters.pytorch.tensor_properties import version_of
from gviz.events import Marked
from gviz.parameter_names import parameters_in
from gviz.source import variables_of_objects
from gviz.system import notice

_clock = time.perf_counter_ns
_NO_FUNCTION = "that needs the iteration as a function: step = gviz.iteration(step)"
_MOST_WAITING = 64
"""The largest number of answers of a device that are pending; further looks are skipped."""


@dataclass(slots=True)
class Answer:
    """The norms of the gradients, then the loss if there is one; `arrived` is the device event of their arrival.

    `optimizer` is the number of the optimizer that stepped. `places` are the places of its parameters with these norms,
    and `missing` those without a gradient. With `has_sums`, the norms and sums of their values follow.
    """

    iteration: int
    numbers: torch.Tensor
    has_loss: bool
    arrived: Any = None
    optimizer: int = 0
    places: Sequence[int] = ()
    missing: Sequence[int] = ()
    has_sums: bool = False

    @property
    def is_there(self) -> bool:
        """Whether it can be read without waiting."""
        return self.arrived is None or bool(self.arrived.query())

    def look(self) -> Look:
        """Return the loss and the norm of all gradients."""
        numbers: list[float] = self.numbers.tolist()
        loss = numbers.pop() if self.has_loss else None
        count = len(self.places)
        sums = [numbers[count : 2 * count], numbers[2 * count :]] if self.has_sums else [(), ()]
        del numbers[count:]
        values = {place: Values(*it) for place, *it in zip(self.places, *sums, numbers, strict=False)}
        norm = math.hypot(*numbers)  # inf where one is, unless one is nan
        norm = math.nan if any(map(math.isnan, numbers)) else norm
        still = self.missing
        if 0.0 in numbers:
            still = [*still, *(place for place, it in zip(self.places, numbers, strict=True) if not it)]
        return Look(self.iteration, loss, norm if numbers else None, self.optimizer, still, values)


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is one iteration, and the state of the program before it."""

    iteration: int
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    options: dict[str, Any]
    state: StateSnapshot


@dataclass(frozen=True, slots=True)
class Again:
    """The result of a call that was made again."""

    result: Any


class HalfRestored(RuntimeError):
    """A second run changed the program, and its state after the first one could not be restored."""


def _forget_runner() -> None:
    emit.run_iteration = None


class Monitored:
    """`attached` within a `budget`: a context manager.

    `write` stores its decisions in the trace, as JSON. `pause` pauses the program, opens the debugger, and
    returns whether the program may pause again.
    """

    def __init__(
        self, attached: Attachment, budget: Budget, write: Callable[[str], None], pause: Callable[[], bool]
    ) -> None:
        self._attached = attached
        self._budget = budget
        budget.times_modules = attached.session.hears_operations
        budget.name_of, budget.program = self._name_of, _program()
        budget.why_unchanged = self._why_unchanged
        self._write, self._pause = write, pause
        self._pauses_left = 0
        """How often the program still pauses because of an alarm: at once, and after the next whole iteration."""
        self._leaving = ExitStack()
        self._answers: deque[Answer] = deque()
        self._optimizers: list[weakref.ref[Any]] = []
        """The optimizers in the order of their first steps."""
        self._leading: list[weakref.ref[Any] | None] = []
        """The first parameter of each."""
        self._leaf_nodes: set[int] = set()
        self._known_leaves: list[weakref.ref[torch.Tensor]] = []
        """The parameters of a program without an optimizer, in the order in which they were found."""
        self._thread = threading.get_ident()
        self._loss: torch.Tensor | None = None
        self._alarm: Alarm | None = None
        """The last alarm that has no mark in the trace yet."""
        self._pause_alarm: Alarm | None = None
        """The alarm at which the program is about to pause."""
        self._call: Call | None = None
        """The last call with a snapshot, until the answers of its looks are there."""
        self._copies: dict[Key, torch.Tensor] = {}
        """The copies of the last snapshot, for the next one to write over."""
        self._reported: set[str] = set()
        """The reasons that are not printed again."""
        self._why_no_snapshot = ""
        """Why no snapshot can be taken of any call."""
        self._runs_again = False
        """Whether a call is being made again: it ends no iteration, and the sentinel does not look."""
        self._looks: dict[int, int] = {}
        """The number of looks at the steps of each optimizer, less one."""
        self._look_time = 0
        """The time of looks at steps since the last iteration ended."""
        self._spent_before = 0
        self.timer: IterationTimer | None = None
        """Times the current iteration, if it is timed."""
        self._timed: deque[tuple[int, IterationTimer]] = deque()
        self._left = self._stretch = budget.stretch
        """The steps left in the current stretch, and its length."""
        self._versions: dict[int, int] = {}
        """The versions of announced tensors when the recording paused, by node."""
        self._depth = 0
        """The number of backward passes that run now, one within another."""
        self._began = _clock()

    def __enter__(self) -> Monitored:
        with ExitStack() as leaving:
            replace_engine(self, leaving)
            leaving.enter_context(self._attached)
            leaving.callback(register_optimizer_step_post_hook(self._stepped).remove)
            emit.before_marks.append(self._marked)
            leaving.callback(emit.before_marks.remove, self._marked)
            emit.run_iteration = self.run_iteration
            leaving.callback(_forget_runner)
            session = self._attached.session
            session.pass_ended, session.channel.before_failure = self._passed, self._failed
            self._leaving = leaving.pop_all()
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
        self._call, self._copies = None, {}
        if self.timer is not None:
            self.timer.stop()
        for number, timer in self._timed:
            if timer.is_known:
                self._take_times(number, timer)
        self._budget.iteration += self._stretch - self._left
        self._write_facts()
        session = self._attached.session
        session.pass_ended = session.channel.before_failure = None
        self._leaving.close()

    @property
    def spent(self) -> int:
        """Nanoseconds that the program's threads have spent in gviz's hooks."""
        return self._attached.spent

    def node_of(self, tensor: object) -> int:
        """Return the node whose output is `tensor`, or 0 if the recording does not know the tensor."""
        return self._attached.node_of(tensor)

    @property
    def is_within_stretch(self) -> bool:
        """Whether nothing happens at the end of the current iteration, and its passes end none."""
        return self._left > 1 and self._budget.boundaries.by not in ("", "passes")

    def observed(self, roots: Sequence[Any]) -> None:
        """Note that a backward pass begins. If it begins at a single number, that is the loss."""
        if self._left == 1 and len(roots) == 1 and not self._runs_again:
            with without_overrides():
                root = roots[0]
                if isinstance(root, torch.Tensor) and root.numel() == 1:
                    self._loss = root.detach()

    def run_pass(self, engine: Callable[..., Any], roots: Sequence[Any], args: Sequence[Any], options: Any) -> Any:
        """Run a backward pass that is not recorded, or the engine of one that is."""
        self.observed(roots)
        if threading.get_ident() != self._thread or self._runs_again:
            return engine(roots, *args, **options)  # it ends no iteration
        is_recorded = self._attached.session.is_recording
        timer = self.timer  # a step in another thread may remove it meanwhile
        self._depth += 1
        try:
            if timer is None:
                return engine(roots, *args, **options)
            return timer.run_pass(partial(engine, roots, *args, **options), roots)
        finally:
            self._depth -= 1
            if not (self._depth or is_recorded or _creates_graph(args)):
                self._passed()

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Note an optimizer step. If that optimizer was the first to step in the run, an iteration is over."""
        is_here = threading.get_ident() == self._thread
        if self._left > 1 and self._budget.boundaries.by == "steps" and is_here and self._optimizers[0]() is optimizer:
            self._left -= 1  # almost every step
            return
        if self._runs_again and is_here:
            return
        if self.timer is not None and is_here:
            self.timer.end_step()
        if not self._optimizers:
            self._thread, is_here = threading.get_ident(), True
        if not is_here:
            return
        number = self._number_of(optimizer)
        if number == 0 and self._budget.boundaries.stepped():
            self._ended(optimizer)
        elif self._left == 1 and self._budget.looks_at_all:
            began = _clock()
            with without_overrides(), torch.no_grad():
                self._look(_parameters_of(optimizer), number)
            self._look_time += _clock() - began

    def _number_of(self, optimizer: Any) -> int:
        """Return the number of an optimizer, in the order of their first steps.

        An optimizer has the number of one that no longer exists, as where each epoch makes its own. If they have other
        parameters, what was watched of the one before says nothing about it.
        """
        for number, known in enumerate(self._optimizers):
            if known() is optimizer:
                return number
        first = next(iter(_parameters_of(optimizer)), None)
        for number, (known, leading) in enumerate(zip(self._optimizers, self._leading, strict=True)):
            if known() is None:
                if first is None or leading is None or leading() is not first:
                    self._budget.forget(number)
                self._optimizers[number], self._leading[number] = weakref.ref(optimizer), _weak(first)
                return number
        self._optimizers.append(weakref.ref(optimizer))
        self._leading.append(_weak(first))
        return len(self._optimizers) - 1

    def _marked(self, name: str) -> None:
        """Note a mark of the program, which may end an iteration."""
        is_here = threading.get_ident() == self._thread and not self._runs_again
        if is_here and self._budget.boundaries.marked():
            self._ended()

    def _passed(self) -> None:
        """Note the end of a backward pass that is not part of another one."""
        is_here = threading.get_ident() == self._thread and not self._runs_again
        if is_here and self._budget.boundaries.passed():
            self._ended()

    def _failed(self, error: BaseException) -> None:
        """Let the recording continue, so that it has the error of the program. Print how to record what led there."""
        session, budget = self._attached.session, self._budget
        at = budget.iteration + self._stretch - self._left
        if budget.is_whole or emit.channel is not None:
            return
        emit.attach(session.channel)
        if budget.looks_at_all and not isinstance(error, KeyboardInterrupt):
            since = max(at - 1, 1)
            alarm = budget.raised(at, f"the program failed with {type(error).__name__}", since)
            if alarm is not None:
                session.channel.emit(Marked(f"alarm at iteration {at}: {alarm.what}"))
                notice.show(f"gviz: iteration {at:,}: {alarm.what}", _command(alarm))

    def run_iteration(self, fn: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Call a function that is one iteration, and call it again if an alarm is raised in it and that is possible."""
        boundaries = self._budget.boundaries
        if boundaries.by != "calls":
            boundaries.by, self._thread = "calls", threading.get_ident()
        if threading.get_ident() != self._thread:
            return fn(*args, **options)
        self._prepare_call(fn, args, options)
        try:
            result = fn(*args, **options)
        except BaseException:
            self._drop_call()
            raise
        again = self._ended()
        return result if again is None else again.result

    def _prepare_call(self, fn: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Take a snapshot of the program's state before a call, if the budget allows it and a look will follow."""
        if self._left != 1 or self._is_call_pending or not self._budget.affords_snapshot or self._why_no_snapshot:
            return
        self._drop_call()
        began, copies, self._copies = _clock(), self._copies, {}
        try:
            with without_overrides():
                known = [it for it in (known() for known in self._optimizers) if it is not None]
                state = StateSnapshot(Reach(fn, args, options), known, copies)
            self._call = Call(self._budget.iteration, fn, args, options, state)
        except NoSnapshot as why:
            self._why_no_snapshot = str(why)
        except Exception as trouble:  # the program continues, whatever the error
            self._why_no_snapshot = f"its state cannot be copied: {type(trouble).__name__}: {trouble}"
        self._budget.took_snapshot(_clock() - began)

    @property
    def _is_call_pending(self) -> bool:
        """Whether answers of looks at the last call with a snapshot have not arrived."""
        return self._call is not None and any(it.iteration == self._call.iteration for it in self._answers)

    def _drop_call(self) -> None:
        """Release the last call, with its arguments and results. Keep the memory of its copies for the next one."""
        if self._call is not None:
            self._copies = self._call.state.copies
            self._call = None

    def _run_again(self, alarm: Alarm) -> Again | None:
        """Run the iteration of an alarm again and record it whole. Print why if that is impossible.

        Return its result, None if the caller keeps the result of the first run. The answer of a device may have come
        some iterations later. Then the state of now is restored afterwards.
        """
        call, self._call = self._call, None
        why = self._why_not_again(call, alarm)
        if call is None or why:
            if why not in self._reported:
                notice.show(f"gviz: iteration {alarm.iteration:,} is not run again: {why}")
            self._reported |= {why} & {_NO_FUNCTION}
            return None
        self._runs_again = True
        try:
            return self._second_run(call, is_late=alarm.iteration != self._budget.iteration)
        except HalfRestored:  # the numbers would be others than without gviz
            raise
        except Exception as trouble:  # the program continues, whatever the error
            notice.show(f"gviz: iteration {alarm.iteration:,} was not run again: {type(trouble).__name__}: {trouble}")
            return None
        finally:
            self._runs_again = False

    def _second_run(self, call: Call, *, is_late: bool) -> Again | None:
        """Make a call again and record it. Unless everything is as after the first run, restore that."""
        budget, session = self._budget, self._attached.session
        with without_overrides():
            after = call.state.now()
        error, result, is_same = None, None, False
        try:
            with without_overrides():
                call.state.restore()
            if not budget.is_whole:
                self._attached.resume()
            self._emit_alarm()
            session.channel.emit(Marked(f"iteration {call.iteration}"))
            self._emit_written_meanwhile()
            budget.recorded_again(call.iteration)
            try:
                result = call.fn(*call.args, **call.options)
            except Exception as raised:  # the first run raised none
                error = raised
            with without_overrides():
                is_same = error is None and not is_late and after.equals(call.state.now())
        finally:
            if not is_same:
                try:
                    with without_overrides():
                        after.restore()
                except NotRestored as why:
                    what = f"the program's state after the first run of iteration {call.iteration:,} is not restored"
                    raise HalfRestored(f"gviz: {what}: {why}") from why
                self._emit_written_meanwhile()
        notice.show(f"gviz: iteration {call.iteration:,} was run again, and is recorded whole")
        if error is not None:
            what = f"failed with {type(error).__name__}"
        else:
            what = "has other numbers (state that gviz does not restore, or a nondeterministic operation)"
        if not (is_same or (is_late and error is None)):
            notice.show(f"gviz: the second run {what}; the program continues after the first run")
        return Again(result) if is_same else None

    def _why_not_again(self, call: Call | None, alarm: Alarm) -> str:
        """Return why the iteration of an alarm cannot be run again; empty if it can."""
        budget = self._budget
        if budget.boundaries.by != "calls":
            return _NO_FUNCTION
        if budget.by_number or has_other_ranks():
            return "all processes of the training would have to do so"
        if self._why_no_snapshot:
            return self._why_no_snapshot
        if not budget.share:
            return "the budget has no room for a snapshot of its state"
        if call is None or call.iteration != alarm.iteration:
            return f"a snapshot of its state fits into the budget in one of {budget.between_snapshots:,} iterations"
        if emit.channel not in (None, self._attached.session.channel):
            return "another recording is in progress"
        return call.state.why_not_again()

    def _emit_alarm(self) -> None:
        """Put the last alarm into the trace, if it is not there yet."""
        if self._alarm is not None:
            what = f"alarm at iteration {self._alarm.iteration}: {self._alarm.what}"
            self._attached.session.channel.emit(Marked(what))
            self._alarm = None

    def _ended(self, optimizer: Any = None) -> Again | None:
        """End an iteration. Return the result of its second run, if there was one."""
        self._left -= 1
        if self._left:
            return None
        now, budget, was_whole = _clock(), self._budget, self._budget.is_whole
        if self.timer is not None:
            self.timer.stop()
            self._timed.append((budget.iteration, self.timer))
            self.timer = None
        while self._timed and not _is_captured() and self._timed[0][1].is_known:
            self._take_times(*self._timed.popleft())
        has_looked = optimizer is None and budget.boundaries.by == "calls" and bool(self._optimizers)  # at the steps
        if budget.looks_at_all and not has_looked:
            with without_overrides(), torch.no_grad():
                self._look(_parameters_of(optimizer) if optimizer is not None else self._leaves())
        while self._answers and self._answers[0].is_there:
            self._take(self._answers.popleft())
        again, is_listening = None, was_whole
        if self._alarm is not None and not budget.has_whole(self._alarm.iteration):
            again = self._run_again(self._alarm)
            is_listening = emit.channel is self._attached.session.channel
        if not self._is_call_pending:
            self._drop_call()
        if not budget.by_number and has_other_ranks():
            budget.by_number = True
        hook_time, self._spent_before = self._attached.spent - self._spent_before, self._attached.spent
        is_whole = budget.ended(now - self._began, hook_time, self._stretch)
        if is_whole != is_listening:
            self._switch(is_whole)
        if is_whole:
            self._emit_alarm()
            self._attached.session.channel.emit(Marked(f"iteration {budget.iteration}"))
            if not is_listening:
                self._emit_written_meanwhile()
        now += self._paused(was_whole=is_listening)
        self._left = self._stretch = budget.stretch
        if budget.is_timed:
            self._start_timer()
        self._began = _clock()
        took, self._look_time = self._began - now + self._look_time, 0
        budget.spent += took
        if budget.looks_at_all and not (is_whole or was_whole):
            budget.looked(took)
        return again

    def _paused(self, *, was_whole: bool) -> int:
        """Pause the program if an alarm requests it. Return for how long, in nanoseconds.

        The iteration of an alarm is usually not recorded. Then the program pauses again when the next one is.
        """
        is_first = self._pause_alarm is not None
        if self._pause_alarm is not None:
            self._pauses_left = 1 if was_whole else 2
            self._pause_alarm = None
        if not (self._pauses_left and (is_first or was_whole)):
            return 0
        self._pauses_left -= 1
        began = _clock()
        if not has_other_ranks():
            self._write_facts()
            if not self._pause():
                self._pauses_left = 0
        elif is_first:
            notice.show("gviz: the program does not pause: the other processes of the training would wait for it")
        return _clock() - began

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
            with without_overrides():
                self._versions = {mark.node: version_of(it) for mark, it in self._attached.session.marks.tensors()}
            self._attached.pause()

    def _emit_written_meanwhile(self) -> None:
        """Record the values of the parameters, and of other tensors, that were written to while nothing listened."""
        session = self._attached.session
        with without_overrides():
            for mark, tensor in session.marks.tensors():
                if self._versions.get(mark.node, version_of(tensor)) != version_of(tensor):
                    emit_written(session, tensor, mark.node)

    def _leaves(self) -> list[torch.Tensor | None]:
        """Return the parameters of a program without an optimizer: the leaves of whole iterations that have `.grad`.

        Each keeps its place; None is in the place of one that no longer exists.
        """
        for mark, tensor in self._attached.session.marks.tensors():
            if tensor.requires_grad and tensor.is_leaf and mark.node not in self._leaf_nodes:
                self._leaf_nodes.add(mark.node)
                self._known_leaves.append(weakref.ref(tensor))
        return [known() for known in self._known_leaves]

    def _look(self, parameters: Sequence[torch.Tensor | None], optimizer: int = 0) -> None:
        if len(self._answers) >= _MOST_WAITING:
            return
        gradients, places, missing = [], [], []
        for place, parameter in enumerate(parameters):
            if parameter is None:
                continue
            grad = parameter.grad
            if grad is not None and grad.layout is torch.strided:
                gradients.append(grad)
                places.append(place)
            elif grad is None and parameter.requires_grad:
                missing.append(place)
        loss, self._loss = self._loss, None
        norms = list(torch._foreach_norm(gradients)) if gradients else []
        looks = self._looks[optimizer] = self._looks.get(optimizer, -1) + 1
        with_gradient = [it for it in (parameters[place] for place in places) if it is not None]
        is_due = bool(gradients) and not looks % STILL_FOR and bool(self._optimizers)
        has_sums = is_due and all(map(_has_sums, with_gradient))
        if has_sums:
            norms += torch._foreach_norm(with_gradient, 2, torch.float64)
            norms += [it.sum(dtype=torch.float64) for it in with_gradient]
        if loss is not None:
            norms.append(loss)
        if not norms:
            return
        answer = _pending_answer(self._budget.iteration + self._stretch - 1, norms, loss is not None)
        answer.optimizer, answer.places, answer.missing = optimizer, places, missing
        answer.has_sums = has_sums
        self._answers.append(answer)

    def _name_of(self, optimizer: int, place: int) -> str:
        """Return the name of a parameter: its path in the model that has it, or the variable that holds it."""
        whose = self._optimizers[optimizer]() if optimizer < len(self._optimizers) else None
        parameters = self._leaves() if whose is None else _parameters_of(whose)
        wanted = parameters[place] if place < len(parameters) else None
        if wanted is not None:

            def has_it(model: torch.nn.Module) -> bool:
                return any(own is wanted for _, own in parameters_in(model))

            model = self._attached.model
            if model is None or not has_it(model):
                model = variables_of_objects.program_variable(torch.nn.Module, has_it)
            if model is not None:
                return next(path for path, own in parameters_in(model) if own is wanted)
            if name := variables_of_objects.first_name(wanted):
                return name
        return f"parameter {place + 1} of {type(whose).__name__}" if whose is not None else f"parameter {place + 1}"

    def _why_unchanged(self, optimizer: int, place: int) -> str:
        """Return why the values of a parameter with a gradient do not change; empty if that is unknown."""
        whose = self._optimizers[optimizer]() if optimizer < len(self._optimizers) else None
        if whose is None:
            return ""
        for group in whose.param_groups:
            if place < len(group["params"]):
                if "lr" in group and float(group["lr"]) == 0:
                    return NO_RATE
                parameter = group["params"][place]
                norm = self._budget.gradient_of(optimizer, place)
                if _is_captured() or not _is_rounded_away(parameter, group, whose.state.get(parameter, {}), norm):
                    return ""
                return f"{TOO_SMALL} in {str(parameter.dtype).removeprefix('torch.')}"
            place -= len(group["params"])
        return ""

    def _take(self, answer: Answer) -> None:
        alarm = self._budget.answered(answer.look())
        if alarm is not None:
            self._alarm = alarm
            if self._budget.pauses_at(alarm):
                self._pause_alarm = alarm
            notice.show(*_words(alarm))

    def _write_facts(self) -> None:
        self._write(json.dumps(self._budget.as_data()))


def _creates_graph(args: Sequence[Any]) -> bool:
    """Return whether these arguments of the engine ask for a graph of the pass, which another pass then follows."""
    return bool(args[2]) if len(args) > 2 else False


def _has_sums(parameter: torch.Tensor) -> bool:
    """Return whether sums in double precision show if the values of a parameter change."""
    is_known = parameter.layout is torch.strided and parameter.device.type in ("cpu", "cuda")
    return is_known and parameter.is_floating_point() and parameter.dtype.itemsize > 1


def _is_rounded_away(
    parameter: torch.Tensor, options: Mapping[str, Any], state: Mapping[str, Any], norm: float
) -> bool:
    """Return whether an update of the size that the optimizer makes changes no number of a parameter.

    That is the learning rate, times the gradient unless the optimizer scales it. `norm` is that of the gradient: no
    element is larger. Where an update would change a number, something else holds the values, such as a clipping.
    """
    if "lr" not in options:
        return False
    with without_overrides(), torch.no_grad():
        size: Any = float(options["lr"])
        if not state.keys() - {"step", "momentum_buffer"}:
            gradient = state.get("momentum_buffer")
            gradient = parameter.grad if gradient is None else gradient
            try:
                has_gradient = gradient is not None and bool(gradient.count_nonzero())
                size = size * (gradient.to(parameter.dtype) if gradient is not None and has_gradient else norm)
            except RuntimeError:  # its memory, or its layout
                return False
        try:
            return torch.equal(parameter + size, parameter) and torch.equal(parameter - size, parameter)
        except RuntimeError:
            return False


def _weak(parameter: torch.Tensor | None) -> weakref.ref[Any] | None:
    return None if parameter is None else weakref.ref(parameter)


def _parameters_of(optimizer: Any) -> list[torch.Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _is_captured() -> bool:
    """Return whether a CUDA graph is being captured: asking for an event then would break the capture."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()  # type: ignore[no-untyped-call]


def replace_engine(monitored: Monitored, leaving: ExitStack) -> None:
    """Observe the roots of backward passes, also while nothing is recorded."""
    engine = torch.autograd.graph._engine_run_backward

    @wraps(engine)
    def observed(roots: Any, *args: Any, **options: Any) -> Any:
        if monitored.is_within_stretch:  # almost every pass
            return engine(roots, *args, **options)
        return monitored.run_pass(engine, roots, args, options)

    for home in (torch.autograd.graph, torch.autograd):
        replace(home, "_engine_run_backward", observed, leaving)


def _pending_answer(iteration: int, numbers: list[torch.Tensor], has_loss: bool) -> Answer:
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
    is_known_exactly = alarm.since >= alarm.iteration - 1 or "iteration" in alarm.what  # or the words name it
    between = "" if is_known_exactly else f" (the last check without trouble: iteration {alarm.since:,})"
    return (
        f"gviz: iteration {alarm.iteration:,}: {alarm.what}{between}; the next iterations are recorded whole",
        _command(alarm),
    )


def _command(alarm: Alarm) -> str:
    """Return the line with the command that runs the program again and records what led to an alarm.

    Such a recording ends at the first nan or infinity, if the alarm is about one.
    """
    until = ["--on", "nan" if "nan" in alarm.numbers else "inf"] if alarm.numbers else []
    again = shlex.join(["gviz", "record", "--from-iteration", str(alarm.since), *until, *_program()])
    return f"gviz: to record the iterations before it, if the program sets its seeds: {again}"


def _program() -> list[str]:
    """Return the program of this process with its arguments, as they are typed for gviz."""
    words = sys.orig_argv
    if "-m" in words and sys.argv and sys.argv[0].endswith(".py"):
        return ["-m", words[words.index("-m") + 1], *sys.argv[1:]]
    return list(sys.argv)
