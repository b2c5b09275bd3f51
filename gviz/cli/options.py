"""Options that commands share: the global ones, ``--at MOMENT``, and how the debugger starts (``--break``, ``-c``).

Options of a recording are in `recording_options.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import click

from gviz.query_syntax.moment import A_MOMENT
from gviz.tui.terminal import asks_for_lines

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(slots=True)
class GlobalOptions:
    """The global options. Filled while the command line is parsed, and only read afterwards."""

    plain: bool = False
    ascii: bool = False
    debug: bool = False
    theme: str | None = None

    @classmethod
    def from_environment(cls) -> GlobalOptions:
        """Return the settings before the first option."""
        return cls(plain=asks_for_lines())


def _store(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value and parameter.name:
        setattr(context.find_object(GlobalOptions), parameter.name, value)


def _option(*names: str, **attrs: Any) -> Callable[[_Command], _Command]:
    return click.option(*names, callback=_store, expose_value=False, **attrs)


def display_options(command: _Command) -> _Command:
    """Add ``--plain``, ``--ascii`` and ``--theme``, which end up in the `GlobalOptions`."""
    for option in (
        _option("--theme", metavar="NAME", help="Colours of the debugger: gviz-dark, gviz-light, gviz-contrast, …"),
        _option("--ascii", is_flag=True, help="Draw with ASCII characters only."),
        _option("--plain", is_flag=True, help="Work line by line, for pipes and screen readers."),
    ):
        command = option(command)
    return command


def debug_option(command: _Command) -> _Command:
    """Add ``--debug``, which ends up in the `GlobalOptions`."""
    return _option("--debug", is_flag=True, help="Show a traceback if gviz itself fails.")(command)


def at_option(purpose: str, otherwise: str = "end") -> Callable[[Any], Any]:
    """Return the option ``--at MOMENT`` for a purpose; `otherwise` is the moment without it."""
    return click.option("--at", metavar="MOMENT", help=f"{purpose}: {A_MOMENT} (default: {otherwise}).")


@dataclass(frozen=True, slots=True)
class StartCommands:
    """How the debugger starts: breakpoints and commands, both as lines of its command language."""

    breaks: tuple[str, ...]
    commands: tuple[str, ...]

    @property
    def over_a_recording(self) -> tuple[str, ...]:
        """All lines for a recording, which opens at the first stop."""
        run_there = ("goto start", "continue") if self.breaks else ()
        return (*self.breaks, *run_there, *self.commands)


_OPTIONS = (
    click.option("--break", "breaks", multiple=True, metavar="PLACE",
                 help="Stop at x, #4, demo.py:4, mul, net.* or 'x if value > 3', and open at the first stop."),
    click.option("--on", "events", multiple=True, metavar="EVENT",
                 help="Stop on forward, backward, receive, accumulate, free, inplace, view, optimizer, nan, inf "
                 "or error."),
    click.option("-x", "scripts", multiple=True, type=click.Path(dir_okay=False), metavar="FILE",
                 help="Start with the debugger commands in this file."),
    click.option("-c", "commands", multiple=True, metavar="COMMAND", help="Start with this debugger command."),
)  # fmt: skip


def takes_opening(command: _Command) -> Callable[..., Any]:
    """Add the options above to a command, as one argument `opening`."""

    @wraps(command)
    def with_opening(
        *arguments: Any,
        breaks: tuple[str, ...],
        events: tuple[str, ...],
        scripts: tuple[str, ...],
        commands: tuple[str, ...],
        **options: Any,
    ) -> Any:
        commands = (*(f"source {path}" for path in scripts), *commands)
        return command(*arguments, opening=_opening(breaks, events, commands), **options)

    for option in reversed(_OPTIONS):
        with_opening = option(with_opening)
    return with_opening


def _opening(breaks: tuple[str, ...], events: tuple[str, ...], commands: tuple[str, ...]) -> StartCommands:
    from gviz.query_syntax.stop_condition import stop

    stops = [*breaks, *(f"on {event}" for event in events)]
    for text in stops:
        stop(text)  # what is no stop is wrong usage, before any program runs
    return StartCommands(tuple(f"break {text}" for text in stops), commands)
