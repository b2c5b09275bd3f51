"""Breakpoints through both front ends."""

import io
import warnings

import numpy as np
import pytest
from driving import after, app_of, transcript
from recording import timeline_of
from stories import SOURCE, chain, demo, failed, iterations

import gviz.engine as torch
from gviz.errors import GvizError
from gviz.events import GradAccumulated
from gviz.query.expressions import value_of
from gviz.query.nodes import NamedNodes
from gviz.query_syntax.stop_condition import stop
from gviz.system.cooperative_work import finished
from gviz.trace import stepping
from gviz.tui.breakpoints import Breakpoints
from gviz.tui.commands import breakpoint_commands as breaks
from gviz.tui.cursor import Asker, Cursor
from gviz.tui.drawing.watches_and_breakpoints import break_rows
from gviz.tui.glyphs import glyphs
from gviz.tui.language.parser import parse
from gviz.tui.line_mode import debug
from gviz.tui.screens.overlay_pages import SheetScreen
from gviz.tui.widgets.status_rows import KeysRow
from gviz.tui.widgets.tape_panel import Tape


def cursor(timeline, *commands, at=1):
    made = Cursor(timeline, at)
    for text in commands:
        made.breakpoints.add(stop(text))
    return made


def stops_forward(timeline, *commands):
    """Where running on stops, from the start to the end."""
    moving, found = cursor(timeline, *commands, at=0), []
    while moving.position < len(timeline):
        found.append(moving.run_to_stop().position)
    return found


def stops_backward(timeline, *commands):
    moving, found = cursor(timeline, *commands, at=len(timeline)), []
    while moving.position:
        found.append(moving.run_to_stop(backward=True).position)
    return found


@pytest.mark.parametrize("commands", [("x",), ("on backward", "on accumulate"), ("mul if value < 0", "change w.grad")])
@pytest.mark.parametrize("timeline", [demo(), failed(), iterations(4)], ids=["demo", "failed", "iterations"])
def test_both_directions_stop_at_the_same_moments(timeline, commands):
    forward, backward = stops_forward(timeline, *commands), stops_backward(timeline, *commands)
    assert forward[:-1] == backward[-2::-1]
    anyway = set(stepping.stops(timeline))
    fits = {hit.n for text in commands for hit in Breakpoints(timeline).add(stop(text)).after(0)}
    assert set(forward[:-1]) == (anyway | fits) - {len(timeline)}


def test_a_count_passes_by_so_many():
    moving = cursor(iterations(4), "on accumulate")
    first = moving.run_to_stop().position
    moving.seek(1)
    third = moving.run_to_stop(3)
    assert third.position > first
    assert third.reason.words == "breakpoint 1"
    assert sum(1 for _ in moving.breakpoints.listed[0].hits.before(third.position)) == 2


def test_once_is_once_also_when_it_was_met_backward():
    moving = Cursor(demo(), 33)
    moving.breakpoints.add(stop("on accumulate w"), once=True)
    assert moving.run_to_stop(backward=True).position == 28
    assert moving.breakpoints.listed == []


def test_a_condition_and_its_removal():
    points = Breakpoints(demo())
    one = points.add(stop("on backward"))
    points.set_condition("1 abs(grad) > 3")
    assert [hit.n for hit in one.after(0)] == [22, 27, 30]
    assert one.stop.text == "on backward if abs(grad) > 3"
    points.set_condition("1")
    assert one.stop.text == "on backward"
    assert len(list(one.after(0))) == 5


@pytest.mark.parametrize(
    "command", ["condition", "condition 7 value > 1", "condition 1 value >", "ignore 1", "ignore 1 x", "ignore 7 1"]
)
def test_what_cannot_be_changed_is_said(command):
    said = transcript(demo(), "break x", command, "info")
    assert "Traceback" not in said
    assert "1  break x  [3 times in this recording" in said


def test_first_stops_can_be_passed_by_in_both_directions():
    points = Breakpoints(iterations(4))
    one = points.add(stop("on accumulate"))
    every = [hit.n for hit in one.after(0)]
    points.ignore("1 2")
    assert [hit.n for hit in one.after(0)] == every[2:]
    assert [hit.n for hit in one.before(len(points.timeline))] == every[:1:-1]


