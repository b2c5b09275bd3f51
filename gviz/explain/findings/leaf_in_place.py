"""A leaf that requires a gradient was written to in place."""

from __future__ import annotations

from gviz.events import NodeCreated
from gviz.explain.finding import Finding
from gviz.explain.kind import Kind
from gviz.explain.names import label, label_at
from gviz.explain.trouble import Trouble
from gviz.plain_text import file_line

_RULE = "of a leaf that requires a gradient autograd allows that only under no_grad"
PATTERN = r"leaf [Vv]ariable that requires grad .*in-place"


def explain(trouble: Trouble) -> Finding | None:
    """Which leaf, as far as the line tells."""
    if not trouble.says(PATTERN):
        return None
    timeline, names = trouble.timeline, trouble.names_on_its_line()
    created = timeline.select([NodeCreated])
    leaves = [event.node for _, event in created if event.kind != "op" and event.requires_grad]
    leaf = next((info for node in reversed(leaves) if (info := timeline.info(node)).name in names), None)
    view = "a view of " if trouble.says("a view of") else ""
    at = f" at {file_line(trouble.at.path, trouble.at.line)}" if trouble.at else ""
    what = label(timeline, leaf.node) if leaf else "a leaf that requires a gradient"
    text = f"{view}{what} was to be changed in place{at}; {_RULE}"
    made = (Finding("leaf", f"the leaf is {label_at(timeline, leaf.node)}", leaf.born, leaf.node),) if leaf else ()
    fix = "update it inside with torch.no_grad():, let an optimizer do it, or change a clone()"
    return Finding("leaf-in-place", text, trouble.seq, leaf.node if leaf else 0, made, fix, trouble.at)


LEAF_IN_PLACE = Kind(
    "leaf-in-place", "error", "a leaf that requires a gradient was written to while autograd records", explain=explain
)
