"""A statement that names a method and does not call it: ``optimizer.step`` without its parentheses.

Idea. Python looks the method up, and throws it away. No error is raised, so that the line looks as if it ran. The
methods of a training loop that need no argument are known by their names, and the text of the program is enough.

Example. ``loss.backward()`` and then ``optimizer.step``: gradients are computed, and no parameter ever changes.

Limits. A name in a ``try`` that handles an error asks whether there is such a method. The last expression of a notebook
cell is shown. A property with an effect of its own is not known by such a name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gviz.explain.display_names import titled
from gviz.explain.finding import Finding
from gviz.explain.program_text import (
    frame_of_part,
    own_programs,
)
from gviz.explain.recording_survey import Survey
from gviz.explain.source_edit import node_replaced
from gviz.explain.statements_without_effect import is_asked_or_shown
from gviz.values.plain_text import shown

_MEANINGS = {
    "step": "no parameter is updated",
    "backward": "no gradient is computed",
    "zero_grad": "gradients are not cleared, and add up from one backward pass to the next",
    "train": "the model stays in the mode that it is in, so dropout and batch norm may stay in eval mode",
    "eval": "the model stays in train mode: dropout stays active, and batch norm uses and updates batch statistics",
    "detach_": "the tensor keeps its history",
}
"""Methods of a training loop without a necessary argument -> what follows if a line does not call them."""

_OF_SCHEDULE = re.compile(r"sched|warmup|decay", re.IGNORECASE)


def uncalled_methods(survey: Survey) -> Iterator[Finding | None]:
    """Yield the statements of the program that only name a method of its training loop."""
    for text in own_programs(survey.timeline):
        yield None
        for one in text.statements:
            match one.node:
                case ast.Expr(value=ast.Attribute(value=ast.Name() | ast.Attribute() | ast.Subscript(), attr=name)):
                    pass
                case _:
                    continue
            if name not in _MEANINGS or is_asked_or_shown(text, one):
                continue
            named, at = text.segment(one.node.value), frame_of_part(text, one.node)
            title = titled("{} is named but not called: its parentheses are missing", shown(named))
            means = "the learning rate stays as it is" if _OF_SCHEDULE.search(named) else _MEANINGS[name]
            part = Finding(
                f"without-{name.strip('_').replace('_', '-')}", f"the line does nothing: {means}", survey.end
            )
            edit = node_replaced(text, one.node.value, f"{named}()")
            yield Finding("not-called", title, survey.end, 0, (part,), f"{shown(named)}()", at, edit=edit)
