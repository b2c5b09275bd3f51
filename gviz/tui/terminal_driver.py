"""The terminal driver: handles input that makes Textual's own driver fail, and stops and resumes with the shell.

Textual's driver ends at the first byte that is not text. A paste whose end is lost takes every key after it. After
``kill -STOP`` the driver would start a second reader of keys, which never ends. Without a shell that could resume the
process, it would stop for ever.
"""

from __future__ import annotations

import os
import re
import selectors
import shutil
import signal
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator

from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START, XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key
from textual.message import Message

_NO_TEXT = "\N{REPLACEMENT CHARACTER}"
"""Replaces bytes that are not text. If they were dropped, a mouse report would swallow the next key."""

_AT_ESCAPE = re.compile("(?=\x1b)")
"""Splits input where a report may begin: if the parser fails at one, the other keys of the same read are kept."""

_SHIFT_F3 = "\x1b[1;2R", "\x1b[13;2~"
"""Shift+F3 as xterm sends it, and as kitty does.

The first is also a cursor position report, which gviz never requests.
"""

_ESCAPE, _CTRL_C = "\x1b", "\x03"
_SECONDS_BETWEEN_LOOKS = 0.1
_MOST_BYTES = 4096
_LONGEST_SILENCE = 50
"""How many looks without input end a paste. A slow connection may pause within one."""


class ForgivingDriver(LinuxDriver):
    """Reads keys, and ignores what Latin-1 keyboards, old mice, binary pastes and kitty's longer reports send."""

    _was_continued = False
    """Set by SIGCONT until the screen is drawn again."""

    @property
    def _has_terminal(self) -> bool:
        """Whether the screen is drawn: neither the shell nor an editor has the terminal."""
        return self._writer_thread is not None and self._writer_thread.is_alive()

    def _sigtstp_application(self, *_: object) -> None:
        """Handle SIGTSTP. While an editor has the terminal, the event loop waits for it, so the process stops here."""
        if not (self._auto_restart and self._call_soon(self._stop)):
            self._stop()

    def _sigcont_application(self, *_: object) -> None:
        """Handle SIGCONT."""
        self._was_continued = True
        if self._auto_restart:  # otherwise an editor has the terminal
            self._call_soon(self._resume)

    def _call_soon(self, callback: Callable[[], None]) -> bool:
        """Call back between two events. Returns False if the event loop does not run.

        A signal handler can interrupt a write to the screen, which holds a lock: it would wait for itself.
        """
        if not self._loop.is_running():
            return False
        self._loop.call_soon_threadsafe(callback)
        return True

    def _stop(self) -> None:
        """Release the terminal and stop. If no shell could resume this process, the kernel does not stop it."""
        if self._auto_restart and self._has_terminal and not self._app._exit:
            self.suspend_application_mode()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._sigtstp_application)
        if not self._has_terminal:  # SIGCONT may have come already, or never
            self._was_continued = True
            self._resume()

    def _resume(self) -> None:
        """Take the terminal and redraw the screen, once for each SIGCONT.

        A program cannot handle SIGSTOP: meanwhile the shell has written over the screen and changed the keyboard mode.
        """
        if not (self._was_continued and self._auto_restart) or self._app._exit:
            return  # an application that exits would never end a new reader of keys
        if self._has_terminal:
            try:
                job = os.tcgetpgrp(self.fileno)
            except OSError:
                return  # a hang-up also sends this signal; the application checks whether the terminal is still there
            if job != os.getpgrp():
                os.kill(os.getpid(), signal.SIGSTOP)  # as any background program that writes to the terminal
                return
            self.exit_event.set()  # ends the reader of keys; set before, Textual drops none that were typed since
            if self._key_thread is not None:
                self._key_thread.join()
            self.suspend_application_mode()
            self.exit_event.clear()
        self._was_continued = False
        self._must_signal_resume = True
        self.start_application_mode()  # type: ignore[no-untyped-call]

    def _get_terminal_size(self) -> tuple[int, int]:
        """Return the columns and rows of the terminal with the screen: standard output may be a file."""
        try:
            columns, rows = os.get_terminal_size(self._file.fileno() if self._file is not None else -1)
        except (OSError, ValueError):
            return super()._get_terminal_size()
        return (columns, rows) if columns > 0 and rows > 0 else shutil.get_terminal_size()

    def run_input_thread(self) -> None:
        """Read keys until the application exits."""
        parser = InputParser(self._debug)
        decode = getincrementaldecoder("utf-8")(errors="replace").decode
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if selector.select(_SECONDS_BETWEEN_LOOKS):
                    self._take(parser.feed(decode(os.read(self.fileno, _MOST_BYTES))))
                else:
                    self._take(parser.tick())

    def _take(self, messages: Iterable[Message]) -> None:
        for message in messages:
            if not (isinstance(message, Key) and message.character == _NO_TEXT):
                self.process_message(message)


class InputParser:
    """Textual's parser, which continues after a report that it does not know, and after a paste whose end is lost.

    What is typed before the first frame waits in the terminal, which still edits lines: a paste and a Backspace leave a
    paste without the last byte of its end. Textual would take all later keys as pasted text. Here such a paste ends at
    Ctrl+C or Esc, which no terminal sends within pasted text, or after five seconds without input.
    """

    def __init__(self, debug: bool) -> None:
        self._debug = debug
        self._parser = XTermParser(debug)
        self._last = ""
        """The last characters: the marks of a paste may arrive in two parts."""
        self._pastes = False
        self._silence = 0

    def feed(self, text: str) -> Iterator[Message]:
        """Return the events of what was read."""
        self._silence = 0
        for keys in filter(None, _AT_ESCAPE.split(text.replace(*_SHIFT_F3))):  # an empty string would end the parser
            if self._pastes and _CTRL_C in keys:
                before, _, after = keys.partition(_CTRL_C)
                keys = before + BRACKETED_PASTE_END + _CTRL_C + after
            yield from self._parsed(keys)

    def tick(self) -> Iterator[Message]:
        """Return the events of a moment without input: only now is an escape a key of its own."""
        self._silence += 1
        if self._pastes and self._last.endswith(_ESCAPE):
            yield from self._parsed(BRACKETED_PASTE_END.removeprefix(_ESCAPE) + _ESCAPE)
        elif self._pastes and self._silence >= _LONGEST_SILENCE:
            yield from self._parsed(BRACKETED_PASTE_END)
        else:
            yield from self._parser.tick()

    def _parsed(self, keys: str) -> Iterator[Message]:
        seen = self._last + keys
        started, ended = seen.rfind(BRACKETED_PASTE_START), seen.rfind(BRACKETED_PASTE_END)
        if started != ended:  # at least one of them was seen
            self._pastes = started > ended
        self._last = seen[-len(BRACKETED_PASTE_END) + 1 :]
        try:
            yield from self._parser.feed(keys)
        except ValueError:  # an unrequested report of keys; the parser is unusable now
            self._parser, self._pastes = XTermParser(self._debug), False
