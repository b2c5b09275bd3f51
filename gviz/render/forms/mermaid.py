"""A moment as a Mermaid flowchart, which many sites render from text."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from gviz.render.boxes.box_content import Box
from gviz.render.boxes.edge_content import Edge
from gviz.render.graphviz.direction_and_spacing import flow
from gviz.render.legend import painted
from gviz.render.picture_request import ExportOptions, requested_scene
from gviz.render.scene import Scene
from gviz.render.theme import Theme
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import shown

FRAMES = {"op": "[{}]", "root": "[[{}]]", "saved": ">{}]", "module": "[/{}/]", "error": "{{{{{}}}}}"}
"""The brackets that give a box its shape; all other roles are round."""


def render(timeline: Timeline, n: int, options: ExportOptions) -> str:
    """Return moment `n` as a flowchart."""
    drawn = requested_scene(timeline, n, options, collapses_data=True)
    direction = flow(drawn.boxes, drawn.levels, options.direction, drawn.flow, options.colours.form.direction)
    return "\n".join([f"flowchart {direction}", *_lines(drawn, options.colours)]) + "\n"


def _lines(drawn: Scene, theme: Theme) -> Iterator[str]:
    yield f"  %% {_comment(drawn.title)}  {_comment(drawn.caption)}"
    names = {box.key: f"b{number}" for number, box in enumerate(drawn.boxes)}
    for box in drawn.boxes:
        yield f"  {names[box.key]}{_frame(box)}:::{painted(box)}"
    gradients = []
    shown_edges = [edge for edge in drawn.edges if edge.kind != "gradient" or "flowed" in edge.states]
    for number, edge in enumerate(shown_edges):
        if edge.kind == "gradient":
            gradients.append(str(number))
        start, end = (edge.target, edge.source) if edge.is_write else (edge.source, edge.target)
        yield f"  {names[start]} {_arrow(edge)} {names[end]}"
    for name in sorted({painted(box) for box in drawn.boxes}):
        paint = theme.paints[name]
        yield f"  classDef {name} fill:{paint.fill},stroke:{paint.border},color:{theme.texts['title']}"
    if gradients:
        yield f"  linkStyle {','.join(gradients)} stroke:{theme.texts['grad']},stroke-width:2px"


def _frame(box: Box) -> str:
    role = "error" if "error" in box.states else box.role
    rows = (f"{row.label} {row.text}".strip() for row in box.rows if row.text)
    lines = [f"{box.title} ({box.status})" if box.status else box.title, *rows]
    return FRAMES.get(role, "({})").format(f'"{"<br/>".join(map(_text, lines))}"')


def _arrow(edge: Edge) -> str:
    label = f'|"{_text(edge.text)}"|' if edge.text else ""
    if edge.kind == "gradient":
        return f"==>{label}"
    if edge.kind in ("view", "saved") or "pending" in edge.states:
        return f"-.->{label}"
    return f"-->{label}"


def _text(text: str) -> str:
    """Return text for use within quotes, with characters that Mermaid would interpret as numeric entities."""
    return "".join(f"#{ord(c)};" if c in '"#&<>`\\|{}[]();*_~' else c for c in shown(text))


def _comment(text: str) -> str:
    return escape(shown(text)).replace("{", "(").replace("}", ")")
