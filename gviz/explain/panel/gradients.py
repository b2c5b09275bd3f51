"""The gradient half of a panel: what came in, what ``.grad`` holds, and what goes out to every input."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.explain.accumulation import accumulation
from gviz.explain.contributions import origin
from gviz.explain.names import label
from gviz.explain.panel.fact import LIST, Fact, NodeView, Part, event
from gviz.explain.panel.making import number_style, numbered, of_output, own_name, shapes_behind
from gviz.explain.shares import Share, shares
from gviz.explain.standing import as_at
from gviz.trace.state import Contribution, NodeState, OutputState
from gviz.value_text import FEW, SOME, addition, full, grad, share, short
from gviz.values import Value

IN_BRANCH = "not known in the branch"


def incoming(view: NodeView, state: NodeState) -> Iterator[Fact]:
    """What has arrived in the latest pass, contribution by contribution."""
    for nr, output in enumerate(state.outputs if state.requires_grad else ()):
        yield Fact(of_output("grad in", nr, state), (*own_name(view, nr), *_arrived(view, output)), nr)
        if view.full or len(output.parts) > 1:
            yield from _contributions(view, nr, output)


def _arrived(view: NodeView, output: OutputState) -> Iterator[Part]:
    value = output.incoming
    if value is None:
        yield Part("none yet", "muted")
        return
    text = full(value) if view.full and FEW < value.size <= SOME else grad(value)
    yield Part(text, number_style(value, "grad"), output.parts[-1].seq if output.parts else 0)
    if output.expected > 1:
        yield Part(f"  ({len(output.parts)} of {output.expected})", "muted")
    elif len(output.parts) == 1 and not view.full:
        yield Part(f"  from {_source(view, output.parts[0])}", "muted")


def _contributions(view: NodeView, nr: int, output: OutputState) -> Iterator[Fact]:
    """Every share of a sum, in the order of arrival."""
    for at, part in enumerate(output.parts[:LIST], 1):
        number = Part(share(part.value), "grad", part.seq)
        if view.full:
            yield Fact("+=", (number, Part(f"  from {_rule_of(view, part)}, "), event(part.seq)), nr, at)
        else:
            yield Fact("+=", (number, Part(f"  from {_source(view, part)}", "muted")), nr, at)
    if len(output.parts) > LIST:
        yield Fact("", (Part(f"and {len(output.parts) - LIST} more contributions", "muted"),), nr, LIST + 1)


def _source(view: NodeView, part: Contribution) -> str:
    """Where a share came from: a node, or the call of ``backward()`` itself."""
    return label(view.timeline, part.source) if part.source else "backward()"


def _rule_of(view: NodeView, part: Contribution) -> str:
    return origin(view.timeline, part) if part.source else "backward()"


def held(view: NodeView, state: NodeState) -> Iterator[Fact]:
    """``.grad`` where the node can have one."""
    if not state.requires_grad:
        return
    leaf = as_at(view.info, state).created.kind in ("leaf", "parameter")
    for nr, output in enumerate(state.outputs):
        if leaf or output.grad is not None:
            yield Fact(of_output(".grad", nr, state), (*own_name(view, nr), *_held(view, output)), nr)


def _held(view: NodeView, output: OutputState) -> Iterator[Part]:
    """``.grad``, and what a pass found there: ``3 += 3 -> 6  (the former since pass 1)``."""
    value = output.grad
    if value is None:
        yield Part("None", "muted", output.grad_seq)
        return
    was = accumulation(view.timeline, view.node, output)
    text = full(value) if view.full else short(value)
    if was is None:
        yield Part(text, number_style(value, "grad"), output.grad_seq)
    else:
        yield from _addition(was.before, was.part, value, to=output.grad_seq)
        more = text.removeprefix(short(value))
        yield Part(("" if more != text else "  ") + more if view.full else "", "grad")
        yield Part(f"  (the former since pass {was.since})" if was.since else "", "muted")
    if view.full and output.grad_seq:
        yield from (Part(", ", "muted"), event(output.grad_seq))


def outgoing(view: NodeView, state: NodeState) -> Iterator[Fact]:
    """For every input the rule with numbers in it, and old += new -> sum; before the rule has run, the rule alone.

    With a branch its numbers stand there, and below them the recorded ones where they differ.
    """
    created = view.info.created
    if created.kind != "op" or created.untracked:
        return
    for sent in shares(view.timeline, view.moment, view.node):
        there = sent if view.branch is None else view.branch.get(sent.operand.slot)
        yield from _rule(sent, there)
        if sent.part is not None and _is_told(sent.part):
            yield from _sum(sent, there)
        elif sent.part is not None:
            yield Fact(
                "incoming", (Part(f"{sent.nth} of {sent.expected}, without numbers", "muted"),), sent.operand.slot, 2
            )


def _is_told(value: Value) -> bool:
    """Whether anything of its elements is known: not in a graph before its numbers, nor where none are stored."""
    return not value.size or value.statistics() is not None


def _rule(sent: Share, there: Share | None) -> Iterator[Fact]:
    """``to #1 x``: ``g * x = 1 * 5 = 5``, and where the recording had other numbers ``recorded 1 * 3 = 3``."""
    slot, name = sent.operand.slot, f"to {numbered(sent.operand)}" if sent.operand.node else "to ?"
    if sent.missing:
        yield Fact(name, (Part(sent.missing, "muted"),), slot)
        return
    here, branch = _numbers(sent), IN_BRANCH if there is None else _numbers(there)
    text = " = ".join(filter(None, [sent.summed, branch]))
    yield Fact(name, (Part(text), *shapes_behind(sent.shapes)), slot)
    if here != branch:
        yield Fact("recorded", (Part(here),), slot, 1)


def _numbers(sent: Share) -> str:
    """The rule with numbers, and what comes of it where that is few."""
    if sent.part is not None and not _is_told(sent.part):
        return ""
    steps = [sent.numbers] if not sent.reduced and sent.numbers != sent.rule else []
    if sent.part is not None and sent.part.size <= FEW and short(sent.part) != sent.numbers:
        steps.append(short(sent.part))
    return " = ".join(steps)


def _sum(sent: Share, there: Share | None) -> Iterator[Fact]:
    """``incoming 1 += 3 -> 4  (2 of 2)``; below it the recorded one."""
    slot, total = sent.operand.slot, _arrival(sent if there is None or there.part is None else there, sent.event)
    of = Part(f"  ({sent.nth} of {sent.expected})", "muted", close=f" ({sent.nth}/{sent.expected})")
    yield Fact("incoming", (*total, of) if sent.expected > 1 else total, slot, 2)
    recorded = _arrival(sent, sent.event)
    if recorded != total:
        yield Fact("recorded", recorded, slot, 3)


def _arrival(sent: Share, seq: int) -> tuple[Part, ...]:
    """What arrives, and what it is added to; it leads to the event of the recording."""
    assert sent.part is not None  # it has been sent
    if sent.before is None or sent.after is None:
        return (Part(share(sent.part), "grad", seq),)
    return tuple(_addition(sent.before, sent.part, sent.after, seq))


def _addition(before: Value, part: Value, after: Value, seq: int = 0, to: int = 0) -> Iterator[Part]:
    """``1 += 3 -> 4``; what was added leads to event `seq`, what has come of it to event `to`."""
    old, new, total = addition(before, part, after)
    yield from (Part(old, "grad"), Part(" += "), Part(new, "grad", seq), Part(" -> "))
    yield Part(total, number_style(after, "sum"), to)
