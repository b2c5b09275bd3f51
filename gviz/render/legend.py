"""The legend of a picture: the meaning of its shapes, lines, words, numbers and colours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from gviz.render.boxes.box_content import Box
from gviz.render.boxes.box_row import Row
from gviz.render.boxes.box_text import HOOK, NORM
from gviz.render.boxes.edge_content import symbol_start
from gviz.render.boxes.edges import CONTRACTED, WRITES
from gviz.render.boxes.gradient_bars import BAD_BAR, EACH, NO_BAR, is_logarithmic
from gviz.render.boxes.node_states import SHOWN
from gviz.render.boxes.tensor_pictures import NO_SHADES
from gviz.render.scene import Scene
from gviz.render.theme import Card
from gviz.values.value_text import NO_VALUE

Rows = tuple[tuple[str, str], ...]

NUMBERS: Rows = (
    ("(2,4) [-0.6 .. 0.7]", "a tensor: its shape, its minimum and its maximum"),
    ("μ  rms", "its mean and its root mean square, the typical size of an element"),
    ("|g|", "the L2 norm of a gradient: the root of the sum of its squares"),
    ("60% zero, 3 nan, 1 inf", "how many of its elements are zero, nan or inf"),
    ("f64, i64", "its dtype, where it is not float32"),
    ("-6 (1 of 2)", "the gradient so far: one of the two contributions has arrived"),
)
"""The notation of a tensor's numbers."""

RULES: Rows = (
    ("to #1 x: g * y", "what the backward rule of this node sends to its input #1, called x"),
    ("∂L/∂h", "the gradient of the result L with respect to h"),
    ("g", "the gradient that came into this node: how the result changes with its value"),
    ("@  .T", "matrix product; transposed, as the weight of a linear layer is: x @ weight.T + bias"),
    ("+= 3", "what is added: a contribution to a gradient, or the gradient of a pass to .grad"),
    ("incoming, .grad", "the gradient of a leaf in this pass; the sum over all passes, for the optimizer"),
    (
        "adds, total",
        "of a leaf that is drawn once for each use: the contribution of this use, and the sum of all in this pass",
    ),
    ("gives, adds", "of a collapsed call: its result; the norm of what it has sent to its parameters"),
)
"""The notation of gradients."""


PAINTED = ("error", "nan", "inf", "current", "receiving", "missing", "cut", "freed", "inplace")
"""The states that change the colour of a box, the most important first."""


def painted(box: Box) -> str:
    """Return the state, or else the role, that gives a box its colour."""
    return {"nan": "error", "inf": "error", "cut": "missing"}.get(state := _painting(box), state)


def _painting(box: Box) -> str:
    return next((state for state in PAINTED if state in box.states), role_painted(box))


def role_painted(box: Box) -> str:
    """Return the role that a box looks like: a use of a constant looks like the constant."""
    return "constant" if box.is_constant else box.role


PARTS = re.compile(r"\d+ of \d+$")
"""The state word of a node that waits for contributions to its gradient."""
_VERSION = re.compile(r"(value \d* ?)?v\d+$")
"""The label of a value that was written in place."""

HEAT = "squares: numbers, from minus to plus the largest magnitude in the box"
"""The text about heat maps. The colours are next to it."""


def is_picture(row: Row) -> bool:
    """Return whether a row is a thumbnail of known numbers."""
    return bool(row.shades) and row.shades != NO_SHADES


_COLOURS = {"missing", "cut", "freed"}
"""States that give a box its colour, unless it has a worse state."""


class Seen(NamedTuple):
    """The contents of a picture: names of roles, states and other marks that occur in it.

    The role of a box of operations on data is "data" here. `looks` are the states that boxes look like, `layers`
    operations directly in linear layers, `text` is the text of all rows and lines, `symbol` is the sign before the name
    of a tensor for its gradient.
    """

    roles: frozenset[str]
    states: frozenset[str]
    looks: frozenset[str]
    paints: frozenset[str]
    words: frozenset[str]
    lines: frozenset[str]
    rows: frozenset[str]
    layers: frozenset[str]
    text: str
    symbol: str


