"""How to read a picture: what its shapes, lines and marks mean, and which state gives a box its colour."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.render.boxes.row import Row
from gviz.render.boxes.tensors import NO_SHADES
from gviz.render.scene import Box, Scene
from gviz.render.theme import Card

PAINTED = ("error", "nan", "current", "freed", "inplace")
"""The states that change the colour of a box, the most important first."""


def painted(box: Box) -> str:
    """The state, or else the role, that gives a box its colour."""
    found = next((state for state in PAINTED if state in box.states), box.role)
    return "error" if found == "nan" else found


HEAT = "squares: numbers, from minus to plus the largest magnitude in the box"
"""What is said of heat maps; the colours stand beside it."""


def is_picture(row: Row) -> bool:
    """Whether a row is a thumbnail of numbers that are known."""
    return bool(row.shades) and row.shades != NO_SHADES


def legend(scene: Scene, card: Card = "box") -> Iterator[str]:
    """What the shapes and lines in this picture mean; only those that are there."""
    if card != "box":
        yield from _cards(scene, card)
        return
    roles = {box.role for box in scene.boxes}
    states = {state for box in scene.boxes for state in box.states}
    paints = {painted(box) for box in scene.boxes}
    kinds = {edge.kind for edge in scene.edges if edge.kind != "gradient" or "flowed" in edge.states}
    pictured = {"bars" if row.text else "heat" for box in scene.boxes for row in box.rows if is_picture(row)}
    labels = {row.label for box in scene.boxes for row in box.rows}
    words = {box.status for box in scene.boxes}
    said = " ".join([*(edge.label for edge in scene.edges), *(row.text for box in scene.boxes for row in box.rows)])
    held = {state for edge in scene.edges for state in edge.states if edge.kind != "gradient"}
    for here, text in (
        ("leaf" in roles, "round: leaf"),
        ("parameter" in roles, "round and bold: parameter"),
        ("constant" in roles, "round and grey: constant"),
        ("chip" in roles, "thin and round: one use of a shared leaf"),
        ("op" in roles or "root" in roles, "square: operation"),
        ("root" in roles, "double: result"),
        ("module" in roles, "with a tab: module"),
        ("saved" in roles, "folded corner: kept for backward"),
        ("current" in states, "►: this event"),
        ("error" in states, "eight corners: where it went wrong"),
        ("nan" in states, "!: holds nan or inf"),
        ("backward" in states, "made in pass …: by a backward pass, while it ran"),
        ("pending" in states, "dashed: not run yet"),
        ("freed" in paints, "dashed and empty: freed"),
        ("inplace" in paints, "thick border: writes in place"),
        ("view" in kinds, "dotted line: shares memory"),
        ("cut" in held, "hollow arrow: no gradient flows back"),
        ("gradient" in kinds, "thick arrow: gradient, against the data"),
        ("bars" in pictured, "bars: how many numbers, from the smallest to the largest"),
        ("heat" in pictured, HEAT),
        ("incoming" in labels, "incoming: what this pass brings; .grad: what all passes have added up"),
        ("+= " in said, "+=: a part that is added"),
        ("|g|" in said, "|g|: length of a gradient of many numbers"),
        ("saved freed" in words, "saved freed: what it kept for backward is released"),
    ):
        if here:
            yield text


def _cards(scene: Scene, card: Card) -> Iterator[str]:
    yield "circle: operation"
    yield "above the line: value, below it: gradient" if card == "wire" else "record: name, data and gradient"
    for here, text in (
        (any("pending" in box.states for box in scene.boxes), "dashed: not run yet"),
        (any({"error", "nan"} & set(box.states) for box in scene.boxes), "red: where it went wrong, or nan or inf"),
        (any("cut" in edge.states for edge in scene.edges), "hollow arrow: no gradient flows back"),
        (any(edge.kind == "view" for edge in scene.edges), "dotted line: shares memory"),
    ):
        if here:
            yield text
