"""No gradient because none was asked for: frozen, made under no_grad, cut off, of no tensor that requires one."""

from __future__ import annotations

import re

from gviz.events import RequiresGradSet
from gviz.explain.finding import Finding
from gviz.explain.kind import Kind, Question
from gviz.explain.names import innermost, label_at, made_at, takes_shape, why_cut
from gviz.explain.trouble import line_text
from gviz.explain.ways import ancestors
from gviz.plain_text import clipped
from gviz.site import Frame
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline

_SWITCHED_OFF = "set_grad_enabled(False)"
CREATE_GRAPH = "create_graph=True in autograd.grad, to go on with what it gives"
STACK = "torch.stack(...) of results keeps their history, torch.tensor(...) copies their numbers"
_FIXES = {
    "no_grad": "move this line out of the no_grad block",
    "inference": "move this line out of the inference_mode block",
    "detach": "leave detach() out where the gradient should flow",
    "data": "use the tensor itself instead of .data",
    "dtype": "gradients flow through floating-point results only: not through indices, comparisons, integers",
    "numbers": STACK,
}
"""By the reason for which an operation is not tracked: what to write instead."""
_DRAWS = re.compile(r"\.sample\(")
_LOSING = {"no_grad", "inference", "detach", "data", "dtype", "numbers"}


def cut_fix(timeline: Timeline, info: NodeInfo) -> str:
    """What to write instead of an operation that is not tracked; empty if nothing is known."""
    why = info.created.untracked
    if takes_shape(info):
        return ""
    if why == "numbers" and info.op.name == "grad":
        return CREATE_GRAPH
    if why == "no_grad" and _DRAWS.search(line_text(timeline, innermost(info))):
        return "rsample() where the gradient should flow: sample() draws inside no_grad"
    if why == "no_grad" and any(
        _SWITCHED_OFF in (timeline.source(path) or "") for path in {f.path for f in info.frames}
    ):
        return f"set_grad_enabled(True) before this line: {_SWITCHED_OFF} holds to the end, no_grad() for its block"
    return _FIXES.get(why, "")


def untracked(asked: Question) -> Finding | None:
    """The node itself does not require a gradient."""
    if asked.state is not None and asked.state.requires_grad:
        return None
    info, name, made = asked.info, label_at(asked.timeline, asked.node), asked.info.created
    if made.untracked and made.untracked != "inputs":
        text, kind, fix = (
            f"{name} is not part of the graph: {why_cut(info)}",
            "cut",
            cut_fix(asked.timeline, info),
        )
    elif made.kind == "op":
        return _no_input_requires(asked, name)
    else:
        return _requires_none(asked, name)
    return Finding(kind, text, info.born, asked.node, fix=fix, at=innermost(info))


def _no_input_requires(asked: Question, name: str) -> Finding:
    """A result of what requires no gradient: by nature, or as tracking was lost on the way to it."""
    timeline, info = asked.timeline, asked.info
    text, kind = f"{name} needs no gradient: none of its inputs requires one", "no-input-requires"
    lost = next((node for node in ancestors(timeline, asked.node) if loses(timeline, node)), 0)
    if not lost:
        fix = "requires_grad=True on what it is made from"
        return Finding(kind, text, info.born, asked.node, fix=fix, at=innermost(info))
    cut = timeline.info(lost)
    reason = f"tracking was lost at {label_at(timeline, lost)}: {why_cut(cut)}"
    part = Finding("cut", reason, cut.born, lost, fix=cut_fix(timeline, cut), at=innermost(cut))
    return Finding(kind, text, info.born, asked.node, (part,), at=innermost(info))


def loses(timeline: Timeline, node: int) -> bool:
    """Whether an operation lost track of something that requires a gradient."""
    info, inputs = timeline.info(node), timeline.nodes.made_from.get(node, ())
    if info.created.untracked not in _LOSING or takes_shape(info):
        return False
    return any(timeline.info(source).created.requires_grad for source in inputs)


def _requires_none(asked: Question, name: str) -> Finding:
    """A leaf that is frozen, by which line, or data."""
    timeline, info = asked.timeline, asked.info
    frozen = " (it is frozen)" if info.created.kind == "parameter" else ""
    text, fix = f"{name} does not require a gradient{frozen}", "requires_grad_() before it is used"
    seq, frames = _switched_off(asked)
    if not frames:
        return Finding("requires-none", text, info.born, asked.node, fix=fix, at=innermost(info))
    line = clipped(line_text(timeline, frames[0]).strip(), 120)
    by = Finding("frozen", f"requires_grad was set to False{made_at(frames)}: {line}", seq, asked.node, at=frames[0])
    fix = "leave it out there, if it is to learn"
    return Finding("requires-none", text, info.born, asked.node, (by,), fix, frames[0])


def _switched_off(asked: Question) -> tuple[int, tuple[Frame, ...]]:
    """The event that took ``requires_grad`` from a leaf last, and where the program did it; 0 if it never had it."""
    timeline = asked.timeline
    for seq in reversed([seq for seq in timeline.events_of(asked.node) if seq <= asked.moment.n]):
        event = timeline.event(seq)
        if isinstance(event, RequiresGradSet):
            return seq, timeline.stack(event.stack)
    return 0, ()


REQUIRES_NONE = Kind("requires-none", "fact", "a leaf that is frozen, or data", ("missing",), untracked)
NO_INPUT_REQUIRES = Kind("no-input-requires", "fact", "a result of tensors that require no gradient")
