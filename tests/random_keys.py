"""Random keys for the debugger in a real terminal, and what must be so after each of them.

A launcher stands where a shell would: it starts the debugger again when it has left, and brings it back when it was
suspended. It reads no key, so that none of them does anything else. Keys come in bursts, many of them in one read.
"""

import json
import os
import random
import shlex
import string
import subprocess
import sys
import time
from pathlib import Path

from tmux import Tmux

from gviz.tui.commands.command_table import SPECS
from gviz.tui.keymaps import ACTS, keys_of
from gviz.tui.panel_choice import SMALLEST

ROOT = Path(__file__).parents[1]
SIZES = ((20, 5), (40, 12), (80, 24), (120, 40), (200, 60))
PATIENCE = 300
BETWEEN_LOOKS = 100
"""So many keys until the debugger is looked at in a screen that is large enough."""

PROGRAM = """\
import time
import gviz.engine as torch
from gviz.engine import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
x, w = torch.randn(5, 3), torch.tensor([1.0, 2.0], requires_grad=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
print("begins")
for i in range(ITERATIONS):
    loss = (model(x) * w[0]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("iteration", i, loss.item())
"""

LAUNCHER = """\
import json, os, signal, sys, termios, time
command, log = json.loads(sys.argv[1]), open(sys.argv[2], "a", buffering=1)
SIGNALS = signal.SIGTTOU, signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP
for each in SIGNALS:
    signal.signal(each, signal.SIG_IGN)
os.setpgid(0, 0)
mine = os.getpgrp()
os.tcsetpgrp(0, mine)
ordinary = termios.tcgetattr(0)
ordinary[3] &= ~termios.ISIG  # a Ctrl+C of before the first frame would end what the lesson records
termios.tcsetattr(0, termios.TCSADRAIN, ordinary)
while True:
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        for each in SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        os.execvp(command[0], command)
    print("started", child, file=log)
    while True:
        _, status = os.waitpid(child, os.WUNTRACED)
        os.tcsetpgrp(0, mine)
        if not os.WIFSTOPPED(status):
            break
        running = termios.tcgetattr(0)
        termios.tcsetattr(0, termios.TCSADRAIN, ordinary)
        print("stopped", file=log)
        os.write(1, b"\\r\\nstopped\\r\\n")
        time.sleep(0.2)
        termios.tcsetattr(0, termios.TCSADRAIN, running)
        os.tcsetpgrp(0, child)
        os.kill(child, signal.SIGCONT)
    termios.tcsetattr(0, termios.TCSADRAIN, ordinary)
    code = os.waitstatus_to_exitcode(status)
    print("ended", code, file=log)
    if code:
        time.sleep(600)
"""

_NAMED = {
    "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F",
    "pageup": "\x1b[5~", "pagedown": "\x1b[6~", "insert": "\x1b[2~", "delete": "\x1b[3~", "enter": "\r", "tab": "\t",
    "shift+tab": "\x1b[Z", "escape": "\x1b", "backspace": "\x7f", "space": " ", "ctrl+home": "\x1b[1;5H",
    "ctrl+end": "\x1b[1;5F", "ctrl+left": "\x1b[1;5D", "ctrl+right": "\x1b[1;5C", "shift+up": "\x1b[1;2A",
    "f1": "\x1bOP", "f3": "\x1bOR", "f5": "\x1b[15~", "f7": "\x1b[18~", "f8": "\x1b[19~", "f9": "\x1b[20~",
    "f10": "\x1b[21~", "f11": "\x1b[23~", "shift+f11": "\x1b[23;2~", "right_square_bracket": "]",
    "left_square_bracket": "[", "right_curly_bracket": "}", "left_curly_bracket": "{", "less_than_sign": "<",
    "greater_than_sign": ">", "apostrophe": "'", "slash": "/", "comma": ",", "full_stop": ".", "colon": ":",
    "question_mark": "?", "plus": "+", "minus": "-", "equals_sign": "=", "semicolon": ";", "exclamation_mark": "!",
}  # fmt: skip

_RARE = {"act.quit": 0.1, "act.suspend": 0.1, "act.python": 0.1, "live.restart": 0.2, "act.edit": 0.3}
"""How often an act comes that starts or stops a process, where every other comes once: each takes a second."""

