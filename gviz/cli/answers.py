"""What `explain` and `why` have in common: a place is asked, and the answer printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gviz.errors import GvizError

if TYPE_CHECKING:
    from gviz.explain.finding import Finding
    from gviz.trace.timeline import Timeline


def answer(timeline: Timeline, place: str | None, at: str | None) -> list[Finding]:
    """Why a place is as it is at a moment (the end without one); without a place why the program failed.

    A program that did not fail is checked instead. ``alive`` asks which graphs are.
    """
    if not len(timeline.nodes):
        raise GvizError("this recording holds no nodes", hint="it records operations on tensors", exit_code=2)
    if place is None or place == "error":
        return _failure(timeline, asked=place is not None)
    from gviz.tui.cursor import Cursor
    from gviz.tui.looking import explanation

    cursor = Cursor(timeline, 0)
    cursor.position = cursor.event_at(at) if at else len(timeline)
    return [explanation(cursor, place)]


def say(found: list[Finding], kind: str) -> None:
    """Print findings as text, each line with its event, or as JSON."""
    from gviz.cli import json_form
    from gviz.explain.finding import lines

    if kind == "json":
        click.echo(json_form.text(finding=found[0] if found else None, findings=found))
        return
    for one in found:
        for depth, text, event in lines(one):
            click.echo(f"{'  ' * depth}{text}{f'  [event {event}]' if event else ''}")
    if not found:
        click.echo("nothing is wrong with this recording, as far as it tells; ask about a place, such as w.grad")


def _failure(timeline: Timeline, *, asked: bool) -> list[Finding]:
    from gviz.events import BackwardFinished
    from gviz.explain.check import check
    from gviz.explain.trouble import troubles
    from gviz.explain.why import why_failed

    found = [why_failed(trouble) for trouble in troubles(timeline, timeline.select([BackwardFinished]))]
    if asked and not found:
        raise GvizError("no error in this recording", exit_code=2)
    return found[-1:] or [one.finding for one in check(timeline)]
