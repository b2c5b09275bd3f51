"""Lines between the columns of a folded graph: through the gaps, and through no box."""

from itertools import pairwise

import pytest

from gviz.render.graphviz.column_lines import (
    APART,
    MARGIN,
    MOST_WIRES,
    PARALLEL,
    Area,
    Column,
    Wire,
    crossings,
    curve,
    gap_widths,
    parallel,
    routed,
)
from gviz.render.graphviz.spline import Spline

HIGH, WIDE, STEP, GAP = 30, 100, 60, 120


def column(at, names, lines=()):
    """Boxes from top to bottom; those in one word of two names are side by side. Columns have equal distances."""
    left, boxes = at * (2 * WIDE + GAP), {}
    for row, word in enumerate(names):
        for place, name in enumerate(word):
            x, y = left + place * (WIDE + 15), -row * STEP
            boxes[name] = Area(x, y - HIGH, x + WIDE, y)
    area = Area(left, min(box.low for box in boxes.values()), max(box.right for box in boxes.values()), 0)
    return Column(area, boxes, lines)


def pieces(path):
    return [(one, other) for one, other in pairwise(path) if one != other]


@pytest.mark.parametrize(
    ("words", "wires", "crossed"),
    [
        (("abc", "xyz"), ["cx"], 0),
        (("abc", "xyz"), ["cx", "az"], 1),  # one of them goes up and one down
        (("abc", "xyz"), ["ax"], 0),  # straight on
        ((["a", "bB", "c"], ["x", "yY", "z"]), ["cx", "bY"], 1),  # b and Y are behind other boxes
        (("abc", "mno", "xyz"), ["cm", "oz", "ax"], 1),  # over a column
        (("abc", "xyz"), ["ax", "ay", "az"], 0),  # a box that is used several times
    ],
    ids=["text", "across", "straight", "behind", "over", "fan"],
)
@pytest.mark.parametrize("lines", [1, 2])
def test_a_line_between_columns_crosses_no_box_and_few_lines(words, wires, crossed, lines):
    columns = [column(at, names) for at, names in enumerate(words)]
    where = {key: at for at, one in enumerate(columns) for key in one.boxes}
    named = [Wire(one, where[one], other, where[other], lines) for one, other in wires]
    routes = routed(columns, named)
    assert routes.free
    assert routes.crossings <= crossed * lines**2
    boxes = {key: box for one in columns for key, box in one.boxes.items()}
    for wire, path in zip(named, routes.corners, strict=True):
        assert path[0][0] <= boxes[wire.source].right
        assert path[-1][0] >= boxes[wire.target].left
        assert all(one[0] == other[0] or one[1] == other[1] for one, other in pieces(path))
        for each, _ in parallel(path, lines):
            for key, box in boxes.items():
                touched = [piece for piece in pieces(each) if box.meets(*piece)]
                assert not touched, (wire, key)


def test_a_line_goes_along_the_gap_between_its_columns():
    columns = [column(0, "abc"), column(1, "xyz")]
    (path,) = routed(columns, [Wire("c", 0, "x", 1)]).corners
    upright = [one[0] for one, other in pieces(path) if one[0] == other[0]]
    assert len(upright) == 1
    assert columns[0].area.right + MARGIN <= upright[0] <= columns[1].area.left - MARGIN
    assert max(y for _, y in path) <= 0


def test_a_gap_has_room_for_all_lanes():
    wires = [Wire("a", 0, f"x{at}", 1, 2) for at in range(4)]
    assert gap_widths(wires, 2) == [4 * PARALLEL + 3 * APART + 2 * MARGIN]
    assert gap_widths([Wire("a", 0, "x", 2)], 3) == [60, 60]


def test_lines_that_would_hide_a_graph_have_no_way():
    columns = [column(0, "a"), column(1, "bcdefghijklm")]
    wires = [Wire("a", 0, key, 1) for key in columns[1].boxes]
    assert len(wires) > MOST_WIRES
    assert not routed(columns, wires).free
    assert routed(columns, wires[:3]).free


def test_parallel_lines_never_cross_and_the_first_is_at_the_left_downwards():
    path = [(0, 0), (50, 0), (50, -80), (120, -80)]
    (first, _), (second, _) = parallel(path, 2)
    assert crossings(first, second) == 0
    assert first[1][0] < second[1][0]
    assert second[1][0] - first[1][0] == PARALLEL


@pytest.mark.parametrize("shift", [-PARALLEL / 2, 0, PARALLEL / 2])
def test_a_curve_has_round_corners_within_its_path(shift):
    path = [(0, 0), (50, 0), (50, -80), (120, -80)]
    points = curve(path, shift)
    assert points[0] == path[0]
    assert points[-1] == path[-1]
    assert len(points) % 3 == 1
    assert all(0 <= x <= 120 and -80 <= y <= 0 for x, y in points)
    for before, knot, after in zip(points[2::3], points[3::3], points[4::3], strict=False):  # without cusps
        across = (knot[0] - before[0]) * (after[1] - knot[1]) - (knot[1] - before[1]) * (after[0] - knot[0])
        along = (knot[0] - before[0]) * (after[0] - knot[0]) + (knot[1] - before[1]) * (after[1] - knot[1])
        assert across == pytest.approx(0, abs=1e-6)
        assert along >= 0


def test_a_piece_that_an_arrow_takes_whole_is_no_corner():
    path = [(0, 0), (50, 0), (50, -80), (50, -80)]
    assert curve(path) == curve(path[:-1])
    assert curve([(0, 0), (0, 0)])[-1] == (0, 0)


def test_a_point_with_one_digit_is_no_mark_of_an_end():
    assert Spline.of("e,9,6 5,578.92 6,400 7,300 8,12").sampled()[0] == (5.0, 578.92)
    assert Spline.of("e,9,6 5,578.92 6,400 7,300 8,12").sampled()[-1] == (9.0, 6.0)
