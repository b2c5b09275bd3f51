"""``compare`` in the debugger."""

import re

import pytest
from cli.programs import gviz
from driving import app_of, transcript
from recording import events_of, timeline_of

import gviz.engine as torch
from gviz.compare.compared_iteration import Side
from gviz.compare.recording_comparison import compare
from gviz.render import comparison_table
from gviz.trace.event_log import MemoryLog
from gviz.trace.recording.source_text import write
from gviz.tui.glyphs import ASCII
from gviz.tui.screens.comparison_screen import PairList


def loops():
    w = torch.tensor(0.5, requires_grad=True)
    for steps in (1, 3):
        h = torch.tensor(1.0)
        for _ in range(steps):
            h = torch.tanh(h * w)
        h.backward()
    return w


@pytest.fixture(scope="module")
def timeline():
    return timeline_of(loops)


def said(timeline, *commands):
    return transcript(timeline, "goto end", *commands).rpartition("(gviz) ")[2].splitlines()[1:]


def test_this_iteration_and_the_one_before(timeline):
    rows = said(timeline, "compare")
    assert rows[0].startswith("only in b: 2 more times mul, tanh, from #8")
    assert rows == said(timeline, "compare 1,2")
    assert max(map(len, rows)) <= 80
    assert any(row.rstrip().endswith("gradient 0.3932 | 0.04…") or "gradient" in row for row in rows)


def test_this_iteration_and_another(timeline):
    assert said(timeline, "compare 1") == said(timeline, "compare 2,1")


@pytest.mark.parametrize("typed", ["1 2", "1, 2"])
def test_iterations_may_be_apart(timeline, typed):
    assert said(timeline, f"compare {typed}") == said(timeline, "compare 1,2")


def test_another_recording(timeline, tmp_path):
    (tmp_path / "one.py").write_text("import gviz.engine as torch\nw = torch.tensor(0.5)\nh = torch.tanh(w * 1.0)\n")
    gviz("record", "-o", "one.gviz", "one.py", cwd=tmp_path)
    rows = said(timeline, f"compare {tmp_path / 'one.gviz'} 1,1")
    assert "one.gviz" in rows[[row.startswith("#") for row in rows].index(True) - 1]


def painted(screen, id):
    panel = screen.query_one(id)
    return [panel.render_line(y).text.rstrip() for y in range(panel.size.height)]


async def compared(pilot, command="compare 1,2"):
    await pilot.press("colon", *command, "enter")
    await pilot.pause()
    return pilot.app.screen


@pytest.mark.parametrize(("size", "beside"), [((120, 40), True), ((80, 24), True), ((70, 30), False)])
async def test_it_stands_at_the_first_difference_and_both_boxes_of_a_pair_are_shown(timeline, size, beside):
    app = app_of(timeline)
    async with app.run_test(size=size) as pilot:
        screen = await compared(pilot)
        found = screen._view.comparison
        assert found.pairs[screen.query_one(PairList).pair] == found.differences[0].pair == (0, 8)
        assert any("#8" in row for row in painted(screen, "#boxes"))
        while screen.query_one(PairList).chosen > 1:
            await pilot.press("up")
        await pilot.pause()
        boxes = [row for row in painted(screen, "#boxes") if row]
        rows = painted(screen, "#pairs")
    assert "iteration 1" in rows[0]
    assert "iteration 2" in rows[0]
    assert rows[1].lstrip().startswith("#1 w" if beside else "#1 | #1  w")
    (tops,) = {row.count("w leaf #1") for row in boxes} - {0}
    assert tops == (2 if beside else 1)
    assert sum(row.count("| gradient") for row in boxes) == 2
    assert not any("| value" in row for row in boxes)
    assert boxes[-1].strip() == "gradient 0.6246 apart"


async def test_a_low_screen_has_a_row_for_each_sentence_and_cuts_no_box(timeline):
    app = app_of(timeline)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await compared(pilot)
        sentences = list(comparison_table.summary(screen._view.comparison))
        said = painted(screen, "#summary")
        assert len(sentences) > 2
        assert all(any(row.strip("…") and text.startswith(row.strip("…")) for row in said) for text in sentences)
        for _ in screen.query_one(PairList)._keys:
            assert screen.query_one("#boxes").max_scroll_y == 0
            await pilot.press("down")
            await pilot.pause()


