"""What panels show, compared as text: no application runs here."""

from dataclasses import replace

import pytest
from recording import timeline_of
from stories import AGAIN, Story, chain, demo, failed, hostile, iterations, value

import gviz.engine as torch
from gviz.events import GradAccumulated, GradFlowed, GradSet, OptimizerStarted, OptimizerStepped, StorageWritten
from gviz.explain.iteration_words import iteration_called
from gviz.source.call_stack import Frame
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from gviz.tui.commands.export_copy import usual_name
from gviz.tui.commands.inspection import explanation_lines
from gviz.tui.drawing import tape
from gviz.tui.drawing.help import help_page
from gviz.tui.drawing.iterations_and_passes import pass_rows
from gviz.tui.drawing.node_details import Subject, node_lines
from gviz.tui.drawing.program_output import output_lines
from gviz.tui.drawing.source import SourceMark, code_lines, first_column, first_row, source_line, windowed
from gviz.tui.drawing.status import (
    CROWDED,
    KEYS,
    StatusContents,
    bar,
    bar_width,
    column,
    fitting_keys,
    key_at,
    keys_row,
    landmarks,
    position_at,
    status,
)
from gviz.tui.glyphs import ASCII, UNICODE, wants_ascii
from gviz.tui.keymaps import KEYMAPS, first, keys_of
from gviz.tui.panel_choice import PanelChoice, label_density, opening_view, size_class, visible_panels
from gviz.tui.session_options import Title
from gviz.tui.source_location import source_place
from gviz.tui.stop_reason import CursorStop, as_remark, by_command
from gviz.tui.styled_lines import STYLES, TIED, cells, cut, line, paragraphs, plain, style_and_event, wrapped


def panel(timeline, n, node, width=31, full=False):
    subject = Subject(timeline, timeline.at(n), node, width, UNICODE, full)
    return [plain(row) for row in node_lines(subject)]


def tape_rows(timeline, n, width=45, glyphs=UNICODE):
    moment = timeline.at(n)
    columns = tape.columns_for(width, 5)
    entries = [tape.Entry(node, moment.state(node)) for node in timeline.nodes]
    rows = [tape.row(timeline, moment, entry, columns, glyphs) for entry in entries]
    return [plain(row).rstrip() for row in rows]


def test_the_node_panel_answers_five_questions_in_their_order():
    assert panel(demo(), 21, 4) == [
        "b = mul  #4        MulBackward0",
        "  3 (x) * -6 (a) = -18",
        "value  -18  () f64",
        "with   #1 x  3",
        "       #3 a  -6",
        "saved  released, event 20",
        "used by #5 loss",
        "incoming 1  from #5 loss = add",
        "to #1 x: g * a = 1 * -6 = -6",
        "   outgoing -6  (1 of 2)",
        "to #3 a: g * x = 1 * 3 = 3",
        "   sum 1 += 3 -> 4  (2 of 2)",
        "at demo.py:6  event 7",
    ]


def test_of_a_long_heading_what_autograd_calls_it_is_cut_not_the_node():
    assert panel(demo(), 21, 5, width=31)[0] == "loss = add  #5     AddBackward0"
    assert panel(demo(), 21, 5, width=24)[0] == "loss = add  #5 AddBackw…"
    assert panel(demo(), 21, 5, width=12)[0].rstrip() == "loss = add…"


def test_a_leaf_keeps_its_grad_until_the_pass_accumulates():
    assert ".grad   None" in panel(demo(), 23, 1)
    assert "incoming -14  (2 of 2)" in panel(demo(), 23, 1)
    assert ".grad   -14" in panel(demo(), 31, 1)


def test_a_node_of_the_future_says_when_it_will_be_made():
    assert panel(demo(), 1, 4)[1] == "not made yet: event 7 makes it"


def test_a_failure_stands_first_with_cause_and_remedy():
    text = " ".join(" ".join(panel(failed(), 40, 4)).split())
    assert text.startswith("RuntimeError at #4 b = mul cause")
    assert "retain_graph=True" in text
    assert "released by the first backward() at demo.py:9, event 20" in text
    assert text.index("cause") < text.index("fix") < text.index(AGAIN[:40]) < text.index("b = mul #4 M")


