"""Schedulers that start again when a training resumes, that both act on one of two optimizers, or that never finish
their warm-up.

Idea. The learning rate of each step is recorded. An optimizer that continues a training, with parameters that have the
numbers of an earlier one, has the rate at which that one stopped. If it has the rate at which that one began, the
program has made the scheduler after it had loaded the optimizer. If a program makes two equal schedulers for two
optimizers, and the rate of one optimizer never changes, then both schedulers act on the other one.

Example. ``opt.load_state_dict(state)`` and then ``LambdaLR(opt, f)``; or ``d_sched = StepLR(g_opt, 10)``.

Limits. A resumed training is only known if the one before it is in the recording.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from gviz.events.optimizer_options import options_in
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.training_loop.learning_rate import OptimizerRates, rates_by_optimizer, whole_steps
from gviz.explain.parameter_updates import numbers_without_shape, rates_of
from gviz.explain.program_text import (
    FUNCTION_NODES,
    ProgramText,
    Statement,
    called_lines,
    called_name,
    frame_of,
    function_of,
    innermost_loop,
    method_class,
    passed_arguments,
    program_text,
    receiver,
    statement_at,
    variables_of,
)
from gviz.explain.recording_survey import Survey
from gviz.explain.source_edit import moved, node_replaced, with_keyword
from gviz.explain.source_frames import own_frames
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number
from gviz.values.plain_text import file_line, shown


@dataclass(slots=True)
class _Training:
    """The steps of one optimizer: their events, its parameters, and the rate of its first group in each step."""

    kind: str
    stack: int
    seqs: list[int] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    parameters: set[int] = field(default_factory=set)


def _trainings(survey: Survey) -> Generator[None, None, list[_Training]]:
    """Return the steps by optimizer: one is known by its first parameter, whatever line steps it."""
    known: dict[tuple[str, int], _Training] = {}
    for step in (yield from survey.once(whole_steps)):
        event, rate = step.end, next(iter(rates_of(step.start)), None)
        if rate is not None:
            key = event.kind, min((*event.parameters, *event.skipped))
            one = known.setdefault(key, _Training(event.kind, event.stack))
            one.seqs.append(step.begun)
            one.rates.append(rate)
            one.parameters.update(event.parameters)
    return list(known.values())


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A scheduler that the program makes: ``sched = StepLR(opt, 10)``."""

    text: ProgramText
    statement: Statement
    call: ast.Call
    optimizer_node: ast.expr
    target: str

    @property
    def optimizer(self) -> str:
        """The text of the argument that is its optimizer."""
        return ast.unparse(self.optimizer_node)

    @property
    def function(self) -> ast.AST | None:
        """The function that makes it."""
        return function_of(self.statement)

    @property
    def others(self) -> str:
        """What it gets apart from its optimizer, as text."""
        keywords = sorted(ast.unparse(one) for one in self.call.keywords if one.arg != "optimizer")
        return ", ".join([*map(ast.unparse, self.call.args[1:]), *keywords])


_SCHEDULER = re.compile(r"^\w+LR$|^CosineAnnealingWarmRestarts$|^ReduceLROnPlateau$|^get_\w*schedule\w*$")


def made_schedulers(survey: Survey, like: Frame) -> list[Scheduler]:
    """Return the schedulers that the file of a frame makes."""
    text, made = program_text(survey.timeline, like), list[Scheduler]()
    if text is None:
        return made
    for one in text.statements:
        for call in one.parts(ast.Call):
            optimizers = [*call.args[:1], *(key.value for key in call.keywords if key.arg == "optimizer")]
            is_place = optimizers and isinstance(optimizers[0], ast.Name | ast.Attribute | ast.Subscript)
            if is_place and _SCHEDULER.match(called_name(call)):
                targets = one.node.targets if isinstance(one.node, ast.Assign) else []
                target = ast.unparse(targets[0]) if len(targets) == 1 else ""
                made.append(Scheduler(text, one, call, optimizers[0], target))
    return made


def _given(call: ast.Call, function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str]:
    """Return the arguments of a call by the name of the parameter of a function or method that gets them, as text."""
    return {name: ast.unparse(value) for name, value in passed_arguments(call, function).items()}


# A scheduler that is made after the state of its optimizer was loaded


