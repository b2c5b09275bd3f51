"""The driver of the terminal: it takes input that Textual's own driver fails at, and stops and resumes with the shell.

Textual ends at the first byte that is no text. After ``kill -STOP`` it would start a second reader of keys, which never
ends. Where no shell could bring it back it would stop for ever.
"""

from __future__ import annotations

import os
import re
import selectors
import shutil
import signal
from codecs import getincrementaldecoder
from collections.abc import Iterable

from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key
from textual.message import Message

_NO_TEXT = "\N{REPLACEMENT CHARACTER}"
"""Takes the place of such bytes: without it a report of the mouse would swallow the next key."""

_AT_ESCAPE = re.compile("(?=\x1b)")
"""Where a report may begin: if the parser fails at one, the keys in the same read are not lost."""

_SHIFT_F3 = "\x1b[1;2R", "\x1b[13;2~"
"""As xterm sends it, and as kitty does. The first is also a cursor position report, for which gviz never asks."""

_SECONDS_BETWEEN_LOOKS = 0.1
_MOST_BYTES = 4096


class ForgivingDriver(LinuxDriver):
    """Reads keys, and ignores what Latin-1 keyboards, old mice, binary pastes and kitty's longer reports send."""

    @property
    def _has_terminal(self) -> bool:
        """Whether the screen is drawn: neither the shell nor an editor has the terminal."""
        return self._writer_thread is not None and self._writer_thread.is_alive()

    def _sigtstp_application(self, *_: object) -> None:
        """Give the terminal back and stop. Where no shell could bring this process back the kernel does not stop it."""
        if self._auto_restart and self._has_terminal:
            self.suspend_application_mode()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._sigtstp_application)
        if not self._has_terminal:  # SIGCONT may have come already, or never
            self._sigcont_application()

    def _sigcont_application(self, *_: object) -> None:
        """Take the terminal, and draw all of it.

        After SIGSTOP, which no program hears of, the shell has written over the screen and changed how keys arrive.
        """
        if not self._auto_restart:
            return  # an editor has the terminal
        if self._has_terminal:
            try:
                job = os.tcgetpgrp(self.fileno)
            except OSError:
                return  # a hang-up sends this signal, too; the application checks whether there still is a terminal
            if job != os.getpgrp():
                os.kill(os.getpid(), signal.SIGSTOP)  # as any program that writes on the terminal from behind
                return
            self.suspend_application_mode()
        self._must_signal_resume = True
        self.start_application_mode()  # type: ignore[no-untyped-call]

    def _get_terminal_size(self) -> tuple[int, int]:
        """The columns and rows of the terminal that is drawn on: standard output may be a file."""
        try:
            columns, rows = os.get_terminal_size(self._file.fileno() if self._file is not None else -1)
        except (OSError, ValueError):
            return super()._get_terminal_size()
        return (columns, rows) if columns > 0 and rows > 0 else shutil.get_terminal_size()

    def run_input_thread(self) -> None:
        """Read until the application leaves."""
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")(errors="replace").decode
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if selector.select(_SECONDS_BETWEEN_LOOKS):
                    text = decode(os.read(self.fileno, _MOST_BYTES)).replace(*_SHIFT_F3)
                    for keys in filter(None, _AT_ESCAPE.split(text)):  # nothing at all would end the parser
                        try:
                            self._take(parser.feed(keys))
                        except ValueError:  # a report of keys that gviz did not ask for; the parser is at its end
                            parser = XTermParser(self._debug)
                else:  # whatever is read by now is all: only then is an escape a key, and not the begin of one
                    self._take(parser.tick())

    def _take(self, messages: Iterable[Message]) -> None:
        for message in messages:
            if not (isinstance(message, Key) and message.character == _NO_TEXT):
                self.process_message(message)
