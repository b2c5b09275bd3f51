"""A `torch.autograd.Function` of the program whose backward is not the derivative of its forward.

Limits. The recorded operations of the forward are run again with other inputs. What the forward computes outside of
torch, in numpy, in C or from Python numbers (``x.numpy()``, ``x.item()``, ``float(x)``), stays the same then, so such a
function is not judged if it uses tensors or numbers that it makes.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from math import isclose, prod
from typing import TYPE_CHECKING

import numpy as np

from gviz import events as e
from gviz.errors import GvizError
from gviz.explain.display_names import label, symbol, titled
from gviz.explain.finding import Finding
from gviz.explain.program_text import (
    ProgramText,
    called_name,
    calls_in,
    classes_named,
    line_text,
    methods_of,
    positional_parameters,
)
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import ignored_gradient
from gviz.explain.source_frames import innermost
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame
from gviz.trace.graph_state import UNKNOWN_OP, NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number
from gviz.values.plain_text import shown
from gviz.values.value import Array, Value

if TYPE_CHECKING:
    from gviz.rerun.finite_differences import GradientCheck


_CALLS = 3
"""The calls of each function that are tested; a recording stores whole values of the same number."""

_ELEMENTS, _MORE_ELEMENTS = 8, 32
"""The elements of each input that are changed, and how many more once a call is wrong."""

_MOST_WORK = 2_000_000
"""The most operations on single elements in a forward that is run again some hundred times."""

_FEW = 4
"""The most numbers that are shown."""


def wrong_rule(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first call of each function whose backward differs from finite differences."""
    calls: defaultdict[int, list[NodeRecord]] = defaultdict(list)
    for record in survey.nodes.values():
        if _is_of_program(survey.timeline, record.created):
            calls[record.created.op].append(record)
    for function in calls.values():
        yield None
        yield next(filter(None, (_wrong_call(survey, record) for record in function[:_CALLS])), None)
    yield from _kept_signs(survey)


# A function that is called a reversal of the gradient, and that sends it on with its sign

REVERSAL = re.compile(
    r"grad\w*revers(?!ib)|revers(?!ib)\w*grad|revgrad|gradrev|reverse_?layer|(?-i:\bGRL(?:ayer|_|[A-Z]|\b)|\bgrl\b)",
    re.IGNORECASE,
)
_NEGATES = re.compile(r"\.neg\(|(?:return|=|\*|\()\s*-\s*[A-Za-z_(]")


def _kept_signs(survey: Survey) -> Iterator[Finding | None]:
    """Yield functions with a name such as ``GradReverse`` that send what arrives on with its sign."""
    timeline = survey.timeline
    ours = {record.node: record for record in survey.nodes.values() if _is_of_program(timeline, record.created)}
    named = {node: record for node, record in ours.items() if REVERSAL.search(timeline.op(record.created.op).name)}
    arrived: dict[int, Value | None] = {}
    reported: set[int] = set()
    for seq, event in timeline.select((e.StepStarted, e.GradFlowed)) if named else ():
        if isinstance(event, e.StepStarted) and event.node in named:
            arrived[event.node] = next(iter(event.grads), None)
        elif isinstance(event, e.GradFlowed) and (record := named.get(event.source)) is not None:
            factor = _positive_factor(arrived.get(record.node), event.part)
            if factor and record.created.op not in reported:
                reported.add(record.created.op)
                yield _sign_finding(survey, record, seq, factor)


def _positive_factor(arrived: Value | None, sent: Value) -> float:
    """Return the positive number by which a gradient was multiplied; 0 if there is none, or it is negative."""
    before, after = (value.statistics() if value is not None else None for value in (arrived, sent))
    if before is None or after is None or arrived is None or arrived.shape != sent.shape or not before.rms:
        return 0.0
    factor = after.rms / before.rms
    ends = (before.min, after.min), (before.max, after.max)
    kept = all(isclose(factor * was, now, rel_tol=1e-3, abs_tol=1e-6 * factor * before.rms) for was, now in ends)
    return factor if kept and not isclose(before.min, -before.max, rel_tol=1e-2) else 0.0


