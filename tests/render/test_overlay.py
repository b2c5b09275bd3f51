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
from gviz.render import detail_that_fits
from gviz.render.boxes.gradient_bars import starts_bars
from gviz.render.boxes.graph_options import Options
from gviz.render.picture_request import ExportOptions, Part, requested_scene


def train():
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Sigmoid())
    (net(torch.ones(16, 4)) ** 2).mean().backward()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        return torch.tanh(self.lin(x)) * torch.sigmoid(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(3)])
        self.head = nn.Sequential(nn.Linear(4, 2), nn.Sigmoid())

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


TRAINED = timeline_of(train)
BLOCKS = timeline_of(lambda: Net()(torch.ones(16, 4)).sum().backward())


def drawn(overlay, level="auto", timeline=TRAINED, density="short", note=lambda text: None):
    options = ExportOptions(drawing=Options(overlay=overlay, density=density), part=Part(level=level), note=note)
    return requested_scene(timeline, len(timeline), options, fits=True)


def amounts(picture, label="memory"):
    return {box.title.partition(" #")[0]: row.text for box in picture.boxes for row in box.rows if row.label == label}


@pytest.mark.parametrize(
    ("level", "timeline"), [("nodes", TRAINED), ("calls", TRAINED), ("modules", TRAINED), ("modules", BLOCKS)]
)
def test_the_memory_of_the_boxes_adds_up_to_the_peak_at_every_level(level, timeline):
    picture = drawn("memory", level, timeline)
    texts = [row.text for box in picture.boxes for row in box.rows if row.label == "memory"]
    shares = [float(re.search(r"([\d.]+)%", text)[1]) for text in texts]
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


def test_a_box_is_wide_enough_for_its_cost():
    one = timeline_of(lambda: torch.ones(2, requires_grad=True).exp().sum().backward())
    ((row, box),) = [
        (row, box) for box in drawn("memory", timeline=one).boxes for row in box.rows if row.label == "memory"
    ]
    assert row.text == "8 B 100% ▇▇▇▇▇▇▇▇"
    assert row.characters <= box.width


def test_an_overlay_of_memory_keeps_the_level_that_gviz_chooses():
    picture, usual = drawn("memory", timeline=BLOCKS), drawn(None, timeline=BLOCKS)
    assert [box.title for box in picture.boxes] == [box.title for box in usual.boxes]


def test_without_an_overlay_no_box_has_such_a_row():
    assert not amounts(drawn(None))
    assert not drawn(None, "nodes").remark


def test_a_picture_with_an_overlay_is_not_reduced_to_names(monkeypatch):
    monkeypatch.setattr(detail_that_fits, "PAGE", (120.0, 120.0))
    rows = [row for box in drawn(None, timeline=BLOCKS).boxes for row in box.rows]
    assert all(starts_bars(row.text) for row in rows)  # those of equal parts
    assert amounts(drawn("memory", timeline=BLOCKS))


@pytest.mark.parametrize("density", ["brief", "min"])
def test_boxes_without_room_for_an_overlay_are_reported(density):
    notes = []
    picture = drawn("memory", "calls", density=density, note=notes.append)
    assert "the boxes have no room for the overlay memory: labels short or full show it" in notes
    assert "memory" not in picture.remark
    assert not amounts(picture)


def test_the_time_of_each_module_is_in_its_box(monkeypatch):
    found = Costs("time", 100e6, {}, {}, {("Sequential.0", 1): 40e6, ("Sequential.3", 1): 5e6})
    monkeypatch.setattr(module_costs, "_time", lambda timeline, end: found)
    picture = drawn("time")
    assert amounts(picture, "time") == {"0 Linear": "40 ms 40% ▇▇▇", "3 Sigmoid": "5 ms 5.0% ▇"}
    assert "time: forward and backward of each module, of 100 ms for the iteration" in picture.remark


def test_a_box_of_equal_modules_has_the_time_of_all_of_them(monkeypatch):
    found = Costs("time", 100e6, {f"Net.blocks.{at}": 20e6 for at in range(3)}, {}, {("Net.head", 1): 120e6})
    monkeypatch.setattr(module_costs, "_time", lambda timeline, end: found)
    picture = drawn("time", timeline=BLOCKS)
    assert sorted(amounts(picture, "time").values()) == ["120 ms 100% ▇▇▇▇▇▇▇▇", "60 ms 60% ▇▇▇▇▇"]
    assert re.search(r"is one box.*\. time: forward and backward", picture.remark)
    assert not amounts(drawn("time", "calls", timeline=BLOCKS), "time")


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