def seen(scene: Scene) -> Seen:
    """Return the contents of a scene. Labels of invisible lines do not count, nor labels that are not drawn."""
    labelled = scene.labels_lines
    boxes, rows = scene.boxes, [row for box in scene.boxes for row in box.rows]
    there = [edge for edge in scene.edges if edge.kind != "gradient" or "flowed" in edge.states]
    pictured = {"bars" if row.text else "heat" for row in rows if is_picture(row)}
    return Seen(
        roles=frozenset("data" if box.is_data else role_painted(box) for box in boxes),
        states=frozenset(state for box in boxes for state in box.states),
        looks=frozenset(look for box in boxes for look in ({*box.states} - _COLOURS) | {_painting(box)}),
        paints=frozenset(map(painted, boxes)),
        words=frozenset(box.status for box in boxes if box.height > 1 or painted(box) == "missing"),
        lines=frozenset(
            name
            for edge in there
            for name in (
                edge.kind,
                *edge.states,
                edge.label[:1] * (labelled or edge.label.startswith(CONTRACTED)) or edge.kind,
                HOOK if edge.hooks else edge.kind,
                WRITES if edge.is_write else edge.kind,
            )
        ),
        rows=frozenset({*pictured, *_barred(rows), *(row.label for row in rows), *(row.style for row in rows)}),
        layers=frozenset(
            box.op for box in boxes for _, title in box.enclosing_modules[-1:] if title.endswith("Linear")
        ),
        text=" ".join([*(edge.formula for edge in there if labelled), *(row.text for row in rows if not row.grid)]),
        symbol=symbol_start(scene.result),
    )


STEPS = "|∂"
"""The beginning of the label of bars for the steps of a loop: ``|∂L/∂h|``."""


def _barred(rows: Iterable[Row]) -> Iterator[str]:
    """Yield ``steps`` if a row has the gradients of steps as bars; ``gaps`` and ``bad bars`` for parts without."""
    for row in rows:
        if row.label.startswith(STEPS):
            yield "steps"
        if (row.label == EACH or row.label.startswith(STEPS)) and row.text != NO_VALUE:
            if is_logarithmic(row.text):
                yield "log bars"
            yield from (word for sign, word in ((NO_BAR, "gaps"), (BAD_BAR, "bad bars")) if sign in row.text.split()[0])


SIGNS: tuple[tuple[Callable[[Seen], bool], str], ...] = (
    (lambda seen: "leaf" in seen.roles, "round: leaf"),
    (lambda seen: "parameter" in seen.roles, "round and bold: parameter"),
    (lambda seen: "constant" in seen.roles, "round and grey: constant"),
    (lambda seen: "chip" in seen.roles, "thin and round: one use of a shared leaf"),
    (lambda seen: bool(seen.roles & {"op", "root"}), "square: operation"),
    (lambda seen: "root" in seen.roles, "double: result"),
    (lambda seen: "transpose" in seen.layers, "transpose: the weight of a Linear, as in x @ weight.T + bias"),
    (lambda seen: seen.roles >= {"module", "data"}, "with a tab: module, or operations on data"),
    (lambda seen: "module" in seen.roles and "data" not in seen.roles, "with a tab: module"),
    (lambda seen: "data" in seen.roles and "module" not in seen.roles, "with a tab: operations on data"),
    (lambda seen: "saved" in seen.roles, "folded corner: saved tensor"),
    (lambda seen: "backward" in seen.states, "made in pass …: by a backward pass, while it ran"),
    (lambda seen: "inplace" in seen.paints, "thick border: writes in place"),
    (
        lambda seen: any(map(_VERSION.match, seen.rows)),
        "v0, v1, …: the version of the tensor; each write in place adds one",
    ),
    (lambda seen: "view" in seen.lines, "dotted line: shares memory"),
    (lambda seen: "cut" in seen.lines, "hollow arrow: no gradient flows back"),
    (lambda seen: "flowed" in seen.lines, "thick blue arrow: gradient"),
    (lambda seen: "now" in seen.lines, "thickest arrow: by this event"),
    (lambda seen: HOOK in seen.lines, f"circle on an arrow, {HOOK}: a hook of the program changed this gradient"),
    (lambda seen: seen.symbol in seen.text, "{symbol}h: gradient of the result {result} with respect to h"),
    (
        lambda seen: EACH in seen.rows,
        f"{EACH}: the gradient of each equal part, from first to last; bars of a wide range are logarithmic",
    ),
    (
        lambda seen: "steps" in seen.rows,
        "|{symbol}h| ▁▃▆: the norm of that gradient at each step; bars of a wide range are logarithmic",
    ),
    (lambda seen: "gaps" in seen.rows, f"{NO_BAR} among bars: no gradient has come to this part"),
    (lambda seen: "bad bars" in seen.rows, f"{BAD_BAR} among bars: the gradient of this part holds nan or inf"),
    (lambda seen: CONTRACTED in seen.lines, "line with …: leads through nodes that are left out"),
    (lambda seen: WRITES in seen.lines, f"arrow with {WRITES}: updates running statistics, which only eval uses"),
    (lambda seen: "bars" in seen.rows, "bars: how many numbers, from the smallest to the largest"),
    (lambda seen: "heat" in seen.rows, HEAT),
    (lambda seen: "incoming" in seen.rows, "incoming: gradient of this pass; .grad: sum over all passes"),
    (lambda seen: "! first nan" in seen.words, "! first nan: nothing before it held any"),
    (lambda seen: "! first inf" in seen.words, "! first inf: nothing before it held any"),
    (lambda seen: any(map(PARTS.match, seen.words)), "1 of 2: one of two contributions has arrived"),
    (lambda seen: "ready" in seen.words, "ready: all contributions have arrived, its rule has not run yet"),
    (lambda seen: "+= " in seen.text, "+=: a contribution that is added"),
    (lambda seen: "numbers" in seen.text.split(), "numbers: not tracked, it takes only the numbers of a tensor"),
    (lambda seen: "sum" in seen.rows, "bold numbers: just added"),
    (lambda seen: "|g|" in seen.text, "|g|: norm of a gradient"),
)
"""The possible signs of a picture and their meaning; `symbol` is ``∂L/∂``, and `result` its L.

The signs of states are in `SHOWN`.
"""