_WORDS = (
    "x", "w", "w.grad", "loss", "#3", "@12", "nan", "error", "Linear", "on nan", "on accumulate", "change w.grad", "1",
    "1,2", "-1", "keymap vscode", "keymap default", "node", "stats", "break", "norm(w.grad) > 3", "if x > 0", "3", "a",
    "missing", "w[0] +", "'", '"', "é", "漢字", "\N{SLIGHTLY SMILING FACE}", "[red]", "{}", "%s", "a" * 300,
)  # fmt: skip
_TYPED = string.ascii_letters + string.digits + string.punctuation + " éß漢\N{SLIGHTLY SMILING FACE}\u0301\u202e"
_UNWANTED = frozenset({"browse", "python", "quit", "kill", "stop", "detach", "source", "run"})
"""Commands that are not typed: they leave, or wait for another program."""


def bytes_of(key):
    """What a terminal sends for a key as Textual names it."""
    if key in _NAMED:
        return _NAMED[key]
    held, _, last = key.rpartition("+")
    return chr(ord(last) & 31) if held == "ctrl" else last


class Keyboard:
    """Says what is pressed next: ``("keys", text)``, ``("resize", columns, rows)``, or ``("stop",)``."""

    def __init__(self, seed, size):
        self._random = random.Random(seed)
        self._size = size
        keys = keys_of("default")
        self._bound = [bytes_of(key) for act in ACTS for key in keys[act.id]]
        self._weights = [_RARE.get(act.id, 1.0) for act in ACTS for _ in keys[act.id]]
        self._commands = [spec.name for spec in SPECS if spec.name not in _UNWANTED]

    def press(self):
        """One key, click, paste, resize, or stop."""
        kinds = (self._key, self._moving, self._letter, self._mouse, self._line, self._paste, self._resize, self._other)
        return self._random.choices(kinds, (48, 18, 9, 9, 6, 4, 4, 2))[0]()

    def burst(self):
        """What comes in one go."""
        return [self.press() for _ in range(self._random.choice((1, 1, 2, 3, 5, 8, 13)))]

    def pause(self):
        """How many seconds pass until the next."""
        return self._random.choice((0, 0, 0.01, 0.05, 0.15))

    def _key(self):
        return "keys", self._random.choices(self._bound, self._weights)[0]

    def _moving(self):
        return "keys", self._random.choice(list(_NAMED.values())[:21])

    def _letter(self):
        return "keys", self._random.choice(_TYPED)

    def _mouse(self):
        button = self._random.choice((0, 0, 0, 1, 2, 32, 35, 64, 65, 64, 65, 68))
        x, y = (self._random.randint(1, most) for most in self._size)
        down = f"\x1b[<{button};{x};{y}M"
        return "keys", down if button >= 32 or self._random.random() < 0.1 else down + f"\x1b[<{button};{x};{y}m"

    def _line(self):
        sign = self._random.choice((":", ":", ":", "/", "\x10"))
        if sign != ":":
            return "keys", sign + self._random.choice(_WORDS) + "\r"
        return "keys", f":{self._random.choice(self._commands)} {self._random.choice(_WORDS)}\r"

    def _paste(self):
        text = self._random.choice(("\n", " ", "")).join(self._random.choices(_WORDS, k=self._random.randint(1, 4)))
        return "keys", f"\x1b[200~{text}\x1b[201~"

    def _resize(self):
        if self._random.random() < 0.5:
            return "resize", *self._size
        return "resize", self._random.randint(1, 210), self._random.randint(1, 65)

    def _other(self):
        if self._random.random() < 0.3:
            return ("stop",)
        return "keys", self._random.choice(("\x1b[I", "\x1b[O", "\xff", "\x1b[", "\x1b[<0;0;0M", "\x1b[999~", "\0"))


def _shown(press):
    what, *rest = press
    text = repr(rest[0]) if what == "keys" else f"<{' '.join(map(str, press))}>"
    return text if len(text) < 60 else text[:57] + "..."


