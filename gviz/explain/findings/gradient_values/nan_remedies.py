"""The remedy for an operation that made a nan or inf: what to write instead, and the edit where that is certain.

The remedy depends on the operation and on the numbers that went in: the square root of a negative number needs
another one than that of 0, whose gradient is infinite. Some depend on what is around the operation: a result that
``where`` throws away needs a safe input, the logarithm of a softmax is ``log_softmax``.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable

from gviz.explain.backward_passes import growing_losses
from gviz.explain.findings.gradient_values.nan_arithmetic import DECOMPOSITIONS
from gviz.explain.operation_sets import MASKING, NONFINITE_ELEMENTWISE, SAME_NUMBERS
from gviz.explain.program_text import ProgramText, called_name, function_of, line_text, statement_at
from gviz.explain.source_edit import Change, Edit, argument_suffix, nodes_replaced, rewritten
from gviz.explain.source_frames import innermost
from gviz.explain.value_computation import computation
from gviz.source.call_stack import Frame
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number
from gviz.values.value import Value
from gviz.values.value_text import bad_text

# The usual remedy of an operation


def usual_remedy(timeline: Timeline, info: NodeInfo, result: Value | None) -> str:
    """Return what to write instead of a node that has made a bad value, in forward or by its backward rule."""
    operands = (operand.value for operand in computation(timeline, info.node).operands)
    line = line_text(timeline, innermost(info))
    return _usual_fix(info, result, operands, diverging=bool(growing_losses(timeline, info.born)), line=line)


def _usual_fix(
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


_SMALL = "add a small number first: sqrt(x + 1e-8)"

_FIXES = {
    "sqrt": _SMALL,
    "rsqrt": _SMALL,
    **dict.fromkeys(
        DECOMPOSITIONS, "use only the values of the decomposition, or add small random numbers to the matrix first"
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


def remedy_edit(timeline: Timeline, info: NodeInfo, remedy: str) -> Edit | None:
    """Return the remedy as an edit of the line, if that is certain: for the branch of a ``where``, for a logarithm."""
    at, op = innermost(info), info.op.base_name
    if remedy == SAFE_INPUT:
        return safe_where(timeline, at)
    return argument_suffix(timeline, at, op, ".clamp(min=1e-8)") if op in ("log", "log2", "log10") else None


# A logarithm of probabilities: ``log(softmax(z))``

_LOGARITHMS = {
    "softmax": "log_softmax of the scores, in place of log(softmax): it is finite, and learns where a clamp does not",
    "sigmoid": "F.logsigmoid of the scores, or binary_cross_entropy_with_logits: a clamp would send no gradient",
}
"""The function that makes probabilities -> what to write instead of their logarithm."""


def logarithm_remedy(timeline: Timeline, info: NodeInfo) -> tuple[str, Edit | None] | None:
    """Return what to write instead of the logarithm of a softmax or sigmoid, and the edit; None for another node."""
    maker = _probabilities_of(timeline, info)
    if maker is None:
        return None
    edit = _logarithm_at_once(timeline, innermost(info), innermost(maker), maker.op.base_name)
    return _LOGARITHMS[maker.op.base_name], edit


def _probabilities_of(timeline: Timeline, info: NodeInfo) -> NodeInfo | None:
    """Return the softmax or sigmoid whose results an operation takes the logarithm of."""
    source = info.created.inputs[0][0] if info.op.base_name == "log" and info.created.inputs else 0
    while source and timeline.info(source).op.base_name in SAME_NUMBERS:
        source = timeline.info(source).created.inputs[0][0]
    return timeline.info(source) if source and timeline.info(source).op.base_name in _LOGARITHMS else None


def _logarithm_at_once(timeline: Timeline, at: Frame | None, made: Frame | None, function: str) -> Edit | None:
    """Replace ``p = torch.softmax(z, 1)`` and ``torch.log(p)`` by ``p = torch.log_softmax(z, 1)`` and ``p``.

    Nothing else may read `p`. Likewise ``torch.sigmoid(z)`` becomes ``F.logsigmoid(z)``; no other sigmoid is replaced.
    """
    one, other = statement_at(timeline, at), statement_at(timeline, made)
    if one is None or other is None or one[0] is not other[0]:
        return None
    text = one[0]
    logs = [part for part in one[1].parts(ast.Call) if called_name(part) == "log"]
    calls = [part for part in other[1].parts(ast.Call) if called_name(part) == function]
    if len(logs) != 1 or len(calls) != 1 or len(logs[0].args) > 1:
        return None
    log, call = logs[0], calls[0]
    inner = log.args[0] if log.args else log.func.value if isinstance(log.func, ast.Attribute) else None
    head = text.segment(call.func)
    if function == "softmax":
        new = f"{head.removesuffix('softmax')}log_softmax"
    elif head in ("torch.sigmoid", "F.sigmoid") and "import torch.nn.functional as F" in text.rows:
        new = "F.logsigmoid"
    else:
        return None
    written = f"{new}{text.segment(call).removeprefix(head)}"
    if inner is call:
        return nodes_replaced(text, [(log, written)])
    match other[1].node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is call:
            pass
        case _:
            return None
    around = function_of(one[1])
    scope = around if around is not None else text.tree
    reads = [part for part in ast.walk(scope) if isinstance(part, ast.Name) and part.id == name]
    is_only_read = len(reads) == 2 and function_of(other[1]) is around
    if not (isinstance(inner, ast.Name) and inner.id == name and is_only_read):
        return None
    return nodes_replaced(text, [(call, written), (log, name)])


# A result that ``where`` throws away, forward but not in backward

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


def safe_where(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``torch.log(x)`` in ``torch.where(c, torch.log(x), y)`` with ``torch.log(torch.where(c, x, 1.0))``."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.Call(args=[condition, one, other]) if called_name(part) == "where":
                    pass
                case _:
                    return None
            for branch, safe in ((one, "torch.where({c}, {x}, 1.0)"), (other, "torch.where({c}, 1.0, {x})")):
                if not isinstance(branch, ast.Call) or isinstance(branch.func, ast.Name):
                    continue
                inner = branch.args[0] if branch.args else getattr(branch.func, "value", None)
                if not isinstance(inner, ast.expr) or called_name(branch) in ("zeros_like", "ones_like", "full_like"):
                    continue
                old, whole, head = text.segment(inner), text.segment(branch), text.segment(branch.func)
                new = safe.format(c=text.segment(condition), x=old)
                rest = whole.removeprefix(head)
                mended = f"{head}{rest.replace(old, new, 1)}" if branch.args else whole.replace(old, new, 1)
                return text.segment(part).replace(whole, mended, 1)
            return None

        return known

    return rewritten(timeline, at, change)


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


# Numbers that float16 and bfloat16 do not have

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


OPTIMIZER_IN_HALF = "keep the parameters in float32, as autocast does; or a larger eps: 1e-8 is 0 in float16"


# A gradient that the program divides by 0

NONZERO_NORM = "add a small number to the divisor: g / (norm + 1e-8), or leave the gradient as it is where that is 0"

# Elements and batches without a number

LEFT_OUT = "leave the nan out before the operation: f(x[ok]) instead of f(x)[ok]; its gradient is 0 * nan"

NO_LABELS = "skip a batch without labels, or divide a sum by max(count, 1): the mean of nothing is nan"

NO_ELEMENTS = (
    "skip it if nothing is selected (if keep.any()), or divide a sum by max(count, 1): the mean of nothing is nan"
)

TOO_SHORT = "zero_infinity=True skips such a pair; or use a longer input or a shorter target"
