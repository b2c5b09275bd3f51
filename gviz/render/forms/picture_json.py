"""A moment as JSON for other programs. ``docs/picture-json.md`` describes the fields."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import msgspec

from gviz.render.boxes.box_content import Box
from gviz.render.boxes.edge_content import Edge
from gviz.render.picture_request import ExportOptions, requested_scene
from gviz.trace.graph_state import NodeState, OutputState
from gviz.trace.node_gradients import in_its_iteration
from gviz.trace.timeline import Moment, Timeline
from gviz.values.value import Value
from gviz.values.value_text import norm

SCHEMA = 1
"""Increases when a field is removed or changes its meaning. New fields may appear at any time."""


def render(timeline: Timeline, n: int, options: ExportOptions) -> str:
    """Return moment `n` as JSON: boxes with their text and their exact numbers, and lines."""
    drawn, moment = requested_scene(timeline, n, options), timeline.at(n)
    nodes = {box.key: box.node for box in drawn.boxes if box.role not in ("chip", "saved", "module", "failed")}
    here = (in_its_iteration(timeline, n, state) for state in moment.states(list(nodes.values())))
    states = dict(zip(nodes, here, strict=True))
    document = {
        "schema": SCHEMA,
        "title": drawn.title,
        "caption": drawn.caption,
        "event": n,
        "events": len(timeline),
        "failed": _failed(moment),
        "nodes": [_box(box) | {"outputs": _outputs(states.get(box.key))} for box in drawn.boxes],
        "edges": [_edge(edge) for edge in drawn.edges],
    }
    return json.dumps(document, ensure_ascii=True, indent=1, allow_nan=False) + "\n"


def _box(box: Box) -> dict[str, Any]:
    rows = [{"label": row.label, "text": row.text, "style": row.style} for row in box.rows]
    return {
        "id": box.key, "node": box.node, "role": box.role, "states": list(box.states), "title": box.title,
        "operation": box.op, "status": box.status, "rows": rows,
    }  # fmt: skip


def _edge(edge: Edge) -> dict[str, Any]:
    return {**asdict(edge), "states": list(edge.states)}


def _outputs(state: NodeState | None) -> list[dict[str, Any]]:
    return [_output(output) for output in state.outputs] if state is not None else []


def _output(output: OutputState) -> dict[str, Any]:
    return {
        "value": _value(output.value),
        "version": output.version,
        "incoming": _value(output.incoming),
        "arrived": len(output.parts),
        "expected": output.expected,
        "grad": _value(output.grad),
    }


def _value(value: Value | None) -> dict[str, Any] | None:
    """Return dtype, shape, and elements or statistics. Numbers that are not finite are text."""
    if value is None:
        return None
    array, stats = value.array(), value.statistics()
    return {
        "dtype": value.dtype,
        "shape": list(value.shape),
        "elements": _plain(array.tolist()) if array is not None else None,
        "statistics": _plain(msgspec.structs.asdict(stats)) if stats is not None else None,
        "norm": _plain(norm(value)),
    }


def _plain(thing: Any) -> Any:
    """Return numbers as JSON values: ``nan``, ``inf`` and complex numbers become text."""
    if isinstance(thing, list):
        return [_plain(part) for part in thing]
    if isinstance(thing, dict):
        return {name: _plain(part) for name, part in thing.items()}
    if isinstance(thing, complex) or (isinstance(thing, float) and (thing != thing or abs(thing) == float("inf"))):
        return str(thing)
    return thing


def _failed(moment: Moment) -> dict[str, Any] | None:
    failed = moment.failed
    return {"error": failed.error, "message": failed.message, "node": failed.node} if failed is not None else None
