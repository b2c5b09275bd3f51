"""The findings that a check leaves out, because they only show what follows from another finding.

`_RULES` is read from top to bottom: each line leaves out findings of some kinds if there is a finding of a cause's kind
that is related to them. What one line has left out is no cause for the lines below it.

Example. A learning rate of 50 makes the loss diverge, units die, and a nan appears. The line "large-steps" leaves all
of it out. If gradients also add up, because nothing clears them, the line above it has left out "large-steps".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from gviz.events import ScopeEntered
from gviz.explain.finding import Checked, Finding, whole
from gviz.explain.findings.gradient_values.nan_remedies import DIVERGING, LEAPT
from gviz.explain.findings.training_loop.rising_rate import RATE_THAT_WORKED
from gviz.explain.source_frames import innermost
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline

OF_COPIES = frozenset(["never-stepped", "unused", "not-reached", "not-cleared", "unchanged", "cut"])
"""Kinds that show what follows if the gradient goes to a copy of a model, of the copy's parameters or the model's."""


def without_consequences(timeline: Timeline, found: Sequence[Checked]) -> list[Checked]:
    """Return the findings of a check without those that only show what follows from another one."""
    rest = list(found)
    for step in _RULES:
        rest = step(rest) if not isinstance(step, _Rule) else step.applied(timeline, rest)
    return rest


@dataclass(frozen=True, slots=True)
class _Rule:
    """A finding of one of the kinds `causes` leaves out those of the kinds `left_out` that are related to it."""

    causes: tuple[str, ...]
    left_out: frozenset[str]
    is_related: Callable[[Timeline, Finding, Finding], bool]
    """Called with the finding that may be left out, and the cause."""
    has_to_be_sure: bool = False
    """Whether a note is no cause."""

    def applied(self, timeline: Timeline, found: Sequence[Checked]) -> list[Checked]:
        causes = [
            one.finding
            for one in found
            if one.finding.kind in self.causes and not (self.has_to_be_sure and one.level == "note")
        ]
        return [one for one in found if not self._leaves_out(timeline, one.finding, causes)]

    def _leaves_out(self, timeline: Timeline, finding: Finding, causes: Sequence[Finding]) -> bool:
        return finding.kind in self.left_out and any(
            cause is not finding and self.is_related(timeline, finding, cause) for cause in causes
        )


# How a finding is related to its cause


def _anywhere(timeline: Timeline, finding: Finding, cause: Finding) -> bool:
    return True


def _on_its_line(timeline: Timeline, finding: Finding, cause: Finding) -> bool:
    return _line(finding.at) == _line(cause.at)


def _where_its_node_is_made(timeline: Timeline, finding: Finding, cause: Finding) -> bool:
    made = innermost(timeline.info(cause.node)) if cause.node else None
    return _line(finding.at) in (_line(cause.at), _line(made))


def _after_the_rate_that_worked(timeline: Timeline, finding: Finding, rate: Finding) -> bool:
    worked = next((each.event for each in rate.numbers if each.name == RATE_THAT_WORKED), rate.event)
    return finding.event > worked


def _has_part(kind: str) -> Callable[[Timeline, Finding, Finding], bool]:
    """Return the relation to a cause that has a part of this kind, such as the method that a line does not call."""
    return lambda timeline, finding, cause: any(part.kind == kind for part in cause.parts)


def _of_its_uncalled_backward(timeline: Timeline, finding: Finding, step: Finding) -> bool:
    """Return whether a step without gradients already names the line that does not call ``backward``."""
    uncalled = any(part.kind == "uncalled" for part in step.parts)
    return uncalled and any(part.kind == "without-backward" for part in finding.parts)


def _on_its_path(timeline: Timeline, finding: Finding, cause: Finding) -> bool:
    """Return whether the tensor of a finding lies on the path of the cause's, or in the same call of a model."""
    if not (finding.node and cause.node):
        return False
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


def _of_its_mask(timeline: Timeline, finding: Finding, cause: Finding) -> bool:
    """Return whether a finding follows from a mask after softmax: -1e9 makes large numbers, weights of 0 do not."""
    if not any(part.kind == "mask" for part in cause.parts):
        return False
    if finding.kind in _OF_NAN:
        return bool(finding.node and cause.node) and finding.event > cause.event
    return _on_its_path(timeline, finding, cause)


def _model(scopes: Mapping[int, ScopeEntered], scope: int) -> int:
    """Return the outermost module call around a module call; 0 outside of all modules."""
    while scope in scopes and scopes[scope].parent in scopes:
        scope = scopes[scope].parent
    return scope if scope in scopes else 0


def _line(at: Frame | None) -> tuple[str, int] | None:
    return (at.path, at.line) if at is not None else None


def _without_nan_of_masks(found: Sequence[Checked]) -> list[Checked]:
    """Return the findings without the nan of a wrong mask or softmax: a row that is hidden as a whole makes them.

    Then the mask, or the dimension of the softmax, is surely wrong, and every other nan or infinity follows from it.
    """
    causes = [
        one.finding for one in found if one.finding.kind in ("inverted-mask", "softmax-dim", "masked-after-softmax")
    ]
    for first in (one.finding for one in found if one.finding.kind == "nan-born"):
        became = {part.node for part in whole(first)}
        wrong = next((one for one in causes if _line(one.at) == _line(first.at) or one.node in became), None)
        if wrong is not None:
            rest = [one for one in found if one.finding.kind not in _OF_NAN or one.finding.event < first.event]
            return [replace(one, level="warning") if one.finding is wrong else one for one in rest]
    return list(found)


