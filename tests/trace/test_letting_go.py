"""Files are closed as soon as nobody has them any more, and nobody waits for a thread that has ended."""

import gc
import sqlite3
import sys
import threading
import warnings
from functools import partial
from types import SimpleNamespace

import pytest

from gviz import events as e
from gviz.errors import GvizError
from gviz.trace import load
from gviz.trace.file.reader import open_trace
from gviz.trace.file.writer import Request, TraceWriter

LONG = 60  # seconds; only a thread that hangs takes them


@pytest.fixture
def path(tmp_path):
    """A short trace."""
    writer = TraceWriter(tmp_path / "run.gviz", about={}, on_error=pytest.fail)
    writer.record(e.Marked("here"))
    writer.close()
    return writer.path


@pytest.fixture
def opened(path, monkeypatch):
    """Every connection that SQLite opens from now on; they stay here, so that only gviz can close them."""
    connections, connect = [], sqlite3.connect

    def noted(*arguments, **options):
        connections.append(connect(*arguments, **options))
        return connections[-1]

    monkeypatch.setattr(sqlite3, "connect", noted)
    return connections


def is_open(connection):
    try:
        connection.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return False
    return True


def test_a_trace_is_closed_as_soon_as_nobody_has_it(path, opened, no_collector):
    trace = open_trace(path)
    assert trace.event(1) == e.Marked("here")
    assert is_open(opened[-1])
    del trace
    assert not any(map(is_open, opened))


@pytest.mark.parametrize("change", ["PRAGMA user_version = 99", "CREATE TABLE more (x)", "DROP TABLE kind"])
def test_what_is_refused_is_closed(path, opened, no_collector, change):
    with sqlite3.connect(path) as stranger:
        stranger.execute(change)
    stranger.close()
    with pytest.raises(GvizError) as refusal:
        open_trace(path)
    assert not any(map(is_open, opened)), refusal  # whose traceback still has them


def test_nothing_warns_of_a_file_that_was_left_open(path, no_collector):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        trace, around = open_trace(path), []
        around.append((around, trace))  # found by the collector only
        del trace, around
        load(path).at(1)  # a timeline refers to itself
        gc.collect()
    assert [str(warning.message) for warning in said] == []


def test_nobody_waits_for_a_writer_that_fails_while_it_tells_of_trouble(tmp_path, opened, monkeypatch):
    def fail(trouble):
        raise RuntimeError(trouble)

    ends = []
    monkeypatch.setattr(threading, "excepthook", ends.append)
    writer = TraceWriter(tmp_path / "troubled.gviz", about={}, on_error=fail)
    writer.record("no event")
    for wait in (writer.flush, writer.close, writer.close):
        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        waiting.join(LONG)
        assert not waiting.is_alive()
    [end] = ends
    assert end.exc_type is RuntimeError
    assert not any(map(is_open, opened))


def test_what_a_writer_was_told_last_does_not_live_on_with_its_thread(tmp_path, no_collector, monkeypatch):
    ended = threading.Event()
    monkeypatch.setattr(Request, "finish", lambda self: ended.wait(LONG))
    writer = TraceWriter(tmp_path / "run.gviz", about={}, on_error=pytest.fail)
    held = e.Marked("held")
    words = partial(lambda held: None, SimpleNamespace(held=held))
    count = sys.getrefcount(held)
    writer.close(words)
    del words
    assert sys.getrefcount(held) == count - 1
    ended.set()
