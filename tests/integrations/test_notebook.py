"""What a notebook shows, by executing one and converting it to a page."""

import re
from html import unescape
from xml.etree import ElementTree

import pytest

import gviz
import gviz.engine as torch
from gviz.integrations import notebook
from gviz.render.graphviz.digraph import Digraph
from gviz.render.graphviz.svg_output import CELL

SVG = "image/svg+xml"


def product():
    x = torch.tensor(3.0, requires_grad=True)
    return x, x * x + torch.sin(x)


@pytest.fixture
def timeline(tmp_path):
    with gviz.record(tmp_path / "product.gviz"):
        x, y = product()
        y.backward()
    assert x.grad is not None
    return gviz.load(tmp_path / "product.gviz")


def test_a_tensor_shows_its_value_and_the_graph_behind_it():
    _, y = product()
    shown = y._repr_mimebundle_()
    assert shown["text/plain"] == repr(y)
    root = ElementTree.fromstring(shown[SVG])
    assert root.tag.endswith("svg")
    assert "sin" in shown[SVG]


def test_a_tensor_without_a_graph_is_text():
    x, _ = product()
    assert x._repr_mimebundle_() == {"text/plain": repr(x)}


def test_a_recording_shows_its_end_and_says_what_is_in_it(timeline):
    shown = timeline._repr_mimebundle_()
    assert shown.keys() == {"text/plain", SVG}
    assert shown["text/plain"].startswith(f"recording: {len(timeline)} events, 4 nodes, 1 backward pass\n")
    assert ".grad" in shown[SVG]


def width(shown):
    return points(shown._repr_mimebundle_()[SVG])


def points(svg):
    return float(ElementTree.fromstring(svg).get("width").removesuffix("pt"))


def test_a_picture_is_as_wide_as_a_cell_at_most_if_it_can_be_read_then():
    x, y = product()
    wide = torch.ones(2, requires_grad=True)
    for _ in range(9):
        wide = wide + torch.ones(2, requires_grad=True)
    assert width(x * 2) < width(y) < CELL
    graph = gviz.make_dot(y)
    assert width(graph) == pytest.approx(0.75 * points(graph.pipe("svg")), abs=1)  # its text as large as that beside it
    many = torch.cat([wide] + [torch.ones(2, requires_grad=True) for _ in range(9)])
    assert width(many) < CELL  # it shows less in each box


def test_what_is_too_wide_from_left_to_right_flows_down():
    _, y = product()
    chain = y.exp().log().tanh().exp()
    graph = gviz.make_dot(chain)
    assert width(chain) < CELL
    assert width(graph) < CELL
    assert "rankdir=LR" in graph.source  # a file is as it was


def test_an_explanation_shows_its_facts_as_a_list(timeline):
    found = timeline.explain("#1.grad")
    shown = found._repr_mimebundle_()
    assert shown["text/plain"] == str(found)
    page = ElementTree.fromstring(f"<div>{shown['text/html']}</div>")
    assert page.find("p/b").text == found.text
    assert len(page.findall("ul/li")) == len(str(found).splitlines()) - 1
    assert any("event" in small.text for small in page.iter("small"))


def test_a_graph_shows_itself():
    graph = gviz.make_dot(product()[1])
    shown = graph._repr_mimebundle_()
    assert isinstance(graph, Digraph)
    assert shown["text/plain"].startswith("graph of 4 boxes")
    assert "<svg" in shown[SVG]


def test_without_graphviz_there_is_text(timeline, monkeypatch):
    def refuse(*_, **__):
        raise gviz.errors.GvizError("pictures need pygraphviz")

    monkeypatch.setattr("gviz.render.forms.svg.render", refuse)
    assert timeline._repr_mimebundle_().keys() == {"text/plain"}


def test_a_player_is_a_frame_that_can_reach_nothing(timeline):
    shown = timeline.player()._repr_mimebundle_()
    frame = shown["text/html"]
    assert 'sandbox="allow-scripts"' in frame
    page = unescape(re.search(r'srcdoc="([^"]*)"', frame).group(1))
    assert page == timeline.player().page
    assert page.startswith("<!doctype html>")


def test_a_player_too_large_for_a_notebook_says_what_to_do(timeline, monkeypatch):
    monkeypatch.setattr(notebook, "LARGEST_PAGE", 10)
    shown = timeline.player()._repr_mimebundle_()
    assert shown.keys() == {"text/plain"}
    assert "gviz export" in shown["text/plain"]


CELLS = (
    "%load_ext gviz\nimport gviz, gviz.engine as torch",
    "%%gviz -o run.gviz\nx = torch.tensor(3.0, requires_grad=True)\ny = x * x\ny.backward()\nx.grad",
    "y",
    "trace = gviz.load('run.gviz')\ntrace",
    "trace.player(at=3)",
    "gviz.make_dot(y)",
    "[trace.source(frame.path) for frame in trace.info(1).frames]",
    "%%gviz\nz = torch.tensor([1.0, 2.0], requires_grad=True)\nz.backward()",
    "%%gviz --at x\n1",
    "%%gviz\n1",
    "%%gviz\n1/0",
)
TORCH_CELLS = (
    "%load_ext gviz",
    "%%gviz\nimport torch\nw = torch.ones(3, requires_grad=True)\n(w * w).sum().backward()",
    "%%gviz\n(w * 3).sum().backward()",
    "(w * w).sum()",
    "w",
)


def execute(cells, folder):
    """The notebook of some cells after a kernel has run it."""
    import nbformat
    from nbconvert.preprocessors import ExecutePreprocessor

    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    ExecutePreprocessor(timeout=300, allow_errors=True).preprocess(book, {"metadata": {"path": str(folder)}})
    return book


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    return execute(CELLS, tmp_path_factory.mktemp("notebook"))


