"""A scene as plain text: a drawing with characters if it is small, a table of boxes, and a list of lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rich.cells import cell_len

from gviz.render.boxes.box_content import Box
from gviz.render.boxes.edge_content import Edge
from gviz.render.boxes.graph_structure import Structure
from gviz.render.cells import Canvas
from gviz.render.cells.viewport import laid_out, look
from gviz.render.picture_request import ExportOptions, check_moment, drawing, moment_structure
from gviz.render.scene import Scene, parts, scene
from gviz.trace.timeline import Moment, Timeline

DRAWN_BOXES = 100

HEADS = ("node", "value", "gradient", "state", "remark")


def render(timeline: Timeline, n: int, options: ExportOptions) -> str:
    """Return moment `n` as text. Tensors have one line each; contributions that are added have lines of their own."""
    check_moment(timeline, n)
    words, moment = drawing(timeline, n, options), timeline.at(n)
    shape = moment_structure(timeline, n, replace(words, tensors="line"))
    drawn = scene(shape, timeline, moment, other=options.other)
    if options.change:
        drawn = replace(drawn, caption=f"{drawn.caption}, what if {options.change}")
    _, edges = parts(replace(shape, places=(), options=words), timeline, moment)
    return text(replace(drawn, edges=edges), characters(shape, drawn, moment))


def text(seen: Scene, figure: str = "") -> str:
    """Return the whole scene as a table of boxes and a list of edges, below its drawing if there is one."""
    boxes = [box for box in seen.boxes if box.role != "chip"]
    head = [f"{seen.title}  {seen.caption}", "", *([figure, ""] if figure else [])]
    edges = list(_edges(seen, {box.key: box.title for box in seen.boxes}))
    return "\n".join([*head, *_table([HEADS, *map(_cells, boxes)]), *(["", "edges", *edges] if edges else [])]) + "\n"


def characters(shape: Structure, seen: Scene, moment: Moment) -> str:
    """Return the graph drawn with characters, as in the terminal; empty if the graph is too large to follow."""
    if len(seen.boxes) > DRAWN_BOXES:
        return ""
    return Canvas(laid_out(shape), look(seen, moment)).text()


def _cells(box: Box) -> tuple[str, ...]:
    """Return the text of a box, sorted into the columns of the table."""
    values = [row.text for row in box.rows if row.label.startswith("value")]
    grads = [_fact(row.label, row.text) for row in box.rows if row.label and not row.label.startswith("value")]
    remarks = [row.text for row in box.rows if not row.label]
    return box.title, "; ".join(values), ", ".join(grads), box.status, ", ".join(remarks)


def _fact(label: str, text: str) -> str:
    return text if label == "grad" else f"{label} {text}"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        padded = (text + " " * (width - cell_len(text)) for text, width in zip(row, widths, strict=True))
        yield "  ".join(padded).rstrip()


def _edges(seen: Scene, titles: dict[str, str]) -> Iterable[str]:
    """Yield each line once, in the direction of the data, with the gradient that has flowed back over it."""
    back = {(edge.target, edge.source, edge.slot): edge.text for edge in seen.edges if edge.kind == "gradient"}
    for edge in seen.edges:
        if edge.kind != "gradient":
            yield _edge(edge, titles, back.pop((edge.source, edge.target, edge.slot), ""))
    for (maker, user, _), label in back.items():
        if label:
            yield f"  {titles[user]} -> {titles[maker]}: gradient {label}, another way than the data"


def _edge(edge: Edge, titles: dict[str, str], gradient: str) -> str:
    words = [edge.label, f"gradient {gradient}" if gradient else "", "no gradient" if "cut" in edge.states else ""]
    text = ", ".join(filter(None, words))
    arrow = "<-" if edge.is_write else "->"
    return f"  {titles[edge.source]} {arrow} {titles[edge.target]}" + (f": {text}" if text else "")
