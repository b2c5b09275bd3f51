"""Keys of a terminal that also sends bytes which are no text: Textual's own driver ends at the first of them."""

from __future__ import annotations

import os
import re
import selectors
from codecs import getincrementaldecoder
from collections.abc import Iterable

from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key
from textual.message import Message

_NO_TEXT = "\N{REPLACEMENT CHARACTER}"
"""What stands for such bytes: left out, they would make a report of the mouse take the next key into it."""

_AT_ESCAPE = re.compile("(?=\x1b)")
"""Where a report may begin: one that the parser fails at takes no key with it that comes in the same breath."""

_SHIFT_F3 = "\x1b[1;2R", "\x1b[13;2~"
"""As xterm says it, and as kitty does. The first is also a report of where the cursor is, for which nobody asks."""

_SECONDS_BETWEEN_LOOKS = 0.1
_MOST_BYTES = 4096


class ForgivingDriver(LinuxDriver):
    """Reads keys, and ignores what a Latin-1 keyboard, an old mouse, a binary paste or kitty's longer reports say."""

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
                        except ValueError:  # a report of keys that nobody asked for; the parser is at its end
                            parser = XTermParser(self._debug)
                else:  # whatever is read by now is all: only then is an escape a key, and not the begin of one
                    self._take(parser.tick())

    def _take(self, messages: Iterable[Message]) -> None:
        for message in messages:
            if not (isinstance(message, Key) and message.character == _NO_TEXT):
                self.process_message(message)
