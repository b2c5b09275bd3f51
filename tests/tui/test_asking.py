"""Expressions over a moment, what is watched, what changed."""

import numpy as np
import pytest
from driving import after, app_of, transcript
from recording import timeline_of
from stories import demo, iterations

import gviz.engine as torch
from gviz.errors import GvizError
from gviz.query.expressions import value_of
from gviz.query.nodes import NamedNodes
from gviz.tui.cursor import Asker
from gviz.tui.screens.overlay_pages import Sheet, SheetScreen
from gviz.tui.widgets.node_panel import NodePanel


def answer(text, n=33, timeline=None):
    timeline = demo() if timeline is None else timeline
    return value_of(timeline, NamedNodes(timeline), n, text)


@pytest.mark.parametrize(
    ("text", "n", "value"),
    [
        ("x", 33, 3.0),
        ("x.grad", 33, -14.0),
        ("x.grad", 30, None),
        ("x * w - a", 9, 0.0),
        ("#3 + #4", 33, -24.0),
        ("norm([x.grad, w.grad]) ** 2", 33, 340.0),
        ("max(v * 2 for v in [x, w])", 33, 6.0),
        ("np.exp(x - 3)", 33, 1.0),
        ("1 / 0.0 if x > 5 else x.value", 33, 3.0),
    ],
)
def test_expressions(text, n, value):
    assert answer(text, n) == (None if value is None else pytest.approx(value))


@pytest.mark.parametrize(
    "text", ["", "x +", "nothing", "a.b.c", "#99", "x.grad.foo", "x / 'y'", "__import__('os')", "open('x')", "lambda"]
)
def test_what_cannot_be_told_is_one_line(text):
    with pytest.raises(GvizError) as error:
        answer(text)
    assert "\n" not in error.value.what


def test_a_name_means_the_last_tensor_that_had_it():
    timeline = iterations(3)
    values = {answer("#2", n, timeline) if n < 5 else answer("y", n, timeline) for n in (3, len(timeline))}
    assert values == {9.0}
    assert NamedNodes(timeline).last("y", 3) != NamedNodes(timeline).last("y", len(timeline))


def test_parameters_are_found_by_their_path():
    def program():
        model = torch.nn.Sequential(torch.nn.Linear(2, 1))
        model.named = torch.nn.Linear(1, 1)
        model(torch.ones(1, 2)).sum().backward()

    timeline = timeline_of(program)
    names = {timeline.info(node).name for node in timeline.nodes}
    assert "named.weight" in names or "model.named.weight" in names
    path = next(name for name in names if name.endswith("named.bias"))
    assert np.shape(answer(f"{path} + 1", len(timeline), timeline)) == (1,)


def test_numbers_that_were_not_stored_are_said_to_be_missing():
    timeline = timeline_of(lambda: torch.ones(1000) * 2)
    with pytest.raises(GvizError, match="not stored"):
        answer("#1", len(timeline), timeline)


def test_what_is_watched_is_said_at_every_stop():
    said = transcript(demo(), "watch x.grad", "watch norm(a)", "n", "c", "unwatch 1", "C")
    assert "  watch: norm(a) = there is no a yet\n" in said
    assert "  watch: x.grad = -14\n  watch: norm(a) = 6\n" in said
    assert "x.grad" not in said.rpartition("no longer watched: x.grad")[2]


def test_the_last_change_of_a_gradient_again_and_again():
    said = transcript(iterations(3), "goto end", "last x.grad", "", "", "")
    assert said.count("back to event") == 3
    assert "x.grad did not change before" in said


def test_the_first_change():
    assert "event 5, forward, node #3" in transcript(demo(), "goto end", "first a")


def test_differences_between_two_moments():
    said = transcript(demo(), "diff @12 @33")
    assert "#1 x: grad · -> -14\n" in said
    assert "#3" not in said.rpartition("diff")[2]
    assert "no differences" in transcript(demo(), "diff @33 33")


