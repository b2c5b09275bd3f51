"""Drawings compared with what they should look like, character by character."""

import unicodedata
from itertools import product

import pytest
from render import graphs
from rich.cells import cell_len

from gviz.render.cells import EDGE_STATES, Appearance, Canvas, Face
from gviz.render.cells.canvas import BAND
from gviz.render.cells.raster import DOWN, HEAVY, LEFT, RIGHT, UNICODE, UP
from gviz.render.layout import Box, Edge, layout, layout_rightward

FIRST, SECOND = SQUARE = [Edge("x", "y", 0), Edge("x", "y", 1)]
FRESH = """\
 ╭ x leaf ──────╮
 │ value 3      │
 ╰──────┬───────╯
      ╭─┴─╮
      ▼   ▼
┌ y = mul ───────┐
│ value 9        │
└────────────────┘"""
PENDING = """\
 ╔ x leaf ═ now ╗
 ║ value 3      ║
 ╚══════╤═══════╝
      ╭╌┴╌╮
      ▼   ▼
┌ y = mul ╌╌ now ┐
╎ value 9        ╎
└╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌┘"""
BACKWARD = """\
 ╭!x leaf ─ nan ╮
 │ value 3      │
 ╰──────▲───────╯
      ╭─┺━┓
      │   ┃
┌[y = mul]╌╌ nan ┐
╎ value 9        ╎
└╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌┘"""
ACTIVE_WIDE = """\
 ╭ 変数の長い… ─╮
 │ value 3      │
 ╰──────┬───────╯
      ┏━┻━┓
      ▼   ▼
┌ y = mul ───────┐
│ value 9        │
╘════════════════╛"""
ASCII_BACKWARD = """\
 .!x leaf - nan .
 | value 3      |
 '------^-------'
      ,-'=.
      |   #
+[y = mul]~~ nan +
: value 9        :
+~~~~~~~~~~~~~~~~+"""
ASCII_PENDING = """\
 # x leaf = now #
 # value 3      #
 #======#=======#
      ,~'~.
      v   v
+ y = mul ~~ now +
: value 9        :
+~~~~~~~~~~~~~~~~+"""
RIGHTWARD = """\
╭ x leaf ──────╮    ┌ y = mul ───────┐
│ value 3      ◄─┬──│ value 9        │
╰──────────────╯ ╰─►│                │
                    └────────────────┘"""


def square(look, function=layout, **options):
    """y = x * x."""
    return Canvas(function([Box("x", 16, 3), Box("y", 18, 3)], SQUARE), look, **options)


def faces(x=(), y=(), *, title="x leaf", note="", role="op"):
    return {
        "x": Face(title, ((("value 3", "value"),),), "leaf", frozenset(x), note),
        "y": Face("y = mul", ((("value 9", "value"),),), role, frozenset(y), note),
    }


LOOKS = {
    "fresh": Appearance(faces()),
    "pending": Appearance(faces(["current"], ["pending"], note="now"), dict.fromkeys(SQUARE, "pending")),
    "backward": Appearance(
        faces(["error"], ["freed"], note="! first nan"), {FIRST: "gradient", SECOND: "flowing"}, frozenset("y")
    ),
    "active": Appearance(faces(title="変数の長い名前です", role="root"), dict.fromkeys(SQUARE, "active")),
}


@pytest.mark.parametrize(
    ("look", "ascii", "picture"),
    [
        ("fresh", False, FRESH),
        ("pending", False, PENDING),
        ("backward", False, BACKWARD),
        ("active", False, ACTIVE_WIDE),
        ("backward", True, ASCII_BACKWARD),
        ("pending", True, ASCII_PENDING),
    ],
)
def test_pictures(look, ascii, picture):
    assert square(LOOKS[look], ascii=ascii).text() == picture


def test_left_to_right():
    assert square(Appearance(faces(), {FIRST: "gradient"}), layout_rightward).text() == RIGHTWARD


def styles_of(canvas, y):
    return {text.strip(): style for text, style in canvas.line(y) if text.strip()}


def test_styles_are_names_that_tell_the_state():
    backward = square(LOOKS["backward"])
    assert styles_of(backward, 0)["x leaf"] == "error"
    assert styles_of(backward, 1)["value 3"] == "value"
    assert styles_of(backward, 2)["▲"] == "gradient"
    assert styles_of(backward, 4) == {"│": "gradient", "┃": "current"}
    assert styles_of(backward, 5)["y = mul"] == "selected"
    assert styles_of(square(LOOKS["pending"]), 0)["x leaf"] == "title"
    assert styles_of(square(LOOKS["pending"]), 4) == {"▼   ▼": "muted"}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_any_part_is_exactly_as_wide_as_asked(look):
    canvas = square(look)
    for y, left, width in product(range(-1, canvas.layout.height + 2), range(25), (1, 7, 30)):
        assert sum(cell_len(text) for text, _ in canvas.line(y, left, width)) == width


def test_a_part_is_what_stands_there_in_the_whole():
    canvas = square(LOOKS["backward"])
    for y in range(canvas.layout.height):
        whole = "".join(text for text, _ in canvas.line(y))
        assert "".join(text for text, _ in canvas.line(y, 3, 9)) == whole[3:12]


