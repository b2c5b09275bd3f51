"""The pages that ``gviz show`` prints: an overview, passes, training, tape, events, a node, memory, time.

Each page exists once as data (JSON) and once as lines of text.
"""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gviz.trace.graph_state import NodeState, Phase
    from gviz.trace.timeline import Timeline

Data = Callable[["Timeline", int, int], Any]
Text = Callable[["Timeline", int, int], Iterator[str]]
"""Both take a timeline, a position and a node (0: none)."""

_PIPE_WIDTH = 120


def stats_data(timeline: Timeline, n: int, node: int) -> dict[str, Any]:
    """Return counts of events, nodes and bytes, and the roots of the passes."""
    from gviz.explain.backward_passes import loss_values

    kinds = Counter(type(timeline.event(seq)).__name__ for seq in range(1, len(timeline) + 1))
    return {
        "events": len(timeline),
        "finished": timeline.finished,
        "dropped_events": timeline.dropped.events + sum(gap.events for gap in timeline.dropped.gaps),
        "nodes": len(timeline.nodes),
        "iterations": len(timeline.iterations),
        "iterations_of_run": timeline.iteration_count,
        "whole_iterations": [*dict.fromkeys(one.number for one in timeline.iterations)],
        "backward_passes": sum(phase.kind == "backward" for phase in timeline.phases),
        "losses": [value if isfinite(value) else str(value) for value in loss_values(timeline)],
        "failures": timeline.failures,
        "first_nan_or_inf": timeline.error_index.first_bad() or None,
        "kinds": dict(kinds.most_common()),
    }


def stats_text(timeline: Timeline, n: int, node: int) -> Iterator[str]:
    """Return counts of events, nodes and bytes, and the roots of the passes."""
    from gviz.explain.backward_passes import loss_values_by_name, row_text
    from gviz.values.plain_text import clipped

    stats = stats_data(timeline, n, node)
    for name in ("events", "nodes", "iterations", "backward_passes"):
        yield f"{name.replace('_', ' '):<18} {stats[name]:,}"
    for title, row in loss_values_by_name(timeline).items():
        if row:
            yield f"{clipped(title, 18) or ('losses' if len(row) > 1 else 'loss'):<18} {row_text(row)}"
    yield f"{'failure':<18} {', '.join(f'event {seq}' for seq in stats['failures']) or 'none'}"
    if not timeline.finished:
        yield f"{'not finished':<18} the recording broke off, or is still running"
    if timeline.missing:
        yield f"{'not in the trace':<18} {timeline.missing}"
    bad = stats["first_nan_or_inf"]
    yield f"{'first nan or inf':<18} {f'event {bad} ({timeline.error_index.kind_of_first_bad()})' if bad else 'none'}"
    yield ""
    for name, count in stats["kinds"].items():
        yield f"{name:<18} {count:,}"


def passes_data(timeline: Timeline, n: int, node: int) -> list[dict[str, Any]]:
    """Return the iterations in order, each with its phases and the roots of its backward passes."""
    from gviz.explain.backward_passes import root_value

    def phase_data(phase: Phase) -> dict[str, Any]:
        value = root_value(timeline, phase.start)
        loss = {} if value is None else {"loss": value if isfinite(value) else str(value)}
        numbers = {"pass": phase.pass_nr} if phase.pass_nr else {}
        return {"kind": phase.kind, "start": phase.start, "end": phase.end, **numbers, **loss}

    return [
        {
            "iteration": one.number,
            "start": one.start,
            "end": one.end,
            "phases": [*map(phase_data, timeline.phases_in(one))],
        }
        for one in timeline.iterations
    ]


def passes_text(timeline: Timeline, n: int, node: int) -> Iterator[str]:
    """Return the iterations with their phases, as in the debugger."""
    from gviz.tui.drawing.iterations_and_passes import plain_passes

    return plain_passes(timeline)


def training_data(timeline: Timeline, n: int, node: int) -> dict[str, Any]:
    """Return the loss and the gradient of each module after each backward pass; of a long recording after some
    of them.
    """
    from gviz.explain.training import progress

    curves = progress(timeline, n)
    recorded = timeline.recorded_iterations
    checks = recorded.checks if recorded is not None else ()
    return {
        "iterations": [timeline.iteration_at(end).number for end in curves.ends],
        "iterations_of_run": timeline.iteration_count,
        "looks": [(at, _json_number(loss), _json_number(norm)) for at, loss, norm in checks],
        "alarms": recorded.alarms if recorded is not None else (),
        "passes": curves.passes,
        "events": curves.ends,
        "loss_names": curves.names,
        "losses": [*map(_json_number, curves.losses)],
        "gradients": {module: [*map(_json_number, lengths)] for module, lengths in curves.modules},
    }