async def test_the_columns_leave_the_free_room_to_the_differences():
    def program():
        bias = torch.tensor(0.1977, requires_grad=True)
        for rate in (0.1, 0.1):
            bias.grad = None
            (torch.sin(bias * 3.1) * 2.345).backward()
            with torch.no_grad():
                bias -= rate * bias.grad

    app = app_of(timeline_of(program))
    async with app.run_test(size=(120, 40)) as pilot:
        rows = painted(await compared(pilot), "#pairs")
    assert any(re.search(r"gradient -?\d+\.\d{3,} \| -?\d+\.\d{3,}$", row.rstrip()) for row in rows), rows
    assert not any("…" in row for row in rows)


def test_columns_stay_in_line_in_ascii(timeline):
    found = compare(Side(timeline, 1), Side(timeline_of(loops), 2))
    names = "a_program_with_a_long_name.py", "another_program_with_a_long_name.py"
    plain = comparison_table.heading(found, *names, 60, clip=ASCII.clipped)
    wide = comparison_table.heading(found, *names, 60)
    assert plain.isascii()
    assert plain.index("another") == wide.index("another")


def test_two_iterations_of_one_recording_are_named_without_it(timeline):
    comparison = compare(Side(timeline, 1), Side(timeline, 2))
    assert comparison_table.titles(comparison, "demo.py", "demo.py", 40) == ("iteration 1", "iteration 2")


async def test_a_row_leads_to_its_event_and_node(timeline):
    app = app_of(timeline)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await compared(pilot)
        await pilot.press("down")
        await pilot.pause()
        chosen = painted(screen, "#boxes")[0]
        await pilot.press("enter")
        await pilot.pause()
        assert app.screen is not screen
        assert f"#{app.screen.selected} " in chosen.split("iteration 1")[1]
        assert timeline.at(app.screen.cursor.position).node == app.screen.selected


async def test_what_is_equal_is_shown_too_if_asked_for(timeline):
    app = app_of(timeline)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await compared(pilot)
        await pilot.press("down")
        before = len(screen.query_one("#pairs")._lines), painted(screen, "#boxes")
        await pilot.press("a")
        await pilot.pause()
        assert len(screen.query_one("#pairs")._lines) > before[0]
        assert painted(screen, "#boxes") == before[1]
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen is not screen


async def test_a_node_that_only_the_other_recording_has(timeline, tmp_path):
    write(MemoryLog(events_of(loops)), tmp_path / "other.gviz")
    app = app_of(timeline)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await compared(pilot, f"compare {tmp_path / 'other.gviz'} 1,2")
        await pilot.press("end", *["down"] * 20, "enter")
        await pilot.pause()
        assert app.screen is screen
        assert screen.query_one("#pairs").border_subtitle == "only the other recording has this node"
        assert "only the other side has it" in painted(screen, "#boxes")[1]


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("compare 2,2", "both sides are iteration 2 of this recording"),
        ("compare 1,7", "there is no iteration 7"),
        ("compare 7", "there is no iteration 7"),
        ("compare 2", "both sides are iteration 2 of this recording"),
        ("compare none.gviz", "none.gviz does not exist"),
    ],
)
def test_bad_input(timeline, command, what):
    assert said(timeline, command)[0].startswith(what)


async def test_a_key_that_means_nothing_in_the_list_says_so_until_another_row_is_chosen(timeline):
    app = app_of(timeline, at=len(timeline))
    async with app.run_test(size=(80, 30)) as pilot:
        await pilot.press("colon", *"compare 1", "enter")
        await pilot.pause()
        rows = app.screen.query_one(PairList)
        for key in ("e", "n", "delete"):
            await pilot.press(key)
            await pilot.pause()
            assert str(rows.border_subtitle) == f"{key} does nothing here"
        for key in (*"jjjjjjjjjjjjj", "k"):
            await pilot.press(key)
            await pilot.pause()
        assert "nothing here" not in str(rows.border_subtitle)
        await pilot.press(*"kkkkkkkkkkkkkk")
        await pilot.pause()
        assert str(rows.border_subtitle) == "there are no more rows"
