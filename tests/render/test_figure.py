"""Figures for papers and slides: their size, their text, and what they leave out."""

import html
import re
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from recording import timeline_of

import gviz
import gviz.engine as builtin
from benchmarks.picture_models import MODELS
from gviz.api.export import export
from gviz.errors import GvizError
from gviz.render import detail_that_fits
from gviz.render.boxes.folding import Filter
from gviz.render.boxes.gradient_bars import BARS, bars, is_logarithmic
from gviz.render.boxes.graph_options import Options
from gviz.render.figure import FIGURES, LEAST_TEXT, Figure, as_figure, figures_for, page_within
from gviz.render.forms import png_and_pdf
from gviz.render.forms.series import SECONDS, seconds
from gviz.render.graphviz import column_choice, column_lines, figure_detail, scene_drawing
from gviz.render.graphviz.column_division import division, is_chain, parts
from gviz.render.graphviz.dot import digraph
from gviz.render.graphviz.figure_size import in_figure
from gviz.render.picture_request import ExportOptions, Part, last_moment, moment_scene, requested_scene
from gviz.render.theme import LIGHT
from gviz.trace import load

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
        assert ("loss" in words) == ("at" not in options)  # at event 20 it is not made yet
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


def test_a_figure_keeps_the_labels_that_were_requested(trace, tmp_path):
    with pytest.raises(GvizError, match="text of this figure would be") as caught:
        export(trace, tmp_path / "f.svg", figure="one-column", level="nodes", labels="short")
    assert "without the options level and labels gviz draws what fits" in caught.value.hint


DEEP = {
    "encoder": lambda nn: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 12, enable_nested_tensor=False
    ),
    "mlp": lambda nn: nn.Sequential(*(layer for _ in range(8) for layer in (nn.Linear(16, 16), nn.ReLU()))),
}


@pytest.mark.parametrize("model", DEEP)
def test_a_wider_figure_shows_no_fewer_boxes(tmp_path, model):
    torch.manual_seed(0)
    with gviz.record(tmp_path / "t.gviz"):
        DEEP[model](torch.nn)(torch.randn(3, 7, 16)).mean().backward()
    svgs = {name: drawn(tmp_path / "t.gviz", tmp_path / f"{name}.svg", figure=name)[0] for name in FIGURES}
    boxes = {name: svg.count(b'class="node') for name, svg in svgs.items()}
    assert boxes["two-columns"] >= boxes["one-column"] > 1
    assert 11 * float(re.search(rb"scale\(([\d.]+)", svgs["two-columns"])[1]) >= 6.9


