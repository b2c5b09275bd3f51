"""The terminal debugger as a Textual application: themes, the palette, and internal errors of gviz."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from textual import events
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.binding import BindingType
from textual.command import CommandPalette, Provider
from textual.driver import Driver
from textual.screen import Screen
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.worker import WorkerFailed

from gviz.system.crash import EXIT_CODE, crash
from gviz.system.gc_pause import Rest
from gviz.trace.timeline import Timeline
from gviz.tui.config import Config
from gviz.tui.glyphs import glyphs
from gviz.tui.screens.debugger_screen import DebuggerScreen, PausedProgramScreen
from gviz.tui.screens.key_and_row_actions import APP_BINDINGS
from gviz.tui.screens.overlay_pages import Page
from gviz.tui.screens.palette import Palette, PalettePage
from gviz.tui.screens.session_screen import SessionScreen
from gviz.tui.session_options import ExitAction, SessionOptions
from gviz.tui.styled_lines import STYLES
from gviz.tui.terminal import exists, guarded_terminal, with_echo
from gviz.tui.themes import THEMES, colour_warning, named, semantic_colours, starting_theme
from gviz.tui.type_ahead import ORDERED, TypeAhead
from gviz.tui.widgets import graph_canvas

_SECONDS_BETWEEN_LOOKS = 1.0


class WholeCells(ScrollBarRender):
    """A scrollbar made of blanks in two colours, so that its ends need no special characters."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "]
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "]


