"""A signal that is sent to gviz has the effect that it has on plain Python."""

import ctypes
import operator
import os
import signal
import subprocess
import sys
from contextlib import suppress
from functools import partial

import pytest
from cli.programs import ROOT

from gviz.cli import signals
from gviz.trace.file.reader import open_trace

BEGIN = """import os, select, signal, sys, time
def wait():
    while not select.select([0], [], [], 0.1)[0]: pass
"""
"""`wait` waits for the end of the input. A plain read loses a signal that comes just before its system call."""

READY = "print('ready', os.getpid(), flush=True)\n"
END = "print('end')\n"
HANDLER = "def got(number, frame): print('got', number, flush=True)\n"
PROGRAMS = {
    "waits": f"{READY}wait()\n{END}",
    "sleeps in C": f"{READY}time.sleep(600)\n",
    "computes": f"{READY}while not select.select([0], [], [], 0)[0]: sum(range(1000))\n{END}",
    "multiplies matrices": f"import numpy\na = numpy.ones((400, 400))\n{READY}"
    f"while not select.select([0], [], [], 0)[0]: a @ a\n{END}",
    "is in a backward pass": "import gviz.engine as torch\nw = torch.ones(2, requires_grad=True)\ny = w * w\n"
    f"y.register_hook(lambda grad: wait())\n{READY}y.sum().backward()\n{END}",
    "handles": f"{HANDLER}signal.signal(2, got); signal.signal(15, got)\n{READY}wait()\n{END}",
    "leaves in a handler": f"def leave(number, frame): sys.exit(3)\nsignal.signal(2, leave); signal.signal(15, leave)\n"
    f"{READY}wait()\n",
    "catches": f"try:\n    {READY}    wait()\nexcept KeyboardInterrupt: print('caught', flush=True)\nwait()\n{END}",
    "ignores": f"signal.signal(2, signal.SIG_IGN); signal.signal(15, signal.SIG_IGN)\n{READY}wait()\n{END}",
    "cleans up": f"import atexit\natexit.register(print, 'bye')\ntry:\n    {READY}    wait()\nfinally: print('left')\n",
    "blocks and waits": "numbers = [2, 15]\nsignal.pthread_sigmask(signal.SIG_BLOCK, numbers)\n"
    f"{READY}print('got', signal.sigwait(numbers))\n",
    "asyncio": "import asyncio\nasync def main():\n    try:\n"
    f"        {READY}        await asyncio.sleep(600)\n    finally: print('cancelled')\n"
    "asyncio.run(main())\n",
    "has a child": "import subprocess\nchild = subprocess.Popen(['sleep', '600'])\n"
    f"signal.signal(2, lambda *_: print('got', flush=True)); signal.signal(15, signal.getsignal(2))\n{READY}"
    "wait()\ntime.sleep(0.1)\nprint('end', child.poll())\nchild.kill()\n",
}
"""Programs that say when they have come so far as to wait for a signal, or for the end of their input."""

NAMES = "INT TERM HUP QUIT USR1 USR2 PIPE WINCH ALRM XCPU XFSZ CONT"
SIGNALS = [getattr(signal, f"SIG{name}") for name in NAMES.split() if hasattr(signal, f"SIG{name}")]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="signals are POSIX")


