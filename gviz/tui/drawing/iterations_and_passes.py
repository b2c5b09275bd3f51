"""Iterations and their phases: forward, each backward pass, optimizer; each with its events."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.events import BackwardStarted, GradSet, OptimizerStepped
from gviz.explain.backward_passes import loss_at
from gviz.explain.display_names import label
from gviz.explain.grad_history import CLEARED
from gviz.explain.iteration_words import iteration_called, step_kind
from gviz.trace.graph_state import Iteration, Phase
from gviz.trace.timeline import Timeline
from gviz.tui.glyphs import glyphs, wants_ascii
from gviz.values.number_text import counted, number
from gviz.values.plain_text import shown

MOST_LOSSES = 3
"""How many passes of an iteration are listed with their losses."""

MOST = 1000
"""How many rows are listed at most: in a longer recording, those around the moment."""


def pass_rows(timeline: Timeline, n: int) -> list[tuple[str, int, bool]]:
    """Return a row for each iteration and phase, with its first event, and whether moment `n` lies in it.

    If the recording has more than `MOST` rows, only those around the moment are listed.
    """
    rows = (row for iteration in _near(timeline, n) for row in iteration_rows(timeline, iteration))
    return [(text, one.start, one.start <= n <= one.end) for text, one in rows]


def iteration_rows(timeline: Timeline, iteration: Iteration) -> Iterator[tuple[str, Iteration | Phase]]:
    """Yield the row of an iteration, then one for each of its phases."""
    span = f"events {iteration.start} to {iteration.end}"
    events = ", ".join(filter(None, (span, *_losses(timeline, iteration))))
    yield f"{iteration_called(timeline)} {iteration.number}  {events}", iteration
    for phase in timeline.phases_in(iteration):
        yield f"  {_phase_text(timeline, phase)}", phase


def _losses(timeline: Timeline, iteration: Iteration) -> Iterator[str]:
    """Yield the losses of the passes of an iteration, ``loss 0.2924``; if there are many, the first few and the last.

    The text is empty for a pass that did not begin at a single number.
    """
    passes = timeline.phases_in(iteration, "backward")
    first = passes[:MOST_LOSSES] if len(passes) <= MOST_LOSSES else passes[: MOST_LOSSES - 1]
    yield from (_loss(timeline, phase) for phase in first)
    if len(first) < len(passes):
        yield from ("…", _loss(timeline, passes[-1]))


def _loss(timeline: Timeline, phase: Phase) -> str:
    """Return the loss of a pass, and its thread; empty if it is not one number."""
    loss = loss_at(timeline, phase.start)
    if loss is None:
        return ""
    node, value = loss
    return f"{shown(timeline.info(node).title)} {number(value)}{_of_thread(timeline, phase, ' (thread {})')}"


def _of_thread(timeline: Timeline, phase: Phase, words: str) -> str:
    """Return the thread of a phase, if several threads were recorded: their phases overlap."""
    thread = timeline.at(phase.start).thread
    return words.format(thread) if thread else ""


def _near(timeline: Timeline, n: int) -> tuple[Iteration, ...]:
    """Return the iterations around a moment, as many as can be listed."""
    most = max(MOST * len(timeline.iterations) // max(len(timeline.phases) + len(timeline.iterations), 1), 1)
    at = timeline.iteration_at(n).index - timeline.iterations[0].index
    first = max(min(at - most // 2, len(timeline.iterations) - most), 0)
    return timeline.iterations[first : first + most]


def _phase_text(timeline: Timeline, phase: Phase) -> str:
    name = f"{phase.kind} pass {phase.pass_nr}" if phase.pass_nr else phase.kind
    started = timeline.event(phase.start)
    words = [f"{_of_thread(timeline, phase, 'thread {}, ')}{name}  events {phase.start} to {phase.end}"]
    if isinstance(started, BackwardStarted):
        words += [f"from {', '.join(label(timeline, node) for node, _ in started.roots[:3])}"]
        words += ["makes a graph of its own (create_graph)"] if started.create_graph else []
        words += ["keeps the graph"] if started.retain_graph and not started.create_graph else []
    if phase.kind == "optimizer":
        words += dict.fromkeys(shown(step_kind(timeline, step)) for step in timeline.contexts.steps_in(phase))
        words += _clearing(timeline, phase)
    return ", ".join(words)


def _clearing(timeline: Timeline, phase: Phase) -> Iterator[str]:
    """Yield how many gradients the program clears after its step; also in a loop that clears them first."""
    stepped = [seq for seq, _ in timeline.select((OptimizerStepped,), phase.start, phase.end + 1)]
    writes = timeline.select((GradSet,), max(stepped, default=phase.start), phase.end + 1)
    if cleared := {write.node for _, write in writes if write.how in CLEARED}:
        yield f"then {counted(len(cleared), 'gradient')} cleared"


def plain_passes(timeline: Timeline) -> Iterator[str]:
    """Yield every iteration and its phases, a line each, as plain text."""
    marks = glyphs(ascii=wants_ascii())
    return (marks.text(text) for one in timeline.iterations for text, _ in iteration_rows(timeline, one))
