"""A warm-up that counts steps of the optimizer, while the program steps its scheduler once an epoch.

Idea. At the end of a training the learning rate has only risen, and it is still far below its base. It has kept each
value for several steps of the optimizer: the scheduler is stepped outside of the loop over the batches.

Example. ``get_linear_schedule_with_warmup(opt, 0.1 * total_steps, total_steps)`` with ``total_steps = epochs *
len(loader)``, and ``scheduler.step()`` after each epoch: after 8 epochs, the warm-up is at its ninth step.

Limits. A warm-up may be meant to count epochs. It is a note unless an argument of the schedule counts steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from gviz.events.optimizer_options import options_in
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.training_loop.learning_rate import OptimizerRates, rates_by_optimizer
from gviz.explain.findings.training_loop.schedulers import Scheduler, made_schedulers
from gviz.explain.program_text import called_lines, called_name, frame_of, innermost_loop, receiver, statement_at
from gviz.explain.recording_survey import Survey
from gviz.explain.source_edit import moved
from gviz.explain.source_frames import own_frames
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number
from gviz.values.plain_text import file_line, shown

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
