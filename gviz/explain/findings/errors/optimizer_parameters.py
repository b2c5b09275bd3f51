"""What an optimizer refuses: a model, no parameters at all, a tensor that is not a leaf, sparse gradients."""

from __future__ import annotations

import ast
import re

from gviz.events import GradAccumulated
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.program_errors import Failure
from gviz.explain.program_text import ProgramText
from gviz.explain.source_edit import Change, Edit, Generator, generator_read, leaf_last, rewritten, with_keyword
from gviz.explain.source_frames import innermost
from gviz.source.call_stack import Frame
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import file_line, shown

NO_LEAF = r"can't optimize a non-leaf Tensor"
NO_PARAMETERS = r"optimizer got an empty parameter list"


def of_model(failure: Failure) -> Finding | None:
    """Return the finding about a model in place of its parameters; None if another object is not iterable."""
    edit = _with_parameters(failure.timeline, failure.at)
    if edit is None:
        return None
    part = Finding("message", failure.quoted, failure.seq)
    text = "an optimizer expects parameters, but gets a model"
    fix = "pass model.parameters() instead of the model"
    return Finding("failed", text, failure.seq, 0, (part,), fix, failure.at, edit=edit)


def _result_on_its_line(failure: Failure) -> NodeInfo | None:
    """Return the last tracked result whose name is on the line that raised the error."""
    names = failure.names_on_its_line()
    tracked = (info for info in failure.earlier_nodes() if info.created.kind == "op" and info.created.requires_grad)
    return next((info for info in tracked if info.name in names), None)


def of_no_leaf(failure: Failure) -> Finding | None:
    """Return the finding about an optimizer that got a tensor that is not a leaf."""
    result = _result_on_its_line(failure)
    if result is None:
        return None
    name = shown(result.name)
    text = titled("{} is not a leaf: an optimizer cannot change it", label(failure.timeline, result.node))
    fix = f"create the leaf last, after device and dtype are set: {name} = (...).detach().requires_grad_()"
    place = (
        f", and it was passed to the optimizer at {file_line(failure.at.path, failure.at.line)}" if failure.at else ""
    )
    part = Finding("used", f"an operation computed it{place}", result.born, result.node, at=failure.at)
    at = innermost(result) or failure.at
    edit = leaf_last(failure.timeline, at)
    return Finding("failed", text, failure.seq, result.node, (part,), fix, at, edit=edit)


def of_no_parameters(failure: Failure) -> Finding:
    """Return the finding about an optimizer without parameters: another line may have consumed their generator."""
    read = generator_read(failure.timeline, failure.at)
    if read is None:
        fix = "pass the parameters() of a module whose layers are attributes, or in an nn.ModuleList"
        return Finding("failed", "this optimizer gets no parameters", failure.seq, fix=fix, at=failure.at)
    text = titled("no parameters to optimize: {} is a generator that was already consumed", shown(read.name))
    fix = f"make it a list, which can be read again: {read.name} = list(...)"
    return Finding("failed", text, failure.seq, 0, (used_up(read, failure.seq),), fix, failure.at, edit=read.edit)


def used_up(read: Generator, seq: int) -> Finding:
    """Return a fact: the line that created a generator, and the line that read it to its end."""
    origin = f"{shown(read.name)} was created at {file_line(read.at.path, read.at.line)}"
    first = f", and read to its end at {file_line(read.first.path, read.first.line)}" if read.first is not None else ""
    return Finding("used-up", f"{origin}{first}", seq, at=read.at)


SPARSE = r"(\w+) does not support sparse gradients"


def of_sparse_gradients(failure: Failure) -> Finding | None:
    """Return the finding about an optimizer that does not support sparse gradients, with the parameter that has one."""
    match = re.search(SPARSE, failure.message)
    if match is None:
        return None
    optimizer = match[1]
    timeline = failure.timeline
    added = timeline.select((GradAccumulated,), 1, failure.seq)
    node = next((event.node for _, event in added if "sparse" in event.part.dtype), 0)
    name = label(timeline, node) if node else "a parameter"
    text = titled(f"{optimizer} does not support sparse gradients, but {{}} has one", name)
    origin = innermost(timeline.info(node)) if node else None
    parts = (Finding("leaf", f"{label_at(timeline, node)} gets it", failure.seq, node, at=origin),) if node else ()
    fix = "use torch.optim.SparseAdam or SGD for these parameters, or sparse=False in the embedding"
    edit = with_keyword(timeline, origin, "Embedding", "sparse", "False")
    return Finding("failed", text, failure.seq, node, parts, fix, failure.at, edit=edit)


def _with_parameters(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Append ``.parameters()`` to the first argument of an optimizer."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.Call(func=ast.Attribute(value=value), args=[ast.Name() | ast.Attribute() as model, *_]):
                    if not text.segment(value).endswith("optim"):
                        return None
                    return text.with_part(part, model, f"{text.segment(model)}.parameters()")
            return None

        return known

    return rewritten(timeline, at, change)
