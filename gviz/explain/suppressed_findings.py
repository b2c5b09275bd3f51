"""The findings that a check leaves out, because they only show what follows from another finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gviz.events import ScopeEntered
from gviz.explain.finding import Checked, Finding, whole
from gviz.explain.findings.training_loop.rising_rate import RATE_THAT_WORKED
from gviz.explain.source_frames import innermost
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline


def without_consequences(timeline: Timeline, found: Sequence[Checked]) -> list[Checked]:
    """Return the findings of a check without those that only show what follows from another one."""
    of_one = [one.finding for one in found if one.finding.kind == "one-element"]
    constant = {at and (at.path, at.line) for one in of_one for at in (one.at, _site(timeline, one.node))}
    rest = [one for one in found if one.finding.kind not in _ZEROS or _line(one.finding) not in constant]
    unused = {_line(one.finding) for one in rest if one.finding.kind == "never-stepped"}  # it names the parameters
    rest = [one for one in rest if one.finding.kind != "lost-update" or _line(one.finding) not in unused]
    causes = [one.finding for one in rest if one.finding.kind in _CONSEQUENCES]
    rest = [one for one in rest if not any(_follows(timeline, one.finding, cause) for cause in causes)]
    if any(one.finding.kind == "empty-step" and _NAMED in one.finding.fix for one in rest):
        rest = [one for one in rest if one.finding.kind != "not-called" or not one.finding.fix.endswith("backward()")]
    uncalled = {one.finding.fix.rpartition(".")[2] for one in rest if one.finding.kind == "not-called"}
    rest = [one for one in rest if not any(one.finding.kind in _UNCALLED.get(name, ()) for name in uncalled)]
    rest = _without_nan_of_masks(rest)
    rates = [one.finding for one in rest if one.finding.kind == "rising-rate" and one.level != "note"]
    rest = [one for one in rest if not any(_is_of_rate(one.finding, rate) for rate in rates)]
    rest = _without_nan_of_large_steps(rest)
    named = {_line(one.finding) for one in rest if one.finding.kind in ("softmax-dim", "no-log-probabilities")}
    rest = [one for one in rest if one.finding.kind != "default-dim" or _line(one.finding) not in named]
    if any(one.finding.kind != "not-falling" for one in rest):  # the others are the reason, or may be
        rest = [one for one in rest if one.finding.kind != "not-falling"]
    return rest


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


def _is_of_rate(finding: Finding, rate: Finding) -> bool:
    """Return whether a finding only shows that steps are too large, after a rising rate has passed what works."""
    worked = next((each.event for each in rate.numbers if each.name == RATE_THAT_WORKED), rate.event)
    return finding.kind in _OF_RISING_RATE and finding.event > worked


_OF_RISING_RATE = _OF_NAN | {"nan-seed", "exploding", "vanishing", "diverging", "dead-units"}


def _without_nan_of_large_steps(found: Sequence[Checked]) -> list[Checked]:
    """Return the findings without what follows from steps that are too large.

    Steps are too large for another reason if gradients add up, or if the loss has no least value: then it is the nan
    that is reported. First weights that are too large are the reason of all of it.
    """
    if any(one.finding.kind == "large-start" and one.level != "note" for one in found):
        return [one for one in found if one.finding.kind not in _OF_LARGE_STEPS | {"large-steps"}]
    steps = next((one for one in found if one.finding.kind == "large-steps"), None)
    if steps is None:
        return list(found)
    if any(one.finding.kind in _REASONS_OF_LARGE_STEPS for one in found):
        return [one for one in found if one is not steps]
    return [one for one in found if one.finding.kind not in _OF_LARGE_STEPS]


_REASONS_OF_LARGE_STEPS = frozenset(
    ["not-cleared", "unbounded-loss", "counted-again", "squared-rate", "rising-rate", "repeated-step", "scaled-step"]
)
_OF_LARGE_STEPS = _OF_NAN | {"nan-seed", "exploding", "vanishing", "diverging", "dead-units", "masked", "saturated"}


_ZEROS = frozenset(["masked", "cancelled"])
"""Kinds that show where a gradient became zero. They add nothing where the result is constant anyway."""


_UNCALLED = {
    "step()": ("never-stepped",),
    "backward()": ("unused-losses", "graphs-kept"),
    "zero_grad()": ("not-cleared", "repeated-step"),
    "eval()": ("dropout-in-evaluation",),
    "train()": ("trained-in-eval",),
}
"""By method that a line does not call: kinds that only show what follows from it."""

_NAMED = "does not call it"
"""A part of the fix of a step without gradients, if it names the line that does not call ``backward``."""


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


OF_COPIES = frozenset(["never-stepped", "unused", "not-reached", "not-cleared", "unchanged", "cut"])
"""Kinds that show what follows if the gradient goes to a copy of a model, of the copy's parameters or the model's."""
