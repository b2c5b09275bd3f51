"""A module that defines `backward`, which autograd never calls: only an ``autograd.Function`` has a rule of its own.

Idea. ``class Reverse(nn.Module)`` with ``forward(self, x)`` and ``backward(self, grad)`` runs without an error. Its
forward is an ordinary method whose operations have their own rules, and the backward is never called. The recording
shows that the module was called, and the text that its class has such a method.

Example. A gradient reversal written so passes the gradient on as it is: the features are trained for the domain
classifier instead of against it.

Limits. A program that calls such methods itself, as a network by hand does, is left out: any call of ``x.backward(g)``
with an argument that did not start a pass. So is a method that a trainer calls, in which a pass begins.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gviz.events import ScopeEntered
from gviz.explain.display_names import titled
from gviz.explain.finding import Finding
from gviz.explain.program_text import (
    ProgramText,
    called_name,
    classes_named,
    methods_of,
    positional_parameters,
)
from gviz.explain.recording_survey import Survey
from gviz.explain.source_frames import own_frame
from gviz.source.call_stack import Frame
from gviz.values.plain_text import shown


def backwards_of_modules(survey: Survey) -> Iterator[Finding | None]:
    """Yield the methods `backward` of the modules that were called: each class once."""
    timeline = survey.timeline
    first: dict[str, tuple[int, ScopeEntered]] = {}
    for seq, event in survey.select(ScopeEntered):
        first.setdefault(event.kind, (seq, event))
    for kind, (seq, event) in first.items():
        yield None
        for text, owner in classes_named(timeline, kind):
            method = methods_of(owner).get("backward")
            if method is None or len(positional_parameters(method)) < _FEWEST_PARAMETERS:
                continue
            if _is_called(survey, text, method):
                continue
            title = titled("autograd never calls {}.backward: it is a method of a module", shown(kind))
            called = f"{shown(event.name or kind)} was called, and its gradient is that of the operations in forward"
            at = Frame(text.path, f"{kind}.backward", method.lineno, method.lineno, -1, -1)
            fix = "a torch.autograd.Function with static forward(ctx, x) and backward(ctx, grad); call its apply(x)"
            yield Finding("module-backward", title, seq, 0, (Finding("used", called, seq),), fix, at)


_FEWEST_PARAMETERS = 2
"""`self` and a gradient: a rule has at least these."""


def _is_called(survey: Survey, text: ProgramText, method: ast.FunctionDef) -> bool:
    """Return whether a pass begins in the method, as a trainer calls it, or the program calls a `backward` with an
    argument elsewhere than where a pass has begun.
    """
    stacks = [survey.timeline.stack(event.stack) for _, event in survey.passes]
    lines = {at.line for frames in stacks for at in frames if at.path == text.path}
    if any(method.lineno <= line <= (method.end_lineno or method.lineno) for line in lines):
        return True
    passes = {at.line for frames in stacks if (at := own_frame(frames)) is not None and at.path == text.path}
    calls = (part for one in text.statements for part in one.parts(ast.Call) if part.args)
    return any(called_name(call) == "backward" and call.lineno not in passes for call in calls)
