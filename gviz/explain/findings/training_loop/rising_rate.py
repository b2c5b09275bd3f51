"""A learning rate that rises until the training, which had worked with a lower one, breaks down.

Idea. A loss that falls while the rate is low, and that explodes or becomes nan while the rate still rises, has one
cause: the rate. The first nan, or a gradient that explodes, only follows from it.

Example. ``ExponentialLR(opt, gamma=1.3)``, a warm-up ``LambdaLR(opt, lambda step: step / 100)`` without an end, or
``group["lr"] *= 1.5`` in each step.

Limits. The rate must be above three times that with which the loss had nearly come to its least value, never have
fallen, and rise up to the end: a warm-up that has ended before is not the cause. Some parameter must have grown many
times, or else the nan has another origin. A search for the largest rate that works raises it on purpose. It is left out
if the program says so in a name, and is a note if it keeps the rates in a list.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite

from gviz.events import OptimizerStarted
from gviz.explain.backward_passes import divergence_bound, loss_at, passes_by_loss
from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.training_loop.learning_rate import OptimizerRates, rates_by_optimizer, rates_set
from gviz.explain.findings.training_loop.schedulers import made_schedulers
from gviz.explain.optimizer_construction import constructions, rate_line
from gviz.explain.parameter_updates import growth
from gviz.explain.program_text import assignment, called_name, frame_of, program_text, receiver, statement_at
from gviz.explain.recording_survey import Survey
from gviz.explain.source_frames import own_frames
from gviz.source.call_stack import Frame
from gviz.trace.graph_state import Phase
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number
from gviz.values.plain_text import shown

_RISEN = 3.0
"""How many times the rate of the least loss a rate is at the end if it is the cause."""

_NEAR = 0.1
"""The part of its first value down to which a loss has fallen, of all that it ever falls, when its rate has worked."""

_GROWN = 10.0
"""How many times its size a parameter has at the end if its steps are too large."""

RATE_THAT_WORKED = "rate that worked"
"""The name of the number that has the step after which the rate became too large."""


@dataclass(frozen=True, slots=True)
class _Breakdown:
    """A loss that ends above all bounds.

    `best` is the pass by which it had fallen to `fallen`, nearly its least value. `broken` is the first with nan or
    inf, or else the last, and `last_good` the last below the bound.
    """

    node: int
    fallen: float
    best: Phase
    value: float
    broken: Phase
    last_good: Phase


def rising_rate(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first optimizer whose learning rate rises until a loss explodes or becomes nan."""
    known = yield from survey.once(rates_by_optimizer)
    rising = [one for one in known if one.rates[-1] > one.rates[0]]
    if not rising:
        return
    for group in passes_by_loss(survey.timeline):
        yield None
        breakdown = _breakdown(survey.timeline, group.phases)
        if breakdown is None:
            continue
        for one in rising:
            yield None
            steps = _steps_before(one, breakdown)
            if steps and _grow(survey, one, breakdown):
                frames = survey.timeline.stack(one.last.stack)
                if not _is_search(survey.timeline, frames):
                    yield _finding(survey, one, steps, breakdown)
                    return


def _breakdown(timeline: Timeline, phases: Sequence[Phase]) -> _Breakdown | None:
    """Return the breakdown of a loss that had fallen before, and that does not come back."""
    losses = [(phase, one) for phase in phases if (one := loss_at(timeline, phase.start)) is not None]
    values = [value for _, (_, value) in losses]
    if len(values) < 3 or not all(map(isfinite, values[:2])):
        return None
    limit = divergence_bound(values)
    is_bad = [not isfinite(value) or abs(value) > limit for value in values]
    if not is_bad[-1]:
        return None
    first = len(values) - next((at for at, bad in enumerate(reversed(is_bad)) if not bad), len(values))
    least = min(values[:first], default=values[0])
    best = next((at for at in range(first) if values[at] <= least + _NEAR * (values[0] - least)), 0)
    if not best:
        return None
    shown_at = next((at for at in range(first, len(values)) if not isfinite(values[at])), len(values) - 1)
    node = losses[shown_at][1][0]
    return _Breakdown(node, values[best], losses[best][0], values[shown_at], losses[shown_at][0], losses[first - 1][0])


