"""Errors that no other file explains.

They are backward of a tensor without autograd history, a gradient argument that does not fit, a number in place of a
tensor, and any other error.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass

from gviz.errors import did_you_mean
from gviz.events import (
    BackwardFinished,
    GradAccumulated,
    GradCaptured,
    RequiresGradSet,
    ScopeEntered,
    ScopeLeft,
    StepStarted,
)
from gviz.explain.backward_passes import pass_started
from gviz.explain.display_names import MOST_TITLE, label, label_at, output_label, titled
from gviz.explain.finding import Finding
from gviz.explain.findings.custom_functions import custom_backward_returns
from gviz.explain.findings.errors import checkpoint
from gviz.explain.program_errors import MOST_READ, Failure
from gviz.explain.program_text import (
    ProgramText,
    Store,
    called_at,
    called_lines,
    called_name,
    frame_of,
    function_of,
    keyword_or_argument,
    line_text,
    method_class,
    numbers_read,
    place_of_store,
    places_read,
    positional_parameters,
    statement_at,
    stores_of,
)
from gviz.explain.source_edit import (
    Change,
    Edit,
    Generator,
    after,
    argument_suffix,
    before,
    generator_read,
    inference_mode_around,
    leaf_last,
    nodes_replaced,
    renamed_call,
    rewritten,
    stacked,
    with_keyword,
    without_arrays,
    without_in_place,
)
from gviz.explain.source_frames import at_text, innermost, own_frame, own_frames
from gviz.explain.tracking import CREATE_GRAPH, STACK, Mend, ancestors, loses_tracking, mend, why_untracked
from gviz.explain.value_computation import computation
from gviz.source.call_stack import Frame, source_lines
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.number_text import shape_text
from gviz.values.plain_text import clipped, file_line, shown
from gviz.values.value import Value

_UNTRACKED = r"does not require grad and does not have a grad_fn"
_NO_HISTORY = "set requires_grad=True on its inputs; data that went through numpy or .item() has no history"


def explain_untracked_loss(failure: Failure) -> Finding | None:
    """Return the finding about backward of a tensor without autograd history, with the place where it was lost."""
    if not failure.says(_UNTRACKED):
        return None
    timeline = failure.timeline
    root = _root(failure)
    name = label(timeline, root) if root else "a tensor"
    called = "backward" if called_at(timeline, failure.at, "backward") else "autograd.grad"
    called = called if called_at(timeline, failure.at, "grad") else "backward"
    text = titled(f"{called} was called on {{}}, which has no autograd history", name)
    lost = _lost_at(timeline, root) if root else 0
    copied = _new_data(timeline, root) if root else None
    if lost and copied is not None and copied.is_read and timeline.info(lost).created.untracked == "dtype":
        lost = 0  # numbers of results, which lost their history here, and not where an index was taken
    if not lost:
        found = (copied.part, copied.fix) if copied is not None else _frozen(timeline, root) if root else None
        why, fix = found or (
            Finding("no-input-requires", "nothing that it was computed from requires a gradient", failure.seq, root),
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
    """Return the line that froze the parameters of a loss, and the fix; None if none of them is frozen."""
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
    text = f"{many} frozen: requires_grad was set to False{at_text(frames)}"
    part = Finding("frozen", text, seq, event.node, at=frames[0] if frames else None)
    return part, "remove requires_grad = False for the parameters that should learn"


@dataclass(frozen=True, slots=True)
class _NewData:
    """Data on the path to a loss that has no history: the fact, the fix, and whether a line reads numbers for it."""

    part: Finding
    fix: str
    is_read: bool = False


_MAKING = re.compile(r"\b(?:(?:as_)?tensor|from_numpy|(?:Float|Double|Half)?Tensor)\((?=[^),]*(?<![\d.])[A-Za-z_[])")


def _new_data(timeline: Timeline, root: int) -> _NewData | None:
    """Return the new data on the path to the root; of several, one for which a line reads the numbers of results.

    It is a gradient that ``autograd.grad`` returned, or a tensor made from the numbers of results.
    """
    first_events = gradients_taken(timeline)
    found = []
    for node in (root, *ancestors(timeline, root)):
        info = timeline.info(node)
        line = line_text(timeline, innermost(info)).strip()
        value = info.created.first_value
        if info.created.kind != "constant" or value is None:
            continue
        is_gradient = first_events.get(value, info.born) < info.born
        if is_gradient or _MAKING.search(line):
            at = innermost(info)
            data = "a result of autograd.grad" if is_gradient else f"new data to autograd: {clipped(line, 80)}"
            text = f"{label_at(timeline, node)} has no history: it is {data}"
            if is_gradient:
                edit = with_keyword(timeline, at, "grad", "create_graph", "True")
                found.append(_NewData(Finding("copied", text, info.born, node, at=at, edit=edit), CREATE_GRAPH, True))
            elif (read := _numbers_taken(timeline, info, at)) is not None:
                name, there = read
                text = f"{text}; {name} has been a number since {file_line(there.path, there.line)}"
                is_array = called_at(timeline, there, "numpy")
                if is_array:
                    text = f"{text.rpartition(';')[0]}; {name} is from an array of {file_line(there.path, there.line)}"
                fix = _TENSORS if is_array else _SUM
                found.append(_NewData(Finding("copied", text, info.born, node, at=there), fix, True))
            else:
                edit = without_arrays(timeline, at) or stacked(timeline, at)
                part = Finding("copied", text, info.born, node, at=at, edit=edit)
                found.append(_NewData(part, STACK, called_at(timeline, at, "item", "tolist", "numpy", "float")))
    return next((one for one in found if one.is_read), next(iter(found), None))


def _numbers_taken(timeline: Timeline, made: NodeInfo, at: Frame | None) -> tuple[str, Frame] | None:
    """Return the variable from which a line made a tensor, and the line that took its numbers; None without one.

    Of several lines, it is one at which a tracked tensor lost its history. If the text shows none, as where another
    function computes the numbers, it is the last such line that the same iteration ran before.
    """
    read = [*numbers_read(timeline, at)]
    if called_at(timeline, at, "item", "tolist", "numpy", "float") and not read:
        return None  # the line itself takes them
    lost = dict[tuple[str, int], NodeInfo]()
    place = timeline.nodes.place_of(made.node)
    for node in reversed(timeline.nodes[max(place - _NEAR_NUMBERS, 0) : place]):
        info, line = timeline.info(node), innermost(timeline.info(node))
        is_taken = info.created.untracked in ("detach", "data") and called_at(timeline, line, *_TAKING)
        if info.iteration == made.iteration and line is not None and is_taken and loses_tracking(timeline, node):
            lost.setdefault((line.path, line.line), info)
    of_history = [(name, line) for name, line in read if (line.path, line.line) in lost]
    if of_history or read:
        return (of_history or read)[0]
    first = next(iter(lost.values()), None)
    line = innermost(first) if first is not None else None
    return (shown(first.name) or "it", line) if first is not None and line is not None else None


_TAKING = ("numpy", "tolist", "item")
_NEAR_NUMBERS = 200
"""The nodes before a tensor of numbers among which the line that took the numbers is searched."""

_TENSORS = "compute the loss with tensors throughout, by torch functions: an array has no history"
_SUM = "add up the tensors themselves, without .item(), float() or numpy, so that the sum has their history"


def gradients_taken(timeline: Timeline) -> dict[Value, int]:
    """Return the gradients that ``autograd.grad`` returned, each with the first event that captured it."""
    events: dict[Value, int] = {}
    for seq, event in timeline.select((GradCaptured,)):
        events.setdefault(event.value, seq)
    return events


def _tracking_fix(timeline: Timeline, lost: int) -> Mend:
    info = timeline.info(lost)
    if info.op.name.startswith(("argmax", "argmin")):
        return Mend("indices have no gradient: compute the loss from the scores, with softmax or cross_entropy")
    return mend(timeline, info)


def _root(failure: Failure) -> int:
    """Return the tensor whose backward was called.

    It is the first untracked root of the pass that the error ended. If the recording has no such pass, it is the newest
    tensor named on the failing line, or else the newest of all.
    """
    timeline = failure.timeline
    ends = (timeline.event(seq) for seq in (failure.seq, failure.seq - 1) if seq > 0)
    end = next((event for event in ends if isinstance(event, BackwardFinished) and event.error), None)
    started = pass_started(timeline, end.pass_nr) if end is not None else None
    for node, _ in started.roots if started is not None else ():
        if node in timeline.nodes and not timeline.info(node).created.requires_grad:
            return node
    names, last = failure.names_on_its_line(), next(failure.earlier_nodes(), None)
    named = (info.node for info in failure.earlier_nodes() if info.name in names)
    return next(named, last.node if last is not None else 0)


def _lost_at(timeline: Timeline, root: int) -> int:
    """Return the earliest operation with a tracked input on the untracked path to the root; 0 if there is none.

    What a tracked input was made from is not looked at: a tensor of integers there, such as a sampled action, is not
    the reason. Of several operations, one that loses real numbers is, if there is one.
    """
    lost, seen, waiting = list[int](), {root}, [root]
    while waiting:
        node = waiting.pop()
        if loses_tracking(timeline, node):
            lost.append(node)
        for source in timeline.nodes.inputs_by_node.get(node, ()):
            if source and source not in seen and not timeline.info(source).created.requires_grad:
                seen.add(source)
                waiting.append(source)
    real = [node for node in lost if timeline.info(node).created.untracked != "dtype"]
    return min(real or lost, key=timeline.nodes.born, default=0)


# The gradient argument of backward

SEVERAL = r"implicitly created only for scalar outputs"
_SIZE = r"has a shape of torch\.Size\((.*?)\)"
MISFIT = rf"Mismatch in shape: grad_output\[\d+\] {_SIZE} and output\[\d+\] {_SIZE}"


def explain_gradient_argument(failure: Failure) -> Finding | None:
    """Return the finding about a gradient argument that is missing, or has another shape than the tensor."""
    if failure.says(SEVERAL):
        return _without_gradient_argument(failure)
    match = re.search(MISFIT, failure.message, re.DOTALL)
    if match is None:
        return None
    actual, expected = (_shape(text) for text in match.groups())
    text = titled("backward got a gradient of shape {} for a tensor of shape {}", actual, expected)
    fix = f"pass a gradient of shape {expected}; a loss of one element needs none"
    return Finding("given-gradient", text, failure.seq, fix=fix, at=failure.at)


def _without_gradient_argument(failure: Failure) -> Finding:
    timeline, names = failure.timeline, failure.names_on_its_line()
    root = next((info for info in failure.earlier_nodes() if info.name in names and info.created.requires_grad), None)
    value = root.created.first_value if root is not None else None
    shape = f", {shape_text(value.shape)}," if value is not None else ""
    text = titled("backward of several elements{} needs a gradient to start from", shape)
    parts = (Finding("root", f"it is {label_at(timeline, root.node)}", root.born, root.node),) if root else ()
    at = failure.at or (innermost(root) if root else None)
    return Finding("given-gradient", text, failure.seq, root.node if root else 0, parts, _REDUCE, at)


_REDUCE = "reduce it to one number first (sum or mean), or pass gradient="


def _shape(text: str) -> str:
    return shape_text(tuple(int(size) for size in re.findall(r"\d+", text)))


# Any other error

_COPIED_SIZE = r"size mismatch for (\S+): copying a param with shape (\S+\(.*?\)) from checkpoint, .*? is (\S+\(.*?\))"
_MOST_KEYS = 3
_NO_ATTRIBUTE = r"'(\w+)' object has no attribute '(\w+)'"
_NO_LEAF = r"can't optimize a non-leaf Tensor"
_NO_PARAMETERS = r"optimizer got an empty parameter list"


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What a message of PyTorch or Python that matches `pattern` means: its cause, the fix, and the fix as an edit."""

    pattern: str
    cause: str
    fix: str
    edit: Callable[[Failure], Edit | None] | None = None