def test_another_node_that_is_selected_at_a_failure_stands_above_all_about_the_failure():
    subject = Subject(failed(), failed().at(40), 1, 40, UNICODE, glance=True)
    rows = [plain(row).rstrip() for row in node_lines(subject)]
    assert rows[0] == "RuntimeError at #4 b = mul"
    assert rows[1].startswith("x  #1")
    text = " ".join(" ".join(rows[1:]).split())
    assert text.index("x #1") < text.index("RuntimeError at #4 b = mul cause") < text.index("retain_graph=True")


def test_the_panel_in_full_gives_every_digit():
    assert any("float64 ()" in row for row in panel(demo(), 21, 4, full=True))


def test_the_tape_tells_where_every_node_stands():
    assert tape_rows(demo(), 19) == [
        "   1 x          leaf  3       (-6)   1 of 2",
        "   2 w          leaf  -2      ·      waiting",
        "   3 a = mul    1 2   -6      4      1 += 3",
        "►  4 b = mul    1 3   -18     1      <- now",
        "   5 loss = add 4 3   -24     1      done",
    ]
    assert [row[-7:] for row in tape_rows(demo(), 1)[1:]] == ["pending"] * 4


@pytest.mark.parametrize("width", [20, 33, 38, 45, 74, 140])
def test_the_tape_fits_its_width(width):
    columns = tape.columns_for(width, 123456)
    for n in (0, 7, 21, 33):
        moment = demo().at(n)
        for node in demo().nodes:
            assert cells(tape.row(demo(), moment, tape.Entry(node, moment.state(node)), columns, UNICODE)) <= width


@pytest.mark.parametrize("story", [demo, failed, hostile, iterations])
@pytest.mark.parametrize("width", [24, 31, 42, 58])
def test_no_line_is_wider_than_its_panel_and_none_can_do_harm(story, width):
    timeline = story()
    for n in range(0, len(timeline) + 1, 3):
        for node in timeline.nodes:
            for row in node_lines(Subject(timeline, timeline.at(n), node, width, UNICODE)):
                assert cells(row) <= width
                assert plain(row).isprintable()
                assert {style_and_event(style)[0] for _, style in row} <= {"", *STYLES}
        assert all(plain(row).isprintable() for row in output_lines(timeline, n, width))


def test_the_status_row_gives_way_where_room_is_short():
    timeline = demo()
    moment, stop = timeline.at(21), CursorStop(21, 16, by_command("next"))
    assert plain(status(timeline, moment, StatusContents("demo.py", stop), 80, UNICODE)) == (
        " gviz  demo.py  REPLAY BACKWARD  event 21  #4 b = mul                    next ► "
    )
    narrow = plain(status(timeline, moment, StatusContents("demo.py", stop), 40, UNICODE))
    assert "BACKWARD" in narrow
    assert "event 21" in narrow
    assert "next ►" in narrow
    assert len(narrow) == 40


def test_a_long_reason_leaves_room_for_what_says_where_time_stands():
    timeline = demo()
    stop = CursorStop(4, 1, as_remark("breakpoint 1: cut: " + "#20 y = detach cuts the way back " * 5))
    row = plain(status(timeline, timeline.at(4), StatusContents("demo.py", stop), 100, UNICODE))
    assert len(row) == 100
    assert row.startswith(" gviz  REPLAY FORWARD  event 4 ")
    assert "breakpoint 1: cut: #20 y = detach" in row
    assert row.endswith("… ")


@pytest.mark.parametrize(("width", "brand"), [(99, False), (100, True)])
def test_where_iterations_are_counted_a_narrow_status_row_leaves_out_the_brand(width, brand):
    timeline = iterations(3)
    row = plain(
        status(
            timeline, timeline.at(5), StatusContents("demo.py", CursorStop(5, 4, by_command("step"))), width, UNICODE
        )
    )
    assert "demo.py" in row
    assert ("gviz" in row) == brand


