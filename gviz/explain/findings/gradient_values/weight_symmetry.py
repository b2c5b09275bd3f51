"""Units with equal weights: they get equal gradients, so they stay equal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from gviz.events import (
    GradAccumulated,
)
from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding
from gviz.explain.grad_history import is_zero
from gviz.explain.parameter_initialization import first_use, writes_constant, written_at
from gviz.explain.recording_survey import Survey
from gviz.explain.source_frames import innermost
from gviz.trace.timeline import Timeline
from gviz.values.value import Value


def same_units(survey: Survey) -> Iterator[Finding | None]:
    """Yield weights whose rows are all equal, and get equal gradients in every pass: all units stay the same."""
    timeline = survey.timeline
    parts: defaultdict[int, list[GradAccumulated]] = defaultdict(list)
    for _, event in survey.accumulated:
        parts[event.node].append(event)
    for node, events in parts.items():
        yield None
        record = survey.nodes.get(node)
        if record is None or record.created.kind == "op" or len(record.shape) < 2 or min(record.shape[:2]) < 2:
            continue
        used = first_use(timeline, node)
        state = timeline.at(used.born if used is not None else record.seq).state(node)
        value = state.outputs[0].value if state is not None else None
        alike = _has_equal_rows(timeline, value) and all(_has_equal_rows(timeline, one.part) for one in events)
        if not alike or is_zero(events[0].part) or is_zero(value):  # zeros with equal gradients diverge later
            continue
        count = record.shape[0]
        text = titled(f"all {count} rows of {{}} are equal, and so are their gradients", label(timeline, node))
        times = f"{len(events)} passes" if len(events) > 1 else "1 pass"
        stay = f"in {times} every row got the same gradient, so all units stay equal"
        size = Finding("first", stay, survey.accumulated[0][0], node)
        fix = "initialize it with random numbers, nn.init.kaiming_uniform_(weight), instead of a constant"
        info = timeline.info(node)
        at = written_at(timeline, info, writes_constant) or innermost(info)
        yield Finding("same-units", text, record.seq, node, (size,), fix, at)


def _has_equal_rows(timeline: Timeline, value: Value | None) -> bool:
    array = timeline.array(value) if value is not None else None
    return array is not None and array.ndim > 1 and bool(np.allclose(array, array[:1], rtol=1e-5, atol=1e-12))
