"""The line of a program that makes an optimizer, with the expression of its learning rate."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gviz.events import OptimizerStarted, OptimizerStepped
from gviz.explain.program_text import (
    ProgramText,
    Statement,
    arguments,
    assigned_parts,
    called_name,
    frame_of_part,
    function_name,
    own_programs,
    receiver,
)
from gviz.explain.source_frames import own_frames
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Construction:
    """A call that makes an optimizer, and the names that its statement assigns."""

    text: ProgramText
    statement: Statement
    call: ast.Call
    targets: frozenset[str]

    @property
    def line(self) -> Frame:
        """The call."""
        return frame_of_part(self.text, self.call, function_name(self.statement))

    @property
    def rate_line(self) -> Frame:
        """The learning rate in the call, ``lr=0.1``; the whole call without one."""
        return frame_of_part(self.text, _rate(self.call) or self.call, function_name(self.statement))


def rate_line(timeline: Timeline, step: OptimizerStarted) -> Frame | None:
    """Return the learning rate in the line that makes the optimizer of a step: ``lr=0.1``; None if it is unknown.

    Without a learning rate in the call, it is the whole call.
    """
    made = construction_of(timeline, step)
    return made.rate_line if made is not None else None


def construction_of(timeline: Timeline, step: OptimizerStarted | OptimizerStepped) -> Construction | None:
    """Return the call that makes the optimizer of a step; None if it is unknown.

    If several optimizers have the same class, it is the one with the name of the step, or else None.
    """
    known = [one for text in own_programs(timeline) for one in constructions(text, step.kind)]
    if len(known) > 1:
        names = set(_names(timeline, own_frames(timeline.stack(step.stack))))
        known = [one for one in known if one.targets & names]
    return known[0] if len(known) == 1 else None


def constructions(text: ProgramText, kind: str) -> Iterator[Construction]:
    """Yield the calls in a file that make an optimizer of a class, in order."""
    for one in text.statements:
        for call in one.parts(ast.Call):
            if called_name(call) == kind:
                targets = frozenset(ast.unparse(target).split(".")[-1] for target in assigned_parts(one.node))
                yield Construction(text, one, call, targets)


def _names(timeline: Timeline, frames: Sequence[Frame]) -> Iterator[str]:
    """Yield what the line of a step may call its optimizer: ``opt.step()``, ``scaler.step(self.opt)``."""
    for frame in frames[:2]:
        for name in (receiver(timeline, frame, "step"), *arguments(timeline, frame, "step")):
            if name:
                yield name.split(".")[-1]


def _rate(call: ast.Call) -> ast.expr | ast.keyword | None:
    """Return the learning rate among the arguments of an optimizer; that of a group if there is only one."""
    named = [key for key in call.keywords if key.arg in ("lr", "learning_rate")]
    if named or len(call.args) > 1:
        return named[0] if named else call.args[1]
    groups = [part for part in ast.walk(call) if isinstance(part, ast.Dict)]
    pairs = (pair for group in groups for pair in zip(group.keys, group.values, strict=True))
    rates = [value for key, value in pairs if isinstance(key, ast.Constant) and key.value == "lr"]
    return rates[0] if len(rates) == 1 else None
