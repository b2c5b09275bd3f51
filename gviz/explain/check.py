"""The check of a recording: it explains each error, looks at each leaf, and searches for each kind of finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from gviz.events import NodeCreated
from gviz.explain.display_names import label
from gviz.explain.finding import LEVELS, Checked, Finding, whole
from gviz.explain.finding_kinds import BY_NAME, KINDS, Kind
from gviz.explain.findings.missing_gradient.copied_model import parameter_copies
from gviz.explain.leaf_findings import leaf_findings
from gviz.explain.overlapping_findings import OF_COPIES, without_consequences
from gviz.explain.program_errors import all_failures, is_expected
from gviz.explain.recording_survey import Survey
from gviz.explain.why import why_failure
from gviz.system.cooperative_work import LongWork, WorkProgress, finished
from gviz.trace.timeline import Timeline


def check(timeline: Timeline, kinds: Iterable[Kind] = KINDS) -> list[Checked]:
    """Return the problems of a recording, the most severe first.

    Findings of one kind and line are merged into the first of them; sources of nan only if they have one fix, too.
    """
    return finished(checking(timeline, kinds))


def checking(timeline: Timeline, kinds: Iterable[Kind] = KINDS) -> LongWork[list[Checked]]:
    """Compute `check` cooperatively."""
    kinds_by_name = {kind.name: kind for kind in kinds}
    kept: dict[tuple[object, ...], Checked] = {}
    for item in findings(timeline):
        if isinstance(item, WorkProgress):
            yield item
            continue
        one = _checked(item) if item.kind in kinds_by_name else None
        if one is None:
            continue
        key = *_common(one), one.finding.node * (one.finding.at is None)
        kept[key] = _with_another(timeline, kept[key], one.finding) if key in kept else one
    rest = without_consequences(timeline, [*kept.values()])
    return sorted(rest, key=lambda one: (LEVELS.index(one.level), one.finding.event))


def _common(one: Checked) -> tuple[object, ...]:
    """Return what findings have in common that are reported as one: kind, level, line, and of a nan also the fix."""
    at, is_bad_number = one.finding.at, one.finding.kind in ("nan-born", "nan-born-backward")
    return one.finding.kind, one.level, at and (at.path, at.line), one.finding.fix * is_bad_number


def _with_another(timeline: Timeline, first: Checked, other: Finding) -> Checked:
    """Return the first finding of a line, with the place of one more of its kind.

    The place is the node, or the event if the node is the same.
    """
    is_named = other.node and other.node != first.finding.node
    name = label(timeline, other.node) if is_named else f"event {other.event}" if other.event else ""
    others = first.others if not name or name in first.others else (*first.others, name)
    return replace(first, more=first.more + 1, others=others)


def _checked(finding: Finding) -> Checked | None:
    kind = BY_NAME.get(finding.kind)
    if kind is None or kind.severity == "fact":
        return None
    return Checked(finding, "note" if finding.suspected else kind.severity)


def findings(timeline: Timeline) -> Iterator[Finding | WorkProgress]:
    """Yield every single finding in a recording. Some of them may be no more than facts.

    Between findings it yields its progress, often enough for a screen to stay responsive.
    """
    survey = Survey(timeline)
    for read in survey.reading():
        yield WorkProgress("checking: reading event", read, survey.end)
    failures = list(all_failures(survey.timeline))
    errors = [
        replace(one, suspected=True) if is_expected(of) else one
        for of, one in zip(failures, map(why_failure, failures), strict=True)
    ]
    yield from errors
    reported = {(one.kind, one.node) for error in errors for one in whole(error)}
    copies = parameter_copies(timeline, survey.end) if not timeline.failures else None
    searches = [("leaves", leaf_findings), *((kind.name, kind.find) for kind in KINDS if kind.find is not None)]
    for number, (name, find) in enumerate(searches, 1):
        far = WorkProgress(f"checking: {name.replace('-', ' ')},", number, len(searches))
        yield far
        for one in find(survey):
            if one is None:
                yield far
            elif copies is not None and one.kind in OF_COPIES and one.node in copies:
                continue  # the finding about the copied model is the cause
            elif (one.kind, one.node) not in reported:
                yield one


# Several ranks: a finding that many of them have is reported once


@dataclass(frozen=True, slots=True)
class RankFinding:
    """A finding that several `ranks` have with one kind and line, in the form of the first, and whether all are equal.

    Ranks are counted from 0.
    """

    checked: Checked
    ranks: tuple[int, ...]
    is_alike: bool = True


def check_ranks(findings_of_ranks: Sequence[Sequence[Checked]]) -> list[RankFinding]:
    """Return the findings of each rank: the most severe first, then those that most ranks have."""
    kept: dict[tuple[object, ...], RankFinding] = {}
    for rank, findings in enumerate(findings_of_ranks):
        for one in findings:
            key = *_common(one), one.finding.text * (one.finding.at is None)
            first = kept.setdefault(key, RankFinding(one, ()))
            ranks = tuple(dict.fromkeys((*first.ranks, rank)))
            kept[key] = replace(first, ranks=ranks, is_alike=first.is_alike and first.checked == one)
    return sorted(
        kept.values(),
        key=lambda one: (LEVELS.index(one.checked.level), -len(one.ranks), one.checked.finding.event),
    )


# What was searched if nothing was found


def no_findings_text(timelines: Sequence[Timeline], kinds: int, ranks: str = "") -> str:
    """Return one line for a check without findings: the amount of data, the kinds, and what it cannot judge."""
    events = sum(map(len, timelines))
    left = "; ".join(dict.fromkeys(what for timeline in timelines for what in not_judged(timeline)))
    looked_for = f"{kinds} kind{'s' * (kinds != 1)} looked for"
    return f"nothing found in {events:,} event{'s' * (events != 1)}{ranks} ({looked_for}; not judged: {left})"


def not_judged(timeline: Timeline) -> Iterator[str]:
    """Yield what a check cannot judge in a recording, the most important first."""
    phases = {phase.kind for phase in timeline.phases}
    if "backward" not in phases:
        yield "gradients, as no backward pass ran"
    if not _has_arrays(timeline):
        yield "what single elements were, as only statistics of most arrays were kept (--values all keeps them)"
    yield "whether the loss is the one you meant"


def _has_arrays(timeline: Timeline) -> bool:
    """Return whether the elements of most values were stored: sums of rows, for example, need them."""
    creations = (event for _, event in timeline.select([NodeCreated]))
    values = [output.value for event in creations for output in event.outputs if output.value is not None]
    kept = [value.data is not None or value.blob is not None for value in values if value.size > 1]
    return 2 * sum(kept) >= len(kept)
