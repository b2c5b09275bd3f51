"""The check of a recording: it explains each error, looks at each leaf, and searches for each kind of finding."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gviz.events import (
    BackwardFinished,
    DataSet,
    GradAccumulated,
    GradCaptured,
    NodeCreated,
    ScopeEntered,
    StorageWritten,
)
from gviz.explain.display_names import label
from gviz.explain.finding import Finding, whole
from gviz.explain.finding_kinds import BY_NAME, KINDS, Kind
from gviz.explain.findings.copied_model import parameter_copies
from gviz.explain.grad_history import is_zero
from gviz.explain.parameter_updates import idle_parameters, nodes_with_numbers, steps_by
from gviz.explain.program_errors import all_failures
from gviz.explain.program_text import line_text
from gviz.explain.source_frames import innermost
from gviz.explain.survey import Survey
from gviz.explain.tracking import ancestors
from gviz.explain.why import why, why_failure
from gviz.source.call_stack import Frame
from gviz.system.cooperative_work import LongWork, WorkProgress, finished
from gviz.trace.timeline import Timeline

Level = Literal["error", "warning", "note"]
LEVELS: tuple[Level, ...] = ("error", "warning", "note")
MOST_NAMED = 5
MOST_EXPLAINED = 200
"""The most leaves that are examined one by one."""


_NUMBER = re.compile(r"^#\d+ ")
"""The number of a node before its name: in later iterations a line makes nodes of the same name."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One finding of a check, its level, and how many more of its kind have the same line, and where."""

    finding: Finding
    level: Level
    more: int = 0
    others: tuple[str, ...] = ()

    @property
    def heading(self) -> str:
        """Return the place, the level, the title, and the number of repetitions."""
        where = f"{self.finding.where}: " if self.finding.where else ""
        others = self.others
        if len(others) > MOST_NAMED:  # those of other iterations have the same name
            others = tuple(other for other in others if not self._names(_NUMBER.sub("", other)))
        named = ", ".join(others[:MOST_NAMED]) + (", …" if len(others) > MOST_NAMED else "")
        of = f": {named}" if named else ""
        more = f" (and {self.more} more on this line{of})" if self.more else ""
        return f"{where}{self.level}: {self.finding.text} [{self.finding.kind}]{more}"

    def _names(self, other: str) -> bool:
        """Return whether the title is about a node of that name: the same place in another iteration."""
        return re.search(rf"#\d+ {re.escape(other)}(?![\w.])", self.finding.text) is not None

    def __str__(self) -> str:
        """Return the heading, and the facts below."""
        _, *rest = str(self.finding).split("\n")
        return "\n".join([self.heading, *rest])


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
    of_one = [one.finding for one in kept.values() if one.finding.kind == "one-element"]
    constant = {at and (at.path, at.line) for one in of_one for at in (one.at, _site(timeline, one.node))}
    rest = [one for one in kept.values() if one.finding.kind not in _ZEROS or _line(one.finding) not in constant]
    unused = {_line(one.finding) for one in rest if one.finding.kind == "never-stepped"}  # it names the parameters
    rest = [one for one in rest if one.finding.kind != "lost-update" or _line(one.finding) not in unused]
    causes = [one.finding for one in rest if one.finding.kind in _CONSEQUENCES]
    rest = [one for one in rest if not any(_follows(timeline, one.finding, cause) for cause in causes)]
    rest = _without_nan_of_masks(rest)
    named = {_line(one.finding) for one in rest if one.finding.kind in ("softmax-dim", "no-log-probabilities")}
    rest = [one for one in rest if one.finding.kind != "default-dim" or _line(one.finding) not in named]
    if any(one.finding.kind != "not-falling" for one in rest):  # the others are the reason, or may be
        rest = [one for one in rest if one.finding.kind != "not-falling"]
    return sorted(rest, key=lambda one: (LEVELS.index(one.level), one.finding.event))


