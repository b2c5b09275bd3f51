"""The gradient that backward starts with: missing for a tensor of several elements, or of another shape."""

from __future__ import annotations

import re

from gviz.explain.finding import Finding
from gviz.explain.kind import Kind
from gviz.explain.names import innermost, label_at
from gviz.explain.trouble import Trouble
from gviz.numbers import shape_text

SEVERAL = r"implicitly created only for scalar outputs"
_SIZE = r"has a shape of torch\.Size\((.*?)\)"
MISFIT = rf"Mismatch in shape: grad_output\[\d+\] {_SIZE} and output\[\d+\] {_SIZE}"


def explain(trouble: Trouble) -> Finding | None:
    """What shape was given and what shape it must have."""
    if trouble.says(SEVERAL):
        return _several(trouble)
    found = re.search(MISFIT, trouble.message, re.DOTALL)
    if found is None:
        return None
    given, wanted = (_shape(text) for text in found.groups())
    text = f"backward was given a gradient of shape {given} for a tensor of shape {wanted}: they must be the same"
    fix = f"pass a gradient of shape {wanted}, or none to a loss of one element"
    return Finding("given-gradient", text, trouble.seq, fix=fix, at=trouble.at)


def _several(trouble: Trouble) -> Finding:
    timeline, names = trouble.timeline, trouble.names_on_its_line()
    root = next((info for info in trouble.made_before() if info.name in names and info.created.requires_grad), None)
    value = root.created.first_value if root is not None else None
    shape = f" of shape {shape_text(value.shape)}" if value is not None else ""
    text = f"backward of a tensor{shape} with several elements needs a gradient to start from"
    made = (Finding("root", f"it is {label_at(timeline, root.node)}", root.born, root.node),) if root else ()
    at = trouble.at or (innermost(root) if root else None)
    return Finding("given-gradient", text, trouble.seq, root.node if root else 0, made, _REDUCE, at)


_REDUCE = "make one number of it first (sum or mean), or pass gradient="


def _shape(text: str) -> str:
    return shape_text(tuple(int(size) for size in re.findall(r"\d+", text)))


GIVEN_GRADIENT = Kind(
    "given-gradient",
    "error",
    "backward was given no gradient where it needs one, or one that does not fit",
    explain=explain,
)