def _suffix(function: str, suffix: str) -> Callable[[Failure], Edit | None]:
    """Return the edit that appends a suffix to the tensor that a function or method gets on the failing line."""
    return lambda failure: argument_suffix(failure.timeline, failure.at, function, suffix)


_MEANINGS = (
    _Meaning(
        r"appears to not have been used in the graph|should be used in the graph",
        "there is no path from the output to this input",
        "check that it is used, or pass allow_unused=True",
    ),
    _Meaning(
        r"must be Tensor, not tuple"
        r"|'tuple' object has no attribute '(?:size|shape|dim|view|reshape|mean|sum|squeeze|unsqueeze|detach|to)'",
        "a tuple is used where a tensor is needed: LSTM, GRU and attention return tuples",
        "use its first element: output, _ = rnn(x); in a Sequential, a module of your own that returns only output",
    ),
    _Meaning(
        r"cannot assign \w+ before Module.__init__\(\) call",
        "a layer was set before the module was initialized",
        "call super().__init__() in the first line of __init__",
        lambda failure: before(failure.timeline, failure.at, "super().__init__()"),
    ),
    _Meaning(
        r"Can't call numpy\(\) on Tensor that requires grad",
        "a tensor with autograd history cannot become an array",
        "use .detach().numpy() if you only need its numbers; no gradient flows through an array",
        _suffix("numpy", ".detach()"),
    ),
    _Meaning(
        r"all elements of input should be between 0 and 1",
        "binary_cross_entropy expects probabilities, but gets numbers outside 0 to 1",
        "use binary_cross_entropy_with_logits (BCEWithLogitsLoss) for raw scores, or apply sigmoid first",
        lambda failure: renamed_call(
            failure.timeline, failure.at, "binary_cross_entropy", "binary_cross_entropy_with_logits"
        ),
    ),
    _Meaning(
        r"mean\(\): could not infer output dtype",
        "the mean of integers is not an integer",
        "use .float() before .mean()",
        _suffix("mean", ".float()"),
    ),
    _Meaning(
        r"(?<!_loss)(?<!index)\" not implemented for '(?:Long|Int|Short|Char|Byte)'",
        "this operation does not accept integers",
        "call .float() on its input",
    ),
    _Meaning(
        r"must be tuple of ints, ?but (?:got|found element of type) float",
        "a size is a float: / always returns a float",
        "use // instead of /",
        lambda failure: _with_floor_division(failure.timeline, failure.at),
    ),
    _Meaning(
        r"Only Tensors of floating point and complex dtype can require gradients",
        "integers cannot have a gradient",
        "use floating-point numbers: 5.0 instead of 5, or dtype=torch.float32",
    ),
    _Meaning(
        r"all elements of target should be between 0 and 1",
        "binary_cross_entropy expects targets from 0 to 1",
        "use targets 0 and 1, or probabilities; for class numbers, use cross_entropy",
    ),
    _Meaning(
        r"argument given to the optimizer should be an iterable of .* but got torch\.\S*Tensor",
        "an optimizer expects a list of parameters, but gets a tensor",
        "pass [w] instead of w",
    ),
    _Meaning(
        r"optimizer can only optimize Tensors, but one of the params is torch\.nn",
        "an optimizer expects parameters, but gets modules",
        "pass [parameter for layer in layers for parameter in layer.parameters()]",
    ),
    _Meaning(
        r"embed_dim must be divisible by num_heads",
        "attention splits embed_dim evenly between its heads: num_heads must divide it",
        "choose a number of heads that divides embed_dim",
    ),
    _Meaning(
        r"Boolean value of Tensor with more than one value is ambiguous",
        "a tensor of several elements is neither true nor false",
        "use (...).any() or (...).all(), or torch.where to choose for each element",
    ),
)  # fmt: skip


