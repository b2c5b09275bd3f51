"""A program under gviz cannot be told from one under python."""

import os
import signal
import subprocess
import sys
import zipfile

import pytest
from cli.programs import ROOT, gviz, python, recorded

from gviz.cli import program_run
from gviz.program.recording_request import Order, interpreter_options, start

PROBE = """\
'''A docstring.'''
import os, sys
main = sys.modules["__main__"]
print(__name__, __file__, __spec__, __package__, __cached__, __doc__, type(__loader__))
print(sys.argv, sys.path[0], main.__dict__ is globals(), sorted(globals()), type(__builtins__), __annotations__)
print(sys.path, sys.flags, sys.excepthook is sys.__excepthook__, sys.stdin.isatty())
print(sys.excepthook, "sitecustomize" in sys.modules, os.environ["PYTHONPATH"], "GVIZ_PROGRAM" in os.environ)
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


@pytest.mark.parametrize("flag", ["-P", "-O", "-Xdev", "-u", "-Werror::UserWarning", "-Xint_max_str_digits=999"])
def test_passes_on_the_flags_of_the_interpreter(folder, flag):
    assert recorded("sub/probe.py", cwd=folder, flags=[flag]) == python("sub/probe.py", cwd=folder, flags=[flag])


STACK = """\
import inspect, logging, sys, traceback, warnings
def f():
    traceback.print_stack()
    traceback.print_stack(limit=1)
    logging.warning("here", stack_info=True)
    print([(one.function, one.lineno) for one in inspect.stack()], len(traceback.extract_stack()))
    print([frame.f_code.co_name for frame, _ in traceback.walk_stack(None)], sys._getframe(1).f_back)
    for level in range(1, 5):
        warnings.warn(f"level {level}", stacklevel=level)
f()
"""

FINALIZED = """\
import asyncio, atexit, weakref
class D:
    def __del__(self):
        print("gone", self.name)
async def bad():
    raise ValueError("nobody asks")
async def main():
    global kept
    kept = asyncio.create_task(bad())
    await asyncio.sleep(0)
    1 / 0
def run():
    held = D()
    held.name = "held"
    asyncio.run(main())
d = D()
d.name = "d"
weakref.finalize(d, print, "finalized")
atexit.register(print, "bye")
run()
"""

HIDES_ITS_TRACEBACK = """\
class Hiding(Exception):
    @property
    def __traceback__(self):
        return None
raise Hiding("where")
"""

OPAQUE = """\
class Opaque(BaseException):
    def __getattribute__(self, name):
        raise RuntimeError(name)
raise Opaque
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
    "finalized": FINALIZED,
    "an error that hides its traceback": HIDES_ITS_TRACEBACK,
    "an error that cannot be looked at": OPAQUE,
    "sys.last_value": "import sys\nprint(hasattr(sys, 'last_value'))\nsys.last_traceback = None\n1 / 0",
    "stack of a hook": "import sys, traceback\nsys.excepthook = lambda *a: traceback.print_stack()\n1 / 0",
    "atexit": "import atexit\natexit.register(print, 'bye')\n1 / 0",
    "atexit forgotten": "import atexit\natexit._clear()\nprint('end')",
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
    assert recorded("program.py", cwd=tmp_path) == python("program.py", cwd=tmp_path)


def test_a_failing_module_shows_the_frames_that_python_shows(tmp_path):
    (tmp_path / "bad.py").write_text("def f():\n    1 / 0\nf()\n")
    assert recorded("-m", "bad", cwd=tmp_path) == python("-m", "bad", cwd=tmp_path)


@pytest.mark.parametrize("arguments", [("-m", "pkg"), ("-m", "pkg.nothing"), ("-m", "pkg.mod.a.b")])
def test_what_python_says_of_what_it_cannot_run_is_left_to_it(folder, arguments):
    assert recorded(*arguments, cwd=folder) == python(*arguments, cwd=folder)


@pytest.mark.parametrize("arguments", [("nothing.py",), ("-m", "nothing"), ("sub",)])
def test_what_cannot_be_run_is_said_in_a_line(folder, arguments):
    code, out, err = recorded(*arguments, cwd=folder)
    assert (code, out) == (3, "")
    assert err.startswith("gviz: error: ")
    assert "Traceback" not in err


@pytest.mark.parametrize("arguments", [("program.py",), ("-m", "program")])
def test_in_a_folder_that_is_gone_no_name_can_be_found(tmp_path, arguments):
    leaving = "import os, sys; os.rmdir(os.getcwd()); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    (tmp_path / "work").mkdir()
    command = [sys.executable, "-c", leaving, "-m", "gviz", "record", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path / "work", capture_output=True, text=True, env=environment, timeout=60)
    assert done.returncode == 3
    assert done.stderr == "gviz: error: the current folder has been deleted\nhint: cd ~\n"


CALLED = f"import sys; sys.path.append({str(ROOT)!r}); from gviz.cli.main import main; main()"


