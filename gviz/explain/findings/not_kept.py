"""No ``.grad`` because only leaves keep theirs: a result, or a name that a result has taken over from a leaf."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.events import GradRetained, GradSet
from gviz.explain.finding import Finding
from gviz.explain.findings.passes import passes_before
from gviz.explain.kind import Kind, Question, question
from gviz.explain.names import innermost, label_at
from gviz.explain.rewriting import update_in_place
from gviz.explain.scopes import Variable, owners, variables_read
from gviz.explain.survey import Survey
from gviz.explain.trouble import line_text
from gviz.explain.ways import ancestors
from gviz.plain_text import clipped, shown
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.value_text import grad

_LAST = "requires_grad last, on the result: {} = (...).requires_grad_()"


def not_kept(asked: Question) -> Finding | None:
    """A result keeps no gradient, but the recording has it."""
    timeline, info = asked.timeline, asked.info
    if info.created.kind != "op":
        return None
    text = f"{label_at(timeline, asked.node)} is no leaf: only leaves keep their gradient in .grad"
    value = asked.output.incoming
    was = (Finding("incoming", f"its gradient was {grad(value)}", _arrived(asked), asked.node),) if value else ()
    leaf = _leaf_of_this_name(timeline, info)
    nameless = nameless_leaf(timeline, info)
    if leaf is None and nameless is not None:
        of = f"the leaf is {label_at(timeline, nameless.node)}, and no name holds it: this is what was made of it"
        parts = (Finding("leaf", of, nameless.born, nameless.node, at=innermost(nameless)), *was)
        return Finding(
            "not-a-leaf", text, info.born, asked.node, parts, _LAST.format(shown(info.name) or "w"), innermost(info)
        )
    if leaf is None and value is None and passes_before(asked):
        return None  # keeping it would not help: none has come here
    if leaf is None:
        fix = "retain_grad() on it before backward"
        return Finding("not-a-leaf", text, info.born, asked.node, was, fix, innermost(info))
    lost = f"the name {shown(info.name)} meant the leaf {label_at(timeline, leaf.node)} before"
    parts = (Finding("rebound", lost, leaf.born, leaf.node, at=innermost(leaf)), *was)
    return Finding("rebound", text, info.born, asked.node, parts, _fix(timeline, info), innermost(info))


def nameless_leaf(timeline: Timeline, info: NodeInfo) -> NodeInfo | None:
    """The leaf that the same line made first: ``torch.randn(3, requires_grad=True).double()``."""
    sources = [timeline.info(node) for node, _ in info.created.inputs if node]
    sources = [one for one in sources if one.created.kind != "constant"]
    nameless = [one for one in sources if one.created.kind == "leaf" and one.created.requires_grad and not one.name]
    at = innermost(info)
    lines = ((one, innermost(one)) for one in nameless if at is not None and len(sources) == 1)
    return next((one for one, made in lines if made and at and (made.path, made.line) == (at.path, at.line)), None)


def _fix(timeline: Timeline, info: NodeInfo) -> str:
    """The line that rebinds the name, written so that it stays the leaf's: an update in place, or a new leaf."""
    name, at = shown(info.name), innermost(info)
    update = update_in_place(line_text(timeline, at), info.name)
    if update:
        return f"with torch.no_grad(): {clipped(update, 80)}"
    if info.op.name.startswith(("add", "sub")):
        return f"change {name} in place, inside with torch.no_grad():, and its name stays with the leaf"
    return f"make the leaf last: {name} = (...).detach().requires_grad_(), or give the result another name"


def _arrived(asked: Question) -> int:
    parts = asked.output.parts
    return parts[-1].seq if parts else 0


def _leaf_of_this_name(timeline: Timeline, info: NodeInfo) -> NodeInfo | None:
    """The leaf that it was made from and whose variable it has taken over."""
    if not info.name:
        return None
    variable = _variable(timeline, info)
    for node in ancestors(timeline, info.node):
        other = timeline.info(node)
        same = other.name == info.name and other.created.kind != "op" and other.created.requires_grad
        if same and _variable(timeline, other) == variable:
            return other
    return None


_InFile = tuple[str, Variable]
"""A variable, with the path of the file it is in."""


def _variable(timeline: Timeline, info: NodeInfo) -> _InFile:
    """The variable that holds a node; of no file and function if none does."""
    frame = timeline.nodes.assigned_at(info.created.stack)
    if frame is None:
        return "", (info.name, "")
    known = owners(timeline.source(frame.path) or "")
    return frame.path, (info.name, known.get((info.name, frame.function), frame.function))


def read_in_vain(survey: Survey) -> Iterator[Finding]:
    """Results that the program's text reads the ``.grad`` of, and that did not keep it."""
    wanted = _grads_read(survey)
    if not wanted or not survey.passes:
        return
    timeline, moment = survey.timeline, survey.timeline.at(survey.end)
    kept = {
        event.node for _, event in survey.select(GradRetained, GradSet) if isinstance(event, GradRetained | GradSet)
    }
    for made in reversed(survey.nodes.values()):
        if not wanted:
            return
        variable = _variable(timeline, timeline.info(made.node))
        if variable not in wanted:
            continue
        wanted.discard(variable)  # what the name means at the end decides
        asked = question(timeline, moment, made.node, "grad")
        tracked = made.created.requires_grad and not made.created.during[0] and made.node not in kept
        if tracked and asked.topic != "unborn" and (found := not_kept(asked)) is not None:
            yield found


def _grads_read(survey: Survey) -> set[_InFile]:
    stacks = {made.created.stack for made in survey.nodes.values()}
    paths = {frame.path for stack in stacks for frame in survey.timeline.stack(stack)}
    return {(path, read) for path in paths for read in variables_read(survey.timeline.source(path) or "", "grad")}


NOT_A_LEAF = Kind(
    "not-a-leaf", "warning", "the .grad of a result, which keeps none", ("missing",), not_kept, find=read_in_vain
)
REBOUND = Kind("rebound", "warning", "a name that meant a leaf and now means a result made from it")
