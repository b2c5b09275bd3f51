"""The terminal debugger: full screen, or line by line (`gviz.tui.line_mode`), with the same core.

The debugger steps through a recording, forwards and backwards. Over a running program (`gviz.tui.live_session`), the
recording ends where the program is; a step forward from there resumes the program.

Read first: ``cursor.py`` (the position in time, and every way to move it), ``commands/command_table.py`` (every
command, declared once), ``screens/controller.py`` (how the screen runs commands, as a state machine).

The path of a key, ``s``, from the keyboard to the screen:

1. ``terminal_driver.py`` reads the bytes. ``type_ahead.py`` delivers keys one at a time, however fast they come.
2. ``keymaps.py`` names the action of the key, ``travel('step')``. ``screens/debugger_screen.py`` turns it into a
   `Command`. (``language/parser.py`` does this for a typed line.)
3. ``screens/controller.py`` calls the function that ``commands/command_table.py`` declares for the command. The
   function moves the `Cursor` of the `Session` and returns a `CursorStop`: the new position, and the reason for the
   stop.
4. The controller shows the `CursorStop`: ``screens/session_screen.py`` sets the ``moment`` that all panels follow.
5. Each panel in ``widgets/`` gets lines of styled text from its file in ``drawing/``, and paints the changed rows.

Line by line, `line_mode.answers` does steps 3 to 5 and prints the lines of ``drawing/``. So ``commands/``,
``language/`` and ``drawing/`` import no widget: importing Textual takes 0.2 s, which ``gviz show`` and the line-by-line
debugger save.
"""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gviz.system.gc_pause import uncollected

if TYPE_CHECKING:
    from gviz.trace.timeline import Timeline
    from gviz.tui.config import Config
    from gviz.tui.session_options import ExitAction, LiveSessionOptions, SessionOptions, Title


def open_debugger(
    timeline: Timeline,
    options: SessionOptions,
    *,
    plain: bool = False,
    ascii: bool = False,
    theme: str | None = None,
    commands: Iterable[str] | None = None,
) -> int:
    """Open the debugger on a timeline, in full screen if the terminal can show it; return the exit code.

    Without such a terminal the debugger works line by line. It then runs `commands` if they are given, else the lines
    of standard input. The exit code is 2 if a command, or a line from a pipe, was refused. If the program waits for the
    debugger, the exit code is one of `EXIT_CODES`.
    """
    from gviz.tui import terminal
    from gviz.tui.session_options import EXIT_CODES

    if not terminal.why_plain(plain=plain):
        left = debug(timeline, options, ascii=terminal.needs_ascii(ascii=ascii), theme=theme)
        return EXIT_CODES[left]
    from gviz.tui.line_mode import debug as debug_by_line
    from gviz.tui.line_mode import exit_action

    talk = debug_by_line(timeline, commands, sys.stdin, sys.stdout, options)
    if options.waited_for:
        return EXIT_CODES[exit_action(talk, sys.stdin, sys.stdout)]
    return 2 if talk.refused and not terminal.is_terminal(sys.stdin) else 0


def debug(timeline: Timeline, options: SessionOptions, *, ascii: bool = False, theme: str | None = None) -> ExitAction:
    """Open the full-screen debugger, wait until the user leaves, and return what a waiting program does next.

    Raises GvizError (exit code 70) if gviz itself fails.
    """
    with uncollected(lasting=True):
        from gviz.tui.app import DebuggerApp, run  # textual takes 0.19 s to import
        from gviz.tui.config import read

    own = read()
    app = DebuggerApp(timeline, options, ascii=ascii, theme=_theme(theme, own), config=own)
    run(app)
    return app.exit_action


def debug_live(options: LiveSessionOptions, *, ascii: bool = False, theme: str | None = None) -> int:
    """Open the full-screen debugger over a program that it starts and controls.

    Returns the exit code of the program; 0 if the program is still running.
    """
    with uncollected(lasting=True):
        from gviz.tui.app import ScreenApp, run
        from gviz.tui.config import read
        from gviz.tui.glyphs import glyphs
        from gviz.tui.live_session import code_of
        from gviz.tui.screens.live_screen import LiveScreen

    own = read()
    columns, rows = shutil.get_terminal_size()
    screen = LiveScreen(options, glyphs(ascii=ascii), size=(columns, rows), config=own)
    app = ScreenApp(screen, ascii=ascii, theme=_theme(theme, own))
    run(app)
    while screen.restarts:
        with _between_screens():
            screen = screen.next_run((columns, rows))
        app = ScreenApp(screen, ascii=ascii, theme=app.theme)
        run(app)
    return code_of(screen.live.program)


@contextmanager
def _between_screens() -> Iterator[None]:
    """Ignore SIGINT between two screens.

    Nothing reads keys in the meantime, so Ctrl+C is a signal, which would end the debugger instead of pausing the
    program.
    """
    before = signal.signal(signal.SIGINT, lambda number, frame: None)  # not SIG_IGN: the program would inherit that
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def teach(timeline: Timeline, *, title: Title, ascii: bool = False, theme: str | None = None) -> None:
    """Run the guided lesson over a recording; see `gviz.tui.tutorial`."""
    with uncollected(lasting=True):
        from gviz.tui.app import ScreenApp, run
        from gviz.tui.config import read
        from gviz.tui.glyphs import glyphs
        from gviz.tui.screens.tutor_screen import TutorScreen
        from gviz.tui.session_options import SessionOptions

    own = read()
    screen = TutorScreen(timeline, SessionOptions(title, at=1), glyphs(ascii=ascii), config=own)
    run(ScreenApp(screen, ascii=ascii, theme=_theme(theme, own)))


def _theme(theme: str | None, own: Config) -> str | None:
    """Return the theme to use: the requested one, else the one that the terminal needs, else the configured one.

    The user may have configured a theme for another terminal.
    """
    from gviz.tui.themes import for_terminal

    return theme or for_terminal() or own.theme