def legend(scene: Scene, card: Card = "box") -> Iterator[str]:
    """Yield the meaning of the shapes, lines, words and marks that occur in this picture."""
    if card != "box":
        yield from _cards(scene, card)
        return
    there = seen(scene)
    words = {"symbol": there.symbol, "result": scene.result}
    yield from (text.format(**words) for is_there, text in SIGNS if is_there(there))
    for shown in SHOWN:
        signs = [shown.look] if shown.look and shown.state in there.looks else []
        if shown.word not in signs and any(word.startswith(shown.word) for word in there.words):
            signs.append(shown.word)
        if signs:
            yield f"{', '.join(signs)}: {shown.meaning}"


INCOMING = re.compile(r"(?<![\w|])g(?![\w|])")
"""The sign of the incoming gradient in a local derivative: ``to x: g * y``."""


def key(scene: Scene, card: Card = "box") -> Iterator[str]:
    """Yield the meaning of the letters in a figure, which has no legend: ``L: loss``, ``|g|: norm of a gradient``.

    Nodes as cards have only numbers: gradients have no lines, and so no labels.
    """
    if card != "box":
        if any(NORM in row.text for box in scene.boxes for row in box.rows):
            yield f"{NORM}: norm of a gradient"
        return
    there = seen(scene)
    names = [name for box in scene.boxes if box.role == "root" for name, _, op in [box.title.partition(" = ")] if op]
    if (there.symbol in there.text or "steps" in there.rows) and names != [scene.result]:
        yield f"{scene.result}: {' or '.join(names) or 'the result'}"
    stacked = (row for box in scene.boxes if box.is_narrow for row in box.rows)
    if any(row.style == "grad" and not row.label for row in stacked):
        yield "above: value, below: gradient"
    if NORM in there.text:
        yield f"{NORM}: norm of a gradient"
    if INCOMING.search(there.text):
        yield "g: incoming gradient"
    if "steps" in there.rows:
        yield "bars: first to last step"
    if EACH in there.rows:
        yield f"{EACH}: gradient of each part"
    if "adds" in there.rows and any(
        row.label == "adds" for box in scene.boxes if box.role == "module" for row in box.rows
    ):
        yield "adds: gradient of this call"
    if "log bars" in there.rows:
        yield "bars: log scale"


def together(signs: Iterable[str]) -> tuple[str, ...]:
    """Return the signs of several pictures: each meaning once, after the longest list of its signs."""
    longest: dict[str, str] = {}
    for sign in signs:
        meaning = sign.partition(": ")[2] or sign
        longest[meaning] = max(longest.get(meaning, ""), sign, key=len)
    return tuple(longest.values())


def _cards(scene: Scene, card: Card) -> Iterator[str]:
    yield "circle: operation"
    yield "above the line: value, below it: gradient" if card == "wire" else "record: name, data and gradient"
    for here, text in (
        (any("pending" in box.states for box in scene.boxes), "dashed: not run yet"),
        (
            any({*PAINTED[:3]} & set(box.states) for box in scene.boxes),
            "red: where it went wrong, or nan or inf",
        ),
        (any("cut" in edge.states for edge in scene.edges), "hollow arrow: no gradient flows back"),
        (any(edge.kind == "view" for edge in scene.edges), "dotted line: shares memory"),
    ):
        if here:
            yield text
