"""A branch that changes nothing is the recording: every value and gradient, bit for bit."""

from collections.abc import Iterator

from gviz.events import BackwardStarted
from gviz.rerun.change_parser import Change
from gviz.rerun.iteration import rerun_iteration
from gviz.trace.timeline import Timeline


def deviations(timeline: Timeline, changes=lambda timeline, iteration: []) -> Iterator[str]:
    """Where running each iteration again, with these changes, gives another number than the recording has."""
    for iteration in timeline.iterations:
        branch = rerun_iteration(timeline, iteration, changes(timeline, iteration))
        other, end = Timeline(branch.log), timeline.at(iteration.end)
        stopped = {stop.node for stop in branch.stopped}
        complete = all(stop.of_gradient for stop in branch.stopped)
        for node in timeline.nodes.of(iteration):
            info = timeline.info(node)
            what = f"#{node} {info.op.name} of iteration {iteration.index}"
            if node not in branch.numbers:
                if not branch.stopped:
                    yield f"{what} is missing"
                continue
            again = other.info(branch.numbers[node])
            if info.iteration == iteration.index:
                if again.op.name != info.op.name:
                    yield f"{what} became {again.op.name}"
                pairs = zip(info.created.outputs, again.created.outputs, strict=True)
                if not all(same(timeline, a.value, other, b.value) for a, b in pairs):
                    yield f"{what} has another value"
            if node in branch.unknown or node in stopped or not complete:
                continue
            before, after = end.state(node), other.at(len(other)).state(branch.numbers[node])
            for a, b in zip(before.outputs, after.outputs, strict=True):
                for kind in ("value", "grad", "incoming"):
                    if not same(timeline, getattr(a, kind), other, getattr(b, kind)):
                        yield f"{what} has another {kind} at the end"


def the_same_again(timeline, iteration):
    """Changes of everything that an iteration uses, and of the gradient its pass begins with, to what they are."""
    nodes = timeline.nodes.of(iteration)
    states = zip(nodes, timeline.at(max(iteration.start - 1, 0)).states(nodes), strict=True)
    for node, state in states:
        info = timeline.info(node)
        if info.iteration == iteration.index or dict(info.created.attrs).get("grad_of"):
            continue
        yield from _as_it_is(timeline, node, state.outputs[0].value)
    for node in nodes:
        info = timeline.info(node)
        if info.iteration == iteration.index and not info.created.attrs and info.created.kind != "op":
            yield from _as_it_is(timeline, node, info.created.outputs[0].value)
    passes = [timeline.event(seq) for seq in range(max(iteration.start, 1), iteration.end + 1)]
    started = [event for event in passes if isinstance(event, BackwardStarted)]
    if len(started) == 1 and len(started[0].roots) == 1 and started[0].roots[0][0] in timeline.nodes:
        yield from _as_it_is(timeline, started[0].roots[0][0], started[0].seeds[0], of_gradient=True)


def _as_it_is(timeline, node, value, **of_gradient):
    array = None if value is None else timeline.array(value)
    if array is not None and array.size:
        yield Change(node, array.tolist(), **of_gradient)


def same(timeline, x, other, y):
    if x is None or y is None:
        return x is y
    a, b = timeline.array(x), other.array(y)
    return (x.dtype, x.shape) == (y.dtype, y.shape) and (a is None or a.tobytes() == b.tobytes())