def _without_nan_of_masks(found: Sequence[Checked]) -> list[Checked]:
    """Return the findings without the nan of a wrong mask or softmax: a row that is hidden as a whole makes them.

    Then the mask, or the dimension of the softmax, is surely wrong, and every other nan or infinity follows from it.
    """
    causes = [
        one.finding for one in found if one.finding.kind in ("inverted-mask", "softmax-dim", "masked-after-softmax")
    ]
    for first in (one.finding for one in found if one.finding.kind == "nan-born"):
        became = {part.node for part in whole(first)}
        wrong = next((one for one in causes if _line(one) == _line(first) or one.node in became), None)
        if wrong is not None:
            rest = [one for one in found if one.finding.kind not in _OF_NAN or one.finding.event < first.event]
            return [replace(one, level="warning") if one.finding is wrong else one for one in rest]
    return list(found)


_OF_NAN = frozenset(["nan-born", "nan-born-backward"])


_ZEROS = frozenset(["masked", "cancelled"])
"""Kinds that show where a gradient became zero. They add nothing where the result is constant anyway."""


_CONSEQUENCES = {
    "inverted-mask": ("vanishing", "cancelled", "unchanged"),
    "unbounded-loss": ("exploding", "vanishing"),
    "diverging": ("exploding",),
    "opposed-passes": ("unchanged",),
    "early-mean": ("vanishing", "cancelled", "unchanged"),
    "one-element": ("vanishing", "cancelled", "masked"),
    "written-gradient": ("vanishing", "cancelled", "masked"),
    "masked-after-softmax": ("exploding", "vanishing", "nan-born", "nan-born-backward"),
}
"""By kind: kinds that only show what follows from it, if their tensor lies on its path or in the same model call."""


def _follows(timeline: Timeline, finding: Finding, cause: Finding) -> bool:
    """Return whether a finding only shows what follows from another: its tensor lies on the path of the other's."""
    if finding.kind not in _CONSEQUENCES[cause.kind] or not (finding.node and cause.node):
        return False
    if cause.kind == "masked-after-softmax" and not any(part.kind == "mask" for part in cause.parts):
        return False  # weights of 0 make no large numbers; -1e9 in their place does
    if cause.kind == "masked-after-softmax" and finding.kind in _OF_NAN:
        return finding.event > cause.event
    of_finding, of_cause = ([one.node, *timeline.nodes.users(one.node)] for one in (finding, cause))
    before = {*of_cause, *ancestors(timeline, *of_cause)}
    if finding.node in before or cause.node in ancestors(timeline, finding.node):
        return True
    created = {node: timeline.info(node).created for node in (*of_finding, *before)}
    stacks = {created[node].stack for node in before if created[node].kind == "op"}  # also those of other iterations
    if any(created[node].kind == "op" and created[node].stack in stacks for node in of_finding):
        return True
    scopes = {event.scope: event for _, event in timeline.select((ScopeEntered,))}
    models = [{_model(scopes, created[node].scope) for node in nodes} - {0} for nodes in (of_finding, of_cause)]
    return bool(models[0] & models[1])


def _model(scopes: Mapping[int, ScopeEntered], scope: int) -> int:
    """Return the outermost module call around a module call; 0 outside of all modules."""
    while scope in scopes and scopes[scope].parent in scopes:
        scope = scopes[scope].parent
    return scope if scope in scopes else 0


def _line(finding: Finding) -> tuple[str, int] | None:
    return (finding.at.path, finding.at.line) if finding.at is not None else None


