"""The simple layout as Graphviz gets it: boxes apart, lines round them, nothing longer than Graphviz reads."""

from render.logs import recurrent, two_shares

from gviz.render.boxes.graph_options import Options
from gviz.render.boxes.graph_structure import structure
from gviz.render.graphviz.coordinates import placing
from gviz.render.scene import scene


def placed(script, **options):
    timeline = script.timeline
    shape = structure(timeline, timeline.iterations[0], Options(**options))
    drawn = scene(shape, timeline, timeline.at(len(timeline)))
    return drawn, placing(drawn)


def areas(found):
    """Left, top, right and bottom of every box, in points with y downwards."""
    for key, box in found.boxes.items():
        x, y = map(float, box["pos"].split(","))
        width, height = float(box["width"]) * 72, float(box["height"]) * 72
        yield key, (x - width / 2, -y - height / 2, x + width / 2, -y + height / 2)


def points(line):
    return [tuple(map(float, point.removeprefix("e,").split(","))) for point in line["pos"].split()]


def test_boxes_do_not_overlap():
    boxes = [area for _, area in areas(placed(recurrent(6))[1])]
    for number, (left, top, right, bottom) in enumerate(boxes):
        for other in boxes[:number]:
            assert left >= other[2] or right <= other[0] or top >= other[3] or bottom <= other[1]


def test_lines_begin_at_their_source_end_at_their_target_and_cross_no_box():
    drawn, found = placed(two_shares())
    boxes = dict(areas(found))
    for name, line in found.lines.items():
        edge = drawn.edges[int(name[1:])]
        source, target = edge.source, edge.target
        end, start, *way = points(line)
        assert abs(-start[1] - boxes[source][3]) < 1
        assert abs(-end[1] - boxes[target][1]) < 1
        assert boxes[source][0] < start[0] < boxes[source][2]
        assert boxes[target][0] < end[0] < boxes[target][2]
        for left, top, right, bottom in boxes.values():
            assert not any(left < x < right and top + 1 < -y < bottom - 1 for x, y in way)


def test_only_corners_are_said_and_no_line_is_too_long_to_read():
    _, found = placed(recurrent(150), split_above=10**6)
    assert len(found.lines) == 451
    assert max(len(line["pos"]) for line in found.lines.values()) < 16000
    straight = min(found.lines.values(), key=lambda line: len(line["pos"]))
    assert len(points(straight)) == 5
