"""Line mode, as a transcript: what CI, pipes and screen readers get."""

import io
import re
from pathlib import Path

import pytest
from driving import transcript
from stories import Story, chain, demo, failed, hostile, iterations

from gviz.events import Marked, Printed
from gviz.tui.line_mode import debug

GOLDEN = Path(__file__).parent / "golden"


def typed(timeline, text):
    output = io.StringIO()
    debug(timeline, None, io.StringIO(text), output)
    return output.getvalue()


@pytest.mark.parametrize("name", ["walk", "failure"])
def test_a_session_reads_as_it_always_did(name, monkeypatch):
    monkeypatch.setenv("GVIZ_ASCII", "1")
    commands = (GOLDEN / f"{name}.commands").read_text().splitlines()
    timeline = {"walk": demo, "failure": failed}[name]()
    assert transcript(timeline, *commands) == (GOLDEN / f"{name}.txt").read_text()


def test_it_starts_by_saying_where_it_is_and_how_to_get_help():
    said = transcript(demo())
    assert "33 events, 5 nodes" in said
    assert "help lists all" in said
    assert "event 1, forward, node #1 x: leaf 3" in said
    assert "event 40, failed" in transcript(failed())
    story = Story()
    story.say(Printed("stdout", "hello\n"))
    assert "recording of 1 event, 0 nodes." in transcript(story.timeline())


def test_an_empty_line_repeats_and_the_end_of_input_leaves():
    said = typed(demo(), "n\n\n\n")
    assert said.count("(gviz) ") == 4
    assert "event 7," in said
    assert said.endswith("\n")


def test_quit_leaves_at_once():
    assert "event 3" not in transcript(demo(), "quit", "n")


def test_both_ends_are_said():
    assert "end of recording: still at event 33." in transcript(demo(), "c", "s")
    assert "start of recording." in transcript(demo(), "c-")


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("xyz", "there is no command 'xyz'; hint: print xyz shows a value, help lists the commands."),
        ("goto 99", "there is no event 99; hint: events go from 0 to 33."),
        ("theme gviz-dark", "theme is gviz-dark, for the full screen."),
        ("goto nan", "no nan or inf in this recording."),
        ("to nobody", "there is no nobody"),
    ],
)
def test_what_cannot_be_done_is_explained_and_the_session_goes_on(command, says):
    said = transcript(demo(), command, "n")
    assert says in said
    assert "event 3, " in said


def test_why_it_stopped_is_one_sentence_of_its_own():
    story = Story()
    story.leaf("x", 3.0, 3)
    story.say(Marked("epoch 1"))
    story.leaf("bad", float("nan"), 4)
    story.say(Marked("epoch 2"))
    said = transcript(story.timeline(), "c", "c", "c-", "c", "c", at=1)
    assert re.findall(r"^((?:mark|first|breakpoint|end of|step).*)$", said, re.M) == [
        "mark epoch 1.", "first nan.", "mark epoch 1.", "first nan.", "end of recording.",
    ]  # fmt: skip


def test_a_place_may_be_a_name_a_node_a_line_or_a_mark():
    for place, event in (("b", 7), ("#4", 7), ("demo.py:6", 7), ("fwd", 11), ("end", 33), ("add", 9), ("@9", 9)):
        assert f"event {event}" in transcript(demo(), f"goto {place}").splitlines()[-1 - (event == 33)]
    assert transcript(demo(), "n", "mark here", "c", "goto 'here").splitlines()[-1].startswith("back to event 3,")


def test_iterations_have_their_own_tape():
    rows = transcript(iterations(3), "goto end", "tape").splitlines()
    assert [row.split()[0] for row in rows if "y = mul" in row and "leaf" not in row][-1] == "4"
    assert "3 iterations" in rows[0]


def test_a_long_tape_is_cut_and_says_so():
    assert "and 101 more nodes" in transcript(chain(300), "tape")


def test_hostile_text_is_printed_as_text():
    said = transcript(hostile(), "print", "list", "tape", "output", "where", "goto 1", "print", "\x1b[31m")
    assert all(row.isprintable() for row in said.splitlines())
    assert "[red]" in said


def test_export_writes_the_moment(tmp_path):
    path = tmp_path / "moment.dot"
    assert f"wrote {path} (event 20)." in transcript(demo(), "goto 20", f"export {path}")
    assert path.read_text().startswith("digraph")
    assert "already exists" in transcript(demo(), f"export {path}")


def test_what_is_said_of_an_exported_file_is_a_sentence_of_its_own(tmp_path):
    path, timeline = tmp_path / "page.html", iterations(30)
    said = transcript(timeline, f"export {path}")
    assert f"wrote {path} (event 1).\nThis page holds iterations 1 to " in said
    assert "; exported at another moment, a page holds the rest.\n" in said


def test_a_bare_number_is_a_node_where_a_node_is_asked_for():
    assert transcript(demo(), "node 4").endswith(transcript(demo(), "node #4").partition("node #4\n")[2])
    assert "there is no node #99" in transcript(demo(), "node 99")


def test_find_prefers_the_exact_name():
    story = Story()
    for name in ("xyz", "x1", "x"):
        story.leaf(name, 1.0, 3)
    timeline = story.timeline()
    assert "selected node #3 x;" in transcript(timeline, "find x")
    assert "selected node #2 x1;" in transcript(timeline, "find 1")


def test_a_question_does_not_end_with_two_marks():
    said = transcript(demo(), "lst")
    assert "did you mean list?\n" in said


def test_a_theme_that_does_not_exist_is_refused_line_by_line_too():
    said = transcript(demo(), "set theme zzz", "show theme", "set theme light", "show theme")
    assert "there is no theme zzz" in said
    assert "theme is the default" in said
    assert said.count("theme is gviz-light") == 2
