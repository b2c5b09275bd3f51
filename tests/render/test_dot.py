"""DOT, the reference of all pictures: its golden files, and what Graphviz reads in it."""

import pytest
from render import golden
from render.logs import LOGS, recurrent, two_shares
from render.pictures import boxes_and_lines, read

from gviz.render.graphviz.dot import digraph, dot
from gviz.render.graphviz.legend import legend
from gviz.render.graphviz.placing import placing
from gviz.render.scene import scene, structure
from gviz.render.theme import DARK, LIGHT

MOMENTS = [(name, n) for name in LOGS for n in (5, None)] + [("two_shares", 18)]


def scene_of(name, n=None):
    timeline = LOGS[name]().timeline
    n = len(timeline) if n is None else n
    return scene(structure(timeline, timeline.iteration_at(n)), timeline, timeline.at(n))


@pytest.mark.parametrize(("name", "n"), MOMENTS)
def test_golden(name, n):
    golden.check(f"{name}-{n or 'end'}.dot", dot(scene_of(name, n)))


@pytest.mark.parametrize(("name", "n"), MOMENTS)
def test_graphviz_reads_every_box_and_line(name, n):
    drawn = scene_of(name, n)
    boxes, lines = boxes_and_lines(dot(drawn))
    assert boxes == {box.key for box in drawn.boxes}
    assert lines == sorted((edge.source, edge.target) for edge in drawn.edges)


def test_states_change_shape_and_line_not_colour_alone():
    start, now, end, broken = (
        read(dot(scene_of(*moment))) for moment in (("two_shares", 3), ("two_shares", 18), ("two_shares",), ("broken",))
    )
    assert "dashed" in start[0]["n4"]["style"]
    assert "rounded" in start[0]["n1"]["style"]
    assert now[0]["n4"]["penwidth"] == "3"
    assert end[0]["n5"]["peripheries"] == "2"
    assert broken[0]["n2"]["shape"] == "octagon"
    boxes, lines = read(dot(scene_of("odd_ops")))
    assert "dotted" in boxes["n3"]["style"]
    assert [line["arrowhead"] for tail, head, line in lines if (tail, head) == ("n5", "n6")] == ["onormal"]


def test_a_gradient_that_has_not_flowed_is_laid_out_and_not_seen():
    assert dot(scene_of("two_shares", 9)).count("style=invis") == 6
    assert dot(scene_of("two_shares")).count("style=invis") == 0


def test_themes_differ_in_colours_alone():
    drawn = scene_of("odd_ops")
    light, dark = dot(drawn, LIGHT), dot(drawn, DARK)
    assert light != dark
    for ours, theirs in zip(
        [*LIGHT.texts.values(), *(paint.fill for paint in LIGHT.paints.values())],
        [*DARK.texts.values(), *(paint.fill for paint in DARK.paints.values())],
        strict=True,
    ):
        light, dark = light.replace(ours, "c"), dark.replace(theirs, "c")
    assert boxes_and_lines(light) == boxes_and_lines(dark)


def test_deep_graphs_flow_down_and_small_ones_right():
    assert "rankdir=LR" in dot(scene_of("two_shares"))
    assert "rankdir=TB" in dot(scene_of("recurrent"))


def test_large_graphs_lose_their_labels_and_are_arranged_faster():
    timeline = recurrent(60).timeline
    drawn = scene(structure(timeline, timeline.iterations[0]), timeline, timeline.at(len(timeline)))
    text = dot(drawn)
    assert "nslimit=1" in text
    assert "(1,4)</font></td></tr></table>" not in text
    assert "nslimit" not in dot(scene_of("two_shares"))


def test_the_legend_names_what_is_there_and_nothing_else():
    assert list(legend(scene_of("two_shares", 3))) == [
        "round: leaf",
        "square: operation",
        "double: result",
        "►: this event",
        "dashed: not run yet",
        "incoming: what this pass brings; .grad: what all passes have added up",
    ]
    assert "dotted line: shares memory" in list(legend(scene_of("odd_ops")))
    ended = list(legend(scene_of("two_shares")))
    assert "thick arrow: gradient, against the data" in ended
    assert "+=: a part that is added" in ended
    assert "saved freed: what it kept for backward is released" in ended


def test_a_placing_gives_every_box_a_position_and_every_data_line_a_way():
    drawn = scene_of("two_shares")
    found = placing(drawn)
    assert found.boxes.keys() == {box.key for box in drawn.boxes}
    assert found.lines.keys() == {f"e{nr}" for nr, e in enumerate(drawn.edges) if e.kind == "forward"}
    assert all(line["pos"].startswith("e,") for line in found.lines.values())
    text = digraph(drawn, placing=found).source
    assert text.count("pos=") == len(drawn.boxes) + 6


def test_the_program_is_named_without_its_folder():
    text = dot(scene_of("two_shares"))
    assert "demo.py" in text
    assert two_shares().path == "/home/user/demo.py"
    assert "/home" not in text


@pytest.mark.parametrize("card", ["record", "wire"])
def test_cards_explain_what_is_drawn_and_nothing_else(card):
    cut, calm, wrong = (list(legend(scene_of(name), card)) for name in ("odd_ops", "two_shares", "broken"))
    assert "hollow arrow: no gradient flows back" in cut
    assert "dotted line: shares memory" in cut
    assert len(calm) == 2
    assert any(sign.startswith("red:") for sign in wrong)
