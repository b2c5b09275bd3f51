"""A gradient of `torch.func` by an argument that the function does not use."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.source.call_stack import Frame


def unused_arguments(survey: Survey) -> Iterator[Finding | None]:
    """Yield gradients that a transform of PyTorch has filled with zeros, as the function does not use its argument.

    A gradient of a gradient is left out: that of a linear function is 0 as it should be. So is a call with several
    arguments, which may differentiate by all of them on purpose.
    """
    timeline = survey.timeline
    leaves: dict[Frame | None, list[NodeRecord]] = {}  # those within transforms, by the program's outermost call
    for record in survey.nodes.values():
        created = record.created
        if created.kind == "leaf" and created.requires_grad and record.value is not None and not record.value.is_known:
            leaves.setdefault(next(reversed(timeline.stack(created.stack)), None), []).append(record)
    for record in survey.ops("zeros_like") if leaves else ():
        yield None
        source = next(survey.sources(record), None)
        outermost = next(reversed(timeline.stack(record.created.stack)), None)
        if source is None or leaves.get(outermost, []) != [source]:
            continue
        if timeline.nodes.users(source.node) != (record.node,):
            continue
        text = titled("{} is 0 everywhere: the function does not use its argument", label(timeline, record.node))
        part = Finding("unused", "nothing was computed from the argument, so PyTorch fills its gradient with zeros",
                       source.seq, source.node)  # fmt: skip
        fix = "use the argument in the function, or argnums= for the one that it uses"
        yield Finding("unused", text, record.seq, record.node, (part,), fix, survey.at(record), suspected=True)