@pytest.mark.parametrize("flag", ["-I", "-E"])
def test_a_program_is_kept_from_the_environment_as_gviz_is(folder, flag):
    program = "import os, sys\nprint(sys.path, os.environ['PYTHONSTARTUP'], os.environ['PYTHONPATH'])\nassert 0"
    (folder / "probe.py").write_text(program)
    environment = {"PYTHONSTARTUP": "x", "PYTHONOPTIMIZE": "1"}
    code, out, err = python(flag, "-c", CALLED, "record", "-o", "t.gviz", "probe.py", cwd=folder, env=environment)
    assert code == 1, err
    path = f", {str(ROOT)!r}]"  # gviz's own folder, where the program may import it; there already if it is installed
    alone = python(flag, "probe.py", cwd=folder, env=environment)[1]
    assert out.replace(path, "]") == alone.replace(path, "]")


def test_a_program_from_standard_input(tmp_path):
    text = "import sys\nprint(sys.argv, __name__, sys.path[0] == '')"
    assert recorded("-", "x", cwd=tmp_path, stdin=text) == python("-", "x", cwd=tmp_path, stdin=text)


def test_no_debugger_takes_its_program_from_standard_input(tmp_path):
    code, out, err = gviz("run", "--plain", "-", cwd=tmp_path, stdin="print(1)")
    assert (code, out) == (2, "")
    assert err.startswith("gviz: error: no program can be read from standard input\n")


@pytest.mark.parametrize(
    ("typed", "options"),
    [
        (["-m", "gviz"], []),
        (["-um", "gviz", "-x"], ["-u"]),
        (["-uWerror", "-X", "dev", "gviz"], ["-u", "-Werror", "-Xdev"]),
        (["-bb", "-W", "once", "-c", "x"], ["-b", "-b", "-Wonce"]),
        (["--check-hash-based-pycs", "never", "-O", "gviz"], ["--check-hash-based-pycs", "never", "-O"]),
        (["-I", "-E", "-S", "-i", "-Bmgviz"], ["-s", "-P", "-B"]),
    ],
)
def test_a_program_gets_the_options_that_gviz_was_called_with(typed, options, monkeypatch):
    monkeypatch.setattr(sys, "orig_argv", ["python", *typed])
    assert interpreter_options() == options


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
    monkeypatch.setattr(program_run.subprocess, "Popen", interrupted)
    assert program_run.run_recorded(Order(str(tmp_path / "t.gviz")), ["program.py"]).code == 128 + signal.SIGTERM


def test_a_signal_to_gviz_ends_the_program(tmp_path):
    (tmp_path / "program.py").write_text("import time\nprint('ready', flush=True)\ntime.sleep(60)")
    command = [sys.executable, "-m", "gviz", "record", "-o", str(tmp_path / "t.gviz"), str(tmp_path / "program.py")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate()  # the program itself ends after a minute, with another code
    assert process.returncode == -signal.SIGTERM
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


ENDS_AS_IT_BEGINS = """\
import importlib.abc, os, signal, sys
class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "gviz.program.recording_process":
            {done}
sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize(
    ("done", "code", "said"),
    [
        ("os.kill(os.getpid(), signal.SIGINT)", -signal.SIGINT, "gviz: error: nothing was recorded\n"),
        ("raise ImportError('a library is broken')", 1, "ImportError: a library is broken\n"),
    ],
)
def test_no_program_runs_where_nobody_could_begin_to_listen(tmp_path, done, code, said):
    (tmp_path / "sitecustomize.py").write_text(ENDS_AS_IT_BEGINS.format(done=done))
    (tmp_path / "program.py").write_text("print('ran')")
    ended, out, err = recorded("program.py", cwd=tmp_path, path=tmp_path)
    assert (ended, out) == (code, "")
    assert err.endswith(said)
    assert "Fatal" not in err


@pytest.mark.parametrize("command", [["record", "-o", "t.gviz"], ["run", "--plain"], ["check"]])
def test_a_gviz_that_python_could_not_be_told_of_runs_nothing(tmp_path, command):
    (tmp_path / "a:b").mkdir()
    (tmp_path / "a:b" / "gviz").symlink_to(ROOT / "gviz")
    (tmp_path / "program.py").write_text("print('ran')")
    called = CALLED.replace("append(", "insert(0, ").replace(str(ROOT), str(tmp_path / "a:b"))
    code, out, err = python("-c", called, *command, "program.py", cwd=tmp_path)
    assert (code, out) == (1, "")
    assert err.startswith("gviz: error: gviz cannot record programs from ")
    assert "Traceback" not in err


def test_a_python_that_a_pth_file_starts_ahead_of_the_program_is_not_taken_for_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    trace = tmp_path / "t.gviz"
    _, environment = start(Order(str(trace), parent=os.getpid()), ["program.py", "x"])
    look = "import os, sys; print('gviz' in sys.modules, 'GVIZ_PROGRAM' in os.environ, os.environ['PYTHONPATH'])"
    done = subprocess.run([sys.executable, "-c", look, "x"], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"False False {ROOT}\n", "")
    assert not trace.exists()
