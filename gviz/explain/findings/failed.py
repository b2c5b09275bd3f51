"""Any other error: what is known of it."""

from __future__ import annotations

from gviz.explain.finding import Finding
from gviz.explain.kind import Kind
from gviz.explain.names import label_at
from gviz.explain.trouble import Trouble
from gviz.plain_text import clipped, shown

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
    cause, fix = next(((cause, fix) for words, cause, fix in _KNOWN if trouble.says(words)), ("", ""))
    first = clipped(shown(trouble.message), 120)
    text = cause or f"{trouble.ended} with {shown(trouble.error)}: {first}"
    node = trouble.node
    parts = (
        (Finding("at", f"in the backward of {label_at(trouble.timeline, node)}", trouble.seq, node),) if node else ()
    )
    return Finding("failed", text, trouble.seq, node, parts, fix, trouble.at)


FAILED = Kind("failed", "error", "the program or a backward pass ended with any other error", explain=explain)