def restarted_schedule(survey: Survey) -> Iterator[Finding | None]:
    """Yield a training that goes on with the numbers of an earlier one, and starts again at that one's first rate."""
    timeline, trainings = survey.timeline, (yield from survey.once(_trainings))
    seen = set[tuple[str, int]]()
    for at, later in enumerate(trainings):
        for earlier in reversed(trainings[:at]):
            yield None
            is_next = later.kind == earlier.kind and later.seqs[0] > earlier.seqs[-1]
            starts_again = later.rates[0] == earlier.rates[0] != earlier.rates[-1]
            if not is_next or not starts_again or later.parameters & earlier.parameters:
                continue
            if not _goes_on(survey, earlier, later):
                continue
            files = {frame.path: frame for frame in timeline.stack(later.stack)}.values()
            for one, like in ((made, frame) for frame in files for made in made_schedulers(survey, frame)):
                loaded = _loaded_before(one)
                if loaded is not None and (one.text.path, one.statement.first) not in seen:
                    seen.add((one.text.path, one.statement.first))
                    yield _restarted_finding(survey, one, like, loaded, earlier, later)
            break


def _goes_on(survey: Survey, earlier: _Training, later: _Training) -> bool:
    """Return whether a parameter of a training begins with numbers that one of an earlier training ended with."""
    timeline = survey.timeline

    def numbers(one: _Training, n: int) -> set[tuple[object, ...] | None]:
        values = (timeline.memory_value(node, 0, n) for node in one.parameters)
        return {numbers_without_shape(value) for value in values} - {None}

    ends, begins = numbers(earlier, later.seqs[0]), numbers(earlier, earlier.seqs[0])
    return bool(numbers(later, later.seqs[0]) & ends - begins)


def _loaded_before(made: Scheduler) -> int | None:
    """Return the line that loads the state of the optimizer of a scheduler, if nothing loads that of the scheduler."""
    if any(key.arg in ("last_epoch", "num_training_steps") for key in made.call.keywords):
        return None
    loads = [(one, *load) for one in made.text.statements for load in _loads_of(made.text, one)]
    if any(name == made.target for _, name, _ in loads):
        return None
    for one, name, line in loads:
        is_before = function_of(one) is made.function and one.first < made.statement.first
        is_method = name.startswith("self.") and method_class(one) == method_class(made.statement)
        if name == made.optimizer and (is_before or is_method):
            return line
    return None


def _loads_of(text: ProgramText, one: Statement) -> Iterator[tuple[str, int]]:
    """Yield what a statement loads a state into, itself or by a function of the program, and the line that does."""
    for call in one.parts(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "load_state_dict":
            yield ast.unparse(call.func.value), one.first
        for other in text.statements:
            if isinstance(other.node, FUNCTION_NODES) and other.node.name == called_name(call):
                given = _given(call, other.node)
                for part in ast.walk(other.node):
                    match part:
                        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="load_state_dict")):
                            yield given.get(name, ""), part.lineno


def _restarted_finding(
    survey: Survey, made: Scheduler, like: Frame, line: int, earlier: _Training, later: _Training
) -> Finding:
    timeline, kind = survey.timeline, called_name(made.call)
    text = f"the learning rate starts again at {number(later.rates[0])}, though the training continues"
    place = file_line(made.text.path, line)
    was = f"it ended with {number(earlier.rates[-1])}; {kind} is made after the state of its optimizer was loaded"
    part = Finding("used", f"{was} at {place}", later.seqs[0], at=frame_of(like, line, made.text))
    at = frame_of(like, made.statement.first, made.text)
    start = _first_epoch(made)
    fix = f"{kind}(..., last_epoch={start or 'start_epoch'} - 1), or load the state of the scheduler, too"
    edit = with_keyword(timeline, at, kind, "last_epoch", f"{start} - 1") if start else None
    numbers = (
        Number("rate before", earlier.rates[-1], earlier.seqs[-1]),
        Number("rate after", later.rates[0], later.seqs[0]),
    )
    return Finding("restarted-schedule", text, later.seqs[0], 0, (part,), fix, at, numbers, edit=edit)


def _first_epoch(made: Scheduler) -> str:
    """Return the variable with which the loop begins that steps a scheduler in each turn; empty if there is none."""
    for one in made.text.by_function.get(made.function, ()):
        match one.node:
            case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[ast.Name(id=start), _]), body=body):
                calls = [part.value for part in body if isinstance(part, ast.Expr) and isinstance(part.value, ast.Call)]
                if f"{made.target}.step" in {ast.unparse(call.func) for call in calls}:
                    return start
    return ""


# Two schedulers on one optimizer, and none on another


