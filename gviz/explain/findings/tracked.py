"""No gradient because none was asked for: frozen, made under no_grad, cut off, of no tensor that requires one."""

from __future__ import annotations

from gviz.explain.finding import Finding
from gviz.explain.kind import Kind, Question
from gviz.explain.names import innermost, label_at, why_untracked

CUT_FIXES = {
    "no_grad": "move this line out of the no_grad block",
    "detach": "leave detach() out where the gradient should flow",
    "data": "use the tensor itself instead of .data",
    "dtype": "gradients flow through floating-point results only: not through indices, comparisons, integers",
}
"""By the reason for which an operation is not tracked: what to write instead."""


def untracked(asked: Question) -> Finding | None:
    """The node itself does not require a gradient."""
    if asked.state is not None and asked.state.requires_grad:
        return None
    info, name, made = asked.info, label_at(asked.timeline, asked.node), asked.info.created
    if made.untracked and made.untracked != "inputs":
        text, kind, fix = (
            f"{name} is not part of the graph: {why_untracked(made)}",
            "cut",
            CUT_FIXES.get(made.untracked),
        )
    elif made.kind == "op":
        text, kind = f"{name} needs no gradient: none of its inputs requires one", "no-input-requires"
        fix = "requires_grad=True on what it is made from"
    else:
        frozen = " (it is frozen)" if made.kind == "parameter" else ""
        text, kind = f"{name} does not require a gradient{frozen}", "requires-none"
        fix = "requires_grad_() before it is used"
    return Finding(kind, text, info.born, asked.node, fix=fix or "", at=innermost(info))


REQUIRES_NONE = Kind("requires-none", "fact", "a leaf that is frozen, or data", ("missing",), untracked)
NO_INPUT_REQUIRES = Kind("no-input-requires", "fact", "a result of tensors that require no gradient")
