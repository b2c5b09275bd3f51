"""Hooks on the gradients of a backward pass: which ran, in what order, and what each one changed.

A hook of a tensor, or of a node before its rule, receives the incoming gradient and may replace it. A hook of a node
after its rule may replace what the rule sends to an input. So a gradient is the sum of its contributions only until the
first hook: ``[2 2 2]`` arrives, the hook ``mask`` changes it to ``[2 0 0]``, and backward continues with that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gviz.events import HookRan
from gviz.explain.display_names import label
from gviz.explain.finding import Finding
from gviz.explain.grad_history import is_zero, uniform_effect, uniform_factor
from gviz.source.call_stack import Frame
from gviz.trace.graph_state import Contribution
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import file_line, shown
from gviz.values.value import Value
from gviz.values.value_text import grad

HOOK_FIX = "return the gradient from the hook as it should go on, or remove the hook with its handle"

MOST_HOOKS = 20
"""The most hooks of one gradient that are listed; further ones are counted."""


@dataclass(frozen=True, slots=True)
class HookEffect:
    """A hook that ran, by event `seq`: the gradient `before` it and `after` it (None: unknown).

    `changed` is true if it replaced the gradient or wrote to it.
    """

    seq: int
    ran: HookRan
    before: Value | None
    after: Value | None

    @property
    def changed(self) -> bool:
        """Whether it returned another gradient."""
        return self.ran.value is not None

    @property
    def is_zeroing(self) -> bool:
        """Whether it returned zero for a gradient that is known not to have been zero."""
        before = self.before
        known = before is not None and before.is_known
        return self.changed and known and is_zero(self.after) and not is_zero(before)

    def factor(self, timeline: Timeline) -> float | None:
        """Return the one number by which the hook multiplied every element; None if there is none."""
        return uniform_factor(timeline, self.before, self.after) if self.changed else None

    def is_opposite(self, timeline: Timeline) -> bool:
        """Return whether each element changed its sign, which no hook does by accident."""
        before, after = (timeline.array(one) if one is not None else None for one in (self.before, self.after))
        if not self.changed or before is None or after is None or before.shape != after.shape:
            return False
        return bool(before.any()) and bool((before == -after).all())

    def at(self, timeline: Timeline) -> Frame | None:
        """Return the line that registered it, if it is known."""
        return next(iter(timeline.stack(self.ran.stack)), None) if self.ran.stack else None

    def registered(self, timeline: Timeline) -> str:
        """Return ``, registered at demo.py:4``; empty if the line is unknown."""
        at = self.at(timeline)
        return f", registered at {file_line(at.path, at.line)}" if at is not None else ""

    def words(self, timeline: Timeline) -> str:
        """Return ``the hook mask changed [2 2 2] to [2 0 0]``, with a change that is the same for all elements."""
        name = f"the hook {shown(self.ran.name)}"
        if self.ran.when == "post accumulate":
            return f"{name} ran after that was added"
        if not self.changed:
            return f"{name} ran and changed nothing"
        if self.before is None:
            return f"{name} put {grad(self.after)} in its place"
        effect = uniform_effect(timeline, self.before, self.after)
        return f"{name} changed {grad(self.before)} to {grad(self.after)}" + (f" ({effect})" if effect else "")


def hooks_of(timeline: Timeline, node: int, output_nr: int, pass_nr: int, upto: int) -> list[HookEffect]:
    """Return the hooks that received the gradient of an output in a pass, up to event `upto`, in order of time."""
    effects = []
    for seq in timeline.events_of(node):
        ran = timeline.event(seq) if seq <= upto else None
        if not isinstance(ran, HookRan) or ran.pass_nr != pass_nr or ran.when == "post":
            continue
        of_all = ran.when == "pre" and ran.value is None  # a node's hook receives all outputs, and changed none of them
        if ran.output_nr != output_nr and not of_all:
            continue
        state = timeline.at(seq - 1).state(node)
        outputs = state.outputs if state is not None and state.pass_nr == pass_nr else ()
        before = outputs[output_nr].incoming if output_nr < len(outputs) else None
        after = ran.value if ran.value is not None and ran.when != "post accumulate" else before
        effects.append(HookEffect(seq, ran, before, after))
    return effects


def hook_findings(timeline: Timeline, node: int, output_nr: int, pass_nr: int, upto: int) -> Iterator[Finding]:
    """Yield a row for each hook that received the incoming gradient of an output in a pass."""
    effects = hooks_of(timeline, node, output_nr, pass_nr, upto)
    for effect in effects[:MOST_HOOKS]:
        text = f"{effect.words(timeline)}{effect.registered(timeline)}"
        yield Finding("hook", text, effect.seq, node, at=effect.at(timeline))
    if len(effects) > MOST_HOOKS:
        yield Finding("more", f"and {len(effects) - MOST_HOOKS} more hooks")


def hook_finding(timeline: Timeline, effect: HookEffect) -> Finding:
    """What a hook did, the node whose gradient it got, and where it was registered."""
    place = f"{effect.words(timeline)} at {label(timeline, effect.ran.node)}{effect.registered(timeline)}"
    return Finding("hook", place, effect.seq, effect.ran.node, at=effect.at(timeline))


def source_hooks(timeline: Timeline, part: Contribution) -> Iterator[Finding]:
    """Yield the hooks that changed a contribution on its way: those of its source node, before and after its rule."""
    if not part.source or part.source not in timeline.nodes:
        return
    pass_nr = timeline.at(part.seq).pass_nr
    before = [
        effect
        for nr in range(len(timeline.info(part.source).created.outputs))
        for effect in hooks_of(timeline, part.source, nr, pass_nr, part.seq)
        if effect.changed
    ]
    for effect in before[:MOST_HOOKS]:
        at, place = label(timeline, part.source), effect.registered(timeline)
        text = f"before that rule, {effect.words(timeline)} at {at}{place}"
        yield Finding("hook", text, effect.seq, part.source)
    for effect in hooks_after_rule(timeline, part):
        yield Finding(
            "hook", f"after that rule, {effect.words(timeline)}{effect.registered(timeline)}", effect.seq, part.source
        )


def hooks_after_rule(timeline: Timeline, part: Contribution) -> Iterator[HookEffect]:
    """Yield the hooks of a node that replaced the result of its rule for the input of this contribution.

    The events number the results of a rule. A number in the program (the 3 of ``x * 3``) counts or not, as PyTorch does
    it for that operation. So the input is identified by the gradient that was sent: it is the result of the last hook.
    """
    pass_nr = timeline.at(part.seq).pass_nr
    by_number: dict[int, list[HookEffect]] = {}
    for seq in timeline.events_of(part.source):
        ran = timeline.event(seq) if seq <= part.seq else None
        if isinstance(ran, HookRan) and (ran.pass_nr, ran.when) == (pass_nr, "post") and ran.value is not None:
            by_number.setdefault(ran.output_nr, []).append(HookEffect(seq, ran, None, ran.value))
    for effects in by_number.values():
        last = effects[-1].after
        if last == part.value and part.value.is_known:
            yield from effects


def zeroing_hook(timeline: Timeline, node: int, pass_nr: int, upto: int) -> HookEffect | None:
    """Return the hook that changed a nonzero gradient of a node to zero, or None."""
    outputs = range(len(timeline.info(node).created.outputs))
    effects = (effect for nr in outputs for effect in hooks_of(timeline, node, nr, pass_nr, upto))
    return next((one for one in effects if one.is_zeroing), None)


def zeroing_hook_after_rule(timeline: Timeline, part: Contribution) -> HookEffect | None:
    """Return the hook that replaced the result of a rule, which is then unknown, with zero; or None."""
    effects = hooks_after_rule(timeline, part)
    return next((one for one in effects if is_zero(one.after)), None)