def test_half_of_a_wide_character_is_a_blank():
    canvas = square(LOOKS["active"])
    assert [canvas.line(0, left, 4)[0][0] for left in (3, 4)] == ["変数", " 数 "]


def test_foreign_lines_cross_by_a_bridge():
    boxes = [Box(key, 9, 3) for key in "abcd"]
    crossing = [Edge("a", "c"), Edge("a", "d"), Edge("b", "c"), Edge("b", "d")]
    text = Canvas(layout(boxes, crossing)).text()
    assert "┼" not in text
    assert "─│" in text


def test_moving_in_time_repaints_lines_and_moves_nothing():
    roles, edges = graphs.lesson()
    canvas = Canvas(graphs.laid_out(roles, edges), Appearance(graphs.faces(roles)))
    before = canvas.text()
    canvas.look = Appearance(graphs.faces(roles), {Edge(*edge): "flowing" for edge in edges[:2]})
    assert "┏" in canvas.text() or "┳" in canvas.text() or "┻" in canvas.text()
    canvas.look = Appearance(graphs.faces(roles))
    assert canvas.text() == before


def test_the_cell_of_a_box_names_it():
    canvas = square(LOOKS["fresh"])
    for key, place in canvas.layout.places.items():
        assert canvas.key_at(place.x, place.y) == key
        assert canvas.key_at(place.right - 1, place.bottom - 1) == key
    assert canvas.key_at(0, 0) is None
    assert canvas.key_at(8, 3) is None


def test_what_is_visible_is_near_the_rows():
    roles, edges = graphs.residual(40)
    canvas = Canvas(graphs.laid_out(roles, edges), Appearance(graphs.faces(roles)))
    rows = range(300, 340)
    places, seen = canvas.visible(rows)
    inside = {key for key, place in canvas.layout.places.items() if place.bottom > rows.start and place.y < rows.stop}
    assert inside <= {place.key for place in places}
    assert len(places) < len(roles) / 3
    assert all(place.bottom > rows.start - BAND and place.y < rows.stop + BAND for place in places)
    assert {edge for edge in canvas.layout.edges if {edge.source, edge.target} & inside} <= set(seen)


def test_boxes_too_small_for_their_title_keep_their_size():
    canvas = Canvas(layout([Box(width, width, 2) for width in range(3, 9)], []), Appearance({
        width: Face("2.5", role="constant") for width in range(3, 9)
    }))  # fmt: skip
    assert canvas.text().splitlines() == ["╭2╮   ╭2.╮   ╭ … ╮   ╭ 2… ╮   ╭ 2.5 ╮   ╭ 2.5 ─╮",
                                          "╰─╯   ╰──╯   ╰───╯   ╰────╯   ╰─────╯   ╰──────╯"]  # fmt: skip


def test_every_joint_of_light_and_heavy_lines_has_the_character_unicode_gives_it():
    arms = {"UP": UP, "RIGHT": RIGHT, "DOWN": DOWN, "LEFT": LEFT}
    for code in range(0x2500, 0x2580):
        name = unicodedata.name(chr(code)).removeprefix("BOX DRAWINGS ")
        if any(word in name for word in ("DASH", "DOUBLE", "DIAGONAL", "ARC")):
            continue
        parts = [part.split() for part in name.replace("VERTICAL", "UP DOWN").replace("HORIZONTAL", "LEFT RIGHT")
                 .replace(" AND ", "|").split("|")]  # fmt: skip
        weights = [word for part in parts for word in part if word in ("LIGHT", "HEAVY")]
        if len(weights) == 1:
            code_of = sum(arms[w] for part in parts for w in part if w in arms) * (HEAVY if weights == ["HEAVY"] else 1)
        else:
            code_of = _mixed(name, arms)
        round_corner = weights == ["LIGHT"] and chr(code) in "┌┐└┘"
        assert chr(UNICODE[code_of]) == (
            dict(zip("┌┐└┘", "╭╮╰╯", strict=True))[chr(code)] if round_corner else chr(code)
        )


def _mixed(name, arms):
    """The arms of a name with two weights: ``LIGHT LEFT AND HEAVY RIGHT`` or ``UP LIGHT AND RIGHT DOWN HEAVY``."""
    words = name.replace("VERTICAL", "UP DOWN").replace("HORIZONTAL", "LEFT RIGHT").split()
    if words[0] not in ("LIGHT", "HEAVY"):
        words.reverse()
    code, weight = 0, 1
    for word in words:
        if word in ("LIGHT", "HEAVY"):
            weight = HEAVY if word == "HEAVY" else 1
        elif word in arms:
            code |= arms[word] * weight
    return code


def test_states_of_lines_are_in_order_of_importance():
    assert EDGE_STATES.index("pending") < EDGE_STATES.index("plain") < EDGE_STATES.index("active")
    boxes = [Box("x", 10, 3), Box("near", 10, 3), Box("mid", 10, 3), Box("far", 10, 3)]
    edges = [Edge("x", "near"), Edge("near", "mid"), Edge("mid", "far"), Edge("x", "far", 1)]
    drawing = Canvas(layout(boxes, edges), Appearance({}, {edges[0]: "flowing", edges[3]: "pending"})).text()
    assert "┃" in drawing
    assert "╎" in drawing
