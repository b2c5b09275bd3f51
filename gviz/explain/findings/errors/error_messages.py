"""What the messages of errors mean: the cause and the fix, for errors that have no file of their own.

`_MEANINGS` has a row for each message with a fixed text. `_EXPLANATIONS` lists the messages that a recording explains
further, with the functions that do so; most of these are in the other files.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass

from gviz.events import StepStarted
from gviz.explain.display_names import MOST_TITLE, label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.findings.custom_functions import custom_backward_returns
from gviz.explain.findings.errors import checkpoint
from gviz.explain.findings.errors.backward_arguments import (
    FROZEN_INPUT,
    UNUSED_INPUT,
    of_frozen_input,
    of_unused_input,
)
from gviz.explain.findings.errors.copied_graph import COPIED, of_copied_graph
from gviz.explain.findings.errors.in_place_errors import SEVERAL_VIEWS, of_several_views
from gviz.explain.findings.errors.inference_tensor import INFERENCE, of_inference_tensor
from gviz.explain.findings.errors.module_misuse import (
    NO_ATTRIBUTE,
    of_loss_class,
    of_missing_attribute,
    of_missing_return,
)
from gviz.explain.findings.errors.optimizer_parameters import (
    NO_LEAF,
    NO_PARAMETERS,
    SPARSE,
    of_model,
    of_no_leaf,
    of_no_parameters,
    of_sparse_gradients,
)
from gviz.explain.findings.errors.state_dict_mismatch import of_state
from gviz.explain.findings.errors.untracked_loss import of_number
from gviz.explain.program_errors import Failure
from gviz.explain.program_text import ProgramText
from gviz.explain.source_edit import Change, Edit, argument_suffix, before, renamed_call, rewritten
from gviz.explain.source_frames import innermost
from gviz.explain.value_computation import computation
from gviz.source.call_stack import Frame
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import clipped


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
        r"step\(\) missing 1 required positional argument: 'closure'",
        "LBFGS computes the loss several times in a step: it needs a function for it",
        "def closure(): opt.zero_grad(); loss = ...; loss.backward(); return loss, and opt.step(closure)",
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
    if (finding := of_number(failure)) is not None:
        return finding
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


_RANDOM_IN_VMAP = r"called random operation while in randomness error mode"


def _of_random_numbers(failure: Failure) -> Finding:
    """Return the finding about random numbers in `vmap`, which needs to know whether they differ between samples."""
    text = "vmap does not know whether this random draw should differ between samples"
    fix = 'pass randomness="different" to vmap for one draw per sample, or "same" for one in all; or model.eval()'
    return Finding("failed", text, failure.seq, failure.node, (), fix, failure.at)


_RETURNED_NAN = r"Function '(\w+)' returned nan values"


def _rule_with_nan(failure: Failure) -> Finding | None:
    """Return the finding about a backward rule that returned nan in anomaly mode: its node, and the line of that.

    PyTorch's message has only the class of the rule. The node of this class whose rule began last is the one.
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


_EXPLANATIONS: tuple[tuple[str, Callable[[Failure], Finding | None]], ...] = (
    (SEVERAL_VIEWS, of_several_views),
    (_RETURNED_NAN, _rule_with_nan),
    (custom_backward_returns.COUNT, custom_backward_returns.of_count),
    (custom_backward_returns.SHAPE, custom_backward_returns.of_shape),
    (custom_backward_returns.NO_TENSOR, custom_backward_returns.of_no_tensor),
    (INFERENCE, of_inference_tensor),
    (FROZEN_INPUT, of_frozen_input),
    (UNUSED_INPUT, of_unused_input),
    (NO_LEAF, of_no_leaf),
    (NO_PARAMETERS, of_no_parameters),
    (SPARSE, of_sparse_gradients),
    (_RANDOM_IN_VMAP, _of_random_numbers),
    (r"'NoneType' object", of_missing_return),
    (r"Boolean value of Tensor", of_loss_class),
    (r"'\w+' object is not iterable", of_model),
    (r"Error\(s\) in loading state_dict", of_state),
    (NO_ATTRIBUTE, of_missing_attribute),
    (COPIED, of_copied_graph),
    (checkpoint.DIFFERENT, checkpoint.explain_difference),
)
"""Messages that need more than a fixed text, each with a function that returns its finding, or None."""


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