def _site(timeline: Timeline, node: int) -> Frame | None:
    return innermost(timeline.info(node)) if node else None


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
    errors = list(map(why_failure, all_failures(survey.timeline)))
    yield from errors
    reported = {(one.kind, one.node) for error in errors for one in whole(error)}
    copies = parameter_copies(timeline, survey.end) if not timeline.failures else None
    searches = [("leaves", _leaf_findings), *((kind.name, kind.find) for kind in KINDS if kind.find is not None)]
    for number, (name, find) in enumerate(searches, 1):
        far = WorkProgress(f"checking: {name.replace('-', ' ')},", number, len(searches))
        yield far
        for one in find(survey):
            if one is None:
                yield far
            elif copies is not None and one.kind in _OF_COPIES and one.node in copies:
                continue  # the finding about the copied model is the cause
            elif (one.kind, one.node) not in reported:
                yield one


_OF_COPIES = frozenset(["never-stepped", "unused", "not-reached", "not-cleared", "unchanged", "cut"])
"""Kinds that show what follows if the gradient goes to a copy of a model, of the copy's parameters or the model's."""


def _leaf_findings(survey: Survey) -> Iterator[Finding | None]:
    """Yield why leaves got no gradient from any pass, or zero from the last."""
    if all(event.inputs for _, event in survey.passes):
        return  # no pass, or only passes for some gradients
    timeline, end = survey.timeline, survey.timeline.at(survey.end)
    last = {event.node: (seq, event) for seq, event in survey.accumulated}
    alive = list(survey.alive(survey.passes[-1][0]))
    leaves = [record.node for record in alive if record.created.kind != "op" and record.created.requires_grad]
    failed = _before_failed_passes(survey)
    captured = {event.node for _, event in survey.select(GradCaptured)} - survey.skipped
    roots = {node for _, event in survey.passes for node, _ in event.roots}
    silent = [node for node in leaves if node not in {*last, *failed, *captured, *roots}]
    silent = [node for node in silent if not _is_for_some_gradients(survey, node)]
    idle, stepped = idle_parameters(timeline, survey.end), steps_by(timeline, survey.end).parameters
    # an optimizer of a model that was replaced since: the finding about the new model's parameters names these
    was_replaced = any(node not in stepped for node in last)
    replaced = idle if was_replaced else frozenset()
    copied = {survey.nodes[node].created.stack for node in silent if _is_copy_of_trained(survey, node)} - {0}
    for node in silent[:MOST_EXPLAINED]:
        yield None
        finding = why(timeline, end, node, "grad")
        untrained = _is_never_trained(finding)
        is_of_other = bool(survey.optimized) and node not in survey.optimized
        is_left_out = (
            untrained and not survey.optimized and _is_written(survey, last) and not _is_written(survey, [node])
        )
        # so does the finding about a new layer, if no module and no variable refers to the old one any more
        is_old = node in replaced or (was_replaced and _has_lost_its_name(survey, node))
        of_old_model = finding.kind == "unused" and is_old
        is_free = is_of_other or not survey.optimized
        follows = finding.kind == "not-reached" and is_free and _is_set_from_others(survey, node)
        is_not_for_loss = [part.kind for part in finding.parts] == ["used", "dropped"]  # only features before it are
        is_not_for_loss = is_not_for_loss or _is_for_evaluation(survey, node, copied)
        if finding.kind == "not-reached" and is_of_other and is_not_for_loss:
            continue
        if of_old_model or follows or _is_taken_as_data(survey, finding) or _is_of_no_call(survey, finding):
            continue
        if not (untrained and is_of_other) and not is_left_out:  # else it follows others, as a target network does
            yield replace(finding, suspected=finding.suspected or is_of_other or (untrained and node not in idle))
    if survey.passes[-1][1].pass_nr in _failed(survey):
        return  # a program that stopped early: a single zero is no sign of a mistake
    # includes results on which requires_grad_() was called, but not those whose gradient became a part of the loss: the
    # derivative of a gradient penalty by its own input is zero for a network of relus
    again = {node for _, event in survey.passes if event.create_graph for node, _ in event.inputs} - survey.optimized
    added = [record.node for record in alive if record.node in last and record.node not in again]
    seen = set[tuple[str, int]]()
    for node in [node for node in added if is_zero(last[node][1].part)][:MOST_EXPLAINED]:
        yield None
        finding = why(timeline, timeline.at(last[node][0]), node, "grad")
        is_of_several = (finding.text, finding.event) in seen  # it is the same for each of them
        seen.add((finding.text, finding.event))
        if finding.kind == "masked" and (share := _share_of_data(survey, finding, node)):
            if share > 0.5:
                continue
            finding = replace(finding, suspected=True)
        if not is_of_several and (finding.kind != "cancelled" or not _is_offset(survey, node, last)):
            yield finding


