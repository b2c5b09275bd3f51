"""A state that a loop detaches at some of its steps only: one backward goes back no further than there."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from gviz.explain.finding import Finding
from gviz.explain.kind import Kind
from gviz.explain.names import innermost, label, label_at
from gviz.explain.survey import Made, Survey
from gviz.site import Frame

_CUTS = ("detach", "data")


@dataclass(frozen=True, slots=True)
class _Taken:
    """`user` takes what `state` made, through `cut` if that left its history out."""

    state: Made
    cut: Made | None
    user: Made


def found(survey: Survey) -> Iterator[Finding]:
    """The first state of each line that one operation takes detached at some steps before a pass, and not at others."""
    starts = [seq for seq, _ in survey.passes]
    told: set[tuple[Frame, ...]] = set()
    for cut in _cuts(survey):
        before = bisect_left(starts, cut.seq)
        line = survey.timeline.stack(cut.created.stack)
        if line in told or before == len(starts):
            continue
        window = range(starts[before - 1] if before else 0, starts[before])
        for state in survey.sources(cut):
            told.add(line)
            yield from _of_line(survey, state, window)


def _cuts(survey: Survey) -> Iterator[Made]:
    """The operations that leave out the history of a result."""
    for made in survey.nodes.values():
        if made.created.untracked in _CUTS and any(_is_state(source) for source in survey.sources(made)):
            yield made


def _is_state(made: Made) -> bool:
    return made.created.kind == "op" and made.created.requires_grad and not made.created.during[0]


def _of_line(survey: Survey, state: Made, window: range) -> Iterator[Finding]:
    line = state.created.stack, state.created.op
    same = [made for made in survey.ops(state.op) if (made.created.stack, made.created.op) == line]
    taken = [one for made in same if made.seq in window for one in _taken(survey, made, window)]
    for cut in reversed([one for one in taken if one.cut is not None]):
        alike = [one for one in taken if _place(one) == _place(cut)]
        attached = [one for one in alike if one.cut is None]
        if attached:
            yield _finding(survey, cut, attached[-1], len(alike) - len(attached), len(alike))
            return


def _taken(survey: Survey, state: Made, window: range) -> Iterator[_Taken]:
    """Who uses a state within a window, at once or after one cut."""
    for user in _users(survey, state, window):
        if user.created.untracked in _CUTS:
            yield from (_Taken(state, user, after) for after in _users(survey, user, window))
        else:
            yield _Taken(state, None, user)


def _users(survey: Survey, made: Made, window: range) -> Iterator[Made]:
    users = (survey.nodes[user] for user in survey.timeline.nodes.made_into.get(made.node, ()) if user in survey.nodes)
    return (user for user in users if user.seq in window)


def _place(taken: _Taken) -> tuple[int, int, int]:
    """Which operation, on which line, and which of its inputs."""
    given = taken.state if taken.cut is None else taken.cut
    slots = [node for node, _ in taken.user.created.inputs]
    return taken.user.created.stack, taken.user.created.op, slots.index(given.node)


def _finding(survey: Survey, last: _Taken, other: _Taken, detached: int, count: int) -> Finding:
    assert last.cut is not None
    timeline, cut = survey.timeline, last.cut
    takes = f"{label_at(timeline, last.user.node)} takes {label(timeline, last.state.node)} detached"
    text = f"at {detached} of {count} steps {takes}: no gradient goes back past these steps"
    parts = (
        Finding("cut", f"detached at {label_at(timeline, cut.node)}", cut.seq, cut.node),
        Finding(
            "elsewhere", f"with its history by {label(timeline, other.user.node)}", other.user.seq, other.user.node
        ),
    )
    fix = "detach after backward(), not between the steps that one backward is to go through (leave it if meant so)"
    at = innermost(timeline.info(cut.node))
    return Finding("partly-detached", text, cut.seq, cut.node, parts, fix, at, suspected=True)


PARTLY_DETACHED = Kind(
    "partly-detached", "suspicion", "a state that a loop detaches at some steps between two passes", find=found
)