def started(folder, *command):
    """A process of its own group, whose program has come so far as to wait; and the number of the program."""
    process = subprocess.Popen(
        [sys.executable, *command], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, process_group=0, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    while (line := process.stdout.readline()) and not line.startswith("ready "):
        pass
    assert line, process.stderr.read()
    return process, int(line.split()[1])


def send(process, program, number, to):
    """Send a signal to one process or to the group."""
    if to == "group":
        os.killpg(process.pid, number)
    else:
        os.kill(program if to == "program" else process.pid, number)


def outcome(folder, command, number, to, expected=None):
    """The exit status and the output of a program that gets a signal.

    Input ends at once where nothing else is `expected`; else only after the lines that come before the end, so that
    nothing depends on how fast a signal is passed on.
    """
    process, program = started(folder, *command)
    send(process, program, number, to)
    said = []
    if expected is not None:
        lines = expected[1].splitlines(keepends=True)
        said = [process.stdout.readline() for line in lines if not line.startswith("end")]
    if expected is None or "end" in expected[1]:
        with suppress(BrokenPipeError):
            process.stdin.close()
    rest = process.stdout.read()
    err = process.stderr.read()
    for stream in (process.stdout, process.stderr):
        stream.close()
    with suppress(BrokenPipeError):
        process.stdin.close()
    return process.wait(), "".join(said) + rest, err


def compare(folder, program, number, to):
    """A program under python and under gviz, whose trace is kept."""
    (folder / "program.py").write_text(BEGIN + PROGRAMS[program])
    plain = outcome(folder, ["program.py"], number, to)
    under = outcome(folder, ["-m", "gviz", "record", "-o", "t.gviz", "program.py"], number, to, plain)
    assert under[:2] == plain[:2], under[2]
    assert sorted(path.name for path in folder.iterdir()) == ["program.py", "t.gviz"]
    with open_trace(folder / "t.gviz") as log:
        assert log.finished or plain[0] in {-number for number in SIGNALS if number != signal.SIGINT}
    assert not plain[2] or plain[2].splitlines()[-1] in under[2].splitlines()  # the line before may be another


@pytest.mark.parametrize("to", ["gviz", "group", "program"])
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_each_signal_does_what_it_does_to_python(tmp_path, number, to):
    compare(tmp_path, "waits", number, to)


@pytest.mark.parametrize("to", ["gviz", "group"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
@pytest.mark.parametrize("program", PROGRAMS)
def test_each_program_does_with_it_what_it_does_under_python(tmp_path, program, number, to):
    compare(tmp_path, program, number, to)


@pytest.mark.parametrize("to", ["gviz", "group"])
def test_each_of_several_signals_arrives_once(tmp_path, to):
    text = f"{BEGIN}{HANDLER}signal.signal(2, got)\n{READY}wait()\n{END}"
    (tmp_path / "program.py").write_text(text)
    process, program = started(tmp_path, "-m", "gviz", "record", "-o", "t.gviz", "program.py")
    with process:
        for _ in range(5):
            send(process, program, signal.SIGINT, to)
            assert process.stdout.readline() == "got 2\n"
        process.stdin.close()
        assert process.stdout.read() == "end\n"
    assert process.returncode == 0


@pytest.mark.parametrize("to", ["gviz", "group"])
def test_gviz_stops_and_goes_on_with_its_program(tmp_path, to):
    """A shell has the terminal again as soon as gviz has stopped."""
    (tmp_path / "program.py").write_text(BEGIN + PROGRAMS["waits"])
    process, program = started(tmp_path, "-m", "gviz", "record", "-o", "t.gviz", "program.py")
    with process:
        for _ in range(2):
            send(process, program, signal.SIGTSTP, to)
            assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
            assert _state(program) in ("T", "")
            send(process, program, signal.SIGCONT, to)
            assert os.WIFCONTINUED(os.waitpid(process.pid, os.WCONTINUED)[1])
        process.stdin.close()
        assert process.stdout.read() == "end\n"
    assert process.returncode == 0


def _state(process):
    """What a process does, as one letter; nothing where the system does not say."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def test_a_program_that_does_not_stop_does_not_stop_gviz(tmp_path):
    text = f"{BEGIN}{HANDLER}signal.signal(signal.SIGTSTP, got)\n{READY}wait()\n{END}"
    (tmp_path / "program.py").write_text(text)
    process, program = started(tmp_path, "-m", "gviz", "record", "-o", "t.gviz", "program.py")
    with process:
        send(process, program, signal.SIGTSTP, "gviz")
        assert process.stdout.readline() == f"got {int(signal.SIGTSTP)}\n"
        process.stdin.close()
        assert process.stdout.read() == "end\n"


WORDS = {
    "check": ["program.py"],
    "why": ["w.grad", "program.py"],
    "show": ["program.py"],
    "export": ["-o", "graph.svg", "program.py"],
}


@pytest.mark.parametrize("to", ["gviz", "group"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
@pytest.mark.parametrize("command", WORDS)
def test_commands_that_run_a_program_answer_and_end_by_the_signal(tmp_path, command, number, to):
    ready = (
        "import gviz.trace.recording.record as r\nr.latest.flush()\nprint('ready', 0, file=sys.stderr, flush=True)\n"
    )
    text = "import gviz.engine as torch\nw = torch.ones(2, requires_grad=True)\n(w * w).sum().backward()\n"
    (tmp_path / "program.py").write_text(f"{BEGIN}{text}{ready}wait()\n")
    with subprocess.Popen(
        [sys.executable, "-m", "gviz", command, *WORDS[command]], cwd=tmp_path, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    ) as process:  # fmt: skip
        assert process.stderr.readline() == "ready 0\n"
        send(process, 0, number, to)
        out, err = process.stdout.read(), process.stderr.read()
    assert process.returncode == -number, err
    assert out or (tmp_path / "graph.svg").exists(), err


def test_a_signal_while_the_trace_is_closed_leaves_it_closed(tmp_path):
    text = """
from gviz.trace.file import writer
finalize = writer.finalize
def slow(*given):
    os.write(1, b"ready %d\\n" % os.getpid())
    wait()
    finalize(*given)
writer.finalize = slow
"""
    (tmp_path / "program.py").write_text(BEGIN + text)
    process, program = started(tmp_path, "-m", "gviz", "record", "-o", "t.gviz", "program.py")
    with process:
        send(process, program, signal.SIGINT, "gviz")
        process.stdin.close()
        process.stdout.read()
    with open_trace(tmp_path / "t.gviz") as log:
        assert log.finished


def test_what_comes_before_the_program_has_started_is_sent_to_it_then():
    with signals.forward() as forwarder:
        signal.raise_signal(signal.SIGTERM)
        with subprocess.Popen(["sleep", "600"]) as program:
            forwarder.begin(program)
            assert forwarder.wait(block=True) == -signal.SIGTERM
    assert forwarder.received == {signal.SIGTERM}


def test_what_comes_while_earlier_ones_are_sent_is_sent_after_them(monkeypatch):
    kill, sent = os.kill, []

    def slow_kill(process, number):
        sent.append(number)
        if len(sent) == 1:
            signal.raise_signal(signal.SIGUSR2)
        kill(process, number)

    with signals.forward() as forwarder, subprocess.Popen(["sleep", "600"]) as program:
        signal.raise_signal(signal.SIGCONT)
        monkeypatch.setattr(os, "kill", slow_kill)
        forwarder.begin(program)
        assert forwarder.wait(block=True) == -signal.SIGUSR2
    assert sent == [signal.SIGCONT, signal.SIGUSR2]


def test_a_program_ignores_the_ends_of_its_children_where_gviz_was_started_so(tmp_path):
    text = "import signal\nprint(signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN)\n"
    (tmp_path / "program.py").write_text(text)
    ran = subprocess.run(
        [sys.executable, "-m", "gviz", "record", "-o", "t.gviz", "program.py"], cwd=tmp_path, text=True,
        capture_output=True, env=os.environ | {"PYTHONPATH": str(ROOT)},
        preexec_fn=partial(signal.signal, signal.SIGCHLD, signal.SIG_IGN),
    )  # fmt: skip
    assert (ran.stdout, ran.returncode) == ("True\n", 0), ran.stderr


def test_signals_that_come_while_a_queue_is_searched_stay_in_it(monkeypatch):
    """A handler interrupts the search for signals of one number, which another process has answered for."""
    with signals.forward() as forwarder, subprocess.Popen(["sleep", "60"]) as program:
        forwarder.begin(program)
        asked = []

        def interrupted(number):
            asked.append(number)
            forwarder._queue.extend([number, signal.SIGWINCH] if asked == [signal.SIGUSR1] else [])
            return number == signal.SIGUSR1

        monkeypatch.setattr(forwarder._witness, "has", interrupted)
        signal.raise_signal(signal.SIGUSR1)
        assert asked == [signal.SIGUSR1, signal.SIGUSR1, signal.SIGWINCH]
        assert forwarder.received == {signal.SIGUSR1, signal.SIGWINCH}
        program.kill()


def test_a_signal_just_before_the_wait_for_the_program_begins_is_passed_on():
    """Both calls are made in C, so that Python's handler cannot run between them."""
    kill = ctypes.CDLL(None).kill

    class Late:
        def __init__(self, reads):
            self.reads, self.number = reads, signal.SIGUSR1

        def recv(self, size):
            calls = [partial(kill, os.getpid(), self.number), partial(self.reads.recv, size)]
            self.number = 0
            return [*map(operator.call, calls)][1]

        def close(self):
            self.reads.close()

    with signals.forward() as forwarder, subprocess.Popen(["sleep", "60"]) as program:
        forwarder._wake._receiver = Late(forwarder._wake._receiver)
        forwarder.begin(program)
        assert forwarder.wait(block=True) == -signal.SIGUSR1


def test_a_witness_that_was_killed_lets_signals_be_passed_on():
    with signals.forward() as forwarder, subprocess.Popen(["sleep", "600"]) as program:
        os.kill(forwarder._witness._pid, signal.SIGKILL)
        forwarder.begin(program)
        signal.raise_signal(signal.SIGUSR1)
        assert forwarder.wait(block=True) == -signal.SIGUSR1


IMPORTED = """
import importlib, os, sys
if sys.orig_argv[-1] == "program.py" and (os.getpid() == os.getpgrp()) == (os.environ["HIT"] == "gviz"):
    os.kill(os.getpid(), int(os.environ["NUMBER"]))
    os.write(2, b"lived")
folder, name = sys.path.pop(sys.path.index(os.path.dirname(__file__))), __name__
del sys.modules[name]
sys.modules[name] = importlib.import_module(name)
sys.path.insert(0, folder)
"""
"""A module that stands before one which gviz imports, and sends a signal to the process that imports it."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
@pytest.mark.parametrize(("hit", "module"), [("gviz", "click"), ("program", "json"), ("program", "msgspec")])
@pytest.mark.parametrize("command", ["record", *WORDS])
def test_a_signal_while_gviz_imports_ends_it_as_it_ends_python(tmp_path, command, hit, module, number):
    (tmp_path / "program.py").write_text("print('begun', flush=True)\n")
    (tmp_path / "early").mkdir()
    (tmp_path / "early" / f"{module}.py").write_text(IMPORTED)
    words = WORDS.get(command, ["-o", "t.gviz", "program.py"])
    told = {"HIT": hit, "NUMBER": str(int(number)), "PYTHONPATH": os.pathsep.join([str(tmp_path / "early"), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, "-m", "gviz", command, *words], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, process_group=0, env=os.environ | told, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (-number, ""), done.stderr
    assert "Traceback" not in done.stderr
    assert "lived" not in done.stderr
