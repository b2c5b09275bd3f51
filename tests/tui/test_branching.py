"""``set x = 5`` and ``undo``: what would follow from another number, in both front ends."""

import re

import pytest
from driving import app_of, transcript
from recording import events_of, timeline_of

import gviz.engine as torch
from gviz.explain.event_description import description
from gviz.explain.whatif import branch_of
from gviz.render.boxes.graph_options import Options
from gviz.render.boxes.graph_structure import structure
from gviz.render.cells.viewport import Moments
from gviz.rerun.branch import BranchView
from gviz.trace import load
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from gviz.tui.commands import what_if
from gviz.tui.cursor import Cursor
from gviz.tui.drawing.node_details import event_text
from gviz.tui.glyphs import UNICODE
from gviz.tui.screens.overlay_pages import Sheet
from gviz.tui.session import Session
from gviz.tui.widgets.graph_canvas import GraphCanvas
from gviz.tui.widgets.node_panel import NodePanel, node_tip
from gviz.tui.widgets.status_rows import EventRow, StatusRow
from gviz.tui.widgets.tape_panel import Tape


def product():
    x = torch.tensor(3.0, requires_grad=True)
    z = x * x
    z.backward()
    return x, z


@pytest.fixture(scope="module")
def timeline():
    return timeline_of(product)


def said(timeline, *commands):
    """What the last command answers."""
    return transcript(timeline, *commands).rpartition("(gviz) ")[2].splitlines()[1:]


def test_old_and_new(timeline):
    assert said(timeline, "set x = 5") == [
        "#1 x                 value 3 -> 5, gradient 6 -> 10",
        "#2 z = mul           value 9 -> 25",
    ]


def test_the_gradient_of_what_was_changed_is_whole():
    def program():
        w = torch.tensor([0.1257, -0.1321, 0.6404], requires_grad=True)
        loss = ((w * torch.tensor([0.1, 0.2, 0.3])).sin() ** 2).sum()
        loss.backward()
        return loss, w

    first, second, *others = said(timeline_of(program), "set w = 0.5")
    assert first.startswith("#1 w                 value [0.1257 -0.1321 0.6404] -> [0.5 0.5 0.5]")
    assert "gradient" in first + second
    assert second.startswith(" " * 21)
    assert all(one.startswith("#") for one in others)


@pytest.mark.parametrize("suffix", ["dot", "txt"])
def test_a_picture_shows_both_numbers_and_its_caption_names_the_change(timeline, tmp_path, suffix):
    path = tmp_path / f"both.{suffix}"
    assert "without the what-if" not in said(timeline, "set x = 5", f"export {path}")[-1]
    drawn = path.read_text()
    assert "what if x = 5" in drawn
    assert "3 → 5" in drawn


def test_a_moving_picture_says_that_it_is_of_the_recording(timeline, tmp_path):
    path = tmp_path / "x.anim.svg"
    assert said(timeline, "set x = 5", f"export {path}")[-1].endswith("; it shows the recording without the what-if.")
    assert "without the what if" not in said(timeline, f"export {path}")[-1]


def test_changes_add_up_and_are_taken_back_one_by_one(timeline):
    both = said(timeline, "set x = 5", "whatif grad z = 2")
    assert both[0] == "#1 x                 value 3 -> 5, gradient 6 -> 20"
    assert said(timeline, "set x = 5", "whatif grad z = 2", "undo") == said(timeline, "set x = 5")
    assert said(timeline, "set x = 5", "undo") == ["undid x = 5; nothing is changed"]
    assert said(timeline, "undo") == ["nothing is changed"]


def test_a_change_that_cannot_be_made_is_not_kept(timeline):
    assert said(timeline, "whatif y = 5") == ["there is no y; hint: only tensors are recorded: z, x."]
    assert said(timeline, "whatif x = [1, 2]", "undo") == ["nothing is changed"]


def test_the_branch_is_exported_as_a_trace(timeline, tmp_path):
    path = tmp_path / "branch.gviz"
    assert said(timeline, "set x = 5", f"export {path}")[0].startswith(f"wrote {path}")
    assert said(load(path), "goto end", "print z")[0].endswith("25")
    assert said(timeline, "set x = 5", f"export {path}")[0].startswith(f"{path} already exists")
    assert said(timeline, f"export {tmp_path / 'none.gviz'}")[0].startswith("nothing is changed")
    assert "cannot be written" in said(timeline, "set x = 5", f"export {tmp_path / 'none' / 'b.gviz'}")[0]
    for path in ("~nosuchuser/b.gviz", f"{'b' * 300}.gviz"):
        assert said(timeline, "set x = 5", f"export {path}")[0].startswith(f"cannot write {path}; ")