@pytest.mark.parametrize("width", [80, 100, 120])
def test_no_word_of_the_status_row_comes_and_goes_by_a_step(width):
    timeline = iterations(3)
    rows = [
        plain(
            status(
                timeline,
                timeline.at(n),
                StatusContents("02_shared_input.py", CursorStop(n, n - 1, by_command("step"))),
                width,
                UNICODE,
            )
        )
        for n in range(1, len(timeline) + 1)
    ]
    for word in ("gviz", "02_shared_input.py", "REPLAY", "iteration "):
        assert len({word in row for row in rows}) == 1, word
    assert all("02_shared_input.py  REPLAY" in row for row in rows)


def test_a_program_without_a_loop_has_graphs_and_no_iterations():
    def program():
        x = torch.ones(2, requires_grad=True)
        (x * x).sum().backward()
        (x + x).sum().backward()

    def loop():
        x = torch.ones(2, requires_grad=True)
        for _ in range(2):
            (x * x).sum().backward()

    apart, again = (timeline_of(one) for one in (program, loop))
    assert (iteration_called(apart), iteration_called(again)) == ("graph", "iteration")
    row = plain(
        status(apart, apart.at(len(apart)), StatusContents("x.py", CursorStop(1, 1, as_remark(""))), 120, UNICODE)
    )
    assert "graph 2/2" in row
    assert next(text for text, _, _ in pass_rows(apart, 1)).startswith("graph 1")


def test_the_status_row_names_the_program_without_its_folders():
    title = Title("/home/me/my lessons/01_sum.py", ("--lr", "data/x"))
    assert (title.file, title.brief) == ("01_sum.py", "01_sum.py --lr data/x")
    assert title.whole == "/home/me/my lessons/01_sum.py --lr data/x"
    assert usual_name(title, 5) == "01_sum-5.svg"
    assert Title("train.py").brief == "train.py"


def test_the_status_row_shows_which_way_time_ran():
    timeline = demo()
    row = plain(
        status(
            timeline, timeline.at(16), StatusContents("demo.py", CursorStop(16, 21, by_command("next"))), 80, UNICODE
        )
    )
    assert row.endswith("◄ back to 16 ")


def test_the_bar_shows_past_phases_and_errors():
    known = landmarks(failed())
    row = plain(bar(known, 20, 60, UNICODE))
    assert row.count("█") == 1
    assert row.count("┃") == 2
    assert row.rstrip().endswith("! 20/40")
    assert len(row) == 60
    assert plain(bar(known, 20, 60, ASCII)).isascii()


def test_the_bar_shows_no_phases_where_they_are_crowded():
    known = landmarks(failed())
    crowded = len(known.boundaries[0]) * CROWDED
    narrowest = next(width for width in range(60) if bar_width(known, width) == crowded)
    assert plain(bar(known, 20, narrowest, UNICODE)).count("┃") == 2
    assert plain(bar(known, 20, narrowest - 1, UNICODE)).count("┃") == 0


def test_phases_that_no_bar_has_room_for_are_not_kept(monkeypatch):
    timeline = failed()
    phases, iterations = landmarks(timeline).boundaries
    monkeypatch.setattr("gviz.tui.drawing.status.WIDEST", len(phases) * CROWDED - 1)
    assert landmarks(timeline).boundaries == (iterations,)


@pytest.mark.parametrize("width", [12, 40, 80, 200])
def test_a_click_on_the_bar_means_the_event_that_is_drawn_there(width):
    known = landmarks(chain(30))
    room = bar_width(known, width)
    for position in range(known.length + 1):
        at = column(known, position, room)
        assert abs(position_at(known, at, room) - position) <= known.length / max(room - 1, 1)


def test_an_empty_recording_can_be_drawn():

    timeline = Timeline(MemoryLog())
    assert plain(bar(landmarks(timeline), 0, 30, UNICODE)).endswith("0/0 ")
    assert "no tensors" in " ".join(panel(timeline, 0, 0))
    assert "START" in plain(
        status(timeline, timeline.at(0), StatusContents("x.py", CursorStop(0, 0, as_remark(""))), 80, UNICODE)
    )


def test_the_expression_is_marked_by_byte_columns():
    timeline = demo()
    place = source_place(timeline, timeline.at(21), 4)
    rows = code_lines(timeline.source(place.frame.path))
    marked = source_line(rows, 6, place)
    assert "".join(text for text, style in marked if style == "selected") == "x * a"
    assert place.running == 9
    wide = code_lines("größe = 'ü' * x")
    frame = place.frame.__class__("a.py", "f", 1, 1, 15, 16)
    spans = source_line(wide, 1, place.__class__(frame))
    assert "".join(text for text, style in spans if style == "selected") == "*"


