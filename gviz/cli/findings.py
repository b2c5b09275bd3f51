"""Prints findings for people and for CI: those of ``gviz check``, and the answers of `explain` and `why`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gviz.cli import recording_input, streams
from gviz.values.plain_text import file_line, shown

if TYPE_CHECKING:
    from gviz.cli.program_run import Program
    from gviz.cli.recording_input import Recordings
    from gviz.explain.check import RankFinding
    from gviz.explain.finding import Finding
    from gviz.trace.timeline import Timeline


def print_text(inputs: Recordings, findings: list[RankFinding], kinds: int, *, in_full: str, fails: bool) -> None:
    """Print findings for people, and count them and the kinds.

    Long ones are shortened if there is a command that prints them `in_full`, which is then shown.
    If none is grave enough for the check to fail, the line with the counts names the option that decides it.
    """
    from gviz.explain.finding import edit_of, lines, short_lines
    from gviz.explain.program_text import underlined

    timelines, whole = list(inputs.timelines), not in_full
    for remark in inputs.remarks:
        click.echo(remark)
    for one in findings:
        click.echo(f"{one.checked.heading}{_whose(inputs, one)}")
        finding = one.checked.finding
        for row in underlined(timelines[one.ranks[0]], finding.at):
            click.echo(f"    {row}")
        _, *rest = lines(finding) if whole else short_lines(finding)
        for depth, text, event in rest:
            click.echo(f"{'  ' * depth}{text}{f'  [event {event}]' if event else ''}")
        if whole and (edit := edit_of(finding)) is not None:
            click.echo(f"  change {file_line(edit.path, edit.line)}:")
            for row in edit.diff():
                click.echo(f"    {shown(row)}")
    if not whole and (further := _further(findings, in_full)):
        click.echo(further)
    lenient = (
        f"; the exit code is 0 (--fail-on {findings[0].checked.level} makes it 1)" if findings and not fails else ""
    )
    click.echo(f"{_summary(inputs, findings, kinds)}{lenient}")


def _further(findings: list[RankFinding], in_full: str) -> str:
    """Return the command that prints what is left out; empty if nothing is."""
    from gviz.explain.finding import edit_of, left_out

    each = [one.checked.finding for one in findings]
    left, edits = left_out(each), sum(edit_of(one) is not None for one in each)
    more = [f"{left} more line{'s' * (left != 1)}"] * bool(left)
    more += [f"{edits} fix{'es' * (edits != 1)} as an edit"] * bool(edits)
    return f"{in_full} prints {' and '.join(more)}" if more else ""


def _whose(inputs: Recordings, one: RankFinding) -> str:
    """Return the ranks that have a finding, and the one quoted if they differ in its details."""
    if not inputs.in_folder:
        return ""
    example = "" if one.is_alike else f", shown for {inputs.name(one.ranks[0])}"
    return f" on {inputs.named(one.ranks)}{example}"


def how_to_open(program: Program, event: int, rank: Path | None = None) -> str:
    """Return the command that opens the recording at the event of a finding; with several ranks, at that of a `rank`.

    If the values were not kept, the command that keeps them comes first.
    """
    from gviz.cli import shell_quoting
    from gviz.cli.program_run import command_line, is_trace
    from gviz.program.rank_trace_files import whole

    script, at = Path(program.argv[0]), f" --at {event}" if event else ""
    trace = program.output and whole(program.output) if program.as_module or not is_trace(script) else script
    if trace is not None:
        return f"to see it happen: gviz open {shell_quoting.word((event and rank) or trace)}{at}"
    if rank is not None:
        path = f"ranks/{rank.name if event else ''}"
        return f"to see it happen: {command_line(program, ('record', '-o', 'ranks/'))}, then gviz open {path}{at}"
    return f"to see it happen: {command_line(program)}{f', then :goto {event}; ! lists the findings' if event else ''}"


def how_to_read(program: Program) -> str:
    """Return the command that prints what an iteration does; empty for a program that cannot be named in it."""
    from gviz.cli import shell_quoting
    from gviz.cli.program_run import is_trace
    from gviz.program.rank_trace_files import whole

    script, *arguments = program.argv
    trace = program.output and whole(program.output) if program.as_module or not is_trace(Path(script)) else script
    if trace is None and program.as_module:
        return ""
    words = ["gviz show", shell_quoting.word(str(trace or script)), "summary"]
    if trace is None:
        words += ["--engine", program.engine] if program.engine != "auto" else []
        words += ["--", *map(shell_quoting.quoted, arguments)] if arguments else []
    return f"what one iteration does, line by line: {' '.join(words)}"


def _summary(inputs: Recordings, findings: list[RankFinding], kinds: int) -> str:
    from gviz.explain.check import no_findings_text

    levels = [one.checked.level for one in findings]
    counts = [(levels.count(level), level) for level in dict.fromkeys(levels)]
    text = ", ".join(f"{count} {level}{'s' * (count != 1)}" for count, level in counts)
    of = f" of {len(inputs.ranks)} ranks" if len(inputs.ranks) > 1 else ""
    return text or no_findings_text(list(inputs.timelines), kinds, of)


def as_data(format: str, inputs: Recordings, rank_findings: list[RankFinding]) -> str:
    """Return the findings as JSON or SARIF."""
    from gviz.cli import json_form, sarif

    if format == "sarif":
        from gviz.explain.program_text import line_text

        timelines = list(inputs.timelines)
        return sarif.text(
            rank_findings, partial(_whose, inputs), lambda one: partial(line_text, timelines[one.ranks[0]])
        )
    checked = [one.checked for one in rank_findings]
    if not inputs.in_folder:
        return json_form.text(events=sum(map(len, inputs.timelines)), findings=checked)
    files = [path.name for path in inputs.paths]
    ranks = [{"file": file, "events": len(timeline)} for file, timeline in zip(files, inputs.timelines, strict=True)]
    findings = [{**json_form.form(one.checked), "ranks": [files[rank] for rank in one.ranks]} for one in rank_findings]
    return json_form.text(ranks=ranks, remarks=inputs.remarks, findings=findings)


def answer(timeline: Timeline, place: str | None, at: str | None) -> list[Finding]:
    """Return the findings that explain a place at a moment, both as people write them; without a moment, at the end."""
    from gviz.api.moment_argument import moment_of
    from gviz.explain.typed_question import answers

    moment = moment_of(timeline, at) if at else None
    findings = answers(timeline, place, moment)
    return [*findings, *_wrong_rules_on_path(timeline, findings, len(timeline) if moment is None else moment)]


def _wrong_rules_on_path(timeline: Timeline, findings: list[Finding], n: int) -> Iterator[Finding]:
    """Return wrong backward rules of the program's own functions that the explained gradient passed through."""
    from gviz.explain.findings.custom_functions.custom_backward_rule import suspect_rules

    for node in dict.fromkeys(one.node for one in findings if one.kind == "gradient"):
        yield from suspect_rules(timeline, node, n)


def answer_lines(findings: list[Finding], *, whole: bool) -> Iterator[str]:
    """Return findings as text, each line with its event; without `whole` the first lines of each."""
    from gviz.explain.finding import brief, lines
    from gviz.explain.finding_kinds import located

    for one in map(located, findings):
        for depth, text, event in lines(one) if whole else brief(one):
            yield f"{'  ' * depth}{text}{f'  [event {event}]' if event else ''}"
    if not findings:
        yield "nothing wrong was found in this recording; ask about a place, such as w.grad"


def print_answer(inputs: Recordings, place: str | None, at: str | None, format: str, *, whole: bool) -> None:
    """Print the explanation of a place, as text or as JSON, which is complete."""

    def data(timeline: Timeline) -> dict[str, Any]:
        findings = answer(timeline, place, at)
        return {"finding": findings[0] if findings else None, "findings": findings}

    recording_input.print_answers(
        inputs, format, lambda timeline: answer_lines(answer(timeline, place, at), whole=whole), data
    )
    for missing in dict.fromkeys(timeline.missing for timeline in inputs.timelines if timeline.missing):
        streams.show(f"not seen: the rest of the run: {missing}")
