"""Learning rates and their schedules: squared, raised again, practically 0, or lowered while the loss falls."""

from __future__ import annotations

import ast
import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from gviz.events import OptimizerStarted, OptimizerStepped
from gviz.events.optimizer_options import options_in
from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.operation_sets import CLASS_LOSSES, LOSSES
from gviz.explain.parameter_updates import maximizes, rates_of
from gviz.explain.program_text import (
    ProgramText,
    arguments,
    called_lines,
    called_name,
    frame_of,
    frame_of_part,
    keyword_text,
    line_text,
    names_set,
    program_text,
    receiver,
    scope_of,
    statement_at,
    target_of,
)
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Edit, node_replaced, with_keyword
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number
from gviz.values.plain_text import shown
from gviz.values.value_text import norm

# A schedule that returns rates where factors of the rate are expected


def squared_rate(survey: Survey) -> Iterator[Finding | None]:
    """Yield a schedule whose highest rate is the square of the rate with which the optimizer was made.

    The program must make a schedule that multiplies. Others may reach such a rate on purpose.
    """
    timeline, highest, place = survey.timeline, dict[tuple[str, float], float](), dict[tuple[str, float], int]()
    for seq, event in timeline.select((OptimizerStarted,)):
        for group in range(len(event.options)):
            options = options_in(event.options, group)
            start, rate = options.get("initial_lr"), options.get("lr")
            if isinstance(start, float | int) and isinstance(rate, float | int):
                key = event.kind, float(start)
                highest[key], place[key] = max(highest.get(key, 0.0), float(rate)), seq
    yield None
    for (kind, start), rate in highest.items():
        step = timeline.event(place[kind, start])
        is_square = 0 < start < 1 and abs(rate - start * start) <= 1e-6 * start * start
        if not is_square or not isinstance(step, OptimizerStarted):
            continue
        frames = timeline.stack(step.stack)
        files = {frame.path: frame for frame in frames}.values()
        lines = (line for frame in files for line in called_lines(timeline, frame, "LambdaLR", "MultiplicativeLR"))
        call = next(lines, None)
        if call is None:
            continue
        text = f"the learning rate reaches {number(rate)}, the square of {number(start)}"
        means = f"{shown(kind)} was made with {number(start)}, and LambdaLR multiplies it by what the function returns"
        part = Finding("used", means, place[kind, start], at=call)
        fix = f"return a factor, at most 1, from the function and not the rate {number(start)} itself"
        at = _returned_by(timeline, call) or call
        yield Finding("squared-rate", text, place[kind, start], 0, (part,), fix, at)


def _returned_by(timeline: Timeline, call: Frame) -> Frame | None:
    """Return the last line that returns a factor in the function that a schedule gets by its name."""
    source = statement_at(timeline, call)
    if source is None:
        return None
    text, one = source
    schedules = [part for part in one.parts(ast.Call) if called_name(part) in ("LambdaLR", "MultiplicativeLR")]
    given = [part for made in schedules for part in made.args[1:2]]
    given += [key.value for made in schedules for key in made.keywords if key.arg == "lr_lambda"]
    names = {part.id for part in given if isinstance(part, ast.Name)}
    defined = (each.node for each in text.statements)
    functions = [node for node in defined if isinstance(node, ast.FunctionDef) and node.name in names]
    returns = [part for part in ast.walk(functions[0]) if isinstance(part, ast.Return)] if len(functions) == 1 else []
    return frame_of_part(text, max(returns, key=lambda part: part.lineno), functions[0].name) if returns else None


# ReduceLROnPlateau(mode="max") that gets a loss: while the loss falls, it lowers the learning rate. The reverse: the
# default mode, "min", with an accuracy


