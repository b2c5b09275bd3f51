"""A Fisher information that is the square of a mean gradient, where the mean of squared gradients is meant.

Idea. A penalty ``fisher * (p - old) ** 2`` shows what a square of gradients is for. The gradients come from a pass that
began at a mean or a sum of the log-likelihoods of several samples: they cancel each other before they are squared, and
do so most where the model has been trained.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from itertools import islice

from gviz.events import GradAccumulated, GradCaptured, GradSet
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.errors.untracked_loss import gradients_taken
from gviz.explain.grad_history import CLEARED
from gviz.explain.operation_sets import CLASS_LOSSES, LISTS, LOSSES, RESHAPING, SAME_NUMBERS, SOFTMAXES
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.trace.timeline import Timeline
from gviz.values.value import Value

_MOST_TRIES, _MOST_NODES = 20, 200
"""The most products of one line that are examined, and the most nodes behind one."""

_OVER_CLASSES = CLASS_LOSSES | {"nll_loss_nd"}


def squared_mean(survey: Survey) -> Iterator[Finding | None]:
    """Yield the squares of a mean gradient that weigh the distance of parameters from older ones; each line once."""
    tries, seen = Counter[int](), set[int]()
    for record in survey.ops("mul"):
        if tries[record.created.stack] >= _MOST_TRIES or not record.created.requires_grad:
            continue
        weights = _weights_of_distance(survey, record)
        if not weights:
            continue
        yield None
        tries[record.created.stack] += 1
        square = next((one for weight in weights if (one := _square_of_gradient(survey, weight)) is not None), None)
        if square is None or square[0].created.stack in seen:
            continue
        root, count = max(_means(survey, *square), key=lambda one: one[1], default=(None, 0))
        if root is not None and count > 1:
            seen.add(square[0].created.stack)
            yield _finding(survey, record, square[0], root, count)


def _weights_of_distance(survey: Survey, record: NodeRecord) -> list[NodeRecord]:
    """Return the untracked factors of ``fisher * (p - old) ** 2``, in any order; empty for any other product."""
    factors, weights, distances = deque([record]), list[NodeRecord](), Counter[int]()
    for _ in range(_MOST_TRIES):
        if not factors:
            break
        one = factors.popleft()
        if one.op == "mul" and one.created.requires_grad:
            sources = list(survey.sources(one))
            factors += sources * 2 if len(sources) == 1 else sources
        elif not one.created.requires_grad:
            weights += [one] if one.shape else []
        elif _is_square(survey, one):
            distances[next(survey.sources(one)).node] += 2
        else:
            distances[one.node] += 1
    is_distance = any(times > 1 and _is_distance(survey, survey.nodes[node]) for node, times in distances.items())
    return weights if is_distance else []


def _is_square(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a node is the square of its first input."""
    inputs = record.created.inputs
    if record.op == "pow":
        exponent = dict(record.created.attrs).get("exponent")
        values = [one.value.statistics() for one in list(survey.sources(record))[1:] if one.value is not None]
        return exponent in (2, 2.0) or any(stats is not None and stats.mean == stats.max == 2 for stats in values)
    return record.op == "square" or (record.op == "mul" and len(inputs) == 2 and inputs[0] == inputs[1])


