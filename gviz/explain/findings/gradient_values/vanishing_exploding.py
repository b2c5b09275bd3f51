"""A gradient that vanishes or explodes on its path from the loss to a leaf: its factors, and the first strong one.

Idea. Follow the largest contribution to each node from the leaf back to the root. The norms (L2) of the gradients along
this path are a waterfall; the ratio of two neighbours is the factor of one operation. A path that loses or gains more
than eight orders of magnitude is reported, with the operations of the strongest factors.

Limits. Factors inside the loss itself do not count: they shrink and grow as the loss does. A gradient that cancels in
the last sum (the bias before a normalization) is small for another reason and is left out. So is that of a leaf in
units of its own, such as a capacitance of 3e-9 farad: its gradient is large because its numbers are small. Where the
factors of a path only change the unit, a large gradient does not count either, nor a small one that trains its leaf.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from math import prod

from gviz.events import BackwardStarted, HookRan, OptimizerStepped
from gviz.explain.display_names import label, label_at, op_title, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.gradient_values.grad_sum_over_passes import grad_sum
from gviz.explain.node_question import Question
from gviz.explain.operation_sets import OF_LOSSES, SOFTMAXES, SQUASHING
from gviz.explain.parameter_updates import change_in_statistics, options_of
from gviz.explain.recording_survey import Survey
from gviz.explain.source_frames import at_text, innermost
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.number_text import counted, number
from gviz.values.value_text import norm

VANISHED, EXPLODED = 1e-8, 1e8
"""The limits for the factor between two nodes of a path, beyond which no number format is precise enough."""

FEWEST, SQUASHED, DIED = 4, 1e-2, 1e-3
"""The fewest squashing functions in a row, the most that they let through, and the most that the whole row does."""

CANCELLED = 1e-4
"""A last factor below this is the rounding error of a sum that is zero."""

FINE, COARSE = 1e-4, 1e4
"""The numbers of a leaf (RMS) below and above which they are in a unit of their own."""

MOST_WALKED = 2000
"""The most nodes that an answer about one gradient examines."""

_STRONG = 0.5
_MOST_LINES = 3


@dataclass(frozen=True, slots=True)
class Waypoint:
    """One node on the way back: `size` is the norm (L2) of its outgoing gradient, by event `seq`.

    That is the gradient that arrives at the next node of the path, in whose words a finding reports it.
    """

    node: int
    size: float
    seq: int


def find_vanishing(survey: Survey) -> Iterator[Finding]:
    """Yield the leaf with the smallest gradient of a pass, if nearly all of it was lost on the path."""
    paths = _paths(survey, smallest=True)
    findings = [one for path in paths if (one := vanishing(survey.timeline, path)) is not None]
    yield from sorted(findings, key=lambda one: one.suspected)[:1]


def find_exploding(survey: Survey) -> Iterator[Finding]:
    """Yield the leaf with the largest gradient of a pass, if it grew on the path."""
    paths = _paths(survey, smallest=False)
    yield from [one for path in paths if (one := _exploding(survey.timeline, path)) is not None][:1]


def vanishing_or_exploding(question: Question) -> Finding | None:
    """Return the finding about a leaf's gradient that has vanished or exploded on its path."""
    timeline, output = question.timeline, question.output
    size = norm(output.incoming) if output.incoming is not None and output.grad is not None else None
    if not size:
        return None
    if output.parts:
        pass_nr, last = timeline.at(output.parts[-1].seq).pass_nr, question.moment.n
        size = _size_before_hooks(timeline, question.node, pass_nr, last) or size
    path = path_to(timeline, question.node, question.moment.n, size, MOST_WALKED)
    finding = vanishing(timeline, path) or _exploding(timeline, path)
    as_sum = grad_sum(question) if finding is not None else None
    return (
        replace(finding, parts=(*finding.parts, *as_sum.parts))
        if finding is not None and as_sum is not None
        else finding
    )