class Control:
    """Commands for a tmux that runs already: a process for each would take longer than the debugger does."""

    def __init__(self, socket):
        order = ["tmux", "-L", socket, "-C", "attach", "-f", "no-output"]
        self._client = subprocess.Popen(order, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        self._answer()

    def __call__(self, *words):
        """What a command answers."""
        self._client.stdin.write(shlex.join(words) + "\n")
        self._client.stdin.flush()
        return self._answer()

    def close(self):
        """Leave; the terminal stays."""
        with self._client:
            self._client.stdin.close()

    def _answer(self):
        """The lines between ``%begin`` and ``%end``, whatever tmux reports of itself before them."""
        lines, inside = [], False
        for line in self._client.stdout:
            if inside and line.startswith(("%end ", "%error ")):
                return "".join(lines)
            if inside:
                lines.append(line)
            inside = inside or line.startswith("%begin ")
        raise Finding("the terminal is gone")


class Finding(AssertionError):
    """What must not be, with the last keys and the screen."""


class Session:
    """The debugger in a terminal of a size, and random keys for it."""

    def __init__(self, folder, command, *, size, seed):
        self.folder, self._size, self.seed = folder, size, seed
        self.pressed, self.restarts, self.suspended = 0, 0, 0
        self._keyboard = Keyboard(f"{seed} {size}", size)
        self._last = []
        self._log = folder / "log"
        self._log.touch()
        (folder / "launcher.py").write_text(LAUNCHER)
        environment = {
            "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder), "XDG_CONFIG_HOME": str(folder),
            "HOME": str(folder), "EDITOR": "true", "BROWSER": "true", "TERM": "tmux-256color", "LC_ALL": "C.UTF-8",
        }  # fmt: skip
        given = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
        words = [sys.executable, "launcher.py", json.dumps(command), str(self._log)]
        self._tmux = Tmux(f"-C {shlex.quote(str(folder))} {given} {shlex.join(words)}", columns=size[0], rows=size[1])
        self._control = Control(self._tmux.socket)
        self._until(lambda: "started" in self._log.read_text(), "the debugger has not started")
        self._until(lambda: self._shows(), "nothing is shown")

    def press(self, count):
        """Press so many keys, in bursts; raises Finding."""
        end, look_at = self.pressed + count, self.pressed + BETWEEN_LOOKS
        while self.pressed < end:
            burst = self._keyboard.burst()
            self._last = [*self._last[-20:], burst]
            self._send(burst)
            self.pressed += len(burst)
            time.sleep(self._keyboard.pause())
            self._check_ends()
            if self.pressed >= look_at:
                look_at = self.pressed + BETWEEN_LOOKS
                self.look()
        self.look()

    def look(self):
        """Wait until something is shown, and until the debugger answers in a screen with room for it."""
        self._until(self._shows, "nothing is shown")
        small = self._size[0] < 2 * SMALLEST[0] or self._size[1] < 2 * SMALLEST[1]
        self._resize(*((100, 30) if small else self._size))
        end, answered = time.monotonic() + PATIENCE, False
        while not answered and time.monotonic() < end:
            for key in ("\x03", "\x1b", "\x1b", "\x1b", "\x0c"):
                self._write(key)
                time.sleep(0.13)  # else an escape begins the next key
            answered = self._waits_for("redrawn", 1.0)
            if not answered and ">>>" in self._screen():
                self._write("\x03\r\x04")  # a Python shell
            self._check_ends()
        if not answered:
            raise self._finding("it does not answer")
        self._resize(*self._size)

    def close(self):
        """Close the terminal: the debugger leaves with it."""
        self._control.close()
        self._tmux.close()

    def _send(self, burst):
        text = ""
        for what, *rest in burst:
            if what == "keys":
                text += rest[0]
                continue
            self._write(text)
            text = ""
            self._resize(*rest) if what == "resize" else self._stop()
        self._write(text)

    def _write(self, text):
        data = text.encode("utf-8", "surrogateescape")
        for at in range(0, len(data), 500):
            self._control("send-keys", "-H", *(f"{byte:02x}" for byte in data[at : at + 500]))

    def _resize(self, columns, rows):
        self._control("resize-window", "-x", str(columns), "-y", str(rows))

    def _stop(self):
        """What ``kill -STOP`` does."""
        started = [line for line in self._log.read_text().splitlines() if line.startswith("started")]
        try:
            os.kill(int(started[-1].split()[1]), 19)
        except ProcessLookupError:
            return  # it has just left

    def _screen(self):
        return self._control("capture-pane", "-p")

    def _shows(self):
        return bool(self._screen().strip())

    def _waits_for(self, text, seconds):
        end = time.monotonic() + seconds
        while text not in self._screen():
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True

    def _until(self, holds, otherwise):
        end = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > end:
                raise self._finding(otherwise)
            time.sleep(0.05)

    def _check_ends(self):
        log = self._log.read_text().split("\n")
        self.suspended, self.restarts = log.count("stopped"), log.count("ended 0")
        wrong = [line for line in log if line.startswith("ended") and line != "ended 0"]
        if wrong:
            raise self._finding(wrong[0])

    def _finding(self, what):
        screen = self._control("capture-pane", "-p", "-S", "-200").rstrip()
        keys = "\n".join("  " + " ".join(map(_shown, burst)) for burst in self._last)
        return Finding(
            f"{what}, after {self.pressed} keys with seed {self.seed} at {self._size[0]}x{self._size[1]}\n{screen}\n"
            f"the last keys:\n{keys}"
        )
