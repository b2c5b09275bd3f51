"""Training at a glance: the results of a pass, a summary of the recording, sparklines of losses and gradients."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite
from typing import TypeAlias

from gviz.events import (
    DataSet,
    GradAccumulated,
    GradFlowed,
    GradSet,
    NodeCreated,
    OptimizerStarted,
    StorageWritten,
)
from gviz.explain.display_names import called, label_at
from gviz.explain.finding import Finding
from gviz.explain.findings.gradient_values.nan_arithmetic import meeting_numbers
from gviz.explain.iteration_words import finished_unrecorded, iteration_called
from gviz.explain.program_text import line_text
from gviz.explain.source_frames import frame_text, innermost
from gviz.explain.training import (
    LossProgress,
    ModuleGradient,
    PassResult,
    Progress,
    last_pass,
    loss_curves,
    module_of,
    pass_result,
)
from gviz.trace.stepping import stops
from gviz.trace.timeline import Moment, Timeline
from gviz.trace.whole_iterations import RecordedIterations
from gviz.tui.glyphs import Glyphs, glyphs, wants_ascii
from gviz.tui.styled_lines import Line, Span, bar_cells, cells, fitted, labelled, largest_of, line, plain, wrapped
from gviz.values.number_text import number
from gviz.values.plain_text import clipped, shown

LEVELS = "▁▂▃▄▅▆▇█"
NAMED = 4
"""How many parameters without a gradient are named."""
LISTED = 6
"""How many modules are listed: those with the longest gradients and those with the shortest."""
BAR = 8
SEARCHED = 200_000
"""In a longer recording the first nan is searched for on request only, because the search reads every value."""
GLANCE = 24
"""Passes in the sparkline of an overview."""


def sparkline(values: Sequence[float | None], width: int) -> str:
    """Return a series in at most `width` cells, scaled to its range: a blank for no value, ``!`` for nan or inf."""
    if len(values) > width:
        values = [values[round(at * (len(values) - 1) / max(width - 1, 1))] for at in range(width)]
    known = [value for value in values if value is not None and isfinite(value)]
    low, high = min(known, default=0.0), max(known, default=0.0)
    return "".join(_level(value, low, high) for value in values)


def _level(value: float | None, low: float, high: float) -> str:
    if value is None:
        return " "
    if not isfinite(value):
        return "!"
    share = (value / 2 - low / 2) / (high / 2 - low / 2) if high > low else 0.5  # halves: the range may be infinite
    return LEVELS[min(int(share * len(LEVELS)), len(LEVELS) - 1)]


_CHANGES_GRADIENTS = (GradSet, GradAccumulated, StorageWritten, DataSet)


def pass_at(timeline: Timeline, n: int, node: int) -> PassResult | None:
    """Return the pass that the screen summarizes at a moment: the one that ended there, or the last one at the end.

    Where an optimizer begins a step, and nothing has changed a gradient since the pass, it is that pass, too. There is
    none if the user has selected a `node` other than its loss.
    """
    at_end = n == len(timeline) and not timeline.growing
    before_step = 0 < n <= len(timeline) and isinstance(timeline.event(n), OptimizerStarted)
    ended = last_pass(timeline, n) if at_end or before_step else n
    if before_step and next(iter(timeline.select(_CHANGES_GRADIENTS, ended + 1, n)), None) is not None:
        return None
    result = pass_result(timeline, ended)
    return result if result is not None and (not result.root or node in (0, result.root)) else None


BranchMoment: TypeAlias = tuple[Timeline, int]
"""The recording of a what-if's branch, and a moment of it."""


def overview(
    timeline: Timeline, moment: Moment, node: int, width: int, glyphs: Glyphs, branch: BranchMoment | None = None
) -> Iterator[Line]:
    """Yield a summary at the end of a pass or of the recording; nothing at any other moment.

    In a what-if (`branch`) the pass has the numbers of the branch.
    """
    result = pass_at(timeline, moment.n, node)
    at_end = moment.n == len(timeline) and not timeline.growing
    if result is None:
        return
    if at_end and len(timeline.phases) > 1:
        yield from _recording(timeline, width, glyphs)
    yield from _pass_or_branch(timeline, result, width, glyphs, branch)
    yield ()


