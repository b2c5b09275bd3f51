"""Call stacks are told apart by code objects, whatever becomes of those."""

import ast
import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gviz.emit import Channel
from gviz.events import SourceSeen
from gviz.explain.program_errors import Failure
from gviz.live.debuggee import Debuggee
from gviz.live.gate import Gate
from gviz.render.page.page_data import Sources
from gviz.source import call_stack
from gviz.trace.event_log import MemoryLog
from gviz.trace.file.writer import TraceWriter
from gviz.trace.timeline import Timeline
from gviz.tui.drawing.source import LARGEST, code_lines

ODD = "a = '\x0b \x1c \x1d \x85 \u2028 \u2029'\n\x0cb = 1\n"


def program(line, path):
    scope = {"stack": call_stack.stack}
    exec(compile("\n" * line + "def made(): return stack()\nkey = made()", path, "exec"), scope)
    return scope


def caught(line):
    return program(line, f"made_{line}.py")["key"]


def test_code_that_is_dropped_does_not_lend_its_place_to_later_code():
    keys = []
    for line in range(1, 12):
        keys.append(caught(line))
        gc.collect()
    places = [(frame.path, frame.line, frame.function) for frame in (call_stack.frames(key)[0] for key in keys)]
    assert places == [(f"made_{line}.py", line + 1, "made") for line in range(1, 12)]
    assert len(set(keys)) == len(keys)


def test_a_stack_begins_with_the_frame_it_was_asked_from():
    assert call_stack.codes(call_stack.stack())[0] is test_a_stack_begins_with_the_frame_it_was_asked_from.__code__
    assert call_stack.stack()[0] == call_stack.stack()[0]


def test_a_file_that_is_hidden_while_another_thread_catches_a_stack_stays_hidden(monkeypatch):
    made = program(1, "framework/of_mine.py")["made"]

    class Raced(dict):
        def clear(self):
            super().clear()
            made()  # by the other thread

    monkeypatch.setattr(call_stack, "_hidden", Raced())
    monkeypatch.setattr(call_stack, "_hidden_prefixes", list(call_stack._hidden_prefixes))
    paths = [frame.path for frame in call_stack.frames(made())]
    assert paths[0] == "framework/of_mine.py"
    call_stack.hide("framework/")
    assert [frame.path for frame in call_stack.frames(made())] == paths[1:]


def test_frames_caught_elsewhere_make_the_same_key():
    here = test_frames_caught_elsewhere_make_the_same_key.__code__
    assert call_stack.stack_of([(here, 0), (call_stack.stack.__code__, 0)]) == (id(here), 0)


@given(st.lists(st.sampled_from(["\n", "\r\n", "\r", "\x0c", "\x0b", "\x1c", "\x85", "\u2028", " ", "é"])))
def test_lines_are_counted_as_python_counts_them(signs):
    text = f"1\n'''{''.join(signs)}'''\nlast"
    last = ast.parse(text).body[-1].lineno
    assert call_stack.source_lines(text)[last - 1] == "last"
    assert call_stack.source_lines(text + "\n") == call_stack.source_lines(text)


def test_whoever_shows_a_line_counts_them_so():
    assert call_stack.source_lines("") == []
    timeline = Timeline(MemoryLog([SourceSeen("odd.py", ODD)]))
    frame = call_stack.Frame("odd.py", "<module>", 2, 2, 1, 2)
    assert Failure(timeline, 1, "E", "", 0, (frame,)).names_on_its_line() == ("b",)
    sources = Sources(timeline)
    assert sources.marks[sources.mark((frame,))][1:] == (2, 4, 2, 5)  # as it is shown: \\x0cb
    assert len(sources.files()[0][1]) == 2
    assert len(code_lines(ODD)) == 2
    assert len(code_lines(ODD + "#" * LARGEST)) == 3


def test_a_stack_that_is_told_to_others_is_no_longer_than_a_message():
    names = {"frames": call_stack.user_frames}
    path = "/tmp/" + "p" * 10_000 + ".py"
    exec(compile("def f(n):\n    return f(n - 1) if n else frames()\n", path, "exec"), names)
    names["f"].__code__ = names["f"].__code__.replace(co_qualname="f" * 1_000_000)
    found = names["f"](300)
    assert 1 < len(found) < 20
    assert {(frame.line, frame.path, frame.function) for frame in found} == {(2, path[:4096], "f" * 4096)}


HEADS = """
class Each:
    def __iter__(self):
        kept.append(stack())
        return self
    def __next__(self):
        kept.append(stack())
        if len(kept) > 2:
            raise StopIteration
    def __enter__(self):
        kept.append(stack())
    def __exit__(self, *error):
        kept.append(stack())
        return True
def run(each):
    for one in (
        each
    ):
        kept.append(0) if one else None
        BODY
    with each:
        kept.append(0) if each is None else None
    with each:
        kept.append(
            0 / 0, None, None, None
        )
run(Each())
"""


@pytest.mark.parametrize("length", [1, 400], ids=["short", "long"])  # a long way back takes an instruction of its own
def test_the_head_of_a_statement_runs_and_not_all_of_it(length):
    scope = {"stack": call_stack.stack, "kept": []}
    exec(compile(HEADS.replace("BODY", "; ".join(["each = each"] * length)), "heads.py", "exec"), scope)
    callers = [call_stack.frames(key)[1] for key in scope["kept"]]
    loop, first, second = (17, 17, 8, 12), (21, 21, 9, 13), (23, 23, 9, 13)
    places = [(frame.line, frame.end_line, frame.column, frame.end_column) for frame in callers]
    assert places == [loop, loop, loop, first, first, second, second]


def test_frames_of_every_recorder_are_known_and_those_of_a_program_are_not():
    recorders = [Channel.emit, TraceWriter.record, Gate.receive, Debuggee.stop_here]
    assert call_stack.of_listening([function.__code__ for function in recorders]) == {*range(len(recorders))}
    assert (
        call_stack.of_listening([test_frames_of_every_recorder_are_known_and_those_of_a_program_are_not.__code__])
        == set()
    )