class ScreenApp(App[None]):
    """One debugger screen in a terminal."""

    CSS_PATH = "app.tcss"
    TITLE = "gviz"
    BINDINGS: ClassVar[list[BindingType]] = APP_BINDINGS
    ENABLE_COMMAND_PALETTE = False  # gviz binds a key of its own, in every keymap
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {Palette}
    """Replaces Textual's provider: its Quit would not ask about the program, its Keys and Maximize show no way back."""
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"line--{style}" for style in STYLES} | {
        f"graph--{style}" for style in graph_canvas.STYLES
    }
    """The styles of text, kept once for all panels: otherwise Textual would compute all of them for each panel."""

    def __init__(self, start: DebuggerScreen, *, ascii: bool, theme: str | None) -> None:
        if not os.environ.get("NO_COLOR", "set"):
            del os.environ["NO_COLOR"]  # an empty value means unset, but Textual obeys it
        without_colour = bool(os.environ.get("NO_COLOR"))
        super().__init__(ansi_color=True if without_colour else None)  # so that no colour codes are sent, not even grey
        for known in THEMES:
            self.register_theme(known)
        self.theme = named(starting_theme(theme), self.available_themes)
        ScrollBar.renderer = WholeCells
        self.set_class(ascii, "-ascii")
        self._start = start
        self._leaving = self._suspended = False
        self._type_ahead = TypeAhead(self, super().on_event)
        start.key_repeats = self._type_ahead.repeats
        self.failure: BaseException | None = None

    async def on_event(self, event: events.Event) -> None:
        """Deliver keys, clicks and pastes one after the other."""
        if isinstance(event, ORDERED) and not event.is_forwarded:
            await self._type_ahead.take(event)
        else:
            await super().on_event(event)

    async def _check_bindings(self, key: str, priority: bool = False) -> bool:
        """Run the binding of a key, unless the application is exiting and has no screen.

        A key without a binding is answered, too: a user who mistypes a key would wait for its effect.
        """
        if not self.screen_stack:
            return False
        is_bound = await super()._check_bindings(key, priority)
        if not is_bound and not priority and self.screen_stack and isinstance(self.screen, SessionScreen | Page):
            self.screen.answer_unbound_key(key)
        return is_bound

    @property
    def typed_ahead(self) -> bool:
        """Whether keys are waiting, or the last one is still being handled."""
        return self._type_ahead.is_busy

    def on_mount(self) -> None:
        """Subscribe to signals and start timers, once the application has the terminal."""
        remark = colour_warning(self.current_theme)
        if remark and not self.is_headless:
            self._start.show_remark(remark)
        with_echo(getattr(self._driver, "attrs_before", None))
        self.app_resume_signal.subscribe(self, lambda _: self._redraw_after_resume())
        self._gc_pause = Rest()
        self.set_interval(_SECONDS_BETWEEN_LOOKS, self._gc_pause.look)
        if exists() and os.name == "posix":
            self.set_interval(_SECONDS_BETWEEN_LOOKS, self._leave_with_terminal)

    def on_unmount(self) -> None:
        """Restore the settings of the program's garbage collector."""
        self._gc_pause.over()

    def _redraw_after_resume(self) -> None:
        """Redraw everything after ``fg``: other programs have written to the terminal in the meantime."""
        self.refresh(layout=True)
        if not self._suspended:
            self._start.show_remark("back from the shell")
        self._suspended = False

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Lend the terminal to an editor or a Python shell, which shows a message of its own afterwards."""
        self._suspended = True
        with super().suspend():
            yield

    def _leave_with_terminal(self) -> None:
        """Raise SIGHUP when the terminal is gone.

        Another program, such as ``make``, may have kept the signal from this process.
        """
        if not exists():
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            signal.raise_signal(signal.SIGHUP)  # Textual would wait for ever to restore the terminal

    def get_driver_class(self) -> type[Driver]:
        """Return the driver of this platform; on Linux, one that ignores bytes that are not text."""
        usual = super().get_driver_class()
        if usual.__module__ != "textual.drivers.linux_driver":
            return usual
        from gviz.tui.terminal_driver import ForgivingDriver  # it imports modules of POSIX only

        return ForgivingDriver

    def get_default_screen(self) -> Screen[None]:
        """Return the screen of the debugger."""
        return self._start

    def exit(self, *result: Any, **how: Any) -> None:
        """Exit, and open no more pages."""
        self._leaving = True
        super().exit(*result, **how)

    def push_screen(self, *page: Any, **how: Any) -> Any:
        """Cover the debugger with a page, unless a key pressed just before has begun to exit."""
        return AwaitComplete() if self._leaving else super().push_screen(*page, **how)

    def pop_screen(self) -> AwaitComplete:
        """Close the topmost screen, if it covers another one.

        The second of two clicks that close the palette would otherwise close the debugger.
        """
        return super().pop_screen() if len(self.screen_stack) > 1 else AwaitComplete()

    def action_command_palette(self) -> None:
        """Open the palette.

        It closes any page over the panels first, as other keys do, so that the result of the chosen entry is visible.
        """
        if isinstance(self.screen, CommandPalette) or self._start.too_small:
            return
        if self.screen is not self._start:
            self.screen.dismiss(None)
        self.push_screen(PalettePage(placeholder="Search commands; Esc closes"))

    def action_help_quit(self) -> None:
        """Suppress Textual's notice, which would cover the panels. Ctrl+C does nothing over a page."""

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return the colours of values, gradients and marks, for themes that do not define them."""
        theme = self.current_theme
        return dict(semantic_colours(dark=theme.dark, ansi=theme.ansi))

    def _fatal_error(self) -> None:
        """Keep the error for the report. Textual would print its locals, which contain the user's values."""
        error = self._exception
        self.failure = error.error if isinstance(error, WorkerFailed) else error  # WorkerFailed has no traceback
        self._return_code = EXIT_CODE
        self._close_messages_no_wait()


class DebuggerApp(ScreenApp):
    """The debugger over one recording; the recorded program may be waiting for it."""

    def __init__(
        self,
        timeline: Timeline,
        options: SessionOptions,
        *,
        ascii: bool,
        theme: str | None,
        config: Config | None = None,
    ) -> None:
        kind = PausedProgramScreen if options.waited_for else DebuggerScreen
        super().__init__(kind(timeline, options, glyphs(ascii=ascii), config=config), ascii=ascii, theme=theme)

    @property
    def exit_action(self) -> ExitAction:
        """What the waiting program does next."""
        return self._start.exit_action


def run(app: ScreenApp) -> None:
    """Show an application until the user leaves. Raises GvizError (exit code 70) if gviz itself fails."""
    with guarded_terminal():
        app.run()
    if app.failure is not None:
        raise crash(app.failure) from app.failure