def _paths(survey: Survey, *, smallest: bool) -> Iterator[list[Waypoint]]:
    """Yield the path to the leaf with the smallest (or largest) nonzero gradient, of the first and the last pass."""
    sizes: defaultdict[int, dict[int, tuple[float, int]]] = defaultdict(dict)
    passes = [event.pass_nr for _, event in survey.passes]
    hooked = {(ran.pass_nr, ran.node) for _, ran in survey.timeline.select((HookRan,)) if ran.value is not None}
    for seq, event in survey.accumulated:
        if event.pass_nr in (passes[:1] + passes[-1:]) and (size := norm(event.part)):
            if (event.pass_nr, event.node) in hooked:
                size = _size_before_hooks(survey.timeline, event.node, event.pass_nr, seq) or size
            sizes[event.pass_nr][event.node] = size, seq
    for leaves in sizes.values():
        by_size = sorted(leaves, key=lambda leaf: leaves[leaf][0], reverse=not smallest)
        paths = (path_to(survey.timeline, node, seq, size) for node in by_size for size, seq in [leaves[node]])
        useful = (path for path in paths if not is_cancelled(path) and not _is_summed_away(survey.timeline, path))
        yield from islice(useful, 1)


def _size_before_hooks(timeline: Timeline, node: int, pass_nr: int, seq: int) -> float | None:
    """Return the norm of a leaf's gradient as it arrived, before its own hooks changed it; None without such hooks."""
    ran = (one for one in timeline.events_of(node) if one <= seq)
    hooks = ((one, event) for one in ran if isinstance(event := timeline.event(one), HookRan))
    first = next((one for one, event in hooks if event.pass_nr == pass_nr and event.when in ("tensor", "pre")), 0)
    state = timeline.at(first - 1).state(node) if first else None
    before = state.outputs[0].incoming if state is not None and state.outputs else None
    return norm(before) if before is not None else None


def is_cancelled(path: list[Waypoint]) -> bool:
    """Return whether the last operation cancelled nearly all of it: a bias before a normalization has no effect."""
    return len(path) > 2 and path[-2].size < CANCELLED * path[-3].size


def _is_added_up(timeline: Timeline, path: list[Waypoint]) -> bool:
    """Return whether nearly all of a gradient cancels where it is added up for one number, as of a fit that fits."""
    sizes = [_size(timeline, step) for step in path]
    return any(
        sizes[i + 1] == 1 < sizes[i] and path[i].size < CANCELLED * path[i - 1].size for i in range(1, len(path) - 1)
    )


def _size(timeline: Timeline, step: Waypoint) -> int:
    """Return the number of elements of a node's first output; 0 if it is unknown."""
    value = timeline.info(step.node).created.first_value
    return value.size if value is not None else 0


_ADDING = ("addmm", "add", "linear", "convolution", "baddbmm")


def _is_summed_away(timeline: Timeline, path: list[Waypoint]) -> bool:
    """Return whether a bias gets nothing because its gradient, a sum over the batch, cancels: a shift has no effect.

    An invariance of the loss does that, such as ``z - z.mean(0)``. The weight of the layer gets its gradient.
    """
    if len(path) < 2 or timeline.info(path[-2].node).op.base_name not in _ADDING:
        return False
    value = timeline.info(path[-1].node).created.first_value
    return value is not None and len(value.shape) <= 1 and path[-1].size < CANCELLED * path[-2].size


def path_to(timeline: Timeline, node: int, seq: int, size: float, most: int = sys.maxsize) -> list[Waypoint]:
    """Return the path from the root to the node, over the largest contribution to each.

    `size` is the norm of the node's gradient. A longer path keeps only its last `most` nodes.
    """
    path = [Waypoint(node, size, seq)]
    moment, seen = timeline.at(seq), {node}
    while len(path) < most:
        state = moment.state(node)
        parts = [part for output in state.outputs for part in output.parts if part.source] if state is not None else []
        largest = max(parts, key=lambda part: norm(part.value) or 0.0, default=None)
        if largest is None or largest.source in seen:
            break
        node = largest.source
        seen.add(node)
        path.append(Waypoint(node, norm(largest.value) or 0.0, largest.seq))
    return path[::-1]


def vanishing(timeline: Timeline, path: list[Waypoint]) -> Finding | None:
    """Return the finding about a path that lost nearly all of its gradient.

    It is suspected if a row of squashing functions sent too little. A gradient that only lost what it had gained on the
    way, as next to a norm of nearly zero, has not vanished.
    """
    path = path[_length_of_loss(timeline, path) :]
    largest = path.index(max(path, key=lambda step: step.size))
    lost, least = path[largest:], min(step.size for step in path[: largest + 1])
    if is_cancelled(path) or _is_added_up(timeline, path):
        return None
    if lost[-1].size < VANISHED * lost[0].size and lost[-1].size < DIED * least:
        if _in_its_unit(timeline, lost[-1]) >= VANISHED * lost[0].size:
            return None
        is_of_units = lost[-1].size * _change_of_units(timeline, lost) >= VANISHED * lost[0].size
        if is_of_units and _is_trained(timeline, lost[-1].node):
            return None
        return _finding(timeline, lost, "vanishing")
    lost = _squashed(timeline, path)
    return replace(_finding(timeline, lost, "vanishing"), suspected=True) if lost else None


