"""Closed, full and narrow streams, and text that must not reach a terminal as it is."""

import os
import pty
import signal
import subprocess
import sys
import time

import pytest
from cli.programs import ROOT, gviz
from cli.test_commands import PROGRAM

GVIZ = f"{sys.executable} -m gviz"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A program, one that ends with 7, and a trace."""
    folder = tmp_path_factory.mktemp("streams")
    (folder / "program.py").write_text(PROGRAM)
    (folder / "seven.py").write_text(f"{PROGRAM}raise SystemExit(7)\n")
    gviz("record", "-o", "t.gviz", "program.py", cwd=folder)
    return folder


def environment(folder, **more):
    return {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder / "cache"),
            "XDG_STATE_HOME": str(folder / "state"), **more}  # fmt: skip


def shell(command, folder, **more):
    env = environment(folder, **more)
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("command", ["show t.gviz", "--version", "info", "--help"])
@pytest.mark.parametrize(("where", "why"), [(">&-", "Bad file descriptor"), (">/dev/full", "No space left on device")])
def test_what_cannot_be_printed_is_one_line_and_1(folder, command, where, why):
    assert shell(f"{GVIZ} {command} {where}", folder) == (1, "", f"gviz: error: {why}\n")


@pytest.mark.parametrize("command", ["open t.gviz", "run seven.py"])
def test_a_closed_input_has_ended(folder, command):
    code, out, err = shell(f"{GVIZ} {command} <&-", folder)
    assert code == (7 if "seven" in command else 0)
    assert "(gviz) " in out
    assert "error" not in err


@pytest.mark.parametrize("streams", ["2>&-", "2>/dev/full", ">&-", "<&- >&- 2>&-"])
def test_the_exit_code_of_the_program_wins(folder, streams):
    assert shell(f"{GVIZ} record seven.py {streams}", folder)[0] == 7


def test_no_character_is_too_much_for_a_stream(folder):
    for arguments in ("node 2", "tape", "events"):
        code, out, err = shell(f"{GVIZ} show t.gviz {arguments}", folder, PYTHONIOENCODING="ascii")
        assert (code, err) == (0, "")
        assert out


def test_alone_it_shows_its_help(folder):
    code, out, err = shell(GVIZ, folder)
    assert (code, out) == (2, "")
    assert err.startswith("Usage: ")
    assert "\n  record " in err


def test_a_pipe_is_not_waited_for(folder):
    os.mkfifo(folder / "pipe.gviz")
    code, _, err = shell(f"{GVIZ} show pipe.gviz", folder)
    assert code == 3
    assert err.startswith("gviz: error: pipe.gviz is not a gviz trace: it is not a regular file\n")


@pytest.mark.parametrize("name", ["evil\x1b]0;TITLE\x07\x1b[31m", "two\nlines", "right‮left", "it's $HOME; x"])
def test_names_reach_the_terminal_harmless_and_commands_can_be_pasted(folder, tmp_path, name):
    (tmp_path / f"{name}.py").write_text(PROGRAM)
    code, _, err = gviz("record", "-o", f"{name}.gviz", f"{name}.py", cwd=tmp_path)
    assert code == 0
    assert all(line.isprintable() for line in err.splitlines())
    [paste] = [line.removeprefix("open it with: gviz") for line in err.splitlines() if line.startswith("open it with")]
    assert shell(f"{GVIZ}{paste} --plain </dev/null", tmp_path)[0] == 0
    code, _, err = gviz("run", "--plain", f"{name}.py", cwd=tmp_path, env={"XDG_CACHE_HOME": str(tmp_path / name)})
    assert code == 0
    assert all(line.isprintable() for line in err.splitlines())


def test_on_a_terminal_names_are_harmless_too(folder, tmp_path):
    (tmp_path / "evil\x1b[31m.py").write_text("")
    terminal, inside = pty.openpty()
    command = [*GVIZ.split(), "record", "evil\x1b[31m.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(tmp_path), stdout=inside, stderr=inside, timeout=60)
    said = os.read(terminal, 10_000).decode()
    os.close(terminal)
    os.close(inside)
    assert done.returncode == 0
    assert said.startswith("recording evil\\x1b[31m.py; ")
    assert "\x1b" not in said


LONG = "9" * 5000


@pytest.mark.parametrize(
    ("place", "at", "node"),
    [
        (f"a:{LONG}", "there is no a:9", "there is no a:9"),
        (LONG, "there is no event 9", "#9"),
        (f"#{LONG}", "#9", "#9"),
        (f"@{LONG}", "there is no event 9", "there is no event 9"),
    ],
    ids=["line", "event", "node", "moment"],
)
def test_a_place_of_many_digits_is_a_wrong_place(folder, place, at, node):
    for arguments, refused in ((("tape", "--at", place), at), (("node", place), node)):
        code, _, err = gviz("show", "t.gviz", *arguments, cwd=folder)
        assert code == 2
        assert err.startswith(f"gviz: error: {refused}")
        assert ("is no node" in err) == (refused == "#9")
        assert len(err) < 200


def test_mistakes_at_the_prompt_are_answered(folder):
    typed = "\n".join((f"find a:{LONG}", f"goto {LONG}", f"print a:{LONG}", LONG, f"n {LONG}",
                       "export ~nosuchuser/x.svg", "export a\0b.svg", "compare ~nosuchuser/a.gviz",
                       "ranks ~nosuchuser/b.gviz", "where"))  # fmt: skip
    code, out, err = gviz("open", "--plain", "t.gviz", cwd=folder, stdin=typed)
    assert (code, err) == (2, "")  # some lines were refused
    assert "cannot write ~nosuchuser/x.svg; there is no such user." in out
    assert "there is no ~nosuchuser/a.gviz; there is no such user." in out
    assert "there is no ~nosuchuser/b.gviz; there is no such user." in out
    assert "cannot write a\\x00b.svg; " in out
    assert "embedded null " in out  # each Python says it in words of its own
    assert "was made at event" in out


def is_running(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGABRT])
def test_a_program_ends_with_gviz_and_its_daemons_do_not(tmp_path, number):
    (tmp_path / "long.py").write_text(
        "import os, time\ndaemon = os.fork()\nif daemon: print(os.getpid(), daemon, flush=True)\ntime.sleep(60)\n"
    )
    command = [*GVIZ.split(), "record", "long.py"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, text=True) as run:
        program, daemon = map(int, run.stdout.readline().split())
        try:
            run.send_signal(number)
            run.wait(timeout=30)
            deadline = time.monotonic() + 30
            while is_running(program) and time.monotonic() < deadline:
                time.sleep(0.01)
            assert not is_running(program)
            assert is_running(daemon)
        finally:
            os.kill(daemon, signal.SIGKILL)


def test_a_long_drawing_says_so_on_a_terminal_only(monkeypatch, capsys):
    """And how far it is; what it said is gone in the end."""
    from gviz.cli import picture_files

    monkeypatch.setattr(picture_files, "SECONDS_OF_SILENCE", 0)
    for terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal)
        with picture_files._patience("drawing") as progress:
            deadline = time.monotonic() + 5
            said = capsys.readouterr().err
            while terminal and not said and time.monotonic() < deadline:
                time.sleep(0.01)
                said = capsys.readouterr().err
            assert said == ("drawing\x1b[K" if terminal else "")
            progress(0.34)
        assert capsys.readouterr().err == ("\rdrawing: 34%\x1b[K\r\x1b[K" if terminal else "")
