"""Overlays of pictures: each box shows the memory or the time that it costs."""

import re

import pytest
from recording import timeline_of

import gviz
import gviz.engine as torch
from gviz.engine import nn
from gviz.errors import GvizError
from gviz.explain import module_costs
from gviz.explain.module_costs import Costs
from gviz.render.boxes.graph_options import Options
from gviz.render.request import ExportOptions, Part, requested_scene


def train():
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Sigmoid())
    (net(torch.ones(16, 4)) ** 2).mean().backward()


TRAINED = timeline_of(train)
END = len(TRAINED)


def drawn(overlay, level="auto", timeline=TRAINED, density="short"):
    options = ExportOptions(
        drawing=Options(overlay=overlay, density=density), part=Part(level=level), note=lambda text: None
    )
    return requested_scene(timeline, END, options, fits=True)


def amounts(picture, label="memory"):
    return {box.title.partition(" #")[0]: row.text for box in picture.boxes for row in box.rows if row.label == label}


@pytest.mark.parametrize("level", ["nodes", "calls", "modules"])
def test_the_memory_of_the_boxes_adds_up_to_the_peak_at_every_level(level):
    picture = drawn("memory", level)
    shares = [float(re.search(r"([\d.]+)%", text)[1]) for text in amounts(picture).values()]
    assert len(shares) >= 2
    assert sum(shares) == pytest.approx(100, abs=1)
    assert "memory: saved for backward at the peak" in picture.remark


def test_a_box_has_a_row_and_room_for_it():
    with_it, without = drawn("memory", "calls"), drawn(None, "calls")
    texts = amounts(with_it)
    assert texts["1 Tanh"].startswith("512 B ")
    assert texts["1 Tanh"].endswith("▇")
    heights = {box.title: box.height for box in without.boxes}
    for box in with_it.boxes:
        has_row = box.title.partition(" #")[0] in texts
        assert box.height == heights[box.title] + has_row
        assert len(box.rows) < box.height
        assert all(row.characters <= box.width for row in box.rows if row.label == "memory")


def test_without_an_overlay_no_box_has_such_a_row():
    assert not amounts(drawn(None))
    assert not drawn(None, "nodes").remark


def test_a_picture_with_an_overlay_is_not_reduced_to_names():
    assert amounts(drawn("memory", "auto"))


def test_the_time_of_each_module_is_in_its_box(monkeypatch):
    found = Costs("time", 100e6, {}, {}, {("Sequential.0", 1): 40e6, ("Sequential.3", 1): 5e6})
    monkeypatch.setattr(module_costs, "_time", lambda timeline, end: found)
    picture = drawn("time")
    assert amounts(picture, "time") == {"0 Linear": "40 ms 40% ▇▇▇", "3 Sigmoid": "5 ms 5.0% ▇"}
    assert "time: forward and backward of each module, of 100 ms for the iteration" in picture.remark


def test_a_recording_without_times_is_refused_with_the_command_that_records_them(tmp_path):
    with pytest.raises(GvizError, match="no times of modules") as error:
        drawn("time", timeline=timeline_of(train))
    assert "gviz monitor" in error.value.why


def test_export_takes_an_overlay_and_refuses_others(tmp_path):
    with gviz.record(tmp_path / "run.gviz"):
        train()
    gviz.export(tmp_path / "run.gviz", tmp_path / "graph.txt", overlay="memory")
    assert re.search(r"memory +512 B", (tmp_path / "graph.txt").read_text())
    with pytest.raises(GvizError, match="overlay"):
        gviz.export(tmp_path / "run.gviz", tmp_path / "other.txt", overlay="heat")