def test_a_session_in_lines():
    said = transcript(
        demo(),
        "b mul if value < -10",
        "tb change x.grad",
        'log on backward "{name}: {grad}"',
        "info",
        "c",
        "c",
        "c",
        "c",
        "info",
    )
    assert "breakpoint 1: mul if value < -10\n" in said
    assert '3  log on backward "{name}: {grad}"' in said
    assert "event 13: loss: 1\nevent 17: b: 1\nevent 17, backward" in said
    assert said.count("breakpoint 1.") == 2
    assert "breakpoint 2.\n" in said
    assert "2  tbreak" not in said.rpartition("info")[2]


def test_what_can_never_stop_says_so():
    assert "never stops" in transcript(demo(), "break nosuch")
    assert "never stops" not in transcript(demo(), "break x", "break on nan")
    lines = len(SOURCE.splitlines())
    assert f"(demo.py has {lines} lines, so it never stops)" in transcript(demo(), "break demo.py:99")
    assert "demo.py has" not in transcript(demo(), f"break demo.py:{lines}")


def test_a_number_is_a_line_as_in_gdb_and_an_event_where_a_moment_is_asked_for():
    said = transcript(demo(), "break 6", "continue", "delete", "goto start", "until 6", "goto 6", at=0)
    assert said.count("node #4 b = mul") == 2
    assert said.rpartition("goto 6\n")[2].startswith("back to event 6, ")


def test_a_line_that_does_nothing_is_told_and_not_run_to():
    lines = len(SOURCE.splitlines())
    said = transcript(demo(), f"until {lines + 3}", "until 1", "until 33", "break 1", at=1)
    assert said.count("event 1, ") == 1
    assert f"nothing later is at {lines + 3}; hint: demo.py has {lines} lines" in said
    assert "nothing later is at 33; hint: demo.py has" in said
    assert "; event 33 is goto 33." in said
    assert "nothing later is at 1; hint: line 3 makes nodes, line 1 none; event 1 is goto 1." in said
    assert "breakpoint 1: 1 (line 3 makes nodes, line 1 none, so it never stops)" in said


@pytest.mark.parametrize("test", ["value.max() > 3", "abs(grad) > 1", "op == 'mul' and step >= 0"])
def test_a_comparison_of_what_conditions_ask_for_says_how_that_is_written(test):
    said = transcript(demo(), f"break {test}", f"tbreak {test}", f"until {test}", f"goto {test}", at=1)
    assert said.count(f"; break if {test} asks every node)") == 2
    assert f"hint: until if {test} asks every node." in said
    assert f"hint: if {test} asks every node." in said


def test_what_conditions_ask_for_is_of_no_single_tensor():
    said = transcript(demo(), "break value > 3 if step > 2", "break grad", "break x > grad", "print value.max()")
    assert "(no node is named value; break if (value > 3) and (step > 2) asks every node)" in said
    assert said.count("(no node is named grad; break if … asks grad of every node, x.grad > 1 asks one)") == 2
    assert "conditions ask for value, as break if value.max() > 3: here it is of x, x.grad or #4" in said


def test_a_place_that_is_nothing_is_told_from_one_that_does_not_come_again():
    said = transcript(demo(), "until nosuch", "goto end", "until x")
    assert "nothing later is at nosuch; hint: no node is named nosuch." in said
    assert "nothing later is at x." in said


def test_check_takes_no_place():
    said = transcript(demo(), "check nosuch")
    assert "check takes all, or nothing, not nosuch; hint: everything that is or may be wrong" in said
    assert "why PLACE explains a node." in said
    assert "nothing found" not in said


def test_a_name_that_is_nothing_keeps_a_comparison_from_holding():
    assert "never stops" in transcript(demo(), "break x > nosuch")