@pytest.mark.parametrize(
    ("command", "refused"),
    [
        ("diff x", "diff needs one or two events"),
        ("diff 1 2 3", "diff needs one or two events"),
        ("diff 99", "diff needs one or two events"),
        ("unwatch 4", "there is no watch 4"),
        ("watch x +", "x + is no expression"),
        ("last nosuch", "there is no nosuch"),
        ("first", "first needs EXPR"),
    ],
)
def test_questions_that_make_no_sense_are_refused(command, refused):
    assert f"(gviz) {command}\n{refused}; hint: " in transcript(demo(), command)


async def test_what_is_watched_stands_above_the_node():
    app = app_of(demo(), at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("w", *"x.grad", "enter", "greater_than_sign")
        await pilot.pause()
        first = "".join(text for text, _ in app.screen.query_one(NodePanel).row(0))
        assert first == "x.grad = -14"


async def test_p_answers_in_the_bottom_row():
    screen = await after(demo(), "p", *"#1 * 2", "enter")
    assert "#1 * 2 = 6" in screen.remark


def test_why_in_lines_with_the_events():
    said = transcript(demo(), "goto end", "why x.grad", "why loss.value")
    assert "#1 x: .grad is -14  event 31\n  += " in said
    assert "#5 loss = add at demo.py:7" in said


async def test_e_explains_on_a_page():
    app = app_of(demo(), at=33)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("g", "e")
        await pilot.pause()
        assert isinstance(app.screen, SheetScreen)
        rows = ["".join(text for text, _ in app.screen.query_one(Sheet).row(y)) for y in range(2)]
        assert rows[0].startswith("#1 x: .grad is -14")


def test_what_is_not_there_yet_is_said_to_be_none():
    assert "norm(x.grad): x.grad is None here" in transcript(demo(), "eval norm(x.grad)")


def test_what_is_watched_is_written_once_where_it_is_nothing_yet():
    said = transcript(demo(), "watch norm(x.grad)", "watch")
    assert "watching norm(x.grad) = x.grad is None here" in said
    assert "1  norm(x.grad) = x.grad is None here" in said


def test_a_norm_can_be_asked_for_in_pytorchs_way():
    timeline = timeline_of(lambda: torch.tensor([3.0, 4.0], requires_grad=True) * 1)
    assert answer("#1.norm()", len(timeline), timeline) == 5.0


def test_a_misspelt_name_gets_a_suggestion():
    said = transcript(demo(), "goto end", "eval lss.grad", "print losss")
    assert "did you mean loss.grad?" in said
    assert "did you mean loss?" in said


@pytest.mark.parametrize(("text", "value"), [("[x.shape for x in [np.array([1, 2])]][0]", (2,)), ("'a #4'", "a #4")])
def test_names_and_texts_of_the_expression_itself_are_its_own(text, value):
    assert answer(text) == value


@pytest.mark.parametrize("text", ["10**1200", "[10**999]", "{}[10**999]", "np.array(10**999)"])
def test_what_is_long_is_cut(text):
    said = transcript(demo(), f"eval {text}", "watch 10**1200", "n")
    assert "event 3" in said
    assert max(map(len, said.splitlines())) < 250


def test_a_condition_that_goes_wrong_says_how():
    said = transcript(demo(), "break on forward if {}[10**999]", "c", "break x if str(value)*10**10", "c")
    assert "it would take about" in transcript(demo(), "break x if str(value)*10**10", "goto start", "c")
    assert "breakpoint 1: {}[10**999]: 1000" in said


def test_a_gradient_is_the_one_of_this_moment_not_one_that_was_used_before():
    def program():
        x = torch.tensor(1.0, requires_grad=True)
        for _ in range(2):
            (x * x).backward()
            with torch.no_grad():
                x -= 0.25 * x.grad
            x.grad = None
        return x

    timeline = timeline_of(program)
    added = [n for n in range(1, len(timeline)) if type(timeline.event(n)).__name__ == "GradAccumulated"]
    assert [Asker(timeline).evaluated("x.grad", n) for n in added] == ["2", "1"]