def plateau_mode(survey: Survey) -> Iterator[Finding | None]:
    """Yield a plateau schedule for a maximum that gets a loss and has lowered the rate after the loss fell.

    The same of a schedule for a minimum that gets a number whose name says that it is to rise, as an accuracy.
    """
    timeline = survey.timeline
    cuts = [(seq, step) for seq, step in timeline.select((OptimizerStarted,)) if _lowers_rate(step)]
    if not cuts:
        return
    seq, step = cuts[0]
    files = {frame.path: frame for frame in timeline.stack(step.stack)}.values()
    for at, name, assigned, edit in (one for frame in files for one in plateaus_for_maxima(timeline, frame)):
        yield None
        losses = [
            (record, record.value.statistics())
            for record in survey.ops(*LOSSES, *CLASS_LOSSES)
            if record.seq < seq and not record.shape and record.value is not None
            if timeline.info(record.node).name == name and _is_on_line(survey, record, assigned)
        ]
        values = [stats.max for _, stats in losses if stats is not None]
        if len(values) < 2 or not values[-1] < values[0]:
            continue
        last, _ = losses[-1]
        text = titled("a schedule for a maximum gets the loss {}", label(timeline, last.node))
        fell = f"it fell from {number(values[0])} to {number(values[-1])}, and the learning rate was lowered"
        part = Finding("used", fell, last.seq, last.node, at=survey.at(last))
        fix = 'mode="min" for a loss, or give step() a number that is to rise'
        yield Finding("plateau-mode", text, seq, last.node, (part,), fix, at, edit=edit)
        return
    for at, name, edit in (one for frame in files for one in _plateaus_for_minima(timeline, frame)):
        text = titled("a schedule for a minimum gets {}, which is to rise", shown(name))
        part = Finding("used", "the learning rate was lowered, as a number that rises is no progress there", seq)
        fix = 'mode="max" for an accuracy; or give step() the loss'
        yield Finding("plateau-mode", text, seq, 0, (part,), fix, at, edit=edit)
        return


_RISING = frozenset(
    {"acc", "accuracy", "accuracies", "f1", "auc", "auroc", "iou", "miou", "dice", "r2", "bleu",
     "precision", "recall", "psnr", "ssim", "reward", "rewards"}
)  # fmt: skip
_OF_METRICS = _RISING | {
    "val", "valid", "validation", "test", "dev", "eval", "train", "mean", "avg", "average", "best", "epoch", "running",
    "current", "top1", "top5", "macro", "micro", "total", "m", "now", "this",
}  # fmt: skip
"""Words in the names of numbers that are to rise. Any other word may change the meaning: ``accuracy_mm``."""


def _plateaus_for_minima(timeline: Timeline, at: Frame | None) -> Iterator[tuple[Frame, str, Edit | None]]:
    """Yield each ``ReduceLROnPlateau`` of a file for a minimum that gets what is to rise."""
    text = program_text(timeline, at)
    for one in text.statements if text is not None and at is not None else ():
        match one.node:
            case ast.Assign(targets=[target], value=ast.Call() as call) if called_name(call) == "ReduceLROnPlateau":
                modes = [key.value for key in call.keywords if key.arg == "mode"] or call.args[1:2]
                if text is None or at is None or (modes and getattr(modes[0], "value", "") != "min"):
                    continue
                schedule, place = text.segment(target), frame_of(at, one.first, text)
                metrics = {_metric(text, call, schedule) for user in text.statements for call in user.parts(ast.Call)}
                words = {name: {*name.lower().split("_")} for name in metrics - {""}}
                rising = [name for name, each in words.items() if each & _RISING and each <= _OF_METRICS]
                if len(metrics - {""}) == len(rising) == 1:
                    yield place, rising[0], with_keyword(timeline, place, "ReduceLROnPlateau", "mode", '"max"')


def _is_on_line(survey: Survey, record: NodeRecord, lines: range) -> bool:
    at = survey.at(record)
    return at is not None and at.line in lines


def _lowers_rate(step: OptimizerStarted) -> bool:
    """Return whether the learning rate of a group was lowered since the step before."""
    groups = zip(step.before, step.options, strict=False)
    rates = ((dict(before).get("lr"), dict(now).get("lr")) for before, now in groups)
    return any(isinstance(was, float) and isinstance(rate, float) and rate < was for was, rate in rates)


# A cosine schedule that was stepped beyond its end: the learning rate rises again

_LOW, _HIGH = 0.02, 0.9
"""The parts of its highest value below which a learning rate counts as low, and above which it has risen again."""


