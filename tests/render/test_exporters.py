"""Every exporter on every log: files of the right kind that say what the scene says."""

import re
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from recording import events_of, timeline_of
from render import golden
from render.logs import LOGS, Script, recurrent, two_shares
from render.pictures import groups, words
from rich.cells import set_cell_size

import gviz
import gviz.engine as torch
from gviz import events as e
from gviz.cli.commands.export import command as export_command
from gviz.errors import GvizError
from gviz.render import file_formats, picture_request
from gviz.render.boxes.graph_options import Options
from gviz.render.file_formats import EXPORTERS, Exporter, exporter_for
from gviz.render.forms import series
from gviz.render.forms.text import text
from gviz.render.graphviz import scene_drawing
from gviz.render.page import geometry
from gviz.render.picture_request import ExportOptions, Part, drawing, last_moment, moment_scene, moment_structure
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from gviz.tui.commands.command_table import help_for
from gviz.tui.styled_lines import plain

BY_NAME = {exporter.name: exporter for exporter in EXPORTERS}
BEGINNINGS = {
    "svg": "<?xml", "dot": "digraph {", "png": b"\x89PNG\r\n", "pdf": b"%PDF-", "txt": "demo.py",
    "json": '{\n "schema": 1',
    "mermaid": "flowchart ", "animation": "<?xml", "gif": b"GIF89a", "html": "<!doctype html>",
}  # fmt: skip


def export(kind, script, n=None, **options):
    timeline = script.timeline
    return BY_NAME[kind].render(timeline, len(timeline) if n is None else n, ExportOptions(**options))


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("exporter", EXPORTERS, ids=BY_NAME)
def test_every_exporter_writes_every_log(exporter, log):
    notes = []
    timeline = LOGS[log]().timeline
    out = exporter.render(timeline, len(timeline), ExportOptions(note=notes.append))
    assert out.startswith(BEGINNINGS[exporter.name])
    assert not [note for note in notes if "layout" in note]


@pytest.mark.parametrize("log", LOGS)
def test_an_svg_shows_every_word_of_the_scene(log):
    timeline = LOGS[log]().timeline
    drawn = moment_scene(timeline, len(timeline), Options(marks=True))
    nodes = groups(export("svg", LOGS[log](), part=Part(level="nodes")), "node")
    assert len(nodes) == len(drawn.boxes)
    for box in drawn.boxes:
        said = words(next(group for name, group in nodes.items() if name.endswith(f"-{box.key}")))
        title = f"► {box.title}" if "current" in box.states else box.title
        assert title in said
        grids = [number for row in box.rows for line in row.grid for number in line]
        lines = [text for row in box.rows for text in (row.label, "" if row.grid else row.text) if text]
        assert all(text in said for text in (*lines, *grids))
        assert not box.status or box.status in said


@pytest.mark.parametrize("log", LOGS)
def test_golden_text(log):
    timeline = LOGS[log]().timeline
    golden.check(f"{log}.txt", text(moment_scene(timeline, len(timeline), Options())))


def test_a_small_graph_is_drawn_in_the_text_and_a_large_one_only_listed():
    small, large = export("txt", two_shares()), export("txt", recurrent(60))
    assert "╭ x leaf #1 ─" in small
    assert "╭" not in large
    assert "h60 = tanh #122" in large


def places(svg):
    """Where each box stands in the picture, from its upper left corner: the first point of what it is drawn with."""
    right, down = map(float, re.search(r"translate\(([\d.]+) ([\d.]+)\)", svg).groups())
    return {name.partition("-n")[2]: _first(group, right, down) for name, group in groups(svg, "node").items()}


def _first(group, right, down):
    x, y = re.search(r' (?:points="|d="M)(-?[\d.]+)[ ,]?(-?[\d.]+)', picture_of(group)).groups()
    return round(float(x) + right), round(float(y) + down)


def picture_of(group):
    return ElementTree.tostring(group, encoding="unicode")


def test_no_step_moves_a_box():
    script = two_shares()
    every = [places(export("svg", script, n)) for n in range(len(script.timeline) + 1)]
    assert all(place == every[0] for place in every)


def test_the_same_moment_is_the_same_file():
    for kind in ("svg", "dot", "png", "txt"):
        assert export(kind, two_shares()) == export(kind, two_shares())


def test_an_svg_says_in_words_what_it_shows():
    svg = export("svg", two_shares())
    assert 'role="img"' in svg
    assert "computation graph of demo.py, event 29/29" in svg
    assert "x leaf #1, done, value 3, incoming -14 (2 of 2), .grad -14" in svg


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_past_its_budget_a_picture_is_simpler_and_says_so(monkeypatch, kind):
    monkeypatch.setattr(scene_drawing, "LAYOUT_BOXES", 10)
    notes = []
    out = export(kind, recurrent(8), part=Part(level="nodes"), note=notes.append)
    assert notes == ["26 boxes: drawn with a simple layout"]
    if kind == "svg":
        assert len(groups(out, "node")) == 26
        assert len(groups(out, "edge")) == 25