def test_the_source_shows_expression_and_running_line_if_both_fit():
    timeline = demo()
    place = source_place(timeline, timeline.at(21), 4)
    top = first_row(place, 9, 6)
    assert top < place.frame.line <= top + 6
    assert top < place.running <= top + 6
    assert first_column(place, 40) == 0


def test_output_travels_in_time():
    assert [plain(row) for row in output_lines(demo(), 10, 40)] == ["No output yet"]
    assert [plain(row) for row in output_lines(demo(), 11, 40)] == ["loss -24.0"]


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_keys_fit_and_can_be_clicked(width):
    keys = fitting_keys(width)
    row = plain(keys_row(keys))
    assert len(row) <= width
    assert any(key.word == "Help" for key in keys)
    for key in keys:
        assert key_at(keys, row.index(f"{key.keys} {key.word} ")) is key
    assert fitting_keys(200) == KEYS


def test_the_keys_of_the_help_fit_one_screen():
    page = list(help_page(keys_of("default"), 76))
    rows = [plain(row) for row in page]
    assert len(rows) <= 20
    assert max(map(cells, page)) <= 76
    assert len({row.index(word) for row, word in zip(rows, ("why this", "findings", "losses"), strict=False)}) == 1


@pytest.mark.parametrize("width", [40, 76])
@pytest.mark.parametrize("keymap", KEYMAPS)
def test_the_help_shows_the_keys_of_the_keymap(keymap, width):
    keys = keys_of(keymap)
    rows = [plain(row) for row in help_page(keys, width)]
    assert any(row.startswith(first(keys, "time.step")) and "one event" in row for row in rows)
    assert max(map(len, rows)) <= width


def test_lines_wrap_and_cut_by_cells():
    assert [plain(row) for row in wrapped(line("ab cd ", ("漢字", "value"), " ef"), 6, 1)] == ["ab cd", " 漢字", " ef"]
    assert plain(cut(line("漢字漢字"), 5)) == "漢字…"
    assert all(cells(row) <= 5 for row in wrapped(line("x" * 23), 5))
    assert [plain(row) for row in wrapped(line("at in_place_error.py:20, ok"), 20)] == [
        "at",
        "in_place_error.py",
        ":20, ok",
    ]


@pytest.mark.parametrize("width", range(12, 60))
def test_numbers_tied_together_that_no_row_holds_part_between_them(width):
    numbers = "[[0.0197 0.0353 -0.01864 -0.0304 0.07769 0.182]]"
    rows = [plain(row) for row in wrapped(line(("grad   ", "muted"), (numbers.replace(" ", TIED), "grad")), width, 2)]
    assert all(len(row) <= width for row in rows)
    assert " ".join(row.strip() for row in rows).split() == ["grad", *numbers.split()]


@pytest.mark.parametrize("width", range(8, 30))
def test_a_comma_stays_with_the_link_before_it(width):
    spans = line("it was ", ("demo.py:4", "key@3"), ", but ", ("x", "value"), "(y) is (", ("#1", "key"), ")")
    rows = [plain(row) for row in wrapped(spans, width)]
    assert all(len(row) <= width for row in rows)
    assert " ".join(rows).replace("- ", "-") == plain(spans) or width < 10
    assert not any(row.startswith((",", ")")) for row in rows) or width < 10


@pytest.mark.parametrize(
    ("size", "name"),
    [((39, 24), "tiny"), ((80, 9), "tiny"), ((40, 10), "single"), ((59, 40), "single"), ((80, 24), "narrow"),
     ((84, 50), "portrait"), ((120, 40), "wide"), ((200, 60), "huge")],
)  # fmt: skip
def test_sizes_have_classes(size, name):
    assert size_class(*size) == name


