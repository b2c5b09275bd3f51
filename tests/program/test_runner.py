"""A program under gviz cannot be told from one under python."""

import os
import signal
import subprocess
import sys
import zipfile

import pytest
from cli.programs import ROOT, python, recorded

from gviz.cli import recording
from gviz.program.order import Order

PROBE = """\
'''A docstring.'''
import sys
main = sys.modules["__main__"]
print(__name__, __file__, __spec__, __package__, __cached__, __doc__, type(__loader__))
print(sys.argv, sys.path[0], main.__dict__ is globals(), sorted(globals()), type(__builtins__), __annotations__)
print(sys.path, sys.flags, sys.excepthook is sys.__excepthook__, sys.stdin.isatty())
print(sys.stdin.read())
"""


@pytest.fixture
def folder(tmp_path):
    """A script, a package, a folder, a zip file and a link that all run the probe."""
    for place in ("sub/probe.py", "pkg/__init__.py", "pkg/mod/__init__.py", "pkg/mod/__main__.py", "pkg/mod/a.py"):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("" if path.name == "__init__.py" else PROBE)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "__main__.py").write_text(PROBE)
    with zipfile.ZipFile(tmp_path / "zipped.zip", "w") as archive:
        archive.writestr("__main__.py", PROBE)
    (tmp_path / "link.py").symlink_to("sub/probe.py")
    return tmp_path


FORMS = {
    "script": ("sub/probe.py", "--lr", "1", "-o", "x", "--help", "--", "y"),
    "module": ("-m", "pkg.mod.a", "-m", "z"),
    "package": ("-m", "pkg.mod"),
    "folder": ("folder", "1"),
    "zip": ("zipped.zip",),
    "link": ("link.py",),
}


@pytest.mark.parametrize("form", FORMS)
def test_finds_what_python_finds(folder, form):
    assert recorded(*FORMS[form], cwd=folder, stdin="typed") == python(*FORMS[form], cwd=folder, stdin="typed")


@pytest.mark.parametrize("flag", ["-P", "-O", "-Xdev"])
def test_passes_on_the_flags_of_the_interpreter(folder, flag):
    assert recorded("sub/probe.py", cwd=folder, flags=[flag]) == python("sub/probe.py", cwd=folder, flags=[flag])


STACK = """\
import inspect, logging, traceback
def f():
    traceback.print_stack()
    traceback.print_stack(limit=1)
    logging.warning("here", stack_info=True)
    print([(one.function, one.lineno) for one in inspect.stack()], len(traceback.extract_stack()))
f()
"""

ENDS = {
    "normally": "print('done')",
    "exit code": "import sys; sys.exit(3)",
    "exit text": "import sys; sys.exit('text')",
    "exit none": "raise SystemExit",
    "os._exit": "import os; print('x', flush=True); os._exit(5)",
    "exception": "def f():\n    1 / 0\nf()",
    "chained": "try:\n    {}[1]\nexcept KeyError as e:\n    raise ValueError('x') from e",
    "frozen": "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass E(Exception):\n    n: int\nraise E(3)",
    "group": "raise ExceptionGroup('two', [ValueError(1), KeyError(2)])",
    "syntax error": "x = = 1",
    "excepthook": "import sys\nsys.excepthook = lambda *a: print('hook', a[2].tb_lineno, a[2].tb_next)\n1 / 0",
    "no excepthook": "import sys\ndel sys.excepthook\n1 / 0",
    "excepthook that fails": "import sys\ndef h(*a): {}['a']\nsys.excepthook = h\n1 / 0",
    "excepthook that is none": "import sys\nsys.excepthook = None\n1 / 0",
    "excepthook that exits": "import sys\nsys.excepthook = lambda *a: sys.exit(7)\n1 / 0",
    "stack": STACK,
    "stack of a hook": "import sys, traceback\nsys.excepthook = lambda *a: traceback.print_stack()\n1 / 0",
    "atexit": "import atexit\natexit.register(print, 'bye')\n1 / 0",
    "thread": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(.1), print('late'))).start()",
    "interrupt": "import atexit, signal\natexit.register(print, 'bye')\nsignal.raise_signal(signal.SIGINT)\nprint(1)",
    "quiet interrupt": "import signal\ntry:\n    signal.raise_signal(2)\nexcept KeyboardInterrupt:\n    print('no')",
    "fork": "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint('parent' if pid else 'child')",
    "warning": "import warnings\nwarnings.warn('careful')",
    "output closed": "import os\nos.close(1)\nprint('x', flush=True)",
    "all files closed": "import os\nos.closerange(0, 256)",
}


