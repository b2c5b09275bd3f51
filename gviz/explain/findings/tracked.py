"""No gradient because none was asked for: frozen, made under no_grad, cut off, of no tensor that requires one."""

from __future__ import annotations

from gviz.explain.finding import Finding
from gviz.explain.kind import Kind, Question
from gviz.explain.names import innermost, label_at, why_untracked
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline

_SWITCHED_OFF = "set_grad_enabled(False)"
CREATE_GRAPH = "create_graph=True in autograd.grad, to go on with what it gives"
STACK = "torch.stack(...) of results keeps their history, torch.tensor(...) copies their numbers"
_FIXES = {
    "no_grad": "move this line out of the no_grad block",
    "detach": "leave detach() out where the gradient should flow",
    "data": "use the tensor itself instead of .data",
    "dtype": "gradients flow through floating-point results only: not through indices, comparisons, integers",
    "numbers": STACK,
}
"""By the reason for which an operation is not tracked: what to write instead."""


def cut_fix(timeline: Timeline, info: NodeInfo) -> str:
    """What to write instead of an operation that is not tracked; empty if nothing is known."""
    why = info.created.untracked
    if why == "numbers" and info.op.name == "grad":
        return CREATE_GRAPH
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
            f"{name} is not part of the graph: {why_untracked(made)}",
            "cut",
            cut_fix(asked.timeline, info),
        )
    elif made.kind == "op":
        text, kind = f"{name} needs no gradient: none of its inputs requires one", "no-input-requires"
        fix = "requires_grad=True on what it is made from"
    else:
        frozen = " (it is frozen)" if made.kind == "parameter" else ""
        text, kind = f"{name} does not require a gradient{frozen}", "requires-none"
        fix = "requires_grad_() before it is used"
    return Finding(kind, text, info.born, asked.node, fix=fix, at=innermost(info))


REQUIRES_NONE = Kind("requires-none", "fact", "a leaf that is frozen, or data", ("missing",), untracked)
NO_INPUT_REQUIRES = Kind("no-input-requires", "fact", "a result of tensors that require no gradient")