def test_which_panels_are_shown():
    choice = PanelChoice("tape", "source", False, "", "tape")
    assert visible_panels(80, 24, choice) == {"node", "tape", "source"}
    assert visible_panels(120, 40, choice) == {"node", "tape", "source", "side-watch"}
    assert visible_panels(120, 40, replace(choice, modules=True, watches=False)) == {
        "node", "tape", "source", "side-watch", "side-modules"
    }  # fmt: skip
    assert visible_panels(200, 60, choice) == {"node", "tape", "source", "side-watch", "side-output"}
    assert visible_panels(50, 20, choice) == {"tape"}
    assert visible_panels(30, 8, choice) == {"small"}
    assert visible_panels(80, 24, PanelChoice("graph", "source", False, "", "graph")) == {"node", "graph"}
    assert visible_panels(80, 24, PanelChoice("graph", "output", True, "", "graph")) == {"node", "graph", "output"}
    assert visible_panels(80, 24, PanelChoice("both", "source", False, "node", "tape")) == {"node"}


def test_the_graph_leads_and_of_one_panel_alone_the_tape_where_the_graph_would_be_cut():
    assert opening_view(80, 24, fits_alone=True, fits_above_tape=False) == "graph"
    assert opening_view(80, 24, fits_alone=False, fits_above_tape=False) == "graph"
    assert opening_view(50, 20, fits_alone=True, fits_above_tape=False) == "graph"
    assert opening_view(50, 20, fits_alone=False, fits_above_tape=False) == "tape"
    assert opening_view(120, 40, fits_alone=True, fits_above_tape=True) == "both"
    assert opening_view(120, 40, fits_alone=True, fits_above_tape=False) == "graph"
    assert opening_view(120, 40, fits_alone=False, fits_above_tape=False) == "both"


def test_ascii_is_chosen_where_the_terminal_asks_for_it():
    assert wants_ascii({"GVIZ_ASCII": "1"})
    assert wants_ascii({"TERM": "linux"})
    assert wants_ascii({"LC_ALL": "C"})
    assert wants_ascii({"LANG": "en_US.UTF-8"}, encoding="ascii")
    assert wants_ascii({}, encoding="iso8859-1")
    assert not wants_ascii({"LANG": "en_US.UTF-8", "TERM": "xterm"}, encoding="utf-8")
    assert not wants_ascii({}, encoding="UTF-8")
    assert all(row.isascii() for row in tape_rows(demo(), 1, glyphs=ASCII))


def test_expression_and_running_line_are_both_in_view_at_any_height():
    for height in range(2, 9):
        for line_nr in range(1, 20):
            for running in range(line_nr, min(line_nr + height, 21)):
                place = SourceMark(Frame("a.py", "f", line_nr, line_nr, 0, 3), running)
                top = first_row(place, 20, height)
                assert top < line_nr <= running <= top + height, (height, line_nr, running)


def test_a_long_line_scrolls_only_as_far_as_its_expression_needs():
    def place(start, end):
        return SourceMark(Frame("a.py", "f", 1, 1, start, end))

    assert first_column(place(30, 39), 40) == 0
    left = first_column(place(50, 60), 40)
    code = line("a" * 50, ("expression", "selected"), "b" * 20)
    shown_part = plain(windowed(code, left, 40, "…"))
    assert shown_part == "…" + "a" * 28 + "expression" + "…"
    assert len(shown_part) == 40
    assert plain(windowed(line("short"), 0, 40, "…")) == "short"
    assert plain(windowed(line("short"), 8, 40, "…")) == ""


def test_the_running_line_is_the_one_that_did_the_event():
    story = Story()
    x = story.leaf("x", 3.0, 3)
    story.say(StorageWritten(1, x, 1, value([5.0])), GradSet(x, 0, "none", None))
    timeline = story.timeline()
    assert source_place(timeline, timeline.at(3), x).running in (0, 3)
    assert source_place(timeline, timeline.at(4), x).running == -1
    stack = story.stack(9, 0, 10)
    story.say(OptimizerStarted("SGD", stack))
    story.say(StorageWritten(1, x, 2, value([6.0])))
    story.say(OptimizerStepped("SGD", (x,), stack))
    story.say(StorageWritten(1, x, 3, value([7.0])))
    timeline = story.timeline()
    end = len(timeline)
    running = [source_place(timeline, timeline.at(n), x) for n in range(end - 3, end + 1)]
    assert [place.running or place.frame.line for place in running] == [9, 9, 9, 3]


