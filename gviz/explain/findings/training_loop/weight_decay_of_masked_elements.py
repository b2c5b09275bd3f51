"""Elements whose gradient the program sets to zero in each step, and that weight decay changes all the same.

Idea. ``w.grad[rows] = 0`` is to keep these rows as they are. A step with ``weight_decay`` does not only use the
gradient: it moves every element of the parameter towards zero.

Example. A new token is trained in a pretrained embedding: ``emb.weight.grad[others] = 0`` before each step, and
``AdamW(emb.parameters(), weight_decay=0.1)``. All other tokens shrink.

Limits. The mask must be the same in each step: gradients that are made sparse are decayed on purpose. It is, if no
element is set to zero in one step and trained in another; or, if a recording has statistics only, if the program
computes it outside of the training loop. Elements that are zero stay zero (pruning). A program that writes to the
parameter after the steps is left out, as it may write the old rows back. What hooks mask is the kind `decayed`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import merge
from operator import itemgetter

from gviz.events import (
    DataSet,
    GradAccumulated,
    GradSet,
    OptimizerStarted,
    OptimizerStepped,
    StorageWritten,
    grad_left,
)
from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.training_loop.moved_frozen_parameters import zeros_of
from gviz.explain.parameter_updates import options_of
from gviz.explain.program_text import (
    FUNCTION_NODES,
    ProgramText,
    Statement,
    assigned_parts,
    assignment,
    called_lines,
    called_name,
    function_of,
    method_self,
    names_read,
    names_set,
    parameters_of,
    receiver,
    scope_of,
    statement_at,
    variables_of,
)
from gviz.explain.recording_survey import Survey
from gviz.explain.source_edit import with_keyword
from gviz.explain.source_frames import own_frame
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number
from gviz.values.plain_text import file_line, shown
from gviz.values.value import Array, Value

_FEWEST = 3
_MOST_COMPARED = 40
"""The most steps of a parameter whose elements are compared."""

_LEAST_SHRINKING = 0.01
"""A smaller part of the elements that decay takes in all recorded steps may not matter."""


@dataclass(frozen=True, slots=True)
class _MaskedStep:
    """A gradient `before` and after event `seq` set a part of it to zero, and the end of the step that used it."""

    seq: int
    before: Value
    after: Value
    step: int


@dataclass(slots=True)
class _Parameter:
    """A parameter: its gradient now, the event that masked it, and what its steps and the program did to it."""

    grad: Value | None = None
    unmasked: Value | None = None
    mask: int = 0
    steps: int = 0
    masked: list[_MaskedStep] = field(default_factory=list)
    writes: int = 0


def masked_decayed(survey: Survey) -> Iterator[Finding | None]:
    """Yield the parameters with masked gradients whose masked elements weight decay changes: one for each optimizer."""
    timeline, known = survey.timeline, {node: _Parameter() for node in survey.optimized}
    owners = {out.storage: node for node in known for out in survey.nodes[node].created.outputs[:1]}
    is_step = False
    written = survey.select(StorageWritten, DataSet, GradSet, GradAccumulated, OptimizerStepped)
    for seq, event in merge(timeline.select((OptimizerStarted,)), written, key=itemgetter(0)):
        yield None
        match event:
            case OptimizerStarted():
                is_step = True
            case OptimizerStepped(parameters=stepped):
                is_step = False
                for node in stepped:
                    _note_step(known[node], seq)
            case StorageWritten(storage=storage) if not is_step and storage in owners:
                known[owners[storage]].writes += bool(known[owners[storage]].masked)
            case DataSet(node=node) if not is_step and node in known:
                known[node].writes += bool(known[node].masked)
            case GradAccumulated(node=node) if node in known:
                known[node].grad, known[node].mask = grad_left(event), 0
            case GradSet(node=node) if node in known:
                _note_change(known[node], seq, event)
    found: dict[tuple[str, int], list[int]] = {}
    for node, one in known.items():
        yield None
        if _is_masked(one) and _is_decayed(timeline, node, one) and _masked_count(timeline, node, one):
            event = timeline.event(one.masked[-1].step)
            stack = event.stack if isinstance(event, OptimizerStepped) else 0
            found.setdefault((_line_of(timeline, one), stack), []).append(node)
    for nodes in found.values():
        yield _finding(timeline, nodes, known[nodes[0]])


def _note_change(one: _Parameter, seq: int, event: GradSet) -> None:
    """Update what is known of a gradient after the program has changed it."""
    before, value = one.grad, event.value
    one.grad = value
    if event.how not in ("in place", "assigned") or before is None or value is None:
        one.mask = 0
    elif zeros_of(before) < zeros_of(value) < value.size:
        one.unmasked = one.unmasked if one.mask else before
        one.mask = seq
    elif zeros_of(value) < zeros_of(before):
        one.mask = 0


def _note_step(one: _Parameter, seq: int) -> None:
    one.steps += 1
    if one.mask and one.unmasked is not None and one.grad is not None:
        one.masked.append(_MaskedStep(one.mask, one.unmasked, one.grad, seq))
    one.mask = 0


def _is_masked(one: _Parameter) -> bool:
    """Return whether most steps of a parameter used a masked gradient, and the program left the parameter to them."""
    count = len(one.masked)
    return count >= _FEWEST and 2 * count > one.steps and 2 * one.writes < count


def _is_decayed(timeline: Timeline, node: int, one: _Parameter) -> bool:
    options = options_of(timeline, node, one.masked[-1].step)
    numbers = [options.get(name) for name in ("lr", "weight_decay")]
    return all(isinstance(each, float | int) and each for each in numbers)


def _masked_count(timeline: Timeline, node: int, one: _Parameter) -> int:
    """Return how many elements are set to zero in the gradient, and are not zero themselves; 0 if the mask changes."""
    source = statement_at(timeline, _mask_at(timeline, one))
    if source is not None and any(map(_reads_gradient, _masks_of(source[1].node))):
        return 0
    steps = one.masked[:_MOST_COMPARED]
    arrays = [_arrays(timeline, node, each) for each in steps]
    if not all(arrays):
        is_fixed = _is_fixed(timeline, _mask_at(timeline, one))
        counts = (_least_masked(timeline, node, each) for each in steps)
        return max(counts, default=0) if is_fixed else 0
    first, *_ = arrays[0]
    masked, trained, has_moved = first != first, first != first, False
    for before, after, weight, later in filter(None, arrays):
        here = (before != 0) & (after == 0) & (weight != 0)
        masked, trained = masked | here, trained | (after != 0)
        has_moved = has_moved or bool((weight != later)[here].any())
    return int(masked.sum()) if has_moved and not (masked & trained).any() else 0


def _arrays(timeline: Timeline, node: int, one: _MaskedStep) -> tuple[Array, ...]:
    """Return a gradient before and after its mask, and the parameter before and after the step; else empty."""
    weight, later = (timeline.memory_value(node, 0, seq) for seq in (one.seq, one.step))
    arrays = [timeline.array(value) if value is not None else None for value in (one.before, one.after, weight, later)]
    known = [array for array in arrays if array is not None]
    return tuple(known) if len(known) == len(arrays) and len({array.shape for array in known}) == 1 else ()


def _least_masked(timeline: Timeline, node: int, one: _MaskedStep) -> int:
    """Return the fewest elements other than zero that a step may have masked, by counts of zeros."""
    weight = timeline.memory_value(node, 0, one.seq)
    is_known = weight is not None and weight.statistics() is not None
    return max(0, zeros_of(one.after) - zeros_of(one.before) - zeros_of(weight)) if is_known else 0


# Whether a mask is the same in each step, by the text of the program

_DRAWS = ("rand", "bernoulli", "multinomial", "dropout", "topk", "kthvalue", "quantile")
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def _mask_at(timeline: Timeline, one: _Parameter) -> Frame | None:
    event = timeline.event(one.masked[-1].seq)
    return own_frame(timeline.stack(event.stack)) if isinstance(event, GradSet) else None


def _line_of(timeline: Timeline, one: _Parameter) -> str:
    at = _mask_at(timeline, one)
    return file_line(at.path, at.line) if at is not None else ""


def _is_fixed(timeline: Timeline, at: Frame | None) -> bool:
    """Return whether a line masks a gradient by what is computed once, and not for each step."""
    source = statement_at(timeline, at)
    masks = _masks_of(source[1].node) if source is not None else []
    if source is None or not masks:
        return False
    text, one = source
    own, seen, waiting = method_self(timeline, at), set[str](), list[ast.AST](masks)
    while waiting:
        part = waiting.pop()
        if _reads_gradient(part):
            return False
        for name in names_read(part) - seen - {own}:
            seen.add(name)
            values = _values_of(text, one, name)
            if values is None:
                return False
            waiting += values
    return True


def _masks_of(node: ast.stmt) -> list[ast.expr]:
    """Return the parts of a statement that choose the elements of a gradient: an index, or a factor."""
    match node:
        case ast.Assign(targets=[ast.Subscript(slice=index)], value=ast.Constant() | ast.UnaryOp()):
            return [index]
        case ast.Assign(targets=[target], value=ast.BinOp(left=left, op=ast.Mult(), right=right)):
            factors = [one for one in (left, right) if ast.unparse(one) != ast.unparse(target)]
            return factors if len(factors) == 1 else []
        case ast.AugAssign(target=ast.Subscript(slice=index), op=ast.Mult(), value=ast.Constant()):
            return [index]
        case ast.AugAssign(op=ast.Mult(), value=value):
            return [value]
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Subscript(slice=index), attr="zero_" | "fill_"))):
            return [index]
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="mul_" | "masked_fill_"), args=[mask, *_])):
            return [mask]
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="index_fill_"), args=[_, index, *_])):
            return [index]
    return []


def _reads_gradient(part: ast.AST) -> bool:
    """Return whether an expression reads a gradient, or draws at random: such a mask is another one in each step."""
    inner = list(ast.walk(part))
    calls = [called_name(one) for one in inner if isinstance(one, ast.Call)]
    is_drawn = any(word in call for call in calls for word in _DRAWS)
    return is_drawn or any(isinstance(one, ast.Attribute) and one.attr == "grad" for one in inner)


def _values_of(text: ProgramText, one: Statement, name: str) -> list[ast.AST] | None:
    """Return what a variable is set to in each step, if that only picks something made before; else None.

    It is empty for a variable that is set before the training.
    """
    function = function_of(one)
    is_local = isinstance(function, FUNCTION_NODES) and scope_of(text, one, name) is function
    if is_local and isinstance(function, FUNCTION_NODES) and not _is_assigned(text, function, name):
        return None  # a parameter: what the callers give is not known
    training = next((loop for loop in reversed(one.around) if isinstance(loop, _LOOPS) and _trains(loop)), None)
    found = list[ast.AST]()
    for other in text.statements:
        is_own = not is_local or function_of(other) is function
        loops = [loop for loop in other.around if isinstance(loop, _LOOPS)]
        is_repeated = training in loops if training is not None else bool(loops) or is_local
        if isinstance(other.node, ast.For | ast.AsyncFor) and is_own and name in _variables_in(other.node.target):
            is_training = other.node is training or _trains(other.node)
            if is_training:
                return None
            if is_repeated:
                found.append(other.node.iter)
        elif is_own and is_repeated and name in names_set(other.node):
            value = getattr(other.node, "value", None)
            if not isinstance(value, ast.Name | ast.Attribute | ast.Subscript | ast.Constant):
                return None
            found.append(value)
        elif is_own and is_repeated and _is_written(other.node, name):
            return None
    return found


def _variables_in(part: ast.AST) -> set[str]:
    """Return all variables in an expression."""
    return {one.id for one in ast.walk(part) if isinstance(one, ast.Name)}


def _is_assigned(text: ProgramText, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    """Return whether a variable of a function is no parameter."""
    return name not in parameters_of(function) and name in variables_of(text, function)


def _is_written(node: ast.stmt, name: str) -> bool:
    """Return whether a statement assigns to an element of a variable: ``mask[rows] = 1``."""
    targets = assigned_parts(node)
    return any(isinstance(one, ast.Subscript) and ast.unparse(one.value) == name for one in targets)


def _trains(loop: ast.AST) -> bool:
    """Return whether a loop contains a backward pass or a step."""
    calls = (part for part in ast.walk(loop) if isinstance(part, ast.Call))
    return any(called_name(call) in ("backward", "step") for call in calls)


# What is reported


def _finding(timeline: Timeline, nodes: list[int], one: _Parameter) -> Finding:
    node, last = nodes[0], one.masked[-1]
    event = timeline.event(last.step)
    frames = timeline.stack(event.stack) if isinstance(event, OptimizerStepped) else ()
    kind = event.kind if isinstance(event, OptimizerStepped) else ""
    call, mask = own_frame(frames), _mask_at(timeline, one)
    made = assignment(timeline, call, receiver(timeline, call, "step"))
    constructions = [made] if made is not None else list(called_lines(timeline, call, kind))
    construction = constructions[0] if len(constructions) == 1 else None
    others = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
    text = titled(f"weight decay changes elements of {{}}{others} with masked gradient", label(timeline, node))
    options = options_of(timeline, node, last.step)
    decay, rate = (options.get(name) for name in ("weight_decay", "lr"))
    count, steps = _masked_count(timeline, node, one), len(one.masked)
    part = 0.0
    is_direct = kind == "SGD" or bool(options.get("decoupled_weight_decay")) or kind == "AdamW"
    if is_direct and isinstance(decay, float | int) and isinstance(rate, float | int):
        part = 1 - max(0.0, 1 - rate * decay) ** steps
    shrunk = f", which shrinks them by about {number(100 * part, 2)}%" if part else ""
    place = f" at {file_line(mask.path, mask.line)}" if mask is not None else ""
    fact = f"the gradient of {count:,} elements is set to zero{place} before {steps:,} of {one.steps:,} steps"
    decays = f"{shown(kind)} has weight_decay={number(decay)}{shrunk}"
    fix = "weight_decay=0 for this parameter, in a group of its own, or write the old elements back after the step"
    is_only = isinstance(event, OptimizerStepped) and len(event.parameters) + len(event.skipped) == 1
    edit = with_keyword(timeline, construction, kind, "weight_decay", "0.0") if is_only else None
    parts = (Finding("mask", f"{fact}, but {decays}", last.seq, node, at=mask),)
    numbers = (Number("elements", count), Number("steps", steps))
    return Finding(
        "masked-decayed",
        text,
        last.step,
        node,
        parts,
        fix,
        construction or mask or call,
        numbers,
        suspected=is_direct and part < _LEAST_SHRINKING,
        edit=edit,
    )