def _share_of_data(survey: Survey, finding: Finding, node: int) -> float:
    """Return in which part of the passes a gradient was not zero that data make zero, such as equal rewards of a group.

    It is 0 if another cause makes it zero, or if it was zero from the first pass on.
    """
    factor = survey.nodes.get(finding.node)
    if factor is None or factor.created.requires_grad or factor.created.kind != "op":
        return 0.0
    parts = [event.part for _, event in survey.accumulated if event.node == node]
    return 0.0 if is_zero(parts[0]) else sum(not is_zero(part) for part in parts) / len(parts)


def _is_offset(survey: Survey, node: int, last: dict[int, tuple[int, GradAccumulated]]) -> bool:
    """Return whether a bias cancels in a difference of two outputs, as in a ranking loss, and its weight does not."""
    users = [survey.nodes[user] for user in survey.timeline.nodes.users(node) if user in survey.nodes]
    factors = [one for user in users for one in survey.sources(user)]
    factors += [source for one in factors for source in survey.sources(one)]  # a weight may be transposed
    weights = {one.node for one in factors if len(one.shape) > 1 and one.node in last}
    name = survey.timeline.info(node).name
    return name.endswith("bias") and any(not is_zero(last[weight][1].part) for weight in weights)


def _is_for_some_gradients(survey: Survey, node: int) -> bool:
    """Return whether only passes for some gradients followed the first use of a leaf."""
    users = survey.timeline.nodes.users(node)
    whole = max(seq for seq, event in survey.passes if not event.inputs)
    return bool(users) and min(map(survey.timeline.nodes.born, users)) > whole


def _before_failed_passes(survey: Survey) -> set[int]:
    """Return the nodes that a pass which ended with an error would have reached, or may have."""
    failed = _failed(survey)
    if survey.passes[-1][1].pass_nr in failed:
        return set(survey.nodes)
    roots = {node for _, event in survey.passes if event.pass_nr in failed for node, _ in event.roots}
    return {*roots, *ancestors(survey.timeline, *roots)}


def _failed(survey: Survey) -> set[int]:
    """Return the passes that ended with an error."""
    return {event.pass_nr for _, event in survey.select(BackwardFinished) if event.error}


def _is_never_trained(finding: Finding) -> bool:
    """Return whether every path to the leaf ends where autograd is off, as for a copy that follows another model."""
    ends = [part.text for part in finding.parts]
    return finding.kind == "cut" and bool(ends) and all("no_grad" in text or "inference_mode" in text for text in ends)


def _is_for_evaluation(survey: Survey, node: int, copied: Collection[int]) -> bool:
    """Return whether a parameter is of a copy of the trained model, or was used only where autograd is off.

    `copied` are the call stacks of such copies. A copy serves an evaluation, or is kept as it is.
    """
    record = survey.nodes[node]
    users = [survey.nodes[user] for user in survey.timeline.nodes.users(node) if user in survey.nodes]
    is_off = all(user.created.untracked in ("no_grad", "inference") for user in users)
    if _is_written(survey, [node]) and not _is_set_from_others(survey, node):
        return False  # the program itself changes it: it is the model that others are copied from
    return record.created.stack in copied or (bool(users) and is_off)