def test_when_graphviz_takes_too_long_the_picture_is_simpler_and_says_so(monkeypatch):
    programs = []

    def draw(dot, kind, *, program="dot", timeout):
        programs.append(program)
        if program == "dot":
            raise scene_drawing.TooSlowError("too slow")
        return b"drawn"

    monkeypatch.setattr(scene_drawing, "draw", draw)
    notes = []
    assert export("pdf", two_shares(), timeout=2, note=notes.append) == b"drawn"
    assert programs == ["dot", "nop2"]
    assert notes == ["Graphviz needed more than 2 s: drawn with a simple layout"]


@pytest.mark.parametrize(("kind", "where"), [("html", geometry), ("gif", series), ("animation", series)])
def test_pages_and_moving_pictures_say_the_same_of_too_little_time(monkeypatch, kind, where):
    def draw(*_, **__):
        raise scene_drawing.TooSlowError("too slow")

    monkeypatch.setattr(where, "draw", draw)
    monkeypatch.setattr(geometry, "draw_all", draw)
    notes = []
    assert export(kind, two_shares(), timeout=2, note=notes.append)
    assert notes == ["Graphviz needed more than 2 s: drawn with a simple layout"]


def test_columns_of_a_table_stand_below_one_another_whatever_letters_a_name_has():
    script = Script()
    script.op("sin", (script.leaf("\u6570\u5024", 1.0),), 0.5, name="y")
    heads, *told = [line for line in export("txt", script).splitlines() if line.startswith(("node ", "\u6570", "y "))]
    starts = [set_cell_size(row, heads.index("value")) for row in told]
    assert [row[len(start) :].split("  ")[0] for row, start in zip(told, starts, strict=True)] == ["1", "0.5"]


def test_notes_go_to_standard_error(monkeypatch, capsys):
    monkeypatch.setattr(scene_drawing, "LAYOUT_BOXES", 1)
    export("svg", two_shares())
    assert capsys.readouterr() == ("", "gviz: note: 5 boxes: drawn with a simple layout\n")


def test_what_nobody_could_read_is_refused(monkeypatch):
    monkeypatch.setattr(picture_request, "PICTURE_BOXES", 3)
    with pytest.raises(GvizError, match="5 boxes cannot be read"):
        export("svg", two_shares())
    assert export("txt", two_shares())


@pytest.mark.parametrize("kind", ["svg", "png", "gif"])
def test_what_nobody_could_read_is_refused_before_its_boxes_are_made(kind, monkeypatch):
    monkeypatch.setattr(picture_request, "PICTURE_BOXES", 100)
    monkeypatch.setattr(picture_request, "moment_scene", None)  # which is not come to, nor is the structure
    monkeypatch.setattr(picture_request, "structure", None)
    notes = []
    with pytest.raises(GvizError, match=r"1\d\d boxes cannot be read") as refused:
        export(kind, recurrent(60), moments=(1,) if kind == "gif" else (), note=notes.append)
    assert "--node draws what is near one" in refused.value.hint


def test_a_machine_without_fonts_is_told(monkeypatch, tmp_path):
    config = tmp_path / "fonts.conf"
    config.write_text(f"<?xml version='1.0'?><fontconfig><dir>{tmp_path}</dir></fontconfig>")
    monkeypatch.setenv("FONTCONFIG_FILE", str(config))
    notes = []
    export("png", two_shares(), note=notes.append)
    assert notes == ["this machine has no font, so the png has no text; an svg is complete"]
    notes.clear()
    assert "loss = add #5" in export("svg", two_shares(), note=notes.append)
    assert not notes


def test_a_suffix_names_its_exporter():
    assert [exporter_for(f"a.b{suffix}").name for suffix in (".svg", ".GV", ".dot", ".png")] == [
        "svg",
        "dot",
        "dot",
        "png",
    ]
    with pytest.raises(GvizError, match=r"unknown format of 'out\.jpeg'") as caught:
        exporter_for("out.jpeg")
    assert caught.value.exit_code == 2


def test_moments_that_do_not_exist_are_refused():
    with pytest.raises(GvizError, match="there is no event 99") as caught:
        export("dot", two_shares(), 99)
    assert caught.value.hint == "events go from 0 to 29"
    with pytest.raises(GvizError, match="holds no graph"):
        export("dot", Script(), 0)


def test_the_last_moment_is_before_the_graph_is_taken_down():
    script = two_shares()
    end = len(script.timeline)
    script.say(e.Printed("stdout", "done\n"), *(e.NodeFreed(node) for node in range(1, 6)))
    assert last_moment(script.timeline) == end