def test_a_moment_is_where_a_comparison_holds():
    said = transcript(demo(), "goto norm(x.grad) > 0", "goto if op == 'mul'", at=1)
    assert ".grad was None, is now" in said
    assert "mul:" in said


@pytest.mark.parametrize("word", ["mul", "Mul", "MulBackward0"])
def test_an_operation_is_called_in_a_condition_as_in_a_place(word):
    said = transcript(demo(), f"break if op == '{word}'", f"break if op != '{word}'", "info break")
    assert "[0 times" not in said
    assert f"1  break if op == '{word}'" in said


@pytest.mark.parametrize("text", [r"'\d' == name", "1[0] == 1", "1if value is 1 else 2"])
def test_python_warns_of_nothing_that_is_typed(text):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        transcript(demo(), f"break if {text}", f"break x > 0 if {text}", f"print {text}", f"break {text}")
    assert not said


def test_trouble_with_a_condition_stops_and_says_why():
    said = transcript(demo(), "break on forward if value.shape[3]", "c")
    assert "breakpoint 1: value.shape[3]: tuple index out of range." in said


@pytest.mark.parametrize("text", ['log x "{nothing}"', 'log x "{"', "log x", 'log x "{}"'])
def test_what_a_log_point_cannot_say_is_refused(text):
    said = transcript(demo(), text, "info")
    assert "there are no breakpoints" in said


def test_switched_off_is_passed_by():
    said = transcript(demo(), "b x", "disable 1", "info", "c", "enable", "C")
    assert "1  break x (off)" in said
    assert "end of recording" in said
    assert "back to event 31" in said


def test_delete_takes_numbers_or_all():
    said = transcript(demo(), "b x", "b w", "delete 1", "info", "delete", "info", "delete 9")
    assert "deleted: 1\n" in said
    assert "2  break w" in said
    assert "there is no breakpoint 9" in said


def test_a_long_way_through_log_points_stays_short():
    output = io.StringIO()
    debug(chain(3000), ['log add "here"', "c"], io.StringIO(), output)
    assert output.getvalue().count(": here\n") == 1000