class Mixture(torch.nn.Module):
    """A sum of experts, each for some rows: a wide graph whose smallest picture is too large for one column."""

    def __init__(self):
        super().__init__()
        nn = torch.nn
        self.gate = nn.Linear(16, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 16)) for _ in range(4))

    def forward(self, x):
        scores = torch.softmax(self.gate(x), -1)
        weights, numbers = scores.topk(2, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows, slots = torch.where(numbers == number)
            out = out.index_add(0, rows, weights[rows, slots, None] * expert(x[rows]))
        return out, scores.mean(0).pow(2).sum() * len(self.experts)


def test_what_fits_no_column_sets_no_limit_and_its_hint_names_what_helps(tmp_path):
    torch.manual_seed(0)
    with gviz.record(tmp_path / "t.gviz"):
        out, balance = Mixture()(torch.randn(12, 16))
        (torch.nn.functional.mse_loss(out, torch.randn(12, 16)) + 0.01 * balance).backward()
    with pytest.raises(GvizError, match="text of this figure would be") as caught:
        export(tmp_path / "t.gviz", tmp_path / "f.svg", figure="one-column")
    assert "only= and node= draw a part" in caught.value.hint
    assert "labels" not in caught.value.hint
    svg, _ = drawn(tmp_path / "t.gviz", tmp_path / "g.svg", figure="two-columns")
    assert 11 * float(re.search(rb"scale\(([\d.]+)", svg)[1]) >= LEAST_TEXT


def test_a_small_figure_counts_no_boxes_it_has_not_saved(tmp_path):
    with gviz.record(tmp_path / "t.gviz"):
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        for _ in range(3):
            (((w * torch.tensor([3.0, 4.0])).sum() - 1) ** 2).backward()
            with torch.no_grad():
                w -= 0.01 * w.grad
    _, notes = drawn(tmp_path / "t.gviz", tmp_path / "f.svg", figure="two-columns")
    counts = re.findall(r"(\d+) nodes in (\d+) boxes", " ".join(notes))
    assert all(int(boxes) < int(nodes) for nodes, boxes in counts)


def test_the_page_of_one_column_is_within_that_of_two_but_not_within_a_slide():
    assert page_within("two-columns") == FIGURES["one-column"].page
    assert page_within("16:9") is None
    assert page_within("one-column") is None


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


def test_a_png_figure_is_opaque_and_as_wide_as_its_place_when_it_is_imported(trace, tmp_path):
    from PIL import Image

    drawn(trace, tmp_path / "f.png", figure="one-column")
    with Image.open(tmp_path / "f.png") as image:
        assert image.mode == "RGB"
        assert image.info["dpi"] == pytest.approx((300, 300), rel=1e-3)
        assert image.width / image.info["dpi"][0] == pytest.approx(FIGURES["one-column"].width / 72, rel=5e-3)


@pytest.mark.parametrize(("scale", "dpi"), [(None, 96), (2.0, 192)])
def test_a_png_has_the_resolution_of_its_scale(trace, tmp_path, scale, dpi):
    from PIL import Image

    drawn(trace, tmp_path / "f.png", scale=scale)
    with Image.open(tmp_path / "f.png") as image:
        assert image.mode == "RGB"
        assert image.info["dpi"] == pytest.approx((dpi, dpi), rel=1e-3)


def test_a_very_large_png_is_written_as_graphviz_paints_it(trace, tmp_path, monkeypatch):
    from PIL import Image

    monkeypatch.setattr(png_and_pdf, "MOST_PIXELS", 100)
    drawn(trace, tmp_path / "f.png")
    with Image.open(tmp_path / "f.png") as image:
        assert "dpi" not in image.info


@pytest.mark.parametrize(("size", "least"), [((90.0, 90.0), 52), ((300.0, 90.0), 0)])
def test_a_column_sets_a_limit_only_if_something_fits_into_it(monkeypatch, size, least):
    narrow, wide = (100.0, 100.0), (200.0, 200.0)
    words = {page: Options(compact=page == narrow, graph_filter=Filter(calls=True)) for page in (narrow, wide)}
    limits = []

    def fitting(timeline, n, views, request, least=0):
        limits.append(least)
        return words[request.page]

    monkeypatch.setattr(detail_that_fits, "_fitting", fitting)
    monkeypatch.setattr(detail_that_fits, "count", lambda timeline, iteration, options: 52 if options.compact else 44)
    monkeypatch.setattr(detail_that_fits, "structure", lambda *_: None)
    monkeypatch.setattr(detail_that_fits, "_estimate", lambda *_: [(None, size)])
    request = detail_that_fits.LevelRequest(page=wide, within=narrow)
    detail_that_fits._no_fewer(None, 1, SimpleNamespace(iteration=None), request)
    assert limits[-1] == least


def test_a_long_chain_is_folded_into_columns_in_which_its_text_can_be_read(tmp_path):
    torch.manual_seed(0)
    layers = [layer for n in range(16) for layer in (torch.nn.Linear(16 + n, 17 + n), torch.nn.ReLU())]
    with gviz.record(tmp_path / "t.gviz"):
        torch.nn.Sequential(*layers, torch.nn.Linear(32, 2))(torch.randn(4, 16)).sum().backward()
    svg, notes = drawn(tmp_path / "t.gviz", tmp_path / "f.svg", figure="16:9")
    assert any("columns" in note for note in notes)
    assert 11 * float(re.search(rb"scale\(([\d.]+)", svg)[1]) >= 12
    assert svg.count(b'class="node') >= 33


def as_it_is(timeline, n, options, found):
    """No columns that fill the slide."""


class Ladder(torch.nn.Module):
    """A chain of layers, and with `skips` the sums of a U-Net, which cross it."""

    def __init__(self, skips):
        super().__init__()
        self.skips = skips
        self.layers = torch.nn.ModuleList(torch.nn.Linear(6 + n, 7 + n if n < 11 else 6) for n in range(12))
        self.joins = torch.nn.ModuleList(torch.nn.Linear(6, 6) for _ in range(2))

    def forward(self, x):
        first = y = x
        for layer in self.layers:
            y = layer(y)
        for join in self.joins:
            y = join(y + first) if self.skips else join(y)
        return y


@pytest.mark.parametrize("skips", [False, True], ids=["chain", "skips"])
def test_only_a_chain_with_small_text_is_folded_on_a_slide(tmp_path, skips):
    torch.manual_seed(0)
    with gviz.record(tmp_path / "t.gviz"):
        Ladder(skips)(torch.nn.Linear(6, 6)(torch.randn(4, 6))).sum().backward()
    svg, notes = drawn(tmp_path / "t.gviz", tmp_path / "f.svg", figure="16:9", depth=1)
    folded = [note for note in notes if "columns, without frames: in one column the text would be small" in note]
    assert bool(folded) is not skips
    if not skips:  # in one column it is less than 6 points high
        assert 11 * float(re.search(rb"scale\(([\d.]+)", svg)[1]) >= 9


def test_a_chain_whose_text_is_large_enough_has_one_column_on_a_slide(tmp_path):
    with gviz.record(tmp_path / "t.gviz"):
        torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))(torch.randn(2, 3)).sum().backward()
    _, notes = drawn(tmp_path / "t.gviz", tmp_path / "f.svg", figure="16:9", depth=1)
    assert not any("columns" in note for note in notes)


def test_a_chain_is_folded_on_a_slide_only_if_its_text_becomes_much_larger(tmp_path, monkeypatch):
    with gviz.record(tmp_path / "t.gviz"):
        Ladder(False)(torch.nn.Linear(6, 6)(torch.randn(4, 6))).sum().backward()
    monkeypatch.setattr(column_choice, "LARGER", 100.0)
    _, notes = drawn(tmp_path / "t.gviz", tmp_path / "f.svg", figure="16:9", depth=1)
    assert not any("columns" in note for note in notes)


def lines_between(*pairs, columns=1):
    """A scene of boxes with these lines."""
    names = dict.fromkeys(name for pair in pairs for name in pair)
    edges = [SimpleNamespace(source=one, target=other, kind="data", slot=0) for one, other in pairs]
    boxes = [SimpleNamespace(key=name, role=ROLES.get(name, "op"), states=STATES.get(name, ())) for name in names]
    return SimpleNamespace(boxes=boxes, edges=edges, columns=columns)


ROLES, STATES = {"i": "constant", "p": "constant"}, {"m": ("untracked",)}


@pytest.mark.parametrize(
    ("pairs", "chain"),
    [
        (("ab", "bc", "cd"), True),
        (("ab", "bc", "cd", "xd", "yb"), True),  # data and labels
        (("ab", "bc", "cd", "bd"), False),
        (("ab", "bc", "bd", "ce", "de"), False),
        (("ab", "bc", "cd", "xy", "yc"), False),
    ],
    ids=["line", "leaves", "skip", "branches", "two-sources"],
)
def test_a_chain_has_one_box_with_inputs_on_each_level(pairs, chain):
    assert is_chain(lines_between(*pairs)) is chain


