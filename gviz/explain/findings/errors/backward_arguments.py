"""Arguments of backward and autograd.grad: a gradient that is missing or does not fit, an input that requires none."""

from __future__ import annotations

import re

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.program_errors import Failure, shape_in
from gviz.explain.program_text import assignment, keyword_or_argument
from gviz.explain.source_edit import after
from gviz.explain.source_frames import innermost
from gviz.explain.tracking import ancestors
from gviz.trace.graph_state import NodeInfo
from gviz.values.number_text import shape_text
from gviz.values.plain_text import shown

SEVERAL = r"implicitly created only for scalar outputs"
_SIZE = r"has a shape of torch\.Size\((.*?)\)"
MISFIT = rf"Mismatch in shape: grad_output\[\d+\] {_SIZE} and output\[\d+\] {_SIZE}"


def explain_gradient_argument(failure: Failure) -> Finding | None:
    """Return the finding about a gradient argument that is missing, or has another shape than the tensor."""
    if failure.says(SEVERAL):
        return _without_gradient_argument(failure)
    match = re.search(MISFIT, failure.message, re.DOTALL)
    if match is None:
        return None
    actual, expected = (shape_in(text) for text in match.groups())
    text = titled("backward got a gradient of shape {} for a tensor of shape {}", actual, expected)
    fix = f"pass a gradient of shape {expected}; a loss of one element needs none"
    return Finding("given-gradient", text, failure.seq, fix=fix, at=failure.at)


def _without_gradient_argument(failure: Failure) -> Finding:
    timeline, names = failure.timeline, failure.names_on_its_line()
    root = next((info for info in failure.earlier_nodes() if info.name in names and info.created.requires_grad), None)
    value = root.created.first_value if root is not None else None
    shape = f", {shape_text(value.shape)}," if value is not None else ""
    text = titled("backward of several elements{} needs a gradient to start from", shape)
    parts = (Finding("root", f"it is {label_at(timeline, root.node)}", root.born, root.node),) if root else ()
    at = failure.at or (innermost(root) if root else None)
    return Finding("given-gradient", text, failure.seq, root.node if root else 0, parts, _REDUCE, at)


_REDUCE = "reduce it to one number first (sum or mean), or pass gradient="


FROZEN_INPUT = r"One of the differentiated Tensors does not require grad"


def of_frozen_input(failure: Failure) -> Finding | None:
    """Return the finding about an input of `autograd.grad` that requires no gradient, with the line that created it."""
    names = keyword_or_argument(failure.timeline, failure.at, "grad", 1, "inputs")
    earlier = (info for info in failure.earlier_nodes() if info.name and info.name in names)
    info = next((info for info in earlier if not info.created.requires_grad), None)
    if info is None:
        return None
    name = shown(info.name)
    text = titled("autograd.grad cannot return a gradient of {}: it requires none", label(failure.timeline, info.node))
    fix = f"call {name}.requires_grad_() before it is used"
    at = innermost(info) or failure.at
    edit = after(failure.timeline, at, f"{name}.requires_grad_()")
    return Finding("failed", text, failure.seq, info.node, (), fix, at, edit=edit)


UNUSED_INPUT = r"appears to not have been used in the graph|should be used in the graph"


def of_unused_input(failure: Failure) -> Finding | None:
    """Return the finding about an input of `autograd.grad` from which the output was not computed.

    Both may be computed from one tensor: ``t = points[:, 1:]`` and ``u = net(points)``. Then the line to change is the
    one that computes the output.
    """
    timeline = failure.timeline
    found = [_named(failure, place, name) for place, name in enumerate(("outputs", "inputs"))]
    if found[0] is None or found[1] is None:
        return None
    output, source = found[0], found[1]
    names = shown(source.name), shown(output.name)
    text = titled("{} is not computed from {}, so there is no gradient", *names[::-1])
    origins = [node for node in (source.node, *ancestors(timeline, source.node)) if timeline.info(node).name]
    behind = {*ancestors(timeline, output.node)}
    common = next((node for node in origins if node in behind), 0)
    made = Finding("made", label_at(timeline, source.node), source.born, source.node, at=innermost(source))
    if not common:
        fix = f"compute {names[1]} from {names[0]}, or pass allow_unused=True if it may be missing"
        return Finding("failed", text, failure.seq, source.node, (made,), fix, failure.at)
    name = shown(timeline.info(common).name)
    fact = f"both are computed from {label_at(timeline, common)}: {names[1]} does not use {names[0]}"
    part = Finding("made", fact, source.born, source.node, at=innermost(source))
    fix = f"compute {names[1]} from {names[0]}, or differentiate by {name} and take the part of its gradient"
    at = assignment(timeline, failure.at, output.name) or failure.at
    return Finding("failed", text, failure.seq, source.node, (part,), fix, at)


def _named(failure: Failure, place: int, keyword: str) -> NodeInfo | None:
    """Return the newest tensor that an argument of `autograd.grad` names."""
    names = keyword_or_argument(failure.timeline, failure.at, "grad", place, keyword)
    return next((info for info in failure.earlier_nodes() if info.name and info.name in names), None)
