"""A scene as DOT, the language of Graphviz. The text is the same on all platforms, so golden files contain it.

Expanded modules are nested frames around their boxes, which Graphviz calls clusters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from rich.cells import cell_len

from gviz.render.boxes.box_content import Box
from gviz.render.boxes.edge_content import Edge
from gviz.render.graphviz.box_label import CHARACTER, SMALL, SPLIT, box_label, card, coloured, inner, table
from gviz.render.graphviz.coordinates import INCH, Placing
from gviz.render.graphviz.digraph import Digraph
from gviz.render.graphviz.direction_and_spacing import BLANK, ends, flow, is_direct, repeated, skipping, spacing
from gviz.render.graphviz.frame_titles import title_width
from gviz.render.graphviz.legend_table import legend_rows
from gviz.render.graphviz.parallel_lines import LANE
from gviz.render.graphviz.spine import STRAIGHT, Spine, spine
from gviz.render.legend import legend, painted
from gviz.render.scene import Scene
from gviz.render.theme import LIGHT, Direction, Theme
from gviz.values.plain_text import shown


@dataclass(frozen=True, slots=True)
class Manner:
    """How a scene is written: its theme and the direction of the graph; every id begins with `prefix`.

    With a `placing`, it defines all positions, and lines that are not in it are not drawn.
    """

    theme: Theme = LIGHT
    prefix: str = "gviz"
    direction: Direction = "auto"
    placing: Placing | None = None


USUAL = Manner()
HOOKED = "normalodot"
"""The end of a line whose gradient a hook has changed: a circle behind the arrow."""


def dot(scene: Scene, manner: Manner = USUAL) -> str:
    """Return the DOT text of a scene."""
    return str(digraph(scene, manner).source)


def digraph(scene: Scene, manner: Manner = USUAL) -> Digraph:
    """Return the scene as a graph of the ``graphviz`` package."""
    form = manner.theme.form
    graph = Digraph(
        graph_attr=_graph_attributes(scene, manner) | _label(scene, manner),
        node_attr={
            "fontname": form.font,
            "fontsize": str(form.size),
            "margin": "0.09,0.06",
            "height": "0",
            "width": "0",
        },
        edge_attr={"fontname": form.font, "fontsize": str(SMALL), "arrowsize": "0.7"},
    )
    straight = spine(scene)
    graph.attr(**straight.graph)
    for box in scene.boxes:
        _add_box(graph, box, manner, straight.box(box.key), _HIDDEN if _is_hidden(scene, box) else {})
    add_frames(graph, scene, manner)
    _add_lines(graph, scene, manner, straight)
    return graph


_HIDDEN = {"style": "invis"}


def _is_hidden(scene: Scene, box: Box) -> bool:
    return scene.hides_pending and "pending" in box.states


def _add_box(graph: Digraph, box: Box, manner: Manner, aligned: dict[str, str], hidden: dict[str, str]) -> None:
    theme, prefix, placing = manner.theme, manner.prefix, manner.placing
    common = {"id": f"{prefix}-{box.key}", "class": _classes(box), "tooltip": _tooltip(box.tooltip)}
    place = placing.boxes[box.key] if placing else aligned
    if theme.form.card == "box":
        own = _within_border(place) if placing and box.role == "root" else place
        graph.node(box.key, box_label(box, theme), **(common | _box_attributes(box, theme) | own | hidden))
        return
    label, symbol = card(box, theme)
    graph.node(box.key, label, **(common | {"shape": "plain"} | place | hidden))
    if symbol:
        head = f"{box.key}{SPLIT}"
        circle = common | {"id": f"{prefix}-{head}", "class": f"{common['class']} symbol"}
        place = placing.boxes.get(head, {}) if placing else {}
        graph.node(head, symbol, **(circle | _circle(box, theme) | place | hidden))
        route = placing.lines.get(f"{box.key}-line", {}) if placing else {}
        line = {"class": "edge-inner", "id": f"{prefix}-{box.key}-line", "color": theme.edge, "weight": STRAIGHT}
        if theme.form.card == "wire":
            line |= {"headport": "w", "arrowhead": "none"}
        graph.edge(head, box.key, **(line | route | hidden))


SECOND_BORDER = 4
"""Points by which Graphviz draws the second border of a box outside of its first one."""


def _within_border(place: dict[str, str]) -> dict[str, str]:
    """Return the place of a box with two borders: Graphviz writes its size with the second, and reads it without."""
    sizes = {side: float(place[side]) - 2 * SECOND_BORDER / INCH for side in ("width", "height")}
    return place | {side: f"{inches:.5g}" for side, inches in sizes.items()}


def _circle(box: Box, theme: Theme) -> dict[str, str]:
    paint = theme.paints[painted(box)]
    style = "filled,dashed" if "pending" in box.states else "filled"
    pen = "3" if "current" in box.states else "1"
    return {
        "shape": "ellipse", "style": style, "fillcolor": paint.fill, "color": paint.border, "penwidth": pen,
        "width": "0.45", "height": "0.45", "margin": "0.03",
    }  # fmt: skip


def _add_lines(graph: Digraph, scene: Scene, manner: Manner, straight: Spine) -> None:
    theme, placing = manner.theme, manner.placing
    boxes = theme.form.card == "box"
    labelled = boxes and scene.labels_lines
    ops = {box.key for box in scene.boxes if box.role in ("op", "root")}
    duplicates = repeated(scene) if labelled else frozenset()
    lanes = skipping(scene) if boxes and not (labelled or placing) else frozenset()
    for number, edge in enumerate(scene.edges):
        route = placing.lines.get(f"e{number}") if placing else {}
        if route is None or (edge.kind == "gradient" and not boxes):
            continue
        attributes = (
            _edge_attributes(edge, theme)
            | {"id": f"{manner.prefix}-e{number}", "weight": straight.weight(number)}
            | route
        )
        if scene.hides_pending and "pending" in edge.states:
            attributes |= _HIDDEN
        tail, head = ends(edge)
        head += SPLIT if not boxes and head in ops else ""
        if theme.form.card == "wire":
            attributes |= {"tailport": "e"}
        is_labelled = labelled or (boxes and not is_direct(edge))  # else it would seem to be a direct use
        label = BLANK if number in duplicates else _edge_label(edge, theme) if is_labelled else ""
        if not label and number in lanes:
            label = LANE
        graph.edge(tail, head, label, **attributes)


def _graph_attributes(scene: Scene, manner: Manner) -> dict[str, str]:
    theme = manner.theme
    return {
        "id": manner.prefix,
        "bgcolor": theme.canvas,
        "rankdir": flow(scene.boxes, scene.levels, manner.direction, scene.flow, theme.form.direction),
        "fontname": theme.form.font,
        "fontsize": str(theme.form.size),
        "labelloc": "b",
        "labeljust": "l",
        "pad": "0.2",
        **spacing(scene),
    }


def _label(scene: Scene, manner: Manner) -> dict[str, str]:
    """Return the text below the boxes: the title, the line of the program, and the legend. It never moves the boxes."""
    if not manner.theme.form.caption:
        size = manner.theme.form.size if scene.columns > 1 else SMALL  # next to columns there is room
        return {"label": table(_key_rows(scene.key, manner.theme, size))} if scene.key else {}
    theme, placing = manner.theme, manner.placing
    title, muted = f"<b>{coloured(scene.title, theme.texts['title'])}</b>", theme.texts["muted"]
    lines = [f"{title}{'&#160;' * 4}{coloured(scene.caption, muted)}"]
    if placing is not None and placing.one_line:
        place = scene.code.partition(" ")[0]  # it is in the caption, too
        brief = scene.caption.removesuffix(f", {place}") if place else scene.caption
        lines = [f"{title}{'&#160;' * 4}{coloured(brief, muted)}"]
        lines[0] += f"{'&#160;' * 4}{coloured(scene.code, theme.texts['text'])}"
    elif scene.code or placing is not None:  # pictures of a series have equal heights
        lines.append(coloured(scene.code, theme.texts["text"]))
    if scene.remark:
        lines.append(coloured(scene.remark, muted))
    width = f' width="{placing.room * CHARACTER}"' if placing and placing.room else ""
    rows = [f'<td align="left"{width}>{line}</td>' for line in lines]
    if theme.form.legend:
        signs = placing.legend if placing and placing.legend else [*legend(scene, theme.form.card)]
        longest = max(cell_len(f"{scene.title}    {scene.caption}"), cell_len(scene.code), cell_len(scene.remark))
        room = max(longest * theme.form.size / 2.2, placing.room * CHARACTER if placing else 0)
        fills = placing is not None and placing.wide > 0
        rows += legend_rows(signs, theme, max(room, placing.wide if placing else 0), flows=fills)
    return {"label": table(rows)}


_KEY_WIDTH = 46
"""The most characters of a line of a key: it must not be wider than its figure."""


def _key_rows(key: Sequence[str], theme: Theme, size: int) -> Iterator[str]:
    """Yield the meanings of letters in lines of similar length."""
    lines: list[str] = []
    for sign in key:
        joined = f"{lines[-1]}    {sign}" if lines else ""
        if joined and cell_len(joined) <= _KEY_WIDTH:
            lines[-1] = joined
        else:
            lines.append(sign)
    for line in lines:
        text = "&#160;&#160;&#160; ".join(coloured(part, theme.texts["muted"], size) for part in line.split("    "))
        yield f'<td align="left">{text}</td>'


def _classes(box: Box) -> str:
    return " ".join([f"role-{box.role}", *(f"state-{state}" for state in box.states)])


def _box_attributes(box: Box, theme: Theme) -> dict[str, str]:
    paint = theme.paints[painted(box)]
    return {
        "shape": _shape(box),
        "style": ",".join(_box_style(box)),
        "fillcolor": paint.fill,
        "color": paint.border,
        "penwidth": _pen(box),
        "peripheries": "2" if box.role == "root" else "1",
    } | ({"margin": "0"} if "error" in box.states else {})


def _shape(box: Box) -> str:
    if "error" in box.states:
        return "octagon"
    return {"saved": "note", "module": "tab"}.get(box.role, "box")


def _box_style(box: Box) -> Iterator[str]:
    yield "filled"
    if _shape(box) == "box" and box.role not in ("op", "root"):
        yield "rounded"
    if "pending" in box.states or painted(box) == "freed":
        yield "dashed"
    elif "view" in box.states:
        yield "dotted"


def _pen(box: Box) -> str:
    if {"current", "receiving", "error"} & set(box.states):
        return "3"
    if box.role == "chip":
        return "0.75"
    return "2" if box.role == "parameter" or {"nan", "inf", "inplace"} & set(box.states) else "1"


def _edge_label(edge: Edge, theme: Theme) -> str:
    """Return the label of a line, with the canvas as its background, so that no line runs through it."""
    colour = theme.texts["grad" if edge.kind == "gradient" else "muted"]
    if not edge.label and edge.kind != "gradient":
        return ""
    width = f' width="{40 + cell_len(edge.symbol) * SMALL // 2}"' if edge.kind == "gradient" else ""
    text = inner(_addend(edge, colour)) if edge.grid else coloured(edge.formula, colour, SMALL)
    cells = [f'<td bgcolor="{theme.canvas}"{width}>{text}</td>']
    if edge.hooks:
        cells.append(f'<td bgcolor="{theme.canvas}">{coloured(edge.hook_text, theme.texts["sum"], SMALL)}</td>')
    return table(cells, spacing=2)


def _addend(edge: Edge, colour: str) -> Iterator[str]:
    """Yield the numbers of a contribution as rows, after the sign for an addition."""
    sign = f'<td rowspan="{len(edge.grid)}" cellpadding="3">{coloured(edge.sign, colour, SMALL)}</td>'
    for at, row in enumerate(edge.grid):
        cells = (f'<td align="right" cellpadding="2">{coloured(number, colour, SMALL)}</td>' for number in row)
        yield "".join([sign * (at == 0), *cells])


def _edge_attributes(edge: Edge, theme: Theme) -> dict[str, str]:
    attributes: dict[str, str] = {"class": " ".join([f"edge-{edge.kind}", *(f"edge-{s}" for s in edge.states)])}
    attributes["tooltip"] = _tooltip("\n".join(filter(None, (edge.text, *edge.remarks))) or " ")
    if edge.kind == "gradient":
        pending = {"style": "invis"} if "flowed" not in edge.states else {}
        pen = "3" if "now" in edge.states else "2"
        mark = {"arrowtail": HOOKED} if edge.hooks else {}
        return attributes | {"color": theme.texts["grad"], "penwidth": pen, "dir": "back"} | mark | pending
    attributes["color"] = theme.edge
    if edge.kind == "view":
        attributes |= {"style": "dotted", "penwidth": "1.5"}
    elif edge.kind == "saved" or "pending" in edge.states:
        attributes["style"] = "dashed"
    if "cut" in edge.states:
        attributes["arrowhead"] = "onormal"
    if edge.is_write:
        attributes["dir"] = "back"
    if edge.slot < 0:
        attributes |= {"arrowhead": "none"} | ({"constraint": "false"} if edge.kind == "view" else {})
    return attributes


def _tooltip(text: str) -> str:
    """Return a tooltip with every line escaped. A backslash becomes an entity, because Graphviz interprets it twice."""
    lines = (escape(shown(line), quote=False).replace("\\", "&#92;") for line in text.split("\n"))
    return "\\n".join(lines)


def add_frames(graph: Digraph, scene: Scene, manner: Manner) -> None:
    """Put the boxes of a graph into the frames of their modules, if there are any."""
    if manner.placing is None or manner.placing.frames:
        _fill(graph, scene, list(scene.boxes), 0, manner, "6" if scene.compact else "10")


def _fill(graph: Digraph, scene: Scene, boxes: list[Box], depth: int, manner: Manner, margin: str) -> None:
    inner: dict[tuple[str, str], list[Box]] = {}
    for box in boxes:
        if len(box.enclosing_modules) > depth:
            inner.setdefault(box.enclosing_modules[depth], []).append(box)
        elif depth:
            graph.node(box.key)
            if manner.theme.form.card != "box" and box.op:
                graph.node(f"{box.key}{SPLIT}")
    for (key, title), inside in inner.items():
        with graph.subgraph(name=f"cluster_{key}", graph_attr=_attributes(key, title, manner, margin)) as frame:
            if all(_is_hidden(scene, box) for box in inside):
                frame.attr(**_HIDDEN)
            _fill(frame, scene, inside, depth + 1, manner, margin)


def _attributes(key: str, title: str, manner: Manner, margin: str) -> dict[str, str]:
    theme, placing = manner.theme, manner.placing
    place = placing.frames.get(f"cluster_{key}", {}) if placing else {}
    return {
        "id": f"{manner.prefix}-{key}",
        "class": "module",
        "label": f"<{coloured(title, theme.texts['muted'], SMALL)}>",
        "titlewidth": f"{title_width(title):g}",  # no attribute of Graphviz: see `frame_titles`
        "labelloc": "t",
        "labeljust": "l",
        "style": "rounded",
        "color": theme.edge,
        "penwidth": "0.75",
        "margin": margin,
        **place,
    }