def explain_other(failure: Failure) -> Finding:
    """Return the finding about any other error: its message, with the cause and the fix if they are known."""
    if name := _number_called(failure):
        return _on_a_number(failure, name)
    for pattern, explain in _EXPLANATIONS:
        if failure.says(pattern) and (finding := explain(failure)) is not None:
            return finding
    meaning = next((one for one in _MEANINGS if failure.says(one.pattern)), _Meaning("", "", _for_labels(failure)))
    edit = meaning.edit(failure) if meaning.edit is not None else None
    sentence, node = f"{failure.ended} with {failure.quoted}", failure.node
    text = clipped(meaning.cause or sentence, MOST_TITLE)
    parts = (Finding("message", sentence, failure.seq, node),) if text != sentence else ()
    if node:
        rule = f"in the backward of {label_at(failure.timeline, node)}"
        parts = (*parts, Finding("at", rule, failure.seq, node, at=innermost(failure.timeline.info(node))))
    return Finding("failed", text, failure.seq, node, parts, meaning.fix, failure.at, edit=edit)


def _of_nothing(failure: Failure) -> Finding | None:
    """Return the finding about a module whose forward returned None, because it has no ``return``.

    The call of the module must have ended just before the error, and the attribute must be missing on its result:
    ``net(x).mean``, or ``out.mean`` after ``out = net(x)``.
    """
    timeline, at = failure.timeline, failure.at
    attribute = re.search(r"'NoneType' object has no attribute '(\w+)'", failure.message)
    last = timeline.event(failure.seq - 1) if failure.seq > 1 else None
    call = timeline.contexts.call(last.scope) if isinstance(last, ScopeLeft) else None
    newest = next(failure.earlier_nodes(), None)
    if attribute is None or call is None or newest is None or at is None:
        return None
    for frame in newest.frames:
        target = re.match(r"\s*(\w+)\s*=(?!=)", line_text(timeline, frame))
        is_here = (frame.path, frame.line) == (at.path, at.line)
        read = r"\)\s*" if is_here else rf"\b{target[1]}" if target is not None else None
        if frame.path == at.path and read is not None and re.search(rf"{read}\.{attribute[1]}\b", failure.line):
            break
    else:
        return None
    text = titled("{} returned None, and its result is used here", f"{shown(call.name)}.forward")
    part = Finding("message", failure.quoted, failure.seq)
    fix = "return the result on the last line of forward"
    return Finding("failed", text, failure.seq, 0, (part,), fix, at)


