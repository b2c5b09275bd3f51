"""Figures for papers and slides: their size, their text, and what they leave out."""

import html
import re
from xml.etree import ElementTree

import pytest
from recording import timeline_of

import gviz
import gviz.engine as builtin
from benchmarks.picture_models import MODELS
from gviz.api.export import export
from gviz.errors import GvizError
from gviz.render.figure import FIGURES, LEAST_TEXT, Figure, figures_for
from gviz.render.graphviz.dot import digraph
from gviz.render.graphviz.scene_drawing import in_figure
from gviz.render.request import ExportOptions, moment_scene
from gviz.render.scene import Options

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("figure") / "t.gviz"
    nn = torch.nn

    def step():
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        x = torch.randn(5, 4)
        loss = nn.functional.cross_entropy(net(x), torch.arange(5) % 3)
        loss.backward()

    with gviz.record(path):
        step()
    return path


def drawn(trace, path, **options):
    notes = []
    export(trace, path, note=notes.append, **options)
    return path.read_bytes(), notes


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_the_width_of_its_place_and_readable_text(trace, tmp_path, name):
    svg, _ = drawn(trace, tmp_path / "f.svg", figure=name)
    width, height = map(float, re.search(rb'<svg width="([\d.]+)pt" height="([\d.]+)pt"', svg).groups())
    figure = FIGURES[name]
    assert width == figure.width
    assert height == figure.height if figure.fills else height <= figure.height
    scale = float(re.search(rb"scale\(([\d.]+)", svg)[1])
    assert figure.least - 0.1 <= 11 * scale <= figure.most + 0.1


def test_a_figure_shows_the_graph_and_nothing_of_the_debugger(trace, tmp_path):
    for options in ({}, {"at": 20}, {"depth": 1}, {"level": "nodes"}):
        svg, _ = drawn(trace, tmp_path / "f.svg", figure=True, force=True, **options)
        texts = [text.text or "" for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]
        words = " ".join(texts)
        assert "loss" in words
        assert not re.search(r"#\d|\[\+\]|►|event|released|freed|legend", words)
        assert b"state-current" not in svg
        assert b"<style" not in svg


def test_the_fonts_of_a_figure_are_in_its_pdf(trace, tmp_path):
    pdf, _ = drawn(trace, tmp_path / "f.pdf", figure="one-column")
    assert b"/FontFile" in pdf
    assert re.search(rb"/MediaBox \[ 0 0 241 ", pdf)


def test_pictures_that_cannot_be_figures_are_drawn_as_usual_with_a_note(trace, tmp_path):
    text, notes = drawn(trace, tmp_path / "f.txt", figure=True)
    assert text == drawn(trace, tmp_path / "g.txt")[0]
    assert notes == ["txt is never a figure: the option figure changes nothing"]
    assert any("scale" in note for note in drawn(trace, tmp_path / "f.svg", figure=True, scale=2)[1])


def test_a_figure_of_an_unknown_kind_is_refused(trace, tmp_path):
    with pytest.raises(GvizError, match="figure"):
        export(trace, tmp_path / "f.svg", figure="three-columns")


def test_text_of_a_figure_is_never_larger_than_that_of_its_page():
    figure = Figure(200, 100, 7, 9)
    assert figure.scale(10, 10) * 11 == pytest.approx(9)
    assert figure.scale(400, 10) == 0.5
    assert figure.scale(10, 400) == 0.25


def transformer_trace(folder):
    torch.manual_seed(0)
    with gviz.record(folder / "big.gviz"):
        MODELS["transformer, 4 layers"](torch)
    return folder / "big.gviz"


def test_a_figure_with_tiny_text_is_refused_and_what_fits_is_named(tmp_path):
    big = transformer_trace(tmp_path)
    with pytest.raises(GvizError, match=r"text of this figure would be 0\.\d pt high, less than 5 pt") as caught:
        export(big, tmp_path / "f.svg", figure="one-column", level="nodes")
    assert "without the option level gviz draws what fits" in caught.value.hint
    assert not (tmp_path / "f.svg").exists()
    svg, notes = drawn(big, tmp_path / "f.svg", figure="one-column")
    assert 11 * float(re.search(rb"scale\(([\d.]+)", svg)[1]) >= 6.9
    assert any("is one box" in note for note in notes)


def test_a_kind_of_figure_in_which_the_text_can_be_read_is_named():
    assert figures_for(400, 800) == ("one-column", "two-columns", "16:9")
    assert figures_for(900, 800) == ("two-columns", "16:9")
    assert figures_for(9000, 800) == ()


def test_a_graph_to_change_can_be_a_figure(trace):
    graph = gviz.make_dot(trace, figure="two-columns")
    svg = graph.pipe(format="svg", encoding="utf-8")
    width = float(re.search(r'<svg width="([\d.]+)pt"', svg)[1])
    assert width == FIGURES["two-columns"].width
    assert "released" not in svg
    assert not re.search(r">[^<]*#\d+", html.unescape(svg))
    whole = gviz.make_dot(trace).pipe(format="svg", encoding="utf-8")
    assert "released" in whole
    with pytest.raises(GvizError, match="figure"):
        gviz.make_dot(trace, figure="three-columns")


def test_a_figure_whose_text_would_be_tiny_shows_less_text_and_says_so(trace, tmp_path):
    svg, notes = drawn(trace, tmp_path / "f.svg", figure="one-column", level="nodes")
    assert 11 * float(re.search(rb"scale\(([\d.]+)", svg)[1]) >= LEAST_TEXT
    assert "boxes show names only: the text of the figure would be less than 5 pt high" in notes


def test_a_figure_with_an_overlay_keeps_the_room_for_it(trace, tmp_path):
    options = {"figure": "one-column", "level": "nodes", "overlay": "memory"}
    with pytest.raises(GvizError, match="text of this figure would be"):
        export(trace, tmp_path / "f.svg", **options)


def test_a_figure_is_turned_if_its_text_is_larger_then():
    def chain():
        x = builtin.tensor(2.0, requires_grad=True)
        y = x
        for _ in range(7):
            y = builtin.sin(y)
        y.backward()
        return x, y

    timeline = timeline_of(chain)
    scene = moment_scene(timeline, len(timeline), Options(density="brief"))
    assert digraph(scene).graph_attr["rankdir"] == "LR"
    auto, kept = ExportOptions(figure="one-column"), ExportOptions(figure="one-column", direction="LR")
    assert in_figure(digraph(scene), FIGURES["one-column"], "svg", auto).graph_attr["rankdir"] == "TB"
    with pytest.raises(GvizError, match="less than 5 pt"):
        in_figure(digraph(scene), FIGURES["one-column"], "svg", kept)
