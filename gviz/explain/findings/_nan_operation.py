"""The operation that made a nan or inf: at which element, from which numbers, and the usual fix."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from gviz.events import DataSet, StorageWritten
from gviz.explain.computation import Computation, Operand, computation
from gviz.explain.contributions import arriving_gradient, outgoing_of
from gviz.explain.display_names import at_text, innermost, label, symbol
from gviz.explain.edit import Edit, with_keyword, with_swapped_arguments
from gviz.explain.finding import Finding
from gviz.explain.formula import is_small
from gviz.explain.operation_sets import MASKING, NONFINITE_ELEMENTWISE, SAME_NUMBERS, SOFTMAXES
from gviz.explain.parameter_updates import step_of
from gviz.explain.program_text import called_function, line_text
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame
from gviz.source.parsing import ARITHMETIC
from gviz.trace.graph_state import Contribution, NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number, shape_text
from gviz.values.plain_text import shown
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

_DECOMPOSITIONS = {
    "linalg_svd": ("singular values", 1), "_linalg_svd": ("singular values", 1), "svd": ("singular values", 1),
    "linalg_eigh": ("eigenvalues", 0), "_linalg_eigh": ("eigenvalues", 0),
}  # fmt: skip
"""By operation: what it decomposes into, and the number of that output. Its rule divides by their differences."""

_EQUAL = 1e-6


def undefined_there(timeline: Timeline, info: NodeInfo) -> str:
    """Return why the backward rule of a node divides by 0: two equal singular values, a norm of 0; empty if unknown."""
    op = info.op.base_name
    if op in _DECOMPOSITIONS:
        what, nr = _DECOMPOSITIONS[op]
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


# Losses without a number: no label counts, no path fits


def no_labels(timeline: Timeline, node: int) -> str:
    """Return that a mean over labels has none that counts; empty for anything else."""
    info = timeline.info(node)
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


NO_LABELS = "skip a batch without labels, or divide a sum by max(count, 1): the mean of nothing is nan"


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

TOO_SHORT = "zero_infinity=True skips such a pair; or use a longer input or a shorter target"


# A nan or inf that the program writes as a number into the expression: ``x * float("inf")``

_IS_WRITTEN = re.compile(r"(?<![a-z])(?:inf(?:inity)?|nan)(?![a-z])", re.IGNORECASE)


def is_written(timeline: Timeline, node: int, user: int) -> bool:
    """Return whether an input of an operation is a nan or inf that its own expression writes."""
    info, at = timeline.info(node), innermost(timeline.info(user))
    value = info.created.first_value
    if info.created.kind != "constant" or value is None or value.shape != () or not bad_text(value) or at is None:
        return False
    return innermost(info) == at and bool(_IS_WRITTEN.search(line_text(timeline, at)))


def written_fix(timeline: Timeline, node: int) -> str:
    """Return what to write instead of the nan or inf in the expression of an operation; empty if it has none."""
    operands = computation(timeline, node).operands
    written = [one.value for one in operands if one.node and is_written(timeline, one.node, node)]
    if not written:
        return ""
    return _NO_NAN if "nan" in bad_text(written[0]) else _NO_INFINITY


_NO_NAN = "write a number instead of nan, or leave these elements out of the loss"
_NO_INFINITY = "write a finite number: 0 * inf and inf - inf are nan; masked_fill or where leaves elements out"


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


# The usual fix

_SMALL = "add a small number first: sqrt(x + 1e-8)"
_FIXES = {
    "sqrt": _SMALL,
    "rsqrt": _SMALL,
    **dict.fromkeys(
        _DECOMPOSITIONS, "use only the values of the decomposition, or add small random numbers to the matrix first"
    ),
    "norm": "add a small number to what it is taken of: its gradient is not defined at 0",
    "std": "add a small number to the variance: its gradient is not defined where nothing varies",
    "div": "keep what is divided by away from 0: x / (y + 1e-8)",
    "reciprocal": "keep what is divided by away from 0: 1 / (x + 1e-8)",
    "log": "keep its input above 0: log(x.clamp(min=1e-8)), or log_softmax, log1p, binary_cross_entropy_with_logits",
    "exp": "keep its input small: subtract the maximum first, or use softmax, logsumexp",
    "pow": "keep its base above 0, or add a small number to it",
    "acos": "clamp its input to a little less than 1",
    "asin": "clamp its input to a little less than 1",
}
"""The operation -> what to write instead if it makes a nan or inf."""

_ROOTS = {
    "sqrt": "keep its input at 0 or above: sqrt(x.clamp(min=0) + 1e-8)",
    "rsqrt": "keep its input above 0: rsqrt(x.clamp(min=1e-8))",
    "pow": "keep its base at 0 or above, as in x.clamp(min=0) ** p, or use a whole number as exponent",
}
"""The operation -> what to write instead if it makes nan of a negative number."""

_AT_ZERO = _FIXES.keys() - {"exp", "pow"}
"""Operations that are infinite at some input, however small all numbers are."""

_MASKED = (
    "leave one element of each row unmasked: softmax of a row of -inf is 0 / 0; or fill with a large negative number"
)
_DATA = "it came with the data: look there for what is missing, with torch.isfinite(x).all(), before it is used"
_NARROW = f"float16 has no number above 65504, a greater one becomes inf (bfloat16, float32 have them); else {_DATA}"
_SMALLER = "take a smaller number, or compute in float32 or bfloat16, which have greater ones"
DIVERGING = "a smaller learning rate; else smaller numbers going in, by normalization, or smaller weights at the start"
"""The fix if a loss grew until some number became too large."""

_OF_SIZE = "smaller numbers going in, by normalization, smaller weights at the start, or a smaller learning rate"
LEAPT = "a smaller learning rate, or clip_grad_norm_ before the step"
"""The fix if a step has made a parameter many times as large."""

_OF_ONE = "one number has no spread: take it over a dim with more elements, or with unbiased=False"
_OTHER = "look at the numbers that go in, and keep them away from where it is not defined"


_LARGEST = {"float16": 65504.0, "bfloat16": 3.39e38, "float32": 3.4e38, "float64": 1.8e308}
"""The largest number of a dtype."""


def usual_fix(
    info: NodeInfo, result: Value | None, operands: Iterable[Value | None], *, diverging: bool = False, line: str = ""
) -> str:
    """Return what to write instead of an operation that has made a bad value from these operands.

    `diverging` is true if the loss grew; `line` is the line of the program.
    """
    op, operands = info.op.base_name, list(operands)
    if info.created.kind != "op":
        if is_beyond(info, result, line):
            return _SMALLER
        narrow = result is not None and result.dtype == "float16" and "inf" in bad_text(result)
        return _NARROW if narrow else _DATA
    if op in MASKING:
        return _MASKED
    if op in ("std", "var") and result is not None and [value.size for value in operands[:1] if value] == [result.size]:
        return _OF_ONE
    at_zero = op in _AT_ZERO or (op == "pow" and any(map(_has_zero, operands)))
    is_nan = result is None or "nan" in bad_text(result)
    too_large = op not in _FIXES and any(map(_is_huge, operands))
    if op in _ROOTS and result is not None and is_nan and any(map(_has_negative, operands)):
        return _ROOTS[op]
    if result is None or at_zero or op == "exp" or (is_nan and not too_large):
        return _FIXES.get(op, _OTHER)
    if diverging:
        return DIVERGING
    return f"keep its result small enough for {result.dtype}: {_OF_SIZE}"


SAFE_INPUT = "make the input safe before where(): x = torch.where(condition, x, 1.0), then where(condition, f(x), 0)"
_NEAR_WHERE = 3
"""The most operations between an undefined result and the ``where`` that hides it."""


def is_branch_of_where(timeline: Timeline, node: int) -> bool:
    """Return whether the result of an operation is a branch of a ``where``.

    The ``where`` hides it in forward but not in backward.
    """
    reached = {node}
    for _ in range(_NEAR_WHERE):
        users = [timeline.info(user) for one in reached for user in timeline.nodes.users(one)]
        if any(user.op.base_name == "where" and not bad_text(user.created.first_value) for user in users):
            return True
        reached = {user.node for user in users if user.op.base_name in NONFINITE_ELEMENTWISE | SAME_NUMBERS}
    return False


_SHORT = ("float16", "bfloat16")
_IN_FLOAT32 = "compute this part in float32, as torch.autocast does for such operations, or make its inputs smaller"
_SCALED_DOWN = "compute this part in float32, or make the loss smaller, as a mean is instead of a sum"
_BY_SCALER = (
    "step with scaler.step(optimizer) and scaler.update(): they skip a pass that overflows, and lower the scale; "
    "or a smaller init_scale"
)


def overflow(info: NodeInfo, result: Value | None, operands: Iterable[Value | None]) -> str:
    """Return that elements exceed the largest number of float16 or bfloat16; empty without an overflow."""
    stats = result.statistics() if result is not None else None
    if result is None or stats is None or result.dtype not in _SHORT or not stats.inf or stats.nan:
        return ""
    if info.created.kind != "op" or (info.op.base_name in _AT_ZERO | {"pow"} and any(map(_has_zero, operands))):
        return ""
    share = f"{100 * stats.inf / result.size:.3g}% of its elements" if result.size > 1 else "it"
    verb = "overflow" if result.size > 1 else "overflows"
    return f"{share} {verb} {result.dtype}, whose largest number is {number(_LARGEST[result.dtype], 5)}"


def overflow_fix(*, backward: bool, scale: float) -> str:
    """Return the fix for an overflow of a short type, in a pass whose loss was scaled (1: it was not)."""
    if not backward:
        return _IN_FLOAT32
    return _BY_SCALER if scale > 1 else _SCALED_DOWN


def is_of_size(remedy: str) -> bool:
    """Return whether the fix is to keep numbers small."""
    return remedy == DIVERGING or remedy.endswith(_OF_SIZE)


def is_beyond(info: NodeInfo, result: Value | None, line: str) -> bool:
    """Return whether a bad value is one number that float16 cannot represent, unless the line writes an infinity."""
    one = (
        "inf" not in line.lower()
        and info.created.kind == "constant"
        and result is not None
        and result.dtype == "float16"
        and result.shape == ()
    )
    return one and "inf" in bad_text(result)


def _is_huge(value: Value | None) -> bool:
    """Return whether the product of two such numbers overflows their dtype."""
    stats = value.statistics() if value is not None else None
    if value is None or stats is None or value.dtype not in _LARGEST:
        return False
    return max(-stats.min, stats.max) > math.sqrt(_LARGEST[value.dtype])


def _has_negative(value: Value | None) -> bool:
    stats = value.statistics() if value is not None else None
    return stats is not None and stats.min < 0


def _has_zero(value: Value | None) -> bool:
    stats = value.statistics() if value is not None else None
    return stats is not None and bool(stats.zero)


# Parameters that one optimizer step made many times as large

LEAP = 10
"""A step is too large if it makes a parameter this many times as large, and larger than this."""

Leap = tuple[float, float, int, int]
"""A parameter's value after a step and before it, the parameter, and the event."""