def cosine_rises(survey: Survey) -> Iterator[Finding | None]:
    """Yield the step at which a `CosineAnnealingLR` has raised a learning rate again after it came to its end.

    It follows the cosine beyond ``T_max`` steps. Schedules with restarts jump up; this one rises as slowly as it fell.
    """
    timeline = survey.timeline
    rates: list[tuple[int, OptimizerStarted, float]] = []
    for seq, step in timeline.select((OptimizerStarted,)):
        rate = options_in(step.options, 0).get("lr")
        if isinstance(rate, float) and (not rates or step.kind == rates[0][1].kind):
            rates.append((seq, step, rate))
    most = max((rate for _, _, rate in rates), default=0.0)
    high = next((at for at, (_, _, rate) in enumerate(rates) if rate >= _HIGH * most > 0), len(rates))
    low = next((at for at in range(high, len(rates)) if rates[at][2] <= _LOW * most), 0)
    again = next((at for at in range(low + 2, len(rates)) if rates[at][2] >= _HIGH * most), 0) if low else 0
    if not again or any(after < before for before, after in pairwise(rate for _, _, rate in rates[low : again + 1])):
        return
    yield None
    seq, step, _ = rates[again]
    files = {frame.path: frame for frame in timeline.stack(step.stack)}.values()
    at = next((one for frame in files for one in called_lines(timeline, frame, "CosineAnnealingLR")), None)
    if at is None:
        return
    text = f"the learning rate rose again to its start: the schedule ends after {low - high} steps"
    fell = f"it fell from {number(most)} to {number(rates[low][2])} in {low - high} steps, then rose in {again - low}"
    part = Finding("used", fell, seq, at=next(iter(timeline.stack(step.stack)), None))
    fix = "T_max is the number of calls of scheduler.step(): call it once an epoch, or make T_max epochs * batches"
    yield Finding("schedule-period", text, seq, 0, (part,), fix, at, suspected=True)


# A learning rate of 0, or practically 0, that lasts: the schedule ended long before the training

_IDLE_SHARE = 1 / 3
"""The part of the steps at the end beyond which a rate of 0 is no annealing."""

_FEWEST_IDLE = 4

_NOTHING = 1e-6
"""The part of the highest learning rate below which a rate is practically 0: annealing ends above it."""


@dataclass(frozen=True, slots=True)
class WholeStep:
    """A step of an optimizer that changed parameters: its first event and its last one, with their places."""

    begun: int
    start: OptimizerStarted
    ended: int
    end: OptimizerStepped


@dataclass(slots=True)
class OptimizerRates:
    """The highest learning rate of the groups in each step of an optimizer, and the events that began the steps.

    `ends` are the events that ended them. `parameters` are those that the steps have changed, `first` and `last` are
    the first and the last step.
    """

    first: OptimizerStarted
    last: OptimizerStarted
    seqs: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    parameters: set[int] = field(default_factory=set)
    is_maximizing: bool = False

    @property
    def idle(self) -> int:
        """The number of steps at the end with a rate of practically 0; 0 if no step before them had a higher one."""
        least = _NOTHING * max(self.rates, default=0.0)
        above = [at for at, rate in enumerate(self.rates) if rate > least]
        return len(self.rates) - above[-1] - 1 if above else 0


def zero_rate(survey: Survey) -> Iterator[Finding | None]:
    """Yield optimizers whose learning rate is practically 0 in all groups, in more than the last third of the steps.

    A warm-up begins with 0, annealing reaches it in the last steps, and a group that has 0 from the start is frozen.
    It is a note if another optimizer continues, or if the program writes the 0 itself: this may be intended.
    """
    timeline, known = survey.timeline, (yield from survey.once(rates_by_optimizer))
    for one in known:
        if one.idle >= _FEWEST_IDLE and one.idle > _IDLE_SHARE * len(one.rates):
            others = [other for other in known if other is not one]
            goes_on = any(other.seqs[-1] > one.seqs[-one.idle] and not other.idle for other in others)
            finding = _zero_rate_finding(survey, one)
            yield replace(finding, suspected=goes_on or _writes_zero(line_text(timeline, finding.at)))


def whole_steps(survey: Survey) -> Generator[None, None, list[WholeStep]]:
    """Return the steps of all optimizers that changed parameters and that are recorded from start to end."""
    steps = list[WholeStep]()
    started: tuple[int, OptimizerStarted] | None = None
    for seq, event in survey.timeline.select((OptimizerStarted, OptimizerStepped)):
        yield None
        if isinstance(event, OptimizerStarted):
            started = seq, event
        elif isinstance(event, OptimizerStepped) and event.parameters and started and started[1].stack == event.stack:
            steps.append(WholeStep(*started, seq, event))
    return steps


