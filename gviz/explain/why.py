"""The answer to ``why``: why a node has the value, the gradient, or the missing gradient; why the program failed."""

from __future__ import annotations

from gviz.explain.finding import Finding
from gviz.explain.kind import question
from gviz.explain.table import KINDS
from gviz.explain.trouble import Trouble, trouble_at
from gviz.trace.moment import Moment
from gviz.trace.timeline import Timeline
from gviz.where import Aspect


def why(timeline: Timeline, moment: Moment, node: int, aspect: Aspect | None = None) -> Finding:
    """Explain a node's value or gradient; without `aspect` whatever is most in need of it.

    That is the error of this moment, else a nan or an infinity, else the gradient once a backward pass has begun, else
    the value.
    """
    trouble = trouble_at(timeline, moment.n) if aspect is None else None
    if trouble is not None and trouble.node in (0, node):
        return why_failed(trouble)
    asked = question(timeline, moment, node, aspect)
    for kind in KINDS:
        if asked.topic in kind.topics and kind.answer is not None and (found := kind.answer(asked)) is not None:
            return found
    raise AssertionError(asked.topic)  # the last kind of every topic answers all


def why_failed(trouble: Trouble) -> Finding:
    """Explain an error."""
    for kind in KINDS:
        if kind.explain is not None and (found := kind.explain(trouble)) is not None:
            return found
    raise AssertionError(trouble.error)