def _of_loss_class(failure: Failure) -> Finding | None:
    """Return the finding about tensors that were passed to the class of a loss, which expects options."""
    edit = _with_loss_made_first(failure.timeline, failure.at)
    if edit is None:
        return None
    text = "the class of a loss expects options; its instance expects the tensors"
    part = Finding("message", failure.quoted, failure.seq)
    fix = "create the loss first: criterion = nn.CrossEntropyLoss(), then criterion(scores, labels)"
    return Finding("failed", text, failure.seq, 0, (part,), fix, failure.at, edit=edit)


def _of_model_for_optimizer(failure: Failure) -> Finding | None:
    """Return the finding about a model in place of its parameters; None if another object is not iterable."""
    edit = _with_parameters(failure.timeline, failure.at)
    if edit is None:
        return None
    part = Finding("message", failure.quoted, failure.seq)
    text = "an optimizer expects parameters, but gets a model"
    fix = "pass model.parameters() instead of the model"
    return Finding("failed", text, failure.seq, 0, (part,), fix, failure.at, edit=edit)


def _of_missing_attribute(failure: Failure) -> Finding | None:
    """Return the finding about an attribute that a module does not have, with the similar name of a layer of it."""
    match = re.search(_NO_ATTRIBUTE, failure.message)
    calls = failure.timeline.select((ScopeEntered,), 1, failure.seq)
    if match is None or all(call.kind != match[1] for _, call in calls):
        return None  # not an object whose layers are known
    parameters = (info for info in failure.earlier_nodes() if info.created.kind == "parameter")
    known = {part for info in parameters for part in info.name.split(".")[:-1] if not part.isdigit()}
    near = did_you_mean(match[2], known, "")
    if not near:
        return None
    text = titled("{} has no attribute {}", shown(match[1]), shown(match[2]))
    return Finding("failed", text, failure.seq, fix=near, at=failure.at)