def _of_growth(timeline: Timeline, finding: Finding, cause: Finding) -> bool:
    """Return whether a finding is one of numbers that grew: a nan only if the reason of it is that they did."""
    return finding.event > cause.event and (finding.kind not in _OF_NAN or finding.fix in (DIVERGING, LEAPT))


def _wrong_dimension_of_vanishing(found: Sequence[Checked]) -> list[Checked]:
    """Return the findings without the gradient that dies out at a softmax over a wrong dimension.

    It shows that the softmax does harm: a note about the dimension becomes as sure as the finding that it replaces.
    """
    wrong = {_line(one.finding.at) for one in found if one.finding.kind == "softmax-dim" and one.finding.at}
    died = {
        _line(one.finding.at): one
        for one in found
        if one.finding.kind == "vanishing" and one.finding.at and _line(one.finding.at) in wrong
    }
    rest = [one for one in found if one not in died.values()]
    return [
        replace(one, level="warning")
        if one.finding.kind == "softmax-dim"
        and one.level == "note"
        and (other := died.get(_line(one.finding.at))) is not None
        and other.level != "note"
        else one
        for one in rest
    ]


def _not_falling_only_alone(found: Sequence[Checked]) -> list[Checked]:
    """Return the findings without a loss that does not fall, if there are others: they are the reason, or may be."""
    rest = [one for one in found if one.finding.kind != "not-falling"]
    return rest or list(found)


_OF_NAN = frozenset(["nan-born", "nan-born-backward"])
_OF_LARGE_NUMBERS = _OF_NAN | {"nan-seed", "exploding", "vanishing", "diverging", "dead-units"}
_OF_LARGE_STEPS = _OF_LARGE_NUMBERS | {"masked", "saturated"}
_OF_CONSTANT_LOSS = ("unchanged", "vanishing", "cancelled", "masked", "summed-loss", "not-falling")
_OF_MANY_STEPS = (
    "not-cleared", "unbounded-loss", "counted-again", "squared-rate", "rising-rate", "repeated-step", "scaled-step",
    "repeated-parameter",
)  # fmt: skip
"""Kinds that make steps too large whatever the learning rate is."""


def _rule(
    causes: str | tuple[str, ...],
    is_related: Callable[[Timeline, Finding, Finding], bool],
    *left_out: str,
    has_to_be_sure: bool = False,
) -> _Rule:
    return _Rule((causes,) if isinstance(causes, str) else causes, frozenset(left_out), is_related, has_to_be_sure)


_RULES: tuple[_Rule | Callable[[Sequence[Checked]], list[Checked]], ...] = (
    # A result that is constant, or parameters that no step moves: what they lead to on their line
    _rule("one-element", _where_its_node_is_made, "masked", "cancelled"),
    _rule("never-stepped", _on_its_line, "lost-update"),
    _rule("constant-term", _has_part("root"), *_OF_CONSTANT_LOSS),
    # What lies on the path of a wrong operation
    _rule("inverted-mask", _on_its_path, "vanishing", "cancelled", "unchanged"),
    _rule("unbounded-loss", _on_its_path, "exploding", "vanishing"),
    _rule("diverging", _on_its_path, "exploding"),
    _rule("opposed-passes", _on_its_path, "unchanged"),
    _rule("early-mean", _on_its_path, "vanishing", "cancelled", "unchanged"),
    _rule(("one-element", "written-gradient"), _on_its_path, "vanishing", "cancelled", "masked"),
    _rule("masked-after-softmax", _of_its_mask, "exploding", "vanishing", *_OF_NAN),
    # A method that a line does not call
    _rule("empty-step", _of_its_uncalled_backward, "not-called"),
    _rule("not-called", _has_part("without-step"), "never-stepped"),
    _rule("not-called", _has_part("without-backward"), "unused-losses", "graphs-kept"),
    _rule("not-called", _has_part("without-zero-grad"), "not-cleared", "repeated-step"),
    _rule("not-called", _has_part("without-eval"), "dropout-in-evaluation"),
    _rule("not-called", _has_part("without-train"), "trained-in-eval"),
    # Numbers that grow. Steps are too large for another reason if gradients add up, or if the loss has no least value.
    _without_nan_of_masks,
    _wrong_dimension_of_vanishing,
    _rule("no-log-probabilities", _of_growth, "large-steps", *_OF_LARGE_NUMBERS, has_to_be_sure=True),
    _rule("rising-rate", _after_the_rate_that_worked, *_OF_LARGE_NUMBERS, has_to_be_sure=True),
    _rule("large-start", _anywhere, "large-steps", *_OF_LARGE_STEPS, has_to_be_sure=True),
    _rule(_OF_MANY_STEPS, _anywhere, "large-steps"),
    _rule("repeated-parameter", _anywhere, *_OF_LARGE_STEPS),
    _rule("large-steps", _anywhere, *_OF_LARGE_STEPS),
    _rule(("softmax-dim", "no-log-probabilities"), _on_its_line, "default-dim"),
    _not_falling_only_alone,
)