async def test_b_marks_the_node_and_running_on_stops_there():
    app = app_of(demo(), at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(*"jjjbc")
        await pilot.pause()
        rows = ["".join(text for text, _ in app.screen.query_one(Tape).row(y)) for y in range(1, 6)]
        assert [y for y, row in enumerate(rows, 1) if "●" in row] == [4]
        assert app.screen.cursor.position == 7
        assert app.screen.stop.reason.words == "breakpoint 1"
        await pilot.press("b")
        await pilot.pause()
        assert "no breakpoint at #4" in app.screen.query_one(KeysRow).remark
        assert "●" not in "".join(text for text, _ in app.screen.query_one(Tape).row(4))


async def test_capital_b_edits_the_breakpoint_at_the_selected_node():
    screen = await after(demo(), *"jjjb", "B", *"if grad < 0", "enter")
    assert [one.stop.text for one in screen.cursor.breakpoints.listed] == ["#4 if grad < 0"]


async def test_capital_b_offers_the_selected_node():
    screen = await after(demo(), *"jjj", "B", "enter")
    assert [one.stop.text for one in screen.cursor.breakpoints.listed] == ["b"]


async def test_capital_b_asks_for_a_condition():
    screen = await after(demo(), "B", *"x if grad < 0", "enter", "c")
    assert screen.cursor.position == 30


async def test_info_is_a_page():
    app = app_of(demo(), at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("b", "j", "b", *":info", "enter")
        await pilot.pause()
        assert isinstance(app.screen, SheetScreen)


def test_the_words_of_other_debuggers():
    assert parse("b x").name == "break"
    assert parse("tb x").name == "tbreak"
    with pytest.raises(GvizError):
        parse("log")


def test_a_condition_replaces_the_one_that_was_there():
    said = transcript(demo(), "break if value < -20", "condition 1 value < -5", "info", "condition 1")
    assert "1  break if value < -5  [" in said.replace("break  if", "break if")
    assert "if" not in said.rpartition("condition 1\n")[2]


def test_what_log_points_do_not_say_is_counted():
    assert "and 2000 more messages" in transcript(chain(3000), 'log add "here"', "c")


def test_log_points_say_nothing_on_the_way_back():
    said = transcript(demo(), 'log mul "here"', "break x", "goto end", "C")
    assert "back to event 31" in said
    assert ": here" not in said


def positions(timeline, text, *, backward=False):
    """Where continue stops from one end of the recording to the other."""
    cursor = Cursor(timeline, len(timeline) if backward else 0)
    list(breaks.add(cursor.breakpoints, text, 0))
    found = []
    while (cursor_stop := cursor.run_to_stop(backward=backward)).position != cursor_stop.start:
        if cursor_stop.reason.kind == "breakpoint":
            found.append(cursor_stop.position)
    return found


def plain_changes(timeline, text):
    """Where an expression changes, found by evaluating it at every moment."""

    def value(n):
        try:
            return str(value_of(timeline, NamedNodes(timeline), n, text))
        except GvizError:
            return None

    values = [value(n) for n in range(len(timeline) + 1)]
    return [n for n in range(1, len(timeline) + 1) if values[n] != values[n - 1]]


def descent():
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    for _ in range(3):
        y = (x * x).sum()
        y.backward()
        with torch.no_grad():
            x -= 0.1 * x.grad
        x.grad = None
    return x, y


@pytest.mark.parametrize(
    "text",
    ["x * 2", "x.grad.sum() * 2", "norm(x.grad) > 4", "x[0]", "#1.max()", "y + x[1]", "sum(v for v in x)", "len(x)"],
)
def test_break_change_stops_where_the_value_of_an_expression_changes(text):
    timeline = timeline_of(descent)
    expected = plain_changes(timeline, text)
    assert expected
    assert positions(timeline, f"change {text}") == expected
    before_the_end = [n for n in expected if n < len(timeline)]
    assert positions(timeline, f"change {text}", backward=True)[::-1] == before_the_end


def test_an_expression_may_have_a_condition_and_last_and_first_find_its_changes():
    timeline = timeline_of(descent)
    expected = plain_changes(timeline, "x[0] * 2")
    assert positions(timeline, "change x[0] * 2 if step == 1") == [
        n for n in expected if timeline.iteration_at(n).index == 1
    ]
    asker = Asker(timeline)
    assert finished(asker.change("x[0] * 2", len(timeline) + 1)) == expected[-1]
    assert finished(asker.change("x[0] * 2", 9, first=True)) == expected[0]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("3 + 4", "names no tensor"),
        ("x.max().tofile()", "no expression"),
        ("[x][0](1)", "no expression"),
        ("choose(x > 2, 1, 0)", "no function choose"),
    ],
)
def test_what_is_no_expression_over_tensors_is_refused_and_takes_no_number(text, why):
    breakpoints = Breakpoints(demo())
    with pytest.raises(GvizError, match=why):
        list(breaks.add(breakpoints, f"change {text}", 0))
    assert breakpoints.add(stop("x")).number == 1


LOOP = """
w = torch.tensor([2.0, -1.0], requires_grad=True)
for _ in range(3):
    h = (w * torch.tensor([1.0, 1.0])).relu()
    h.sum().backward()
    with torch.no_grad():
        w -= w.grad
"""


@pytest.fixture(scope="module")
def forgetful():
    """A loop that never clears its gradient; half of ``h`` is zero, then all of it."""
    return timeline_of(lambda: exec(LOOP, {"torch": torch}))


def test_a_finding_is_a_stop_in_both_directions(forgetful):
    (n,) = [hit.n for hit in Breakpoints(forgetful).add(stop("finding not-cleared")).after(0)]
    assert isinstance(forgetful.event(n), GradAccumulated)
    assert [hit.n for hit in Breakpoints(forgetful).add(stop("finding not-cleared")).before(len(forgetful))] == [n]
    met = cursor(forgetful, "finding not-cleared").breakpoints.next(0)
    assert met.reason.words.startswith("breakpoint 1: not-cleared: the .grad of #1")
    assert stops_forward(forgetful, "finding not-cleared")[:-1] == stops_backward(forgetful, "finding")[-2::-1]