def _length_of_loss(timeline: Timeline, path: list[Waypoint]) -> int:
    """Return how many steps of a path are inside the loss itself, without the last of them."""
    ops = [timeline.info(step.node).op.base_name for step in path]
    return max(next((at for at, op in enumerate(ops) if op not in OF_LOSSES), len(path) - 1) - 1, 0)


def _squashed(timeline: Timeline, path: list[Waypoint]) -> list[Waypoint]:
    """Return the path if its squashing functions made the gradient small; else empty."""
    at = [i for i, step in enumerate(path) if i and timeline.info(step.node).op.base_name in SQUASHING]
    if len(at) < FEWEST:
        return []
    let_through = prod(path[i].size / path[i - 1].size for i in at if path[i - 1].size)
    before, after = path[at[0] - 1], path[at[-1]]
    return path if let_through < SQUASHED and after.size < DIED * before.size else []


def _exploding(timeline: Timeline, path: list[Waypoint]) -> Finding | None:
    path = path[_length_of_loss(timeline, path) :]
    grown = path[path.index(min(path, key=lambda step: step.size)) :]
    if min(grown[-1].size, _in_its_unit(timeline, grown[-1])) <= EXPLODED * grown[0].size:
        return None
    if grown[-1].size * _change_of_units(timeline, grown) <= EXPLODED * grown[0].size:
        return None
    return _finding(timeline, grown, "exploding")


# Units. ``mass = logM.exp()`` of 2e41 kg gets a gradient of 1e-30 from an error of some m/s, and `logM` one of 1e11. In
# relative terms, of a change of each by a part of itself, nothing has grown. An operation that only changes the unit
# (a factor that is no parameter, an exponential, a loss) counts by its relative factor. A layer does not: where weights
# are too large, values grow as the gradient does.
#
# A gradient that is small for its unit is still a mistake if the step does not fit it: Adam adds its eps of 1e-8 to a
# gradient of 1e-18, and divides by that. So it must have trained the leaf.

_OF_UNITS = frozenset({"exp", "exp2", "expm1", "pow", "square", "log", "log2", "log10", "mul", "div", "prod"})


def _change_of_units(timeline: Timeline, path: list[Waypoint]) -> float:
    """Return the ratio of the values behind and before the operations of a path that change the unit.

    A line that a loop repeats changes no unit: ``h = 3 * h`` is a layer without parameters.
    """
    change, lines = 1.0, Counter(timeline.info(step.node).created.stack for step in path)
    for step, after in pairwise(path[1:]):
        info = timeline.info(step.node)
        op = info.op.base_name
        if op not in OF_LOSSES and not (op in _OF_UNITS and _is_of_one(timeline, step.node)):
            continue
        if lines[info.created.stack] > _MOST_OF_LINE:
            continue
        result, operand = _rms(timeline, step), _rms(timeline, after)
        change *= operand / result if result and operand else 1.0
    return change


_MOST_OF_LINE = 3
"""The most operations of one expression: more on a path come from a loop."""

_MOVED = 1e-3
"""A leaf whose numbers have changed by less than this part of their size has not been trained."""


def _is_trained(timeline: Timeline, leaf: int) -> bool:
    """Return whether the numbers of a leaf are others at the end than before the first pass, by their statistics.

    A weight decay that only shrinks them does not count.
    """
    started = next((seq for seq, _ in timeline.select((BackwardStarted,))), 0)
    moments = max(timeline.info(leaf).born, started), len(timeline)
    first, last = (timeline.memory_value(leaf, 0, n) for n in moments)
    before, after = (value.statistics() if value is not None else None for value in (first, last))
    if before is None or after is None or after.nan or after.inf:
        return False
    steps = timeline.select((OptimizerStepped,))
    step = next((seq for seq, event in steps if leaf in event.parameters), 0)
    is_decayed = bool(step and before.rms and options_of(timeline, leaf, step).get("weight_decay"))
    shrunk = min(after.rms / before.rms, 1.0) if is_decayed else 1.0
    return change_in_statistics(before, after, shrunk) > _MOVED * (before.rms or 1.0)


