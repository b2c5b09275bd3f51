"""The debugger in a real terminal: tmux on a private socket, polled for text."""

import os
import signal
import sys
from pathlib import Path

import pytest
from tmux import Tmux, needs_tmux

pytestmark = needs_tmux

PROGRAM = """
import sys
sys.path[:0] = {path!r}
import stories
from gviz.tui import debug
from gviz.tui.session_options import SessionOptions, Title
debug(stories.demo(), SessionOptions(Title("demo.py")))
"""
LINE_BY_LINE = """
import sys
sys.path[:0] = {path!r}
import stories
from gviz.tui import line_mode
line_mode.debug(stories.demo(), None, sys.stdin, sys.stdout)
"""
PATHS = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]


def opened(folder, environment, text, **size):
    """A terminal that runs the debugger."""
    program = folder / "debug.py"
    program.write_text(text.format(path=PATHS))
    return Tmux(f"{environment} {sys.executable} {program}", **size)


@pytest.fixture
def terminal(tmp_path):
    made = []

    def start(environment="TERM=tmux-256color LC_ALL=C.UTF-8", text=PROGRAM, **size):
        made.append(opened(tmp_path, environment, text, **size))
        return made[-1]

    yield start
    for each in made:
        each.close()


def test_line_by_line_ctrl_d_is_quit_and_ends_what_is_asked_for(terminal):
    session = terminal(text=LINE_BY_LINE)
    session.until("(gviz)")
    session.keys("break x", "Enter", "commands", "Enter")
    session.until("end ends them.\n>")
    session.keys("print x", "Enter", "C-d")
    session.until("> end", "breakpoint 1 runs 1 command.")
    session.keys("C-d")
    session.until("(gviz) quit", "exit=0")


def test_it_opens_steps_resizes_and_leaves_with_0(terminal):
    session = terminal()
    screen = session.until("event 1", "Graph", "Node", "1: source", "q Quit")
    assert all(len(row) <= 80 for row in screen.splitlines())
    session.keys("n")
    session.until("event 3", "#2 w")
    session.keys("N")
    session.until("◄ back to 1")
    session.tmux("resize-window", "-x", "120", "-y", "40")
    session.until("0 Graph", "No watches (w)")
    session.keys(":", "goto b", "Enter")
    session.until("event 7", "3 (x) * -6 (a) = -18")
    session.keys("q", "e", "?")  # pages that were asked for behind the key that leaves do not come any more
    session.until("exit=0")


def test_it_goes_to_the_shell_and_comes_back_with_everything_on_the_screen(terminal, tmp_path):
    shell = "import os; os.environ['PS1'] = 'shell: '; os.execvp('bash', ['bash', '--norc', '-i'])"
    session = terminal(text=shell)
    session.until("shell:")
    (tmp_path / "shown.py").write_text(PROGRAM.format(path=PATHS))
    session.keys(f"{sys.executable} {tmp_path}/shown.py", "Enter")
    session.until("event 1", "q Quit")
    for event in (3, 5, 7):
        session.keys("n")
        session.until(f"event {event}", "q Quit")
        session.keys("C-z")
        session.until("Stopped", "shell:")
        session.keys("clear; fg", "Enter")
        session.until(f"event {event}", "Graph", "Node", "1: source", "back from the shell")


def test_no_colour_means_no_colour_codes(terminal):
    session = terminal("TERM=tmux-256color LC_ALL=C.UTF-8 NO_COLOR=1")
    screen = session.until("event 1", colours=True)
    assert "38;" not in screen
    assert "48;" not in screen


def test_tab_completes_commands_and_names_line_by_line(terminal):
    session = terminal(text=LINE_BY_LINE)
    session.until("(gviz)")
    session.keys("brea", "Tab", " lo", "Tab", "Enter")
    session.until("(gviz) break loss", "breakpoint 1: loss")
    session.keys("p norm(x", "Tab", ") + 1", "Enter")
    session.until("x.grad is None here")


