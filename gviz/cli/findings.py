"""Prints findings for people and for CI: those of ``gviz check``, and the answers of `explain` and `why`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gviz.cli import recordings
from gviz.values.plain_text import file_line, shown

if TYPE_CHECKING:
    from gviz.cli.program import Program
    from gviz.cli.recordings import Recordings
    from gviz.explain.check import RankFinding
    from gviz.explain.finding import Finding
    from gviz.trace.timeline import Timeline


def print_text(given: Recordings, found: list[RankFinding], kinds: int, *, whole: bool) -> None:
    """Print findings for people, long ones shortened unless `whole`, and count them and the kinds."""
    from gviz.explain.finding import brief, edit_of, lines
    from gviz.explain.program_text import underlined

    timelines = list(given.timelines)
    for remark in given.remarks:
        click.echo(remark)
    for one in found:
        click.echo(f"{one.checked.heading}{_whose(given, one)}")
        finding = one.checked.finding
        for row in underlined(timelines[one.ranks[0]], finding.at):
            click.echo(f"    {row}")
        _, *rest = lines(finding) if whole else brief(finding)
        for depth, text, event in rest:
            click.echo(f"{'  ' * depth}{text}{f'  [event {event}]' if event else ''}")
        if whole and (edit := edit_of(finding)) is not None:
            click.echo(f"  change {file_line(edit.path, edit.line)}:")
            for row in edit.diff():
                click.echo(f"    {shown(row)}")
    click.echo(_summary(given, found, kinds))


def _whose(given: Recordings, one: RankFinding) -> str:
    """Return the ranks that have a finding, and the one quoted if they differ in its details."""
    if not given.in_folder:
        return ""
    told_of = "" if one.is_alike else f", told of {given.name(one.ranks[0])}"
    return f" on {given.named(one.ranks)}{told_of}"


def how_to_open(program: Program, event: int, rank: Path | None = None) -> str:
    """Return the command that opens the recording at the event of a finding; with several ranks, at that of a `rank`.

    If the values were not kept, the command that keeps them comes first.
    """
    from gviz.cli import shell_quoting
    from gviz.cli.program import is_trace, to_run
    from gviz.program.rank_names import whole

    script, at = Path(program.argv[0]), f" --at {event}" if event else ""
    trace = program.output and whole(program.output) if program.as_module or not is_trace(script) else script
    if trace is not None:
        return f"to see it happen: gviz open {shell_quoting.word((event and rank) or trace)}{at}"
    if rank is not None:
        kept = f"ranks/{rank.name if event else ''}"
        return f"to see it happen: {to_run(program, ('record', '-o', 'ranks/'))}, then gviz open {kept}{at}"
    return f"to see it happen: {to_run(program)}{f', then goto {event}' if event else ''}"


def _summary(given: Recordings, found: list[RankFinding], kinds: int) -> str:
    from gviz.explain.check import nothing_found

    levels = [one.checked.level for one in found]
    counts = [(levels.count(level), level) for level in dict.fromkeys(levels)]
    said = ", ".join(f"{count} {level}{'s' * (count != 1)}" for count, level in counts)
    of = f" of {len(given.ranks)} ranks" if len(given.ranks) > 1 else ""
    return said or nothing_found(list(given.timelines), kinds, of)


def as_data(kind: str, given: Recordings, found: list[RankFinding]) -> str:
    """Return the findings as JSON or SARIF."""
    from gviz.cli import json_form, sarif

    if kind == "sarif":
        return sarif.text(found, partial(_whose, given))
    checked = [one.checked for one in found]
    if not given.in_folder:
        return json_form.text(events=sum(map(len, given.timelines)), findings=checked)
    files = [path.name for path in given.paths]
    ranks = [{"file": file, "events": len(timeline)} for file, timeline in zip(files, given.timelines, strict=True)]
    findings = [{**json_form.form(one.checked), "ranks": [files[rank] for rank in one.ranks]} for one in found]
    return json_form.text(ranks=ranks, remarks=given.remarks, findings=findings)


def answer(timeline: Timeline, place: str | None, at: str | None) -> list[Finding]:
    """Return the findings that explain a place at a moment, both as people write them; without a moment, at the end."""
    from gviz.api.moment_argument import moment_of
    from gviz.explain.check import answers

    moment = moment_of(timeline, at) if at else None
    found = answers(timeline, place, moment)
    return [*found, *_wrong_on_the_way(timeline, found, len(timeline) if moment is None else moment)]


def _wrong_on_the_way(timeline: Timeline, found: list[Finding], n: int) -> Iterator[Finding]:
    """Return wrong backward rules of the program's own functions that the explained gradient passed through."""
    from gviz.explain.findings.custom_function import wrong_rules_behind

    for node in dict.fromkeys(one.node for one in found if one.kind == "gradient"):
        yield from wrong_rules_behind(timeline, node, n)


def answer_lines(found: list[Finding], *, whole: bool) -> Iterator[str]:
    """Return findings as text, each line with its event; without `whole` the first lines of each."""
    from gviz.explain.finding import brief, lines

    for one in found:
        for depth, text, event in lines(one) if whole else brief(one):
            yield f"{'  ' * depth}{text}{f'  [event {event}]' if event else ''}"
    if not found:
        yield "nothing is wrong with this recording, as far as it tells; ask about a place, such as w.grad"


def print_answer(given: Recordings, place: str | None, at: str | None, kind: str, *, whole: bool) -> None:
    """Print the explanation of a place, as text or as JSON, which is complete."""

    def data(timeline: Timeline) -> dict[str, Any]:
        found = answer(timeline, place, at)
        return {"finding": found[0] if found else None, "findings": found}

    recordings.say(given, kind, lambda timeline: answer_lines(answer(timeline, place, at), whole=whole), data)