def _is_distance(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a node is the difference between parameters and data."""
    sources = list(survey.sources(record))
    tracked = [one for one in sources if one.created.requires_grad]
    if record.op != "sub" or len(sources) != 2 or len(tracked) != 1:
        return False
    inner, waiting = tracked[0], [tracked[0]]
    for _ in range(_MOST_NODES):
        if not waiting:
            return True
        inner = survey.unwrapped(waiting.pop())
        if inner.op in LISTS:
            waiting += list(survey.sources(inner))[:1]
        elif inner.created.kind == "op":
            return False
    return False


def _square_of_gradient(survey: Survey, weight: NodeRecord) -> tuple[NodeRecord, NodeRecord] | None:
    """Return a square from which weights were added up, and the gradient that it squares."""
    for record in _behind(survey, weight):
        if record.created.kind == "op" and _is_square(survey, record):
            sources = list(survey.sources(record))[:1]
            gradients = (one for source in sources for one in _behind(survey, source) if _is_gradient(one))
            gradient = next(gradients, None)
            return (record, gradient) if gradient is not None else None
    return None


def _behind(survey: Survey, record: NodeRecord) -> Iterator[NodeRecord]:
    """Yield an untracked node and what it was made from, nearest first, up to gradients."""
    seen, waiting = {record.node}, deque([record])
    while waiting and len(seen) < _MOST_NODES:
        here = waiting.popleft()
        yield here
        if _is_gradient(here):
            continue
        for source in (*survey.sources(here), *_writers(survey, here)):
            if source.node not in seen and not source.created.requires_grad:
                seen.add(source.node)
                waiting.append(source)


def _writers(survey: Survey, record: NodeRecord) -> Iterator[NodeRecord]:
    """Yield the operations that write to a node in place: ``fisher[name] += grad ** 2``."""
    timeline = survey.timeline
    for node in islice(timeline.nodes.users(record.node), _MOST_NODES):
        user = survey.nodes.get(node)
        if user is not None and timeline.op(user.created.op).name.endswith("_"):
            yield user


def _is_gradient(record: NodeRecord) -> bool:
    attrs = dict(record.created.attrs)
    return bool(attrs.get("grad_of") or attrs.get("gradient")) or record.op == "grad"


def _means(survey: Survey, square: NodeRecord, gradient: NodeRecord) -> Iterator[tuple[NodeRecord, int]]:
    """Yield the means or sums at which the passes of a gradient began, each with the number of its samples."""
    for node in _roots(survey, square, gradient):
        record = survey.nodes.get(node)
        for _ in range(_MOST_TRIES):
            if record is None or record.op in LOSSES or record.op in _OVER_CLASSES or record.op in ("mean", "sum"):
                break
            tracked = [one for one in survey.sources(record) if one.created.requires_grad]
            is_scaled = record.op in ("neg", "mul", "div") or record.op in RESHAPING
            record = tracked[0] if is_scaled and len(tracked) == 1 else None
        source = next((one for one in survey.sources(record) if one.created.requires_grad), None) if record else None
        if record is not None and source is not None and not record.shape:
            count = _samples(survey, source) if record.op in _OVER_CLASSES else _rows(survey, source)
            yield record, count


def _samples(survey: Survey, record: NodeRecord) -> int:
    """Return the number of samples of scores that may have been flattened: one sample can have several rows."""
    least = _first_size(record)
    while record.op in {*SOFTMAXES, *SAME_NUMBERS} and (sources := list(survey.sources(record))):
        record = sources[0]
        least = min(least, _first_size(record))
    return least


def _rows(survey: Survey, record: NodeRecord) -> int:
    """Return the number of samples of losses or results. One dimension may be that of the features of one sample."""
    count, waiting = _first_size(record), deque([record])
    for _ in range(_MOST_TRIES):
        if not waiting:
            break
        here = waiting.popleft()
        if here.op in LISTS or (len(here.shape) > 1 and here.shape[0] == count):
            return count
        results = (one for one in survey.sources(here) if survey.unwrapped(one).created.kind == "op")
        waiting += [one for one in results if one.created.requires_grad]
    return 1


def _first_size(record: NodeRecord) -> int:
    return record.shape[0] if record.shape else 1


def _roots(survey: Survey, square: NodeRecord, gradient: NodeRecord) -> list[int]:
    """Return the roots of the passes that gave a gradient, as far as it was squared."""
    attrs = dict(gradient.created.attrs)
    if gradient.op == "grad":
        return [node for node, _ in gradient.created.inputs[:1]]
    leaf, timeline = attrs.get("grad_of"), survey.timeline
    passes = set[int]()
    if isinstance(leaf, int) and leaf:
        for seq, pass_nr in timeline.once(_additions, 0)[leaf]:
            if seq < square.seq:
                passes = passes | {pass_nr} if pass_nr else set()
    elif gradient.value is not None and (seq := timeline.once(_captures, 0).get(gradient.value, 0)):
        captured = timeline.event(seq)
        passes = {captured.pass_nr} if isinstance(captured, GradCaptured) else set()
    return [node for _, event in survey.passes if event.pass_nr in passes for node, _ in event.roots[:1]]


def _additions(timeline: Timeline, _: int) -> defaultdict[int, list[tuple[int, int]]]:
    """Return, for each leaf, the passes that added to its ``.grad`` and their events; pass 0 has cleared it."""
    additions: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for seq, event in timeline.select((GradAccumulated, GradSet)):
        if isinstance(event, GradAccumulated):
            additions[event.node].append((seq, event.pass_nr))
        elif isinstance(event, GradSet) and event.how in CLEARED:
            additions[event.node].append((seq, 0))
    return additions


def _captures(timeline: Timeline, _: int) -> dict[Value, int]:
    return gradients_taken(timeline)


def _finding(survey: Survey, penalty: NodeRecord, square: NodeRecord, root: NodeRecord, count: int) -> Finding:
    timeline = survey.timeline
    what = "sum" if root.op == "sum" or dict(root.created.attrs).get("reduction") in ("sum", 2) else "mean"
    text = titled(f"{{}} is the square of the gradient of a {what} of {count} samples", label(timeline, square.node))
    cancel = f"{label_at(timeline, root.node)} is the {what}: gradients of samples cancel each other before the square"
    part = Finding("root", cancel, root.seq, root.node, at=survey.at(root))
    weighs = f"{label_at(timeline, penalty.node)} weighs (p - old)² with it, as a Fisher information"
    use = Finding("used", weighs, penalty.seq, penalty.node, at=survey.at(penalty))
    fix = "square the gradient of each sample, then take the mean: a backward per sample, or torch.func.vmap"
    numbers = (Number("samples", count),)
    at = survey.at(square)
    return Finding("squared-mean", text, square.seq, square.node, (part, use), fix, at, numbers, suspected=True)