def test_every_step_tells_both_until_all_is_taken_back(timeline):
    assert said(timeline, "set x = 5", "goto 1", "n")[1:] == ["  WHAT IF x = 5: value 9 → 25"]
    assert said(timeline, "set x = 5", "goto end", "print x.grad") == ["x.grad = 6 → 10"]
    assert said(timeline, "set x = 5", "goto end", "undo", "print x.grad") == ["x.grad = 6"]
    assert said(timeline, "set x = 5", "watch z", "goto 1", "n")[-1] == "  watch: z = 9 → 25"


def test_settings_are_still_set(timeline):
    assert said(timeline, "set ascii on") != said(timeline, "set x = 5")


def test_rules_have_the_branchs_numbers_and_the_recorded_ones_below(timeline):
    rows = said(timeline, "set x = 5", "whatif grad z = 2", "goto end", "node z")
    first = next(at for at, row in enumerate(rows) if row.startswith("to #1 x"))
    assert [" ".join(row.split()) for row in rows[first : first + 4]] == [
        "to #1 x: g * x = 2 * 5 = 10",
        "recorded 1 * 3 = 3",
        "outgoing 10 (1 of 2)",
        "recorded 3",
    ]
    assert said(timeline, "set x = 5", "goto z", "node z").count("   recorded g * 3") == 2
    assert not any("recorded" in row for row in said(timeline, "set x = 5", "undo", "goto end", "node z"))
    assert not any("recorded" in row for row in said(timeline, "set x = 3", "goto end", "node z"))


def test_a_result_that_was_set_is_no_result_of_its_formula(timeline):
    panel = said(timeline, "goto end", "set z = 1", "node z")
    assert "3 (x) * 3 (x) = 9, set to 1 by you" in [row.strip() for row in panel]
    assert any(row.startswith("value") and "9 → 1" in row for row in panel)
    branch = branch_of(timeline, timeline.iterations[0], ["z = 1"])
    view = BranchView(timeline, timeline.iterations[0], branch, ("z = 1",))
    assert event_text(timeline, timeline.at(2), view) == f"{description(timeline, timeline.at(2))}; set to 1 by you"


def test_of_a_large_result_that_was_set_only_the_formula_stays():
    def program():
        w = torch.arange(12.0).requires_grad_()
        h = w * 2
        h.sum().backward()
        return w, h

    panel = said(timeline_of(program), "goto end", "set h[1] = 7", "node h")
    assert any(row.strip().startswith("w * 2, set by you") for row in panel)


def test_a_range_draws_value_and_gradient_and_changes_nothing(timeline):
    rows = said(timeline, "set x = -3..3")
    assert [row for row in rows if row.endswith(" over x")] == ["z over x", "x.grad over x"]
    assert sum(row.count("•") for row in rows) == 50
    assert [row.split()[0] for row in rows if " | " in row and row.split()[0] != "|"] == ["9", "0", "6", "-6"]
    assert rows[-1] == 'as a picture: gviz whatif TRACE "x = -3..3" --show "z,x.grad" -o curve.svg'
    assert said(timeline, "set x = -3..3", "undo") == ["nothing is changed"]


def test_a_range_of_something_asked_for_on_top_of_a_change(timeline):
    rows = said(timeline, "whatif grad z = 2", "whatif x = 0..1 --show x.grad")
    assert rows[0] == "x.grad over x"
    assert rows[1].split()[0] == "4"
    assert " ".join(rows[-2:]) == 'as a picture: gviz whatif TRACE "grad z = 2" "x = 0..1" --show "x.grad" -o curve.svg'


def vectors():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    y = w * w
    y.backward(torch.ones(2))
    return w, y


def test_what_is_several_numbers_is_added_up():
    rows = said(timeline_of(vectors), "whatif w[1] = 0..3")
    assert [row for row in rows if " over " in row] == ["(y).sum() over w[1]", "w.grad[1] over w[1]"]
    assert [row.split()[0] for row in rows if " | " in row and row.split()[0] != "|"] == ["10", "1", "6", "0"]


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ("x = 3..1", 'x = 3..1 has no extent that can be counted; hint: write "x = -3..3".'),
        ("x = a..1", "a..1 is not a number or a list of numbers; hint: a range has two finite numbers, "),
        ("q = 0..1", "there is no q"),
        ("grad z = 0..1", "it is not clear what to draw; hint: grad z = -3..3 --show x.grad."),
        ("x = 0..1 --show q", "there is no q"),
    ],
)
def test_a_range_that_cannot_be_drawn(timeline, change, refusal):
    assert said(timeline, f"whatif {change}")[0].startswith(refusal)