def _is_of_one(timeline: Timeline, node: int) -> bool:
    """Return whether only one input of an operation requires a gradient, such as that of a product with a number."""
    inputs = [timeline.info(source).created for source, _ in timeline.info(node).created.inputs if source]
    return sum(created.requires_grad for created in inputs) == 1


def _rms(timeline: Timeline, step: Waypoint) -> float:
    """Return the size of the numbers of a node, at the moment of its gradient; 0 if it is unknown."""
    state = timeline.at(step.seq).state(step.node)
    value = state.outputs[0].value if state is not None and state.outputs else None
    stats = value.statistics() if value is not None else None
    return stats.rms if stats is not None else 0.0


def _in_its_unit(timeline: Timeline, leaf: Waypoint) -> float:
    """Return the norm of a leaf's gradient, if its numbers are far from 1, for a relative change of them."""
    rms = _rms(timeline, leaf)
    return leaf.size * rms if 0 < rms < FINE or rms > COARSE else leaf.size


def _finding(timeline: Timeline, path: list[Waypoint], kind: str) -> Finding:
    first, last = path[0], path[-1]
    factors = [(after, after.size / before.size) for before, after in pairwise(path[:-1]) if before.size]
    by_op = _by_op(timeline, factors)
    strongest = sorted(by_op, key=lambda rows: prod(factor for _, factor in rows), reverse=kind == "exploding")
    strong = [rows for rows in strongest[:_MOST_LINES] if _is_strong(rows, kind)]
    step = _first_strong(strongest[0] if strongest else factors, kind)
    info = timeline.info(step.node if step is not None else last.node)
    start, end = (label(timeline, step.node) for step in (path[len(path) > 2], last))
    arrives = f"|g| {number(first.size)} arrives at {start}, and {number(last.size)} at {end}"
    after = counted(max(len(path) - 2, 1), "operation")
    what = "dies out" if kind == "vanishing" else "blows up"
    text = titled(f"the gradient {what} on its way to {{}}", label(timeline, last.node))
    numbers = (Number("at the start", first.size, first.seq), Number("at the end", last.size, last.seq))
    named = f"the first strong factor is at {label_at(timeline, info.node)}"
    parts = (
        Finding("size", f"{arrives}, {after} later", last.seq, last.node),
        Finding("first", named, step.seq if step else last.seq, info.node),
        *[_line(timeline, rows) for rows in strong],
    )
    fix = _fix(kind, [timeline.info(rows[0][0].node) for rows in strong])
    return Finding(kind, text, last.seq, info.node, parts, fix, innermost(info), numbers)


def _fix(kind: str, strong: list[NodeInfo]) -> str:
    if kind == "exploding":
        return "smaller weights at the start, normalization, fewer steps, or clip_grad_norm_ before the step"
    ops = [info.op.base_name for info in strong]
    if not SOFTMAXES.isdisjoint(ops[:1]):
        return "smaller scores going into it, or the scores themselves for a loss that takes them (cross_entropy)"
    squashing = next((op for op in ops if op in SQUASHING), "")
    replacement = f"relu instead of {squashing}, " if squashing else ""
    return f"{replacement}residual connections, normalization, or larger weights at the start"


def _by_op(timeline: Timeline, factors: list[tuple[Waypoint, float]]) -> list[list[tuple[Waypoint, float]]]:
    rows: defaultdict[int, list[tuple[Waypoint, float]]] = defaultdict(list)
    for step, factor in factors:
        rows[timeline.info(step.node).created.op].append((step, factor))
    return list(rows.values())


def _line(timeline: Timeline, rows: list[tuple[Waypoint, float]]) -> Finding:
    step = rows[0][0]
    info = timeline.info(step.node)
    total = prod(factor for _, factor in rows)
    often = f", {len(rows)} times" if len(rows) > 1 else ""
    places = {timeline.info(row.node).created.stack for row, _ in rows}
    first = " first" if len(places) > 1 else ""
    text = f"x{number(total, 3)} by {op_title(info)}{often},{first}{at_text(info.frames)}"
    numbers = (Number("factor", total, step.seq),)
    return Finding("factor", text, step.seq, step.node, at=innermost(info), numbers=numbers)


def _is_strong(rows: list[tuple[Waypoint, float]], kind: str) -> bool:
    total = prod(factor for _, factor in rows)
    return total < _STRONG if kind == "vanishing" else total > 1 / _STRONG


def _first_strong(rows: list[tuple[Waypoint, float]], kind: str) -> Waypoint | None:
    strong = (row[0] for row in rows if _is_strong([row], kind))
    return next(strong, rows[0][0] if rows else None)
