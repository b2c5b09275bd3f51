"""The titles of frames: no line runs through them."""

import json

import pytest

from gviz.render.graphviz.frame_titles import BESIDE, Title, TitlePlace, title_places
from gviz.render.graphviz.parallel_lines import trace
from gviz.render.graphviz.process import draw
from gviz.render.graphviz.spline import Spline


def upright(*places):
    return [[(x, 0.0), (x, 100.0)] for x in places]


TITLE = Title(0, 200, 8, 90, 60)


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        ([], TitlePlace(8)),
        ([100], TitlePlace(8)),
        ([40], TitlePlace(40 + BESIDE)),
        ([40, 150], TitlePlace(40 + BESIDE)),
        ([40, 100], TitlePlace(100 + BESIDE)),
    ],
    ids=str,
)
def test_a_title_is_at_the_left_or_next_to_the_lines(lines, place):
    assert title_places([TITLE], upright(*lines)) == [place]


def test_a_frame_without_room_beside_its_lines_must_be_wider():
    narrow = Title(0, 100, 8, 90, 60)
    ((start, wider),) = title_places([narrow], upright(45, 55))
    assert start == 8
    assert wider > 2 * 60 + 10


def test_lines_that_only_pass_below_a_title_do_not_matter():
    assert title_places([TITLE], [[(0.0, 50.0), (200.0, 50.0)], [(30.0, 0.0), (40.0, 80.0)]]) == [TitlePlace(8)]


@pytest.mark.parametrize("width", [1.0, 2.0, 4.0])
def test_in_a_picture_no_line_runs_through_the_title_of_a_frame(width):
    dot = f"""digraph {{ node [shape=box width={width}]; a; c
    subgraph cluster_m {{ label=<<font point-size="9">layer2 Sequential</font>> titlewidth=85 labeljust=l; b }}
    a -> b; a -> b [dir=back]; b -> c; b -> c [dir=back] }}"""
    layout = json.loads(draw(dot, "json"))
    frame = next(one for one in layout["objects"] if "bb" in one)
    x, y = map(float, frame["lp"].split(","))
    start = x - float(frame["lwidth"]) * 72 / 2
    lines = [trace(Spline.of(line["pos"])) for line in layout["edges"]]
    assert not [spot for line in lines for spot in line if start < spot[0] < start + 85 and abs(spot[1] - y) < 6]
    left, _, right, _ = map(float, frame["bb"].split(","))
    assert left < start < start + 85 < right