def _sign_finding(survey: Survey, record: NodeRecord, seq: int, factor: float) -> Finding:
    text = titled("{} keeps the sign of the gradient, and does not reverse it", label(survey.timeline, record.node))
    part = Finding("tried", f"its backward sent {number(factor)} times what arrived", seq, record.node)
    at = _backward_line(survey, record, _last_step(survey, record))
    fix = "return the negative from backward, if the name of the function is right: -grad, or -ctx.scale * grad"
    if _NEGATES.search(line_text(survey.timeline, at)):
        fix = "turn it round once: backward negates, and so does the negative factor that it is given"
    return Finding("wrong-rule", text, seq, record.node, (part,), fix, at, suspected=True)


def suspect_rules(timeline: Timeline, node: int, n: int) -> Iterator[Finding]:
    """Yield the functions by moment `n` that most likely sent something wrong towards a node."""
    names = itertools.takewhile(lambda op: op is not UNKNOWN_OP, map(timeline.op, itertools.count(1)))
    if not any(op.is_of_program for op in names):
        return  # a search would read the whole recording
    for one in filter(None, wrong_rule(Survey(timeline))):
        if one.event <= n and node in ancestors(timeline, one.node):
            yield replace(one, text=f"on the way {one.text}")


def untried_functions(timeline: Timeline) -> dict[str, str]:
    """Return the functions of the program whose first calls could not be tested, with the reason for the first call."""
    reasons = {op: [_refusal(timeline, event) for _, event in calls] for op, calls in first_calls(timeline).items()}
    return {timeline.op(op).name: why[0] for op, why in reasons.items() if all(why)}


def first_calls(timeline: Timeline) -> dict[int, list[tuple[int, e.NodeCreated]]]:
    """Return the calls of each function of the program that are tested, by operation, with their events."""
    calls: defaultdict[int, list[tuple[int, e.NodeCreated]]] = defaultdict(list)
    for seq, event in timeline.select((e.NodeCreated,)):
        if _is_of_program(timeline, event) and len(calls[event.op]) < _CALLS:
            calls[event.op].append((seq, event))
    return calls


def _refusal(timeline: Timeline, created: e.NodeCreated) -> str:
    """Return why the recording does not show whether the rule of a call is right; empty if it does."""
    from gviz.rerun.finite_differences import work_of
    from gviz.rerun.node_forward import forward_of

    if not all(map(_is_stored, _needed(timeline, created))):
        return "what it was given was not stored (--values all)"
    info = timeline.info(created.node)
    try:
        too_much = work_of(timeline, info, forward_of(timeline, info)) > _MOST_WORK
        if _leaves_torch(timeline, info):
            return "its forward leaves torch, as with numpy() or item(), so its numbers cannot be computed again"
    except GvizError as refusal:
        return refusal.why or refusal.what
    return "what it was given is large, and its forward takes long" if too_much else ""


_CONVERSIONS = {"numpy", "item", "tolist", "data_ptr", "asarray", "__array__"}
_TO_NUMBERS = {"float", "int", "bool"}
_OF_SHAPES = {"shape", "size", "numel", "len", "dim", "ndim"}


def _leaves_torch(timeline: Timeline, info: NodeInfo) -> bool:
    """Return whether a function's forward converts tensors, and its result depends on tensors or numbers that it makes.

    Raises GvizError if the forward was not recorded.
    """
    name = info.op.name
    forwards = [(text, methods_of(owner).get("forward")) for text, owner in classes_named(timeline, name)]
    functions = [
        (text, one, forward) for text, forward in forwards if forward is not None for one in _called_by(text, forward)
    ]
    if not any(_converts(one, forward, len(info.created.inputs)) for _, one, forward in functions):
        return False
    places = [(text.path, range(one.lineno, (one.end_lineno or one.lineno) + 1)) for text, one, _ in functions]
    from gviz.rerun.custom_function_forward import FunctionBody

    used = {node for step in FunctionBody(timeline, info).steps for node, _ in step.created.inputs if node}
    made = (one for one in map(timeline.info, used) if one.created.kind == "constant")
    lines = [(frame.path, frame.line) for one in made for frame in one.frames[:1]]
    return any(path == of and line in rows for path, line in lines for of, rows in places)