def rates_by_optimizer(survey: Survey) -> Generator[None, None, list[OptimizerRates]]:
    """Return the learning rates of all steps by optimizer: those of one call with the same first parameter are one."""
    known: dict[tuple[str, int, tuple[int, ...]], OptimizerRates] = {}
    for step in (yield from survey.once(whole_steps)):
        start, groups = step.start, rates_of(step.start)
        rates = [rate for rate in groups if rate is not None]
        if rates and len(rates) == len(groups):
            key = start.kind, start.stack, step.end.parameters[:1]
            one = known.setdefault(key, OptimizerRates(start, start))
            one.last = start
            one.seqs.append(step.begun)
            one.ends.append(step.ended)
            one.rates.append(max(rates))
            one.parameters.update(step.end.parameters)
            one.is_maximizing |= maximizes(start)
    return [*known.values()]


def _writes_zero(line: str) -> bool:
    """Return whether a line sets a learning rate to the number 0."""
    return re.search(r"""\[["']lr["']\]\s*=\s*0(\.0*)?\s*(#|$)""", line) is not None


def _zero_rate_finding(survey: Survey, one: OptimizerRates) -> Finding:
    timeline, count, idle = survey.timeline, len(one.rates), one.idle
    seq = one.seqs[-idle]
    is_zero = one.rates[-idle] == 0
    rate = "0" if is_zero else "nearly 0"
    text = f"the learning rate is {rate} in the last {idle:,} of {count:,} steps of {shown(one.last.kind)}"
    later = [(at, event) for at, event in survey.accumulated if at > seq and event.node in one.parameters]
    sizes = [(at, event.node, size) for at, event in later if (size := norm(event.part))]
    still = ""
    if sizes:
        still = f"; the last gradient of {label(timeline, sizes[-1][1])} is |g| {number(sizes[-1][2])}"
    was = f"it was {number(one.rates[-idle - 1])} before step {count - idle + 1:,}"
    if not is_zero:
        was = f"it fell from {number(max(one.rates))} to {number(one.rates[-1])}"
    part = Finding("used", f"{was}{still}", seq, min(one.parameters))
    at, fix, edit = _schedule_of(timeline, one)
    numbers = (Number("steps", count), Number("steps with a rate of 0", idle, seq))
    return Finding("zero-rate", text, seq, 0, (part,), fix, at, numbers, edit=edit)


_ENDING = ("LinearLR", "PolynomialLR")
_MULTIPLYING = ("StepLR", "MultiStepLR", "ExponentialLR")
_GAMMA, _ZERO = {"ExponentialLR": 1}, ("0", "0.0", "0.")
_OF_FUNCTIONS = ("LambdaLR", "MultiplicativeLR")
_STOPPED = "a schedule that reaches 0 with the last step"


