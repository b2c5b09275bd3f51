"""Scenes in the terminal: only what is in view is dressed, and no step moves anything."""

import pytest
from render.logs import LOGS, Script, two_shares
from rich.cells import cell_len

from gviz.render.boxes.box_row import Row
from gviz.render.boxes.full_detail_rows import SOURCE_WIDTH
from gviz.render.boxes.graph_options import Options
from gviz.render.boxes.graph_structure import structure
from gviz.render.cells.viewport import Moments, laid_out, look
from gviz.render.picture_request import moment_scene
from gviz.render.scene import scene
from gviz.tui.glyphs import ASCII


def moments(timeline, **options):
    return Moments(timeline, structure(timeline, timeline.iterations[-1]), **options)


def text_at(timeline, n, **options):
    drawing = moments(timeline, **options)
    drawing.show(timeline.at(n), 0, range(drawing.canvas.layout.height))
    return drawing.canvas.text()


@pytest.mark.parametrize("name", LOGS)
def test_every_title_and_number_is_on_the_canvas(name):
    timeline = LOGS[name]().timeline
    n = len(timeline)
    drawn = scene(structure(timeline, timeline.iterations[-1]), timeline, timeline.at(n))
    text = text_at(timeline, n)
    for box in drawn.boxes:
        assert box.title in text
        assert all(row.text in text for row in box.rows)


@pytest.mark.parametrize("name", LOGS)
def test_stepping_changes_words_and_moves_no_box(name):
    timeline = LOGS[name]().timeline
    drawing = moments(timeline)
    corners = "╭╮╰╯┌┐└┘╔╗╚╝╘╛"
    places = []
    for n in range(len(timeline) + 1):
        drawing.show(timeline.at(n), 0, range(drawing.canvas.layout.height))
        lines = drawing.canvas.text().splitlines()
        assert all(lines[place.y][place.x] in corners for place in drawing.canvas.layout.places.values())
        places.append(drawing.canvas.layout.places)
    assert all(place is places[0] for place in places)


def test_words_say_what_lines_and_colours_say():
    timeline = two_shares().timeline
    assert "pending" in text_at(timeline, 1)
    assert " now ╗" in text_at(timeline, 1)
    flowing = next(n for n in range(1, len(timeline)) if type(timeline.event(n)).__name__ == "GradFlowed")
    text = text_at(timeline, flowing)
    assert "▲" in text
    assert "┃" in text
    assert "running" in text


def test_a_nan_is_marked_without_colour():
    timeline = LOGS["broken"]().timeline
    assert "!y = log" in text_at(timeline, len(timeline))


def test_only_what_is_in_view_is_dressed():
    s = Script()
    h = s.leaf("x", 1.0)
    for _ in range(200):
        h = s.op("sin", (h,), 0.5)
    drawing = moments(s.timeline)
    drawing.show(s.timeline.at(len(s.timeline)), 0, range(400, 430))
    assert 0 < len(drawing.canvas.look.faces) < 30
    assert all(drawing.canvas.look.faces[place.key].title for place in drawing.canvas.visible(range(400, 430))[0])


def test_a_part_looks_as_it_does_in_the_whole():
    timeline = two_shares().timeline
    n = len(timeline) - 4
    drawing = moments(timeline)
    rows = range(5, 9)
    drawing.show(timeline.at(n), 3, rows)
    part = [drawing.canvas.line(y) for y in rows]
    drawing.show(timeline.at(n), 3, range(drawing.canvas.layout.height))
    assert part == [drawing.canvas.line(y) for y in rows]


def test_the_selected_node_and_its_chips_are_marked():
    timeline = LOGS["recurrent"]().timeline
    drawing = moments(timeline)
    drawing.show(timeline.at(len(timeline)), 1, range(drawing.canvas.layout.height))
    assert drawing.canvas.text().count("[W_hh") == 6


def test_boxes_know_their_node():
    timeline = two_shares().timeline
    drawing = moments(timeline)
    for place in drawing.canvas.layout.places.values():
        assert place.key in drawing.boxes(drawing.node_at(place.x, place.y))
    assert drawing.node_at(-1, -1) == 0


def test_ascii_has_no_other_characters_and_no_box_grows():
    timeline = LOGS["linear_model"]().timeline
    text = text_at(timeline, 5, write=ASCII.text, ascii=True)
    assert text.isascii()
    widths = {cell_len(line) for line in text.splitlines()}
    assert max(widths) <= laid_out(structure(timeline, timeline.iterations[-1])).width


def test_the_edge_into_the_node_that_is_being_made_is_active():
    timeline = two_shares().timeline
    made = next(n for n in range(1, len(timeline)) if timeline.at(n).node == 3)
    drawn = scene(structure(timeline, timeline.iterations[-1]), timeline, timeline.at(made))
    states = {(edge.source, edge.target): state for edge, state in look(drawn, timeline.at(made)).edges.items()}
    assert states["n1", "n3"] == "active"
    assert states["n3", "n4"] == "pending"


@pytest.mark.parametrize("density", ["min", "brief", "short"])
def test_a_name_in_letters_of_two_cells_is_whole(density):
    script = Script()
    names = "\u6570\u5024" * 4, "\u7d50\u679c" * 4
    script.op("sin", (script.leaf(names[0], 1.0),), 0.5, name=names[1])
    timeline = script.timeline
    drawing = Moments(timeline, structure(timeline, timeline.iterations[0], Options(density=density)))
    drawing.show(timeline.at(len(timeline)), 0, range(drawing.canvas.layout.height))
    assert [name for name in names if name in drawing.canvas.text()] == [*names]


def test_in_full_labels_too_letters_of_two_cells_have_their_room():
    script = Script()
    names = "\u6570\u5024" * 4, "\u7d50\u679c" * 4
    script.op("sin", (script.leaf(names[0], 1.0),), 0.5, name=names[1])
    timeline = script.timeline
    drawn = moment_scene(timeline, len(timeline), Options(density="full", attr_chars=60))
    for box in drawn.boxes:
        assert all(row.characters <= max(box.width, SOURCE_WIDTH) for row in box.rows)
    assert any(
        cell_len(row.text) > len(row.text) for box in drawn.boxes for row in (*box.rows, Row(box.title, "title"))
    )