def _called_by(text: ProgramText, forward: ast.FunctionDef) -> list[ast.FunctionDef]:
    """Return a forward and the functions of its file that it calls, directly or not."""
    known: defaultdict[str, list[ast.FunctionDef]] = defaultdict(list)
    for one in text.statements:
        if isinstance(one.node, ast.FunctionDef) and one.node.name not in ("forward", "backward"):
            known[one.node.name].append(one.node)
    found = [forward]
    for function in found:
        called = {called_name(call) for call in calls_in(function)}
        found += [one for name in sorted(called) for one in known.get(name, ()) if one not in found]
    return found


def _converts(function: ast.FunctionDef, forward: ast.FunctionDef, tensors: int) -> bool:
    """Return whether a function converts a tensor to an array or a number.

    A forward with more parameters than tensors has some that are numbers already: ``ctx.alpha = float(alpha)``.
    """
    parameters = positional_parameters(forward)[1:]
    numbers = set(parameters) if len(parameters) > tensors else set()
    for call in calls_in(function):
        name, argument = called_name(call), next(iter(call.args), None)
        if name in _CONVERSIONS:
            return True
        if name in _TO_NUMBERS and argument is not None and not isinstance(argument, ast.Constant):
            is_number = isinstance(argument, ast.Name) and argument.id in numbers
            words = {part.attr for part in ast.walk(argument) if isinstance(part, ast.Attribute)}
            words |= {part.id for part in ast.walk(argument) if isinstance(part, ast.Name)}
            if not is_number and words.isdisjoint(_OF_SHAPES):
                return True
    return False


def _is_of_program(timeline: Timeline, created: e.NodeCreated) -> bool:
    op = timeline.op(created.op) if created.kind == "op" and created.requires_grad else None
    return op is not None and op.is_of_program


def _needed(timeline: Timeline, created: e.NodeCreated) -> Iterator[Value | None]:
    """Yield the inputs of a call, and the gradients that arrived at it."""
    from gviz.rerun.inputs import input_value

    info = timeline.info(created.node)
    yield from (input_value(timeline, info, slot) for slot in range(len(created.inputs)))
    for event in map(timeline.event, timeline.events_of(created.node)):
        if isinstance(event, e.StepStarted):
            yield from event.grads


def _is_stored(value: Value | None) -> bool:
    return value is None or value.data is not None or value.blob is not None


def _wrong_call(survey: Survey, record: NodeRecord) -> Finding | None:
    """Return what is wrong with a call; None if nothing is, or if the recording does not show it."""
    if _wrong_input(survey, record, _ELEMENTS) is None:
        return None
    wrong_input = _wrong_input(survey, record, _MORE_ELEMENTS)
    return None if wrong_input is None else _rule_finding(survey, record, wrong_input)


def _wrong_input(survey: Survey, record: NodeRecord, elements: int) -> GradientCheck | None:
    """Return the first input that most likely got a wrong gradient, tested at this many of its elements."""
    from gviz.rerun.finite_differences import check_gradients  # imports the engine, which few answers need
    from gviz.rerun.surrogate_gradients import surrogate_kind

    try:
        if _leaves_torch(survey.timeline, survey.timeline.info(record.node)):
            return None
        compared = check_gradients(survey.timeline, record.node, survey.end, elements, _MOST_WORK)
    except GvizError:  # it was not stored, cannot be run on its own, or no pass went through it
        return None
    wrong = next((one for one in compared if one.is_decisive and np.isfinite(one.recorded).all()), None)
    return None if wrong is None or surrogate_kind(survey.timeline, record.node, survey.end, compared) else wrong


