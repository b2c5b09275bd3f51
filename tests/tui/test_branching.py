"""``set x = 5`` and ``undo``: what would follow from another number, in both front ends."""

import pytest
from driving import app_of, transcript
from recording import events_of

import gviz.engine as torch
from gviz.trace import load
from gviz.trace.log import MemoryLog
from gviz.trace.timeline import Timeline
from gviz.tui.screens.sheet import Sheet
from gviz.tui.widgets.graph import GraphCanvas
from gviz.tui.widgets.node import NodePanel
from gviz.tui.widgets.rows import StatusRow
from gviz.tui.widgets.tape import Tape


def product():
    x = torch.tensor(3.0, requires_grad=True)
    z = x * x
    z.backward()
    return x, z


@pytest.fixture(scope="module")
def timeline():
    return Timeline(MemoryLog(events_of(product)))


def said(timeline, *commands):
    """What the last command answers."""
    return transcript(timeline, *commands).rpartition("(gviz) ")[2].splitlines()[1:]


def test_old_and_new(timeline):
    assert said(timeline, "set x = 5") == [
        "#1 x                 value 3 -> 5, gradient 6 -> 10",
        "#2 z = Mul           value 9 -> 25",
    ]


def test_changes_add_up_and_are_taken_back_one_by_one(timeline):
    both = said(timeline, "set x = 5", "whatif grad z = 2")
    assert both[0] == "#1 x                 value 3 -> 5, gradient 6 -> 20"
    assert said(timeline, "set x = 5", "whatif grad z = 2", "undo") == said(timeline, "set x = 5")
    assert said(timeline, "set x = 5", "undo") == ["took back x = 5; nothing is changed"]
    assert said(timeline, "undo") == ["nothing is changed"]


def test_a_change_that_cannot_be_made_is_not_kept(timeline):
    assert said(timeline, "whatif y = 5") == ["there is no y; hint: only tensors are recorded, the tape lists them."]
    assert said(timeline, "whatif x = [1, 2]", "undo") == ["nothing is changed"]


def test_the_branch_is_exported_as_a_trace(timeline, tmp_path):
    path = tmp_path / "branch.gviz"
    assert said(timeline, "set x = 5", f"export {path}")[0].startswith(f"wrote {path}")
    assert said(load(path), "goto end", "print z")[0].endswith("25")
    assert said(timeline, "set x = 5", f"export {path}")[0].startswith(f"{path} already exists")
    assert said(timeline, f"export {tmp_path / 'none.gviz'}")[0].startswith("nothing is changed")
    assert "cannot be written" in said(timeline, "set x = 5", f"export {tmp_path / 'none' / 'b.gviz'}")[0]


def test_every_step_tells_both_until_all_is_taken_back(timeline):
    assert said(timeline, "set x = 5", "goto 1", "n")[1:] == ["  WHAT IF x = 5: value 9 → 25"]
    assert said(timeline, "set x = 5", "goto end", "print x.grad") == ["x.grad = 6 → 10"]
    assert said(timeline, "set x = 5", "goto end", "undo", "print x.grad") == ["x.grad = 6"]
    assert said(timeline, "set x = 5", "watch z", "goto 1", "n")[-1] == "  watch: z = 9 → 25"


def test_settings_are_still_set(timeline):
    assert said(timeline, "set ascii on") != said(timeline, "set x = 5")


class Torch(MemoryLog):
    framework = "torch"


def test_only_the_engines_own_operations_are_run_again():
    assert said(Timeline(Torch(events_of(product))), "set x = 5") == [
        "only what gviz's own engine recorded can be run again; this is a trace of torch; "
        "hint: gviz record --engine builtin SCRIPT."
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
    for told in ("WHAT IF x = 5", "value                3 → 5", "what if value 3 → 5"):
        assert told in changed
        assert told not in undone
