"""A program in its own process: held, paused, answered, interrupted, stopped, let go."""

import os
import signal
import stat
import tempfile
import time
from pathlib import Path

import pytest
from driving_live import PATIENCE, Driver, is_collected

from gviz.live.debuggee import SECONDS_TO_END
from gviz.live.debugger_side import Ended
from gviz.live.protocol import Paused, Released, ResumeRequest
from gviz.trace.file.reader import open_trace

NODES = """\
import sys
import gviz.engine as torch
x = torch.tensor(2.0, requires_grad=True)
y = x * x
print("made", sys.argv[1:], sys.stdout.isatty())
y.backward()
sys.exit(3)
"""

BUSY = """\
import gviz.engine as torch
x = torch.tensor(2.0, requires_grad=True)
try:
    print("busy")
    while True:
        pass
except KeyboardInterrupt:
    y = x * x
    print("interrupted")
"""


@pytest.fixture
def start(tmp_path):
    made = []

    def started(text, *arguments, **options):
        made.append(Driver(tmp_path, text, *arguments, **options))
        return made[-1]

    yield started
    for driver in made:
        driver.session.stop()
        assert is_collected(driver.session.pid)


def open_terminals():
    """How many terminals this process has made that are still open."""
    links = [Path(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
    return sum(os.path.lexists(link) and os.readlink(link).endswith("/ptmx") for link in links)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="asks Linux what is open")
def test_the_terminal_of_a_program_that_has_ended_is_closed(start):
    before = open_terminals()
    driver = start("print('done')")
    assert open_terminals() == before + 1
    assert isinstance(driver.run("run"), Ended)
    deadline = time.monotonic() + PATIENCE
    while open_terminals() > before:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_temporary_folder_whose_path_is_too_long_for_a_socket_is_no_obstacle(start, tmp_path, monkeypatch):
    folder = tmp_path / ("long" * 25)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    assert start("print('done')").run("run") == Ended(0)


def test_a_program_that_sigstop_has_stopped_closes_its_trace_when_it_is_ended(start):
    driver = start(NODES)
    driver.run("next")
    os.kill(driver.session.pid, signal.SIGSTOP)
    before = time.monotonic()
    driver.session.stop()
    assert time.monotonic() - before < SECONDS_TO_END
    with open_trace(driver.trace) as log:
        assert log.finished


def test_a_program_that_leaves_its_terminal_is_not_hung_up(start):
    driver = start("import os, time\nos.closerange(0, 3)\ntime.sleep(1.5)\nos._exit(3)")
    assert driver.run("run") == Ended(3)


def test_the_program_is_held_node_by_node_and_keeps_its_exit_code(start):
    driver = start(NODES, "--lr", "1")
    assert driver.run("next") == Paused("fulfilled", "MainThread", number=1)
    assert driver.kinds == ["NodeCreated"]
    assert driver.run("next") == Paused("fulfilled", "MainThread", number=2)
    assert driver.kinds == ["NodeCreated", "NodeCreated"]
    assert "made" not in driver.printed.decode()
    assert driver.run("backward").reason == "maybe"
    driver.until_printed("made ['--lr', '1'] True\r\n")
    assert driver.kinds == ["NodeCreated", "NodeCreated", "Printed", "BackwardStarted"]
    assert driver.run("run") == Ended(3)
    assert driver.timeline.failures == ()


def test_the_socket_is_private_and_gone_once_it_is_used(start, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(Driver, "command", lambda self, arguments: _looking(seen, command(self, arguments)))
    driver = start(NODES)
    folder, address = seen
    assert stat.S_IMODE(folder[1]) == 0o700
    assert (stat.S_IMODE(address[1]), stat.S_ISSOCK(address[1])) == (0o600, True)
    assert not os.path.exists(folder[0])
    assert driver.run("run") == Ended(3)


command = Driver.command


def _looking(seen, made):
    def look(address):
        seen.extend((path, os.stat(path).st_mode) for path in (os.path.dirname(address), address))
        return made(address)

    return look


def test_a_pause_stops_an_endless_loop_and_says_where(start):
    driver = start(BUSY)
    driver.run("next")
    driver.session.go(ResumeRequest("run"))
    driver.until_printed("busy")
    places = []
    while len(places) < 3 or places[-1] not in (("program.py", "<module>", 5), ("program.py", "<module>", 6)):
        driver.session.pause()
        held = driver.next()
        assert held.reason == "pause"
        here = held.stack[0]
        places.append((Path(here.path).name, here.function, here.line))
        driver.session.go(ResumeRequest("run"))


def test_an_interrupt_ends_the_wait_and_is_the_programs(start):
    driver = start(BUSY)
    driver.run("next")
    driver.session.go(ResumeRequest("run"))
    driver.until_printed("busy")
    driver.session.pause()
    assert driver.next().reason == "pause"
    driver.session.interrupt()
    assert driver.next() == Released()
    assert driver.end() == Ended(0)
    assert driver.kinds.count("NodeCreated") == 2
    assert "interrupted" in driver.printed.decode()


def test_the_program_reads_from_its_terminal_which_has_a_size(start):
    driver = start("import os\nprint(input('name? '), os.get_terminal_size().columns)\n", size=(93, 20))
    driver.session.go(ResumeRequest("run"))
    driver.until_printed("name? ")
    driver.session.type("Ada")
    assert driver.end() == Ended(0)
    assert driver.printed.decode().endswith("Ada 93\r\n")


def test_stopping_closes_the_trace(start):
    driver = start(BUSY)
    driver.run("next")
    driver.session.stop()
    assert driver.end().code == -signal.SIGTERM
    assert sorted(path.name for path in driver.trace.parent.iterdir()) == ["program.py", "trace.gviz"]


def test_a_program_that_does_not_want_to_end_is_killed(start):
    driver = start("import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf')\nwhile True: pass\n")
    driver.session.go(ResumeRequest("run"))
    driver.until_printed("deaf")
    driver.session.stop()
    assert driver.end().code == -signal.SIGKILL


def test_a_program_that_is_let_go_runs_on_without_its_debugger(start, tmp_path):
    done = tmp_path / "done"
    driver = start(f"{NODES.replace('sys.exit(3)', '')}print('more')\nopen({str(done)!r}, 'w').close()\n")
    driver.run("next")
    driver.session.release()
    driver.session._terminal.close()
    driver.session._connection.close()
    _until(done.exists)
    _until(lambda: is_collected(driver.session.pid))
    assert driver.kinds[-1] == "Printed"


def test_a_killed_program_is_told_from_one_that_ended(start):
    driver = start(NODES)
    driver.run("next")
    os.kill(driver.session.pid, signal.SIGKILL)
    assert driver.end().words == "the program was killed by SIGKILL"
    assert driver.kinds == ["NodeCreated"]


def test_what_cannot_be_started_ends_with_what_it_said(tmp_path):
    class Missing(Driver):
        def command(self, arguments):
            self.program = self.program.with_name("missing.py")
            return super().command(arguments)

    driver = Missing(tmp_path, "")
    assert driver.session.ended == Ended(3)
    assert b"missing.py: no such script" in driver.printed


def test_a_thread_that_is_held_is_named(start):
    text = NODES.replace("y.backward()", "import threading\nt = threading.Thread(target=y.backward, name='worker')\n")
    driver = start(text.replace("sys.exit(3)", "t.start()\nt.join()\nz = x * 3"))
    driver.run("next", count=2)
    assert driver.run("backward") == Paused("maybe", "worker", number=2)
    assert driver.run("step") == Paused("fulfilled", "worker", number=3)
    assert driver.run("next").thread == "worker"
    assert driver.run("run") == Ended(0)


def _until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


MODULES = """
import gviz.engine as torch
net = torch.nn.Linear(2, 1)
x = torch.ones(1, 2)
for _ in range(2):
    net(x).sum().backward()
"""


def test_where_a_module_call_begins_the_pause_has_the_call_stack(start):
    driver = start(MODULES)
    kinds = iter(("phase", "phase", "phase"))
    paused = next(paused for paused in map(driver.run, kinds) if driver.kinds[-1] == "ScopeEntered")
    assert (driver.kinds[-1], [frame.line for frame in paused.stack]) == ("ScopeEntered", [6])
    assert driver.run("step").stack == ()
