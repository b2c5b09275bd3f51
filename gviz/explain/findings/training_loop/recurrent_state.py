"""States that a loop carries along, and detaches too often or too seldom."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import without_method
from gviz.explain.source_frames import innermost
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame

# A loop detaches a state only at some steps: backward stops at the last of them

_CUTS = ("detach", "data")


@dataclass(frozen=True, slots=True)
class _Use:
    """A use of `state` by `user`, through `cut` if that detached it."""

    state: NodeRecord
    cut: NodeRecord | None
    user: NodeRecord


def partly_detached(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first state of each line that is detached at some steps before a pass, and attached at others.

    Then also lines that detach it at every step.
    """
    starts = [seq for seq, _ in survey.passes]
    reported: set[tuple[Frame, ...]] = set()
    partly: set[int] = set()
    for cut in _cuts(survey):
        before = bisect_left(starts, cut.seq)
        line = survey.timeline.stack(cut.created.stack)
        if line in reported or before == len(starts):
            continue
        window = range(starts[before - 1] if before else 0, starts[before])
        for state in survey.sources(cut):
            reported.add(line)
            for one in _of_line(survey, state, window):
                partly.add(survey.nodes[one.node].created.stack)
                yield one
    yield from _detached_each_step(survey, partly)


def _cuts(survey: Survey) -> Iterator[NodeRecord]:
    """Yield the operations that detach a result."""
    for record in survey.nodes.values():
        if record.created.untracked in _CUTS and any(_is_state(source) for source in survey.sources(record)):
            yield record


def _is_state(record: NodeRecord) -> bool:
    return record.created.kind == "op" and record.created.requires_grad and not record.created.during[0]


def _of_line(survey: Survey, state: NodeRecord, window: range) -> Iterator[Finding]:
    line = state.created.stack, state.created.op
    same = [record for record in survey.ops(state.op) if (record.created.stack, record.created.op) == line]
    uses = [one for record in same if record.seq in window for one in _state_uses(survey, record, window)]
    for cut in reversed([one for one in uses if one.cut is not None]):
        same_uses = [one for one in uses if _place(one) == _place(cut)]
        attached = [one for one in same_uses if one.cut is None]
        if attached:
            yield _detached_finding(survey, cut, attached[-1], len(same_uses) - len(attached), len(same_uses))
            return


def _state_uses(survey: Survey, state: NodeRecord, window: range) -> Iterator[_Use]:
    """Yield the users of a state in a window, directly or after one cut."""
    for user in _users(survey, state, window):
        if user.created.untracked in _CUTS:
            yield from (_Use(state, user, after) for after in _users(survey, user, window))
        else:
            yield _Use(state, None, user)


def _users(survey: Survey, record: NodeRecord, window: range) -> Iterator[NodeRecord]:
    users = (
        survey.nodes[user] for user in survey.timeline.nodes.users_by_node.get(record.node, ()) if user in survey.nodes
    )
    return (user for user in users if user.seq in window)


def _place(use: _Use) -> tuple[int, int, int]:
    """Return the operation, its line, and the number of the input."""
    input_node = use.state if use.cut is None else use.cut
    slots = [node for node, _ in use.user.created.inputs]
    return use.user.created.stack, use.user.created.op, slots.index(input_node.node)


def _detached_finding(survey: Survey, last: _Use, other: _Use, detached: int, count: int) -> Finding:
    assert last.cut is not None
    timeline, cut = survey.timeline, last.cut
    names = label(timeline, last.user.node), label(timeline, last.state.node)
    text = titled(f"at {detached} of {count} steps {{}} takes {{}} detached", *names)
    stops = f"detached at {label_at(timeline, cut.node)}: no gradient goes back past these steps"
    parts = (
        Finding("cut", stops, cut.seq, cut.node),
        Finding(
            "elsewhere", f"with its history by {label(timeline, other.user.node)}", other.user.seq, other.user.node
        ),
    )
    fix = "detach after backward(), not between the steps that one backward is to go through (leave it if meant so)"
    at = innermost(timeline.info(cut.node))
    return Finding("partly-detached", text, cut.seq, cut.node, parts, fix, at, suspected=True)


# A state that a loop detaches at every step between two passes: no gradient goes through time


def _detached_each_step(survey: Survey, partly: set[int]) -> Iterator[Finding | None]:
    """Yield lines that detach a state several times before one pass, each time the result of the one before.

    Lines at the call stacks `partly` detach it at some steps only.
    """
    timeline, starts = survey.timeline, [seq for seq, _ in survey.passes]
    lines: defaultdict[tuple[int, int], list[NodeRecord]] = defaultdict(list)
    for cut in _cuts(survey):
        lines[cut.created.stack, bisect_left(starts, cut.seq)].append(cut)
    reported = {*partly}
    for (stack, before), cuts in lines.items():
        if len(cuts) < _FEWEST_DETACHED or before == len(starts) or stack in reported:
            continue
        yield None
        reported.add(stack)
        if len({_module(survey, cut) for cut in cuts}) > 1:
            continue  # the layers of a stack run the same line, each once
        states = [next(survey.sources(cut)) for cut in cuts]
        following = zip(cuts, states[1:], strict=False)
        is_chain = all(one.node in ancestors(timeline, state.node) for one, state in following)
        until = starts[before]
        is_only_use = all(
            {user for user in timeline.nodes.users(state.node) if timeline.nodes.born(user) < until} == {cut.node}
            for state, cut in zip(states, cuts, strict=True)
        )
        if is_chain and is_only_use:
            yield _each_step_finding(survey, cuts, states)


def _module(survey: Survey, cut: NodeRecord) -> str:
    """Return the path of the module in whose call a state is detached; empty outside of modules."""
    scope = survey.scopes.get(cut.created.scope)
    return scope.name if scope is not None else ""


_FEWEST_DETACHED = 2


def _each_step_finding(survey: Survey, cuts: list[NodeRecord], states: list[NodeRecord]) -> Finding:
    timeline, last = survey.timeline, cuts[-1]
    at = innermost(timeline.info(last.node))
    text = titled(f"{{}} is detached at each of {len(cuts)} steps before backward", label(timeline, states[-1].node))
    stops = f"{label_at(timeline, last.node)} is the last of them: no gradient goes back past it to earlier steps"
    fix = "pass the state on with its history, and detach it after backward()"
    edit = without_method(timeline, at, "detach")
    part = Finding("cut", stops, last.seq, last.node)
    return Finding("partly-detached", text, last.seq, states[-1].node, (part,), fix, at, suspected=True, edit=edit)