def test_a_range_over_a_long_recording_is_for_the_command_line(timeline, monkeypatch):
    monkeypatch.setattr(what_if, "MOST_RUNS", 8)
    assert said(timeline, "whatif x = 0..1")[0].endswith('gviz whatif TRACE "x = 0..1" --show z,x.grad.')


def by_hand():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(3):
        loss = (w * w).sum()
        loss.backward()
        with torch.no_grad():
            w -= 0.25 * w.grad
        w.grad.zero_()
    return w, loss


def test_a_name_is_the_first_of_that_name_that_the_iteration_uses():
    timeline = timeline_of(by_hand)
    written = [node for node in timeline.nodes if timeline.info(node).op.name == "sub_"]
    rows = said(timeline, "goto end", "set w = [5, 5]")
    assert rows[1] == f"w is #1 w here; also called w: #{written[-1]} w = sub_."
    assert rows[2].startswith("#1 w ")
    assert next(row for row in rows if "loss" in row).endswith("-> 50")
    assert said(timeline, "goto end", "set w[0] = 5", "set w[1] = 5")[2:] == rows[2:]
    held = next(node for node in timeline.nodes if timeline.info(node).name == "w.grad")
    for node, title, why in ((written[0], "w", "no operation in it uses that"), (held, "w.grad", "a pass makes it")):
        (refusal,) = said(timeline, "goto end", f"set #{node} = 5")
        assert refusal.startswith(f"#{node} {title} cannot be changed in this iteration")
        assert why in refusal
        assert said(timeline, "goto end", f"set #{node} = 5", "undo") == ["nothing is changed"]


class Torch(MemoryLog):
    framework = "torch"


def test_only_the_engines_own_operations_are_run_again():
    assert said(Timeline(Torch(events_of(product))), "set x = 5") == [
        "only recordings of the built-in engine can run again; this is a trace of torch; "
        "hint: gviz run --engine builtin --values all SCRIPT (or record); its random numbers are not those of PyTorch."
    ]


async def typed(pilot, text):
    await pilot.press("colon", *text, "enter")
    await pilot.pause()


def painted(app):
    panels = [app.screen.query_one(kind) for kind in (StatusRow, GraphCanvas, Tape, NodePanel)]
    return "\n".join(panel.render_line(y).text for panel in panels for y in range(panel.size.height))


async def test_on_the_screen(timeline):
    app = app_of(timeline)
    async with app.run_test(size=(140, 44)) as pilot:
        await typed(pilot, "set x = 5")
        sheet = app.screen.query_one(Sheet)
        rows = ["".join(text for text, _ in sheet.row(y)).strip() for y in range(2)]
        await pilot.press("escape")
        await typed(pilot, "goto end")
        await typed(pilot, "select x")
        changed = painted(app)
        await typed(pilot, "undo")
        undone = painted(app)
    assert sheet.border_title.startswith("What if x = 5")
    assert rows[0] == "#1 x                 value 3 -> 5, gradient 6 -> 10"
    for told in ("WHAT IF x = 5", "value                    3 → 5", "value  3 → 5  () f32", ".grad   6 → 10"):
        assert told in changed
        assert told not in undone


@pytest.fixture(scope="module")
def sum_of_two():
    def program():
        x = torch.tensor(3.0, requires_grad=True)
        y = x * x + torch.sin(x)
        y.backward()
        return x, y

    return timeline_of(program)


async def screens_of(timeline, size, *places):
    """The panels of a what-if at some places."""
    app, shown = app_of(timeline), []
    async with app.run_test(size=size) as pilot:
        await typed(pilot, "set x = 5")
        await pilot.press("escape")
        for place in places:
            await typed(pilot, f"goto {place}")
            event = app.screen.query_one(EventRow)
            shown.append(f"{painted(app)}\n{event.render_line(0).text}")
    return shown


async def test_a_box_uses_the_free_room_beside_it_for_both_numbers(sum_of_two):
    (screen,) = await screens_of(sum_of_two, (80, 24), "end")
    assert re.search(r"3 → 5 +\.grad 5\.01 → 10\.28", screen)
    assert "9.141 → 24.04" in screen


