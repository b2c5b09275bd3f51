"""What the debugger says of a program that is asked to stand still, and of one that does so by itself."""

from stories import Story, demo

from gviz.live.debugger_side import OutputWritten
from gviz.live.protocol import Paused
from gviz.source.call_stack import Frame
from gviz.tui.cursor import Cursor
from gviz.tui.glyphs import UNICODE
from gviz.tui.language.command import Command
from gviz.tui.live_session import Live
from gviz.tui.session import Session

SLOW = Frame("lib/slow.py", "load", 3, 3, 4, 9)


class Busy:
    """A program in the middle of a long call."""

    state = "running"
    waits_for_line = False
    pauses = 0

    def pause(self):
        self.pauses += 1

    def go(self, request):
        pass


def test_a_pause_that_has_to_wait_says_so_until_the_program_stands():
    program = Busy()
    live = Live(program, Session(Cursor(demo(), 0), UNICODE))
    live.running = True
    assert "pausing" not in live.progress()
    live.pause()
    assert program.pauses == 1
    assert "pausing when its call returns" in live.progress()
    assert live.take_report(Paused("pause", number=1)).reason.words == "paused"
    live.running = True
    assert "pausing" not in live.progress()


def test_a_pause_of_a_program_that_asks_keeps_its_question(monkeypatch):
    monkeypatch.setattr("gviz.tui.live_session.QUIET_SECONDS", -1.0)
    live = Live(Busy(), Session(Cursor(demo(), 0), UNICODE))
    live.running = True
    live.take_report(OutputWritten(b"hello\r\nname? "))
    assert live.progress() == "A answers: name?"
    live.pause()
    assert live.progress() == "A answers, then it pauses: name?"


def test_a_program_that_waits_for_a_line_without_a_word_says_so(monkeypatch):
    monkeypatch.setattr("gviz.tui.live_session.QUIET_SECONDS", -1.0)
    program = Busy()
    live = Live(program, Session(Cursor(demo(), 0), UNICODE))
    live.running = True
    assert "A answers" not in live.progress()
    program.waits_for_line = True
    assert live.progress() == "A answers: it waits for a line"


def test_a_program_held_before_its_first_event_is_paused_and_not_at_an_end():
    live = Live(Busy(), Session(Cursor(Story().timeline(), 0), UNICODE))
    live.running = True
    assert live.take_report(Paused("pause", stack=(SLOW,), number=1)).reason.words == "paused at slow.py:3 in load"


def shown_while_looking_at(position):
    live = Live(Busy(), Session(Cursor(demo(), position), UNICODE))
    live.running = True
    live.cursor.select(1)
    stop = live.take_report(Paused("show", number=1, node=live.timeline.nodes[-1]))
    return live, stop.reason.words


def test_what_the_program_shows_is_selected_where_the_program_is():
    live, _ = shown_while_looking_at(len(demo()))
    assert live.cursor.selected == live.timeline.nodes[-1] != 1


def test_what_the_program_shows_is_told_to_somebody_who_looks_at_the_past():
    live, said = shown_while_looking_at(2)
    assert (live.cursor.position, live.cursor.selected) == (2, 1)
    assert said == f"the program is at event {len(demo())} and shows #{live.timeline.nodes[-1]}"


def test_the_first_nan_that_a_thread_makes_is_told_as_that():
    story = Story()
    story.add("y", story.leaf("x", 1.0, 3), story.leaf("bad", float("nan"), 4), 5)
    live = Live(Busy(), Session(Cursor(story.timeline(), 1), UNICODE))
    live.run(Command("continue"))
    stop = live.take_report(Paused("maybe", thread="worker", number=1))
    assert stop.position == live.timeline.error_index.first_bad() < len(live.timeline)
    assert stop.reason.words == "first nan in thread worker"


def test_a_program_that_records_nothing_new_has_no_rate():
    live = Live(Busy(), Session(Cursor(demo(), 0), UNICODE))
    live.running = True
    assert {live.progress(), live.progress()} == {"33 events"}