@pytest.mark.parametrize("count", range(2, 9))
@pytest.mark.parametrize("pairs", [("ab",), ("ab", "bc"), ("ab", "bc", "cd", "xd"), ("ab", "bc", "cd", "de", "ef")])
def test_no_column_of_a_folded_chain_is_empty(pairs, count):
    scene = lines_between(*pairs, columns=count)
    found = division(scene).column
    assert sorted({*found.values()}) == [*range(len({*found.values()}))]
    assert all(found[one] <= found[other] for one, other in pairs)
    assert found.keys() == {box.key for box in scene.boxes}


def test_a_short_chain_of_wide_boxes_is_a_figure(tmp_path):
    torch.manual_seed(0)
    w = torch.randn(3, 3, requires_grad=True)
    with gviz.record(tmp_path / "t.gviz"):
        (torch.randn(3, 3) @ w).tanh().exp().sum().backward()
    svg, notes = drawn(tmp_path / "t.gviz", tmp_path / "f.svg", figure="16:9", labels="full")
    assert any("folded into" in note for note in notes)
    assert 11 * float(re.search(rb"scale\(([\d.]+)", svg)[1]) >= LEAST_TEXT


@pytest.mark.parametrize("skips", [False, True], ids=["chain", "skips"])
def test_a_figure_of_what_is_no_chain_has_modules_collapsed_until_its_text_can_be_read(tmp_path, monkeypatch, skips):
    with gviz.record(tmp_path / "t.gviz"):
        Ladder(skips)(torch.nn.Linear(6, 6)(torch.randn(4, 6))).sum().backward()
    timeline, notes = load(tmp_path / "t.gviz"), []
    monkeypatch.setattr(figure_detail, "_can_be_read", lambda scene, options: options.part.depth == 1)
    monkeypatch.setattr(figure_detail, "in_full_width", as_it_is)
    options = ExportOptions(figure="16:9", note=notes.append)
    scene = figure_detail.picture_scene(timeline, len(timeline), options)
    assert any(note.startswith("modules collapsed, as with --depth 1") for note in notes) is skips
    assert (scene.columns > 1) is not skips
    notes.clear()
    figure_detail.picture_scene(timeline, len(timeline), replace(options, part=Part(level="nodes")))
    assert not any("modules collapsed" in note for note in notes)  # what the user chose is kept


def test_tabs_of_the_topmost_boxes_are_inside_a_figure(tmp_path):
    def program():
        net = builtin.nn.Sequential(builtin.nn.Linear(2, 2), builtin.nn.ReLU())
        one, other = net(builtin.ones(1, 2)), net(builtin.ones(1, 2))
        (one + other).sum().backward()
        (one - other).abs().max()

    path = tmp_path / "t.svg"
    timeline = timeline_of(program)
    export(timeline, path, figure="16:9", level="modules", at=len(timeline), note=lambda _: None)
    svg = path.read_text()
    down = float(re.search(r"translate\([-\d.]+ ([-\d.]+)\)", svg)[1])
    tabs = re.findall(r'role-module[^>]*>\s*<title>[^<]*</title>\s*<polygon [^>]*points="([^"]*)"', svg)
    tops = [min(float(point.split(",")[1]) for point in tab.split()) for tab in tabs]
    assert tops
    assert min(tops) + down > 0.5


def test_a_figure_does_not_name_the_node_that_acts():
    def program():
        (builtin.ones(2, requires_grad=True) * 2).max()

    timeline = timeline_of(program)
    drawn = moment_scene(timeline, len(timeline), Options())
    assert "now" in {box.status for box in drawn.boxes}
    assert "now" not in {box.status for box in as_figure(drawn).boxes}


def test_a_figure_names_the_tensors_of_rules_which_have_no_numbers():
    def program():
        x = builtin.tensor(3.0, requires_grad=True)
        (x.sin() * x.cos() + (x * x).sqrt() * (x + x).sqrt()).backward()

    timeline = timeline_of(program)
    words = Options(density="full", content="all", numbered=False)
    rows = [row for box in moment_scene(timeline, len(timeline), words).boxes for row in box.rows]
    assert not [row for row in rows if "#" in f"{row.label} {row.text}"]
    labels = {row.label for row in rows}
    assert labels >= {"to x", "to sin", "to cos", "to self", "to other"}
    assert "to sqrt" not in labels  # two of them: each has the name of its parameter
    assert any("g * cos" in row.text for row in rows)


def small_trace(folder):
    with gviz.record(folder / "t.gviz"):
        x = builtin.tensor([3.0, 4.0], requires_grad=True)
        y = x * 2
        loss = (y * y).sum()
        loss.backward()
    return folder / "t.gviz"


