"""The two ends at the moments that come between two others: every order that threads may bring about, one at a time."""

import os
import signal
import socket
import tempfile
import threading
from pathlib import Path

import pytest

from gviz import events as e
from gviz.live import debuggee as debuggee_module
from gviz.live.debuggee import Debuggee
from gviz.live.debugger_side import ControlledProgram
from gviz.live.protocol import Connection, Detach, Detached, Go, Paused, Ready, Released, ResumeRequest

PATIENCE = 20


class Program:
    """A debuggee in this process, with a recording that does something while it is flushed, and its debugger's line."""

    thread = 0

    def __init__(self, folder, monkeypatch):
        monkeypatch.setattr(debuggee_module, "current", None)
        monkeypatch.setattr(Debuggee, "_end", lambda self: None)
        monkeypatch.setattr(os, "isatty", lambda number: False)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(folder / "program"))
            listener.listen(1)
            self.debuggee = Debuggee(str(folder / "program"))
            end = listener.accept()[0]
        end.settimeout(PATIENCE)
        self.line = Connection(end)
        self.during_flush = lambda: None
        self.line.send(Go(ResumeRequest("step")))
        self.gate = self.debuggee.paused_by(self)(self)
        assert isinstance(self.line.receive(), Ready)

    def record(self, event):
        pass

    def flush(self):
        self.during_flush()

    def step(self):
        """Say an event, in a thread of its own, after which the program is to be held."""
        thread = threading.Thread(target=self.gate, args=(e.Marked("here"),), daemon=True)
        thread.start()
        return thread


@pytest.fixture
def program(tmp_path, monkeypatch):
    made = Program(tmp_path, monkeypatch)
    yield made
    made.line.close()
    made.debuggee._line.close()
    for thread in threading.enumerate():  # its end is replaced only as long as this test lasts
        if thread.name == "gviz control":
            thread.join(PATIENCE)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGURG, signal.SIG_DFL)


def runs_on(thread):
    thread.join(PATIENCE)
    return not thread.is_alive()


def test_a_program_let_go_between_its_last_event_and_its_stop_runs_on(program):
    def let_go():
        program.line.send(Detach())
        assert isinstance(program.line.receive(), Detached)

    program.during_flush = let_go
    assert runs_on(program.step())


def test_a_program_whose_debugger_is_gone_does_not_wait_for_it(program):
    program.during_flush = program.line.close
    assert runs_on(program.step())


def test_an_answer_to_another_stop_is_none(program):
    thread = program.step()
    held = program.line.receive()
    assert isinstance(held, Paused)
    program.line.send(Go(ResumeRequest("run"), held.number - 1))
    program.line.send(Go(ResumeRequest("step"), held.number))
    assert runs_on(thread)
    again = program.step()  # it was the step that counted
    assert program.line.receive().number == held.number + 1
    program.line.send(Go(ResumeRequest("run"), held.number + 1))
    assert runs_on(again)


class Quiet(ControlledProgram):
    """A session whose program says what the test says."""

    def __init__(self):
        self.reports = []
        super().__init__(lambda address: (["sleep", "100"], {**os.environ}), self.reports.append)


@pytest.fixture
def session():
    made = Quiet()
    ours, theirs = socket.socketpair()
    made._connection = Connection(ours)
    with ours, theirs:
        yield made
    made._kill(signal.SIGKILL)
    made._waiting.join(PATIENCE)


@pytest.mark.parametrize("last", [Paused("fulfilled", number=3), Released()])
def test_leave_is_taken_by_a_word_of_its_own_and_not_by_what_was_on_its_way(session, last):
    session._change_state("released")
    session._take(last)
    assert not session._disconnected.is_set()
    assert session.reports == []
    session._take(Detached())
    assert session._disconnected.is_set()


@pytest.mark.parametrize("last", [Paused("fulfilled", number=3), Released()])
def test_what_a_program_said_before_its_end_does_not_revive_it(session, last):
    session._kill(signal.SIGKILL)
    session._waiting.join(PATIENCE)
    session._take(last)
    assert session.state == "ended"
    assert last not in session.reports


def test_a_session_that_was_let_go_can_only_end(session):
    session._change_state("released")
    session.go(ResumeRequest("run"))
    assert session.state == "released"
    session._kill(signal.SIGKILL)
    session._waiting.join(PATIENCE)
    assert session.state == "ended"
    session.release()
    assert session.state == "ended"


@pytest.mark.parametrize("broken", ["command", "terminal", "address"])
def test_what_cannot_be_started_leaves_nothing_open(tmp_path, monkeypatch, broken):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    if broken == "address":
        monkeypatch.setattr(Path, "chmod", failing)
    if broken == "terminal":
        monkeypatch.setattr("pty.openpty", failing)
    before = set(os.listdir("/proc/self/fd")), threading.active_count()
    with pytest.raises(OSError):
        ControlledProgram(lambda address: (["/no/such/program"], {}), print)
    assert (set(os.listdir("/proc/self/fd")), threading.active_count()) == before
    assert [*tmp_path.rglob("gviz-*")] == []


def failing(*arguments):
    raise OSError("no more of them")
