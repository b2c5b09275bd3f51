"""Graphviz in its own process: it draws, it is stopped, and what it says is passed on."""

import pytest
from recording import timeline_of

import gviz.engine as torch
from gviz.engine import nn
from gviz.errors import GvizError
from gviz.render.boxes.graph_structure import Options, structure
from gviz.render.graphviz import module_frames, process
from gviz.render.graphviz.process import TooSlowError, complaints, draw, has_font
from gviz.render.picture_request import ExportOptions
from gviz.render.scene import scene


@pytest.mark.parametrize(("kind", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_it_draws(kind, start):
    assert draw("digraph { a -> b }", kind).startswith(start)


def test_text_beyond_ascii_arrives():
    assert "Größe 重み".encode() in draw('digraph { a [label="Größe 重み"] }', "svg")


@pytest.mark.parametrize(
    ("dot", "why"), [("digraph {", "syntax error"), ("digraph { a [label=<<b>x</i>>] }", "mismatched tag")]
)
def test_what_graphviz_says_is_passed_on(dot, why):
    with pytest.raises(GvizError, match="Graphviz cannot draw this graph") as caught:
        draw(dot, "svg")
    assert why in caught.value.why
    assert "Traceback" not in caught.value.why


def test_it_is_stopped_when_its_time_is_over(monkeypatch, tmp_path):
    sleeper = tmp_path / "sleeper.py"
    sleeper.write_text("import time; time.sleep(60)")
    monkeypatch.setattr(process, "WORKER", sleeper)
    with pytest.raises(TooSlowError, match=r"did not finish in 0\.3 s"):
        draw("digraph {}", "svg", timeout=0.3)


def test_no_dot_on_the_path_is_ever_called(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert draw("digraph { a }", "svg")


def test_a_library_of_the_same_name_in_the_working_folder_is_not_taken(monkeypatch, tmp_path):
    (tmp_path / "pygraphviz.py").write_text("raise SystemExit('taken')")
    monkeypatch.chdir(tmp_path)
    assert draw("digraph { a }", "svg")


def test_a_missing_library_is_named(monkeypatch, tmp_path):
    (tmp_path / "pygraphviz.py").write_text("""raise ModuleNotFoundError("No module named 'pygraphviz'")""")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(GvizError, match="pictures need pygraphviz") as caught:
        draw("digraph { a }", "svg")
    assert caught.value.exit_code == 4


def test_notes_about_fonts_are_no_complaint():
    assert complaints("Fontconfig warning: x\nWarning: graph has 2000 nodes\n") == []
    assert complaints("Fontconfig error: y\nError: bad\n in label\nTraceback (most recent\n z") == [
        "Error: bad",
        "in label",
    ]


def test_a_machine_with_and_without_fonts(monkeypatch, tmp_path):
    assert isinstance(has_font(), bool)
    config = tmp_path / "fonts.conf"
    config.write_text(f"<?xml version='1.0'?><fontconfig><dir>{tmp_path}</dir></fontconfig>")
    monkeypatch.setenv("FONTCONFIG_FILE", str(config))
    assert not has_font()


def test_of_frames_that_stretch_a_picture_the_inner_ones_are_left_out(monkeypatch):
    def size(graphs, kind, timeout):
        """Ten times as large as a frame, and larger by each."""
        return [b'{"bb": "0,0,1,%d"}' % (10 + graph.count("subgraph")) for graph in graphs]

    def program():
        layers = [nn.Sequential(nn.Sequential(nn.Linear(1, 1))) for _ in range(3)]
        nn.Sequential(*layers)(torch.ones(1)).sum().backward()

    timeline = timeline_of(program)
    whole = scene(
        structure(timeline, timeline.iterations[0], Options(clusters=True)), timeline, timeline.at(len(timeline))
    )
    monkeypatch.setattr(module_frames, "draw_all", size)
    for one, deepest in ((whole, 4), (module_frames.settled(whole, ExportOptions(), "gviz"), 3)):
        assert max(len(box.enclosing_modules) for box in one.boxes) == deepest