def _of_state(failure: Failure) -> Finding | None:
    """Return the finding about a state_dict that does not fit its model: prefixes, names or shapes."""
    message = failure.message[:MOST_READ]
    missing, unexpected = (_keys(message, word) for word in ("Missing", "Unexpected"))
    sizes = re.findall(_COPIED_SIZE, message)
    parts = [
        Finding("size", f"{shown(name)} is {_shape(own)} in the model, but {_shape(loaded)} in the state", failure.seq)
        for name, loaded, own in sizes[:_MOST_KEYS]
    ]
    if sizes:
        text = f"the state is from a model of other sizes: {len(sizes)} tensor{'s' * (len(sizes) > 1)} cannot be copied"
        fix = "create the model with the sizes of the saved one"
        return Finding("failed", text, failure.seq, 0, tuple(parts), fix, failure.at)
    prefix, reverse = _prefix(unexpected, missing), _prefix(missing, unexpected)
    listed = [f"the model has {', '.join(map(shown, missing[:_MOST_KEYS]))}"] * bool(missing)
    listed += [f"the state has {', '.join(map(shown, unexpected[:_MOST_KEYS]))}"] * bool(unexpected)
    part = Finding("message", "; ".join(listed), failure.seq)
    if prefix:
        text = titled("the keys of the state begin with {}, but those of the model do not", shown(prefix))
        fix = f"{{key.removeprefix({prefix!r}): value for key, value in state.items()}}"
        return Finding("failed", text, failure.seq, 0, (part,), fix, failure.at)
    if reverse:
        text = titled("the keys of the model begin with {}, but those of the state do not", shown(reverse))
        fix = f"{{{reverse!r} + key: value for key, value in state.items()}}"
        return Finding("failed", text, failure.seq, 0, (part,), fix, failure.at)
    if not listed:
        return None
    text = "the state has other keys than the model"
    return Finding("failed", text, failure.seq, 0, (part,), "load it into the model that it was saved from", failure.at)


def _prefix(longer: Sequence[str], shorter: Sequence[str]) -> str:
    """Return the prefix that most `longer` keys have before a `shorter` key: ``module.``; empty if there is none."""
    known = set(shorter)
    prefixes = Counter(key.partition(".")[0] for key in longer if key.partition(".")[2] in known)
    most = prefixes.most_common(1)
    return f"{most[0][0]}." if most and 2 * most[0][1] > len(longer) else ""


def _keys(message: str, word: str) -> list[str]:
    """Return the keys that a message lists as ``Missing`` or ``Unexpected``."""
    match = re.search(rf"{word} key\(s\) in state_dict: (.*?)\.\s*(?:$|[\n\t])", message)
    return re.findall(r'"([^"]+)"', match[1]) if match is not None else []


def _on_a_number(failure: Failure, name: str) -> Finding:
    """Return the finding about ``backward`` of a number, with the line that converted it from a tensor."""
    text = titled("backward was called on {}, which is a number, not a tensor", name)
    conversion = _conversion_line(failure, name)
    parts = (Finding("made-number", f"it became a number at {conversion}", failure.seq),) if conversion else ()
    fix = f"call backward() on the tensor, and give the number another name: {name}.backward(); value = {name}.item()"
    return Finding("failed", text, failure.seq, 0, parts, fix, failure.at)


def _result_on_its_line(failure: Failure) -> NodeInfo | None:
    """Return the last tracked result whose name is on the line that raised the error."""
    names = failure.names_on_its_line()
    tracked = (info for info in failure.earlier_nodes() if info.created.kind == "op" and info.created.requires_grad)
    return next((info for info in tracked if info.name in names), None)


def _for_an_optimizer(failure: Failure) -> Finding | None:
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


def _without_parameters(failure: Failure) -> Finding:
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


_SPARSE = r"(\w+) does not support sparse gradients"


def _of_sparse_gradients(failure: Failure) -> Finding | None:
    """Return the finding about an optimizer that does not support sparse gradients, with the parameter that has one."""
    match = re.search(_SPARSE, failure.message)
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


_RANDOM_IN_VMAP = r"called random operation while in randomness error mode"


def _of_random_numbers(failure: Failure) -> Finding:
    """Return the finding about random numbers in `vmap`, which needs to know whether they differ between samples."""
    text = "vmap does not know whether this random draw should differ between samples"
    fix = 'pass randomness="different" to vmap for one draw per sample, or "same" for one in all; or model.eval()'
    return Finding("failed", text, failure.seq, failure.node, (), fix, failure.at)


_RETURNED_NAN = r"Function '(\w+)' returned nan values"