def test_what_is_typed_in_one_go_is_completed_and_carried_out(terminal):
    session = terminal()
    session.until("event 1", "q Quit")
    session.keys(":", "info g", "Tab", "Enter")
    session.until("Answer: Esc closes this", "1 of 5 nodes made")
    session.keys("Enter")
    session.until("0 Graph")
    session.keys("M")
    session.until("Run to its next event")
    session.keys("Down", "Down", "Enter")
    session.until(" goto")
    session.keys(":", "set keymap vscode", "Enter")
    session.until("keymap is vscode")
    session.keys("F10")
    session.until("event 3", "F10/N Node")
    session.keys("q")
    session.until("exit=0")


XTERM = {"f5": "\x1b[15~", "f10": "\x1b[21~", "f11": "\x1b[23~", "N": "N"}
VSCODE = {"f3": "\x1bOR", "shift+f3": "\x1b[1;2R", "shift+f5": "\x1b[15;2~"}
KITTY = {"n": "\x1b[110;1;110u", "N": "\x1b[110;2;78u", "colon": "\x1b[59;2;58u"}


def raw(session, data):
    data = data.encode() if isinstance(data, str) else data
    session.tmux("send-keys", "-H", *(f"{byte:02x}" for byte in data))


def test_the_bytes_of_xterm_are_its_keys(terminal):
    session = terminal("TERM=xterm-256color LC_ALL=C.UTF-8")
    session.until("event 1", "q Quit")
    raw(session, XTERM["f10"])
    session.until("event 3 ")
    raw(session, XTERM["f11"])
    session.until("event 4 ")
    raw(session, XTERM["N"])
    session.until("back to 3")
    raw(session, XTERM["f5"])
    session.until("event 33")
    session.keys("q")
    session.until("exit=0")


def test_the_keys_of_vscode_are_heard_as_xterm_says_them(terminal):
    session = terminal("TERM=xterm-256color LC_ALL=C.UTF-8")
    session.until("event 1", "q Quit")
    session.keys(":", "set keymap vscode", "Enter")
    session.until("keymap is vscode")
    session.keys("/", "op:mul", "Enter")
    session.until("a = mul  #3")
    raw(session, VSCODE["f3"])
    session.until("b = mul  #4")
    raw(session, VSCODE["shift+f3"])
    session.until("a = mul  #3")
    raw(session, VSCODE["shift+f5"])
    session.until("exit=0")


def test_the_bytes_of_kitty_are_its_keys(terminal):
    session = terminal("TERM=xterm-kitty LC_ALL=C.UTF-8")
    session.until("event 1", "q Quit")
    raw(session, KITTY["n"])
    session.until("event 3 ")
    raw(session, KITTY["N"])
    session.until("back to 1")
    raw(session, KITTY["colon"])
    session.until(" :")
    session.keys("goto b", "Enter")
    session.until("event 7")
    session.keys("q")
    session.until("exit=0")


@pytest.mark.parametrize(
    "no_text",
    [b"\xff", b"\xe9 ", b"\x1b[M \xff0", b"\x1b[109:77;2;77u"],
    ids=["one byte", "a key in Latin-1", "a mouse beyond column 95", "a key with others beside it"],
)
def test_bytes_that_are_no_text_are_ignored(terminal, no_text):
    session = terminal("TERM=xterm-256color LC_ALL=C.UTF-8")
    session.until("event 1", "q Quit")
    raw(session, no_text + XTERM["f10"].encode())
    session.until("event 3 ")
    session.keys(":")
    raw(session, b"goto \xff\xfeb\r")
    session.until("event 7 ")
    session.keys("q")
    session.until("exit=0")


def test_a_line_pasted_over_a_page_arrives_whole(terminal):
    session = terminal("LC_ALL=C.UTF-8")
    session.until("event 1", "q Quit")
    session.keys("e")
    session.until("Esc closes this")
    session.keys("-l", ":break change x.grad")
    session.until(":break change x.grad")
    session.keys("Enter")
    session.until("breakpoint 1: change x.grad")
    session.keys("e")
    session.until("Esc closes this")
    session.keys("-l", ":goto 5\r")
    session.until("event 5 ")
    session.keys("q")
    session.until("exit=0")