def doubled_schedule(survey: Survey) -> Iterator[Finding | None]:
    """Yield the second of two equal schedulers of one optimizer, if the rate of another optimizer never changes.

    Schedulers that are chained on one optimizer, such as a warm-up and a decay, differ.
    """
    trainings = yield from survey.once(_trainings)
    changed = [one for one in trainings if len(set(one.rates)) > 1]
    constant = [one for one in trainings if len(one.rates) > 1 and len(set(one.rates)) == 1]
    if not changed or not constant:
        return
    timeline = survey.timeline
    files = {frame.path: frame for one in trainings for frame in timeline.stack(one.stack)}
    for frame in files.values():
        yield None
        made = made_schedulers(survey, frame)
        for at, second in enumerate(made):
            first = next((one for one in reversed(made[:at]) if _is_same(one, second)), None)
            free = _without_scheduler(second, made) if first is not None else None
            if first is None or free is None:
                continue
            right, wrong = (second, first) if _fits(first, free) and not _fits(second, free) else (first, second)
            if first.others == second.others or _fits(wrong, free):
                yield _doubled_finding(survey, frame, wrong, right, free, changed[0], constant[0])
                return


def _is_same(one: Scheduler, other: Scheduler) -> bool:
    """Return whether two schedulers of one optimizer are of one class, and the program keeps both."""
    are_kept = one.target and other.target and one.target != other.target
    is_alike = called_name(one.call) == called_name(other.call) and one.optimizer == other.optimizer
    return bool(are_kept and is_alike and one.function is other.function)


def _without_scheduler(second: Scheduler, made: Sequence[Scheduler]) -> str | None:
    """Return the one other optimizer that the function of a scheduler has, and that no scheduler acts on."""
    used, optimizers, function = {one.optimizer for one in made}, _optimizers(second.text), second.function
    names = set(optimizers)
    if isinstance(function, FUNCTION_NODES):
        own = variables_of(second.text, function)
        calls = [call for one in second.text.statements for call in one.parts(ast.Call)]
        given = [_given(call, function) for call in calls if called_name(call) == function.name]
        names = {name for name in optimizers if name.startswith("self.") or name in own}
        names |= {name for one in given for name, argument in one.items() if argument in optimizers}
    names -= used
    return names.pop() if len(names) == 1 else None


def _optimizers(text: ProgramText) -> set[str]:
    """Return the variables and attributes whose ``zero_grad`` and ``step`` a file calls: no scheduler and no model."""
    cleared, stepped = set[str](), set[str]()
    for call in (call for one in text.statements for call in one.parts(ast.Call)):
        match call:
            case ast.Call(func=ast.Attribute(value=value, attr="zero_grad")):
                cleared.add(ast.unparse(value))
            case ast.Call(func=ast.Attribute(value=value, attr="step"), args=arguments):
                stepped |= {ast.unparse(value), *map(ast.unparse, arguments)}
    return cleared & stepped


def _fits(made: Scheduler, optimizer: str) -> bool:
    """Return whether the name of a scheduler has a part of that of an optimizer, which that of its own one lacks."""
    own, other = (set(re.findall(r"[a-z0-9]+", name.lower())) for name in (made.optimizer, optimizer))
    return bool(set(re.findall(r"[a-z0-9]+", made.target.lower())) & (other - own))


def _doubled_finding(
    survey: Survey, like: Frame, wrong: Scheduler, right: Scheduler, free: str, changed: _Training, constant: _Training
) -> Finding:
    steps, kind = survey.timeline.stack(constant.stack), called_name(wrong.call)
    is_equal = wrong.others == right.others
    text = f"two{' equal' * is_equal} schedulers act on {shown(wrong.optimizer)}, and none on {shown(free)}"
    place = file_line(right.text.path, right.statement.first)
    rates = f"{number(changed.rates[0])} to {number(changed.rates[-1])}"
    means = f"the first is at {place}: one rate goes from {rates}, the other stays {number(constant.rates[0])}"
    part = Finding("used", means, constant.seqs[-1], at=steps[0] if steps else None)
    at, fix = frame_of(like, wrong.statement.first, wrong.text), f"{wrong.target} = {kind}({free}, ...)"
    edit = node_replaced(wrong.text, wrong.optimizer_node, free)
    return Finding("doubled-schedule", text, changed.seqs[-1], 0, (part,), fix, at, suspected=not is_equal, edit=edit)