@pytest.mark.parametrize(("text", "times"), [("finding not-cleared #1", 1), ("finding not-cleared #2", 0),
                                             ("finding not-cleared if grad[0] > 1", 1),
                                             ("finding not-cleared if grad[0] > 100", 0)])  # fmt: skip
def test_a_finding_may_be_limited_to_a_place_and_a_condition(forgetful, text, times):
    assert len(list(Breakpoints(forgetful).add(stop(text)).after(0))) == times


def test_a_kind_of_finding_there_is_not_is_told_the_nearest():
    said = transcript(demo(), "break finding vanish", "break finding vanishing", "break finding")
    assert "did you mean vanishing?" in said
    assert said.count("(no such finding)") == 2


def test_a_comparison_stops_wherever_it_holds(forgetful):
    def stops(text):
        return [hit.n for hit in Breakpoints(forgetful).add(stop(text)).after(0)]

    numbers = NamedNodes(forgetful)
    for text in ("zeros(#6) > 0.4", "#1.grad.max() > 1", "zeros(#1.grad) == 0 and zeros(#1) == 0"):
        held = [n for n in stops(text) if not np.all(value_of(forgetful, numbers, n, text))]
        assert not held
    assert [forgetful.at(n).node for n in stops("zeros(#4) == 0.5")] == [4]
    assert not stops("zeros(#4) > 0.5")
    assert len(stops("#1.grad.max() > 1")) == 2


def test_a_condition_is_asked_again_at_the_same_moment(forgetful):
    said = transcript(forgetful, "break zeros(#4) > 0.4", "continue", "info break", "print zeros(#4) > 0.9", "s",
                      "info break")  # fmt: skip
    assert said.count("[1 time in this recording, and here]") == 1
    assert said.count("[1 time in this recording]") == 1
    assert "False" in said


@pytest.fixture(scope="module")
def too_large():
    """Two steps of a weight of which only statistics are kept."""

    def program():
        w = torch.zeros(1000, requires_grad=True)
        for _ in range(2):
            (w * 2).sum().backward()
            with torch.no_grad():
                w -= 500 * w.grad

    return timeline_of(program)


def test_statistics_answer_what_is_asked_of_a_tensor_that_was_not_stored(too_large):
    said = transcript(too_large, "break norm(#1) > 50000", "info break", "break max(abs(#1)) > 2000", "watch min(#1)")
    assert "[1 time in this recording]" in said
    assert "does not stop" not in said
    assert "watching min(#1) = 0 " in said


@pytest.mark.parametrize("asked", ["sum(#1) < 0", "change #1 * 2"])
def test_where_elements_are_needed_that_were_not_stored_it_says_so(too_large, asked):
    said = transcript(too_large, f"break {asked}", "continue", "info break", "watch #1[0]", "print #1[0]")
    assert "it does not stop where the value of #1 was not stored: record with --values all" in said
    new_values = len(list(Breakpoints(too_large).add(stop("change #1")).after(0)))
    assert f"[0 times in this recording; unknown at {new_values} moments: record with --values all]" in said
    assert "watching #1[0] = the value of #1 was not stored: record with --values all" in said


def test_the_panel_counts_what_is_not_known_by_now(too_large):
    breakpoints = cursor(too_large, "sum(#1) < 0").breakpoints
    ((row, _),) = break_rows(breakpoints, len(too_large), glyphs(ascii=True), 100)
    assert "0 hits, 4 unknown" in "".join(text for text, _ in row)


@pytest.mark.parametrize("command", ["enable", "disable", "delete"])
def test_where_there_is_no_breakpoint_that_is_said(command):
    assert transcript(demo(), command, "quit").count("there are no breakpoints") == 1


def test_a_second_breakpoint_at_one_place_names_the_first():
    said = transcript(demo(), "break x", "break x if value > 2", "break b", "break x")
    assert "breakpoint 4: x (breakpoint 1 stops there, too)" in said
    assert said.count("stops there, too") == 1
