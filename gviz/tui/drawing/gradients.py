"""The gradient half of the node panel: what came in, and what goes out to every input."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gviz.explain.accumulation import accumulation
from gviz.explain.arithmetic import Share, shares
from gviz.explain.names import label
from gviz.explain.standing import as_at
from gviz.numbers import grad, share, short
from gviz.trace.moment import Moment
from gviz.trace.state import Contribution, NodeState, OutputState
from gviz.trace.timeline import Timeline
from gviz.tui.lines import TIED, Line, Span, cells, labelled, line, link, wrapped

UNKNOWN = "not known in the branch"


def gradient_in(timeline: Timeline, moment: Moment, node: int, state: NodeState, width: int) -> Iterator[Line]:
    """What has arrived in the latest pass, with its shares, and ``.grad`` where the node can have one."""
    if not state.requires_grad:
        return
    for nr, output in enumerate(state.outputs):
        suffix = f" {nr}" if len(state.outputs) > 1 else ""
        yield from labelled(f"grad in{suffix}", list(_incoming(timeline, output)), width, 8)
        if len(output.parts) > 1:
            yield from _parts(timeline, output, width)
        leaf = as_at(timeline.info(node), state).created.kind in ("leaf", "parameter")
        if leaf or output.grad is not None:
            yield from labelled(".grad", list(_held(timeline, node, output)), width, 8)


def gradients_out(
    timeline: Timeline, moment: Moment, node: int, width: int, branch: Mapping[int, Share] | None = None
) -> Iterator[Line]:
    """For every input: the rule with numbers in it, and old += new -> sum; before the rule has run, the rule alone.

    With a `branch` its numbers stand there, and below them the recorded ones where they differ.
    """
    info = timeline.info(node)
    if info.created.kind != "op" or info.created.untracked:
        return
    for sent in shares(timeline, moment, node):
        there = sent if branch is None else branch.get(sent.operand.slot)
        yield from _rule(sent, there, width)
        if sent.event:
            yield from _sum(sent, there, width)


def _incoming(timeline: Timeline, output: OutputState) -> Iterator[Span]:
    if output.incoming is None:
        yield "none yet", "muted"
        return
    seq = output.parts[-1].seq if output.parts else 0
    yield grad(output.incoming), link("grad", seq)
    if len(output.parts) == 1 and output.expected <= 1:
        yield f"  from {_origin(timeline, output.parts[0])}", "muted"
    elif output.expected > 1:
        yield f"  ({len(output.parts)} of {output.expected})", "muted"


def _held(timeline: Timeline, node: int, output: OutputState) -> Iterator[Span]:
    """``.grad``, and what a pass found there: ``3 += 3 -> 6  (3 since pass 1)``."""
    text = short(output.grad) if output.grad is not None else "None"
    added = accumulation(timeline, node, output)
    if added is not None:
        yield f"{share(added.before)} += {share(added.part)} -> ", "grad"
    yield text, link("sum" if added is not None else "grad", output.grad_seq)
    if added is not None and added.since:
        yield f"  ({share(added.before)} since pass{TIED}{added.since})", "muted"


def _parts(timeline: Timeline, output: OutputState, width: int) -> Iterator[Line]:
    """Every share of a sum, in the order of arrival."""
    for part in output.parts[:6]:
        spans: list[Span] = [
            (share(part.value), link("grad", part.seq)),
            (f"  from {_origin(timeline, part)}", "muted"),
        ]
        yield from labelled("    +", spans, width, 8)
    if len(output.parts) > 6:
        yield from labelled("", [(f"and {len(output.parts) - 6} more shares", "muted")], width, 8)


def _origin(timeline: Timeline, part: Contribution) -> str:
    """Where a share came from: a node, or the call of ``backward()`` itself."""
    return label(timeline, part.source) if part.source else "backward()"


def _rule(sent: Share, there: Share | None, width: int) -> Iterator[Line]:
    """``to #1 x: g * x = 1 * 5 = 5``, and where the recording had other numbers ``recorded 1 * 3 = 3``."""
    operand = sent.operand
    name = f" {operand.name}" if operand.name and not operand.name.startswith("#") else ""
    head: list[Span] = [(f"to #{operand.node}{name}" if operand.node else "to ?", "key"), (": ", "")]
    if sent.missing:
        yield from wrapped(line(*head, (sent.missing, "muted")), width, 3)
        return
    here, branch = _numbers(sent), UNKNOWN if there is None else _numbers(there)
    rule = [_summed(sent)] if sent.rule else []
    yield from wrapped(line(*head, " = ".join([*rule, *filter(None, [branch])])), width, 3)
    if here != branch:
        yield from wrapped(line("   ", ("recorded ", "muted"), here), width, 3)


def _numbers(sent: Share) -> str:
    """The rule with numbers, and what comes of it where that is few."""
    steps = [sent.numbers] if not sent.reduced and sent.numbers != sent.rule else []
    if sent.part is not None and sent.part.size <= 4 and short(sent.part) != sent.numbers:
        steps.append(short(sent.part))
    return " = ".join(steps)


def _summed(sent: Share) -> str:
    """The rule, and for an input that was broadcast the sum that gives it its own shape back."""
    if not sent.reduced:
        return sent.rule
    simple = re.fullmatch(r"\w+", sent.rule)
    return f"sum of {sent.rule if simple else f'({sent.rule})'} over {sent.reduced}"


def _sum(sent: Share, there: Share | None, width: int) -> Iterator[Line]:
    """``incoming 1 += 3 -> 4 (2 of 2)``, closer together where the panel is narrow; below it the recorded one."""
    if sent.part is None:
        return
    several = sent.expected > 1
    total = _addition(sent if there is None or there.part is None else there, sent.event)
    wide = line("   incoming ", *total, (f"  ({sent.nth} of {sent.expected})" if several else "", "muted"))
    close = line(" incoming ", *total, (f" ({sent.nth}/{sent.expected})" if several else "", "muted"))
    yield from wrapped(wide if cells(wide) <= width else close, width, 3)
    recorded = _addition(sent, sent.event)
    if recorded != total:
        yield from wrapped(line("   ", ("recorded ", "muted"), *recorded), width, 3)


def _addition(sent: Share, event: int) -> tuple[Span, ...]:
    """``1 += 3 -> 4``; what was added leads to the event of the recording."""
    old = share(sent.before) if sent.before is not None else "0"
    new: Span = (share(sent.after) if sent.after is not None else "", "sum" if sent.expected > 1 else "grad")
    return (old, "grad"), (" += ", ""), (share(sent.part) if sent.part else "", link("grad", event)), (" -> ", ""), new
