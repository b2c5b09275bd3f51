"""Which event a moment refers to: ``12``, ``iteration 3``, ``nan``, ``'mark``, a node, its gradient, a stop.

`event_at` resolves a moment as users write it (`gviz.query_syntax.moment`) to the number of an event in a timeline.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn, TypeGuard

from gviz.errors import GvizError
from gviz.events import BackwardStarted, Event, GradAccumulated, GradFlowed
from gviz.query.expressions import hits_of
from gviz.query.nodes import NamedNodes, event_number, node_at
from gviz.query_syntax.moment import (
    MOMENT_WORDS,
    OF_ITERATION,
    OF_LOSS,
    OF_PASS,
    PASSES,
    SUCH_MOMENTS,
)
from gviz.query_syntax.place import split_aspect
from gviz.query_syntax.stop_condition import is_comparison, stop
from gviz.trace.graph_state import Iteration, Phase
from gviz.trace.iteration_and_phase_ends import phase_end, through
from gviz.trace.timeline import Timeline
from gviz.values.number_text import typed_count
from gviz.values.plain_text import clipped, shown

NO_MARKS: Mapping[str, int] = {}


def begin_of(timeline: Timeline, text: str, n: int) -> int:
    """Return the start of the pass or iteration that a text refers to, as seen from moment `n`."""
    end, word = event_at(timeline, text, n), text.split()[0]
    if word == "iteration":
        return timeline.iteration_at(end).start
    kind = "backward" if word == "pass" else PASSES[word]
    return next(phase.start for phase in timeline.phases if phase.kind == kind and phase_end(timeline, phase) == end)


def event_at(
    timeline: Timeline, text: str, n: int | None = None, node: int = 0, marks: Mapping[str, int] = NO_MARKS
) -> int:
    """Return the event number of `text`, one of `MOMENTS`, as seen from moment `n` (None: from outside).

    `node` is the selected node, `marks` the marks of the debugger. A node refers to the event that created it,
    ``x.grad`` to the last contribution to its gradient, a stop (as for ``break``) to its last hit. Raises GvizError if
    there is no such moment.
    """
    here, error_index = len(timeline) if n is None else n, timeline.error_index
    match text:
        case "start":
            return 0
        case "end":
            return len(timeline)
        case "nan":
            return error_index.first("nan") or error_index.first_bad() or _without(timeline, text, "nan or inf")
        case "inf":
            return error_index.first("inf") or _without(timeline, text, "inf")
        case "error":
            return _error(timeline, n or 0) or _without(timeline, text, "error")
    if text in PASSES:
        return _end_of_pass(timeline, text, here)
    if of := OF_ITERATION.fullmatch(text):
        return _of_iteration(timeline, of[1], of[2])
    if of := OF_PASS.fullmatch(text):
        return _of_pass(timeline, of[1])
    if loss := OF_LOSS.fullmatch(text):
        return _of_loss(timeline, loss[1], here, node)
    if text.startswith("'"):
        return _marked(timeline, text[1:], marks)
    if text.removeprefix("@").isdigit():
        return event_number(timeline, text.removeprefix("@"))
    if text.startswith(("on ", "change ", "if ")) or is_comparison(text):
        return _moment_of_stop(timeline, text, here)
    return _moment_of_node(timeline, text, here, node, from_outside=n is None)


def _moment_of_stop(timeline: Timeline, text: str, n: int) -> int:
    """Return the last moment by `n` at which a stop fits, otherwise the next."""
    where = stop(text)
    hits = hits_of(timeline, where)
    hit = next(hits.before(n + 1), None) or next(hits.after(n), None)
    if hit is None:
        never = f"there is no moment {clipped(text, 40)}: it never happens in this recording"
        hint = where.of_every_node and f"{where.of_every_node} asks every node"
        raise GvizError(never, hint=hint, exit_code=2)
    return hit.n


def remark(timeline: Timeline, text: str) -> str:
    """Return a remark about the moment that a word refers to, or "".

    It names a node with the same name, or notes that there is no nan but an infinity, or that an infinity came first,
    or that the backward pass of an iteration has another number.
    """
    of = OF_ITERATION.fullmatch(text)
    if of and PASSES.get(of[1]) == "backward":
        return _other_number(timeline, of[1], of[2])
    also = NamedNodes(timeline).hint_at_node(text) if text in MOMENT_WORDS else ""
    first = timeline.error_index.first_bad() if text == "nan" else 0
    if not first or timeline.error_index.kind_of_first_bad() == "nan":
        return also
    before = f"an infinity came before it: inf is event {first}"
    return "; ".join(
        filter(None, (before if timeline.error_index.first("nan") else "first inf: there is no nan", also))
    )


def _other_number(timeline: Timeline, word: str, text: str) -> str:
    """Return the number of the backward pass of an iteration, if that differs from the number of the iteration."""
    end, number = _of_iteration(timeline, word, text), typed_count(text)
    pass_nr = next((one.pass_nr for one in timeline.phases if one.kind == "backward" and one.end == end), 0)
    if pass_nr in (0, number):
        return ""
    return f"this is backward pass {pass_nr}, of iteration {number}; 'pass {number}' is backward pass {number}"


def _end_of_pass(timeline: Timeline, word: str, n: int) -> int:
    """Return the end of the last phase for a word in the iteration of moment `n`, otherwise in the whole recording.

    Prefers phases of the thread of `n`, if it has any.
    """
    kind, thread_at = PASSES[word], timeline.contexts.thread_at
    phases = [phase for phase in timeline.phases if phase.kind == kind]
    if n < len(timeline):
        phases = [phase for phase in phases if thread_at(phase.start) == thread_at(n)] or phases
    here = _ends_in(timeline, timeline.iteration_at(n), phases)
    ends = here or [phase_end(timeline, phase) for phase in phases[-1:]]
    return ends[-1] if ends else _without(timeline, word, f"{kind} pass")


def _of_iteration(timeline: Timeline, word: str, text: str) -> int:
    """Return where an iteration (counted from 1) is complete, or the end of its last pass that the word refers to."""
    count, number = len(timeline.iterations), typed_count(text)
    iteration = timeline.iteration_numbered(number) if number is not None else None
    if iteration is None:
        raise _no_iteration(timeline, text, count)
    if word == "iteration":
        return through(timeline, iteration)
    ends = _ends_in(timeline, iteration, [phase for phase in timeline.phases if phase.kind == PASSES[word]])
    return ends[-1] if ends else _without(timeline, f"{word} {number}", f"{PASSES[word]} pass")


def _of_pass(timeline: Timeline, text: str) -> int:
    """Return the end of a backward pass by its number."""
    numbers = {phase.pass_nr: phase.end for phase in timeline.phases if phase.kind == "backward"}
    number = typed_count(text)
    if number in numbers:
        return numbers[number]
    none = f"there is no backward pass {clipped(text, 20)}{' so far' if timeline.growing else ''}"
    last = max(numbers, default=0)
    raise GvizError(none, hint=f"the last one is pass {last:,}" if last else "no backward pass began", exit_code=2)


def _of_loss(timeline: Timeline, text: str, n: int, node: int) -> int:
    """Return the end of the backward pass that started at the node to which a text refers."""
    loss = timeline.info(_moment_node(timeline, text, n, node)).node
    return end_of_own_pass(timeline, loss) or _without(timeline, text, "backward pass of this node")


def end_of_own_pass(timeline: Timeline, node: int) -> int:
    """Return the end of the last backward pass that started at a node; 0 if none did."""
    phases = (phase for phase in reversed(timeline.phases) if phase.kind == "backward")
    return next((phase.end for phase in phases if _start_at(timeline, phase, node)), 0)


def _start_at(timeline: Timeline, phase: Phase, node: int) -> int:
    """Return the event with which a pass starts if it starts at a node, else 0."""
    began = timeline.event(phase.start)
    starts = isinstance(began, BackwardStarted) and any(root == node for root, _ in began.roots)
    return phase.start if starts else 0


def _no_iteration(timeline: Timeline, text: str, count: int) -> GvizError:
    """Return the error for an iteration that does not exist; for a running program, with the command to run there."""
    none, number = f"there is no iteration {clipped(text, 20)}", typed_count(text)
    if timeline.growing and number is not None and number > count:
        hint = f"until if step == {number - 1} lets the program run there"
        return GvizError(f"{none} so far", hint=hint, exit_code=2)
    if timeline.recorded_iterations is not None:
        return GvizError(
            f"{none} in this recording", hint=f"it has {timeline.recorded_iterations.numbers}", exit_code=2
        )
    only = f"there are {count:,}" if count > 1 else "there is one"
    return GvizError(none, hint=only, exit_code=2)


def _ends_in(timeline: Timeline, iteration: Iteration, phases: Sequence[Phase]) -> list[int]:
    """Return the ends of the phases that begin in an iteration, up to its last backward pass if it has one.

    Evaluation after that pass is not a forward of the iteration.
    """
    own = [phase for phase in timeline.phases if iteration.start <= phase.start <= iteration.end]
    passes = [phase.start for phase in own if phase.kind == "backward"]
    last = max(passes, default=iteration.end)
    return [phase_end(timeline, phase) for phase in phases if iteration.start <= phase.start <= last]


def _moment_of_node(timeline: Timeline, text: str, n: int, node: int, *, from_outside: bool) -> int:
    """Return the event that created a node or, for ``x.grad``, at which its gradient arrived."""
    info = timeline.info(_moment_node(timeline, text, n, node))
    aspect = split_aspect(text)[1] if text not in (info.name, info.scope) else None
    if aspect == "grad":
        return _arrived(timeline, info.node, n) or _never(text, timeline.path if from_outside else None)
    if aspect:
        hint = f"change {clipped(text, 30)} is where it changed"
        raise GvizError(f"there is no moment {clipped(text, 30)}", hint=hint, exit_code=2)
    return info.born


def _moment_node(timeline: Timeline, text: str, n: int, node: int) -> int:
    """Return the node in the text of a moment. Raises GvizError that names what a moment is."""
    try:
        return node_at(NamedNodes(timeline), text, n, node)
    except GvizError as error:
        if text.startswith(("#", "@")) or ":" in text:
            raise
        near = (error.hint or "").startswith("did you mean")
        if timeline.growing and not near and split_aspect(text)[0].isidentifier():
            hint = f"until {clipped(text, 30)} lets the program run there"
            raise GvizError(f"there is no {clipped(text, 30)} so far", hint=hint, exit_code=2) from None
        hint = error.hint if near else f"a moment is {SUCH_MOMENTS}"
        raise GvizError(f"there is no moment {clipped(text, 30)}", hint=hint, exit_code=2) from None


def _arrived(timeline: Timeline, node: int, n: int) -> int:
    """Return the event at which a node's gradient was complete: the last by `n`, otherwise the next; 0 if never.

    The gradient of a loss is complete when its pass starts.
    """
    events = ((seq, timeline.event(seq)) for seq in timeline.events_of(node))
    last = {event.pass_nr: seq for seq, event in events if _is_part(event, node)}
    phases = () if last else (phase for phase in timeline.phases if phase.kind == "backward")
    ends = sorted([*last.values(), *filter(None, (_start_at(timeline, phase, node) for phase in phases))])
    return max((seq for seq in ends if seq <= n), default=ends[0] if ends else 0)


def _is_part(event: Event, node: int) -> TypeGuard[GradFlowed | GradAccumulated]:
    return isinstance(event, GradFlowed | GradAccumulated) and event.node == node


def _never(text: str, trace: Path | None) -> NoReturn:
    """Raise that a gradient never arrives. The hint is a command of the debugger, or of a shell for a `trace`."""
    hint = f"why {clipped(text, 30)} explains it"
    if trace is not None:
        hint = f"gviz explain {shlex.quote(shown(str(trace)))} {shlex.quote(clipped(text, 30))} explains it"
    raise GvizError(f"no gradient arrives at {clipped(split_aspect(text)[0], 30)}", hint=hint, exit_code=2)


def _error(timeline: Timeline, n: int) -> int:
    """Return the error the program failed with, else the next caught error, else the first; 0 if there is none."""
    errors = timeline.failures[-1:] or timeline.errors
    return next((error for error in errors if error > n), errors[0] if errors else 0)


def _marked(timeline: Timeline, name: str, marks: Mapping[str, int]) -> int:
    known = {mark: seq for seq, mark in timeline.marks} | dict(marks)
    if name not in known:
        raise GvizError(f"there is no mark {clipped(name, 30)}", hint="mark NAME sets one", exit_code=2)
    return known[name]


def _without(timeline: Timeline, word: str, what: str) -> NoReturn:
    raise NamedNodes(timeline).no_such(what, word)
