"""A recording shown where its program calls for it: with a terminal of any kind, and without one."""

import os
import signal
import subprocess
import sys
import time

import pytest
from cli.programs import ROOT
from tmux import PATIENCE, Tmux, needs_tmux

from gviz.api import debug as viewing

IN_A_THREAD = """\
import os, sys, threading, time
import gviz, gviz.engine as torch
first = sys.stdin.readline()
shown = threading.Event()
def chatter():
    while not shown.is_set():
        os.write(1, b"spam ")
        time.sleep(0.01)
def work(x):
    with gviz.debug():
        (x * x).backward()
threading.Thread(target=chatter, daemon=True).start()
thread = threading.Thread(target=work, args=(torch.tensor(3.0, requires_grad=True),))
thread.start()
thread.join()
shown.set()
print("\\nread", first, sys.stdin.read())
"""


@needs_tmux
def test_a_thread_has_the_screen_for_itself_and_the_program_its_input(tmp_path):
    (tmp_path / "program.py").write_text(IN_A_THREAD)
    (tmp_path / "data").write_text("one\ntwo\n")
    start = f"{sys.executable} program.py < data"
    environment = f"PYTHONPATH={ROOT} XDG_CACHE_HOME={tmp_path} TERM=tmux-256color LC_ALL=C.UTF-8 PS1='shell: '"
    session = Tmux(f"-C {tmp_path} {environment} bash --norc -i")
    try:
        session.until("shell:")
        session.keys(start, "Enter")
        assert "spam" not in session.until(" gviz  program  REPLAY", "event 1", "x  #1", "q Quit")
        session.keys("C-z")
        session.until("Stopped", "shell:")
        session.keys("clear; fg", "Enter")
        assert "spam" not in session.until("event 1", "x  #1", "back from the shell")
        session.keys("q")
        session.until("Waiting. c: run to next stop · k: run without stops · s: stop it · Esc: stay")
        session.keys("c")
        session.until("spam", "read one", "two", "shell:")
    finally:
        session.close()


ENDING = """\
import os
print(os.getpid(), file=open("pid", "w"), flush=True)
import gviz, gviz.engine as torch
with gviz.debug():
    torch.tensor(3.0, requires_grad=True) * 2
"""


@needs_tmux
def test_a_program_that_is_killed_takes_its_screen_along(tmp_path):
    (tmp_path / "program.py").write_text(ENDING)
    environment = f"PYTHONPATH={ROOT} XDG_CACHE_HOME={tmp_path} TERM=tmux-256color LC_ALL=C.UTF-8 PS1='shell: '"
    session = Tmux(f"-C {tmp_path} {environment} bash --norc -i")
    try:
        session.until("shell:")
        session.keys(f"stty -g > before; {sys.executable} program.py; stty -g > after", "Enter")
        assert "stty" not in session.until("REPLAY", "q Quit")
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        session.until("stty -g")  # the screen as it was before
        session.keys("clear; echo all' 'right", "Enter")
        assert "REPLAY" not in session.until("all right\nshell:")
        assert (tmp_path / "before").read_text() == (tmp_path / "after").read_text()
    finally:
        session.close()


WORKERS = """\
import os, gviz, gviz.engine as torch
workers = []
for number in range(3):
    workers.append(os.fork())
    if not workers[-1]:
        gviz.breakpoint()
        torch.ones(1)
        gviz.breakpoint()
        os.mkdir(f"left {number}")
        os._exit(number)
print([os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]) for worker in workers])
"""


@needs_tmux
def test_workers_have_the_screen_one_after_another(tmp_path):
    (tmp_path / "program.py").write_text(WORKERS)
    environment = f"PYTHONPATH={ROOT} XDG_CACHE_HOME={tmp_path} TERM=tmux-256color LC_ALL=C.UTF-8"
    session = Tmux(f"-C {tmp_path} {environment} {sys.executable} program.py")
    try:
        for number in range(1, 4):
            session.until("REPLAY", "q Quit")
            session.keys("q")
            session.until("c: run to next stop")
            session.keys("c")
            end = time.monotonic() + PATIENCE
            while len([*tmp_path.glob("left *")]) < number:
                assert time.monotonic() < end
                time.sleep(0.05)
        session.until("[0, 1, 2]", "exit=0")
    finally:
        session.close()


TEE = """\
import sys, gviz, gviz.engine as torch
class Tee:
    def __init__(self, stream):
        self.write, self.flush, self.isatty = stream.write, stream.flush, stream.isatty
sys.stdout, sys.stderr = Tee(sys.stdout), Tee(sys.stderr)
with gviz.debug():
    torch.ones(1)
"""