def twice():
    story = Story()
    x = story.leaf("x", 3.0, 3)
    w = story.leaf("w", 2.0, 4)
    y = story.mul("y", x, w, 5)
    story.backward(y, 9)
    story.backward(y, 9, 2, leaves_had={x: 2.0, w: 3.0})
    return story.timeline()


def test_in_full_the_digits_of_a_sum_stand_apart_from_it():
    story = Story()
    x = story.leaf("x", 3.0, 3)
    w = story.leaf("w", 1 / 3, 4)
    y = story.mul("y", x, w, 5)
    story.backward(y, 9)
    story.backward(y, 9, 2, leaves_had={x: 1 / 3, w: 3.0})
    timeline = story.timeline()
    text = " ".join(" ".join(panel(timeline, len(timeline), 1, width=200, full=True)).split())
    assert "0.3333 += 0.3333 -> 0.6667 0.66666" in text


def test_a_grad_that_held_something_says_what_was_added_to_what():
    timeline = twice()
    seq = max(n for n in range(len(timeline) + 1) if isinstance(timeline.at(n).event, GradAccumulated))
    for n in (seq, len(timeline)):
        assert ".grad   2 += 2 -> 4  (the former since pass 1)" in panel(timeline, n, 1, width=60)
        moment = timeline.at(n)
        columns = tape.columns_for(100, 5)
        row = plain(tape.row(timeline, moment, tape.Entry(1, moment.state(1)), columns, UNICODE))
        assert "2 += 2" in row
    assert not any("since pass" in row for row in panel(timeline, 12, 1, width=60))


def test_the_end_of_the_recording_is_not_its_start():
    timeline = demo()
    assert "START" not in plain(
        status(timeline, timeline.at(33), StatusContents("x.py", CursorStop(33, 1, as_remark(""))), 80, UNICODE)
    )


def test_a_shape_that_arrives_for_a_leaf_has_its_brackets_already():
    timeline = timeline_of(lambda: torch.ones(2, requires_grad=True).mul(20.125).sum().backward())
    n = max(n for n in range(1, len(timeline) + 1) if isinstance(timeline.event(n), GradFlowed))
    entry = tape.Entry(1, timeline.at(n).state(1))
    row = plain(tape.row(timeline, timeline.at(n), entry, tape.columns_for(45, 5), UNICODE))
    assert row.partition("+=")[0].count("(2,)") == 1
    assert "((" not in row


@pytest.mark.parametrize(("width", "shown"), [(80, False), (120, True), (200, True)])
def test_a_long_name_of_a_program_is_cut_only_where_room_is_short(width, shown):
    name = "20_cut_in_the_wrong_place.py"
    said = plain(
        status(
            iterations(2), iterations(2).at(5), StatusContents(name, CursorStop(5, 1, as_remark(""))), width, UNICODE
        )
    )
    assert (name in said) == shown
    assert "iteration 1/2" in said


@pytest.mark.parametrize("width", range(20, 60))
def test_an_event_stays_with_its_number(width):
    rows = [plain(row) for row in explanation_lines([(0, "the gradient of #4 b is 3", 10)], width)]
    assert any("event 10" in row for row in rows)


def test_a_wide_tape_has_room_for_whole_titles():
    columns = tape.columns_for(78, 20, 26)
    assert columns.node == 27
    assert tape.columns_for(78, 20).node < 27


@pytest.mark.parametrize("title", ["loss = mean", "layer1.weight"])
def test_a_narrow_tape_has_room_for_usual_titles_and_lengths(title):
    columns = tape.columns_for(45, 99, len(title))
    assert columns.node == len(title) + 1
    assert min(columns.value, columns.grad) > len("|g| 2")
    assert tape.columns_for(45, 99, 1).grad > columns.grad, "short titles leave room for numbers"


@pytest.mark.parametrize("width", [60, 74, 100, 138])
@pytest.mark.parametrize("shape", ["(2,5,16)", "(64,16,224,224)"])
def test_the_column_of_values_has_room_for_whole_shapes(width, shape):
    columns = tape.columns_for(width, 99, 30, len(shape))
    assert columns.value > len(shape)
    assert columns.node >= 12
    assert columns.grad > len("|g| 2")
    assert 2 + sum(getattr(columns, name) for name in columns.__slots__) == width