# ----------------------------------------------------------------------------------------------------------------------
# A warm-up that counts steps of the optimizer, while the program steps its scheduler once an epoch.
#
# Idea. At the end of a training the learning rate has only risen, and it is still far below its base. It has kept each
# value for several steps of the optimizer: the scheduler is stepped outside of the loop over the batches.
#
# Example. ``get_linear_schedule_with_warmup(opt, 0.1 * total_steps, total_steps)`` with ``total_steps = epochs *
# len(loader)``, and ``scheduler.step()`` after each epoch: after 8 epochs, the warm-up is at its ninth step.
#
# Limits. A warm-up may be meant to count epochs. It is a note unless an argument of the schedule counts steps.

_REACHED = 0.5
"""The part of the base from which on a warm-up has come far enough."""

_FEWEST_RISES = 3

_COUNTS_STEPS = re.compile(r"steps?\b|\blen\(", re.IGNORECASE)


def unfinished_warm_up(survey: Survey) -> Iterator[Finding | None]:
    """Yield optimizers whose learning rate has only risen, in stairs, and is far below its base at the end."""
    timeline = survey.timeline
    if timeline.growing or timeline.cut_off or timeline.recorded_iterations is not None:
        return
    for one in (yield from survey.once(rates_by_optimizer)):
        yield None
        changes = [at for at, (before, after) in enumerate(pairwise(one.rates), 1) if before != after]
        base = _base(one)
        is_rise = all(one.rates[at] > one.rates[at - 1] for at in changes) and len(changes) >= _FEWEST_RISES
        is_stepped_seldom = all(after - before > 1 for before, after in pairwise([0, *changes]))
        if not is_rise or not is_stepped_seldom or not one.rates[-1] < _REACHED * base:
            continue
        frames = own_frames(timeline.stack(one.last.stack))
        found = _scheduler_outside(survey, frames)
        if found is not None:
            yield _finding(timeline, one, len(changes), base, frames, *found)


def _base(one: OptimizerRates) -> float:
    """Return the highest rate that a schedule is to reach, as the options of the optimizer have it."""
    groups = [options_in(one.last.options, at) for at in range(len(one.last.options))]
    known = [group.get(name) for group in groups for name in ("initial_lr", "max_lr")]
    return max((float(rate) for rate in known if isinstance(rate, float | int)), default=0.0)


def _scheduler_outside(survey: Survey, frames: Sequence[Frame]) -> tuple[Scheduler, Frame] | None:
    """Return the only scheduler that is stepped, and the line that does, outside of the loop that steps the optimizer.

    `frames` are those of the optimizer's step.
    """
    timeline = survey.timeline
    places = [place for frame in frames if (place := statement_at(timeline, frame)) is not None]
    loop = next((loop for _, one in places if (loop := innermost_loop(one)) is not None), None)
    if loop is None:
        return None
    stepped = list[tuple[Scheduler, Frame]]()
    for file in {frame.path: frame for frame in frames}.values():
        by_place = {made.statement.first: made for made in reversed(made_schedulers(survey, file))}
        for made in by_place.values():  # the outermost call of each line
            lines = called_lines(timeline, file, "step") if made.target else ()
            stepped += [(made, line) for line in lines if receiver(timeline, line, "step") == made.target]
    if len(stepped) != 1:
        return None
    there = statement_at(timeline, stepped[0][1])
    return stepped[0] if there is not None and loop not in there[1].around else None


def _finding(
    timeline: Timeline,
    one: OptimizerRates,
    rises: int,
    base: float,
    frames: Sequence[Frame],
    made: Scheduler,
    at: Frame,
) -> Finding:
    count, rate, kind = len(one.rates), one.rates[-1], shown(one.last.kind)
    text = f"the warm-up has not ended: lr {number(rate, 3)} of {number(base, 3)} after {count:,} steps of {kind}"
    place = file_line(made.text.path, made.statement.first)
    schedule = f"the rate has only risen, {rises} times; {called_name(made.call)} is made at {place}"
    part = Finding("used", schedule, one.seqs[-1], at=frame_of(at, made.statement.first, made.text))
    optimizer = receiver(timeline, frames[0], "step") or "the optimizer"
    fix = f"{made.target}.step() after each {optimizer}.step(), if the warm-up counts these; else a shorter warm-up"
    numbers = (Number("rate at the end", rate, one.seqs[-1]), Number("base", base))
    is_sure = _COUNTS_STEPS.search(made.others) is not None
    edit = moved(timeline, at, frames[0])
    return Finding(
        "unfinished-warm-up", text, one.seqs[-1], 0, (part,), fix, at, numbers, suspected=not is_sure, edit=edit
    )