@needs_tmux
def test_the_screen_is_drawn_whatever_object_standard_error_is(tmp_path):
    (tmp_path / "program.py").write_text(TEE)
    environment = f"PYTHONPATH={ROOT} XDG_CACHE_HOME={tmp_path} TERM=tmux-256color LC_ALL=C.UTF-8"
    session = Tmux(f"-C {tmp_path} {environment} {sys.executable} program.py")
    try:
        session.until("REPLAY", "q Quit")
        session.keys("q")
        session.until("c: run to next stop")
        session.keys("c")
        session.until("exit=0")
    finally:
        session.close()


def python(tmp_path, program, *flags, **options):
    (tmp_path / "test_program.py").write_text(program)
    environment = {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": "/usr/bin:/bin"}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # where gviz is installed, its plug-in would be there twice
    return subprocess.run(
        [sys.executable, *flags, "test_program.py"], cwd=tmp_path, capture_output=True, text=True, env=environment,
        timeout=120, check=False, **options,
    )  # fmt: skip


BREAKPOINTS = """\
import gviz, gviz.engine as torch
x = torch.tensor(3.0, requires_grad=True)
for i in range(3):
    y = x * i
    gviz.breakpoint()
y.backward()
"""


def test_a_breakpoint_stands_where_it_is_each_time(tmp_path):
    done = python(tmp_path, BREAKPOINTS, input="")
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("event ")] == [
        "event 4, forward, node #3 y = mul: 3 (x) * 1 = 3.",
        "event 6, forward, node #5 y = mul: 3 (x) * 2 = 6.",
    ]
    assert "gviz: recorded to" in done.stderr


LATE = """\
import gviz, gviz.engine as torch
x = torch.tensor(3.0, requires_grad=True)
try:
    with gviz.record("run.gviz"):
        x.add(torch.ones(2), 1, 2)
except TypeError:
    gviz.post_mortem()
try:
    1 / 0
except ZeroDivisionError:
    gviz.post_mortem()
"""


def test_an_error_that_came_after_the_recording_is_not_taken_for_one_of_it(tmp_path):
    done = python(tmp_path, LATE, input="")
    assert done.stdout.count("the program failed with TypeError") == 2
    assert done.stderr == "gviz: ZeroDivisionError came when nothing was recorded; this is what was recorded last\n"


IN_A_TEST = """\
import gviz, gviz.engine as torch

def test_it():
    x = torch.tensor(3.0, requires_grad=True)
    with gviz.debug():
        (x * x).backward()
    gviz.show(x)
    assert x.grad == 6
"""


@pytest.mark.parametrize("flags", [(), ("-p", "gviz.integrations.pytest_plugin"), ("-s",)])
def test_without_a_person_a_test_goes_on_as_if_nothing_was(tmp_path, flags):
    done = python(tmp_path, IN_A_TEST, "-m", "pytest", "-q", *flags, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("recording of 11 events") == (2 if flags == ("-s",) else 0)


OWN_STREAMS = """\
import sys, gviz, gviz.engine as torch
class Log:
    def __init__(self, stream):
        self.write, self.flush = stream.write, stream.flush
sys.stdout, sys.stderr = Log(sys.stdout), Log(sys.stderr)
if len(sys.argv) > 1:
    sys.stdin.close()
with gviz.debug():
    torch.ones(1)
"""


@pytest.mark.parametrize(("arguments", "said"), [((), "(gviz) next\n"), (("closed",), "gviz: recorded to ")])
def test_streams_of_the_programs_own_kind_are_no_terminals(tmp_path, arguments, said):
    (tmp_path / "program.py").write_text(OWN_STREAMS)
    environment = {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "program.py", *arguments], cwd=tmp_path, input="next\nc\n", capture_output=True, text=True,
        env=environment, timeout=120, start_new_session=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert said in done.stdout + done.stderr


def test_without_standard_input_the_recording_is_named(tmp_path):
    start = f"{sys.executable} test_program.py <&-"
    (tmp_path / "test_program.py").write_text(IN_A_TEST + "test_it()\n")
    environment = {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(start, shell=True, cwd=tmp_path, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr.count("gviz: recorded to")) == (0, 2), done.stderr


IN_A_LOOP = """\
import asyncio, gviz, gviz.engine as torch
async def main():
    gviz.show(torch.tensor(3.0) * 2)
asyncio.run(main())
"""


@needs_tmux
def test_a_graph_that_lies_in_no_file_goes_line_by_line_in_a_coroutine(tmp_path):
    (tmp_path / "program.py").write_text(IN_A_LOOP)
    environment = f"PYTHONPATH={ROOT} XDG_CACHE_HOME={tmp_path} TERM=tmux-256color"
    session = Tmux(f"-C {tmp_path} {environment} {sys.executable} program.py")
    try:
        session.until("recording of ", "(gviz)")
        session.keys("q", "Enter")
        session.until("exit=0")
    finally:
        session.close()


def test_a_program_that_ignores_the_ends_of_its_children_goes_on():
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        viewer = subprocess.Popen([sys.executable, "-c", ""])
        viewing._wait_for(viewer)
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert viewer.returncode == 0
