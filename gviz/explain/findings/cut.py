"""No gradient because no way leads there from the loss: where it was cut, unused, or used for something else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gviz.events import BackwardStarted
from gviz.explain.copied_numbers import is_copied
from gviz.explain.finding import Finding
from gviz.explain.findings.passes import passes_before
from gviz.explain.findings.tracked import cut_fix
from gviz.explain.kind import Kind, Question
from gviz.explain.names import innermost, label, label_at, made_at, why_untracked
from gviz.explain.neglected import next_step
from gviz.explain.partial import RECORD_ALL, is_partial
from gviz.explain.silent_uses import cuts_after
from gviz.explain.ways import ancestors
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline

MOST_CUTS = 5
_COPIES_LOOKED_AT = 20
_OF_NUMBERS = "compute the loss with tensors all the way: .item(), numpy and torch.tensor(...) pass on numbers only"
_NEAR = 200
"""Parameters of one model are made within so many nodes."""


def no_way(asked: Question) -> Finding:
    """No pass has reached it: where the ways from it to the roots end."""
    timeline = asked.timeline
    started, backward = _pass_of(asked)
    roots = sorted({node for node, _ in backward.roots})
    users = _uses(asked)
    if not users:
        return unused(asked)
    leading = {*ancestors(timeline, *roots), *roots}
    ends = list(_ends(asked, asked.node))
    cuts = [cut for cut in ends if cut.node in leading] or [out for end in ends for out in _copied(asked, end, leading)]
    names = ", ".join(label(timeline, root) for root in roots[:3] if root)
    text, start = f"{label(timeline, asked.node)} got no gradient", names or "where the pass began"
    if cuts:
        text = f"{text}: every way back to it from {start} is cut"
        nearest = _nearest(timeline, cuts, roots)
        return Finding("cut", text, started, asked.node, tuple(_by_line(nearest))[:MOST_CUTS], at=nearest[0].at)
    return not_reached(asked, f"{text}: no way leads back to it from {start}", timeline.info(users[-1]))


def unused(asked: Question) -> Finding:
    """Nothing was made from it: what of its shape could have been meant to meet it."""
    info, timeline = asked.info, asked.timeline
    text = f"{label_at(timeline, asked.node)} was not used in anything"
    if is_partial(timeline):
        return Finding("unused", f"{text} that was recorded", info.born, asked.node, (), RECORD_ALL, innermost(info))
    near = _like(asked)
    parts: tuple[Finding, ...] = ()
    if near is not None:
        like, user = near
        text_near = f"{label(timeline, like)}, of the same shape, was used in {label_at(timeline, user)}"
        parts = (Finding("nearest", f"{text_near}: could it have been meant there?", timeline.nodes.born(user), user),)
    fix = "use it in what the loss is made from"
    return Finding("unused", text, info.born, asked.node, parts, fix, innermost(info))


def not_reached(asked: Question, text: str, last: NodeInfo) -> Finding:
    """It was used, but what was made of it did not lead to the loss."""
    name = label(asked.timeline, asked.node)
    used = Finding("elsewhere", f"{name} was used in {label_at(asked.timeline, last.node)}", last.born, last.node)
    fresh = _fresh(asked, last)
    if fresh is None:
        fix = "call backward() on a result of that"
        return Finding("not-reached", text, 0, asked.node, (used,), fix, innermost(last))
    asks = ": requires_grad does not give it one" if fresh.created.kind == "leaf" else ""
    new = f"{label_at(asked.timeline, fresh.node)} is new data without a history{asks}"
    parts = (Finding("copied", new, fresh.born, fresh.node, at=innermost(fresh)), used)
    return Finding("not-reached", text, fresh.born, asked.node, parts, _OF_NUMBERS, innermost(fresh))


def _fresh(asked: Question, last: NodeInfo) -> NodeInfo | None:
    """What a way back from the loss ends at that was made of the numbers of the node since it was used."""
    timeline, roots = asked.timeline, [node for node, _ in _pass_of(asked)[1].roots if node]
    later = (info for node in (*roots, *ancestors(timeline, *roots)) if (info := timeline.info(node)).born > last.born)
    ends = (info for info in later if info.created.kind in ("leaf", "constant"))
    return next((end for end in ends if is_copied(timeline, end, asked.node)), None)


def _pass_of(asked: Question) -> tuple[int, BackwardStarted]:
    """The pass that could have reached a node: of a result the first after it, of a leaf that after its last use.

    Of several before the step that was to use the gradient it is the last: those before it may be another model's.
    """
    timeline, passes, seqs = asked.timeline, passes_before(asked), map(asked.timeline.nodes.born, _uses(asked))
    passes = [one for one in passes if not one[1].inputs] or passes
    since = asked.info.born if asked.info.created.kind == "op" else max(seqs, default=asked.moment.n)
    step = next_step(timeline, asked.node, since)
    later = [one for one in passes if one[0] > since]
    before = [one for one in later if one[0] < step]
    return before[-1] if before else (later or passes[-1:])[0]


def _uses(asked: Question) -> Sequence[int]:
    """What was made of a node so far, without what came after the last pass (an evaluation) if there is more."""
    timeline, last = asked.timeline, passes_before(asked)[-1][0]
    uses = timeline.nodes.users(asked.node, asked.moment.n)
    return [use for use in uses if timeline.nodes.born(use) < last] or uses


def _like(asked: Question) -> tuple[int, int] | None:
    """Another leaf of the same shape that requires a gradient, made nearby, and the first operation that used it."""
    timeline, made = asked.timeline, asked.info.created
    shape = made.first_value.shape if made.first_value is not None else None
    place = timeline.nodes.place_of(asked.node)
    for other in timeline.nodes[max(place - _NEAR, 0) : place + _NEAR]:
        info = timeline.info(other) if other != asked.node else None
        if info is None or info.created.kind == "op" or not info.created.requires_grad:
            continue
        value, users = info.created.first_value, timeline.nodes.users(other)
        if value is not None and value.shape == shape and users:
            return other, users[0]
    return None


def _nearest(timeline: Timeline, cuts: Sequence[Finding], roots: Sequence[int]) -> list[Finding]:
    """The cuts of the lines at which the ways back from the roots end.

    What lies behind another cut is not the reason, and may well be meant: a loop detaches the state it carries.
    """
    met = {*roots, *ancestors(timeline, *roots, up_to={cut.node for cut in cuts})}
    lines = {_line_of(cut) for cut in cuts if cut.node in met}
    return [cut for cut in cuts if _line_of(cut) in lines] or list(cuts)


def _line_of(cut: Finding) -> tuple[str, int] | int:
    return (cut.at.path, cut.at.line) if cut.at is not None else cut.node


def _by_line(cuts: Iterable[Finding]) -> Iterator[Finding]:
    """The last cut of each line, as a loop cuts again and again where it cuts once."""
    lines: defaultdict[tuple[str, int] | int, list[Finding]] = defaultdict(list)
    for cut in cuts:
        lines[_line_of(cut)].append(cut)
    for same in lines.values():
        last, before = max(same, key=lambda cut: cut.event), len(same) - 1
        yield replace(last, text=f"{last.text} (and {before} times before)") if before else last


def _ends(asked: Question, node: int) -> Iterator[Finding]:
    """The untracked operations at which the ways forward from a node leave the graph."""
    for info in cuts_after(asked.timeline, node, range(asked.moment.n + 1)):
        text = f"cut at {label(asked.timeline, info.node)}{made_at(info.frames)}: {why_untracked(info.created)}"
        fix = cut_fix(asked.timeline, info)
        yield Finding("cut", text, info.born, info.node, fix=fix, at=innermost(info))


def _copied(asked: Question, end: Finding, leading: set[int]) -> Iterator[Finding]:
    """Data on the way to the loss that came up right after the graph was left: on the same line, or of the same shape.

    Numbers that leave for numpy or Python come back as constants without an input: this is where. What comes up after
    the next time round a loop came from there.
    """
    timeline = asked.timeline
    at, left = timeline.nodes.place_of(end.node), timeline.info(end.node).created
    for node in timeline.nodes[at + 1 : at + 1 + _COPIES_LOOKED_AT]:
        info = timeline.info(node)
        if (info.created.op, info.created.stack) == (left.op, left.stack):
            return
        if node in leading and info.created.kind == "constant" and _comes_back(timeline, end, info):
            text = f"{label_at(timeline, node)} is new data to autograd: it came back without its history"
            part = Finding("copied", text, info.born, node, at=innermost(info))
            yield replace(end, parts=(part,), at=innermost(info), fix="compute it with tensors, without numpy between")
            return


def _comes_back(timeline: Timeline, end: Finding, info: NodeInfo) -> bool:
    left, back = timeline.info(end.node).created.outputs[0], info.created.outputs[0]
    at = innermost(info)
    same_line = end.at is not None and at is not None and (at.path, at.line) == (end.at.path, end.at.line)
    same_shape = left.value is not None and back.value is not None and left.value.shape == back.value.shape
    return left.storage == back.storage or same_line or same_shape


CUT = Kind("cut", "warning", "every way from the loss to the leaf is cut: detach, no_grad, .data, integers, numpy")
UNUSED = Kind("unused", "warning", "a leaf that requires a gradient and was used in nothing")
NOT_REACHED = Kind(
    "not-reached", "warning", "a leaf that was used, but not for what backward was called on", ("missing",), no_way
)
