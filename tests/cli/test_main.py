"""The outer behaviour of the command: names, errors, exit codes, what goes to which stream."""

import json
import os
import subprocess
import sys

import pytest
from cli.programs import ROOT, gviz, gviz_here, python

from gviz.cli import main as command_line
from gviz.errors import GvizError

HEAVY = ("numpy", "textual", "torch", "graphviz", "pygraphviz", "scipy", "sqlite3")


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_stays_light(tmp_path, option):
    code = (
        "import sys, contextlib, io\n"
        "from gviz.cli.main import run_command\n"
        f"with contextlib.redirect_stdout(io.StringIO()): assert run_command([{option!r}]) == 0\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    assert python("-c", code, cwd=tmp_path) == (0, "[]\n", "")


def test_import_gviz_stays_light(tmp_path):
    code = "import sys, gviz; print(sorted(n for n in sys.modules if n.startswith('gviz')), 'numpy' in sys.modules)"
    assert python("-c", code, cwd=tmp_path) == (0, "['gviz', 'gviz.rich_representation', 'gviz.version'] False\n", "")


def test_version_names_what_is_installed(tmp_path):
    code, out, err = gviz("--version", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert out.startswith("gviz 0.")
    assert {line.split()[0] for line in out.splitlines()} >= {"gviz", "python", "numpy", "textual", "click"}


@pytest.mark.parametrize("name", command_line.COMMANDS)
def test_every_command_has_help(tmp_path, name):
    code, out, _ = gviz_here(name, "--help", cwd=tmp_path)
    assert code == 0
    assert out.startswith(f"Usage: gviz {name} ")
    assert f"gviz {name}" in (ROOT / "docs/command_line.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("exprt",), 2, ('no command or file named "exprt"', "hint: did you mean export?")),
        (("qqqq",), 2, ("hint: gviz --help",)),
        (("half",), 2, ('no command or file named "half"', "hint: did you mean half.py?")),
        (("run",), 2, ("Missing argument", "hint: gviz run --help")),
        (("run", "--lr", "x.py"), 2, ("No such option", "hint: gviz run --help")),
        (("nothing.gviz",), 3, ("nothing.gviz",)),
        (("open",), 3, ("there is no trace yet", "hint: gviz demo")),
        (("show", "nothing.gviz"), 3, ("nothing.gviz",)),
        (("demo", "qqqq"), 2, ("there is no lesson qqqq", "hint: gviz demo --list")),
    ],
)
def test_errors_are_lines_with_a_hint_and_a_code(tmp_path, arguments, code, words):
    (tmp_path / "half.py").write_text("")
    got, out, err = gviz_here(*arguments, cwd=tmp_path, env={"XDG_CACHE_HOME": str(tmp_path)})
    assert (got, out) == (code, "")
    assert err.startswith("gviz: error: ")
    assert "Traceback" not in err
    assert not [word for word in words if word not in err], err


@pytest.mark.parametrize("arguments", [("run", "nothing.py"), ("nothing.py",)])
def test_a_script_that_is_not_there_is_an_error_like_others(tmp_path, arguments):
    code, out, err = gviz(*arguments, cwd=tmp_path, env={"XDG_CACHE_HOME": str(tmp_path)})
    assert (code, out) == (3, "")
    where = f"it is not in {tmp_path}: is it in another folder?"
    assert err == f"gviz: error: nothing.py: no such script\nhint: {where}\n"


@pytest.mark.parametrize(
    ("name", "hint"),
    [("pkg.train", "-m pkg.train runs a module"), ("no/where.py", "there is no folder {folder}/no"),
     ("trian.py", "did you mean train.py?"), ("train", "did you mean train.py?"), ("a", "did you mean a.gviz?")],
)  # fmt: skip
def test_what_may_be_meant_by_a_script_that_is_not_there(tmp_path, name, hint):
    for file in ("train.py", "a.gviz"):
        (tmp_path / file).write_text("")
    code, _, err = gviz("check", name, cwd=tmp_path, env={"XDG_CACHE_HOME": str(tmp_path)})
    assert (code, err) == (3, f"gviz: error: {name}: no such script\nhint: {hint.format(folder=tmp_path)}\n")


ARGUMENTS = """import sys
import torch
x = torch.tensor(2.0, requires_grad=True)
(x * x).backward()
print(sys.argv[1:])
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "train.py").write_text(ARGUMENTS)
    return tmp_path


def test_what_stands_behind_the_script_is_the_scripts(script):
    _, out, err = gviz("record", "--engine", "builtin", "-o", "a.gviz", "train.py", "--lr", "1", "--", "-o", cwd=script)
    assert out == "['--lr', '1', '--', '-o']\n"
    assert "note" not in err
    behind = ("-o", "a.svg", "--engine", "builtin", "--", "--lr", "1", "--")
    assert gviz("export", "train.py", *behind, cwd=script)[:2] == (0, "['--lr', '1', '--']\n")


def test_an_option_of_gviz_that_the_script_gets_is_told(script):
    _, _, err = gviz("check", "--engine", "builtin", "train.py", "--format", "json", cwd=script)
    assert "gviz: note: --format comes after train.py" in err
    assert "['--format', 'json']" in err
    (script / "train.py").write_text(f"{ARGUMENTS}# knows --format\n")
    assert "note" not in gviz("check", "--engine", "builtin", "train.py", "--format", "json", cwd=script)[2]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("train.py", "--lr", "1"), "gviz export train.py -o graph.svg -- --lr"),
        (("train.py", "data.csv"), "gviz export train.py -o graph.svg -- data.csv"),
        (("a.gviz", "--", "1"), "a trace takes no arguments: 1"),
    ],
)
def test_arguments_in_a_place_where_nobody_takes_them(script, arguments, words):
    gviz("record", "--engine", "builtin", "-o", "a.gviz", "train.py", cwd=script)
    code, _, err = gviz_here("export", "-o", "x.svg", *arguments, cwd=script)
    assert code == 2
    assert words in err
    assert not (script / "x.svg").exists()


def test_text_from_outside_is_harmless(tmp_path):
    _, _, err = gviz_here("show", "a\x1b[31m\u202eb.gviz", cwd=tmp_path)
    assert "\x1b" not in err
    assert "\\x1b[31m\\u202eb.gviz" in err


def test_a_closed_pipe_is_quiet(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "gviz", "--version"]
    done = subprocess.run(command, cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_ctrl_c_gives_130(monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "_execute", interrupted)
    assert command_line.run_command([]) == 130


def test_a_bug_leaves_a_report_without_values(monkeypatch, capsys, tmp_path):
    def buggy(*arguments, **options):
        secret = "s3cret"
        raise ValueError(f"the value was {secret}")

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(command_line, "_execute", buggy)
    assert command_line.run_command([]) == 70
    report = next(tmp_path.rglob("crash-*.txt")).read_text()
    assert "s3cret" not in report
    assert "in buggy" in report
    assert "ValueError" in report
    err = capsys.readouterr().err
    assert "gviz has a bug: ValueError" in err
    assert "Traceback" not in err


def test_debug_shows_the_traceback(monkeypatch, capsys):
    def refused(arguments, settings):
        settings.debug = True
        raise GvizError("no", why="because", hint="do", exit_code=4)

    monkeypatch.setattr(command_line, "_execute", refused)
    assert command_line.run_command([]) == 4
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.endswith("gviz: error: no\n  because\nhint: do\n")


def test_info_as_json(tmp_path):
    code, out, _ = gviz("info", "--format", "json", cwd=tmp_path, env={"TERM": "dumb"})
    facts = json.loads(out)
    assert (code, facts["schema"]) == (0, 1)
    assert facts["versions"]["gviz"]
    assert facts["terminal"]["debugger"] == "line by line (TERM=dumb)"


@pytest.mark.parametrize(("flags", "inspect"), [(["-i"], ""), ([], "1")], ids=["-i", "PYTHONINSPECT"])
def test_the_prompt_that_python_is_asked_for_is_none_of_gviz(tmp_path, flags, inspect):
    asked = {"flags": flags, "stdin": "print('prompt')\n", "env": {"PYTHONINSPECT": inspect}}
    for command in (["show", "missing.gviz"], ["--version"]):
        assert gviz(*command, cwd=tmp_path, **asked) == gviz(*command, cwd=tmp_path)
