"""Other errors.

They are backward of a tensor without a graph, a gradient of another shape, a number instead of a tensor, and any error
that no other kind explains.
"""

from __future__ import annotations

import re

from gviz.events import GradCaptured, RequiresGradSet, StepStarted
from gviz.explain.computation import computation
from gviz.explain.display_names import MOST_TITLE, innermost, label, label_at, made_at, titled, why_untracked
from gviz.explain.edit import (
    Generator,
    after,
    generator_read,
    keyword_or_argument,
    leaf_last,
    numbers_read,
    with_keyword,
    without_arrays,
    without_in_place,
)
from gviz.explain.finding import Finding
from gviz.explain.program_errors import Failure
from gviz.explain.program_source import line_text
from gviz.explain.tracking import CREATE_GRAPH, STACK, Mend, ancestors, loses_tracking, mend
from gviz.source.site import source_lines
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.number_text import shape_text
from gviz.values.plain_text import clipped, file_line, shown
from gviz.values.value import Value

_UNTRACKED = r"does not require grad and does not have a grad_fn"
_NO_HISTORY = "requires_grad=True on what it is made from; data that went through numpy or .item() has no history"


def explain_untracked_loss(failure: Failure) -> Finding | None:
    """Return the place at which the tensor's history begins too late."""
    if not failure.says(_UNTRACKED):
        return None
    timeline = failure.timeline
    root = _root(failure)
    name = label(timeline, root) if root else "a tensor"
    text = titled("backward was called on {}: no tracked operation made it", name)
    lost = _lost_at(timeline, root) if root else 0
    if not lost:
        why, fix = (_new_data(timeline, root) or _frozen(timeline, root) if root else None) or (
            Finding("no-input-requires", "nothing that it was made from requires a gradient", failure.seq, root),
            _NO_HISTORY,
        )
        return Finding("untracked-loss", text, failure.seq, root, (why,), fix, why.at or failure.at, edit=why.edit)
    info = timeline.info(lost)
    reason = f"tracking was lost first at {label_at(timeline, lost)}: {why_untracked(info.created)}"
    part = Finding("cut", reason, info.born, lost, at=innermost(info))
    how = _tracking_fix(timeline, lost)
    at = how.at or innermost(info)
    return Finding("untracked-loss", text, failure.seq, root, (part,), how.fix, at, edit=how.edit)


def _frozen(timeline: Timeline, root: int) -> tuple[Finding, str] | None:
    """Return the line that froze the parameters of a loss."""
    parameters = [node for node in ancestors(timeline, root) if timeline.info(node).created.kind == "parameter"]
    set_off = [
        (seq, event)
        for node in parameters
        for seq in timeline.events_of(node)
        if isinstance(event := timeline.event(seq), RequiresGradSet) and not event.requires_grad
    ]
    if not set_off:
        return None
    seq, event = min(set_off, key=lambda one: one[0])
    frames = timeline.stack(event.stack)
    count = len({one.node for _, one in set_off})
    many = f"all {count} parameters behind it are" if count > 1 else f"{label(timeline, event.node)} behind it is"
    text = f"{many} frozen: requires_grad was set to False{made_at(frames)}"
    part = Finding("frozen", text, seq, event.node, at=frames[0] if frames else None)
    return part, "leave requires_grad = False out for what is to learn"


def _new_data(timeline: Timeline, root: int) -> tuple[Finding, str] | None:
    """Return the new data on the path to the root: a gradient from ``autograd.grad``, or numbers of results."""
    first_events = gradients_taken(timeline)
    for node in (root, *ancestors(timeline, root)):
        info = timeline.info(node)
        line = line_text(timeline, innermost(info)).strip()
        value = info.created.first_value
        if info.created.kind != "constant" or value is None:
            continue
        is_gradient = first_events.get(value, info.born) < info.born
        if is_gradient or re.search(r"\b(as_)?tensor\(\s*[A-Za-z_[]", line):
            at = innermost(info)
            data = "what autograd.grad gave" if is_gradient else f"new data to autograd: {clipped(line, 80)}"
            text = f"{label_at(timeline, node)} has no history: it is {data}"
            if is_gradient:
                edit = with_keyword(timeline, at, "grad", "create_graph", "True")
                return Finding("copied", text, info.born, node, at=at, edit=edit), CREATE_GRAPH
            if (read := numbers_read(timeline, at)) is not None:
                name, there = read
                text = f"{text}; {name} is a number since {file_line(there.path, there.line)}"
                return Finding("copied", text, info.born, node, at=there), _SUM
            edit = without_arrays(timeline, at)
            return Finding("copied", text, info.born, node, at=at, edit=edit), STACK
    return None