def words_of(svg):
    return [html.unescape(text.text or "") for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_a_figure_of_an_earlier_moment_leaves_out_what_is_made_later(tmp_path):
    trace = small_trace(tmp_path)
    earlier, _ = drawn(trace, tmp_path / "f.svg", figure=True, at="y")
    assert {"x", "y = mul 2"} <= {*words_of(earlier)}
    assert "loss = sum" not in words_of(earlier)
    assert b"stroke-dasharray" not in earlier
    usual, _ = drawn(trace, tmp_path / "g.svg", at="y")
    assert any(word.startswith("loss = sum") for word in words_of(usual))
    assert b"stroke-dasharray" in usual


def test_an_animated_figure_has_no_caption_and_its_boxes_appear_when_they_are_made(tmp_path):
    trace = small_trace(tmp_path)
    svg, notes = drawn(trace, tmp_path / "f.anim.svg", figure="two-columns")
    assert not [note for note in notes if "figure" in note]
    root = ElementTree.fromstring(svg)
    assert float(root.get("width").removesuffix("pt")) == FIGURES["two-columns"].width
    assert not re.search(r"event \d|#\d|►|pending", " ".join(words_of(svg)))
    loss = [group for group in root.iter(f"{SVG}g") if "role-root" in group.get("class", "")]
    assert loss
    assert not [group for group in loss if "state-pending" in group.get("class") and len(group) > 1]


@pytest.mark.parametrize("figure", ["one-column", "16:9"])
def test_a_gif_and_a_series_can_be_figures(tmp_path, figure):
    from PIL import Image

    trace = small_trace(tmp_path)
    export(trace, tmp_path / "f.gif", figure=figure)
    pictures = export(trace, tmp_path / "s%02d.png", figure=figure)
    sizes = set()
    for picture in pictures:
        with Image.open(picture) as image:
            sizes.add(image.size)
    ((width, _),) = sizes
    assert abs(width - FIGURES[figure].width * 300 / 72) <= 1
    result = tuple(bytes.fromhex(LIGHT.paints["root"].fill[1:]))
    with Image.open(tmp_path / "f.gif") as gif:
        assert max(gif.size) <= 2400
        shown = []
        for at in range(gif.n_frames):
            gif.seek(at)
            shown.append(result in {colour for _, colour in gif.convert("RGB").getcolors(1 << 20)})
    assert shown == sorted(shown)
    assert {*shown} == {False, True}


def test_a_series_has_a_picture_for_each_visible_change(trace, tmp_path):
    pictures, notes = [], []
    for name in ("s%02d.svg", "s%02d.dot"):
        pictures.append(export(trace, tmp_path / name, figure=True, moments="backward", note=notes.append))
        texts = [picture.read_bytes() for picture in pictures[-1]]
        assert len(texts) > 3
        assert not [1 for one, other in pairwise(texts) if one == other]
    assert len(pictures[0]) == len(pictures[1])
    found = [re.fullmatch(r"(\d+) moments, (\d+) pictures: one for each visible change", note) for note in notes]
    assert [(int(match[1]) > 2 * int(match[2]), match[2]) for match in found if match] == [
        (True, str(len(pictures[0])))
    ] * 2


def test_each_picture_of_a_moving_figure_is_seen_for_the_same_time(trace, tmp_path):
    from PIL import Image

    (path,) = export(trace, tmp_path / "f.gif", figure=True, moments="backward")
    times = []
    with Image.open(path) as gif:
        for at in range(gif.n_frames):
            gif.seek(at)
            times.append(gif.info["duration"])
    assert {*times[:-1]} == {800}
    assert times[-1] == 3000


def test_a_moving_picture_of_many_moments_is_faster():
    assert seconds(2) == seconds(150) == SECONDS
    assert 1000 * seconds(1000) == pytest.approx(120)
    assert seconds(100_000) == 0.02  # faster ones are slow in most viewers


def test_the_letters_of_a_figure_have_a_key_unless_the_legend_is_off(trace, tmp_path):
    svg, _ = drawn(trace, tmp_path / "f.svg", figure="two-columns", level="nodes")
    assert "|g|: norm of a gradient" in words_of(svg)
    assert "L: loss" in words_of(drawn(small_trace(tmp_path), tmp_path / "l.svg", figure="one-column")[0])
    svg, _ = drawn(trace, tmp_path / "g.svg", figure="two-columns", level="nodes", legend=False)
    assert not [word for word in words_of(svg) if word.startswith(("L: ", "|g|: "))]


def test_a_figure_without_letters_has_no_key(tmp_path):
    svg, _ = drawn(small_trace(tmp_path), tmp_path / "f.svg", figure=True, at="y")
    assert not [word for word in words_of(svg) if ": " in word]


def chain_of(shape, engine):
    w1 = engine.full(shape, 0.5).requires_grad_()
    w2 = engine.full(shape, -1.25).requires_grad_()
    x, y = engine.full(shape, 2.0), engine.full(shape, 0.25)
    L = ((w2 * engine.tanh(w1 * x) - y) ** 2).sum()
    L.backward()


@pytest.mark.parametrize("engine", [torch, builtin], ids=["torch", "builtin"])
@pytest.mark.parametrize("shape", [(2,), (2, 2), (3, 5)], ids=str)
@pytest.mark.parametrize(("figure", "direction"), [("16:9", "auto"), ("16:9", "LR"), ("one-column", "auto")])
def test_a_figure_of_a_small_graph_has_values_and_each_gradient_in_the_same_form(
    tmp_path, engine, shape, figure, direction
):
    with gviz.record(tmp_path / "t.gviz"):
        chain_of(shape, engine)
    svg, notes = drawn(tmp_path / "t.gviz", tmp_path / "f.svg", figure=figure, direction=direction)
    texts = [text.text or "" for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    blue = [
        text.text
        for text in ElementTree.fromstring(svg).iter(f"{SVG}text")
        if text.get("fill") == LIGHT.texts["grad"] and text.text != "1"
    ]
    assert len(blue) == 7
    norms = [text for text in blue if text.startswith("|g|")]
    assert len(norms) in (0, 7)
    assert all(text.startswith(("[", "|g|")) for text in blue)
    if shape == (2,):
        assert not norms
        assert not notes
    assert any(re.fullmatch(r"\d+\.?\d*", text) for text in texts if text != "1")  # the value of L
    assert "boxes show names only" not in str(notes)
    assert "call" not in str(notes)  # each box is one node


def test_narrow_boxes_that_list_elements_show_the_shapes_of_other_tensors(tmp_path):
    with gviz.record(tmp_path / "t.gviz"):
        images, labels = torch.randn(4, 3, 16, 16), torch.arange(4)
        x = torch.relu(torch.nn.Conv2d(3, 8, 3, padding=1)(images))
        torch.nn.functional.cross_entropy(torch.nn.Linear(8, 10)(x.mean((2, 3))), labels).backward()
    timeline = load(tmp_path / "t.gviz")
    drawing = Options(density="brief", lists_elements=True, stacks=True, numbered=False, marks=True)
    for level in ("calls", "nodes"):
        options = ExportOptions(drawing=drawing, part=Part(level=level), keeps_labels=True, note=lambda _: None)
        scene = requested_scene(timeline, last_moment(timeline), options, as_picture=True)
        texts = [row.text for box in scene.boxes for row in box.rows]
        assert "(4,3,16,16)" in texts
        assert "(4,8,16,16)" in texts
        assert "…" not in texts


def scalars():
    """Ten scalar operations, as in a first lecture about autograd."""
    a, b, c, f = (torch.tensor(number, requires_grad=True) for number in (2.0, -3.0, 10.0, -2.0))
    e = a * b
    d = e + c
    L = d * f
    o = torch.tanh(L / 10 + a)
    o.backward()


def adversarial():
    """A generator and a discriminator whose layers have equal names."""
    nn = torch.nn
    G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
    nn.functional.binary_cross_entropy_with_logits(D(G(torch.randn(8, 4))), torch.ones(8, 1)).backward()


@pytest.mark.parametrize(
    ("program", "most", "form"), [(scalars, 70, "from left to right"), (adversarial, 110, "columns, without frames")]
)
def test_a_figure_across_two_columns_is_no_narrow_strip(tmp_path, program, most, form):
    with gviz.record(tmp_path / "t.gviz"):
        program()
    timeline = load(tmp_path / "t.gviz")
    notes = []
    options = ExportOptions(figure="two-columns", note=notes.append)
    scene = figure_detail.picture_scene(timeline, last_moment(timeline), options)
    _, (_, high), text = figure_detail.fit(scene, options)
    assert text >= FIGURES["two-columns"].least - 0.05
    assert high * text / 11 * 25.4 / 72 < most
    assert any(form in note for note in notes)
    assert all(box.rows for box in scene.boxes)
    titles = [box.title for box in scene.boxes if box.role == "module"]
    assert len({*titles}) == len(titles)


def test_the_direction_of_a_figure_across_two_columns_that_was_requested_is_kept(tmp_path):
    with gviz.record(tmp_path / "t.gviz"):
        scalars()
    timeline = load(tmp_path / "t.gviz")
    options = ExportOptions(figure="two-columns", direction="TB", note=lambda _: None)
    scene = figure_detail.picture_scene(timeline, last_moment(timeline), options)
    assert scene.columns == 1
    assert scene.flow != "LR"


def small_resnet():
    """A chain of eleven boxes whose names have larger text in one column than their values in two."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, cin, cout, stride=1):
            super().__init__()
            self.conv1, self.conv2 = nn.Conv2d(cin, cout, 3, stride, 1), nn.Conv2d(cout, cout, 3, 1, 1)
            self.bn1, self.bn2 = nn.BatchNorm2d(cout), nn.BatchNorm2d(cout)
            self.short = nn.Conv2d(cin, cout, 1, stride) if stride != 1 else nn.Sequential()

        def forward(self, x):
            out = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
            return torch.relu(out + self.short(x))

    class ResNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.bn = nn.Conv2d(3, 8, 3, 1, 1), nn.BatchNorm2d(8)
            self.layer1 = nn.Sequential(Block(8, 8), Block(8, 8))
            self.layer2 = nn.Sequential(Block(8, 16, 2), Block(16, 16))
            self.head = nn.Linear(16, 10)

        def forward(self, x):
            x = self.layer2(self.layer1(torch.relu(self.bn(self.stem(x)))))
            return self.head(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))

    images, labels = torch.randn(4, 3, 16, 16), torch.arange(4)
    loss = nn.functional.cross_entropy(ResNet()(images), labels)
    loss.backward()


def test_a_chain_of_names_on_a_slide_is_folded_if_it_then_shows_values(tmp_path):
    with gviz.record(tmp_path / "t.gviz"):
        small_resnet()
    timeline = load(tmp_path / "t.gviz")
    options = ExportOptions(figure="16:9", note=lambda _: None)
    scene = figure_detail.picture_scene(timeline, last_moment(timeline), options)
    assert scene.columns > 1
    assert all(box.rows for box in scene.boxes)


def deep(width):
    """Record layers whose gradients vanish, and a loop that prints their norms."""
    torch.manual_seed(0)
    nn = torch.nn
    net = nn.Sequential(*(layer for _ in range(10) for layer in (nn.Linear(width, width), nn.Sigmoid())))
    loss = nn.functional.mse_loss(net(torch.randn(16, width)), torch.randn(16, width))
    loss.backward()
    return [(parameter.grad.norm().item()) for parameter in net.parameters()]


def test_a_figure_says_that_bars_have_a_logarithmic_scale_only_if_they_do(tmp_path):
    with gviz.record(tmp_path / "deep.gviz"):
        deep(8)
    svg, _ = drawn(tmp_path / "deep.gviz", tmp_path / "f.svg", figure="16:9")
    assert "bars: log scale" in " ".join(words_of(svg))
    assert is_logarithmic(bars([1e-9, 1.0]))
    assert not is_logarithmic(bars([0.5, 1.0]))
    assert bars([0.5, 1.0])[:2] == "▅█"
    assert not is_logarithmic(bars([0.0, 1.0]))
    assert not is_logarithmic("·")


@pytest.mark.parametrize("figure", ["one-column", "two-columns", "16:9"])
def test_the_bars_of_equal_parts_stay_in_a_figure_with_less_text(tmp_path, figure):
    with gviz.record(tmp_path / "deep.gviz"):
        deep(8)
    svg, _ = drawn(tmp_path / "deep.gviz", tmp_path / "f.svg", figure=figure)
    words = words_of(svg)
    assert any(set(word[:4]) <= set(BARS) for word in words if word)
    assert any(word.endswith("bars: log scale") for word in words)
    assert any("0–19 Linear, Sigmoid ×10" in word for word in words)


def test_requested_names_are_names_only(tmp_path):
    with gviz.record(tmp_path / "deep.gviz"):
        deep(8)
    svg, _ = drawn(tmp_path / "deep.gviz", tmp_path / "f.svg", figure=True, labels="min")
    assert not set(BARS) & set("".join(words_of(svg)))


def test_a_figure_leaves_out_what_no_gradient_flows_through_unless_it_is_requested(tmp_path):
    with gviz.record(tmp_path / "deep.gviz"):
        deep(8)
    for options in ({}, {"expand": "0-19"}, {"level": "nodes", "labels": "min"}):
        svg, _ = drawn(tmp_path / "deep.gviz", tmp_path / "f.svg", figure="16:9", force=True, **options)
        assert not [word for word in words_of(svg) if "norm" in word and "|g|" not in word]
    svg, _ = drawn(tmp_path / "deep.gviz", tmp_path / "f.svg", figure="16:9", force=True, node="norm")
    assert [word for word in words_of(svg) if word.endswith("norm")]


def test_on_a_slide_the_gradient_of_each_layer_of_a_deep_chain_is_a_number(tmp_path):
    with gviz.record(tmp_path / "deep.gviz"):
        deep(8)
    svg, notes = drawn(tmp_path / "deep.gviz", tmp_path / "f.svg", figure="16:9", expand="0-19")
    assert sum(word.startswith("|g| ") for word in words_of(svg)) == 10
    assert any("columns" in note for note in notes)
    assert not any("names only" in note for note in notes)


@pytest.mark.parametrize("options", [{}, {"figure": "two-columns"}, {"figure": "16:9"}], ids=str)
def test_a_gradient_that_has_not_arrived_is_said_in_words_and_not_as_dots(tmp_path, options):
    with gviz.record(tmp_path / "t.gviz"):
        chain_of((2, 2), torch)
    (start,) = (phase.start for phase in load(tmp_path / "t.gviz").phases if phase.kind == "backward")
    svg, _ = drawn(tmp_path / "t.gviz", tmp_path / "f.svg", at=start, **({"figure": "one-column"} | options))
    assert "·" not in words_of(svg)
    assert "not yet" in words_of(svg) or ".grad" in words_of(svg)
    wide = {"labels": "short", "figure": "two-columns", "force": True}
    svg, _ = drawn(tmp_path / "t.gviz", tmp_path / "f.svg", at=start, **wide)
    assert words_of(svg).count("not yet") == 7  # 5 operations, and what is incoming to 2 leaves


@pytest.mark.parametrize(("shape", "note"), [((), "numbers without labels"), ((9, 9), "the norms of gradients")])
def test_the_note_of_narrow_boxes_says_norms_only_of_tensors(tmp_path, shape, note):
    with gviz.record(tmp_path / "t.gviz"):
        values = [torch.ones(shape).requires_grad_() for _ in range(4)]
        a, b, c, d = values
        e = a * b + c
        (torch.tanh(e * d / 10 + a).sum() * 2).backward()
    _, notes = drawn(tmp_path / "t.gviz", tmp_path / "f.svg", figure="one-column")
    assert any(f"boxes show {note}" in one for one in notes), notes


@pytest.mark.parametrize("options", [{}, {"figure": "16:9"}, {"level": "modules"}], ids=str)
def test_a_figure_of_a_moment_before_any_pass_has_nothing_about_gradients(trace, tmp_path, options):
    options = {"figure": "two-columns"} | options
    words = words_of(drawn(trace, tmp_path / "f.svg", at="forward", **options)[0])
    assert not {".grad", "grad", "incoming", "not yet", "None", "each"} & {*words}
    assert not any("∂" in word or "|g|" in word for word in words)
    assert any("|g|" in word for word in words_of(drawn(trace, tmp_path / "g.svg", **options)[0]))


@pytest.mark.parametrize("style", ["cs231n", "micrograd"])
def test_a_figure_of_cards_explains_no_letter_that_is_not_in_it_and_has_no_numbers_of_nodes(tmp_path, style):
    def neuron():
        x, w = builtin.tensor(2.0, requires_grad=True), builtin.tensor(-3.0, requires_grad=True)
        o = builtin.tanh(x * w + 0.5) ** 2
        o.backward()

    for options in ({}, {"moments": "backward"}):
        with gviz.record(tmp_path / "t.gviz", force=True):
            neuron()
        name = tmp_path / ("f.svg" if not options else "s%02d.svg")
        for file in export(tmp_path / "t.gviz", name, style=style, figure="16:9", force=True, **options):
            words = words_of(file.read_bytes())
            assert not [word for word in words if re.search(r"#\d|^L:|\|g\|", word)]
            assert "**2" in words


def test_steps_over_a_sequence_are_titled_by_their_index_in_a_figure(tmp_path):
    with gviz.record(tmp_path / "t.gviz"):
        w, x, h = torch.randn(3, 3, requires_grad=True), torch.randn(4, 2, 3), torch.zeros(2, 3)
        for t in range(4):
            h = torch.tanh(x[t] @ w + h)
        (h**2).mean().backward()
    svg, _ = drawn(tmp_path / "t.gviz", tmp_path / "f.svg", figure="16:9", level="nodes")
    assert {"x[0]", "x[1]", "x[2]", "x[3]", "pow 2"} <= {*words_of(svg)}


@pytest.mark.parametrize("style", ["gviz", "cs231n"])
def test_the_columns_of_a_folded_chain_read_from_left_to_right(tmp_path, style):
    with gviz.record(tmp_path / "t.gviz"):
        chain_of((2,), torch)
    svg, notes = drawn(tmp_path / "t.gviz", tmp_path / "f.svg", figure="16:9", level="nodes", style=style)
    assert any("columns" in note for note in notes)
    first, last = ("mul", "L = sum") if style == "gviz" else ("tanh", "sum")
    across = {}
    for text in ElementTree.fromstring(svg).iter(f"{SVG}text"):
        across.setdefault(text.text, (float(text.get("x")), float(text.get("y"))))
    assert across[first][0] < across[last][0]
    assert across[first][1] < across[last][1]


class Residual(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.mix = torch.nn.LayerNorm(8), torch.nn.Linear(8, 8)
        self.first, self.second, self.third = (torch.nn.Linear(8, 8) for _ in range(3))

    def forward(self, x):
        x = x + self.mix(self.norm(x))
        return x + self.third(torch.relu(self.second(torch.relu(self.first(x)))))


def test_a_figure_with_names_only_has_gradients_next_to_them_where_there_is_room(tmp_path):
    path = tmp_path / "t.gviz"
    torch.manual_seed(0)
    with gviz.record(path):
        net = Residual()
        loss = net(torch.randn(4, 8)).pow(2).mean()
        loss.backward()
    notes, words, scales = {}, {}, {}
    for kind in ("with", "without"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(figure_detail, "in_full_width", as_it_is)
            if kind == "without":
                patch.setattr(figure_detail, "_is_as_large", lambda *_: False)
            svg, notes[kind] = drawn(path, tmp_path / f"{kind}.svg", figure="16:9")
        words[kind] = words_of(svg.decode())
        scales[kind] = float(re.search(rb"scale\(([\d.]+)", svg)[1])
    assert "boxes show names only" in str(notes["without"])
    assert "boxes show names and gradients" in str(notes["with"])
    assert "names only" not in str(notes["with"])
    assert scales["with"] >= 0.95 * scales["without"]  # the line that explains |g| takes a little
    norm = torch.cat([p.grad.flatten() for p in net.third.parameters()]).norm().item()
    assert "|g|" not in str(words["without"])
    assert any("|g|: norm of a gradient" in word for word in words["with"])
    assert any(word == f"|g| {norm:.3g}" for word in words["with"]), words["with"]


def test_a_figure_whose_text_would_become_smaller_has_names_only():
    def step():
        x = builtin.ones(2, 3, requires_grad=True)
        (x * 2).sum().backward()

    timeline = timeline_of(step)
    options = ExportOptions(figure="16:9", direction="LR")
    scenes = [
        moment_scene(timeline, len(timeline), Options(density="min", norms=norms, marks=True, numbered=False))
        for norms in (False, True)
    ]
    assert any(box.rows for box in scenes[1].boxes)
    assert not any(box.rows for box in scenes[0].boxes)
    assert not figure_detail._is_as_large(scenes[1], scenes[0], replace(options, figure="one-column"))
    assert not figure_detail._is_as_large(scenes[0], scenes[0], options)  # nothing is added


def forward_only():
    x, net = builtin.randn(8, 4), builtin.nn.Sequential(*(builtin.nn.Linear(4, 4) for _ in range(3)))
    w = builtin.ones(4, requires_grad=True)
    return ((net(x) * w).tanh() * w).sum()


@pytest.mark.parametrize("density", ["short", "brief", "min"])
@pytest.mark.parametrize("level", ["nodes", "calls", "modules"])
@pytest.mark.parametrize("figure", [None, "16:9"])
def test_a_picture_speaks_of_gradients_only_if_a_pass_was_recorded(density, level, figure):
    drawing = Options(clusters=True, marks=True, density=density, norms=True)
    options = ExportOptions(drawing=drawing, part=Part(level=level), figure=figure, note=lambda _: None)

    def rows(program):
        timeline = timeline_of(program)
        scene = requested_scene(timeline, len(timeline), options, as_picture=True)
        assert all(sum(not row.shares_line for row in box.rows) < box.height or box.height == 1 for box in scene.boxes)
        return [row for box in scene.boxes for row in box.rows]

    plain = rows(forward_only)
    assert not {"grad", ".grad", "incoming", "adds", "total"} & {row.label for row in plain}
    assert not {"not yet", "None", "no grad"} & {row.text for row in plain}
    trained = rows(lambda: forward_only().backward())
    assert any(row.style == "grad" for row in trained)


def test_a_forward_pass_after_a_backward_pass_still_shows_the_grad_of_its_leaves():
    w = builtin.ones(4, requires_grad=True)

    def program():
        (w * 2).sum().backward()
        (w * 3).sum().backward()
        return (w * 4).exp()

    timeline = timeline_of(program)
    options = ExportOptions(drawing=Options(marks=True), note=lambda _: None)
    scene = requested_scene(timeline, len(timeline), options)
    labels = {box.title.partition(" #")[0].rpartition("= ")[2]: {row.label for row in box.rows} for box in scene.boxes}
    assert ".grad" in labels["w leaf"]
    assert "grad" not in labels["exp"]


@pytest.mark.parametrize(
    ("pairs", "divided"),
    [
        (("ab", "bc", "cd"), "ab c d"),
        (("ix", "py", "xa", "ya", "ab", "bc"), "ix pya b c"),  # two sources that are added
        (("ia", "ab", "bx", "xd", "bd", "de", "ef"), "ia bxd e f"),  # a residual connection, from a to d
        (("ia", "ab", "bc", "cd", "im", "mb", "mc"), "ia bm c d"),  # a mask that two blocks use
        (("ab", "bc", "ca", "ad"), "abcd"),
    ],
    ids=["chain", "sum", "residual", "mask", "loop"],
)
def test_a_graph_is_divided_where_one_tensor_leads_on(pairs, divided):
    found = ["".join(sorted(part)) for part in parts(lines_between(*pairs)) if part]
    assert found == ["".join(sorted(part)) for part in divided.split()]


@pytest.mark.parametrize("level", ["auto", "modules"])
def test_a_transformer_uses_the_width_of_a_slide(tmp_path, level):
    path, notes = transformer_trace(tmp_path), []
    timeline = load(path)
    options = ExportOptions(figure="16:9", part=Part(level=level), note=notes.append)
    scene = figure_detail.picture_scene(timeline, last_moment(timeline), options)
    assert scene.columns > 1
    assert notes[-1].endswith("it fills the width")
    export(path, tmp_path / "f.svg", figure="16:9", level=level, note=lambda _: None)
    svg = (tmp_path / "f.svg").read_text()
    scale = float(re.search(r"scale\(([\d.]+)", svg)[1])
    assert 11 * scale >= 9
    assert any(row.style == "value" for box in scene.boxes for row in box.rows)
    found = re.findall(r'class="node[^"]*">.*?<(?:polygon|path)[^>]* (?:points|d)="([^"]*)"', svg, re.DOTALL)
    sides = [float(x) for points in found for x in re.findall(r"([-\d.]+),", points)]
    assert (max(sides) - min(sides)) * scale >= 0.6 * FIGURES["16:9"].width


def masked_chain():
    """A chain of layers, and a mask that is used in several columns."""
    layers = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(10))
    keep = (torch.rand(4, 8) > 0.3).float()
    y = torch.randn(4, 8)
    for number, layer in enumerate(layers):
        y = torch.tanh(layer(y)) * keep if number % 3 == 0 else torch.relu(layer(y))
    y.pow(2).mean().backward()


def plain_chain():
    layers = [layer for n in range(12) for layer in (torch.nn.Linear(16 + n, 17 + n), torch.nn.ReLU())]
    torch.nn.Sequential(*layers)(torch.randn(4, 16)).sum().backward()


COLUMNED = {
    "transformer": lambda: MODELS["transformer, 4 layers"](torch),
    "ResNet": lambda: MODELS["ResNet-18"](torch),
    "U-Net": lambda: MODELS["U-Net"](torch),
    "mask": masked_chain,
    "chain": plain_chain,
}


def area_of(points):
    across, up = points[::2], points[1::2]
    return min(across), min(up), max(across), max(up)


def numbers_of(text):
    return [float(number) for number in re.findall(r"-?\d+\.?\d*|-?\.\d+", text)]


@pytest.mark.parametrize("program", COLUMNED)
def test_lines_between_columns_stay_in_the_gaps_and_cross_no_box(tmp_path, program):
    torch.manual_seed(0)
    with gviz.record(tmp_path / "t.gviz"):
        COLUMNED[program]()
    timeline = load(tmp_path / "t.gviz")
    options = ExportOptions(figure="16:9", note=lambda _: None)
    scene = figure_detail.picture_scene(timeline, last_moment(timeline), options)
    assert scene.columns > 1
    root = ElementTree.fromstring(scene_drawing.drawn(scene, options, "svg"))
    groups = {group.get("id").removeprefix("gviz-"): group for group in root.iter(f"{SVG}g") if group.get("id")}
    boxes = {}
    for box in scene.boxes:
        shape = next(part for part in groups[box.key].iter() if part.get("points") or part.get("d"))
        boxes[box.key] = area_of(numbers_of(shape.get("points") or shape.get("d")))
    column = division(scene).column
    sides = {
        at: area_of([side for key, box in boxes.items() if column[key] == at for side in box])
        for at in {*column.values()}
    }
    between = 0
    for number, edge in enumerate(scene.edges):
        knots = numbers_of(next(groups[f"e{number}"].iter(f"{SVG}path")).get("d"))
        points = sampled([*zip(knots[::2], knots[1::2], strict=True)])
        for key, (left, top, right, bottom) in boxes.items():
            inside = [at for at in points if left + 2 < at[0] < right - 2 and top + 2 < at[1] < bottom - 2]
            assert not inside or key in (edge.source, edge.target), (edge.source, edge.target, key)
        ends = sorted((column[edge.source], column[edge.target]))
        if ends[1] == ends[0] + 1:
            between += 1
            upright = [x for (x, y), (_, after) in pairwise(points) if abs(after - y) > 3]
            low, high = sides[ends[0]][2], sides[ends[1]][0]
            assert all(low < x < high for x in upright), (edge.source, edge.target)
    assert between >= 2


def sampled(knots):
    """Points on Bezier curves."""
    points = np.array(knots)
    t = np.linspace(0, 1, 21)[:, None]
    weights = np.hstack([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3])
    return np.vstack([weights @ points[at : at + 4] for at in range(0, len(points) - 1, 3)])


def test_a_graph_whose_columns_would_be_tangled_is_not_folded(tmp_path):
    with gviz.record(tmp_path / "t.gviz"):
        COLUMNED["transformer"]()
    timeline = load(tmp_path / "t.gviz")
    options = ExportOptions(figure="16:9", note=lambda _: None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_lines, "MOST_WIRES", 1)
        scene = figure_detail.picture_scene(timeline, last_moment(timeline), options)
    assert scene.columns == 1


def test_the_key_of_a_figure_is_below_its_shortest_column(tmp_path):
    path = transformer_trace(tmp_path)
    svg, _ = drawn(path, tmp_path / "f.svg", figure="16:9")
    places = {}
    for text in ElementTree.fromstring(svg).iter(f"{SVG}text"):
        places.setdefault(text.text, (float(text.get("x")), float(text.get("y"))))
    key, loss, norm = (places[word] for word in ("|g|: norm of a gradient", "loss = cross_entropy", "norm LayerNorm"))
    blocks = next(place for word, place in places.items() if "Block ×4" in (word or ""))
    assert norm[1] < loss[1] < key[1]
    assert key[0] > blocks[0]
