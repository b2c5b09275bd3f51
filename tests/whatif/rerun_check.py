"""A branch that changes nothing is the recording: every value and gradient, bit for bit."""

from collections.abc import Iterator

from gviz.trace.timeline import Timeline
from gviz.whatif.rerun import branched


def deviations(timeline: Timeline) -> Iterator[str]:
    """Where running each iteration again gives another number than the recording has."""
    for iteration in timeline.iterations:
        branch = branched(timeline, iteration, [])
        other, end = Timeline(branch.log), timeline.at(iteration.end)
        stopped = {stop.node for stop in branch.stopped}
        complete = all(stop.of_gradient for stop in branch.stopped)
        made = [node for node in timeline.nodes_of(iteration) if timeline.info(node).iteration == iteration.index]
        for node in made:
            info = timeline.info(node)
            what = f"#{node} {info.op.name} of iteration {iteration.index}"
            if node not in branch.numbers:
                if not branch.stopped:
                    yield f"{what} is missing"
                continue
            again = other.info(branch.numbers[node])
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


def same(timeline, x, other, y):
    if x is None or y is None:
        return x is y
    a, b = timeline.array(x), other.array(y)
    return (x.dtype, x.shape) == (y.dtype, y.shape) and (a is None or a.tobytes() == b.tobytes())