def _json_number(value: float | None) -> float | str | None:
    return value if value is None or isfinite(value) else str(value)


def training_text(timeline: Timeline, n: int, node: int) -> Iterator[str]:
    """Return the same as sparklines."""
    from gviz.explain.training import progress
    from gviz.tui.drawing.training_summary import plain_training

    yield from plain_training(progress(timeline, n), _width(), timeline.recorded_iterations)


def tape_data(timeline: Timeline, n: int, node: int) -> list[dict[str, Any]]:
    """Return every node in order of creation, with its state at one moment."""
    moment = timeline.at(n)
    return [_row(timeline, each, moment.state(each)) for each in timeline.nodes]


def tape_text(timeline: Timeline, n: int, node: int) -> Iterator[str]:
    """Return every node in order of creation, with its state at one moment."""
    from gviz.tui.drawing.tape import plain_tape

    return plain_tape(timeline, n, _width())


def events_data(timeline: Timeline, n: int, node: int) -> list[dict[str, Any]]:
    """Return every event in order."""
    return [{"seq": seq, **_form(timeline.event(seq))} for seq in range(1, len(timeline) + 1)]


def events_text(timeline: Timeline, n: int, node: int) -> Iterator[str]:
    """Return every event in order, one sentence each."""
    from gviz.explain.event_description import sentence

    return (sentence(timeline, seq, since=seq - 1) for seq in range(1, len(timeline) + 1))


def node_data(timeline: Timeline, n: int, node: int) -> dict[str, Any]:
    """Return how a node was created, its state at one moment, and its events."""
    state = timeline.at(n).state(node)
    return {"info": timeline.info(node), "state": state, "events": list(timeline.events_of(node))}


def node_text(timeline: Timeline, n: int, node: int) -> Iterator[str]:
    """Return the node panel of the debugger."""
    from gviz.tui.drawing.node_details import plain_panel

    return plain_panel(timeline, n, node, _width())


def memory_data(timeline: Timeline, n: int, node: int) -> dict[str, object]:
    """Return the memory that the graph keeps for backward."""
    from gviz.explain import saved_memory

    return saved_memory.memory_data(timeline, n)


def memory_text(timeline: Timeline, n: int, node: int) -> Iterator[str]:
    """Return the memory that the graph keeps for backward, with its curve."""
    from gviz.explain import saved_memory

    return saved_memory.memory_text(timeline, n, min(_width(), _PIPE_WIDTH))


def _row(timeline: Timeline, node: int, state: NodeState | None) -> dict[str, Any]:
    info = timeline.info(node)
    return {
        "node": node,
        "born": info.born,
        "name": info.name,
        "op": info.op.name,
        "kind": info.created.kind,
        "inputs": info.created.inputs,
        "outputs": [] if state is None else [{"value": out.value, "grad": out.grad} for out in state.outputs],
    }


def _form(event: object) -> dict[str, Any]:
    from gviz.cli.json_form import form

    plain: dict[str, Any] = form(event)
    return plain


def _width() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPE_WIDTH


def summary_data(timeline: Timeline, n: int, node: int) -> dict[str, Any]:
    """Return what an iteration does in order, and what its losses are made from."""
    from gviz.explain.iteration_summary import iteration_summary

    return asdict(iteration_summary(timeline, n))


def summary_text(timeline: Timeline, n: int, node: int) -> Iterator[str]:
    """Return what an iteration does in order, and what its losses are made from."""
    from gviz.explain import iteration_summary

    return iteration_summary.summary_text(timeline, n, min(_width(), _PIPE_WIDTH))


def time_data(timeline: Timeline, n: int, node: int) -> dict[str, object]:
    """Return the time of each module call."""
    from gviz.explain import module_times

    return module_times.time_data(timeline)


def time_text(timeline: Timeline, n: int, node: int) -> Iterator[str]:
    """Return the time of each module call, forward and backward."""
    from gviz.explain import module_times

    return module_times.time_lines(timeline, min(_width(), _PIPE_WIDTH))


PAGES: dict[str, tuple[Data, Text]] = {
    "stats": (stats_data, stats_text),
    "summary": (summary_data, summary_text),
    "passes": (passes_data, passes_text),
    "training": (training_data, training_text),
    "tape": (tape_data, tape_text),
    "events": (events_data, events_text),
    "node": (node_data, node_text),
    "memory": (memory_data, memory_text),
    "time": (time_data, time_text),
}
