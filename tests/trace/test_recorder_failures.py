"""Whatever keeps a recording from being written: the program does what it does alone, and one line says why."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gviz.integrations.pytest_plugin import TestRecording
from gviz.trace import load

ROOT = Path(__file__).parents[2]
PROGRAM = """
import os, resource, shutil, signal, sqlite3, sys, threading
import gviz
import gviz.engine as torch

def limit(what, number):
    resource.setrlimit(what, (number, resource.getrlimit(what)[1]))

path = sys.argv[1]
w = torch.ones(3, requires_grad=True)
{before}
with gviz.record(path) as recording:
    gviz.mark("before")
    {within}
    for _ in range(700):
        (w * w).sum().backward()
    gviz.mark("after")
print(w.grad.tolist())
"""
FULL = "limit(resource.RLIMIT_FSIZE, {})"
NO_FILES = "limit(resource.RLIMIT_NOFILE, max(map(int, os.listdir('/proc/self/fd'))) + 1)"
HEARS = "signal.signal(signal.SIGXFSZ, lambda *_: print('heard'))"
REFUSED = """
import builtins
opened = os.open
def refuse(path, flags, *more):
    if flags & os.O_CREAT:
        raise OSError({}, 'refused')
    return opened(path, flags, *more)
os.open = refuse
"""
NO_THREAD = """
def refuse(thread):
    raise RuntimeError("can't start new thread")
threading.Thread.start = refuse
"""
NO_MEMORY = """
from gviz.trace.file.writer import EventTable
def refuse(*given):
    raise MemoryError
EventTable.put = refuse
"""
TROUBLES = {
    "a full disk at the beginning": (FULL.format(100), "", "nothing is recorded"),
    "a disk that fills": ("", FULL.format(60_000), "has ended: the disk is full"),
    "a limit, and a handler that hears of it": (f"{HEARS}\n{FULL.format(100)}", "", "nothing is recorded"),
    "a limit met later, and a handler": (HEARS, FULL.format(60_000), "has ended: the disk is full"),
    "a quota": (REFUSED.format(errno.EDQUOT), "", "nothing is recorded"),
    "a file system that is read-only": (REFUSED.format(errno.EROFS), "", "nothing is recorded"),
    "a folder that is": (REFUSED.format(errno.EACCES), "", "nothing is recorded"),
    "no file descriptors at the beginning": (NO_FILES, "", "nothing is recorded"),
    "no file descriptors later": ("", NO_FILES, "has ended: unable to open database file"),
    "a folder that is removed": ("", "shutil.rmtree(os.path.dirname(path))", "has ended"),
    "a file that is removed": ("", "os.unlink(path)", "has ended"),
    "a file that becomes read-only": ("", "os.chmod(path, 0o400)", ""),
    "a file that is cut short": ("", "recording.flush(); os.truncate(path, 0)", "has ended"),
    "a database that is locked": (
        "", "other = sqlite3.connect(path); other.execute('BEGIN IMMEDIATE')", "has ended: database is locked",
    ),
    "no thread": (NO_THREAD, "", "nothing is recorded"),
    "no memory": ("", NO_MEMORY.replace("\n", "\n    "), "has ended: MemoryError"),
    "a cache that cannot be made": ("path = None", "", "nothing is recorded: cannot make the folder"),
}  # fmt: skip
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="limits are POSIX")


def ran(folder, before="", within=""):
    (folder / "program.py").write_text(PROGRAM.format(before=before, within=within or "pass"))
    (folder / "traces").mkdir()
    (folder / "file").touch()
    environment = os.environ | {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder / "file")}
    command = [sys.executable, "program.py", str(folder / "traces" / "t.gviz")]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_the_program_goes_on_and_is_told_once(tmp_path, trouble):
    before, within, says = TROUBLES[trouble]
    done = ran(tmp_path, before, within)
    assert (done.returncode, done.stdout) == (0, f"{[1400.0] * 3}\n"), done.stderr
    warnings = done.stderr.splitlines()
    assert len(warnings) == bool(says), done.stderr
    assert says in done.stderr
    assert all(line.startswith("gviz: warning: ") for line in warnings)
    trace = tmp_path / "traces" / "t.gviz"
    if "nothing" in says:
        assert not (tmp_path / "traces").exists() or not [*trace.parent.iterdir()]
    elif trace.exists() and "cut short" not in trouble:
        assert [name for _, name in load(trace).marks][:1] in ([], ["before"])


def test_what_was_recorded_until_the_disk_was_full_can_be_opened(tmp_path):
    ran(tmp_path, "", f"recording.flush(); {FULL.format(60_000)}")
    timeline = load(tmp_path / "traces" / "t.gviz")
    assert [name for _, name in timeline.marks] == ["before"]
    assert not timeline.finished


def test_attaching_on_a_full_disk_does_not_end_the_program(tmp_path):
    begin = "recording = gviz.attach(path=path)\nif True:"
    text = PROGRAM.format(before=FULL.format(100), within="pass").replace("with gviz.record(path) as recording:", begin)
    (tmp_path / "program.py").write_text(text)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "program.py", str(tmp_path / "t.gviz")]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{[1400.0] * 3}\n"), done.stderr
    assert done.stderr.count("gviz: warning: nothing is recorded") == 1


def test_a_test_whose_recording_cannot_be_written_ends_as_it_does(tmp_path, monkeypatch, capfd):
    """And its report says why nothing is explained."""
    opened = os.open

    def refuse(path, flags, *more, **options):
        if flags & os.O_CREAT and str(path).endswith(".gviz"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return opened(path, flags, *more, **options)

    monkeypatch.setattr(sys, "__stderr__", sys.stderr)
    monkeypatch.setattr(os, "open", refuse)
    recording = TestRecording(tmp_path)
    recording.finish(ValueError("of the test"))
    assert recording.draw() is None
    assert recording.explanation.startswith("nothing can be explained: ")
    assert "nothing is recorded" in capfd.readouterr().err