_AFTER = ("after backward", "optimizer")
"""The phases after a pass. An update by hand is an optimizer's step, too, once it is complete."""


def _pass_or_branch(
    timeline: Timeline,
    result: PassResult,
    width: int,
    glyphs: Glyphs,
    branch: BranchMoment | None,
    answer: tuple[str, str] = ("e", ": why"),
) -> Iterator[Line]:
    """Yield a pass; in a what-if the same pass of the branch, or else the recorded one, marked as that."""
    if branch is None:
        yield from _pass(timeline, result, width, glyphs, answer)
        return
    other, moment = branch
    there = pass_result(other, last_pass(other, moment))
    if there is not None and there.pass_nr == result.pass_nr:
        yield from _pass(other, replace(there, at=result.at), width, glyphs, answer, source=timeline)
    else:
        yield line(("recorded:", "muted"))
        yield from _pass(timeline, result, width, glyphs, answer)


def after_pass(
    timeline: Timeline, moment: Moment, width: int, glyphs: Glyphs, branch: BranchMoment | None = None
) -> Iterator[Line]:
    """Yield a summary of the pass at the first event after it, below the node that is made there.

    A program without an optimizer updates its parameters by itself: ``w -= 0.1 * w.grad`` makes nodes.
    """
    phase = moment.phase
    if phase is None or phase.kind not in _AFTER or phase.start != moment.n or not moment.actor:
        return
    result = pass_result(timeline, last_pass(timeline, moment.n))
    if result is not None:
        yield ()
        yield from _pass_or_branch(timeline, result, width, glyphs, branch, ("!", ": findings"))


def beginning(timeline: Timeline, moment: Moment, width: int, glyphs: Glyphs) -> Iterator[Line]:
    """Yield what a recording contains and how to step through it, at its start."""
    if moment.n > 1 or timeline.growing or not len(timeline):
        return
    yield ()
    yield from _recording(timeline, width, glyphs)
    for key, what in _first_keys(timeline):
        yield from wrapped(line((f" {key}  ", "key"), what), width, 4)


def _first_keys(timeline: Timeline) -> Iterator[tuple[str, str]]:
    yield "n", "next node"
    if any(phase.kind == "backward" for phase in timeline.phases):
        yield "}", "next phase"
    ahead = next(iter(stops(timeline)), 0) if len(timeline) <= SEARCHED else 0
    if ahead in timeline.errors:
        yield "c", f"the error at event {ahead}"
    elif ahead and ahead == timeline.error_index.first_bad():
        yield "c", f"the first {timeline.error_index.kind_of_first_bad()} at event {ahead}"
    yield ">", "the end"


def _recording(timeline: Timeline, width: int, glyphs: Glyphs) -> Iterator[Line]:
    """Yield the length of the recording, how much of a program that still runs it has, and its losses."""
    count, of_run = len(timeline.iterations), timeline.iteration_count
    word = f"{iteration_called(timeline)}{'' if max(count, of_run) == 1 else 's'}"
    iterations = f"{count:,} of {of_run:,} {word}, " if of_run > count else f"{count:,} {word}, "
    yield from wrapped(line((f"{iterations if count else ''}{len(timeline):,} events", "title")), width)
    if (finished := finished_unrecorded(timeline)) and not timeline.finished:
        latest = f"iteration {timeline.iterations[-1].number:,} is the last recorded one"
        yield from wrapped(line((f"{latest}; the program has finished iteration {finished:,}", "now")), width)
    curves = [curve for curve in loss_curves(timeline, GLANCE) if any(value is not None for value in curve[1])]
    if len(curves) > 1:
        room = min(max(len(shown(name or "loss")) for name, _ in curves), 16)
        ends_room = max(len(_ends(losses, "value")) for _, losses in curves)
        for name, losses in curves:
            yield _series(name or "loss", losses, width, glyphs, "value", room, ends_room)
    elif curves and len([value for value in curves[0][1] if value is not None]) > 1:
        yield _series(curves[0][0] or "loss", curves[0][1], width, glyphs, "value")