def _schedule_of(timeline: Timeline, one: OptimizerRates) -> tuple[Frame | None, str, Edit | None]:
    """Return the line that sets the rate to 0, as far as the program shows it, with the fix."""
    frames = timeline.stack(one.last.stack)
    files = list({frame.path: frame for frame in frames}.values())
    for name in _MULTIPLYING:
        for frame in (line for file in files for line in called_lines(timeline, file, name)):
            is_named = keyword_text(timeline, frame, name, "gamma") in _ZERO
            if is_named or (*arguments(timeline, frame, name), "", "", "")[_GAMMA.get(name, 2)] in _ZERO:
                edit = with_keyword(timeline, frame, name, "gamma", "1.0") if is_named else None
                return frame, f"{name} multiplies the rate by gamma=0: gamma=1.0 keeps it, 0.1 lowers it", edit
    names = (*_ENDING, *_OF_FUNCTIONS, *_MULTIPLYING)
    if one.rates[-1] > 0 and (multiplied := _multiplied_too_often(timeline, one, files)) is not None:
        return multiplied
    calls = [(name, line) for file in files for name in names for line in called_lines(timeline, file, name)]
    if len(calls) != 1:
        lines = [line for file in files for line in rates_set(timeline, file)]
        return (lines if len(lines) == 1 else [*frames[:1], None])[0], _STOPPED, None
    name, at = calls[0]
    changes = [place for place, (was, rate) in enumerate(pairwise(one.rates), 1) if was != rate]
    period = changes[0] if changes else 0
    if name not in _ENDING or any(after - before != period for before, after in pairwise([0, *changes])):
        return at, f"{_STOPPED}, and not {one.idle:,} steps before it", None
    calls_of_step = -(-len(one.rates) // period)
    each = "after each step" if period == 1 else f"every {period} steps"
    fix = f"total_iters={calls_of_step}: it counts the calls of scheduler.step(), here {each}"
    return at, fix, with_keyword(timeline, at, name, "total_iters", str(calls_of_step))


def _multiplied_too_often(
    timeline: Timeline, one: OptimizerRates, files: Sequence[Frame]
) -> tuple[Frame | None, str, None] | None:
    """Return the line that steps a schedule which multiplies the rate: most likely for each batch, not each epoch."""
    for name in _MULTIPLYING:
        for made in (line for file in files for line in called_lines(timeline, file, name)):
            schedule = target_of(timeline, made)
            lines = (line for file in files for line in called_lines(timeline, file, "step"))
            at = next((line for line in lines if schedule and receiver(timeline, line, "step") == schedule), made)
            falls = sum(rate < was for was, rate in pairwise(one.rates))
            often = f"{name} lowered the rate {falls:,} times in {len(one.rates):,} steps of the optimizer"
            return at, f"{often}: {schedule or 'scheduler'}.step() once an epoch, or a gamma nearer to 1", None
    return None


# What the program's source code shows


def plateaus_for_maxima(timeline: Timeline, at: Frame | None) -> Iterator[tuple[Frame, str, range, Edit | None]]:
    """Yield each ``ReduceLROnPlateau(..., mode="max")`` of a file whose step gets a variable.

    It comes with the variable, and the lines of its only assignment: ``val = -val`` would be a second one.
    """
    text = program_text(timeline, at)
    for one in text.statements if text is not None and at is not None else ():
        match one.node:
            case ast.Assign(targets=[target], value=ast.Call() as call) if called_name(call) == "ReduceLROnPlateau":
                modes = [key.value for key in call.keywords if key.arg == "mode"] or call.args[1:2]
                if text is None or at is None or not modes or getattr(modes[0], "value", "") != "max":
                    continue
                schedule, edit = text.segment(target), node_replaced(text, modes[0], '"min"')
                for user in text.statements:
                    metric = next(
                        (part for call in user.parts(ast.Call) if (part := _metric(text, call, schedule))), ""
                    )
                    assignments = [
                        other
                        for other in text.statements
                        if metric in names_set(other.node)
                        and scope_of(text, other, metric) is scope_of(text, user, metric)
                    ]
                    if len(assignments) == 1:
                        lines = range(assignments[0].first, (assignments[0].node.end_lineno or 0) + 1)
                        yield frame_of(at, one.first, text), metric, lines, edit


def _metric(text: ProgramText, call: ast.Call, schedule: str) -> str:
    """Return the variable that the step of a schedule gets, as in ``schedule.step(loss.item())``; or else empty."""
    match call:
        case ast.Call(func=ast.Attribute(value=value, attr="step")) if text.segment(value) == schedule:
            metrics = call.args[:1] or [key.value for key in call.keywords if key.arg == "metrics"]
            name = text.segment(metrics[0]).removesuffix(".item()") if metrics else ""
            return name if name.isidentifier() else ""
    return ""


# What the program's source code shows


def rates_set(timeline: Timeline, at: Frame | None) -> Iterator[Frame]:
    """Yield the lines of the program that set a learning rate: ``group["lr"] = 0.1 * rate``."""
    text = program_text(timeline, at)
    if text is None or at is None:
        return
    for one in text.statements:
        targets = one.node.targets if isinstance(one.node, ast.Assign) else [getattr(one.node, "target", None)]
        keys = (target.slice for target in targets if isinstance(target, ast.Subscript))
        if any(isinstance(key, ast.Constant) and key.value == "lr" for key in keys):
            yield frame_of(at, one.first, text)