def _rule_finding(survey: Survey, record: NodeRecord, one: GradientCheck) -> Finding:
    from gviz.rerun.finite_differences import common_factor, mismatch_patterns

    timeline, wrong = survey.timeline, one.differs
    sent, expected = one.recorded[wrong], one.differences[wrong]
    name, to = shown(timeline.op(record.created.op).name), shown(symbol(timeline, one.node))
    factor = common_factor(one)
    says = "a wrong gradient to"
    if factor is not None and factor < 0:
        says = "the gradient with the other sign to" if factor == -1 else f"{number(factor)} times the gradient to"
    elif factor:
        says = f"{number(factor)} times the gradient to"
    text = titled(f"the backward of {{}} sends {says} {{}}", label(timeline, record.node), to)
    ignored = ignored_gradient(timeline, timeline.op(record.created.op).name) if expected.any() else None
    if ignored is not None:
        text = titled("the backward of {} ignores {}", label(timeline, record.node), ignored.name)
    size = f"it sends {_numbers(sent)}, where small changes of {to} show {_numbers(expected)}"
    size += _factor_words(factor, one.shape) if factor else ""
    rows = (size, f"{wrong.sum()} of the {len(wrong)} elements tried differ", *mismatch_patterns(one))
    parts = tuple(Finding("tried", row) for row in rows)
    fix = f"mend {name}.backward, if this is not intended; gradcheck #{record.node} in the debugger shows more"
    step = _last_step(survey, record)
    if ignored is not None:
        fix = f"multiply what it returns by {ignored.name}, the incoming gradient: the chain rule needs it"
        edit = ignored.edit if _is_elementwise(survey, record) else None
        made = _backward_line(survey, record, step, one.position) if edit is None else None
        return Finding("wrong-rule", text, step, record.node, parts, fix, made or ignored.at, edit=edit)
    at = _backward_line(survey, record, step, one.position)
    return Finding("wrong-rule", text, step, record.node, parts, fix, at, suspected=not factor)


def _is_elementwise(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a product with the incoming gradient has the shape of each input that gets a gradient."""
    inputs = [source for source in survey.sources(record) if source.created.requires_grad]
    return prod(record.shape) == 1 or all(source.shape == record.shape for source in inputs)


def _factor_words(factor: float, shape: tuple[int, ...]) -> str:
    """A factor that a size of the input explains: ``; 0.25 = 1/batch``; empty if none does."""
    sizes = {"batch": shape[0], "elements": prod(shape), "last dimension": shape[-1]} if shape else {}
    for name, size in sizes.items():
        if size > 1 and isclose(abs(factor), size, rel_tol=1e-2):
            return f"; {number(abs(factor))} = {name}"
        if size > 1 and isclose(abs(factor), 1 / size, rel_tol=1e-2):
            return f"; {number(abs(factor))} = 1/{name}"
    return ""


def _numbers(array: Array) -> str:
    few = [number(each) for each in array[:_FEW].tolist()]
    return few[0] if len(array) == 1 else f"[{' '.join(few)}{' …' if len(array) > _FEW else ''}]"


def _last_step(survey: Survey, record: NodeRecord) -> int:
    """Return the event with which its backward ran for the last time."""
    events = reversed(survey.timeline.events_of(record.node))
    return next(seq for seq in events if isinstance(survey.timeline.event(seq), e.StepStarted))


def _backward_line(survey: Survey, record: NodeRecord, step: int, slot: int | None = None) -> Frame | None:
    """Return the line of its backward that made the gradient of an input, in a step; else the last line that it ran.

    If no line of the backward was recorded, it is the line that called the forward.
    """
    timeline, made = survey.timeline, list[e.NodeCreated]()
    for _, event in timeline.select((e.NodeCreated, e.GradFlowed, e.StepFinished), step):
        if isinstance(event, e.StepFinished):
            break
        if isinstance(event, e.NodeCreated):
            made.append(event)
        elif isinstance(event, e.GradFlowed) and (event.source, event.slot) == (record.node, slot):
            made = [one for one in made if _is_same(one.first_value, event.part)] or made
            break
    frames = (frame for one in reversed(made) for frame in timeline.stack(one.stack)[:1])
    return next(frames, innermost(timeline.info(record.node)))


def _is_same(one: Value | None, other: Value) -> bool:
    """Return whether two values are the same tensor, as far as shape, least and largest element show."""
    stats = [value.statistics() if value is not None else None for value in (one, other)]
    if one is None or stats[0] is None or stats[1] is None or one.shape != other.shape:
        return False
    return (stats[0].min, stats[0].max) == (stats[1].min, stats[1].max)