def _steps_before(one: OptimizerRates, breakdown: _Breakdown) -> list[int]:
    """Return the places of the steps before a breakdown if their rate rises up to there; else empty.

    A schedule that rises in stairs has risen up to there if the last stair is no longer than the longest before.
    """
    steps = [at for at, seq in enumerate(one.seqs) if seq < breakdown.broken.start]
    good = [at for at in steps if one.seqs[at] < breakdown.best.start]
    if not good or any(one.rates[after] < one.rates[before] for before, after in pairwise(steps)):
        return []
    if one.rates[steps[-1]] < _RISEN * one.rates[good[-1]] or not one.rates[good[-1]]:
        return []
    rises = [0, *(after for before, after in pairwise(steps) if one.rates[after] > one.rates[before])]
    longest = max((after - before for before, after in pairwise(rises)), default=0)
    return steps if steps[-1] + 1 - rises[-1] <= longest else []


def _grow(survey: Survey, one: OptimizerRates, breakdown: _Breakdown) -> bool:
    """Return whether a parameter is many times as large before a breakdown as it was at first."""
    timeline = survey.timeline
    for node in one.parameters & survey.nodes.keys():
        phases = breakdown.last_good, breakdown.broken
        values = (timeline.memory_value(node, 0, phase.start) for phase in phases)
        size = growth(survey.nodes[node].value, *values)
        if size is not None and size.factor > _GROWN:
            return True
    return False


# Searches for a rate, by the text of the program

_SEARCHES = re.compile(
    r"(?:^|_)(?:lr|rate)_?(?:find|finder|range|search|sweep|test|scan)(?:_|er|$)"
    r"|(?:^|_)(?:find|range|search|sweep|scan)_(?:\w+_)?(?:lr|rate)s?(?:_|$)"
)
_RATES = re.compile(r"(?:^|_)(?:lr|rate|learning_rate)s?$")


def _is_search(timeline: Timeline, frames: Sequence[Frame]) -> bool:
    """Return whether a name in the program says that it searches for a rate, as ``find_lr`` or ``LRFinder`` does."""
    texts = (program_text(timeline, frame) for frame in {frame.path: frame for frame in own_frames(frames)}.values())
    names = {name for text in texts if text is not None for one in text.statements for name in _names_in(one.node)}
    return any(_SEARCHES.search(name) for name in names)


def _names_in(node: ast.stmt) -> Iterator[str]:
    """Yield the names in a statement in lower case with underscores: ``LRFinder`` is ``lr_finder``."""
    own = [node] if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else ast.walk(node)
    for part in own:
        for name in (getattr(part, field, None) for field in ("id", "attr", "name")):
            if isinstance(name, str):
                yield re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _keeps_rates(timeline: Timeline, frames: Sequence[Frame]) -> bool:
    """Return whether the program appends learning rates to a list, as for a plot of the loss over the rate."""
    for frame in {frame.path: frame for frame in own_frames(frames)}.values():
        text = program_text(timeline, frame)
        for one in text.statements if text is not None else ():
            for call in one.parts(ast.Call):
                match call.func:
                    case ast.Attribute(value=ast.Name(id=name) | ast.Attribute(attr=name), attr="append"):
                        if _RATES.search(name.lower()):
                            return True
    return False


# What is reported


