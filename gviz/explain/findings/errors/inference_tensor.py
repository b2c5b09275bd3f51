"""A tensor of ``inference_mode`` that is used outside of it, and the line that switched the mode on."""

from __future__ import annotations

import re

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.program_errors import Failure
from gviz.explain.program_text import line_text
from gviz.explain.source_edit import inference_mode_around
from gviz.explain.source_frames import innermost, own_frames
from gviz.explain.tracking import ancestors
from gviz.values.plain_text import file_line, shown

INFERENCE = (
    r"Inference tensors cannot be saved for backward|(?:Inplace update to|on) inference tensor outside InferenceMode"
    r"|Inference tensors do not track version counter|created in inference mode"
)


def of_inference_tensor(failure: Failure) -> Finding | None:
    """Return the finding about a tensor of ``inference_mode`` outside of it, with the line that switched the mode on.

    It is the last tensor of that mode among those from which the tensors on the lines of the error were made, or else
    the last of all.
    """
    timeline = failure.timeline
    lines = " ".join(line_text(timeline, frame).split("#")[0] for frame in own_frames(failure.frames))
    named = [
        info.node
        for info in failure.earlier_nodes()
        if info.name and re.search(rf"(?<!\w){re.escape(info.name)}\b", lines)
    ]
    before = sorted({*named, *ancestors(timeline, *named)}, reverse=True)
    for info in (*map(timeline.info, before), *failure.earlier_nodes()):
        if info.created.requires_grad or (mode := inference_mode_around(timeline, info.frames)) is None:
            continue
        use = "backward cannot save it"
        if failure.says(r"[Ii]nplace"):
            use = "it cannot be changed in place outside"
        elif failure.says("requires_grad"):
            use = "it cannot require a gradient"
        text = titled(f"{{}} is an inference tensor: {use}", label(timeline, info.node))
        made = f"made under {shown(mode.name)}: {label_at(timeline, info.node)}"
        used = f"the error is at {file_line(failure.at.path, failure.at.line)}" if failure.at is not None else ""
        part = Finding("made", f"{made}; {used}" if used else made, info.born, info.node, at=innermost(info))
        fix = "torch.no_grad() in its place, or clone() the tensor outside of inference_mode before it is used"
        parts = (part, Finding("used", failure.quoted, failure.seq, at=failure.at))
        return Finding("failed", text, failure.seq, info.node, parts, fix, mode.at, edit=mode.edit)
    return None
