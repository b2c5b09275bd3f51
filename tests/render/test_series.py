"""Series of pictures, which all have the places of one layout."""

import json

import pytest
from render.logs import two_shares

from gviz.render.forms import series
from gviz.render.graphviz.dot import Manner, digraph
from gviz.render.graphviz.process import draw
from gviz.render.picture_request import ExportOptions
from gviz.render.theme import LIGHT


def test_pictures_of_a_series_keep_the_size_of_the_box_with_two_borders():
    """It grew by its second border, so that arrows ended inside of it and its text was not in the middle."""
    timeline = two_shares().timeline
    (one,) = series.scenes(timeline, [len(timeline)], ExportOptions())
    (root,) = (box for box in one.boxes if box.role == "root")
    place = series._placing([one], ExportOptions(), "gviz")
    placed = digraph(one, Manner(LIGHT, placing=place)).source
    drawn = json.loads(draw(placed, "json", program="nop2"))
    alone = json.loads(draw(digraph(one, Manner(LIGHT)).source, "json"))
    sizes = [
        [float(box[side]) for side in ("width", "height")]
        for picture in (drawn, alone)
        for box in picture["objects"]
        if box["name"] == root.key
    ]
    assert sizes[0] == pytest.approx(sizes[1], abs=0.002)
    (box,) = (box for box in drawn["objects"] if box["name"] == root.key)
    x, y = map(float, box["pos"].split(","))
    width, height = (36 * size for size in sizes[0])
    into = [
        line["pos"].split()[0].removeprefix("e,").split(",")
        for line in drawn["edges"]
        if line["head"] == box["_gvid"] and line.get("dir") != "back"
    ]
    assert into
    for tip in into:
        assert max(abs(float(tip[0]) - x) - width, abs(float(tip[1]) - y) - height) > -0.5
