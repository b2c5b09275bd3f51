"""``gviz check``: findings in a recording, for people and for CI."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gviz.cli import argument_order, findings, shell_quoting, streams
from gviz.cli.program_run import SCRIPT_CONTEXT, Program, command_line, is_trace, takes_program
from gviz.cli.progress import with_progress
from gviz.cli.recording_input import recorded
from gviz.errors import GvizError, did_you_mean

if TYPE_CHECKING:
    from gviz.cli.recording_input import Recordings
    from gviz.explain.check import RankFinding
    from gviz.explain.finding import Checked
    from gviz.explain.finding_kinds import Kind
    from gviz.trace.timeline import Timeline

_EXIT_FINDINGS = 1


def _chosen(only: str | None, ignore: str | None) -> Iterator[tuple[str, str]]:
    """Yield the options that choose kinds, with their values."""
    if only:
        yield "--only", only
    if ignore:
        yield "--ignore", ignore


def _without_lost_flags(program: Program) -> Program:
    """Return a program without the flags after its script that were meant for gviz."""
    if program.as_module or is_trace(Path(program.argv[0])):
        return program
    script, *arguments = program.argv
    lost = argument_order.lost_flags(program.argv)
    return replace(program, argv=(script, *(one for one in arguments if one not in lost)))


class _LevelName(click.Choice[str]):
    """The name of a level; accepts the old word for notes."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the current name of the level."""
        return super().convert("note" if value == "suspicion" else value, param, ctx)


def _list(context: click.Context, parameter: click.Parameter, is_on: bool) -> None:
    if is_on:
        from gviz.explain.finding_kinds import findable

        for kind in findable():
            click.echo(f"{kind.name:<22} {kind.severity:<9} {kind.meaning}")
        context.exit()


@click.command("check", context_settings=SCRIPT_CONTEXT)
@click.option("--only", metavar="KINDS", help="Look only for these kinds: nan-born,cut.")
@click.option("--ignore", metavar="KINDS", help="Skip these kinds.")
@click.option("--fail-on", type=_LevelName(["error", "warning", "note"]), default="warning",
              help="The lowest level that makes the exit code 1 (default: warning).")  # fmt: skip
@click.option("--format", type=click.Choice(["text", "json", "sarif"]), default="text", help="Output format.")
@click.option("--list", is_flag=True, is_eager=True, expose_value=False, callback=_list, help="List the kinds.")
@click.option("-v", "--verbose", "--all", "whole", is_flag=True, help="Print every line of a finding, and its edit.")
@takes_program
def command(program: Program, only: str | None, ignore: str | None, fail_on: str, format: str, *, whole: bool) -> int:
    """Find what is wrong in a script or trace.

    It looks for errors, lost gradients, nan and mistakes in training loops. What may be intended is a note. The
    exit code is 1 if there is a finding of the level --fail-on or above, else 0. The output of the program goes to
    standard error. Options of gviz come before SCRIPT. In a folder with the traces of ranks each one is checked;
    where they first differ is a warning.
    """
    from gviz.explain.finding import LEVELS

    kinds, grave = _kinds(only, ignore), LEVELS[: LEVELS.index(fail_on) + 1]
    with recorded(program) as inputs:
        rank_findings = _all_findings(inputs, kinds)
        fails = any(one.checked.level in grave for one in rank_findings)
        if format == "text":
            meant = _without_lost_flags(program)
            chosen = [f"{name} {shell_quoting.quoted(names)}" for name, names in _chosen(only, ignore)]
            in_full = "" if whole else command_line(meant, ("check", "-v", *chosen))
            findings.print_text(inputs, rank_findings, len(kinds), in_full=in_full, fails=fails)
            if rank_findings and any(timeline.nodes for timeline in inputs.timelines):
                first, rank = rank_findings[0].checked.finding, inputs.paths[rank_findings[0].ranks[0]]
                facts = [first.event, *[part.event for part in first.parts[:1]]]
                event = facts[-1] if first.kind == "cut" and facts[-1] else max(facts)  # both facts have happened there
                click.echo(findings.how_to_open(meant, event, rank if inputs.in_folder else None))
            elif not rank_findings and not inputs.in_folder and (hint := findings.how_to_read(meant)):
                click.echo(hint)
        else:
            click.echo(findings.as_data(format, inputs, rank_findings))
        _show_not_seen(inputs)
    return _EXIT_FINDINGS if fails else 0


def _all_findings(inputs: Recordings, kinds: list[Kind]) -> list[RankFinding]:
    """Return the findings of each rank, and where ranks first differ."""
    from gviz.explain.check import check_ranks, checking

    each = [with_progress(checking(timeline, kinds)) for timeline in inputs.timelines]
    if any(kind.name == "ranks-part" for kind in kinds):
        for rank, parted in _parted(inputs):
            each[rank].append(parted)
    return check_ranks(each)


def _parted(inputs: Recordings) -> Iterator[tuple[int, Checked]]:
    """Yield the ranks that differ from another one, each with its finding."""
    from gviz.cli.rank_report import compared
    from gviz.explain.finding import Checked
    from gviz.render.ranks_text import finding

    for each in compared(inputs):
        if each.parting is not None:
            one = finding(each.parting, inputs.name(each.other), inputs.name(each.rank))
            yield each.rank, Checked(one, "note" if one.suspected else "warning")


def _kinds(only: str | None, ignore: str | None) -> list[Kind]:
    from gviz.explain.finding_kinds import findable

    known = {kind.name: kind for kind in findable()}
    named = [_names(text, known) for text in (only, ignore)]
    kinds = [kind for name, kind in known.items() if (only is None or name in named[0]) and name not in named[1]]
    if not kinds:
        options = "--only names no kind" if not named[0] else "--ignore names every kind that is left"
        raise GvizError(f"nothing to look for: {options}", hint="gviz check --list lists the kinds", exit_code=2)
    return kinds


def _names(text: str | None, known: dict[str, Kind]) -> set[str]:
    names = {name.strip() for name in text.split(",")} - {""} if text else set()
    for name in sorted(names - known.keys()):
        hint = did_you_mean(name, known, "gviz check --list lists the kinds")
        raise GvizError(f"there is no kind of finding {name}", hint=hint, exit_code=2)
    return names


def _show_not_seen(inputs: Recordings) -> None:
    """Report on stderr what the recordings cannot show, so that a missing finding is not taken for a healthy
    program.
    """
    for line in dict.fromkeys(line for timeline in inputs.timelines for line in _not_seen(timeline)):
        streams.show(f"not seen: {line}")


def _not_seen(timeline: Timeline) -> Iterator[str]:
    from gviz.events import NOT_SEEN, NodeCreated, Warned
    from gviz.explain.findings.custom_functions.custom_backward_rule import untried_functions
    from gviz.values.plain_text import shown

    if timeline.missing:
        yield f"the rest of the run: {timeline.missing}"
    if not timeline.finished:
        yield f"what came after event {len(timeline):,}: the recording broke off there, or is still running"
    for _, event in timeline.select([Warned]):
        if event.category == NOT_SEEN:
            yield shown(event.message)
    for name, why in untried_functions(timeline).items():
        yield f"whether {shown(name)}.backward is right: {shown(why)}"
    nodes = (event for _, event in timeline.select([NodeCreated]) if isinstance(event, NodeCreated))
    values = (output.value for event in nodes for output in event.outputs if output.value is not None)
    if timeline.nodes and not any(value.data is not None or value.stats or value.blob for value in values):
        yield "numbers: none were recorded (--values none?), so a nan or infinity is not found"