SHELL = "import os; os.environ['PS1'] = 'shell: '; os.execvp('bash', ['bash', '--norc', '-i'])"


def begun(terminal, folder):
    """The debugger as the job of an interactive shell, and its process."""
    session = terminal(text=SHELL)
    session.until("shell:")
    tells = f"import os\nopen({str(folder / 'pid')!r}, 'w').write(str(os.getpid()))\n"
    (folder / "shown.py").write_text(tells + PROGRAM.format(path=PATHS))
    session.keys(f"{sys.executable} {folder}/shown.py", "Enter")
    session.until("event 1", "q Quit")
    return session, int((folder / "pid").read_text())


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGTSTP], ids=lambda number: number.name)
def test_a_stopped_debugger_comes_back_in_the_size_of_now_and_leaves_an_ordinary_terminal(terminal, tmp_path, number):
    session, process = begun(terminal, tmp_path)
    session.keys("?")
    session.until("Esc closes this")
    for columns in (100, 60):
        os.kill(process, number)
        session.until("Stopped")
        session.tmux("resize-window", "-x", str(columns), "-y", "30")
        session.keys("clear; fg", "Enter")
        screen = session.until("Esc closes this", " back from")
        assert max(map(len, screen.splitlines())) <= columns
    session.keys("Escape")
    session.until("1 Source demo.py:3")  # the help covers it; a key that follows Escape too soon is read as Alt+key
    session.keys("n")
    session.until("event 3")
    session.keys("q")
    session.until("shell:")
    session.keys("stty -a", "Enter")
    assert " icanon" in session.until("icanon")


def test_the_screen_comes_back_after_ctrl_z_and_fg(terminal, tmp_path):
    session, _ = begun(terminal, tmp_path)
    session.keys("C-z")
    session.until("Stopped")
    session.keys("clear; fg", "Enter")
    session.until("event 1", "Graph", "back from the shell")
    session.keys("n")
    session.until("event 3")
    session.keys("q")
    session.until("shell:")


def test_a_debugger_that_goes_on_in_the_background_writes_nothing_there(terminal, tmp_path):
    session, _ = begun(terminal, tmp_path)
    session.keys("C-z")
    session.until("Stopped")
    session.keys("clear; bg; sleep 1; echo here", "Enter")
    assert "Graph" not in session.until("here")
    session.keys("clear; fg", "Enter")
    session.until("event 1", "Graph", "back from the shell")
    session.keys("q")
    session.until("shell:")


def test_without_a_shell_to_go_to_the_debugger_stays(terminal):
    session = terminal(text=PROGRAM)
    session.until("event 1", "q Quit")
    session.keys("C-z")
    session.until("event 1", "Graph", "back from the shell")
    session.keys("n")
    session.until("event 3")


@pytest.mark.parametrize("size", [(20, 5), (39, 9), (200, 5)])
def test_a_terminal_that_is_too_small_says_so_and_shows_everything_once_it_is_larger(terminal, size):
    session = terminal(columns=size[0], rows=size[1])
    session.until("too small", "40x10")
    session.tmux("resize-window", "-x", "80", "-y", "24")
    session.until("event 1", "Graph", "Node", "q Quit")
    session.tmux("resize-window", "-x", str(size[0]), "-y", str(size[1]))
    session.until("too small", "40x10")


def test_ctrl_c_in_the_python_shell_is_for_the_shell(terminal):
    session = terminal()
    session.until("event 1", "q Quit")
    session.keys("I")
    session.until(">>>", "Ctrl+D: back.")
    session.keys("C-c")
    session.until("KeyboardInterrupt")
    session.keys("print(float(x) + 1)", "Enter")
    session.until("4.0")
    session.keys("C-d")
    session.until("event 1", "back from Python")
    session.keys("n")
    session.until("event 3")
