"""What `explain` and `why` have in common: a place is asked, and the answer printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from gviz.explain.finding import Finding
    from gviz.trace.timeline import Timeline


def answer(timeline: Timeline, place: str | None, at: str | None) -> list[Finding]:
    """What there is to say of a place at a moment, both as people write them; the end without a moment."""
    from gviz.api.moments import moment_of
    from gviz.explain.asked import answers

    return answers(timeline, place, moment_of(timeline, at) if at else None)


def say(found: list[Finding], kind: str, *, whole: bool) -> None:
    """Print findings as text, each line with its event; without `whole` the first few. JSON has everything."""
    from gviz.cli import json_form
    from gviz.explain.finding import brief, lines

    if kind == "json":
        click.echo(json_form.text(finding=found[0] if found else None, findings=found))
        return
    for one in found:
        for depth, text, event in lines(one) if whole else brief(one):
            click.echo(f"{'  ' * depth}{text}{f'  [event {event}]' if event else ''}")
    if not found:
        click.echo("nothing is wrong with this recording, as far as it tells; ask about a place, such as w.grad")
