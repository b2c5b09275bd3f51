"""A parameter that is more than once in the list of an optimizer: each step updates it as many times.

Idea. ``model.parameters()`` yields a tied weight once, but the parameters of two modules together have it twice.
PyTorch only warns about it: the weight takes two steps at once, and training may break at a rate that is right for the
others.

Example. ``torch.optim.SGD([*emb.parameters(), *head.parameters()], lr=1.0)`` with ``head.weight = emb.weight``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gviz.events import OptimizerStepped
from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.optimizer_construction import construction_of
from gviz.explain.recording_survey import Survey
from gviz.values.number_text import times_text
from gviz.values.plain_text import shown


def repeated_parameters(survey: Survey) -> Iterator[Finding | None]:
    """Yield, for each call of ``step()``, the first step that updates a parameter more than once."""
    timeline, seen = survey.timeline, set[int]()
    for seq, step in survey.select(OptimizerStepped):
        yield None
        if step.stack in seen:
            continue
        repeated = {node: count for node, count in Counter(step.parameters).items() if count > 1}
        if not repeated:
            continue
        seen.add(step.stack)
        node, count = next(iter(repeated.items()))
        others = f" and {len(repeated) - 1} more" if len(repeated) > 1 else ""
        text = titled(f"{{}}{others} is in the optimizer {times_text(count)}", label(timeline, node))
        part = Finding("share", f"each step of {shown(step.kind)} updates it {times_text(count)}", seq, node)
        made = construction_of(timeline, step)
        at = made.line if made is not None else next(iter(timeline.stack(step.stack)), None)
        fix = "pass each parameter once: parameters() of the module that contains them yields a shared one once"
        yield Finding("repeated-parameter", text, seq, node, (part,), fix, at, (Number("times", count, seq),))
