"""What the global options say; every command that shows something takes them too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from gviz.tui.terminal import asks_for_lines

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(slots=True)
class GlobalOptions:
    """Filled while the command line is read, before any command runs; then only read."""

    plain: bool = False
    ascii: bool = False
    debug: bool = False
    theme: str | None = None

    @classmethod
    def from_environment(cls) -> GlobalOptions:
        """The settings before the first option."""
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
        _option("--plain", is_flag=True, help="Line by line instead of full screen (pipes, screen readers)."),
    ):
        command = option(command)
    return command


def debug_option(command: _Command) -> _Command:
    """Add ``--debug``, which ends up in the `GlobalOptions`."""
    return _option("--debug", is_flag=True, help="Show the traceback of an error of gviz.")(command)