@pytest.mark.parametrize("end", ENDS)
def test_ends_as_python_ends(tmp_path, end):
    (tmp_path / "program.py").write_text(ENDS[end])
    expected, out, err = python("program.py", cwd=tmp_path)
    shell = 128 - expected if expected < 0 else expected
    assert recorded("program.py", cwd=tmp_path) == (shell, out, err)


def test_a_failing_module_shows_its_own_frames_only(tmp_path):
    (tmp_path / "bad.py").write_text("def f():\n    1 / 0\nf()\n")
    code, _, err = recorded("-m", "bad", cwd=tmp_path)
    assert code == 1
    assert err.startswith(f'Traceback (most recent call last):\n  File "{tmp_path}/bad.py", line 3')


@pytest.mark.parametrize("arguments", [("nothing.py",), ("-m", "nothing"), ("-m", "pkg"), ("sub",)])
def test_what_cannot_be_run_is_said_in_a_line(folder, arguments):
    code, out, err = recorded(*arguments, cwd=folder)
    assert (code, out) == (3, "")
    assert err.startswith("gviz: error: ")
    assert "Traceback" not in err


def test_a_program_beside_files_named_like_modules(tmp_path):
    for name in ("gviz", "random", "click", "numpy", "sqlite3"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('wrong module')")
    (tmp_path / "program.py").write_text("print('fine')")
    code = f"import sys; sys.path[0] = {str(ROOT)!r}; from gviz.cli.main import main; main()"
    command = [sys.executable, "-c", code, "record", "-o", "t.gviz", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


@pytest.mark.parametrize("how", [["record", "-o"], ["run", "--plain", "--pause", "never", "-o"]])
def test_a_program_gets_the_files_that_a_shell_has_opened_for_it(tmp_path, how):
    source, text = os.pipe()
    os.write(text, b"import os\nprint('own', os.read(%d, 9).decode())\n" % source)
    os.close(text)
    command = [sys.executable, "-m", "gviz", *how, str(tmp_path / "t.gviz"), f"/dev/fd/{source}"]
    files = {"stdin": subprocess.DEVNULL, "pass_fds": [source]}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, **files)
    os.close(source)
    assert (done.returncode, "own" in done.stdout) == (0, True), done.stderr


def test_what_is_ignored_stays_ignored(tmp_path):
    (tmp_path / "program.py").write_text("import signal\nprint([signal.getsignal(n).name for n in (1, 2, 10, 15)])")
    run = f"trap '' HUP INT; exec {sys.executable} -m gviz record -o {tmp_path}/t.gviz {tmp_path}/program.py"
    done = subprocess.run(["sh", "-c", run], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "['SIG_IGN', 'SIG_IGN', 'SIG_DFL', 'SIG_DFL']\n", done.stderr


def test_a_signal_that_comes_while_the_program_starts_ends_it(tmp_path, monkeypatch):
    def interrupted(command, **options):
        os.kill(os.getpid(), signal.SIGTERM)
        return Popen(["sleep", "20"])

    Popen = subprocess.Popen
    monkeypatch.setattr(recording.subprocess, "Popen", interrupted)
    assert recording.run_recorded(Order(str(tmp_path / "t.gviz")), ["program.py"])[1] == 128 + signal.SIGTERM


def test_a_signal_to_gviz_ends_the_program(tmp_path):
    (tmp_path / "program.py").write_text("import time\nprint('ready', flush=True)\ntime.sleep(60)")
    command = [sys.executable, "-m", "gviz", "record", "-o", str(tmp_path / "t.gviz"), str(tmp_path / "program.py")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGTERM
    assert "wrote" in err


@pytest.mark.parametrize(
    "data",
    [
        b"x = 1\ny = '\xe9'\n",
        "x = 1\n".encode("utf-16"),
        b"x = 1\n\ny\0 = 2\n",
        b"# coding: nosuch\nx = 1\n",
        b"# coding: latin-1\nx = '\xe9'\ny = (\n",
        b"def f(:\n",
    ],
)
def test_what_is_no_program_is_said_as_python_says_it(tmp_path, data):
    (tmp_path / "program.py").write_bytes(data)
    assert recorded("program.py", cwd=tmp_path) == python("program.py", cwd=tmp_path)


@pytest.mark.parametrize("code", [0, 3])
def test_a_program_that_removes_the_folder_it_was_started_in_ends_as_it_does(tmp_path, code):
    program = tmp_path / "program.py"
    program.write_text(f"import os, shutil, sys\nprint('x')\nshutil.rmtree(os.getcwd())\nsys.exit({code})")
    (tmp_path / "work").mkdir()
    ended, out, err = recorded(str(program), cwd=tmp_path / "work")
    assert (ended, out) == (code, "x\n")
    assert "gviz: error" not in err
