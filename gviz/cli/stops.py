"""``--break``, ``--on`` and ``-c``: what the debugger is told before anybody types."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--break", "breaks", multiple=True, metavar="PLACE",
                 help="Stop at x, #4, demo.py:4, Mul, net.*, also 'x if value > 3'; open at the first stop."),
    click.option("--on", "events", multiple=True, metavar="EVENT",
                 help="Stop on forward, backward, accumulate, free, inplace, view, nan, inf or error."),
    click.option("-c", "commands", multiple=True, metavar="COMMAND", help="Carry out a command of the debugger first."),
)  # fmt: skip


def takes_opening(command: _Command) -> Callable[..., Any]:
    """Give a command the options above, all as one `opening`: lines of the debugger's own language."""

    @wraps(command)
    def with_opening(
        *arguments: Any, breaks: tuple[str, ...], events: tuple[str, ...], commands: tuple[str, ...], **options: Any
    ) -> Any:
        return command(*arguments, opening=_lines(breaks, events, commands), **options)

    for option in reversed(_OPTIONS):
        with_opening = option(with_opening)
    return with_opening


def _lines(breaks: tuple[str, ...], events: tuple[str, ...], commands: tuple[str, ...]) -> tuple[str, ...]:
    from gviz.where import stop

    stops = [*breaks, *(f"on {event}" for event in events)]
    for text in stops:
        stop(text)  # what is no stop is wrong usage, before any program runs
    run_there = ("goto start", "continue") if stops else ()
    return (*(f"break {text}" for text in stops), *run_there, *commands)
