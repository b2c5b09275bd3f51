"""Alarms of `gviz monitor`, and how to record the iterations before them.

Between the iterations that it records, `gviz monitor` looks at the loss, the norm of the gradients and the parameters
that move (`gviz.adapters.monitor_budget`). What it saw there has no events, so the finding is the alarm itself, with
the command that records what led to it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest

from gviz.events import DataSet, Marked, NodeCreated, OptimizerStepped, StorageWritten
from gviz.explain.finding import Finding, nodes
from gviz.explain.program_errors import Failure
from gviz.explain.recording_survey import Survey
from gviz.trace.timeline import Timeline
from gviz.trace.whole_iterations import NUMBERED
from gviz.values.plain_text import clipped, shown

_MOST = 3
"""The number of alarms that are findings; usually the first one is the cause of the others."""
_LONGEST = 200
_SEEDS = "if the program sets its seeds"


def alarms(survey: Survey) -> Iterator[Finding]:
    """Yield the first alarm in an iteration that was not recorded, with some later ones as its parts."""
    timeline = survey.timeline
    recorded = timeline.recorded_iterations
    if recorded is None:
        return
    known = zip_longest(recorded.alarms, recorded.last_good[: len(recorded.alarms)])
    unseen = [(*alarm, since) for alarm, since in known if not recorded.has_whole(alarm[0])]
    if timeline.failures:  # the finding about the error names its iteration, too
        unseen = [one for one in unseen if not one[1].startswith(_FAILED)]
    if not unseen:
        return
    (iteration, what, since), *others = unseen
    command = recorded.command_from(since, what) if since else ""
    parts = [Finding("more", _text(at, text), _marked(timeline, at)) for at, text, _ in others[: _MOST - 1]]
    fix = f"{shown(command)} ({_SEEDS})" if command else ""
    yield Finding("alarm", _text(iteration, what), _marked(timeline, iteration), parts=tuple(parts), fix=fix)


def alarm_at(timeline: Timeline, n: int) -> Finding | None:
    """Return the alarm at moment `n`, or before it with nothing but the later values of tensors in between.

    The program is paused there: its iteration was not recorded, and only the values that it left are known.
    """
    recorded = timeline.recorded_iterations
    before = timeline.marks[: bisect_left(timeline.marks, (n + 1, ""))]
    if before and NUMBERED.fullmatch(before[-1][1]):  # the recording continues with this iteration
        before = before[:-1]
    marked, name = before[-1] if before else (0, "")
    match = _ALARM.match(name)
    if recorded is None or match is None or not recorded.paused or recorded.has_whole(int(match[1])):
        return None
    if sum(1 for _ in timeline.select((Marked, StorageWritten, DataSet), marked + 1, n + 1)) < n - marked:
        return None
    known = zip_longest(recorded.alarms, recorded.last_good[: len(recorded.alarms)])
    for (iteration, what), since in known:
        if iteration == int(match[1]):
            command = recorded.command_from(since, what) if since else ""
            parts = (Finding("unrecorded", "it was not recorded; the next iterations are, if the program continues"),)
            fix = f"{shown(command)} ({_SEEDS})" if command else ""
            return Finding("alarm", _text(iteration, what), marked, parts=parts, fix=fix)
    return None


def _text(iteration: int, what: str) -> str:
    return clipped(shown(f"iteration {iteration:,}: {what}"), _LONGEST)


def _marked(timeline: Timeline, iteration: int) -> int:
    """Return the event of the mark of an alarm, or 0."""
    begins = f"alarm at iteration {iteration}: "
    return next((seq for seq, name in timeline.marks if name.startswith(begins)), 0)


_FAILED = "the program failed"
_ALARM = re.compile(r"alarm at iteration (\d{1,15}): ")


def in_unrecorded_iteration(timeline: Timeline, failure: Failure, finding: Finding) -> Finding:
    """Return the finding about an error with its iteration, if that was not recorded, and how to record it.

    An explanation by tensors is left out then: these are of another iteration.
    """
    iteration, since = _unrecorded_iteration(timeline, failure)
    recorded = timeline.recorded_iterations
    if recorded is None or not iteration:
        return finding
    command = recorded.command_from(since) if since else ""
    fix = f"record what led to it: {shown(command)} ({_SEEDS})" if command else "record it with gviz record"
    if not nodes(finding):
        text = f"iteration {iteration:,} was not recorded; {fix}"
        return replace(finding, parts=(*finding.parts, Finding("unrecorded", text, failure.seq)))
    text = f"{failure.ended} in iteration {iteration:,}, which was not recorded"
    unknown = Finding("unrecorded", "its tensors are not known, only those of other iterations", failure.seq)
    parts = (Finding("message", failure.quoted, failure.seq), unknown)
    return Finding("failed", text, failure.seq, 0, parts, fix, failure.at)


def _unrecorded_iteration(timeline: Timeline, failure: Failure) -> tuple[int, int]:
    """Return the iteration of an error and the last good one, if nothing of it was recorded; otherwise zeros."""
    recorded = timeline.recorded_iterations
    place = bisect_left(timeline.marks, (failure.seq, "")) - 1
    match = _ALARM.match(timeline.marks[place][1]) if place >= 0 else None
    if recorded is None or not recorded.paused or match is None:
        return 0, 0
    steps = [seq for seq, _ in timeline.select((OptimizerStepped,), 1, failure.seq)]
    since = steps[-1] if steps else 0
    if timeline.marks[place][0] < since or next(iter(timeline.select((NodeCreated,), since + 1, failure.seq)), None):
        return 0, 0
    known = zip(recorded.alarms, recorded.last_good, strict=False)
    iteration = int(match[1])
    return iteration, next((good for (at, _), good in known if at == iteration), 0)


def command_before(timeline: Timeline, iteration: int) -> str:
    """Return the command that records what led to a recorded iteration: from the last good one on."""
    recorded = timeline.recorded_iterations
    if recorded is None:
        return ""
    known = [
        (good, what) for (at, what), good in zip(recorded.alarms, recorded.last_good, strict=False) if at < iteration
    ]
    last_good = [good for good, _ in known]
    last_whole = [last for _, last in recorded.whole_ranges if last < iteration]
    what = known[-1][1] if known else ""
    command = recorded.command_from(max(last_good[-1:] + last_whole[-1:], default=1), what)
    return f"{shown(command)} ({_SEEDS})" if command else ""