_SUM = "add up the tensors themselves, without .item(), float() or numpy: then the sum has their history"


def gradients_taken(timeline: Timeline) -> dict[Value, int]:
    """Return the gradients that were returned instead of stored in a ``.grad``, each with its first event."""
    events: dict[Value, int] = {}
    for seq, event in timeline.select((GradCaptured,)):
        events.setdefault(event.value, seq)
    return events


def _tracking_fix(timeline: Timeline, lost: int) -> Mend:
    info = timeline.info(lost)
    if info.op.name.startswith(("argmax", "argmin")):
        return Mend("indices have no gradient: make the loss of the scores themselves, with softmax or cross_entropy")
    return mend(timeline, info)


def _root(failure: Failure) -> int:
    """Return the tensor whose backward was called: the one with the name on that line, or else the last one made."""
    names, last = failure.names_on_its_line(), next(failure.made_before(), None)
    named = (info.node for info in failure.made_before() if info.name in names)
    return next(named, last.node if last is not None else 0)


def _lost_at(timeline: Timeline, root: int) -> int:
    """Return the earliest operation on the path to the root that lost track of a tensor that requires a gradient."""
    lost = [node for node in (root, *ancestors(timeline, root)) if loses_tracking(timeline, node)]
    return min(lost, key=timeline.nodes.born, default=0)


# The gradient with which backward starts

SEVERAL = r"implicitly created only for scalar outputs"
_SIZE = r"has a shape of torch\.Size\((.*?)\)"
MISFIT = rf"Mismatch in shape: grad_output\[\d+\] {_SIZE} and output\[\d+\] {_SIZE}"


def explain_given_gradient(failure: Failure) -> Finding | None:
    """Return the shape that was passed and the shape that is required."""
    if failure.says(SEVERAL):
        return _several(failure)
    found = re.search(MISFIT, failure.message, re.DOTALL)
    if found is None:
        return None
    given, wanted = (_shape(text) for text in found.groups())
    text = titled("backward was given a gradient of shape {} for a tensor of shape {}", given, wanted)
    fix = f"pass a gradient of shape {wanted}, or none to a loss of one element"
    return Finding("given-gradient", text, failure.seq, fix=fix, at=failure.at)


def _several(failure: Failure) -> Finding:
    timeline, names = failure.timeline, failure.names_on_its_line()
    root = next((info for info in failure.made_before() if info.name in names and info.created.requires_grad), None)
    value = root.created.first_value if root is not None else None
    shape = f" of shape {shape_text(value.shape)}" if value is not None else ""
    text = titled("backward of several elements{} needs a gradient to start from", shape)
    made = (Finding("root", f"it is {label_at(timeline, root.node)}", root.born, root.node),) if root else ()
    at = failure.at or (innermost(root) if root else None)
    return Finding("given-gradient", text, failure.seq, root.node if root else 0, made, _REDUCE, at)


_REDUCE = "make one number of it first (sum or mean), or pass gradient="


def _shape(text: str) -> str:
    return shape_text(tuple(int(size) for size in re.findall(r"\d+", text)))


# Any other error