def test_wider_boxes_stay_in_their_rows_and_cover_no_line(sum_of_two):
    options = Options(content="all", tensors="line", density="brief")
    shape = structure(sum_of_two, sum_of_two.iterations[0], options)
    narrow = Moments(sum_of_two, shape, max_width=46).canvas.layout
    wide = Moments(sum_of_two, shape, max_width=46, compared=True).canvas.layout
    assert wide.wires == narrow.wires
    assert wide.width <= 46
    for key, place in wide.places.items():
        before = narrow.places[key]
        assert (place.y, place.height, place.port) == (before.y, before.height, before.port)
        assert place.x <= before.x < before.right <= place.right
        others = [one for other, one in wide.places.items() if other != key and one.y == place.y]
        assert all(one.x >= place.right or one.right <= place.x for one in others)
    assert wide.places["n1"].width > narrow.places["n1"].width


async def test_no_recorded_number_stands_unmarked_in_a_what_if(sum_of_two):
    last = len(sum_of_two)
    rule, accumulated, end = await screens_of(sum_of_two, (120, 40), last - 2, last - 1, last)
    assert "5 (x) * 5 (x) = 25" in rule
    assert "3 (x) * 3 (x) = 9" not in rule
    assert "sent to #1 x 0.2837 += 5, now 5.284" in rule
    assert ".grad was None, is now 10.28" in accumulated
    assert "is now 5.01" not in accumulated
    assert "backward pass 1 of y = 24.04" in end
    assert "x      10.3" in end
    assert "y.backward()" in end
    for screen in (rule, accumulated, end):
        assert not re.search(r"\b5\.01\b(?!\)? → )", re.sub("recorded .*", "", screen)), screen


def test_the_tooltip_and_the_page_of_an_event_have_both_numbers(sum_of_two):
    session = Session(Cursor(sum_of_two, len(sum_of_two)), UNICODE)
    what_if.what_if(session, "x = 5")
    moment = sum_of_two.at(len(sum_of_two) - 1)
    tip = str(node_tip(sum_of_two, moment, 1, UNICODE, session.branch_view))
    assert "WHAT IF x = 5:" in tip
    assert ".grad 5.01 → 10.28" in tip
    assert said(sum_of_two, "set x = 5", f"goto {moment.n}")[1] == "  WHAT IF x = 5: .grad was None, is now 10.28"


def test_a_way_not_taken_is_told_whole_however_narrow_the_screen():
    def deciding():
        x = torch.tensor(3.0, requires_grad=True)
        return x * 2 if x > 1 else x

    timeline = timeline_of(deciding)
    look = what_if.what_if(Session(Cursor(timeline, len(timeline)), UNICODE), "x = 0")
    rows = ["".join(text for text, _ in line) for line in look.lines(40)]
    assert max(map(len, rows)) <= 40
    told = " ".join(rows)
    assert "is False instead of True: a program that decides by it goes another way, and here" in told
    assert "x                 value 3 -> 0" in told


@pytest.fixture(scope="module")
def product_and_sine():
    def program():
        x = torch.tensor(2.0, requires_grad=True)
        y = torch.tensor(3.0, requires_grad=True)
        z = x * y + torch.sin(x)
        z.backward()
        return x, y, z

    return timeline_of(program)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_what_was_changed_stays_where_it_is_on_the_screen(product_and_sine, size):
    app = app_of(product_and_sine)
    async with app.run_test(size=size) as pilot:
        await typed(pilot, "goto end")
        await typed(pilot, "select x")
        graph = app.screen.query_one(GraphCanvas)
        tops = [graph.place(1).y - graph.view.y]
        for line in ("set x = 5", "set y = 100000", "undo", "undo"):
            await typed(pilot, line)
            await pilot.press("escape")
            await pilot.pause()
            assert graph.view.contains_region(graph._region(graph.place(1))), line
            tops.append(graph.place(1).y - graph.view.y)
    assert len({*tops}) == 1


async def test_a_panel_that_gets_lower_keeps_the_last_column_of_a_short_text(product_and_sine):
    app = app_of(product_and_sine, at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        panel = app.screen.query_one(NodePanel)
        height = panel.size.height
        for _ in range(3):
            await typed(pilot, "set x = 5")
            await pilot.press("escape")
            await pilot.pause()
        assert panel.size.height <= height
        assert not panel.show_vertical_scrollbar
        assert panel.render_line(0).text.endswith("leaf")


async def test_gradients_that_are_not_in_grad_yet_share_their_brackets_on_the_tape(product_and_sine):
    (screen,) = await screens_of(product_and_sine, (120, 40), len(product_and_sine) - 3)
    assert "(2 → 5)" in screen
    assert ") → (" not in screen