def _rule_with_nan(failure: Failure) -> Finding | None:
    """Return the finding about a backward rule that returned nan in anomaly mode: its node, and the line of that.

    PyTorch's message has only the class of the rule. Of the nodes of this class, it is the one whose rule began last.
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
    fix = "look at the inputs of the forward: for example a zero under a root, or as a divisor"
    return Finding("failed", text, failure.seq, node, (part,), fix, innermost(info) or failure.at)


_INFERENCE = (
    r"Inference tensors cannot be saved for backward|(?:Inplace update to|on) inference tensor outside InferenceMode"
    r"|Inference tensors do not track version counter|created in inference mode"
)


def _of_an_inference_tensor(failure: Failure) -> Finding | None:
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


_NEEDS_NONE = r"One of the differentiated Tensors does not require grad"


def _of_a_frozen_input(failure: Failure) -> Finding | None:
    """Return the finding about an input of `autograd.grad` that requires no gradient, with the line that created it."""
    names = keyword_or_argument(failure.timeline, failure.at, "grad", 1, "inputs")
    earlier = (info for info in failure.earlier_nodes() if info.name and info.name in names)
    info = next((info for info in earlier if not info.created.requires_grad), None)
    if info is None:
        return None
    name = shown(info.name)
    text = titled("autograd.grad cannot return a gradient of {}: it requires none", label(failure.timeline, info.node))
    fix = f"call {name}.requires_grad_() before it is used"
    at = innermost(info) or failure.at
    edit = after(failure.timeline, at, f"{name}.requires_grad_()")
    return Finding("failed", text, failure.seq, info.node, (), fix, at, edit=edit)


_OF_SEVERAL_VIEWS = r"is a view and is being modified inplace. This view is the output of a function that returns"


def _of_several_views(failure: Failure) -> Finding:
    """Return the finding about a write to one of the views that `unbind`, `split` or `chunk` returned."""
    names, match = failure.names_on_its_line(), re.search(r"Output (\d+) of", failure.message)
    nr = int(match[1]) if match is not None else 0
    several = [info for info in failure.earlier_nodes() if _has_several_views(info, nr)]
    info = next((one for one in several if one.output_name(nr) in names), next(iter(several), None))
    what = f", {output_label(failure.timeline, info.node, nr)}," if info is not None else ""
    text = titled("one of several views{} cannot be changed in place", what)
    fix = "use the operation that returns a new tensor, or clone() the view first"
    edit = without_in_place(failure.timeline, failure.at)
    return Finding("failed", text, failure.seq, info.node if info else 0, (), fix, failure.at, edit=edit)


def _has_several_views(info: NodeInfo, nr: int) -> bool:
    """Return whether a node has several views as its outputs, and one of number `nr`."""
    outputs = info.created.outputs
    return nr < len(outputs) and len(outputs) > 1 and all(one.view_of for one in outputs)


def _for_labels(failure: Failure) -> str:
    """Return the fix for a class label without a score; empty for any other error."""
    match = re.match(r"Target (-?\d+) is out of bounds", failure.message)
    if match is None:
        return ""
    names, earlier = failure.names_on_its_line(), list(failure.earlier_nodes())
    inputs = [one for one in earlier if one.name in names and failure.at not in one.frames]
    for info in (*inputs, *earlier):
        classes = _classes(info)
        if classes and not 0 <= int(match[1]) < classes:
            scores = label(failure.timeline, info.node)
            return f"use labels from 0 to {classes - 1}: the scores, {scores}, have {classes} columns"
    return "use labels from 0 to C - 1, where C is the number of columns of the scores"


def _classes(info: NodeInfo) -> int:
    """Return the number of classes if a tensor may contain their scores, otherwise 0."""
    value = info.created.first_value
    if value is None or not value.dtype.startswith(("float", "bfloat")) or not value.shape:
        return 0
    return value.shape[min(1, len(value.shape) - 1)]


# A copy of an object that holds a tensor with its graph: the line that stored the tensor there

_DEEPCOPY = r"Only Tensors created explicitly by the user"
_COPIED = rf"{_DEEPCOPY}|Cowardly refusing to serialize non-leaf tensor"
_NORMS = ("weight_norm", "spectral_norm")


@dataclass(frozen=True, slots=True)
class _Stored:
    """A result with a graph that an attribute or a container holds; node None if only the text of a hook shows it.

    `is_used` says that another function uses it, as a part of the loss.
    """

    info: NodeInfo | None
    store: Store
    is_used: bool


def _of_copied_graph(failure: Failure) -> Finding:
    """Return the finding about a copy, or a transfer, of what holds a tensor with its graph."""
    timeline, at = failure.timeline, own_frame(failure.frames)
    verb = "copied" if failure.says(_DEEPCOPY) else "sent to a process"
    copied = _copied_object(timeline, at)
    alive = [info for info in failure.earlier_nodes() if _has_graph(info, failure)]
    itself = next((info for info in alive if copied and info.means(copied)), None)
    if itself is not None:
        text = titled(f"{{}} has a graph, so it cannot be {verb}", label(timeline, itself.node))
        part = Finding("held", f"made by {label_at(timeline, itself.node)}", itself.born, itself.node)
        fix = f"use {copied}.detach().clone(): a copy has no part in the graph"
        edit = _detached_copy(timeline, at, copied)
        return Finding("failed", text, failure.seq, itself.node, (part,), fix, at, edit=edit)
    stored = list(_stored_results(failure, at, alive, copied)) or list(_stored_by_hooks(timeline))
    if not stored:
        return _of_old_norm(failure, at, verb)
    first, *others = stored
    info, place = first.info, first.store.place
    text = titled(f"{{}} keeps a graph, so {{}} cannot be {verb}", place, copied or "it")
    held = label_at(timeline, info.node) if info is not None else "what the hook gets"
    part = Finding("held", f"{place} holds {held}, with its graph", failure.seq, info.node if info is not None else 0)
    more = [_so_does(failure, one.store) for one in others[:_MOST_KEYS]]
    name = info.name if info is not None else ""
    fix = first.store.how or (f"store {name}.detach()" if name.isidentifier() else "detach() what is stored")
    edit = _stored_detached(timeline, stored)
    if info is None:
        fix, edit = f"{fix}; or set {place} to None before the copy, if a loss needs its graph", None
    elif any(one.is_used for one in stored):
        fix, edit = f"set {place} to None before the copy: the loss needs its graph until then", None
    node = info.node if info is not None else 0
    return Finding("failed", text, failure.seq, node, (part, *more), fix, first.store.at, edit=edit)


def _so_does(failure: Failure, store: Store) -> Finding:
    return Finding("more", f"so does {store.place}{at_text((store.at,))}", failure.seq, at=store.at)


def _has_graph(info: NodeInfo, failure: Failure) -> bool:
    """Return whether a node is a tracked result that the program still holds."""
    is_tracked = info.created.kind == "op" and info.created.requires_grad
    return is_tracked and info.node not in failure.timeline.nodes.freed(failure.seq)


def _stored_results(failure: Failure, at: Frame | None, alive: Sequence[NodeInfo], copied: str) -> Iterator[_Stored]:
    """Yield the results that a line stored in an attribute or a container, in order of the lines; each line once.

    An attribute next to the copied one, as ``self.loss`` next to ``self.model``, is no part of it.
    """
    timeline = failure.timeline
    found: dict[tuple[str, int], _Stored] = {}
    here = _class_at(timeline, at)
    running = {(frame.path, frame.line) for frame in failure.frames if at is None or frame.line != at.line}
    every = (
        (info, store) for info in alive for store in stores_of(timeline, _finished(info.frames, running), info.names)
    )
    for info, store in every:
        if (store.at.path, store.at.line) in found:
            continue
        is_next_to_it = bool(here) and "." in copied and _class_at(timeline, store.at) == here
        is_variable = "." not in store.place and bool(copied)
        if (is_next_to_it or is_variable) and not _is_part(store.place, copied):
            continue
        found[store.at.path, store.at.line] = _Stored(info, store, _is_used_from(timeline, info, store))
    yield from sorted(found.values(), key=lambda one: (one.store.at.path, one.store.at.line))


def _finished(frames: Sequence[Frame], running: Container[tuple[str, int]]) -> list[Frame]:
    """Return the frames of the program whose statements have ended: ``self.result = train(net)`` has stored nothing yet
    while `train` runs.
    """
    return [frame for frame in own_frames(frames) if (frame.path, frame.line) not in running]


def _is_used_from(timeline: Timeline, info: NodeInfo, store: Store) -> bool:
    """Return whether a stored result is used from its place: in another function, or in the one that stores it."""
    users = [timeline.info(user) for user in timeline.nodes.users(info.node)]
    source = statement_at(timeline, store.at)
    function = function_of(source[1]) if source is not None else None
    if source is None or function is None:
        return bool(users)
    inside = (store.at.path, store.at.function)
    is_read = any(store.place in places_read(one.node) for one in source[0].by_function[function])
    return is_read or any(inside not in {(frame.path, frame.function) for frame in user.frames} for user in users)


def _is_part(place: str, whole: str) -> bool:
    """Return whether a place is a part of an object: ``net.h`` and ``outs[0]`` of ``net`` and ``outs``."""
    return place == whole or place.startswith((f"{whole}.", f"{whole}["))


def _class_at(timeline: Timeline, at: Frame | None) -> str:
    source = statement_at(timeline, at)
    return method_class(source[1]) if source is not None else ""


def _stored_by_hooks(timeline: Timeline) -> Iterator[_Stored]:
    """Yield what forward hooks of the program store of what they get: ``module.activation = output``."""
    for path in timeline.sources:
        for at in called_lines(timeline, Frame(path, "", 1, 1, -1, -1), *_HOOKS):
            source = statement_at(timeline, at)
            calls = source[1].parts(ast.Call) if source is not None else ()
            given = {ast.unparse(one).split(".")[-1] for call in calls for one in call.args}
            for one in source[0].statements if source is not None else ():
                function = function_of(one)
                if not isinstance(function, ast.FunctionDef) or function.name not in given or source is None:
                    continue
                place = place_of_store(one, positional_parameters(function))
                if place:
                    store = Store(frame_of(at, one.first, source[0]), place)
                    yield _Stored(None, store, is_used=False)


_HOOKS = ("register_forward_hook", "register_module_forward_hook")


def _copied_object(timeline: Timeline, at: Frame | None) -> str:
    """Return what a line copies: ``net`` for ``copy.deepcopy(net)``; empty if that is no name."""
    source = statement_at(timeline, at)
    for call in source[1].parts(ast.Call) if source is not None else ():
        if called_name(call) == "deepcopy" and call.args and isinstance(call.args[0], ast.Name | ast.Attribute):
            return ast.unparse(call.args[0])
    return ""


def _of_old_norm(failure: Failure, at: Frame | None, verb: str) -> Finding:
    """Return the finding if no line stores a graph: a parametrization of an older kind may keep one in a layer."""
    timeline = failure.timeline
    text = f"a tensor in it has a graph, so it cannot be {verb}"
    starts = (Frame(path, "", 1, 1, -1, -1) for path in timeline.sources)
    calls = (line for start in starts for line in called_lines(timeline, start, *_NORMS))
    older = next((line for line in calls if "parametrizations" not in line_text(timeline, line)), None)
    parts = (Finding("message", f"{failure.ended} with {failure.quoted}", failure.seq),)
    fix = "store X.detach() where a tensor X is kept; of a model, state_dict() can always be copied"
    if older is not None:
        fix = "use torch.nn.utils.parametrizations for this norm: the older one keeps a computed weight in the layer"
    return Finding("failed", text, failure.seq, 0, parts, fix, older or at)


# A number, which has no ``backward``: the line that converted it from a tensor

_CONVERSION = r"\.item\(\)|\.tolist\(\)|\.numpy\(\)|\bfloat\(|\bint\("


def _number_called(failure: Failure) -> str:
    """Return the variable whose ``backward`` was called although it is a number; empty for any other error."""
    if not re.match(r"'(float|int|list|numpy\.\w+)' object has no attribute 'backward'", failure.message):
        return ""
    called = re.search(r"([A-Za-z_]\w*)\.backward\b", failure.line)
    return called[1] if called else ""


def _conversion_line(failure: Failure, name: str) -> str:
    """Return the last line before the error that assigns a number to a name; empty if there is none.

    For example ``train.py:9: loss = loss.item()``.
    """
    at = failure.at
    text = failure.timeline.source(at.path) if at is not None else None
    if at is None or text is None:
        return ""
    assignment = re.compile(rf"(?<![\w.]){name}\s*=(?!=)[^;#]*(?:{_CONVERSION})[^;#]*")
    for line, row in reversed(list(enumerate(source_lines(text)[: at.line], 1))):
        if match := assignment.search(row):
            return f"{file_line(at.path, line)}: {clipped(match[0].strip(), 100)}"
    return ""


_EXPLANATIONS: tuple[tuple[str, Callable[[Failure], Finding | None]], ...] = (
    (_OF_SEVERAL_VIEWS, _of_several_views),
    (_RETURNED_NAN, _rule_with_nan),
    (custom_backward_returns.COUNT, custom_backward_returns.of_count),
    (custom_backward_returns.SHAPE, custom_backward_returns.of_shape),
    (custom_backward_returns.NO_TENSOR, custom_backward_returns.of_no_tensor),
    (_INFERENCE, _of_an_inference_tensor),
    (_NEEDS_NONE, _of_a_frozen_input),
    (_NO_LEAF, _for_an_optimizer),
    (_NO_PARAMETERS, _without_parameters),
    (_SPARSE, _of_sparse_gradients),
    (_RANDOM_IN_VMAP, _of_random_numbers),
    (r"'NoneType' object", _of_nothing),
    (r"Boolean value of Tensor", _of_loss_class),
    (r"'\w+' object is not iterable", _of_model_for_optimizer),
    (r"Error\(s\) in loading state_dict", _of_state),
    (_NO_ATTRIBUTE, _of_missing_attribute),
    (_COPIED, _of_copied_graph),
    (checkpoint.DIFFERENT, checkpoint.explain_difference),
)
"""Messages that need more than a fixed text, each with a function that returns its finding, or None."""


# What the text of the program says


def _with_floor_division(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``n / 2`` with ``n // 2`` among the arguments of a statement."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.BinOp(op=ast.Div(), right=right):
                    whole = text.with_part(part, right, "\0")
                    between = whole.rindex("/", 0, whole.index("\0"))
                    return f"{whole[:between]}/{whole[between:]}".replace("\0", text.segment(right))
            return None

        return known

    return rewritten(timeline, at, change)


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


def _with_loss_made_first(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``nn.MSELoss(x, y)``, whose arguments are options, with ``nn.MSELoss()(x, y)``."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            if not (isinstance(part, ast.Call) and called_name(part).endswith("Loss") and len(part.args) > 1):
                return None
            head = text.segment(part.func)
            return f"{head}(){text.segment(part).removeprefix(head)}"

        return known

    return rewritten(timeline, at, change)


def _detached_copy(timeline: Timeline, at: Frame | None, name: str) -> Edit | None:
    """Replace ``copy.deepcopy(z)`` with ``z.detach().clone()``."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.Call(args=[argument]) if called_name(part) == "deepcopy" and text.segment(argument) == name:
                    return f"{name}.detach().clone()"
            return None

        return known

    return rewritten(timeline, at, change)


def _stored_detached(timeline: Timeline, stored: Sequence[_Stored]) -> Edit | None:
    """Replace ``self.h = h`` with ``self.h = h.detach()`` at all lines of one file, if all are such."""
    changes = list[tuple[ast.expr, str]]()
    texts = list[ProgramText]()
    for one in stored:
        source = statement_at(timeline, one.store.at)
        match source[1].node if source is not None else None:
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()], value=ast.Name() as value) if source:
                changes.append((value, f"{value.id}.detach()"))
                texts.append(source[0])
            case _:
                return None
    return nodes_replaced(texts[0], changes) if all(text is texts[0] for text in texts) else None
