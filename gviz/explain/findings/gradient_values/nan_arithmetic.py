"""Why an operation has no finite result: at which element, and from which numbers.

``0 * -inf`` in 40 of 64 elements, a row of only -inf below a softmax, the logarithm of a negative number within a loss,
two equal singular values, a mean of no labels. `nan_remedies` says what to write instead, and `nan_origin` finds the
operation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from gviz.explain.display_names import symbol
from gviz.explain.formula import is_small
from gviz.explain.operation_sets import LOSSES, NONFINITE_ELEMENTWISE, SOFTMAXES
from gviz.explain.pass_contributions import arriving_gradient, outgoing_of
from gviz.explain.program_text import called_function
from gviz.explain.source_edit import Edit, with_keyword, with_swapped_arguments
from gviz.explain.source_frames import innermost
from gviz.explain.tracking import ancestors
from gviz.explain.value_computation import Computation, Operand, computation
from gviz.source.call_stack import Frame
from gviz.source.parsing import ARITHMETIC
from gviz.trace.graph_state import Contribution, NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number, shape_text
from gviz.values.value import Array, Value
from gviz.values.value_text import bad_text, short

Named = tuple[str, Value | None]
"""A name in a formula or rule, and its value."""


def element_text(timeline: Timeline, info: NodeInfo) -> str:
    """Return the first bad element that an operation made, and its inputs; empty if unknown or visible anyway."""
    computed = computation(timeline, info.node)
    if not _is_by_element(info) or (not computed.shapes and _is_to_be_seen(computed.result)):
        return ""
    return _element_words(timeline, computed.result, [(operand.name, operand.value) for operand in computed.operands])


def sent_at_element(timeline: Timeline, part: Contribution) -> str:
    """Return the first bad element that a backward rule made, and its inputs; empty if they are unknown."""
    info, sent = timeline.info(part.source), outgoing_of(timeline, part)
    if not _is_by_element(info) or sent.reduced or not sent.rule:
        return ""
    computed = computation(timeline, info.node)
    known = {operand.name: operand.value for operand in computed.operands}
    known |= {symbol(timeline, info.node, 0): computed.result, "g": arriving_gradient(timeline, part)}
    return _element_words(timeline, part.value, [(name, known[name]) for name in _words(sent.rule) if name in known])


def formula_text(timeline: Timeline, node: int) -> str:
    """Return the formula of a node, its result, and the known properties of arrays that it shows only by name."""
    computed = computation(timeline, node)
    large = ", ".join(dict.fromkeys(f"{name} {short(value)}" for name, value in _in_shapes(computed)))
    return f"{computed.without_shapes}{', with ' * bool(large)}{large}"


def _is_to_be_seen(value: Value | None) -> bool:
    """Return whether a value is shown in full anyway, or is unknown."""
    return value is None or is_small(value)


def _in_shapes(computed: Computation) -> Iterator[tuple[str, Value]]:
    for operand in computed.operands:
        value = operand.value
        if value is not None and f"{operand.name} {shape_text(value.shape)}" in computed.shapes:
            yield operand.name, value


def _is_by_element(info: NodeInfo) -> bool:
    return info.op.base_name.removesuffix("_") in NONFINITE_ELEMENTWISE


def _words(rule: str) -> Sequence[str]:
    return tuple(dict.fromkeys(re.findall(r"#\d+|[A-Za-z_][\w.]*", rule)))


def _element_words(timeline: Timeline, bad: Value | None, operands: Iterable[Named]) -> str:
    """Return the first bad element, and the corresponding elements of the other arrays."""
    array = timeline.array(bad) if bad is not None else None
    if array is None or array.size < 2 or array.dtype.kind != "f":
        return ""
    place = _first_bad(array)
    elements = [(name, _element_at(timeline, value, array, place)) for name, value in operands]
    texts = [f"{name} is {number(element)}" for name, element in elements if element is not None]
    if place is None or not texts:
        return ""
    which = "at" if np.count_nonzero(~np.isfinite(array)) == 1 else "the first at"
    return f"{which} [{', '.join(map(str, place))}], where {' and '.join(texts)}"


def _first_bad(array: Array) -> tuple[int, ...] | None:
    """Return the index of the first nan, or else of the first infinity."""
    for bad in (np.isnan(array), np.isinf(array)):
        if bad.any():
            return tuple(int(at) for at in np.unravel_index(int(np.argmax(bad)), array.shape))
    return None


def _element_at(timeline: Timeline, value: Value | None, like: Array, place: tuple[int, ...] | None) -> object:
    """Return the element of another array that corresponds to this one; None if it is unknown."""
    array = timeline.array(value) if value is not None else None
    if array is None or place is None:
        return None
    try:
        return np.broadcast_to(array, like.shape)[place].item()
    except ValueError:  # it has another shape
        return None


# Numbers that meet: ``0 * -inf``, a row of only -inf


def meeting_numbers(timeline: Timeline, node: int) -> str:
    """Return ``0 * -inf in 40 of 64 elements``; empty if the arrays were not stored, or no two numbers met."""
    if timeline.info(node).op.base_name in SOFTMAXES | {"logsumexp"}:
        return _hidden(timeline, node)
    return _pairs(timeline, node)


def _hidden(timeline: Timeline, node: int) -> str:
    """Return ``scores[2, 0, :] is all -inf, as are 4 more``: the rows whose softmax is nan."""
    (operand, *_), dim = computation(timeline, node).operands, dict(timeline.info(node).created.attrs).get("dim")
    array = timeline.array(operand.value) if operand.value is not None else None
    dim = dim[0] if isinstance(dim, tuple | list) and len(dim) == 1 else dim
    if array is None or array.dtype.kind != "f" or not isinstance(dim, int) or not -array.ndim <= dim < array.ndim:
        return ""
    rows = np.argwhere(np.isneginf(array).all(axis=dim, keepdims=True))
    if not len(rows):
        return ""
    place = [str(int(at)) for at in rows[0]]
    place[dim] = ":"
    more = {0: "", 1: ", as is 1 more"}.get(len(rows) - 1, f", as are {len(rows) - 1:,} more")
    return f"{operand.name}[{', '.join(place)}] is all -inf{more}"


def _pairs(timeline: Timeline, node: int) -> str:
    how = computation(timeline, node)
    sign = ARITHMETIC.get(timeline.info(node).op.base_name, "")
    values = [*(operand.value for operand in how.operands), how.result]
    arrays = [timeline.array(value) if value is not None else None for value in values]
    known = [array for array in arrays if array is not None and array.dtype.kind == "f"]
    if not sign or not len(known) == len(arrays) == 3:
        return ""
    left, right, result = np.broadcast_arrays(*known)
    born = np.isnan(result) & ~np.isnan(left) & ~np.isnan(right)
    count = int(born.sum())
    if not count:
        return ""
    pair = f" {sign} ".join((_alike(left[born]), _alike(right[born])))
    return f"{pair} in {count} of {result.size} elements" if result.size > 1 else pair


def _alike(array: Array) -> str:
    """Return the one number that all elements are, or else their range."""
    least, most = array.min(), array.max()
    return number(float(least)) if least == most else f"{number(float(least))} .. {number(float(most))}"


# Why a rule has no number there, where the recorded numbers show it

DECOMPOSITIONS = {
    "linalg_svd": ("singular values", 1), "_linalg_svd": ("singular values", 1), "svd": ("singular values", 1),
    "linalg_eigh": ("eigenvalues", 0), "_linalg_eigh": ("eigenvalues", 0),
}  # fmt: skip
"""By operation: what it decomposes into, and the number of that output. Its rule divides by their differences."""

_EQUAL = 1e-6


def undefined_there(timeline: Timeline, info: NodeInfo) -> str:
    """Return why the backward rule of a node divides by 0: two equal singular values, a norm of 0; empty if unknown."""
    op = info.op.base_name
    if op in DECOMPOSITIONS:
        what, nr = DECOMPOSITIONS[op]
        outputs = info.created.outputs
        value = outputs[nr].value if nr < len(outputs) else None
        array = timeline.array(value) if value is not None else None
        return _equal_pair(array, what) if array is not None and array.ndim else ""
    if op != "norm" or info.created.first_value is None:
        return ""
    norms = timeline.array(info.created.first_value)
    zeros = int((norms == 0).sum()) if norms is not None else 0
    if norms is None or not zeros:
        return ""
    which = f"{zeros} of {norms.size} norms are 0" if norms.size > 1 else "the norm is 0"
    return f"{which}, and the rule divides by it"


def _equal_pair(array: Array, what: str) -> str:
    rows = np.sort(array.reshape(-1, array.shape[-1]).astype(np.float64), axis=-1)
    size = max(float(np.abs(rows).max(initial=0.0)), 1e-30)
    close = np.argwhere(np.diff(rows, axis=-1) <= _EQUAL * size)
    if not len(close):
        return ""
    row, place = (int(at) for at in close[0])
    pair = " and ".join(number(float(each)) for each in rows[row, place : place + 2])
    return f"two {what} are equal, {pair}: the rule divides by their difference"


# Losses without a number: all labels are ignored, no path fits


_MEANS = LOSSES | {"mean", "cross_entropy", "nll_loss", "nll_loss_nd", "nll_loss2d"}
"""Operations whose result is a mean by default, which is nan if there is nothing to take it of."""


def no_labels(timeline: Timeline, node: int) -> str:
    """Return that all labels of a mean are ignored, or that a mean is one of no element; empty for anything else."""
    info = timeline.info(node)
    if info.op.base_name in _MEANS:
        inputs = [one.value for one in computation(timeline, node).operands if one.value is not None]
        if inputs and not inputs[0].size:
            return "it is the mean of no element: nothing was selected"
    ignored = dict(info.created.attrs).get("ignore_index")
    operands = computation(timeline, node).operands
    if not info.op.base_name.startswith("nll_loss") or not isinstance(ignored, int) or len(operands) < 2:
        return ""
    value = operands[1].value
    labels = timeline.array(value) if value is not None else None
    if labels is None or not labels.size or (labels != ignored).any():
        return ""
    which = f"all {labels.size} labels are" if labels.size > 1 else "the only label is"
    return f"{which} {ignored}, which is ignore_index"


def too_short(timeline: Timeline, node: int) -> str:
    """Return that a target of a ctc_loss is longer than its input, for the loss or the mean of it; or empty.

    A finite loss is not the cause. With ``zero_infinity`` the infinite ones become 0. The loss of a call may be known
    only as the result of its last operation.
    """
    near = [timeline.info(source) for source in (node, *islice(ancestors(timeline, node), _NEAR_LOSS))]
    for info in near:
        attrs = dict(info.created.attrs)
        lengths, targets = attrs.get("input_lengths"), attrs.get("target_lengths")
        results = (one.created.first_value for one in near if one.created.stack == info.created.stack)
        if info.op.base_name != "ctc_loss" or attrs.get("zero_infinity") or not any(map(bad_text, results)):
            continue
        if isinstance(lengths, tuple | list) and isinstance(targets, tuple | list):
            pairs = [
                (needs - has, needs, has)
                for has, needs in zip(lengths, targets, strict=False)
                if isinstance(has, int) and isinstance(needs, int)
            ]
            over, needs, has = max(pairs, default=(0, 0, 0))
            if over > 0:
                return f"a target has {needs} labels, and its input {has} steps: no path fits"
            if pairs and _is_finite(timeline, info):  # an infinite loss of finite probabilities has no other reason
                return "a target has too many labels for its input: equal ones in a row need a step between"
    return ""


def _is_finite(timeline: Timeline, info: NodeInfo) -> bool:
    """Return whether the first input of an operation has finite numbers only."""
    source = next((source for source, _ in info.created.inputs), 0)
    value = timeline.info(source).created.first_value if source else None
    return value is not None and value.statistics() is not None and not bad_text(value)


_NEAR_LOSS = 6
"""The most nodes between a loss of each pair and the mean that a program calls the loss."""


# Calls of several operations: one operation is not defined at its input, and the values in between are not recorded

_LOGARITHMS = {"log": 0.0, "log2": 0.0, "log10": 0.0, "log1p": -1.0, "xlogy": 0.0}
_DEFINED_FROM = {**_LOGARITHMS, "sqrt": 0.0, "rsqrt": 0.0}
"""The operation -> the least number of its last input at which it is defined."""

_SHIFTED = {"add", "clamp", "clamp_min"}
"""Operations of a call that keep their input away from 0, by a small number that is not recorded."""

_LOG_PROBABILITIES = {"log_softmax", "log", "logsigmoid", "log_sigmoid"}
_NOTABLE = 1e-3
_MOST_STEPS = 20


class _UndefinedStep(NamedTuple):
    """An operation of a call that is not defined at an input of the call: in words, what to write, and the edit."""

    words: str
    fix: str
    edit: Edit | None


def undefined_step(timeline: Timeline, node: int) -> _UndefinedStep | None:
    """Return the operation that made nan of a negative input of the call that a node belongs to.

    ``kl_div(probabilities, log_probabilities)`` takes the logarithm of its second argument, the target.
    """
    end, at = timeline.info(node), innermost(timeline.info(node))
    call = end.op.call or called_function(timeline, at)
    steps = _steps_of_call(timeline, node)
    for step in steps:
        op, operand = step.op.base_name, _input_of_call(timeline, step)
        if call == "kl_div" and op == "mul":  # target * input; the xlogy of a target without a gradient is not recorded
            op, operand = "xlogy", computation(timeline, step.node).operands[0]
        stats = operand.value.statistics() if operand is not None and operand.value is not None else None
        if op not in _DEFINED_FROM or operand is None or stats is None:
            continue
        if stats.min < _DEFINED_FROM[op] - _NOTABLE:
            kind = "logarithm" if op in _LOGARITHMS else "square root"
            words = f"it takes the {kind} of {operand.name}, which goes down to {number(stats.min)}"
            if call == "kl_div":
                return _UndefinedStep(words, *_kl_fix(timeline, at, steps, operand.node))
            if end.op.call:
                return _UndefinedStep(words, f"keep {operand.name} above {number(_DEFINED_FROM[op])}", None)
    return None


def _steps_of_call(timeline: Timeline, node: int) -> list[NodeInfo]:
    """Return the operations of the call that a node belongs to, from this node on."""
    end, steps, waiting, seen = timeline.info(node), list[NodeInfo](), [node], {node}
    while waiting and len(steps) < _MOST_STEPS:
        step = timeline.info(waiting.pop(0))
        if (step.op.call, step.created.stack, step.iteration) == (end.op.call, end.created.stack, end.iteration):
            steps.append(step)
            near = [source for source, _ in step.created.inputs if source] + [*timeline.nodes.users(step.node)]
            waiting += [one for one in near if one not in seen]
            seen.update(near)
    return steps


_KL_FIX = "kl_div(log_probabilities, probabilities), in this order; or with log_target=True"


def _kl_fix(timeline: Timeline, at: Frame | None, steps: Sequence[NodeInfo], target: int) -> tuple[str, Edit | None]:
    """Return what to write instead of a ``kl_div`` whose target has logarithms, and the edit if that is certain."""
    own = {step.node for step in steps}
    others = {source for step in steps for source, _ in step.created.inputs} - own - {target, 0}
    values = [timeline.info(other).created.first_value for other in others]
    stats = [value.statistics() if value is not None else None for value in values]
    edit = None
    if len(stats) == 1 and stats[0] is not None and timeline.info(target).op.base_name in _LOG_PROBABILITIES:
        if stats[0].min >= 0:
            edit = with_swapped_arguments(timeline, at, "kl_div")
        elif stats[0].max <= 0:
            edit = with_keyword(timeline, at, "kl_div", "log_target", "True")
    return _KL_FIX, edit


def _input_of_call(timeline: Timeline, step: NodeInfo) -> Operand | None:
    """Return the last input of a step; what it was before a small number was added, if only that is recorded."""
    operands = computation(timeline, step.node).operands
    operand = operands[-1] if operands else None
    while operand is not None and operand.node and (operand.value is None or not operand.value.is_known):
        shift = timeline.info(operand.node)
        first = computation(timeline, operand.node).operands[:1]
        is_same_call = shift.op.call == step.op.call and shift.created.stack == step.created.stack
        operand = first[0] if first and is_same_call and shift.op.base_name in _SHIFTED else None
    return operand
