"""The debugger: full screen in a terminal, or line by line (`gviz.tui.plain`), over the same core.

It steps through a recording, forwards and backwards. Over a program that still runs (`gviz.tui.live`), the end of the
recording is where the program is, and going on there lets it run.

Read first: ``cursor.py`` (where one is in time, and every way to move), ``commands/table.py`` (every command, declared
once), ``screens/debugger.py`` (what keys, prompt and mouse do).

The walk of a key, ``s``, from the keyboard to the screen:

1. ``driver.py`` reads the bytes; ``app.py`` lets keys act one after the other (``type_ahead.py``).
2. ``keymaps.py`` says what the key does: ``travel('step')``, an action of `DebuggerScreen`, which makes a `Command`.
   A typed line becomes one in ``language/parser.py``.
3. ``screens/orders.py`` runs what ``commands/table.py`` declares for it. That moves the `Cursor` of the `Session`, and
   answers with an `Arrival`. What takes long is done a little at a time (``screens/errand.py``).
4. ``screens/carry_out.py`` shows the answer; `show_arrival` sets the ``moment`` that all panels follow.
5. Each panel in ``widgets/`` asks its file in ``drawing/`` for lines of styled text, and paints the rows that differ.

Line by line, `plain.answers` takes the place of 3 to 5, and prints the lines of ``drawing/``. So these know no widget:
Textual takes 0.2 s to import, which ``gviz show`` and the line-by-line debugger do not pay.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gviz.system.gc_pause import uncollected

if TYPE_CHECKING:
    from gviz.trace.timeline import Timeline
    from gviz.tui.beginning import Beginning, LiveBeginning
    from gviz.tui.config import Config
    from gviz.tui.leaving import Leaving
    from gviz.tui.title import Title


def debug(timeline: Timeline, beginning: Beginning, *, ascii: bool = False, theme: str | None = None) -> Leaving:
    """Open the terminal debugger over a timeline and stay until the user leaves; what becomes of a program that waits.

    Raises GvizError (exit code 70) if gviz itself fails.
    """
    with uncollected(lasting=True):
        from gviz.tui.app import DebuggerApp, run  # textual takes 0.19 s to import
        from gviz.tui.config import read

    own = read()
    app = DebuggerApp(timeline, beginning, ascii=ascii, theme=_theme(theme, own), config=own)
    run(app)
    return app.leaving


def debug_live(beginning: LiveBeginning, *, ascii: bool = False, theme: str | None = None) -> int:
    """Open the terminal debugger over a program that it starts and holds; the program's exit code, 0 if it lives on."""
    with uncollected(lasting=True):
        from gviz.tui.app import ScreenApp, run
        from gviz.tui.config import read
        from gviz.tui.glyphs import glyphs
        from gviz.tui.live import code_of
        from gviz.tui.screens.live import LiveScreen

    own = read()
    columns, rows = shutil.get_terminal_size()
    screen = LiveScreen(beginning, glyphs(ascii=ascii), size=(columns, rows), config=own)
    app = ScreenApp(screen, ascii=ascii, theme=_theme(theme, own))
    run(app)
    while screen.restarts:
        with _between_screens():
            screen = screen.again((columns, rows))
        app = ScreenApp(screen, ascii=ascii, theme=app.theme)
        run(app)
    return code_of(screen.live.program)


@contextmanager
def _between_screens() -> Iterator[None]:
    """Nothing reads keys meanwhile, so that ctrl+c is a signal: it would end the debugger, not pause the program."""
    before = signal.signal(signal.SIGINT, lambda number, frame: None)  # not ignored: the program would inherit that
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def teach(timeline: Timeline, *, title: Title, ascii: bool = False, theme: str | None = None) -> None:
    """The guided lesson over a recording; see `gviz.tui.tutor`."""
    with uncollected(lasting=True):
        from gviz.tui.app import ScreenApp, run
        from gviz.tui.beginning import Beginning
        from gviz.tui.config import read
        from gviz.tui.glyphs import glyphs
        from gviz.tui.screens.tutor import TutorScreen

    own = read()
    screen = TutorScreen(timeline, Beginning(title, at=1), glyphs(ascii=ascii), config=own)
    run(ScreenApp(screen, ascii=ascii, theme=_theme(theme, own)))


def _theme(asked: str | None, own: Config) -> str | None:
    """The theme asked for, else the one that the terminal needs, else the user's own, chosen for another terminal."""
    from gviz.tui.themes import for_terminal

    return asked or for_terminal() or own.theme
