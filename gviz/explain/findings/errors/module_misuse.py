"""A module used wrongly: its forward returns nothing, its loss class is called with tensors, or a layer is misspelt."""

from __future__ import annotations

import ast
import re

from gviz.errors import did_you_mean
from gviz.events import ScopeEntered, ScopeLeft
from gviz.explain.display_names import titled
from gviz.explain.finding import Finding
from gviz.explain.program_errors import Failure
from gviz.explain.program_text import ProgramText, called_name, line_text
from gviz.explain.source_edit import Change, Edit, rewritten
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import shown

NO_ATTRIBUTE = r"'(\w+)' object has no attribute '(\w+)'"


def of_missing_return(failure: Failure) -> Finding | None:
    """Return the finding about a module whose forward returned None, because it has no ``return``.

    The call of the module must have ended just before the error, and the attribute must be missing on its result:
    ``net(x).mean``, or ``out.mean`` after ``out = net(x)``.
    """
    timeline, at = failure.timeline, failure.at
    attribute = re.search(r"'NoneType' object has no attribute '(\w+)'", failure.message)
    last = timeline.event(failure.seq - 1) if failure.seq > 1 else None
    call = timeline.contexts.call(last.scope) if isinstance(last, ScopeLeft) else None
    newest = next(failure.earlier_nodes(), None)
    if attribute is None or call is None or newest is None or at is None:
        return None
    for frame in newest.frames:
        target = re.match(r"\s*(\w+)\s*=(?!=)", line_text(timeline, frame))
        is_here = (frame.path, frame.line) == (at.path, at.line)
        read = r"\)\s*" if is_here else rf"\b{target[1]}" if target is not None else None
        if frame.path == at.path and read is not None and re.search(rf"{read}\.{attribute[1]}\b", failure.line):
            break
    else:
        return None
    text = titled("{} returned None, and its result is used here", f"{shown(call.name)}.forward")
    part = Finding("message", failure.quoted, failure.seq)
    fix = "return the result on the last line of forward"
    return Finding("failed", text, failure.seq, 0, (part,), fix, at)


def of_loss_class(failure: Failure) -> Finding | None:
    """Return the finding about tensors that were passed to the class of a loss, which expects options."""
    edit = _with_loss_made_first(failure.timeline, failure.at)
    if edit is None:
        return None
    text = "the class of a loss expects options; its instance expects the tensors"
    part = Finding("message", failure.quoted, failure.seq)
    fix = "create the loss first: criterion = nn.CrossEntropyLoss(), then criterion(scores, labels)"
    return Finding("failed", text, failure.seq, 0, (part,), fix, failure.at, edit=edit)


def of_missing_attribute(failure: Failure) -> Finding | None:
    """Return the finding about an attribute that a module does not have, with the similar name of a layer of it."""
    match = re.search(NO_ATTRIBUTE, failure.message)
    calls = failure.timeline.select((ScopeEntered,), 1, failure.seq)
    if match is None or all(call.kind != match[1] for _, call in calls):
        return None  # not an object whose layers are known
    parameters = (info for info in failure.earlier_nodes() if info.created.kind == "parameter")
    known = {part for info in parameters for part in info.name.split(".")[:-1] if not part.isdigit()}
    near = did_you_mean(match[2], known, "")
    if not near:
        return None
    text = titled("{} has no attribute {}", shown(match[1]), shown(match[2]))
    return Finding("failed", text, failure.seq, fix=near, at=failure.at)


def _with_loss_made_first(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``nn.MSELoss(x, y)``, whose arguments are options, with ``nn.MSELoss()(x, y)``."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            if not (isinstance(part, ast.Call) and called_name(part).endswith("Loss") and len(part.args) > 1):
                return None
            head = text.segment(part.func)
            return f"{head}(){text.segment(part).removeprefix(head)}"

        return known

    return rewritten(timeline, at, change)
