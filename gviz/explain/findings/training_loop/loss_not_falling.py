"""A loss that is no smaller after many steps."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import isfinite, sqrt
from statistics import fmean

from gviz.events import OptimizerStepped
from gviz.events.optimizer_options import option_text
from gviz.explain.backward_passes import loss_at
from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.parameter_updates import options_of
from gviz.explain.recording_survey import Survey
from gviz.explain.source_frames import innermost
from gviz.explain.tracking import ancestors
from gviz.values.number_text import number
from gviz.values.value_text import norm

# A loss that does not fall, in a program with one loss and one optimizer: what is known of its gradients is reported

_FEWEST_LOSSES = 24
"""The fewest passes after which a loss that is not smaller is no accident of single batches."""

_FALLEN = 0.98

_DEVIATIONS = 2.0
"""The standard deviations by which a loss must be above what counts as fallen."""


def not_falling(survey: Survey) -> Iterator[Finding | None]:
    """Yield the loss of a training loop if its last quarter is no smaller than its first, with what is sure about it.

    Programs with several losses or optimizers are left out: theirs may balance each other, as those of a GAN do. So
    are losses that reach 0 or less, such as those of a policy, and those whose target a model makes: it moves, as the
    values of Q-learning do. So are losses that differ so much from pass to pass that the means of two quarters do not
    show whether they fall.
    """
    timeline = survey.timeline
    steps = {event.stack for _, event in survey.select(OptimizerStepped) if event.parameters}
    calls = {event.stack for _, event in survey.passes}
    if len(steps) != 1 or len(calls) != 1 or len(survey.passes) < _FEWEST_LOSSES or timeline.failures:
        return
    yield None
    known = [one for seq, _ in survey.passes if (one := loss_at(timeline, seq)) is not None]
    values = [value for _, value in known]
    if len(values) < len(survey.passes) or not all(isfinite(value) and value > 0 for value in values):
        return
    quarter = len(values) // 4
    first, last = (fmean(part) for part in (values[:quarter], values[-quarter:]))
    # the spread from one pass to the next; a steady rise or fall adds little to it
    spread = sqrt(fmean((one - other) ** 2 for one, other in pairwise(values)) / 2)
    noise = _DEVIATIONS * spread * sqrt(2 / quarter)
    if last - noise > _FALLEN * first and not _has_made_target(survey, known[-1][0]):
        yield _not_falling_finding(survey, known[-1][0], first, last, len(values))


def _has_made_target(survey: Survey, root: int) -> bool:
    """Return whether a loss compares with the untracked result of a module that has parameters."""
    waiting, seen, given = [root], {root}, list[int]()
    while waiting:
        record = survey.nodes.get(waiting.pop())
        if record is None or record.created.scope in survey.scopes:
            continue  # within the model
        for source in survey.sources(record):
            if not source.created.requires_grad and source.created.kind == "op":
                given.append(source.node)
            elif source.node not in seen:
                seen.add(source.node)
                waiting.append(source.node)
    made = (survey.nodes[node] for node in (*given, *ancestors(survey.timeline, *given)) if node in survey.nodes)
    in_modules = (one for one in made if one.created.kind == "op" and one.created.scope in survey.scopes)
    return any(source.created.kind == "parameter" for one in in_modules for source in survey.sources(one))


def _not_falling_finding(survey: Survey, root: int, first: float, last: float, count: int) -> Finding:
    timeline, numbers = survey.timeline, (number(first), number(last))
    verb = "grows" if last > first / _FALLEN else "does not fall"
    text = titled(f"{{}} {verb} in {count} passes: from {numbers[0]} to {numbers[1]}", label(timeline, root))
    latest = {event.node: (seq, event) for seq, event in survey.accumulated if event.node in survey.optimized}
    sizes = {node: size for node, (_, event) in latest.items() if (size := norm(event.part)) is not None}
    sure = f"{len(latest)} of {len(survey.optimized)} parameters of the optimizer get a gradient"
    if sizes:
        most, least = max(sizes, key=sizes.__getitem__), min(sizes, key=sizes.__getitem__)
        ends = (f"|g| {number(sizes[node])} at {label(timeline, node)}" for node in (most, least))
        sure += f": {', '.join(ends)}"
    seq = next(reversed([seq for seq, _ in survey.select(OptimizerStepped)]))
    rates = {options_of(timeline, node, seq).get("lr") for node in list(latest)[:1]} - {None}
    sure += f"; lr is {option_text(rates.pop())}" if rates else ""
    part = Finding("share", sure, survey.passes[-1][0], root)
    fix = "a smaller learning rate" if verb == "grows" else "fit one batch first: if that fails, look at data and loss"
    row = (Number("first quarter", first), Number("last quarter", last))
    at = innermost(timeline.info(root))
    return Finding("not-falling", text, survey.passes[-1][0], root, (part,), fix, at, row, suspected=True)