def forms(cell):
    """All forms of all outputs of a cell."""
    return [set(output.get("data", {"error": ""})) for output in cell.outputs if output.output_type != "stream"]


def test_the_magic_says_what_it_takes_and_runs_nothing(capsys):
    pytest.importorskip("IPython")
    notebook.play_cell(None, "--help", "1/0")
    said = capsys.readouterr().out
    assert "%%gviz [-o TRACE] [--at EVENT]" in said
    assert "keep the recording in this file" in said


@pytest.mark.notebook
def test_every_cell_shows_what_it_should(executed):
    shown = [forms(cell) for cell in executed.cells]
    assert shown[0] == []
    assert shown[1] == [{"text/plain"}, {"text/html", "text/plain"}]
    assert shown[2:4] == [[{SVG, "text/plain"}]] * 2
    assert shown[4] == [{"text/html", "text/plain"}]
    assert shown[5] == [{SVG, "text/plain"}]


@pytest.mark.notebook
def test_the_source_of_a_cell_is_recorded_and_nothing_around_it(executed):
    (output,) = executed.cells[6].outputs
    text = output.data["text/plain"]
    assert text.startswith("['x = torch.tensor(3.0")
    assert text.count("', ") == 0, "only the cell itself is a frame"


@pytest.mark.notebook
def test_a_cell_that_fails_shows_its_error_once_and_the_player(executed):
    outputs = executed.cells[7].outputs
    assert [output.output_type for output in outputs] == ["error", "display_data", "error"]
    assert "grad can be implicitly created" in outputs[0].evalue
    assert outputs[2].ename == "CellFailed"
    assert len("".join(outputs[2].traceback)) < 200
    assert "--at EVENT" in "".join(executed.cells[8].outputs[0].traceback)


@pytest.mark.notebook
def test_a_cell_without_tensors_says_so(executed):
    (_, nothing), failed = executed.cells[9].outputs, executed.cells[10].outputs
    assert "no tensor" in nothing.data["text/plain"]
    assert [output.output_type for output in failed] == ["error", "display_data", "error"]
    assert "".join(failed[2].traceback) == "the cell failed, see above"


@pytest.mark.notebook
@pytest.mark.torch
def test_cells_of_pytorch_are_recorded_from_its_import_on(tmp_path):
    book = execute(TORCH_CELLS, tmp_path)
    assert [forms(cell) for cell in book.cells] == [
        [], [{"text/html", "text/plain"}], [{"text/html", "text/plain"}], [{SVG, "text/plain"}], [{"text/plain"}],
    ]  # fmt: skip
    texts = [cell.outputs[0].data["text/plain"] for cell in book.cells[1:3]]
    assert all("1 backward pass" in text for text in texts)


@pytest.mark.notebook
def test_a_cell_that_awaits_is_refused_with_what_records_it(tmp_path):
    book = execute(
        [
            "%load_ext gviz\nimport gviz, asyncio, gviz.engine as torch",
            "%%gviz\nx = torch.tensor(3.0, requires_grad=True)\nawait asyncio.sleep(0)",
            "with gviz.record('cell.gviz'):\n"
            "    x = torch.tensor(3.0, requires_grad=True)\n    await asyncio.sleep(0)\n    (x * x).backward()",
            "gviz.load('cell.gviz').player()",
            "%%gviz --nope\n1/0",
        ],
        tmp_path,
    )
    _, refused, recorded, player, unknown = book.cells
    assert [output.output_type for output in refused.outputs] == ["error"]
    what, _, hint = "".join(refused.outputs[0].traceback).split("\n")
    assert what == "gviz: error: %%gviz cannot run a cell with await"
    assert 'with gviz.record("cell.gviz")' in hint
    assert unknown.outputs[0].traceback == [
        f"gviz: error: %%gviz: unrecognized arguments: --nope\nhint: {notebook.USAGE}"
    ]
    assert recorded.outputs == []
    assert "1 backward pass" in player.outputs[0].data["text/plain"]


def test_a_quote_that_is_never_closed_says_what_the_magic_takes():
    pytest.importorskip("IPython")
    with pytest.raises(gviz.errors.GvizError, match="%%gviz: no closing quotation") as refused:
        notebook.play_cell(None, "-o 'run.gviz", "1/0")
    assert refused.value.hint == notebook.USAGE


@pytest.mark.notebook
def test_the_notebook_becomes_a_page(executed):
    from nbconvert import HTMLExporter

    page, _ = HTMLExporter().from_notebook_node(executed)
    frames = re.findall(r"<iframe [^>]*>", page)
    assert len(frames) == 3
    assert all('sandbox="allow-scripts"' in frame and "srcdoc=" in frame for frame in frames)
    assert len(re.findall(r"<img [^>]*data:image/svg\+xml", page)) == 3


@pytest.mark.notebook
def test_what_asks_for_the_debugger_gets_the_player(tmp_path):
    book = execute(
        [
            "import gviz, gviz.engine as torch; x = torch.tensor(3.0, requires_grad=True)",
            "gviz.breakpoint()",
            "with gviz.debug():\n    y = x * x\n    y.backward()",
            "gviz.show(y)",
            "%load_ext gviz",
            "%%gviz\n(x * 2).backward()",
        ],
        tmp_path,
    )
    _, nothing, debugged, shown, _, magic = (cell.outputs for cell in book.cells)
    assert ["nothing is recorded here" in output.text for output in nothing] == [True]
    for outputs in (debugged, shown):
        assert [output.output_type for output in outputs] == ["stream", "display_data"]
        assert outputs[0].text.startswith("gviz: a notebook has no terminal")
    assert "ipykernel" not in debugged[1].data["text/html"]
    assert [output.output_type for output in magic] == ["display_data"]  # nothing else records