def _series(
    name: str, values: Sequence[float | None], width: int, glyphs: Glyphs, style: str, room: int = 0, ends_room: int = 0
) -> Line:
    """Return ``loss  1.082 → 0.6388  █▆▅▃▁``; in one of several rows the name gets `room` cells, the numbers
    `ends_room`.
    """
    name = fitted(shown(name), room, glyphs.cut) if room else clipped(name, 16)
    row = line((name, "key"), "  ", (glyphs.text(f"{_ends(values, style):<{ends_room}}"), style), "  ")
    left = max(width - cells(row), 0)
    return (*row, (glyphs.text(sparkline(values, left)) if left >= 4 else "", style))


def _ends(values: Sequence[float | None], style: str) -> str:
    """Return the first and the last number of a series, ``1.082 → 0.6388``."""
    known = [value for value in values if value is not None]
    nothing = "no gradient" if style == "grad" else "unknown"
    return f"{number(known[0], 4)} → {number(known[-1], 4)}" if known else nothing


ENDS = 19
"""Cells of the first and the last number of a series."""


def _pass(
    timeline: Timeline,
    result: PassResult,
    width: int,
    glyphs: Glyphs,
    answer: tuple[str, str] = ("e", ": why"),
    source: Timeline | None = None,
) -> Iterator[Line]:
    """Yield where the pass began, which parameters it reached, and the lengths of the gradients by module.

    The key of the `answer` explains a missing gradient. The text of the program is that of `source`, if it is given.
    """
    loss = f" of {shown(timeline.info(result.root).title)}" if result.root else ""
    began = "" if result.loss is None else f" = {number(result.loss)}"
    yield from wrapped(line((f"backward pass {result.pass_nr}{clipped(loss, 40)}{began}", "title")), width)
    if result.at is not None:
        code = (line_text(source or timeline, result.at) or "").strip()
        yield from wrapped(line((f"{frame_text(result.at, 24)}  ", "muted"), clipped(code, 60)), width, 2)
    style = "error" if (result.missing and not result.is_for_inputs) or result.bad else ""
    yield from wrapped(line((result.verdict, style)), width, 2)
    if result.is_for_inputs:
        yield from wrapped(line(("the pass was for some inputs only", "muted")), width, 2)
    elif result.missing:
        named = ", ".join(shown(called(timeline.info(node))) for node in result.missing[:NAMED])
        more = f" and {len(result.missing) - NAMED} more" if len(result.missing) > NAMED else ""
        key, what = answer
        yield from wrapped(line(("no gradient: ", "error"), f"{named}{more}  ", (key, "key"), what), width, 2)
    if result.frozen:
        named = ", ".join(dict.fromkeys(shown(module_of(timeline, node)) for node in result.frozen))
        yield from wrapped(line(("frozen: ", "muted"), f"{clipped(named, 40)}  ", ("!", "key"), ": where"), width, 2)
    yield from _modules(result.modules, width, glyphs)