def test_a_new_exporter_is_listed_by_every_front_end(monkeypatch):
    monkeypatch.setattr(file_formats, "EXPORTERS", (*EXPORTERS, Exporter("tikz", (".tikz",), lambda *_: "")))
    assert exporter_for("a.TIKZ").name == "tikz"
    with pytest.raises(GvizError) as caught:
        exporter_for("a.jpeg")
    assert ".tikz" in caught.value.hint
    assert ".tikz" in help_for("export").lines[0]
    assert ".tikz" in "\n".join(plain(row) for row in help_for("").lines(80))
    assert ".tikz" in CliRunner().invoke(export_command, ["--help"]).output


def trained_and_evaluated():
    w = torch.ones(2, requires_grad=True)
    for _ in range(2):
        (torch.ones(2) * w).sum().backward()
    with torch.no_grad():
        return (torch.ones(2) * w).sum()


def test_a_picture_shows_the_training_and_not_the_evaluation_after_it():
    timeline = timeline_of(trained_and_evaluated)
    assert len(timeline.iterations) == 2
    n = last_moment(timeline)
    assert timeline.phase_at(n).kind == "backward"
    assert timeline.at(n).state(timeline.nodes[-1]) is None


def test_a_picture_has_the_weights_that_were_changed_by_hand_and_no_evaluation():
    def trained_by_hand():
        w = torch.ones(2, requires_grad=True)
        (torch.ones(2) * w).sum().backward()
        with torch.no_grad():
            rate = torch.full((2,), 0.5)
            w -= rate * w.grad
            return (torch.ones(2) * w).sum()

    timeline = timeline_of(trained_by_hand)
    moment = timeline.at(last_moment(timeline))
    assert moment.state(1).outputs[0].value.array().tolist() == [0.5, 0.5]
    assert moment.state(timeline.nodes[-1]) is None


def test_a_picture_of_a_step_has_the_weights_that_gave_its_results():
    def program():
        w = torch.ones(2, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.25)
        for _ in range(2):
            optimizer.zero_grad()
            (w * w).sum().backward()
            optimizer.step()

    timeline = timeline_of(program)
    moment = timeline.at(last_moment(timeline))
    weight = moment.state(1).outputs[0]
    assert timeline.iteration_at(moment.n).index == 1
    assert weight.value.array().tolist() == [0.5, 0.5]  # 1 - 0.25 * 2 * 1, after one step and before the second
    assert weight.grad.array().tolist() == [1, 1]


def with_printed_norms(change):
    def program():
        w = torch.ones(2, requires_grad=True)
        b = torch.ones(2, requires_grad=True)
        loss = ((w * 3 + b) ** 2).sum()
        loss.backward()
        total = 0
        for p in (w, b):
            total += p.grad.norm() ** 2
        print(total**0.5, w.grad.abs().max().item())
        change(w)
        return w, b, loss

    return timeline_of(program)


def drawn_ops(timeline, n):
    words = drawing(timeline, n, ExportOptions(note=lambda _: None), fits=True)
    return {timeline.info(node).op.name for node in moment_structure(timeline, n, words).shown}


def test_a_picture_shows_the_pass_and_not_the_norms_that_the_program_prints_after_it():
    timeline = with_printed_norms(lambda w: None)
    n = last_moment(timeline)
    assert n == timeline.pass_ends(timeline.iterations[-1])[-1]
    assert drawn_ops(timeline, n) >= {"mul", "add", "sum"}
    assert not drawn_ops(timeline, n) & {"norm", "abs", "max", "sqrt"}
    asked = next(seq for seq in range(n, len(timeline)) if timeline.at(seq).actor and is_norm(timeline, seq))
    assert "norm" in drawn_ops(timeline, asked)
    assert "norm" in drawn_ops(timeline, len(timeline))


def is_norm(timeline, seq):
    return timeline.info(timeline.at(seq).actor).op.name == "norm"


def test_a_gradient_that_is_changed_after_it_was_read_is_drawn():
    timeline = with_printed_norms(lambda w: w.grad.mul_(w.grad.norm() / 2))
    n = last_moment(timeline)
    assert timeline.at(n).state(1).outputs[0].grad.array().tolist() == pytest.approx([24 * 24 * 2**0.5 / 2] * 2)
    assert {"norm", "div"} <= drawn_ops(timeline, n)
    assert not {"abs", "max"} & drawn_ops(timeline, n)


def test_a_picture_shows_the_evaluation_that_failed():
    events = [*events_of(trained_and_evaluated), e.Failed("ValueError", "no", 0, 0, "")]
    timeline = Timeline(MemoryLog(events))
    assert last_moment(timeline) == len(timeline)


def test_a_result_of_the_evaluation_is_drawn_before_it_is_taken_down(tmp_path):
    with gviz.record(tmp_path / "run.gviz"):
        kept = trained_and_evaluated()
        gviz.export(kept, tmp_path / "kept.txt")
    assert "sum" in (tmp_path / "kept.txt").read_text()
    assert "freed" not in (tmp_path / "kept.txt").read_text()
