"""Any other error: what is known of it."""

from __future__ import annotations

import re

from gviz.explain.finding import Finding
from gviz.explain.kind import Kind
from gviz.explain.made_number import made_number, number_called
from gviz.explain.names import label, label_at
from gviz.explain.trouble import Trouble
from gviz.plain_text import clipped, shown
from gviz.trace.state import NodeInfo

_NO_LEAF = r"can't optimize a non-leaf Tensor"
_KNOWN: tuple[tuple[str, str, str], ...] = (
    (
        r"returned nan values",
        "a gradient became nan in this node's backward rule",
        "look at the values that went into the forward: a zero under a root or a division",
    ),
    (
        r"appears to not have been used in the graph|should be used in the graph",
        "there is no path from the output to this input",
        "check that it is used, or pass allow_unused=True",
    ),
    (
        r"must match the size of tensor|shapes? .*cannot be multiplied|[Mm]ismatch in shape|could not broadcast",
        "the shapes do not fit together",
        "compare the shapes of the inputs",
    ),
)


def explain(trouble: Trouble) -> Finding:
    """The error in its own words, with cause and remedy where they are known."""
    cause, fix = next(((cause, fix) for words, cause, fix in _KNOWN if trouble.says(words)), ("", _for_labels(trouble)))
    if name := number_called(trouble):
        return _on_a_number(trouble, name)
    if trouble.says(_NO_LEAF) and (result := _result_on_its_line(trouble)) is not None:
        return _for_an_optimizer(trouble, result)
    first = clipped(shown(trouble.message), 120)
    text = cause or f"{trouble.ended} with {shown(trouble.error)}: {first}"
    node = trouble.node
    parts = (
        (Finding("at", f"in the backward of {label_at(trouble.timeline, node)}", trouble.seq, node),) if node else ()
    )
    return Finding("failed", text, trouble.seq, node, parts, fix, trouble.at)


def _on_a_number(trouble: Trouble, name: str) -> Finding:
    """``backward`` of what is no tensor, and the line that made it none."""
    text = f"{trouble.ended} with {shown(trouble.error)}: {name} is a number and no tensor, it has no graph to go back"
    made = made_number(trouble, name)
    parts = (Finding("made-number", f"it was made one at {made}", trouble.seq),) if made else ()
    fix = f"call backward() on the tensor, and give the number another name: {name}.backward(); value = {name}.item()"
    return Finding("failed", text, trouble.seq, 0, parts, fix, trouble.at)


def _result_on_its_line(trouble: Trouble) -> NodeInfo | None:
    """The last result of an operation that is tracked and has a name on the line that raised the error."""
    names = trouble.names_on_its_line()
    tracked = (info for info in trouble.made_before() if info.created.kind == "op" and info.created.requires_grad)
    return next((info for info in tracked if info.name in names), None)


def _for_an_optimizer(trouble: Trouble, result: NodeInfo) -> Finding:
    """An optimizer that was given no leaf."""
    what, name = label_at(trouble.timeline, result.node), shown(result.name)
    text = f"{what} is no leaf: an optimizer cannot change what an operation made"
    fix = f"make the leaf last: {name} = (...).detach().requires_grad_(), and device and dtype before that"
    return Finding("failed", text, trouble.seq, result.node, (), fix, trouble.at)


def _for_labels(trouble: Trouble) -> str:
    """What to try where a class label is none of the classes that there are scores for; empty for any other error."""
    asked = re.match(r"Target (-?\d+) is out of bounds", trouble.message)
    if asked is None:
        return ""
    names, made = trouble.names_on_its_line(), list(trouble.made_before())
    given = [one for one in made if one.name in names and trouble.at not in one.frames]
    for info in (*given, *made):
        classes = _classes(info)
        if classes and not 0 <= int(asked[1]) < classes:
            scores = label(trouble.timeline, info.node)
            return f"labels lie from 0 to {classes - 1}: the scores, {scores}, have {classes} columns"
    return "labels lie from 0 to C - 1, where the scores have C columns"


def _classes(info: NodeInfo) -> int:
    """How many classes a tensor can be the scores of, 0 for what is none."""
    value = info.created.first_value
    if value is None or not value.dtype.startswith(("float", "bfloat")) or not value.shape:
        return 0
    return value.shape[min(1, len(value.shape) - 1)]


FAILED = Kind("failed", "error", "the program or a backward pass ended with any other error", explain=explain)