def _modules(modules: Sequence[ModuleGradient], width: int, glyphs: Glyphs) -> Iterator[Line]:
    if not modules:
        return
    yield line((".grad by module, |g|", "muted"))
    left_out = len(modules) - LISTED
    shown_ones = modules if left_out <= 0 else (*modules[: LISTED // 2], *modules[-LISTED // 2 :])
    most = largest_of(one.length for one in modules)
    room = min(max(len(shown(one.module)) for one in shown_ones), max(width - 12 - BAR, 8))
    for at, one in enumerate(shown_ones):
        if left_out > 0 and at == LISTED // 2:
            yield line((f" {glyphs.cut} {left_out} more", "muted"))
        text = "unknown" if one.length is None else number(one.length, 3)
        bar = (f"! {one.bad}", "error") if one.bad else (glyphs.past * bar_cells(one.length, most, BAR), "grad")
        yield line((f" {fitted(shown(one.module), room, glyphs.cut)} ", "key"), (f"{text:>9} ", "grad"), bar)


# The page of all passes


def training_lines(summary: Progress, width: int, glyphs: Glyphs) -> Iterator[Line]:
    """Yield each loss and the gradient of each module from pass to pass, each with its first and last number."""
    if not summary.ends:
        passes = f"{summary.passes:,} backward pass{'' if summary.passes == 1 else 'es'}"
        began = f"{passes} began, and none has ended: this page shows the passes that have"
        yield from wrapped(line((began if summary.passes else "no backward pass was recorded", "muted")), width)
        return
    count = f"{summary.passes:,} backward pass{'' if summary.passes == 1 else 'es'}"
    of_losses = f" of {summary.loss_count} losses" if summary.loss_count > 1 else ""
    some = f", {len(summary.ends)} of them shown" if len(summary.ends) < summary.passes else ""
    yield line((f"{count}{of_losses}{some}", "title"), (glyphs.text("   first → last"), "muted"))
    losses = [(one.name or "loss", one) for one in summary.by_loss]
    names = [*(name for name, _ in losses), *(name for _, one in losses for name, _ in one.modules), *summary.others]
    room = min(max(len(shown(name)) for name in names), max(width - ENDS - 16, 8))
    for name, one in losses:
        if one.known_losses:
            yield _series(name, one.losses, width, glyphs, "value", room, ENDS)
    for name, one in losses:
        if one.modules:
            yield from wrapped(line((f".grad by module{_after(summary, name, one)}, |g|", "muted")), width)
        for module, lengths in one.modules:
            yield _series(module, lengths, width, glyphs, "grad", room, ENDS)
    if summary.others:
        yield from wrapped(line(("no pass that is shown reaches these modules", "muted")), width)
    for module in summary.others:
        yield _series(module, (), width, glyphs, "grad", room, ENDS)
    if any(value is not None and not isfinite(value) for row in (summary.losses, *_rows(summary)) for value in row):
        yield line(("!", "error"), (" is a pass with a nan or an infinity", "muted"))


def _after(summary: Progress, name: str, one: LossProgress) -> str:
    """Return after which passes the norms are taken, where that is not every pass of the recording."""
    of_loss = f" of {shown(name)}" if summary.loss_count > 1 else ""
    if one.before_step:
        return f" after the last pass{of_loss} before each step"
    return f" after each pass{of_loss}" if of_loss else ""


def plain_training(summary: Progress, width: int, recorded: RecordedIterations | None = None) -> Iterator[str]:
    """Yield the same as plain text; then what was seen of the iterations that are not `recorded` whole."""
    marks = glyphs(ascii=wants_ascii())
    rows = [
        *training_lines(summary, width, marks),
        *([] if recorded is None else between_lines(recorded, width, marks)),
    ]
    return (plain(row).rstrip() for row in rows)


def between_lines(recorded: RecordedIterations, width: int, glyphs: Glyphs) -> Iterator[Line]:
    """Yield which iterations are whole, the losses and norms of gradients between them, and the alarms."""
    if recorded.whole_ranges:
        yield from wrapped(line((f"{recorded.summary}; whole: {recorded.numbers}", "muted")), width)
    if recorded.checks:
        first, last = recorded.checks[0][0], recorded.checks[-1][0]
        yield line((f"checked in iterations {first:,} to {last:,}, {len(recorded.checks):,} of them", "muted"))
        checks = evenly_spaced(recorded.checks)
        losses, norms = [loss for _, loss, _ in checks], [norm for _, _, norm in checks]
        if any(loss is not None for loss in losses):
            yield _series("loss", losses, width, glyphs, "value", 8, ENDS)
        yield _series("|g|", norms, width, glyphs, "grad", 8, ENDS)
    for at, what in recorded.alarms[:MOST_ALARMS]:
        yield from wrapped(line((f"iteration {at:,}: {shown(what)}", "error")), width)
    if len(recorded.alarms) > MOST_ALARMS:
        yield line((f"and {len(recorded.alarms) - MOST_ALARMS} more alarms", "muted"))


Check: TypeAlias = tuple[int, float | None, float | None]
"""The number of a checked iteration, its loss and the norm of its gradients."""

MOST_COLUMNS = 200
"""The columns of the widest plot of checks."""


def evenly_spaced(checks: Sequence[Check]) -> list[Check]:
    """Return one check for each of equal parts of the iterations, so that a plot of them has time as its axis.

    Older iterations have fewer checks, so a part without a check repeats the one before it. If a part has several, it
    is the first with a nan or an infinity, else the last. In the first part it is the first, where the training began.
    """
    first, last = checks[0][0], checks[-1][0]
    count = min(last - first + 1, MOST_COLUMNS)
    parts: list[list[Check]] = [[] for _ in range(count)]
    for check in checks:
        parts[min((check[0] - first) * count // (last - first + 1), count - 1)].append(check)
    spaced: list[Check] = []
    for part in parts:
        bad = (one for one in part if any(number is not None and not isfinite(number) for number in one[1:]))
        usual = part[-1 if spaced else 0] if part else spaced[-1]
        spaced.append(next(bad, usual))
    return spaced


MOST_ALARMS = 5


def _rows(summary: Progress) -> Iterator[Sequence[float | None]]:
    return (lengths for _, lengths in summary.modules)


def nonfinite_lines(timeline: Timeline, moment: Moment, width: int) -> Iterator[Line]:
    """Yield place, cause, fix and next keys where the first nan or infinity appears; nothing at any other moment."""
    if not moment.actor or len(timeline) > SEARCHED or moment.n != timeline.error_index.first_bad():
        return
    finding = timeline.once(_why_nonfinite, moment.n)
    kind, info = timeline.error_index.kind_of_first_bad(), timeline.info(moment.actor)
    rule = "backward of " * isinstance(moment.event, GradFlowed)
    yield from wrapped(line((f"the first {kind}: {rule}#{info.node} {called(info)}", "error")), width, 2)
    is_origin = finding.node in (0, info.node)  # if not, it came from an infinity that the program meant, as in a mask
    at = finding.at if is_origin else innermost(info)
    cause = (
        (finding.parts[0] if finding.parts else finding).text if is_origin else _own_cause(timeline, moment, finding)
    )
    rows: list[tuple[str, list[Span]]] = [
        ("at", [(frame_text(at), "")] if at is not None else []),
        ("why", [(_without_statistics(cause), "")] if cause else []),
        ("from", [] if is_origin else [(label_at(timeline, finding.node), "")]),
        ("fix", [(finding.fix, "title")] if finding.fix else []),
        ("next", [("e", "key"), (": why in full · ", ""), ("S", "key"), (": back", "")]),
    ]
    for name, spans in rows:
        if spans:
            yield from labelled(name, spans, width, _CAUSE_COLUMN)
    yield ()


def _own_cause(timeline: Timeline, moment: Moment, finding: Finding) -> str:
    """Return the fact about the node of this moment, in a finding about another one from which the number came.

    ``s[3, :] is all -inf`` of a softmax, whose -inf a mask wrote; empty if there is none.
    """
    met = meeting_numbers(timeline, moment.actor) if isinstance(moment.event, NodeCreated) else ""
    return met or next((part.text for part in finding.parts if part.node == moment.actor), "")


def _without_statistics(cause: str) -> str:
    """Return a cause without the statistics of the result, which the row of its value shows."""
    return _STATISTICS.sub("", cause)


_CAUSE_COLUMN = 5
"""Where the text of a cause begins: a narrow panel needs the room."""

_STATISTICS = re.compile(r" = \([\d,]+\)(?: \S[^:]*)?")
"""The statistics of a result in its computation: `` = (64,1) [-4.73 .. -2.41] μ -3.42 rms 3.5 ! 42 nan``."""


def _why_nonfinite(timeline: Timeline, n: int) -> Finding:
    from gviz.explain.why import why  # imports every kind of finding: only on demand

    moment = timeline.at(n)
    return why(timeline, moment, moment.actor)
