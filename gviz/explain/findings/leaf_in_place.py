"""A leaf that requires a gradient was written to in place."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gviz.events import NodeCreated, RequiresGradSet
from gviz.explain.finding import Finding
from gviz.explain.kind import Kind
from gviz.explain.names import label, label_at
from gviz.explain.trouble import Trouble
from gviz.plain_text import file_line
from gviz.site import source_lines
from gviz.trace.timeline import Timeline

_RULE = "autograd allows that only under no_grad"
_OF_A_LEAF = "of a leaf that requires a gradient"
_ALSO = re.compile(r"\s*(\w+)\s*=\s*(\w+)\s*;?\s*(?:#.*)?")
PATTERN = r"leaf [Vv]ariable that requires grad .*in-place"


def explain(trouble: Trouble) -> Finding | None:
    """Which leaf, as far as the line tells."""
    if not trouble.says(PATTERN):
        return None
    timeline, names = trouble.timeline, _names(trouble)
    leaves = map(timeline.info, _leaves(timeline))
    leaf = next((info for info in leaves if info.name in names), None)
    view = "a view of " if trouble.says("a view of") else ""
    at = f" at {file_line(trouble.at.path, trouble.at.line)}" if trouble.at else ""
    what = label(timeline, leaf.node) if leaf else "a leaf that requires a gradient"
    text = f"{view}{what} was to be changed in place{at}; {f'{_OF_A_LEAF} ' if leaf else ''}{_RULE}"
    parts = (Finding("leaf", f"the leaf is {label_at(timeline, leaf.node)}", leaf.born, leaf.node),) if leaf else ()
    fix = "update it inside with torch.no_grad():, let an optimizer do it, or change a clone()"
    return Finding("leaf-in-place", text, trouble.seq, leaf.node if leaf else 0, parts, fix, trouble.at)


def _leaves(timeline: Timeline) -> Iterator[int]:
    """The latest first; whatever made it, a tensor that requires a gradient only later is one."""
    created, later = timeline.select([NodeCreated]), timeline.select([RequiresGradSet])
    made = [(n, event.node) for n, event in created if event.kind != "op" and event.requires_grad]
    told = [(n, event.node) for n, event in later if event.requires_grad]
    return (node for _, node in sorted([*made, *told], reverse=True))


def _names(trouble: Trouble) -> set[str]:
    """The names on the line that raised it, and those of which they are other names: after ``y = x`` that of x."""
    names = set(trouble.names_on_its_line())
    text = trouble.timeline.source(trouble.at.path) if trouble.at else None
    above = source_lines(text or "")[: trouble.at.line] if trouble.at else []
    for row in reversed(above):
        also = _ALSO.fullmatch(row)
        if also is not None and also[1] in names:
            names.add(also[2])
    return names


LEAF_IN_PLACE = Kind(
    "leaf-in-place", "error", "a leaf that requires a gradient was written to while autograd records", explain=explain
)