def _finding(survey: Survey, one: OptimizerRates, steps: Sequence[int], breakdown: _Breakdown) -> Finding:
    timeline, frames = survey.timeline, survey.timeline.stack(one.last.stack)
    good = [at for at in steps if one.seqs[at] < breakdown.best.start][-1]
    start, best, end = one.rates[0], one.rates[good], one.rates[steps[-1]]
    name, event = label(timeline, breakdown.node), breakdown.broken.start
    became = "explodes" if isfinite(breakdown.value) else f"is {_bad(breakdown.value)}"
    text = titled(f"the learning rate rises from {number(start, 3)} to {number(end, 3)}, and {{}} {became}", name)
    falls = (
        f"{shown(one.last.kind)}: {name} falls to {number(breakdown.fallen)} in step {good + 1:,} at {number(best, 3)}"
    )
    ends = f"and is {number(breakdown.value)} after step {steps[-1] + 1:,} at {number(end, 3)}"
    part = Finding("used", f"{falls}, {ends}", event, breakdown.node)
    at, fix = _cause(survey, one.last, best)
    numbers = (
        Number("rate at the start", start, one.seqs[0]),
        Number(RATE_THAT_WORKED, best, one.seqs[good]),
        Number("rate at the end", end, one.seqs[steps[-1]]),
    )
    suspected = _keeps_rates(timeline, frames)
    return Finding("rising-rate", text, event, breakdown.node, (part,), fix, at, numbers, suspected)


def _bad(value: float) -> str:
    return "nan" if value != value else "inf"


_MULTIPLYING = ("ExponentialLR", "StepLR", "MultiStepLR")
_OF_PEAKS = ("OneCycleLR", "CyclicLR")


def _cause(survey: Survey, step: OptimizerStarted, best: float) -> tuple[Frame | None, str]:
    """Return the line that changes the learning rate, as far as the program shows it, and what to write instead."""
    timeline, frames = survey.timeline, own_frames(survey.timeline.stack(step.stack))
    bound = f"an upper bound of the rate: the loss fell with {number(best, 3)}"
    files = {frame.path: frame for frame in frames}.values()
    call = next((frame for frame in frames if receiver(timeline, frame, "step")), None)
    optimizer = receiver(timeline, call, "step")
    made = [(one, frame) for frame in files for one in made_schedulers(survey, frame)]
    made = [pair for pair in made if pair[0].optimizer == optimizer] or made
    lines = [line for frame in files for line in rates_set(timeline, frame)]
    again = [line for line in lines if _is_of_itself(timeline, line)]
    if made and not lines:
        one, like = made[-1]
        kind = called_name(one.call)
        fix, schedule = bound, one.target or "scheduler"
        if kind in _MULTIPLYING:
            fix = f"a gamma of at most 1: {kind} multiplies the rate by it again and again, with each {schedule}.step()"
        elif kind == "MultiplicativeLR":
            fix = "a factor of at most 1: MultiplicativeLR multiplies the rate of the step before by it"
        elif kind == "LambdaLR":
            fix = f"a factor with an upper bound, such as min(1.0, ...): the loss fell with a rate of {number(best, 3)}"
        elif kind in _OF_PEAKS:
            fix = f"a smaller max_lr: the loss fell with {number(best, 3)}"
        return frame_of(like, one.statement.first, one.text), fix
    if again or lines:
        found = again or lines
        fix = "the rate from the first one and the step, with an upper bound; multiplied again and again it has none"
        return found[0] if len(found) == 1 else call, fix if again else bound
    of_loop = _rate_in_loop(timeline, step, call, optimizer)
    return of_loop or rate_line(timeline, step) or assignment(timeline, call, optimizer) or call, bound


def _rate_in_loop(timeline: Timeline, step: OptimizerStarted, call: Frame | None, optimizer: str) -> Frame | None:
    """Return the rate of an optimizer that the loop which steps it makes anew, with another rate in each iteration."""
    source = statement_at(timeline, call)
    if source is None:
        return None
    text, here = source
    loops = [part for part in here.around if isinstance(part, ast.For | ast.AsyncFor | ast.While)]
    for one in constructions(text, step.kind):
        if optimizer.split(".")[-1] in one.targets and any(loop in one.statement.around for loop in loops):
            return one.rate_line
    return None


def _is_of_itself(timeline: Timeline, at: Frame) -> bool:
    """Return whether a line computes a learning rate from the one that is there: ``group["lr"] *= 2``."""
    source = statement_at(timeline, at)
    match source[1].node if source is not None else None:
        case ast.AugAssign():
            return True
        case ast.Assign(targets=[target], value=value):
            return any(ast.unparse(part) == ast.unparse(target) for part in ast.walk(value))
    return False