def _is_copy_of_trained(survey: Survey, node: int) -> bool:
    """Return whether a parameter without an optimizer began with different numbers that one of an optimizer had."""
    record = survey.nodes[node]
    stats = record.value.statistics() if record.value is not None and node not in survey.optimized else None
    if record.value is None or stats is None or not stats.min < stats.max:
        return False
    return not survey.optimized.isdisjoint(nodes_with_numbers(survey.timeline, record.value, record.seq))


def _is_written(survey: Survey, nodes: Iterable[int]) -> bool:
    """Return whether the program wrote to the memory of some leaves after the first pass, as an update by hand does."""
    known = {node for node in nodes if node in survey.nodes}
    storages = {output.storage for node in known for output in survey.nodes[node].created.outputs}
    first = survey.passes[0][0]
    later = (event for seq, event in survey.select(StorageWritten, DataSet) if seq > first)
    return any(
        (isinstance(event, DataSet) and event.node in known)
        or (isinstance(event, StorageWritten) and event.storage in storages)
        for event in later
    )


def _is_set_from_others(survey: Survey, node: int) -> bool:
    """Return whether the program sets a parameter from others after their training, as Reptile and averages do.

    Such a parameter needs no gradient. A write that only depends on the parameter itself, such as a clamp, does not
    count.
    """
    timeline, first = survey.timeline, survey.passes[0][0]
    storages = {output.storage for output in survey.nodes[node].created.outputs}
    for seq, event in survey.select(StorageWritten, DataSet):
        match event:
            case DataSet(node=written, writer=writer) if written == node and seq > first:
                source = survey.nodes.get(writer)
            case StorageWritten(storage=storage, node=writer) if storage in storages and seq > first:
                source = survey.nodes.get(writer)
            case _:
                continue
        if isinstance(event, DataSet) and (source is None or source.created.kind != "op"):
            before = (timeline.event(one) for one in range(seq - 1, max(seq - _NEAR, 0), -1))
            made = (one.node for one in before if isinstance(one, NodeCreated) and one.first_value == event.value)
            source = survey.nodes.get(next(made, 0))
        if source is None or source.node == node:  # as by load_state_dict
            alike = nodes_with_numbers(timeline, event.value, seq) if not timeline.contexts.steps_at(seq) else ()
            source = next((survey.nodes[one] for one in alike if one in survey.nodes and one != node), None)
        origins = {source.node, *ancestors(timeline, source.node)} if source is not None else set()
        if any(survey.nodes[one].created.kind == "parameter" for one in origins - {node} if one in survey.nodes):
            return True
    return False


_NEAR = 20
"""The events before an assignment to ``.data`` among which its value was computed."""


_ALL_PARAMETERS = re.compile(r"\bparameters\(|named_parameters\(|state_dict\(|stack_module_state\(|\b_parameters\b")


def _is_taken_as_data(survey: Survey, finding: Finding) -> bool:
    """Return whether a program takes all parameters of a model as data, and no optimizer has this one.

    ``{k: v.detach() for k, v in model.named_parameters()}`` is the form that `torch.func` expects.
    """
    if finding.kind != "cut" or finding.node in survey.optimized or not finding.parts:
        return False
    cuts = [survey.nodes.get(part.node) for part in finding.parts]
    return all(
        cut is not None
        and cut.created.untracked in ("detach", "data")
        and _ALL_PARAMETERS.search(line_text(survey.timeline, survey.at(cut)))
        for cut in cuts
    )


def _is_of_no_call(survey: Survey, finding: Finding) -> bool:
    """Return whether a parameter belongs to a template of copies: an uncalled model without an optimizer."""
    is_of_other = bool(survey.optimized) and finding.node not in survey.optimized
    return finding.kind == "unused" and is_of_other and _has_lost_its_name(survey, finding.node)


def _has_lost_its_name(survey: Survey, node: int) -> bool:
    """Return whether no module that was called and no variable refers to a parameter."""
    record = survey.nodes.get(node)
    return record is not None and record.created.kind == "parameter" and node not in survey.timeline.nodes.named


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