def parameter_leap(timeline: Timeline, node: int, n: int) -> Finding | None:
    """Return the leap that led furthest, of the parameters of a node, in the last write to each before event `n`."""
    leaves = (source for source in ancestors(timeline, node) if timeline.info(source).created.kind != "op")
    leap = max((leap for leaf in leaves for leap in _last_leap(timeline, leaf, n)), default=None)
    if leap is None:
        return None
    after, before, leaf, seq = leap
    step = step_of(timeline, leaf, seq)
    frames, kind = (timeline.stack(step.stack), shown(step.kind)) if step is not None else ((), "optimizer")
    text = (
        f"the step of {kind}{at_text(frames)} took {label(timeline, leaf)} from rms {number(before)} to {number(after)}"
    )
    return Finding("leapt", text, seq, leaf, at=frames[0] if frames else None)


def _last_leap(timeline: Timeline, leaf: int, n: int) -> Iterator[Leap]:
    """Yield the last step that wrote to a leaf, if it was too large."""
    seqs = (seq for seq in reversed(timeline.events_of(leaf)) if seq < n)
    seq = next((seq for seq in seqs if isinstance(timeline.event(seq), StorageWritten | DataSet)), 0)
    if not seq or step_of(timeline, leaf, seq) is None:
        return
    before, after = (_rms(timeline.memory_value(leaf, 0, at)) for at in (seq - 1, seq))
    if 0 < before * LEAP <= after and after >= LEAP:
        yield after, before, leaf, seq


def _rms(value: Value | None) -> float:
    stats = value.statistics() if value is not None else None
    return stats.rms if stats is not None else 0.0