@pytest.mark.parametrize("title", [0, 40])
@pytest.mark.parametrize("shape", [0, 60])
def test_every_width_has_room_for_a_value_and_a_gradient(title, shape):
    for width in range(40, 140):
        columns = tape.columns_for(width, 99, title, shape)
        assert min(columns.value, columns.grad) >= len("|g| 2") + 1
        assert columns.node >= (12 if width >= 60 else 5)
        assert 2 + sum(getattr(columns, name) for name in columns.__slots__) == width


def test_the_widest_shape_is_that_of_any_result():
    timeline = timeline_of(lambda: torch.ones(3, 1, 2).sum(0).unbind(0))
    assert tape.shape_width(timeline, timeline.nodes) == len("(3,1,2)")


def test_a_wide_tape_has_a_column_for_each_of_incoming_gradient_and_accumulated_gradient():
    def program():
        x, factor = torch.tensor(3.0, requires_grad=True), torch.tensor(2.0)
        for _ in range(2):
            (x * factor).backward()

    timeline = timeline_of(program)
    end = max(n for n in range(1, len(timeline) + 1) if isinstance(timeline.event(n), GradFlowed))
    wide, narrow = tape.columns_for(120, 5), tape.columns_for(70, 5)
    assert narrow.accumulated == 0 < wide.accumulated

    def cells(node, columns, n=end):
        text = plain(tape.row(timeline, timeline.at(n), tape.Entry(node, timeline.at(n).state(node)), columns, UNICODE))
        begin = 2 + columns.number + columns.node + columns.inputs + columns.value
        return text[begin : begin + columns.grad].strip(), text[begin + columns.grad :][: wide.accumulated].strip()

    assert cells(1, wide) == ("2", "2")  # the second pass brings 2; .grad is still that of the first
    assert cells(1, narrow)[0] == "(2)"
    last = timeline.nodes[-1]
    assert cells(last, wide)[1] == cells(2, wide)[1] == ""  # neither an operation nor a constant gets a .grad
    assert cells(1, wide, n=0) == cells(last, wide, n=0) == ("…", "")
    assert plain(tape.heading(wide)).split() == ["#", "node", "in", "value", "grad", ".grad", "note"]
    assert ".grad" not in plain(tape.heading(narrow))


@pytest.mark.parametrize(("width", "height", "density"), [(46, 18, "brief"), (74, 25, "short"), (74, 10, "brief")])
def test_how_much_boxes_say_depends_on_the_panel_alone(width, height, density):
    assert label_density(width, height) == density


@pytest.mark.parametrize("width", [8, 12, 13, 20])
def test_a_note_of_what_is_added_is_never_cut(width):
    def program():
        x = torch.tensor([0.5, -2.0, 3.0], requires_grad=True)
        (x * torch.tensor([1.0, 100.0, 10.0])).sum().backward()

    timeline = timeline_of(program)
    ((seq, _),) = timeline.select((GradAccumulated,), 1, len(timeline) + 1)
    moment = timeline.at(seq)
    said = tape.note(timeline, moment, timeline.info(1), moment.state(1), width)
    assert "+= " in said
    assert len(said) <= width


@pytest.mark.parametrize("width", range(16, 34))
def test_how_many_have_arrived_stays_on_one_row(width):
    rows = panel(demo(), 23, 1, width)
    assert any("(2 of 2)" in row for row in rows)


LESSON = """Watch these,
in this order:
1. `n` to the end of the forward pass, which
   is where the loss is
2) `s` on
- and back
and on

Then
    w.grad  as it is
and go."""


def test_items_of_a_list_stay_apart_and_what_goes_on_with_them_joins_them():
    assert [plain(row) for row in paragraphs(LESSON, 70)] == [
        "Watch these, in this order:",
        "1. `n` to the end of the forward pass, which is where the loss is",
        "2) `s` on",
        "- and back and on",
        "",
        "Then",
        "    w.grad  as it is",
        "and go.",
    ]
