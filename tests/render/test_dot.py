"""DOT, the reference of all pictures: its golden files, and what Graphviz reads in it."""

import re
from itertools import combinations

import numpy as np
import pytest
from recording import timeline_of
from render import golden
from render.logs import LOGS, recurrent, two_shares
from render.pictures import boxes_and_lines, read

import gviz.engine as torch
from gviz.events import GradFlowed
from gviz.render.boxes.graph_options import Options
from gviz.render.boxes.graph_structure import structure
from gviz.render.forms import text
from gviz.render.graphviz.coordinates import placing
from gviz.render.graphviz.dot import Manner, digraph, dot
from gviz.render.legend import legend, painted, together
from gviz.render.picture_request import ExportOptions, moment_scene
from gviz.render.scene import scene
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


@pytest.mark.parametrize(("uses", "count"), [(2, 1), (3, 1), (5, 5)])
def test_data_with_few_uses_is_one_box_and_each_use_of_others_looks_like_data(uses, count):
    def program():
        x, y = torch.ones(3), torch.ones(3, requires_grad=True)
        for _ in range(uses):
            y = (y * x).sin().cos().tan().exp()
        loss = y.sum()
        loss.backward()
        return x, y, loss

    timeline = timeline_of(program)
    drawn = moment_scene(timeline, len(timeline), Options(marks=True))
    boxes = [box for box in drawn.boxes if box.title.startswith("x ")]
    assert len(boxes) == count
    assert {painted(box) for box in boxes} == {"constant"}
    assert not any("shared leaf" in sign for sign in legend(drawn))


def test_a_gradient_that_has_not_flowed_is_laid_out_and_not_seen():
    assert dot(scene_of("two_shares", 9)).count("style=invis") == 6
    assert dot(scene_of("two_shares")).count("style=invis") == 0


def test_themes_differ_in_colours_alone():
    drawn = scene_of("odd_ops")
    light, dark = dot(drawn, Manner(LIGHT)), dot(drawn, Manner(DARK))
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
        "incoming: gradient of this pass; .grad: sum over all passes",
        "dashed, pending: not run yet",
        "►, now: acts in this event",
    ]
    assert "dotted line: shares memory" in list(legend(scene_of("odd_ops")))
    assert not any(sign.startswith("T: ") for sign in legend(scene_of("linear_model")))
    ended = list(legend(scene_of("two_shares")))
    assert "thick blue arrow: gradient" in ended
    assert "+=: a contribution that is added" in ended
    assert "released: its saved tensors are released" in ended


@pytest.mark.parametrize("name", LOGS)
def test_every_word_in_a_corner_and_every_width_of_a_line_is_in_the_legend(name):
    for n in range(1, len(LOGS[name]().timeline) + 1):
        drawn = scene_of(name, n)
        said = [sign.partition(": ")[0].split(", ") for sign in legend(drawn)]
        words = [word for signs in said for word in signs]
        for box in drawn.boxes:
            status = re.sub(r"^\d+ of \d+$", "1 of 2", box.status)
            assert box.height == 1 or not status or any(status.startswith(word) for word in words), status
        assert any(sign == ["receives"] for sign in said) == any("receiving" in box.states for box in drawn.boxes)
        thickest = any("now" in edge.states for edge in drawn.edges)
        assert ("thickest arrow" in words) == thickest


def test_pictures_that_follow_one_another_say_each_meaning_once():
    assert together(["►: acts", "running: its rule runs", "►, now: acts", "square: operation", "►: acts"]) == (
        "►, now: acts",
        "running: its rule runs",
        "square: operation",
    )


def meeting():
    """Where two parts of a gradient of six numbers meet: ``2 * ones`` and ``3 * ones``."""

    def program():
        x = torch.ones(3, 2, requires_grad=True)
        h = x.sin()
        (h * 3).sum().add((h * 2).sum()).backward()

    timeline = timeline_of(program)
    flows = [(n, event) for n, event in timeline.select((GradFlowed,)) if event.total is not None]
    return timeline, flows[0][0]


def test_where_gradients_meet_the_parts_on_the_lines_make_the_sum_in_the_box():
    timeline, n = meeting()
    drawn = moment_scene(timeline, n, Options())
    (receiver,) = [box for box in drawn.boxes if "receiving" in box.states]
    assert receiver.status == "receives 2 of 2"
    parts = [np.array(edge.grid, float) for edge in drawn.edges if edge.grid]
    (total,) = [np.array(row.grid, float) for row in receiver.rows if row.label == "grad"]
    np.testing.assert_allclose(sum(parts), total)
    assert len(parts) == 2
    assert {edge.text for edge in drawn.edges if edge.grid} == {
        "+= [[3 3] [3 3] [3 3]]",
        "+= [[2 2] [2 2] [2 2]]",
    }
    assert f"to {receiver.title}" in drawn.caption


def test_the_text_lists_the_parts_in_full_and_its_boxes_stay_low():
    timeline, n = meeting()
    said = text.render(timeline, n, ExportOptions())
    assert "gradient += [[3 3] [3 3] [3 3]]" in said
    assert "gradient += [[2 2] [2 2] [2 2]]" in said
    assert "|g| 4.9 += |g| 7.35" in said


def test_a_part_alone_or_in_one_line_is_no_grid():
    timeline, n = meeting()
    whole = moment_scene(timeline, len(timeline), Options())
    assert sum(bool(edge.grid) for edge in whole.edges) == 2
    assert {edge.text for edge in whole.edges if edge.kind == "gradient" and not edge.grid} >= {"+= |g| 2.45"}
    assert not any(edge.grid for edge in moment_scene(timeline, n, Options(tensors="line")).edges)


def points_on(line):
    """Points all along a curve that Graphviz has laid: every piece of it is bent by four points."""
    bends = np.array([point.split(",") for point in line["pos"].split() if point[1] != ","], float)
    t = np.linspace(0, 1, 50)[:, None]
    weights = np.hstack([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3])
    return np.vstack([weights @ bends[at : at + 4] for at in range(0, len(bends) - 1, 3)])


def test_lines_with_both_ends_in_common_keep_apart():
    """In ``x * x`` two lines of data and two of gradients."""

    def program():
        x = torch.tensor(4.0, requires_grad=True)
        (x * x).backward()

    timeline = timeline_of(program)
    _, lines = read(dot(moment_scene(timeline, len(timeline), Options())))
    ways = [points_on(line) for _, _, line in lines]
    assert len(ways) == 4
    apart = [np.hypot(*(a[:, None] - b).T).min() for a, b in combinations(ways, 2)]
    assert min(apart) > 5


def test_a_placing_gives_every_box_a_position_and_every_data_line_a_way():
    drawn = scene_of("two_shares")
    found = placing(drawn)
    assert found.boxes.keys() == {box.key for box in drawn.boxes}
    assert found.lines.keys() == {f"e{nr}" for nr, e in enumerate(drawn.edges) if e.kind == "forward"}
    assert all(line["pos"].startswith("e,") for line in found.lines.values())
    text = digraph(drawn, Manner(placing=found)).source
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
