"""The source location of a moment and a node."""

from __future__ import annotations

from dataclasses import dataclass

from gviz.events import (
    BackwardFinished,
    BackwardStarted,
    DataSet,
    Failed,
    GradSet,
    NodeCreated,
    OptimizerStarted,
    OptimizerStepped,
    RequiresGradSet,
    ScopeEntered,
    StorageWritten,
    Warned,
)
from gviz.explain.failed_call import first_input
from gviz.explain.iteration_words import finished_unrecorded
from gviz.explain.parameter_updates import write_place
from gviz.explain.source_frames import frame_text
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Moment, Timeline
from gviz.tui.drawing.source import SourceMark

SEARCHED = 1000
"""In how many events of a module call its first node is looked for."""


@dataclass(frozen=True, slots=True)
class PausedStack:
    """The call stack of a paused program, innermost frame first, and the node that was selected then.

    Only the session that paused the program has it; the recording does not. Where a module call begins, it is the
    stack of that call (`is_pause` is false): that event has no node, and no call stack of its own.
    """

    frames: tuple[Frame, ...]
    node: int
    is_pause: bool = True


def pause_text(timeline: Timeline, pause: PausedStack, width: int = 60) -> str:
    """Return where the program is paused: ``at train.py:10``, and after which iteration if that was not recorded.

    The path gets `width` characters.
    """
    finished = finished_unrecorded(timeline)
    return f"at {frame_text(pause.frames[0], width)}" + (f", after iteration {finished:,}" if finished else "")


def call_frames(timeline: Timeline, n: int) -> tuple[Frame, ...]:
    """Return the call stack of a module call that begins at moment `n`; empty if it made no node or none begins there.

    It is that of the first node in the call, without the frames of the forwards that ran in the call:

        Net.forward      x = self.fc1(x)     the first node of the calls of Net and of Net.fc1
        <module>         loss = net(x)

    The call of ``Net`` has one frame, because ``Net.forward`` is its own; that of ``Net.fc1`` has both, because
    ``Linear.forward`` is code of a library, which has no frames.
    """
    entered = timeline.event(n) if n else None
    if not isinstance(entered, ScopeEntered):
        return ()
    _, _, left = timeline.contexts.scope_at(n)
    first = next((at for at, _ in timeline.select((NodeCreated,), n, min(left or n + SEARCHED, n + SEARCHED))), 0)
    if not first:
        return ()
    frames, scope = timeline.info(timeline.at(first).node).frames, timeline.contexts.scope_at(first)[0]
    while (call := timeline.contexts.call(scope)) is not None:
        own = (at for at, frame in enumerate(frames) if f".{frame.function}".endswith(f".{call.kind}.forward"))
        frames = frames[next(own, -1) + 1 :]
        if scope == entered.scope:
            return frames
        scope = call.parent
    return ()  # the node was made in another thread, or by a program whose trace is damaged


def stack_of(timeline: Timeline, node: int, paused_stack: PausedStack | None = None) -> tuple[Frame, ...]:
    """Return the call stack to show: where the program paused, or where the node was made if another is selected."""
    return paused_stack.frames if paused_stack is not None and paused_stack.node == node else _frames(timeline, node)


def source_place(
    timeline: Timeline, moment: Moment, node: int, depth: int = 0, paused_stack: PausedStack | None = None
) -> SourceMark | None:
    """Return the expression that made the node (or its caller `depth` frames up), and the line that is running."""
    running = running_frame(timeline, moment, paused_stack)
    frames = stack_of(timeline, node, paused_stack)
    if paused_stack is not None and paused_stack.node == node and not depth:
        return SourceMark(frames[0])
    if not frames or (node != moment.actor and running is None and not node):
        return SourceMark(running) if running is not None else None
    frame = frames[min(depth, len(frames) - 1)]
    if isinstance(moment.event, Failed | StorageWritten | RequiresGradSet) and running is not None:
        is_failed_call = isinstance(moment.event, Failed) and node == first_input(timeline, moment.n)
        if node == moment.actor or (is_failed_call and not depth):
            return SourceMark(running)
    if running is None:
        return SourceMark(frame, -1)
    return SourceMark(frame, running.line if running.path == frame.path else -1)


def running_frame(timeline: Timeline, moment: Moment, paused_stack: PausedStack | None = None) -> Frame | None:
    """Return the line that the program is at.

    This is where the program was paused, or the call of ``backward()`` during a pass, else the line of the event.
    """
    if paused_stack is not None:
        return paused_stack.frames[0]
    event = moment.event
    if isinstance(event, Failed | Warned | OptimizerStarted | OptimizerStepped | GradSet | DataSet | RequiresGradSet):
        return _innermost(timeline, event.stack)
    if isinstance(event, BackwardFinished):
        began = timeline.event(timeline.pass_start(event.pass_nr)) if timeline.pass_start(event.pass_nr) else None
        return _innermost(timeline, began.stack) if isinstance(began, BackwardStarted) else None
    phase = moment.phase
    if moment.pass_nr and phase is not None and phase.pass_nr:
        started = timeline.event(phase.start)
        if isinstance(started, BackwardStarted):
            return _innermost(timeline, started.stack)
    if isinstance(event, StorageWritten):
        return next(iter(write_place(timeline, moment.n, event)), None)
    if isinstance(event, NodeCreated):
        return next(iter(_frames(timeline, event.node)), None)
    return None


def _frames(timeline: Timeline, node: int) -> tuple[Frame, ...]:
    return timeline.info(node).frames if node in timeline.nodes else ()


def _innermost(timeline: Timeline, stack: int) -> Frame | None:
    frames = timeline.stack(stack)
    return frames[0] if frames else None
