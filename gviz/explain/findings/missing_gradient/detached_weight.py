"""A weight that one line uses through .data or detach(), while another use of it brings a gradient.

Idea. A parameter that is used twice gets the sum of two contributions. If one use takes ``weight.data``, its
contribution is missing: the parameter has a gradient and learns, but the gradient is wrong. Only uses as a weight
count: a product with a tracked tensor that leads to the same loss as the other use.

Example. ``F.linear(z, layer.weight.data.t(), bias)`` in a decoder whose encoder calls ``layer(x)``.

Limits. Statistics, norms, power iterations and averages of a model are no products with a tracked tensor. An estimate
that passes the gradient straight through adds a difference, and multiplies by none. Copies of all parameters of a
model serve functional calls. ``detach()`` may be intended, as for prototypes that only their own loss moves: a note.
"""

from __future__ import annotations

from collections.abc import Iterator

from gviz.events import RequiresGradSet
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import LAYER_PRODUCTS, SAME_NUMBERS
from gviz.explain.program_text import takes_all_parameters
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_frames import is_of_library
from gviz.explain.tracking import ancestors, mend
from gviz.values.plain_text import file_line
from gviz.values.value_text import grad

_SCALING = SAME_NUMBERS | {"mul", "div", "neg", "embedding", "index_select"}
"""Operations between a weight and its product: its numbers, their rows, or multiples of them."""

_MOST_BETWEEN = 50
_MOST_TRIES = 3
_ROOM = 40
"""Characters for a gradient in the finding."""


def detached_weights(survey: Survey) -> Iterator[Finding | None]:
    """Yield the uses of parameters through .data or detach() whose contribution to a gradient is missing."""
    roots = {
        event.pass_nr: (seq, [node for node, _ in event.roots if node])
        for seq, event in survey.passes
        if not event.inputs
    }
    tries: dict[tuple[int, int], int] = {}
    for record in survey.ops("data", "detach"):
        source = next(survey.sources(record), None)
        parameter = survey.unwrapped(source) if source is not None else None
        if parameter is None or parameter.created.kind != "parameter" or not parameter.created.requires_grad:
            continue
        key = record.created.stack, parameter.node
        if tries.get(key, 0) >= _MOST_TRIES or not _is_of_program(survey, record):
            continue
        yield None
        product = _product(survey, record)
        if product is None:
            continue
        tries[key] = tries.get(key, 0) + 1
        found = next((nr for nr, (seq, _) in roots.items() if seq > product.seq), None)
        if found is None or product.node not in {*roots[found][1], *ancestors(survey.timeline, *roots[found][1])}:
            continue
        finding = _finding(survey, record, parameter, product, found)
        if finding is not None:
            tries[key] = _MOST_TRIES
            yield finding


def _is_of_program(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a line of the program itself takes this one weight, and not all parameters of a model."""
    frames = survey.timeline.stack(record.created.stack)
    of_all = (takes_all_parameters(survey.timeline, frame) for frame in frames)
    return bool(frames) and not is_of_library(frames[0].path) and not any(of_all)


def _product(survey: Survey, detached: NodeRecord) -> NodeRecord | None:
    """Return the first tracked product of a detached weight, or a part or multiple of it, and a tracked tensor."""
    waiting, seen = [detached], {detached.node}
    while waiting and len(seen) < _MOST_BETWEEN:
        record = waiting.pop()
        if any(
            isinstance(survey.timeline.event(seq), RequiresGradSet) for seq in survey.timeline.events_of(record.node)
        ):
            return None  # a new leaf, with a gradient of its own
        for user in survey.timeline.nodes.users(record.node):
            one = survey.nodes.get(user)
            if one is None or user in seen:
                continue
            seen.add(user)
            if one.created.requires_grad and one.op in LAYER_PRODUCTS:
                return one
            if not one.created.requires_grad and one.op in _SCALING:
                waiting.append(one)
    return None


def _finding(
    survey: Survey, record: NodeRecord, parameter: NodeRecord, product: NodeRecord, pass_nr: int
) -> Finding | None:
    """Return the finding if another use of the parameter in the same forward has brought a gradient in a pass."""
    timeline, node = survey.timeline, parameter.node
    arrived = next(((seq, one) for seq, one in survey.accumulated if (one.pass_nr, one.node) == (pass_nr, node)), None)
    if arrived is None:
        return None
    seq, event = arrived
    users = [survey.nodes[user] for user in timeline.nodes.users(node) if user in survey.nodes]
    before = max((start for start, one in survey.passes if one.pass_nr < pass_nr), default=0)
    tracked = [one for one in users if before < one.seq < seq and one.created.requires_grad]
    if not tracked:
        return None
    how = ".data" if record.op == "data" else "detach()"
    text = titled(f"this use of {{}} through {how} brings no gradient", label(timeline, node))
    other = survey.at(tracked[0])
    place = f" at {file_line(other.path, other.line)}" if other is not None else ""
    gets = f"its gradient {grad(event.part, _ROOM)} is of the use{place} only"
    gets = f"{gets}: the part of {label_at(timeline, product.node)} is missing"
    part = Finding("used", gets, seq, node, at=other)
    name = timeline.info(node).name or "the weight"
    fix = f"use {name} itself here, if this use is to train it, too"
    edit = mend(timeline, timeline.info(record.node)).edit
    is_doubtful = record.op == "detach"
    return Finding("detached-weight", text, record.seq, node, (part,), fix, survey.at(record), (), is_doubtful, edit)
