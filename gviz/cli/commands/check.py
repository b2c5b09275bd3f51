"""``gviz check``: what is wrong in a recording, for people and for build machines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gviz.cli import streams
from gviz.cli.program import SCRIPT_CONTEXT, Program, takes_program
from gviz.cli.progress import told
from gviz.cli.quietly import recorded
from gviz.errors import GvizError, did_you_mean

if TYPE_CHECKING:
    from gviz.explain.check import Checked
    from gviz.explain.kind import Kind
    from gviz.trace.timeline import Timeline

_FOUND = 1


def _list(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from gviz.explain.table import findable

        for kind in findable():
            click.echo(f"{kind.name:<22} {kind.severity:<8} {kind.meaning}")
        context.exit()


@click.command("check", context_settings=SCRIPT_CONTEXT)
@click.option("--only", metavar="KINDS", help="Look for these kinds alone: nan-born,cut.")
@click.option("--ignore", metavar="KINDS", help="Do not look for these kinds.")
@click.option("--fail-on", type=click.Choice(["error", "warning", "suspicion"]), default="warning",
              help="The least grave level that makes the exit code 1 (warning).")  # fmt: skip
@click.option("--format", "kind", type=click.Choice(["text", "json", "sarif"]), default="text", help="How to print it.")
@click.option("--list", is_flag=True, is_eager=True, expose_value=False, callback=_list, help="List the kinds.")
@click.option("--all", "whole", is_flag=True, help="Print every line of a long finding.")
@takes_program
def command(program: Program, only: str | None, ignore: str | None, fail_on: str, kind: str, *, whole: bool) -> int:
    """Look for what is wrong in a trace, or in a script that is run for it: errors, lost gradients, nan, loops.

    What may well be meant so is called a suspicion. Exit code 1 if something at least as grave as --fail-on was found,
    0 if not. What the program prints goes to standard error. Options of gviz stand before SCRIPT.
    """
    from gviz.explain.check import LEVELS, checking

    kinds = _kinds(only, ignore)
    with recorded(program) as timeline:
        found = told(checking(timeline, kinds))
        if kind == "text":
            print_text(found, len(timeline), whole=whole)
            if found:
                click.echo(how_to_open(program, found[0].finding.event))
        else:
            click.echo(_as_data(kind, found, len(timeline)))
        _say_not_seen(timeline)
    grave = LEVELS[: LEVELS.index(fail_on) + 1]
    return _FOUND if any(one.level in grave for one in found) else 0


def _kinds(only: str | None, ignore: str | None) -> list[Kind]:
    from gviz.explain.table import findable

    known = {kind.name: kind for kind in findable()}
    named = [_names(text, known) for text in (only, ignore)]
    return [kind for name, kind in known.items() if (only is None or name in named[0]) and name not in named[1]]


def _names(text: str | None, known: dict[str, Kind]) -> set[str]:
    names = {name.strip() for name in text.split(",")} - {""} if text else set()
    for name in sorted(names - known.keys()):
        hint = did_you_mean(name, known, "gviz check --list lists the kinds")
        raise GvizError(f"there is no kind of finding {name}", hint=hint, exit_code=2)
    return names


def print_text(found: list[Checked], events: int, *, whole: bool) -> None:
    """Print findings for people, of a long one its beginning or the `whole`, and how many there are."""
    from gviz.explain.finding import brief, lines

    for one in found:
        click.echo(one.heading)
        _, *rest = lines(one.finding) if whole else brief(one.finding)
        for depth, text, event in rest:
            click.echo(f"{'  ' * depth}{text}{f'  [event {event}]' if event else ''}")
    click.echo(_summary(found, events))


def how_to_open(program: Program, event: int) -> str:
    """The command that opens the recording at an event of the gravest finding; first how to keep it if it is not."""
    from gviz.cli import shell
    from gviz.cli.program import is_trace, to_run

    script = Path(program.argv[0])
    trace = program.output if program.as_module or not is_trace(script) else script
    if trace is not None:
        return f"to see it happen: gviz open {shell.word(trace)}{f' --at {event}' if event else ''}"
    return f"to see it happen: {to_run(program)}{f', then goto {event}' if event else ''}"


def _say_not_seen(timeline: Timeline) -> None:
    """Say on stderr what is not in the recording, so that nobody takes its absence for a finding."""
    from gviz.events import NOT_SEEN, NodeCreated, Warned
    from gviz.explain.findings.wrong_rule import untried
    from gviz.plain_text import shown

    for _, event in timeline.select([Warned]):
        if event.category == NOT_SEEN:
            streams.say(f"not seen: {shown(event.message)}")
    for name in untried(timeline):
        streams.say(
            f"not seen: whether {shown(name)}.backward is right: what it was given was not stored (--values all)"
        )
    made = (event for _, event in timeline.select([NodeCreated]) if isinstance(event, NodeCreated))
    values = (output.value for event in made for output in event.outputs if output.value is not None)
    if timeline.nodes and not any(value.data is not None or value.stats or value.blob for value in values):
        streams.say("not seen: numbers, of which none was recorded (--values none?): a nan or infinity is not found")


def _summary(found: list[Checked], events: int) -> str:
    levels = [one.level for one in found]
    counts = [(levels.count(level), level) for level in dict.fromkeys(levels)]
    said = ", ".join(f"{count} {level}{'s' * (count != 1)}" for count, level in counts)
    return said or f"nothing found in {events:,} event{'s' * (events != 1)}"


def _as_data(kind: str, found: list[Checked], events: int) -> str:
    from gviz.cli import json_form, sarif

    return sarif.text(found) if kind == "sarif" else json_form.text(events=events, findings=found)