_NO_LEAF = r"can't optimize a non-leaf Tensor"
_NO_PARAMETERS = r"optimizer got an empty parameter list"
_KNOWN: tuple[tuple[str, str, str], ...] = (
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


def explain_other(failure: Failure) -> Finding:
    """Return the error in its own words, with cause and remedy if they are known."""
    cause, fix = next(((cause, fix) for words, cause, fix in _KNOWN if failure.says(words)), ("", _for_labels(failure)))
    if name := number_called(failure):
        return _on_a_number(failure, name)
    if failure.says(_OF_SEVERAL_VIEWS):
        return _of_several_views(failure)
    if failure.says(_RETURNED_NAN) and (with_nan := _rule_with_nan(failure)) is not None:
        return with_nan
    if failure.says(_NEEDS_NONE) and (frozen := _of_a_frozen_input(failure)) is not None:
        return frozen
    if failure.says(_NO_LEAF) and (result := _result_on_its_line(failure)) is not None:
        return _for_an_optimizer(failure, result)
    if failure.says(_NO_PARAMETERS):
        return _without_parameters(failure)
    whole, node = f"{failure.ended} with {shown(failure.error)}: {clipped(shown(failure.message), 120)}", failure.node
    text = clipped(cause or whole, MOST_TITLE)
    parts = (Finding("message", whole, failure.seq, node),) if text != whole else ()
    if node:
        rule = f"in the backward of {label_at(failure.timeline, node)}"
        parts = (*parts, Finding("at", rule, failure.seq, node, at=innermost(failure.timeline.info(node))))
    return Finding("failed", text, failure.seq, node, parts, fix, failure.at)


def _on_a_number(failure: Failure, name: str) -> Finding:
    """Return the finding about ``backward`` of a number, with the line that took it out of its tensor."""
    text = titled("backward was called on {}, which is a number and no tensor", name)
    made = made_number(failure, name)
    parts = (Finding("made-number", f"it was made one at {made}", failure.seq),) if made else ()
    fix = f"call backward() on the tensor, and give the number another name: {name}.backward(); value = {name}.item()"
    return Finding("failed", text, failure.seq, 0, parts, fix, failure.at)


def _result_on_its_line(failure: Failure) -> NodeInfo | None:
    """Return the last tracked result whose name is on the line that raised the error."""
    names = failure.names_on_its_line()
    tracked = (info for info in failure.made_before() if info.created.kind == "op" and info.created.requires_grad)
    return next((info for info in tracked if info.name in names), None)


def _for_an_optimizer(failure: Failure, result: NodeInfo) -> Finding:
    """Return the finding about an optimizer that got a tensor that is no leaf."""
    name = shown(result.name)
    text = titled("{} is no leaf: an optimizer cannot change it", label(failure.timeline, result.node))
    fix = f"make the leaf last: {name} = (...).detach().requires_grad_(), and device and dtype before that"
    place = (
        f", and it was given to the optimizer at {file_line(failure.at.path, failure.at.line)}" if failure.at else ""
    )
    part = Finding("used", f"an operation made it{place}", result.born, result.node, at=failure.at)
    at = innermost(result) or failure.at
    edit = leaf_last(failure.timeline, at)
    return Finding("failed", text, failure.seq, result.node, (part,), fix, at, edit=edit)


def _without_parameters(failure: Failure) -> Finding:
    """Return the finding about an optimizer without parameters, because another line has read their generator."""
    read = generator_read(failure.timeline, failure.at)
    if read is None:
        fix = "give it the parameters() of a module that has layers as attributes, or in an nn.ModuleList"
        return Finding("failed", "this optimizer gets no parameters", failure.seq, fix=fix, at=failure.at)
    text = titled("no parameters to optimize: {} is a generator that was already consumed", shown(read.name))
    fix = f"make it a list, which can be read again: {read.name} = list(...)"
    return Finding("failed", text, failure.seq, 0, (used_up(read, failure.seq),), fix, failure.at, edit=read.edit)


def used_up(read: Generator, seq: int) -> Finding:
    """Return the fact about the line that made a generator, and the line that read it to its end."""
    made = f"{shown(read.name)} was made at {file_line(read.at.path, read.at.line)}"
    first = f", and read to its end at {file_line(read.first.path, read.first.line)}" if read.first is not None else ""
    return Finding("used-up", f"{made}{first}", seq, at=read.at)


_RETURNED_NAN = r"Function '(\w+)' returned nan values"


def _rule_with_nan(failure: Failure) -> Finding | None:
    """Return the finding about a rule that returned nan in anomaly mode: its node, with the line of its forward.

    PyTorch names only the class of the rule. It is that of the node whose rule began last in the failed pass.
    """
    timeline, named = failure.timeline, re.search(_RETURNED_NAN, failure.message)
    steps = (event.node for _, event in timeline.select((StepStarted,), 1, failure.seq))
    of_class = [node for node in steps if named is not None and timeline.info(node).op.grad_fn == named[1]]
    node = failure.node or next(reversed(of_class), 0)
    if not node:
        return None
    info, how = timeline.info(node), computation(timeline, node).text
    text = titled("the backward rule of {} returned nan", label(timeline, node))
    forward = f"the forward was {label_at(timeline, node)}{f': {how}' * bool(how)}"
    part = Finding("computed", forward, info.born, node, at=innermost(info))
    fix = "look at the values that went into the forward: a zero under a root or a division"
    return Finding("failed", text, failure.seq, node, (part,), fix, innermost(info) or failure.at)


_NEEDS_NONE = r"One of the differentiated Tensors does not require grad"


def _of_a_frozen_input(failure: Failure) -> Finding | None:
    """Return which input of `autograd.grad` requires no gradient, and where it was made."""
    names = keyword_or_argument(failure.timeline, failure.at, "grad", 1, "inputs")
    made = (info for info in failure.made_before() if info.name and info.name in names)
    info = next((info for info in made if not info.created.requires_grad), None)
    if info is None:
        return None
    name = shown(info.name)
    text = titled("{} requires no gradient, and autograd.grad is asked for one", label(failure.timeline, info.node))
    fix = f"{name}.requires_grad_() before it is used"
    at = innermost(info) or failure.at
    edit = after(failure.timeline, at, f"{name}.requires_grad_()")
    return Finding("failed", text, failure.seq, info.node, (), fix, at, edit=edit)


_OF_SEVERAL_VIEWS = r"is a view and is being modified inplace. This view is the output of a function that returns"


def _of_several_views(failure: Failure) -> Finding:
    """Return the finding about a write to one of the views that `unbind`, `split` or `chunk` returned."""
    names = failure.names_on_its_line()
    made = (info for info in failure.made_before() if info.name in names or info.output_name(0) in names)
    info = next(made, None)
    what = f", {label(failure.timeline, info.node)}," if info is not None else ""
    text = titled("one of several views{} was to be changed in place", what)
    fix = "use the operation that makes a new tensor, or clone() the view first"
    edit = without_in_place(failure.timeline, failure.at)
    return Finding("failed", text, failure.seq, info.node if info else 0, (), fix, failure.at, edit=edit)


def _for_labels(failure: Failure) -> str:
    """Return the fix for a class label without a score; empty for any other error."""
    asked = re.match(r"Target (-?\d+) is out of bounds", failure.message)
    if asked is None:
        return ""
    names, made = failure.names_on_its_line(), list(failure.made_before())
    inputs = [one for one in made if one.name in names and failure.at not in one.frames]
    for info in (*inputs, *made):
        classes = _classes(info)
        if classes and not 0 <= int(asked[1]) < classes:
            scores = label(failure.timeline, info.node)
            return f"labels lie from 0 to {classes - 1}: the scores, {scores}, have {classes} columns"
    return "labels lie from 0 to C - 1, where the scores have C columns"


def _classes(info: NodeInfo) -> int:
    """Return the number of classes for which a tensor may hold scores; 0 if it holds no scores."""
    value = info.created.first_value
    if value is None or not value.dtype.startswith(("float", "bfloat")) or not value.shape:
        return 0
    return value.shape[min(1, len(value.shape) - 1)]


# A number that has no ``backward``: the line that took it out of its tensor

_CONVERSION = r"\.item\(\)|\.tolist\(\)|\.numpy\(\)|\bfloat\(|\bint\("


def number_called(failure: Failure) -> str:
    """Return the name on which ``backward`` was called though it is a number; empty for any other error."""
    if not re.match(r"'(float|int|list|numpy\.\w+)' object has no attribute 'backward'", failure.message):
        return ""
    called = re.search(r"([A-Za-z_]\w*)\.backward\b", failure.line)
    return called[1] if called else ""


def made_number(failure: Failure, name: str) -> str:
    """Return the last line before the error that made a name a number: ``train.py:9: loss = loss.item()``, or empty."""
    at = failure.at
    text = failure.timeline.source(at.path) if at is not None else None
    if at is None or text is None:
        return ""
    making = re.compile(rf"(?<![\w.]){name}\s*=(?!=)[^;#]*(?:{_CONVERSION})[^;#]*")
    for line, row in reversed(list(enumerate(source_lines(text)[: at.line], 1))):
        if found := making.search(row):
            return f"{file_line(at.path, line)}: {clipped(found[0].strip(), 100)}"
    return ""
